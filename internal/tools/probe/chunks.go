package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

const (
	valueBytes   = 4
	checked      = 1000 // values that the CPU computes too, spread over the array
	overlapTries = 3
	mostChunks   = 64
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
	*gpu.GPU
	values  int
	weight  int32
	device  driver.DevicePtr
	other   driver.DevicePtr // of the same size
	streams []*driver.Stream // one for each chunk

	kernel gpu.Kernel
	at     driver.DevicePtr // arguments of the kernel, besides the weight
	count  uint64

	pinned, pageable *hostArrays // nil without
	unpinned         error       // why there is no pinned memory
	unchunked        []byte      // the result
}

// hostArrays are an input and an output.
type hostArrays struct{ in, out *driver.HostMemory }

// of returns the arrays of pinned or of pageable memory.
func (b *chunkBench) of(pinned bool) *hostArrays {
	if pinned {
		return b.pinned
	}
	return b.pageable
}

// chunkOf returns the values [lo, hi) of a chunk. Chunks have the same size, rounded up, but for the last one, which
// has what is left. Where there are more chunks than values, some are empty.
func chunkOf(values, chunks, i int) (lo, hi int) {
	each := (values + chunks - 1) / chunks
	return min(values, i*each), min(values, (i+1)*each)
}

// newChunkBench allocates arrays of values. Pageable ones are allocated if that is asked for or there are no others.
func newChunkBench(g *gpu.GPU, values int, pageable bool) (*chunkBench, error) {
	b := &chunkBench{GPU: g, values: values, device: g.Alloc(int64(values) * valueBytes),
		other: g.Alloc(int64(values) * valueBytes)}
	b.kernel = g.Kernel("probe_chunk", &b.at, &b.count, &b.weight)
	for range mostChunks {
		b.streams = append(b.streams, g.NewStream())
	}
	if g.Err() != nil {
		return nil, g.Err()
	}
	b.pinned, b.unpinned = b.arrays(g.Pinned)
	if !pageable && b.pinned != nil {
		return b, nil
	}
	var err error
	b.pageable, err = b.arrays(g.Pageable)
	return b, err
}

// arrays allocates host arrays and fills the input.
func (b *chunkBench) arrays(alloc func(int) (*driver.HostMemory, error)) (*hostArrays, error) {
	in, err := alloc(b.values * valueBytes)
	if err != nil {
		return nil, err
	}
	out, err := alloc(b.values * valueBytes)
	if err != nil {
		return nil, err
	}
	for i := range b.values {
		binary.LittleEndian.PutUint32(in.Bytes()[valueBytes*i:], math.Float32bits(input(i)))
	}
	clear(out.Bytes()) // the system provides the pages now
	return &hostArrays{in, out}, nil
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

// stages returns functions that queue the stages of chunk i of chunks on the chunk's stream.
func (b *chunkBench) stages(a *hostArrays, chunks int) []func(i int) error {
	part := func(i int) (s *driver.Stream, at, n int) {
		lo, hi := chunkOf(b.values, chunks, i)
		return b.streams[i], valueBytes * lo, valueBytes * (hi - lo)
	}
	return []func(i int) error{
		func(i int) error {
			s, at, n := part(i)
			return s.CopyToDevice(b.device+driver.DevicePtr(at), a.in, at, n)
		},
		func(i int) error {
			s, at, n := part(i)
			if n == 0 {
				return nil
			}
			b.at, b.count = b.device+driver.DevicePtr(at), uint64(n/valueBytes)
			return b.kernel.Queue(s, blocksOf(b.count, gpu.Threads), 1)
		},
		func(i int) error {
			s, at, n := part(i)
			return s.CopyFromDevice(a.out, at, b.device+driver.DevicePtr(at), n)
		},
	}
}

// run does all stages, and waits until the GPU is done.
func (b *chunkBench) run(a *hostArrays, chunks int, order Order) error {
	stages := b.stages(a, chunks)
	for k := range chunks * len(stages) {
		i, stage := k/len(stages), k%len(stages)
		if order == BreadthFirst {
			i, stage = k%chunks, k/chunks
		}
		if err := stages[stage](i); err != nil {
			return err
		}
	}
	return b.Context.Synchronize()
}

// alone measures the stages alone, and both copies at once, of different memory: they share the links and the host's
// memory, so that no overlap is faster. It chooses the weight of the kernel so that it takes as long as the copy in,
// unless weight is positive.
func (b *chunkBench) alone(ctx context.Context, a *hostArrays, weight int, o *overlapTimes) (err error) {
	const trial = 64
	b.weight = trial
	stages, n := b.stages(a, 1), b.values*valueBytes
	seconds := func(stage int) float64 {
		once := b.Timed(b.streams[0], func() error { return stages[stage](0) })
		took, failed := gpu.Fastest(ctx, overlapTries, once)
		err = errors.Join(err, failed)
		return took.Seconds()
	}
	o.in, o.out = seconds(0), seconds(2)
	if b.weight = int32(weight); weight == 0 {
		b.weight = trial
		b.weight = int32(min(mostWeight, max(1, int(trial*o.in/max(seconds(1), 1e-9)))))
	}
	o.weight, o.kernel = int(b.weight), seconds(1)
	both, failed := gpu.Fastest(ctx, overlapTries, gpu.Wall(func() error {
		return errors.Join(b.streams[0].CopyToDevice(b.device, a.in, 0, n),
			b.streams[1].CopyFromDevice(a.out, 0, b.other, n), b.Context.Synchronize())
	}))
	o.copies = both.Seconds()
	return errors.Join(err, failed)
}

// measure returns the shortest of several runs, whose result it checks.
func (b *chunkBench) measure(ctx context.Context, a *hostArrays, chunks int, order Order) (time.Duration, error) {
	run := func() error { return b.run(a, chunks, order) }
	took, err := gpu.Fastest(ctx, overlapTries, gpu.Wall(run))
	if err != nil {
		return 0, err
	}
	clear(a.out.Bytes())
	return took, errors.Join(run(), b.check(a, chunks, order))
}

// errWrong reports values that differ from those that the CPU, or a run without chunks, computes.
var errWrong = errors.New("the result is wrong")

// check compares the output with that of the run without chunks, and that one with values of the CPU.
func (b *chunkBench) check(a *hostArrays, chunks int, order Order) error {
	out := a.out.Bytes()
	if b.unchunked != nil {
		if !bytes.Equal(out, b.unchunked) {
			return fmt.Errorf("%w: %d chunks in order %s differ from one", errWrong, chunks, order)
		}
		return nil
	}
	for k := range min(checked, b.values) {
		i := int(int64(k) * int64(b.values-1) / int64(max(1, min(checked, b.values)-1)))
		got, want := math.Float32frombits(binary.LittleEndian.Uint32(out[valueBytes*i:])), plain(i, int(b.weight))
		if math.Float32bits(got) != math.Float32bits(want) {
			return fmt.Errorf("%w: value %d of %d is %g, the CPU computes %g", errWrong, i, b.values, got, want)
		}
	}
	b.unchunked = bytes.Clone(out)
	return nil
}
