package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

const (
	valueBytes   = 4
	blockThreads = 256
	checked      = 1000 // values that the CPU computes too, spread over the array
)

// Order is the order in which the work on chunks is given to the GPU. Each chunk has a stream of its own.
type Order string

// The orders.
const (
	DepthFirst   Order = "V1" // for each chunk in turn: copy in, kernel, copy out
	BreadthFirst Order = "V2" // all copies in, then all kernels, then all copies out
)

// chunkBench runs three stages on an array of float32: copy in, kernel, copy out.
type chunkBench struct {
	g       *gpu.GPU
	values  int
	weight  int
	device  driver.DevicePtr
	other   driver.DevicePtr // of the same size
	kernel  *driver.Function
	streams []*driver.Stream // one for each chunk

	pinned, pageable *hostArrays // pinned is nil if it could not be allocated
	notPinned        error       // why
	unchunked        []byte      // the result
	stages           stageTimes
	argValues        driver.DevicePtr
	argCount         uint64
	argWeight        int32
	args             *driver.Args
}

// hostArrays are an input and an output.
type hostArrays struct{ in, out *driver.HostMemory }

// stageTimes are the times of the stages alone.
type stageTimes struct {
	in, kernel, out time.Duration
	copies          time.Duration // both copies at once, of different memory
}

// chunkOf returns the values [lo, hi) of a chunk. Chunks have the same size, rounded up, but for the last one, which
// has what is left. Where there are more chunks than values, some are empty.
func chunkOf(values, chunks, i int) (lo, hi int) {
	each := (values + chunks - 1) / chunks
	return min(values, i*each), min(values, (i+1)*each)
}

// openChunks allocates arrays of values and fills the input.
func openChunks(g *gpu.GPU, values int) (b *chunkBench, err error) {
	b = &chunkBench{g: g, values: values}
	if b.device, err = g.Alloc(int64(values) * valueBytes); err != nil {
		return nil, err
	}
	if b.other, err = g.Alloc(int64(values) * valueBytes); err != nil {
		return nil, err
	}
	module, err := g.Context.Load(cuda.ProbeModule(g.Device))
	if err != nil {
		return nil, err
	}
	if b.kernel, err = module.Function("probe_chunk"); err != nil {
		return nil, err
	}
	if b.args, err = b.kernel.Args(&b.argValues, &b.argCount, &b.argWeight); err != nil {
		return nil, err
	}
	for range mostChunks {
		s, err := g.Stream()
		if err != nil {
			return nil, err
		}
		b.streams = append(b.streams, s)
	}
	if b.pinned, b.notPinned = b.arrays(g.Pinned); b.notPinned != nil {
		b.pinned = nil
	}
	return b, nil
}

// arrays allocates host arrays and fills the input.
func (b *chunkBench) arrays(alloc func(int) (*driver.HostMemory, error)) (a *hostArrays, err error) {
	a = &hostArrays{}
	for _, h := range []**driver.HostMemory{&a.in, &a.out} {
		if *h, err = alloc(b.values * valueBytes); err != nil {
			return nil, err
		}
	}
	for i := range b.values {
		binary.LittleEndian.PutUint32(a.in.Bytes()[valueBytes*i:], math.Float32bits(input(i)))
	}
	clear(a.out.Bytes()) // the system provides the pages now
	return a, nil
}

// input returns value i of the input, between 0 and 1.
func input(i int) float32 { return (float32(i%9973) + 0.5) / 9973 }

// plain computes value i on the CPU. Each operation rounds on its own, as on the GPU.
func plain(i, weight int) float32 {
	v := input(i)
	for range weight {
		a, b := float32(3.75*v), float32(1-v)
		v = float32(a * b)
	}
	return v
}

// The stages of chunk i of chunks, queued on the chunk's stream.

func (b *chunkBench) copyIn(a *hostArrays, chunks, i int) error {
	lo, hi := chunkOf(b.values, chunks, i)
	at := valueBytes * lo
	return b.streams[i].CopyToDevice(b.device+driver.DevicePtr(at), a.in, at, valueBytes*(hi-lo))
}

func (b *chunkBench) compute(chunks, i int) error {
	lo, hi := chunkOf(b.values, chunks, i)
	if lo == hi {
		return nil
	}
	b.argValues, b.argCount, b.argWeight = b.device+driver.DevicePtr(valueBytes*lo), uint64(hi-lo), int32(b.weight)
	blocks := (hi - lo + blockThreads - 1) / blockThreads
	return b.kernel.Launch(b.streams[i], driver.Dim{X: blocks}, driver.Dim{X: blockThreads}, 0, b.args)
}

