package reduction

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

// threads is the size of a block, kSumThreads of probe_sum.cuh.
const threads = 256

// ladder lists the kernels in the order in which they are taught, and how many values a block adds; 0: as many blocks
// as fit on the GPU add any number.
var ladder = []struct {
	name   string
	values int
}{
	{"probe_sum_divergent", threads},
	{"probe_sum_conflicts", threads},
	{"probe_sum_sequential", threads},
	{"probe_sum_load", 2 * threads},
	{"probe_sum_shuffle", 2 * threads},
	{"probe_sum_several", 0},
}

// The kernels that add all values in one launch.
const (
	once  = "probe_sum_once"
	exact = "probe_sum_exact"
)

// array is an array on a GPU and what adding it takes.
type array struct {
	*gpu.GPU
	kind    Type
	n       uint64
	module  *driver.Module
	stream  *driver.Stream
	values  driver.DevicePtr
	partial [2]driver.DevicePtr // partial sums: of the values, and of partial sums
	words   driver.DevicePtr    // of the exact sum, and after them the count of blocks
	out     *driver.HostMemory
	count   int // multiprocessors
}

// load allocates an array of n values on g. first is the index of its first value.
func load(g *gpu.GPU, kind Type, n, first int) (*array, error) {
	a := &array{GPU: g, kind: kind, n: uint64(n)}
	const multiprocessors = 16
	var err error
	if a.count, err = g.Attribute(multiprocessors); err != nil {
		return nil, err
	}
	if a.stream, err = g.Stream(); err != nil {
		return nil, err
	}
	if a.module, err = g.Context.Load(cuda.ProbeModule(g.Device)); err != nil {
		return nil, err
	}
	size := int64(kind.Size())
	blocks := max(int64(n+threads-1)/threads, 1<<16)
	for p, bytes := range map[*driver.DevicePtr]int64{&a.values: int64(n) * size, &a.partial[0]: (blocks + 1) * size,
		&a.partial[1]: (blocks + 1) * size, &a.words: cuda.ExactBytes + 8} {
		if *p, err = g.Alloc(bytes); err != nil {
			return nil, err
		}
	}
	if a.out, err = g.Pinned(cuda.ExactBytes); err != nil {
		return nil, err
	}
	if err := a.stream.Fill(a.words, 0, cuda.ExactBytes+8); err != nil {
		return nil, err
	}
	return a, a.fill(first)
}

// fill fills the array with the values from index first on.
func (a *array) fill(first int) error {
	f, err := a.module.Function("probe_fill" + a.kind.suffix())
	if err != nil {
		return err
	}
	from := uint64(first)
	args, err := f.Args(&a.values, &a.n, &from)
	if err != nil {
		return err
	}
	return f.Launch(a.stream, driver.Dim{X: blocksFor(a.n, threads)}, driver.Dim{X: threads}, 0, args)
}

func blocksFor(n uint64, each int) int { return int((n + uint64(each) - 1) / uint64(each)) }

// launches returns a function that queues the launches of a step of the ladder, which leave the sum in the memory that
// is returned, too.
func (a *array) launches(name string, each int) (queue func() error, sum driver.DevicePtr, err error) {
	f, err := a.module.Function(name + a.kind.suffix())
	if err != nil {
		return nil, 0, err
	}
	full, err := a.blocksAtOnce(f)
	if err != nil {
		return nil, 0, err
	}
	type launch struct {
		blocks int
		args   *driver.Args
	}
	var all []launch
	from, to, n := &a.values, 0, a.n
	for {
		blocks := min(full, blocksFor(n, threads))
		if each > 0 {
			blocks = blocksFor(n, each)
		}
		count := n
		args, err := f.Args(from, &count, &a.partial[to])
		if err != nil {
			return nil, 0, err
		}
		all = append(all, launch{blocks, args})
		from, n = &a.partial[to], uint64(blocks)
		if n == 1 {
			break
		}
		to = 1 - to
	}
	return func() error {
		for _, l := range all {
			if err := f.Launch(a.stream, driver.Dim{X: l.blocks}, driver.Dim{X: threads}, 0, l.args); err != nil {
				return err
			}
		}
		return nil
	}, *from, nil
}

// blocksAtOnce returns how many blocks of a kernel the GPU runs at the same time.
func (a *array) blocksAtOnce(f *driver.Function) (int, error) {
	per, err := f.BlocksPerSM(threads, 0)
	return max(1, per*a.count), err
}

