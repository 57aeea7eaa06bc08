package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"jacobi/internal/base/show"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/stats"
)

// maxWarnings bounds the warnings of a page.
const maxWarnings = 50

// tale is what is known of a run that goes on, but for its field. One goroutine uses it at a time.
type tale struct {
	run      *Run
	progress Progress
	ranks    []Rank
	history  History
	warnings []string
	report   *output.Report  // nil before the end
	certain  bool            // progress has the first cause of a failure
	changed  map[string]bool // topics that the board does not have yet
}

// reset begins again.
func (t *tale) reset() {
	*t = tale{progress: Progress{State: Starting, Text: "The ranks are starting."}, ranks: []Rank{},
		history: History{[]Point{}}, warnings: t.warnings,
		changed: map[string]bool{TopicProgress: true, TopicRanks: true, TopicHistory: true,
			TopicWarnings: true}}
}

// over reports whether the run has ended.
func (t *tale) over() bool { return t.progress.State == Ended || t.progress.State == Failed }

// about takes what rank 0 tells of the run.
func (t *tale) about(a About) {
	if t.over() { // the report says more
		a.Ranks = nil
	}
	if t.run == nil || !t.over() {
		t.run = &a.Run
		t.changed[TopicRun] = true
	}
	if len(t.ranks) == 0 && len(a.Ranks) > 0 {
		t.ranks = a.Ranks
		t.changed[TopicRanks] = true
	}
	if len(a.Points) > 0 {
		t.history = History{a.Points}
		t.changed[TopicHistory] = true
	}
}

// event takes an event of a rank.
func (t *tale) event(e roster.Event) {
	switch e.Kind {
	case roster.Started, roster.Progress:
		if !t.over() {
			t.advance(e)
		}
	case roster.Stats:
		if s, err := stats.Parse(e.Report); err == nil && !t.over() {
			t.measured(e.Rank, s)
		}
	case roster.Aborted:
		if !t.over() || t.progress.State == Failed && !t.certain && !e.Consequence {
			t.fail(fmt.Sprintf("rank %d on %s: %s", e.Rank, e.Host, e.Text))
			t.certain = !e.Consequence
		}
	case roster.Finished:
		var r output.Report
		if json.Unmarshal(e.Report, &r) == nil && check(r) == nil && r.RunID != "" {
			t.finish(r)
		}
	}
}

// advance takes the progress of the run.
func (t *tale) advance(e roster.Event) {
	p := Progress{State: Running, Sweeps: e.Sweeps, Share: e.Share(), GLUPs: Float(e.GLUPs), End: e.End,
		Left: e.Left.Seconds(), Elapsed: e.Elapsed.Seconds()}
	if e.Kind == roster.Progress {
		p.Norm = finite(float64(e.Norm))
	}
	t.progress = p
	t.changed[TopicProgress] = true
}

// measured takes the statistics of a rank.
func (t *tale) measured(rank int, s stats.Rank) {
	const maxRanks = 1 << 16
	if rank < 0 || rank >= maxRanks {
		return
	}
	for len(t.ranks) <= rank {
		t.ranks = append(t.ranks, Rank{Rank: len(t.ranks)})
	}
	k := Rank{Rank: rank, Host: s.Host, Device: s.Device, Stripe: s.Stripe, Sweeps: new(s.Sweeps),
		GLUPs: new(s.Recent.GLUPs), HaloWait: s.HaloWait, NormWait: new(s.NormWait), Memory: new(s.Memory.Field)}
	waits := s.NormWait
	if s.HaloWait != nil {
		waits += *s.HaloWait
	}
	k.Compute = new(max(0, s.Elapsed-waits))
	if len(s.Halos) > 0 {
		var bytes uint64
		for _, h := range s.Halos {
			bytes += h.Sent + h.Received
		}
		k.Bytes = &bytes
	}
	if s.GPU != nil && s.GPU.Celsius != nil {
		k.Temperature = new(float64(*s.GPU.Celsius))
	}
	t.ranks[rank] = k
	t.changed[TopicRanks] = true
}

// finish takes the report of the run.
func (t *tale) finish(r output.Report) {
	run := RunOf(r)
	if t.run != nil {
		run.Outlines = t.run.Outlines // a report has none
	}
	t.run, t.progress, t.report = &run, EndOf(r), &r
	final := ranksOf(r)
	for i := range final {
		if i < len(t.ranks) {
			final[i].GLUPs, final[i].Temperature = t.ranks[i].GLUPs, t.ranks[i].Temperature
		}
	}
	t.ranks = final
	for _, name := range []string{TopicRun, TopicProgress, TopicRanks} {
		t.changed[name] = true
	}
	for _, f := range r.Failed {
		t.warn(f.Name + " was not written: " + f.Error)
	}
	for _, f := range r.Missing {
		t.warn("no " + f.Name + ": " + f.Error)
	}
}

// outline outlines p in the field of a run that is over, if rank 0 has not told of its outlines.
func (t *tale) outline(ctx context.Context, p *problem.Problem) {
	if p == nil || t.run.Outlines != nil {
		return
	}
	run := *t.run
	run.Outlines, _ = p.Outlines(ctx) // or none
	t.run = &run
	t.changed[TopicRun] = true
}

// fail says why the run has no results.
func (t *tale) fail(why string) {
	p := &t.progress
	p.State, p.Text, p.End, p.Left = Failed, show.Text(why), 0, 0
	t.changed[TopicProgress] = true
}

// noField says why a run that is over has no field to show.
func (t *tale) noField(why error) {
	run := *t.run
	run.NoField = "the last frame came to no page, and the field cannot be read: " + show.Text(why.Error())
	if errors.Is(why, errNoFile) {
		run.NoField = "the last frame came to no page, and the run has written no field"
	}
	t.run = &run
	t.changed[TopicRun] = true
}

// warn adds a warning. Of too many, the first ones stay.
func (t *tale) warn(text string) {
	if len(t.warnings) < maxWarnings {
		t.warnings = append(t.warnings, show.Text(text))
		t.changed[TopicWarnings] = true
	}
}

// flush puts what has changed on the board.
func (t *tale) flush(b *Board) {
	for name := range t.changed {
		switch name {
		case TopicRun:
			b.Set(name, *t.run)
		case TopicProgress:
			b.Set(name, t.progress)
		case TopicRanks:
			b.Set(name, t.ranks)
		case TopicHistory:
			b.Set(name, t.history)
		case TopicWarnings:
			b.Set(name, t.warnings)
		}
	}
	clear(t.changed)
}
