package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"jacobi/internal/tools/probe/gpu"
)

const (
	// overlapValues is the length of the array: 128 MiB of float32. No number of chunks but 1 divides it.
	overlapValues = 32<<20 - 5
	overlapTries  = 3
	mostChunks    = 64
	// overlapFair is the least efficiency without a finding. Two H200s reached 0.79 with short kernels, 0.89 with
	// kernels almost as long as a copy.
	overlapFair = 0.7
)

// OverlapReport has the times of one GPU, in seconds.
type OverlapReport struct {
	GPU    int     `json:"gpu"`
	Values int     `json:"values"` // of 4 bytes each
	Weight int     `json:"weight"` // of the kernel
	In     float64 `json:"copy_in_seconds"`
	Kernel float64 `json:"kernel_seconds"`
	Out    float64 `json:"copy_out_seconds"`
	Copies float64 `json:"copies_both_ways_seconds"` // a copy in and a copy out at once

	Runs     []ChunkRun `json:"runs"`
	Best     *ChunkRun  `json:"best"`
	Together float64    `json:"best_with_all_gpus_seconds,omitempty"` // while the other GPUs do the same
	NotRun   string     `json:"not_run,omitempty"`
}

// ChunkRun is the time of all three stages on the array in chunks.
type ChunkRun struct {
	Chunks  int     `json:"chunks"`
	Order   Order   `json:"order"`
	Pinned  bool    `json:"pinned"`
	Seconds float64 `json:"seconds"`
}

// longest returns the time of the longest stage alone: no overlap is faster.
func (o OverlapReport) longest() float64 { return max(o.In, o.Kernel, o.Out) }

// bound returns the least time that a perfect overlap takes: the copies of both directions share a link.
func (o OverlapReport) bound() float64 { return max(o.Copies, o.Kernel) }

// overlap measures how far copies and kernels overlap.
func overlap(ctx context.Context, m *Machine) (r Result, err error) {
	if m.NoGPU != nil {
		r.skip("%v", m.NoGPU)
		return r, nil
	}
	all := []OverlapReport{}
	for i := range m.GPUs {
		o, err := overlapOf(ctx, m, i, i == 0)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if errors.Is(err, errWrong) {
			return r, err
		}
		if err != nil {
			o.NotRun = err.Error()
		}
		if o.NotRun != "" {
			r.skip("%s", o.NotRun)
		}
		all = append(all, o)
	}
	if len(m.GPUs) > 1 {
		if err := overlapTogether(ctx, m, all); err != nil {
			r.skip("all GPUs at once: %v", err)
		}
	}
	judgeOverlap(all, &r)
	r.Data, r.Text = all, overlapText(all)
	return r, nil
}

// overlapOf measures GPU i with all numbers of chunks in both orders: from pinned memory, and from pageable memory if
// that is asked for or there is no other.
func overlapOf(ctx context.Context, m *Machine, i int, pageable bool) (o OverlapReport, err error) {
	o = OverlapReport{GPU: m.GPUs[i].Index, Runs: []ChunkRun{}}
	g, err := gpu.Open(&m.GPUs[i])
	if err != nil {
		return o, err
	}
	defer func() { err = g.Closed(err) }()
	defer m.near(i)()
	if o.Values, err = overlapRoom(g); err != nil {
		return o, err
	}
	b, err := openChunks(g, o.Values)
	if err != nil {
		return o, err
	}
	if b.notPinned != nil {
		o.NotRun = fmt.Sprintf("GPU %d: pinned memory, so copies are from pageable memory: %v", o.GPU, b.notPinned)
	}
	kinds := []*hostArrays{}
	if b.pinned != nil {
		kinds = append(kinds, b.pinned)
	}
	if pageable || b.pinned == nil {
		if b.pageable, err = b.arrays(g.Pageable); err != nil {
			return o, err
		}
		kinds = append(kinds, b.pageable)
	}
	if err := b.alone(ctx, kinds[0], m.Weight); err != nil {
		return o, err
	}
	o.Weight, o.In, o.Kernel, o.Out = b.weight, b.stages.in.Seconds(), b.stages.kernel.Seconds(), b.stages.out.Seconds()
	o.Copies = b.stages.copies.Seconds()
	for _, a := range kinds {
		if err := o.chunked(ctx, b, a); err != nil {
			return o, err
		}
	}
	best := slices.MinFunc(o.Runs, func(x, y ChunkRun) int { return int((x.Seconds - y.Seconds) * 1e9) })
	o.Best = &best
	return o, nil
}

