package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/tools/probe/gpu"
	"jacobi/solver"
)

// Numbers of values of the part reductions.
const (
	fewValues  = 1 << 22
	manyValues = 1 << 28
	cpuValues  = 1 << 25 // on the CPU, besides fewValues
)

// reductions measures the sum of an array within each GPU, over several GPUs, and on the CPU. The values follow from
// their index, so the CPU knows every sum exactly.
func reductions(ctx context.Context, m *Machine) (r Result, err error) {
	add := func(device, figures string, k kind, n int, rows []row, failed error) {
		if err = failed; err == nil {
			r.showRows(fmt.Sprintf("%s, %d values of %s", device, n, k), figures, rows)
		}
	}
	for i := range m.GPUs {
		for _, n := range []int{fewValues, manyValues} {
			for _, k := range kinds() {
				rows, failed := addOnGPU(ctx, &m.GPUs[i], k, n)
				index := m.GPUs[i].Index
				figures := fmt.Sprintf("reductions.gpu%d.%s.%d", index, k, n)
				if add(fmt.Sprintf("GPU %d", index), figures, k, n, rows, failed); err != nil {
					return r, err
				}
			}
		}
	}
	of := kind(m.DType)
	if len(m.GPUs) == 0 {
		r.skip("no GPU: %v; the CPU was measured", m.NoGPU)
	} else {
		var by *post
		if m.Dial != nil {
			conn, hangUp, err := m.Dial(ctx)
			if err != nil {
				return r, err
			}
			defer hangUp()
			by = &post{conn: conn, subject: m.Echo(m.Node) + ".sums"}
		} else {
			r.skip("sums over NATS: a run of one rank has no server")
		}
		rows, failed := addOverGPUs(ctx, m.GPUs, of, manyValues, by)
		add("over GPUs", "reductions.over", of, manyValues, rows, failed)
	}
	for _, n := range []int{fewValues, cpuValues} {
		for _, k := range kinds() {
			if err == nil && (n == fewValues || k == of) {
				rows, failed := addOnCPU(ctx, k, n)
				add("the CPU", fmt.Sprintf("reductions.cpu.%s.%d", k, n), k, n, rows, failed)
			}
		}
	}
	return r, err
}

// addOnCPU measures sums in Go: serial, with four sums at a time, on all cores, and exact, on one core.
func addOnCPU(ctx context.Context, k kind, n int) ([]row, error) {
	switch k {
	case "int32":
		return addOnCPUOf[int32](ctx, k, n)
	case "int64":
		return addOnCPUOf[int64](ctx, k, n)
	case "float32":
		return addOnCPUOf[float32](ctx, k, n)
	}
	return addOnCPUOf[float64](ctx, k, n)
}

func addOnCPUOf[T number](ctx context.Context, k kind, n int) ([]row, error) {
	values, out := make([]T, n), make([]T, n)
	onCores(n, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			if v := k.fixed(uint64(i)); k.float() {
				values[i] = T(float64(v) * 0x1p-53)
			} else {
				values[i] = T(v)
			}
		}
	})
	copied, err := gpu.Fastest(ctx, wayTries, gpu.Wall(func() error {
		onCores(n, func(_, lo, hi int) { copy(out[lo:hi], values[lo:hi]) })
		return nil
	}))
	if err != nil {
		return nil, err
	}
	want := sumOf(k, n)
	plain := func(name string, add func([]T) T) way {
		var sum T
		return way{name, gpu.Wall(func() error { sum = add(values); return nil }), func() (float64, error) {
			memory, _ := binary.Append(nil, binary.LittleEndian, sum) // a number has a size
			return k.compare(memory, want, n)
		}}
	}
	ways := []way{plain("serial", serial[T]), plain("unrolled", unrolled[T]), plain("all cores", byCores[T])}
	if k.float() {
		var sum solver.Sum
		ways = append(ways, way{"exact", gpu.Wall(func() error { sum = exactly(values); return nil }),
			func() (float64, error) { return compareExact(sum, want) }})
	}
	rows, err := measure(ctx, int64(n*k.size()), ways)
	if err != nil {
		return nil, fmt.Errorf("on the CPU, %d values of %s: %w", n, k, err)
	}
	return relate(rows, 2*float64(n*k.size())/copied.Seconds()), nil
}

