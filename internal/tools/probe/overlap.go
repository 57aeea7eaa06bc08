package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

const (
	// overlapValues is the length of the array: 128 MiB of float32. No number of chunks but 1 divides it.
	overlapValues = 32<<20 - 5
	valueBytes    = 4
	checked       = 1000 // values that the CPU computes too, spread over the array
	overlapTries  = 3
	mostChunks    = 64
	// overlapFair is the least efficiency without a finding. Two H200s reached 0.79 with short kernels, 0.89 with
	// kernels almost as long as a copy.
	overlapFair = 0.7
)

// order is the order in which the work on chunks is given to the GPU. Each chunk has a stream of its own.
type order string

const (
	depthFirst   order = "V1" // for each chunk in turn: copy in, kernel, copy out
	breadthFirst order = "V2" // all copies in, then all kernels, then all copies out
)

var orders = []order{depthFirst, breadthFirst}

// chunkRun is a way to do all three stages on the array in chunks.
type chunkRun struct {
	chunks int
	order  order
	pinned bool
}

// overlapTimes has the times of one GPU, in seconds.
type overlapTimes struct {
	gpu, values, weight int // values of 4 bytes each; weight of the kernel
	in, kernel, out     float64
	copies              float64 // a copy in and a copy out at once
	runs                map[chunkRun]float64
	best                chunkRun // the fastest; without chunks before there is one
	together            float64  // the best run while the other GPUs do the same
}

// longest returns the time of the longest stage alone: no overlap is faster.
func (o overlapTimes) longest() float64 { return max(o.in, o.kernel, o.out) }

// bound returns the least time that a perfect overlap takes: the copies of both directions share a link.
func (o overlapTimes) bound() float64 { return max(o.copies, o.kernel) }

// overlap measures how far copies and kernels overlap.
func overlap(ctx context.Context, m *Machine) (r Result, err error) {
	if m.NoGPU != nil {
		r.skip("%v", m.NoGPU)
		return r, nil
	}
	var all []overlapTimes
	for i := range m.GPUs {
		o := overlapTimes{gpu: m.GPUs[i].Index, runs: map[chunkRun]float64{}}
		err := gpu.With(&m.GPUs[i], func(g *gpu.GPU) error {
			defer m.near(i)()
			return o.measure(ctx, g, m.Weight, i == 0, &r)
		})
		switch {
		case ctx.Err() != nil:
			return r, context.Cause(ctx)
		case errors.Is(err, errWrong):
			return r, err
		case err != nil:
			r.skip("%v", err)
		}
		all = append(all, o)
	}
	if len(m.GPUs) > 1 && !slices.ContainsFunc(all, func(o overlapTimes) bool { return o.best.chunks == 0 }) {
		if err := overlapTogether(ctx, m, all); err != nil {
			r.skip("all GPUs at once: %v", err)
		}
	}
	r.judgeOverlap(all)
	return r, nil
}

// measure measures a GPU with 1, 2, 4... chunks in both orders: from pinned memory, and from pageable memory if that is
// asked for or there is no other.
func (o *overlapTimes) measure(ctx context.Context, g *gpu.GPU, weight int, pageable bool, r *Result) error {
	room, err := g.Room(shareOfGPU)
	if err != nil {
		return err
	}
	o.values = overlapValues
	if most := room / valueBytes; most < overlapValues {
		o.values = int(most) - 5
	}
	if o.values < mostChunks {
		return errors.New("no memory is left on the GPU for an array")
	}
	b, err := newChunkBench(g, o.values, pageable)
	if err != nil {
		return err
	}
	if b.unpinned != nil {
		r.skip("GPU %d: pinned memory, so copies are from pageable memory: %v", o.gpu, b.unpinned)
	}
	var best chunkRun
	for _, pinned := range []bool{true, false} {
		if b.hosts[pinned] == nil {
			continue
		}
		if len(o.runs) == 0 {
			if err := b.alone(ctx, b.hosts[pinned], weight, o); err != nil {
				return err
			}
		}
		for chunks := 1; chunks <= mostChunks; chunks *= 2 {
			for _, order := range orders {
				run := chunkRun{chunks, order, pinned}
				if chunks == 1 && order == breadthFirst { // the same
					o.runs[run] = o.runs[chunkRun{1, depthFirst, pinned}]
					continue
				}
				took, err := b.measure(ctx, run)
				if err != nil {
					return err
				}
				if o.runs[run] = took.Seconds(); best.chunks == 0 || o.runs[run] < o.runs[best] {
					best = run
				}
			}
		}
	}
	o.best = best
	return nil
}