// overlapRoom returns how many values fit on the GPU.
func overlapRoom(g *gpu.GPU) (int, error) {
	room, err := g.Room(shareOfGPU)
	if err != nil {
		return 0, err
	}
	values := overlapValues
	if most := room / valueBytes; most < overlapValues {
		values = int(most) - 5
	}
	if values < mostChunks {
		return 0, errors.New("no memory is left on the GPU for an array")
	}
	return values, nil
}

// chunked measures runs with 1, 2, 4 .. mostChunks chunks.
func (o *OverlapReport) chunked(ctx context.Context, b *chunkBench, a *hostArrays) error {
	for chunks := 1; chunks <= mostChunks; chunks *= 2 {
		for _, order := range []Order{DepthFirst, BreadthFirst} {
			if chunks == 1 && order == BreadthFirst { // the same
				continue
			}
			took, err := b.measure(ctx, a, chunks, order)
			if err != nil {
				return err
			}
			o.Runs = append(o.Runs, ChunkRun{chunks, order, a == b.pinned, took.Seconds()})
		}
	}
	return nil
}

// overlapTogether repeats the best run of each GPU on all GPUs at once.
func overlapTogether(ctx context.Context, m *Machine, all []OverlapReport) error {
	var ready, done sync.WaitGroup
	errs := make([]error, len(all))
	ready.Add(len(all))
	for i := range all {
		done.Go(func() {
			var once sync.Once
			arrive := func() { once.Do(ready.Done) }
			defer arrive() // whatever happens, the others must not wait
			all[i].Together, errs[i] = repeatBest(ctx, m, i, all[i], func() { arrive(); ready.Wait() })
		})
	}
	done.Wait()
	return errors.Join(errs...)
}

// repeatBest repeats the best run of a GPU after wait has returned.
func repeatBest(ctx context.Context, m *Machine, i int, o OverlapReport, wait func()) (best float64, err error) {
	if o.Best == nil {
		return 0, nil
	}
	g, err := gpu.Open(&m.GPUs[i])
	if err != nil {
		return 0, err
	}
	defer func() { err = g.Closed(err) }()
	defer m.near(i)()
	b, err := openChunks(g, o.Values)
	if err != nil {
		return 0, err
	}
	a := b.pinned
	if !o.Best.Pinned {
		if a, err = b.arrays(g.Pageable); err != nil {
			return 0, err
		}
	}
	if a == nil {
		return 0, b.notPinned
	}
	b.weight = o.Weight
	if _, err := b.run(a, o.Best.Chunks, o.Best.Order); err != nil { // warm up
		return 0, err
	}
	wait()
	const runs = 8 // without a pause, so that the GPUs stay together
	start := time.Now()
	for range runs {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if _, err := b.run(a, o.Best.Chunks, o.Best.Order); err != nil {
			return 0, err
		}
	}
	best = time.Since(start).Seconds() / runs
	return best, b.check(a, o.Best.Chunks, o.Best.Order)
}

// judgeOverlap adds figures and findings.
func judgeOverlap(all []OverlapReport, r *Result) {
	speeds := map[int]float64{}
	for _, o := range all {
		if o.Best == nil {
			continue
		}
		efficiency := o.bound() / o.Best.Seconds
		r.add(efficiency, "", "overlap.gpu%d.efficiency", o.GPU)
		r.add(o.longest()/o.Best.Seconds, "", "overlap.gpu%d.of_longest_stage", o.GPU)
		speeds[o.GPU] = float64(valueBytes*o.Values) / o.Best.Seconds
		if efficiency < overlapFair {
			r.find("GPU %d: in chunks, copies and kernel take %s; a perfect overlap would take %s.", o.GPU,
				seconds(o.Best.Seconds), seconds(o.bound()))
		}
		if o.Together > 0 {
			r.add(o.Best.Seconds/o.Together, "", "overlap.gpu%d.together", o.GPU)
			if o.Best.Seconds < 0.8*o.Together {
				r.find("GPU %d: with copies of all GPUs at once a run takes %s, alone %s.", o.GPU, seconds(o.Together),
					seconds(o.Best.Seconds))
			}
		}
	}
	r.compare("overlapped copies and kernels", speeds)
}

