package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jacobi/internal/tools/probe/gpu"
)

const (
	// overlapValues is the length of the array: 128 MiB of float32. No number of chunks but 1 divides it.
	overlapValues = 32<<20 - 5
	// overlapFair is the least efficiency without a finding. Two H200s reached 0.79 with short kernels, 0.89 with
	// kernels almost as long as a copy.
	overlapFair = 0.7
)

// overlapTimes has the times of one GPU, in seconds.
type overlapTimes struct {
	gpu, values, weight int // values of 4 bytes each; weight of the kernel
	in, kernel, out     float64
	copies              float64 // a copy in and a copy out at once
	runs                []chunkRun
	best                *chunkRun
	together            float64 // the best run while the other GPUs do the same
}

// chunkRun is the time of all three stages on the array in chunks.
type chunkRun struct {
	chunks  int
	order   Order
	pinned  bool
	seconds float64
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
	all := []overlapTimes{}
	for i := range m.GPUs {
		o := overlapTimes{gpu: m.GPUs[i].Index}
		err := gpu.With(&m.GPUs[i], func(g *gpu.GPU) error {
			defer m.near(i)()
			return o.measure(ctx, g, m.Weight, i == 0, &r)
		})
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if errors.Is(err, errWrong) {
			return r, err
		}
		if err != nil {
			r.skip("%v", err)
		}
		all = append(all, o)
	}
	if len(m.GPUs) > 1 && !slices.ContainsFunc(all, func(o overlapTimes) bool { return o.best == nil }) {
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
	for _, a := range []*hostArrays{b.pinned, b.pageable} {
		if a == nil {
			continue
		}
		if len(o.runs) == 0 {
			if err := b.alone(ctx, a, weight, o); err != nil {
				return err
			}
		}
		for chunks := 1; chunks <= mostChunks; chunks *= 2 {
			for _, order := range []Order{DepthFirst, BreadthFirst} {
				if chunks == 1 && order == BreadthFirst { // the same
					continue
				}
				took, err := b.measure(ctx, a, chunks, order)
				if err != nil {
					return err
				}
				o.runs = append(o.runs, chunkRun{chunks, order, a == b.pinned, took.Seconds()})
			}
		}
	}
	o.best = new(slices.MinFunc(o.runs, func(x, y chunkRun) int { return cmp.Compare(x.seconds, y.seconds) }))
	return nil
}

// overlapTogether repeats the best run of each GPU on all GPUs at once.
func overlapTogether(ctx context.Context, m *Machine, all []overlapTimes) error {
	return gpu.WithCrew(m.GPUs, func(c *gpu.Crew) error {
		benches := make([]*chunkBench, len(all))
		best := func(i int, do func(b *chunkBench, a *hostArrays, chunks int, order Order) error) error {
			b, run := benches[i], all[i].best
			return do(b, b.of(run.pinned), run.chunks, run.order)
		}
		err := c.Each(func(i int) (err error) {
			defer m.near(i)()
			if benches[i], err = newChunkBench(c.GPUs[i], all[i].values, !all[i].best.pinned); err != nil {
				return err
			}
			if benches[i].of(all[i].best.pinned) == nil {
				return benches[i].unpinned
			}
			benches[i].weight = int32(all[i].weight)
			return best(i, (*chunkBench).run) // warm up
		})
		if err != nil {
			return err
		}
		return c.Each(func(i int) error {
			defer m.near(i)()
			const runs = 8 // without a pause, so that the GPUs stay together
			start := time.Now()
			for range runs {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := best(i, (*chunkBench).run); err != nil {
					return err
				}
			}
			all[i].together = time.Since(start).Seconds() / runs
			return best(i, (*chunkBench).check)
		})
	})
}

// judgeOverlap adds figures, findings and tables: all GPUs, and all runs of the first one.
func (r *Result) judgeOverlap(all []overlapTimes) {
	t := Table{Title: "of each GPU", Columns: []Column{{"GPU", ""}, {"array", "B"}, {"weight", ""}, {"copy in", "s"},
		{"kernel", "s"}, {"copy out", "s"}, {"both copies", "s"}, {"in turn", "s"}, {"best", "s"}, {"chunks", ""},
		{"all GPUs", "s"}}}
	speeds := map[int]float64{}
	for _, o := range all {
		if o.best == nil {
			continue
		}
		efficiency, took := o.bound()/o.best.seconds, o.best.seconds
		r.add(efficiency, "", "overlap.gpu%d.efficiency", o.gpu)
		r.add(o.longest()/took, "", "overlap.gpu%d.of_longest_stage", o.gpu)
		speeds[o.gpu] = float64(valueBytes*o.values) / took
		if efficiency < overlapFair {
			r.find("GPU %d: in chunks, copies and kernel take %s; a perfect overlap would take %s.", o.gpu,
				seconds(took), seconds(o.bound()))
		}
		if o.together > 0 {
			r.add(took/o.together, "", "overlap.gpu%d.together", o.gpu)
			if took < 0.8*o.together {
				r.find("GPU %d: with copies of all GPUs at once a run takes %s, alone %s.", o.gpu, seconds(o.together),
					seconds(took))
			}
		}
		t.row(o.gpu, float64(valueBytes*o.values), o.weight, o.in, o.kernel, o.out, o.copies, o.runs[0].seconds, took,
			fmt.Sprintf("%d, %s", o.best.chunks, o.best.order), o.together)
	}
	r.compare("overlapped copies and kernels", "B/s", speeds)
	r.show(t)
	if len(all) == 0 || all[0].best == nil {
		return
	}
	o := all[0]
	array := size(int64(valueBytes * o.values))
	runs := Table{Title: fmt.Sprintf("GPU %d: copy in, kernel, copy out of %s", o.gpu, array),
		Columns: []Column{{"chunks", ""}}}
	for _, pinned := range []string{"pinned", "pageable"} {
		for _, order := range []Order{DepthFirst, BreadthFirst} {
			runs.Columns = append(runs.Columns, Column{pinned + ", " + string(order), "s"})
		}
	}
	runs.Columns = append(runs.Columns, Column{"longest stage", "s"}, Column{"both copies", "s"})
	for chunks := 1; chunks <= mostChunks; chunks *= 2 {
		cells := []any{float64(chunks), 0.0, 0.0, 0.0, 0.0, o.longest(), o.bound()}
		for _, run := range o.runs {
			i := 1
			if !run.pinned {
				i += 2
			}
			switch {
			case run.chunks == 1 && chunks == 1: // both orders are the same
				cells[i], cells[i+1] = run.seconds, run.seconds
			case run.chunks == chunks && run.order == DepthFirst:
				cells[i] = run.seconds
			case run.chunks == chunks:
				cells[i+1] = run.seconds
			}
		}
		runs.row(cells...)
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