func (b *chunkBench) copyOut(a *hostArrays, chunks, i int) error {
	lo, hi := chunkOf(b.values, chunks, i)
	at := valueBytes * lo
	return b.streams[i].CopyFromDevice(a.out, at, b.device+driver.DevicePtr(at), valueBytes*(hi-lo))
}

// run does all stages and returns the time from the first call until the GPU is done.
func (b *chunkBench) run(a *hostArrays, chunks int, order Order) (time.Duration, error) {
	stages := []func(i int) error{
		func(i int) error { return b.copyIn(a, chunks, i) },
		func(i int) error { return b.compute(chunks, i) },
		func(i int) error { return b.copyOut(a, chunks, i) },
	}
	start := time.Now()
	if order == DepthFirst {
		for i := range chunks {
			for _, stage := range stages {
				if err := stage(i); err != nil {
					return 0, err
				}
			}
		}
	} else {
		for _, stage := range stages {
			for i := range chunks {
				if err := stage(i); err != nil {
					return 0, err
				}
			}
		}
	}
	err := b.g.Context.Synchronize()
	return time.Since(start), err
}

// alone measures the stages alone, and chooses the weight of the kernel so that it takes as long as the copy in, unless
// weight is positive.
func (b *chunkBench) alone(ctx context.Context, a *hostArrays, weight int) (err error) {
	const trial = 64
	b.weight = trial
	time := func(stage func() error) (t time.Duration) {
		if err == nil {
			t, err = b.g.Fastest(ctx, b.streams[0], overlapTries, stage)
		}
		return t
	}
	b.stages.in = time(func() error { return b.copyIn(a, 1, 0) })
	b.stages.out = time(func() error { return b.copyOut(a, 1, 0) })
	b.stages.kernel = time(func() error { return b.compute(1, 0) })
	if err != nil {
		return err
	}
	if b.weight = weight; weight == 0 {
		ratio := b.stages.in.Seconds() / max(b.stages.kernel.Seconds(), 1e-9)
		b.weight = min(mostWeight, max(1, int(trial*ratio)))
	}
	b.stages.kernel = time(func() error { return b.compute(1, 0) })
	if err != nil {
		return err
	}
	b.stages.copies, err = b.copyBothWays(a)
	return err
}

// copyBothWays returns the shortest time of a copy in and a copy out at the same time. The two stages share the links
// and the host's memory, so that no overlap is faster.
func (b *chunkBench) copyBothWays(a *hostArrays) (best time.Duration, err error) {
	best = -1
	n := b.values * valueBytes
	for range overlapTries + 1 {
		start := time.Now()
		if err := errors.Join(b.streams[0].CopyToDevice(b.device, a.in, 0, n),
			b.streams[1].CopyFromDevice(a.out, 0, b.other, n), b.g.Context.Synchronize()); err != nil {
			return 0, err
		}
		if took := time.Since(start); best < 0 || took < best {
			best = took
		}
	}
	return best, nil
}

// measure returns the shortest of several runs, whose result it checks.
func (b *chunkBench) measure(ctx context.Context, a *hostArrays, chunks int, order Order) (time.Duration, error) {
	best := time.Duration(-1)
	for range overlapTries {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		took, err := b.run(a, chunks, order)
		if err != nil {
			return 0, err
		}
		if best < 0 || took < best {
			best = took
		}
	}
	clear(a.out.Bytes())
	if _, err := b.run(a, chunks, order); err != nil {
		return 0, err
	}
	return best, b.check(a, chunks, order)
}

// errWrong reports values that differ from those that the CPU, or a run without chunks, computes.
var errWrong = errors.New("the result is wrong")

// check compares the output with that of the run without chunks, and that one with values of the CPU.
func (b *chunkBench) check(a *hostArrays, chunks int, order Order) error {
	out := a.out.Bytes()
	if b.unchunked == nil {
		for k := range min(checked, b.values) {
			i := int(int64(k) * int64(b.values-1) / int64(max(1, min(checked, b.values)-1)))
			got, want := binary.LittleEndian.Uint32(out[valueBytes*i:]), math.Float32bits(plain(i, b.weight))
			if got != want {
				return fmt.Errorf("%w: value %d of %d is %g, the CPU computes %g", errWrong, i, b.values,
					math.Float32frombits(got), math.Float32frombits(want))
			}
		}
		b.unchunked = bytes.Clone(out)
		return nil
	}
	if !bytes.Equal(out, b.unchunked) {
		return fmt.Errorf("%w: %d chunks in order %s differ from one", errWrong, chunks, order)
	}
	return nil
}