// overlapTogether repeats the best run of each GPU on all GPUs at once.
func overlapTogether(ctx context.Context, m *Machine, all []overlapTimes) error {
	return gpu.WithCrew(m.GPUs, func(c *gpu.Crew) error {
		benches := make([]*chunkBench, len(all))
		err := c.Each(func(i int) (err error) {
			defer m.near(i)()
			best := all[i].best
			if benches[i], err = newChunkBench(c.GPUs[i], all[i].values, !best.pinned); err != nil {
				return err
			}
			if benches[i].hosts[best.pinned] == nil {
				return benches[i].unpinned
			}
			benches[i].weight = int32(all[i].weight)
			return benches[i].run(best) // warm up
		})
		if err != nil {
			return err
		}
		return c.Each(func(i int) error {
			defer m.near(i)()
			const runs = 8 // without a pause, so that the GPUs stay together
			start := time.Now()
			err := gpu.Times(runs, func() error {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return benches[i].run(all[i].best)
			})()
			if err != nil {
				return err
			}
			all[i].together = time.Since(start).Seconds() / runs
			return benches[i].check(all[i].best)
		})
	})
}

// judgeOverlap adds figures, findings and tables: all GPUs, and all runs of the first one.
func (r *Result) judgeOverlap(all []overlapTimes) {
	t := newTable("of each GPU",
		"GPU|array:B|weight|copy in:s|kernel:s|copy out:s|both copies:s|in turn:s|best:s|chunks|all GPUs:s")
	speeds := map[int]float64{}
	for _, o := range all {
		if o.best.chunks == 0 {
			continue
		}
		took := o.runs[o.best]
		inTurn := cmp.Or(o.runs[chunkRun{1, depthFirst, true}], o.runs[chunkRun{1, depthFirst, false}])
		r.add(o.bound()/took, "", "overlap.gpu%d.efficiency", o.gpu)
		r.add(o.longest()/took, "", "overlap.gpu%d.of_longest_stage", o.gpu)
		speeds[o.gpu] = float64(valueBytes*o.values) / took
		if o.bound()/took < overlapFair {
			r.find("GPU %d: in chunks, copies and kernel take %s; a perfect overlap would take %s.", o.gpu,
				seconds(took), seconds(o.bound()))
		}
		if o.together > 0 {
			r.add(took/o.together, "", "overlap.gpu%d.together", o.gpu)
		}
		if took < 0.8*o.together {
			r.find("GPU %d: with copies of all GPUs at once a run takes %s, alone %s.", o.gpu, seconds(o.together),
				seconds(took))
		}
		t.row(o.gpu, float64(valueBytes*o.values), o.weight, o.in, o.kernel, o.out, o.copies, inTurn, took,
			fmt.Sprintf("%d, %s", o.best.chunks, o.best.order), o.together)
	}
	r.compare("overlapped copies and kernels", "B/s", speeds)
	r.show(t)
	if len(all) == 0 || all[0].best.chunks == 0 {
		return
	}
	o := all[0]
	runs := newTable(fmt.Sprintf("GPU %d: copy in, kernel, copy out of %s", o.gpu, size(int64(valueBytes*o.values))),
		"chunks|pinned, V1:s|pinned, V2:s|pageable, V1:s|pageable, V2:s|longest stage:s|both copies:s")
	for chunks := 1; chunks <= mostChunks; chunks *= 2 {
		cells := []any{float64(chunks)}
		for _, pinned := range []bool{true, false} {
			for _, order := range orders {
				cells = append(cells, o.runs[chunkRun{chunks, order, pinned}])
			}
		}
		runs.row(append(cells, o.longest(), o.bound())...)
	}
	r.show(runs)
	r.say("V1: copy in, kernel, copy out for each chunk in turn. V2: one stage for all chunks, then the next.")
}

// drawOverlap draws the runs of the first GPU.
func drawOverlap(tables []Table) ([]byte, error) {
	if len(tables) < 2 {
		return nil, nil
	}
	return tables[1].chart("chunks, each on a stream of its own", "milliseconds", 1e3)
}

// chunkBench runs three stages on an array of float32: copy in, kernel, copy out.
type chunkBench struct {
	*gpu.GPU
	values        int
	weight        int32
	device, other driver.DevicePtr // of the same size
	streams       []*driver.Stream // one for each chunk

	kernel gpu.Kernel
	at     driver.DevicePtr // arguments of the kernel, besides the weight
	count  uint64

	hosts     map[bool]*hostArrays // of pinned and of pageable memory, where there is some
	unpinned  error                // why there is no pinned memory
	unchunked []byte               // the result
}

