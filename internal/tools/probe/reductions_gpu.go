package probe

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/tools/probe/gpu"
	"jacobi/solver"
)

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
	return func() error {
		for _, queue := range all {
			if err := queue(); err != nil {
				return err
			}
		}
		return nil
	}, *from
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
		add := func(name string, queue func() error, sum driver.DevicePtr) {
			ways = append(ways, way{name, g.Timed(g.Stream, queue), func() (float64, error) {
				got, err := a.fetch(sum, k.size())
				if err != nil {
					return 0, err
				}
				return k.compare(got, want, 0)
			}})
		}
		for _, s := range steps {
			queue, sum := a.step(s.name, s.each)
			add(s.name, queue, sum)
		}
		add("probe_sum_once", a.once, a.partial[0])
		if k.float() {
			ways = append(ways, way{"probe_sum_exact", g.Timed(g.Stream, a.exact), func() (float64, error) {
				words, err := a.fetch(a.words, cuda.ExactBytes)
				if err != nil {
					return 0, err
				}
				return compareExact(cuda.ExactSum(words), want)
			}})
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
			s := &sums{Crew: c, kind: k, parts: make([]*array, gpus), post: by}
			err := c.Each(func(i int) (err error) {
				lo, hi := n*i/gpus, n*(i+1)/gpus
				s.parts[i], err = newArray(c.GPUs[i], k, hi-lo, lo)
				return err
			})
			if err == nil {
				rows, err = measure(ctx, int64(n*k.size()), s.ways(ctx, want))
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
	post  *post
}

// ways returns the ways to gather the partial sums: every GPU sends its sum to the host, writes it into the memory of
// the first GPU, or publishes it. The host adds them, as it adds the exact sums.
func (s *sums) ways(ctx context.Context, want solver.Sum) []way {
	gathered := func(name string, gather func() (float64, error)) way {
		var got float64
		return way{name, s.Timed(func() (err error) { got, err = gather(); return err }),
			func() (float64, error) { return s.compareNumber(got, want, 0) }}
	}
	all := []way{gathered("host", func() (float64, error) { return s.gather(s.toHost) })}
	if s.Peers() {
		all = append(all, gathered("peer", s.byPeer))
	}
	if s.post != nil {
		all = append(all, gathered("nats", func() (float64, error) { return s.byNATS(ctx) }))
	}
	var got solver.Sum
	return append(all, way{"host, exact", s.Timed(func() (err error) { got, err = s.exactByHost(); return err }),
		func() (float64, error) { return compareExact(got, want) }})
}

// gather adds what send returns for each GPU, all of which work at the same time.
func (s *sums) gather(send func(i int) (float64, error)) (float64, error) {
	parts := make([]float64, len(s.parts))
	err := s.Each(func(i int) (err error) {
		if err = s.parts[i].once(); err == nil {
			parts[i], err = send(i)
		}
		return err
	})
	return serial(parts), err
}

// toHost returns the sum of GPU i.
func (s *sums) toHost(i int) (float64, error) {
	b, err := s.parts[i].fetch(s.parts[i].partial[0], s.size())
	return s.number(b), err
}

func (s *sums) byPeer() (sum float64, err error) {
	first, size := s.parts[0], s.size()
	if _, err = s.gather(func(i int) (float64, error) {
		a, to := s.parts[i], first.partial[1]+driver.DevicePtr(i*size)
		return 0, errors.Join(a.Stream.CopyOnDevice(to, a.partial[0], size), a.Stream.Synchronize())
	}); err != nil {
		return 0, err
	}
	err = s.On(0, func() error {
		b, err := first.fetch(first.partial[1], size*len(s.parts))
		for ; len(b) > 0; b = b[size:] {
			sum += s.number(b)
		}
		return err
	})
	return sum, err
}

func (s *sums) byNATS(ctx context.Context) (sum float64, err error) {
	_, err = s.gather(func(i int) (float64, error) {
		b, err := s.parts[i].fetch(s.parts[i].partial[0], s.size())
		return 0, errors.Join(err, s.post.conn.Publish(s.post.subject, b))
	})
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	for i := 0; err == nil && i < len(s.parts); i++ {
		select {
		case b := <-s.post.arrive:
			if len(b) != s.size() {
				return 0, fmt.Errorf("a message of %d bytes on %s", len(b), s.post.subject)
			}
			sum += s.number(b)
		case <-ctx.Done():
			err = fmt.Errorf("wait for sums on %s: %w", s.post.subject, context.Cause(ctx))
		}
	}
	return sum, err
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