type number interface {
	int32 | int64 | float32 | float64
}

// serial adds values one after the other: each addition waits for the one before.
func serial[T number](values []T) (sum T) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// unrolled adds values to four sums, whose additions do not wait for each other.
func unrolled[T number](values []T) T {
	var a, b, c, d T
	for len(values) >= 4 {
		a += values[0]
		b += values[1]
		c += values[2]
		d += values[3]
		values = values[4:]
	}
	return a + b + c + d + serial(values)
}

// byCores adds a part of the values on each core.
func byCores[T number](values []T) T {
	parts := make([]T, runtime.GOMAXPROCS(0))
	onCores(len(values), func(core, lo, hi int) { parts[core] = unrolled(values[lo:hi]) })
	return serial(parts)
}

// exactly adds values as the norm of a run is added.
func exactly[T number](values []T) (sum solver.Sum) {
	for _, v := range values {
		sum.Add(float64(v), 0)
	}
	return sum
}

// kind is a type of values that are added. Integers are added modulo 2^32 and 2^64.
type kind string

func kinds() []kind { return []kind{"int32", "int64", "float32", "float64"} }

// size returns the bytes of a value.
func (k kind) size() int {
	if strings.HasSuffix(string(k), "32") {
		return 4
	}
	return 8
}

// kernel returns the name of a kernel for the kind, which ends in _i32 or so.
func (k kind) kernel(name string) string { return name + "_" + string(k[:1]+k[len(k)-2:]) }

// float reports whether sums of the kind round.
func (k kind) float() bool { return k == "float32" || k == "float64" }

// hashOf is hashOf of probe_fill.cu.
func hashOf(i uint64) uint64 {
	i = (i + 1) * 0x9E3779B97F4A7C15
	i = (i ^ i>>32) * 0xD6E8FEB86659FD93
	return i ^ i>>32
}

// fixed returns value i of the kind as an integer: the value itself, or for floating point a multiple of 2^-53.
func (k kind) fixed(i uint64) uint64 {
	h := hashOf(i)
	switch k {
	case "int32":
		return h >> 32
	case "float32":
		return h >> 40 << 29
	case "float64":
		return h >> 11
	}
	return h
}

// sumOf adds the first n < 2^32 values of a kind on all cores: integers in units of 1, floating-point values in those
// of magnitude 0.
func sumOf(k kind, n int) (total solver.Sum) {
	parts := make([][2]uint64, runtime.GOMAXPROCS(0)) // the lower and the upper 32 bits
	onCores(n, func(core, lo, hi int) {
		var low, high uint64
		for i := lo; i < hi; i++ {
			v := k.fixed(uint64(i))
			low += v & math.MaxUint32
			high += v >> 32
		}
		parts[core] = [2]uint64{low, high}
	})
	unit := 0
	if k.float() {
		unit = solver.UnitBits - 53
	}
	for _, s := range parts {
		total.AddScaled(s[0], unit)
		total.AddScaled(s[1], unit+32)
	}
	return total
}

// onCores divides [0, n) among all cores.
func onCores(n int, do func(core, lo, hi int)) {
	cores := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for c := range cores {
		wg.Go(func() { do(c, n*c/cores, n*(c+1)/cores) })
	}
	wg.Wait()
}