// overlapText returns the tables of the part: all GPUs, and all runs of the first one.
func overlapText(all []OverlapReport) string {
	var b strings.Builder
	b.WriteString("GPU\tweight\tcopy in\tkernel\tcopy out\tboth copies\tin turn\tbest\tchunks\tall GPUs\n")
	for _, o := range all {
		if o.Best == nil {
			continue
		}
		together := "-"
		if o.Together > 0 {
			together = seconds(o.Together)
		}
		fmt.Fprintf(&b, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d, %s\t%s\n", o.GPU, o.Weight, seconds(o.In),
			seconds(o.Kernel), seconds(o.Out), seconds(o.Copies), seconds(o.Runs[0].Seconds), seconds(o.Best.Seconds),
			o.Best.Chunks, o.Best.Order, together)
	}
	text := table(b.String())
	for _, o := range all {
		if o.Best != nil {
			text += fmt.Sprintf("  GPU %d, %s: the longest stage alone takes %.0f%% of the best time, the bound of "+
				"both copies %.0f%%\n", o.GPU, size(int64(valueBytes*o.Values)), 100*o.longest()/o.Best.Seconds,
				100*o.bound()/o.Best.Seconds)
		}
	}
	if len(all) == 0 || len(all[0].Runs) == 0 {
		return text
	}
	o := all[0]
	b.Reset()
	fmt.Fprintf(&b, "GPU %d, chunks\tpinned, V1\tpinned, V2\tpageable, V1\tpageable, V2\n", o.GPU)
	for chunks := 1; chunks <= mostChunks; chunks *= 2 {
		fmt.Fprint(&b, chunks)
		for _, pinned := range []bool{true, false} {
			for _, order := range []Order{DepthFirst, BreadthFirst} {
				cell := "-"
				for _, run := range o.Runs {
					if run.Chunks == chunks && run.Order == order && run.Pinned == pinned {
						cell = seconds(run.Seconds)
					}
				}
				b.WriteString("\t" + cell)
			}
		}
		b.WriteString("\n")
	}
	return text + table(b.String()) +
		"  V1: copy in, kernel, copy out for each chunk in turn. V2: one stage for all chunks, then the next.\n"
}

// drawOverlap draws the runs of the first GPU.
func drawOverlap(data []byte) ([]byte, error) {
	var all []OverlapReport
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 || len(all[0].Runs) == 0 {
		return nil, err
	}
	o := all[0]
	var ticks []float64
	var curves []curve
	for _, pinned := range []bool{true, false} {
		for _, order := range []Order{DepthFirst, BreadthFirst} {
			c := curve{name: map[bool]string{true: "pinned, ", false: "pageable, "}[pinned] + string(order)}
			for _, run := range o.Runs {
				if run.Pinned == pinned && (run.Order == order || run.Chunks == 1) {
					c.at = append(c.at, point{float64(run.Chunks), 1e3 * run.Seconds})
				}
			}
			if len(c.at) > 0 {
				curves = append(curves, c)
			}
		}
	}
	bound, both := curve{name: "longest stage alone", dash: true}, curve{name: "both copies at once", dash: true}
	for chunks := 1; chunks <= mostChunks; chunks *= 2 {
		ticks = append(ticks, float64(chunks))
		bound.at = append(bound.at, point{float64(chunks), 1e3 * o.longest()})
		both.at = append(both.at, point{float64(chunks), 1e3 * o.bound()})
	}
	title := fmt.Sprintf("GPU %d: copy in, kernel, copy out of %s", o.GPU, size(int64(valueBytes*o.Values)))
	return chart(title, "chunks, each on a stream of its own", "milliseconds", ticks, append(curves, bound, both))
}