// hostArrays are an input and an output.
type hostArrays struct{ in, out *driver.HostMemory }

// chunkOf returns the values [lo, hi) of a chunk. Chunks have the same size, rounded up, but for the last one, which
// has what is left. Where there are more chunks than values, some are empty.
func chunkOf(values, chunks, i int) (lo, hi int) {
	each := (values + chunks - 1) / chunks
	return min(values, i*each), min(values, (i+1)*each)
}

// newChunkBench allocates arrays of values. Pageable ones are allocated if that is asked for or there are no others.
func newChunkBench(g *gpu.GPU, values int, pageable bool) (b *chunkBench, err error) {
	b = &chunkBench{GPU: g, values: values, device: g.Alloc(int64(values) * valueBytes),
		other: g.Alloc(int64(values) * valueBytes), hosts: map[bool]*hostArrays{}}
	b.kernel = g.Kernel("probe_chunk", &b.at, &b.count, &b.weight)
	for range mostChunks {
		b.streams = append(b.streams, g.NewStream())
	}
	if g.Err() != nil {
		return nil, g.Err()
	}
	if b.hosts[true], b.unpinned = b.arrays(g.Pinned); pageable || b.unpinned != nil {
		b.hosts[false], err = b.arrays(g.Pageable)
	}
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
	part := func(i int) (s *driver.Stream, p driver.DevicePtr, at, n int) {
		lo, hi := chunkOf(b.values, chunks, i)
		return b.streams[i], b.device + driver.DevicePtr(valueBytes*lo), valueBytes * lo, valueBytes * (hi - lo)
	}
	return []func(i int) error{
		func(i int) error {
			s, p, at, n := part(i)
			return s.CopyToDevice(p, a.in, at, n)
		},
		func(i int) error {
			s, p, _, n := part(i)
			if n == 0 {
				return nil
			}
			b.at, b.count = p, uint64(n/valueBytes)
			return b.kernel.Queue(s, blocksOf(b.count, gpu.Threads), 1)
		},
		func(i int) error {
			s, p, at, n := part(i)
			return s.CopyFromDevice(a.out, at, p, n)
		},
	}
}

// run does all stages, and waits until the GPU is done.
func (b *chunkBench) run(run chunkRun) error {
	stages := b.stages(b.hosts[run.pinned], run.chunks)
	for k := range run.chunks * len(stages) {
		i, stage := k/len(stages), k%len(stages)
		if run.order == breadthFirst {
			i, stage = k%run.chunks, k/run.chunks
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
	fastest := func(once func() (time.Duration, error)) float64 {
		took, failed := gpu.Fastest(ctx, overlapTries, once)
		err = errors.Join(err, failed)
		return took.Seconds()
	}
	stage := func(k int) float64 {
		return fastest(b.Timed(b.streams[0], func() error { return stages[k](0) }))
	}
	o.in, o.out = stage(0), stage(2)
	if b.weight = int32(weight); weight == 0 {
		b.weight = trial
		b.weight = int32(min(mostWeight, max(1, int(trial*o.in/max(stage(1), 1e-9)))))
	}
	o.weight, o.kernel = int(b.weight), stage(1)
	o.copies = fastest(gpu.Wall(func() error {
		return errors.Join(b.streams[0].CopyToDevice(b.device, a.in, 0, n),
			b.streams[1].CopyFromDevice(a.out, 0, b.other, n), b.Context.Synchronize())
	}))
	return err
}

// measure returns the shortest of several runs, whose result it checks.
func (b *chunkBench) measure(ctx context.Context, run chunkRun) (time.Duration, error) {
	took, err := gpu.Fastest(ctx, overlapTries, gpu.Wall(func() error { return b.run(run) }))
	if err != nil {
		return 0, err
	}
	clear(b.hosts[run.pinned].out.Bytes())
	return took, errors.Join(b.run(run), b.check(run))
}

// errWrong reports values that differ from those that the CPU, or a run without chunks, computes.
var errWrong = errors.New("the result is wrong")

// check compares the output with that of the run without chunks, and that one with values of the CPU.
func (b *chunkBench) check(run chunkRun) error {
	out := b.hosts[run.pinned].out.Bytes()
	if b.unchunked != nil {
		if !bytes.Equal(out, b.unchunked) {
			return fmt.Errorf("%w: %d chunks in order %s differ from one", errWrong, run.chunks, run.order)
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