// number returns a floating-point value of the kind as it lies in memory.
func (k kind) number(b []byte) float64 {
	if k.size() == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// compare compares a sum, as it lies in memory, with the exact one. It returns the relative error, and an error if the
// sum is wrong: another integer, or farther off than compareNumber allows.
func (k kind) compare(got []byte, want solver.Sum, inARow int) (float64, error) {
	if k.float() {
		return k.compareNumber(k.number(got), want, inARow)
	}
	v, mask := binary.LittleEndian.Uint64(append(bytes.Clone(got), 0, 0, 0, 0)), uint64(math.MaxUint64)>>(64-8*k.size())
	if v &= mask; v != want.Limbs[0]&mask {
		return 0, fmt.Errorf("the sum is %d, not %d", v, want.Limbs[0]&mask)
	}
	return 0, nil
}

// compareNumber compares a sum of floating-point values with the exact one. Where values are added in a row, each
// addition may round by half a unit in the last place; sums of partial sums have fewer than a thousand in a row.
func (k kind) compareNumber(got float64, want solver.Sum, inARow int) (float64, error) {
	most := map[int]float64{4: 1e-7, 8: 1e-15}[k.size()] * float64(max(1000, inARow))
	off := math.Abs(got-want.Float(0)) / want.Float(0)
	if !(off <= most) {
		return off, fmt.Errorf("the sum is %v, not %v", got, want.Float(0))
	}
	return off, nil
}

// compareExact compares an exact sum with what it must be, bit by bit.
func compareExact(got solver.Sum, want solver.Sum) (float64, error) {
	if got != want {
		return 0, fmt.Errorf("the exact sum is %v, not %v", got, want)
	}
	return 0, nil
}

// outBytes is the size of what an array fetches at most: an exact sum, or the sums of all GPUs of a node.
const outBytes = 4096

// array is an array on a GPU and what adding it takes.
type array struct {
	*gpu.GPU
	kind
	n       uint64
	values  driver.DevicePtr
	partial [2]driver.DevicePtr // partial sums: of the values, and of partial sums
	words   driver.DevicePtr    // of the exact sum
	ended   driver.DevicePtr    // the count of blocks, after them
	bias    [3]float64
	out     *driver.HostMemory

	fill, once, exact func() error // queue: the values, and their sum by one launch, to partial[0] or to words
}

// newArray allocates an array of n values on g. first is the index of its first value.
func newArray(g *gpu.GPU, k kind, n, first int) (*array, error) {
	a := &array{GPU: g, kind: k, n: uint64(n), bias: cuda.ExactBiases()}
	size := int64(k.size())
	partial := size * (1 + max(int64(blocksOf(a.n, gpu.Threads)), 1<<16))
	a.values, a.words = g.Alloc(int64(n)*size), g.Alloc(cuda.ExactBytes+8)
	a.partial[0], a.partial[1] = g.Alloc(partial), g.Alloc(partial)
	a.ended = a.words + cuda.ExactBytes
	from := uint64(first)
	fill := g.Kernel(k.kernel("probe_fill"), &a.values, &a.n, &from)
	a.fill = func() error { return fill.Queue(g.Stream, blocksOf(a.n, gpu.Threads), 1) }
	a.once = a.queue(g.Kernel(k.kernel("probe_sum_once"), &a.values, &a.n, &a.partial[0], &a.ended))
	if k.float() {
		exact := a.queue(g.Kernel(k.kernel("probe_sum_exact"), &a.values, &a.n, &a.bias, &a.words))
		a.exact = func() error { return errors.Join(g.Stream.Fill(a.words, 0, cuda.ExactBytes), exact()) }
	}
	if g.Err() != nil {
		return nil, g.Err()
	}
	var err error
	if a.out, err = g.Pinned(outBytes); err == nil {
		err = errors.Join(g.Stream.Fill(a.words, 0, cuda.ExactBytes+8), a.fill())
	}
	return a, err
}

func blocksOf(n uint64, each int) int { return int((n + uint64(each) - 1) / uint64(each)) }

// queue returns a function that queues k with as many blocks as the GPU runs at the same time.
func (a *array) queue(k gpu.Kernel) func() error {
	blocks := min(a.AtOnce(k), blocksOf(a.n, gpu.Threads))
	return func() error { return k.Queue(a.Stream, blocks, 1) }
}

// steps lists the kernels in the order in which they are taught, and how many values a block adds; 0: as many blocks as
// fit on the GPU add any number. probe_sum_once and probe_sum_exact come after them.
var steps = []struct {
	name string
	each int
}{
	{"probe_sum_divergent", gpu.Threads},
	{"probe_sum_conflicts", gpu.Threads},
	{"probe_sum_sequential", gpu.Threads},
	{"probe_sum_load", 2 * gpu.Threads},
	{"probe_sum_shuffle", 2 * gpu.Threads},
	{"probe_sum_several", 0},
}

// step returns a function that queues the launches of a step until one sum is left, and where that lies.
func (a *array) step(name string, each int) (queue func() error, sum driver.DevicePtr) {
	var all []func() error
	from, n := &a.values, a.n
	for to := 0; len(all) == 0 || n > 1; to = 1 - to {
		count := n
		k := a.Kernel(a.kernel(name), from, &count, &a.partial[to])
		blocks := min(a.AtOnce(k), blocksOf(n, gpu.Threads))
		if each > 0 {
			blocks = blocksOf(n, each)
		}
		all = append(all, func() error { return k.Queue(a.Stream, blocks, 1) })
		from, n = &a.partial[to], uint64(blocks)
	}
	return func() error { return gpu.Do(all...) }, *from
}

// fetch returns n bytes of the GPU's memory once all work is done.
func (a *array) fetch(p driver.DevicePtr, n int) ([]byte, error) {
	return a.out.Bytes()[:n], errors.Join(a.Stream.CopyFromDevice(a.out, 0, p, n), a.Stream.Synchronize())
}

// addOnGPU measures the steps for n values.
func addOnGPU(ctx context.Context, v *driver.Device, k kind, n int) (rows []row, err error) {
	want := sumOf(k, n)
	err = gpu.With(v, func(g *gpu.GPU) error {
		a, err := newArray(g, k, n, 0)
		if err != nil {
			return err
		}
		half := n * k.size() / 2 / 16 * 16
		copied, err := gpu.Fastest(ctx, wayTries, g.Timed(g.Stream, func() error {
			return g.Stream.CopyOnDevice(a.values+driver.DevicePtr(half), a.values, half)
		}))
		if err = errors.Join(err, a.fill()); err != nil {
			return err
		}
		var ways []way
		add := func(name string, queue func() error, sum driver.DevicePtr, size int,
			compare func(got []byte) (float64, error)) {
			ways = append(ways, way{name, g.Timed(g.Stream, queue), func() (float64, error) {
				got, err := a.fetch(sum, size)
				if err != nil {
					return 0, err
				}
				return compare(got)
			}})
		}
		rounded := func(got []byte) (float64, error) { return k.compare(got, want, 0) }
		for _, s := range steps {
			queue, sum := a.step(s.name, s.each)
			add(s.name, queue, sum, k.size(), rounded)
		}
		add("probe_sum_once", a.once, a.partial[0], k.size(), rounded)
		if k.float() {
			add("probe_sum_exact", a.exact, a.words, cuda.ExactBytes,
				func(got []byte) (float64, error) { return compareExact(cuda.ExactSum(got), want) })
		}
		if g.Err() != nil {
			return g.Err()
		}
		if rows, err = measure(ctx, int64(n*k.size()), ways); err != nil {
			return fmt.Errorf("%d values of %s: %w", n, k, err)
		}
		rows = relate(rows, 2*float64(half)/copied.Seconds())
		return nil
	})
	return rows, err
}

// post is a connection over which sums are gathered, and a subject that nobody else uses.
type post struct {
	conn    pubsub.Conn
	subject string
	arrive  chan []byte
}

// addOverGPUs measures the sum of n floating-point values on the first 1, 2, 4... and all GPUs. by is nil without a
// server.
func addOverGPUs(ctx context.Context, devices []driver.Device, k kind, n int, by *post) ([]row, error) {
	want := sumOf(k, n)
	if by != nil {
		by.arrive = make(chan []byte, len(devices))
		sub, err := by.conn.Subscribe(by.subject, func(m pubsub.Message) { by.arrive <- m.Data })
		if err != nil {
			return nil, err
		}
		defer func() { _ = sub.Unsubscribe() }() // the connection ends soon
		if err := by.conn.FlushWithContext(ctx); err != nil {
			return nil, err
		}
	}
	return over(len(devices), func(gpus int) (rows []row, err error) {
		err = gpu.WithCrew(devices[:gpus], func(c *gpu.Crew) error {
			s := &sums{c, k, make([]*array, gpus)}
			err := c.Each(func(i int) (err error) {
				lo, hi := n*i/gpus, n*(i+1)/gpus
				s.parts[i], err = newArray(c.GPUs[i], k, hi-lo, lo)
				return err
			})
			if err == nil {
				rows, err = measure(ctx, int64(n*k.size()), s.ways(ctx, want, by))
			}
			return err
		})
		return rows, err
	})
}

// sums is an array of values that is divided among GPUs.
type sums struct {
	*gpu.Crew
	kind
	parts []*array
}

// ways returns the ways to gather the partial sums: every GPU sends its sum to the host, writes it into the memory of
// the first GPU, or publishes it. The host adds them, as it adds the exact sums.
func (s *sums) ways(ctx context.Context, want solver.Sum, by *post) (all []way) {
	first, size, parts := s.parts[0], s.size(), make([][]byte, len(s.parts))
	add := func(name string, send func(i int) error, gathered func() ([]byte, error)) {
		var sum float64
		all = append(all, way{name, s.Timed(func() error {
			once := func(i int) error { return gpu.Do(s.parts[i].once, func() error { return send(i) }) }
			if err := s.Each(once); err != nil {
				return err
			}
			b, err := gathered()
			for sum = 0; len(b) > 0; b = b[size:] {
				sum += s.number(b)
			}
			return err
		}), func() (float64, error) { return s.compareNumber(sum, want, 0) }})
	}
	toHost := func(i int) (err error) {
		parts[i], err = s.parts[i].fetch(s.parts[i].partial[0], size)
		return err
	}
	add("host", toHost, func() ([]byte, error) { return bytes.Join(parts, nil), nil })
	if s.Peers() {
		add("peer", func(i int) error {
			a, to := s.parts[i], first.partial[1]+driver.DevicePtr(i*size)
			return errors.Join(a.Stream.CopyOnDevice(to, a.partial[0], size), a.Stream.Synchronize())
		}, func() (b []byte, err error) {
			err = s.On(0, func() (err error) {
				b, err = first.fetch(first.partial[1], size*len(s.parts))
				return err
			})
			return b, err
		})
	}
	if by != nil {
		add("nats", func(i int) error { return errors.Join(toHost(i), by.conn.Publish(by.subject, parts[i])) },
			func() ([]byte, error) { return by.receive(ctx, len(parts), size) })
	}
	var got solver.Sum
	return append(all, way{"host, exact", s.Timed(func() (err error) { got, err = s.exactByHost(); return err }),
		func() (float64, error) { return compareExact(got, want) }})
}

// receive returns the next messages, each of the given size.
func (p *post) receive(ctx context.Context, messages, size int) (all []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	for range messages {
		select {
		case b := <-p.arrive:
			if len(b) != size {
				return nil, fmt.Errorf("a message of %d bytes on %s", len(b), p.subject)
			}
			all = append(all, b...)
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for sums on %s: %w", p.subject, context.Cause(ctx))
		}
	}
	return all, nil
}

// exactByHost adds the exact sums of all GPUs. The result does not depend on their number.
func (s *sums) exactByHost() (total solver.Sum, err error) {
	parts := make([]solver.Sum, len(s.parts))
	err = s.Each(func(i int) error {
		a := s.parts[i]
		if err := a.exact(); err != nil {
			return err
		}
		words, err := a.fetch(a.words, cuda.ExactBytes)
		parts[i] = cuda.ExactSum(words)
		return err
	})
	for _, p := range parts {
		total.Merge(p)
	}
	return total, err
}