// oneLaunch returns a function that queues the sum of n values at v by one launch. It leaves the sum in a.partial[0].
func (a *array) oneLaunch(v driver.DevicePtr, n uint64) (func() error, error) {
	f, err := a.module.Function(once + a.kind.suffix())
	if err != nil {
		return nil, err
	}
	blocks, err := a.blocksAtOnce(f)
	if err != nil {
		return nil, err
	}
	ended := a.words + cuda.ExactBytes
	args, err := f.Args(&v, &n, &a.partial[0], &ended)
	blocks = max(1, min(blocks, blocksFor(n, threads)))
	return func() error {
		return f.Launch(a.stream, driver.Dim{X: blocks}, driver.Dim{X: threads}, 0, args)
	}, err
}

// exactLaunch returns a function that queues the exact sum, which it leaves in a.words.
func (a *array) exactLaunch() (func() error, error) {
	f, err := a.module.Function(exact + a.kind.suffix())
	if err != nil {
		return nil, err
	}
	blocks, err := a.blocksAtOnce(f)
	if err != nil {
		return nil, err
	}
	bias := cuda.ExactBiases()
	args, err := f.Args(&a.values, &a.n, &bias, &a.words)
	return func() error {
		if err := a.stream.Fill(a.words, 0, cuda.ExactBytes); err != nil {
			return err
		}
		grid := driver.Dim{X: max(1, min(blocks, blocksFor(a.n, threads)))}
		return f.Launch(a.stream, grid, driver.Dim{X: threads}, 0, args)
	}, err
}

// fetch returns n bytes of the GPU's memory once all work is done.
func (a *array) fetch(p driver.DevicePtr, n int) ([]byte, error) {
	if err := a.stream.CopyFromDevice(a.out, 0, p, n); err != nil {
		return nil, err
	}
	if err := a.stream.Synchronize(); err != nil {
		return nil, err
	}
	return a.out.Bytes()[:n], nil
}

// OnGPU measures the steps for n values of a type.
func OnGPU(ctx context.Context, v *driver.Device, kind Type, n int) (steps []Step, err error) {
	g, err := gpu.Open(v)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if steps, err = onGPU(ctx, g, kind, n); err != nil {
		return nil, fmt.Errorf("%v: %w", v, err)
	}
	return steps, nil
}

func onGPU(ctx context.Context, g *gpu.GPU, kind Type, n int) (steps []Step, err error) {
	a, err := load(g, kind, n, 0)
	if err != nil {
		return nil, err
	}
	want, bytes := sumOf(kind, n), n*kind.Size()
	half := bytes / 2 / 16 * 16
	copied, err := g.Fastest(ctx, a.stream, tries, func() error {
		return a.stream.CopyOnDevice(a.values+driver.DevicePtr(half), a.values, half)
	})
	if err != nil {
		return nil, err
	}
	if err := a.fill(0); err != nil {
		return nil, err
	}
	measure := func(name string, queue func() error, check func() (float64, error)) error {
		took, err := g.Fastest(ctx, a.stream, tries, queue)
		if err != nil {
			return err
		}
		off, err := check()
		if err != nil {
			return fmt.Errorf("%s of %d values of %s: %w", name, n, kind, err)
		}
		s := took.Seconds()
		steps = append(steps, Step{Name: name, Type: kind, Values: n, Seconds: s, Rate: float64(bytes) / s,
			OfCopy: float64(bytes) / s / (2 * float64(half) / copied.Seconds()), Error: off})
		return nil
	}
	at := func(p driver.DevicePtr) func() (float64, error) {
		return func() (float64, error) {
			got, err := a.fetch(p, kind.Size())
			if err != nil {
				return 0, err
			}
			return kind.compare(got, want, kind.maxError())
		}
	}
	for _, l := range ladder {
		queue, sum, err := a.launches(l.name, l.values)
		if err != nil {
			return nil, err
		}
		if err := measure(l.name, queue, at(sum)); err != nil {
			return nil, err
		}
	}
	queue, err := a.oneLaunch(a.values, a.n)
	if err == nil {
		err = measure(once, queue, at(a.partial[0]))
	}
	if err == nil && kind.float() {
		if queue, err = a.exactLaunch(); err == nil {
			err = measure(exact, queue, func() (float64, error) { return 0, a.checkExact(want) })
		}
	}
	relate(steps)
	return steps, err
}

// checkExact compares the exact sum with what it must be, bit by bit.
func (a *array) checkExact(want sum) error {
	words, err := a.fetch(a.words, cuda.ExactBytes)
	if err != nil {
		return err
	}
	if got := cuda.ExactSum(words); got != want.exact() {
		return fmt.Errorf("WRONG: the exact sum is %v, not %v", got, want.exact())
	}
	return nil
}
