package view

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/stats"
	"jacobi/solver"
)

// maxWarnings bounds the warnings of a page.
const maxWarnings = 50

// runStatus is what is known of a run that goes on, but for its field. One goroutine uses it at a time.
type runStatus struct {
	run      *Run
	progress Progress
	ranks    []Rank
	warnings []string
	report   *output.Report // nil before the end
	certain  bool           // progress has the first cause of a failure
	news     map[string]any // states of topics that the board does not have yet
}

// reset begins again.
func (t *runStatus) reset() {
	*t = runStatus{progress: Progress{State: Starting, Text: "The ranks are starting."}, ranks: []Rank{},
		warnings: t.warnings}
	t.news = map[string]any{TopicProgress: t.progress, TopicRanks: t.ranks, TopicHistory: History{[]Point{}},
		TopicWarnings: t.warnings}
}

// over reports whether the run has ended.
func (t *runStatus) over() bool { return t.progress.State == Ended || t.progress.State == Failed }

// about takes the description of the run that rank 0 publishes.
func (t *runStatus) about(a About) {
	if t.over() { // the report says more
		a.Ranks = nil
	}
	if t.run == nil || !t.over() {
		t.run = &a.Run
		t.news[TopicRun] = t.run
	}
	if len(t.ranks) == 0 && len(a.Ranks) > 0 {
		t.ranks = a.Ranks
		t.news[TopicRanks] = t.ranks
	}
	if len(a.Points) > 0 {
		t.news[TopicHistory] = History{a.Points}
	}
}

// event takes an event of a rank.
func (t *runStatus) event(e roster.Event) {
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
func (t *runStatus) advance(e roster.Event) {
	p := Progress{State: Running, Sweeps: e.Sweeps, Share: e.Share(), GLUPs: e.GLUPs, End: e.End,
		Left: e.Left.Seconds(), Elapsed: e.Elapsed.Seconds()}
	if e.Kind == roster.Progress {
		p.Norm = finite(float64(e.Norm))
	}
	t.progress = p
	t.news[TopicProgress] = t.progress
}

// measured takes the statistics of a rank.
func (t *runStatus) measured(rank int, s stats.Rank) {
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
	t.news[TopicRanks] = t.ranks
}

// finish takes the report of the run.
func (t *runStatus) finish(r output.Report) {
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
	t.news[TopicRun], t.news[TopicProgress], t.news[TopicRanks] = t.run, t.progress, t.ranks
	for _, text := range faultsOf(r) {
		t.warn(text)
	}
}

// outline outlines p in the field of a run that is over, if rank 0 has not told of its outlines.
func (t *runStatus) outline(ctx context.Context, p *problem.Problem) {
	if p == nil || t.run.Outlines != nil {
		return
	}
	run := *t.run
	run.Outlines, _ = p.Outlines(ctx) // or none
	t.run = &run
	t.news[TopicRun] = t.run
}

// fail says why the run has no results.
func (t *runStatus) fail(why string) {
	p := &t.progress
	p.State, p.Text, p.End, p.Left = Failed, show.Text(why), 0, 0
	t.news[TopicProgress] = t.progress
}

// noField says why a run that is over has no field to show.
func (t *runStatus) noField(why error) {
	run := *t.run
	run.NoField = "the last frame came to no page, and the field cannot be read: " + show.Text(why.Error())
	if errors.Is(why, errNoFile) {
		run.NoField = "the last frame came to no page, and the run has written no field"
	}
	t.run = &run
	t.news[TopicRun] = t.run
}

// warn adds a warning. Of too many, the first ones stay.
func (t *runStatus) warn(text string) {
	if len(t.warnings) < maxWarnings {
		t.warnings = append(t.warnings, show.Text(text))
		t.news[TopicWarnings] = t.warnings
	}
}

// flush puts what has changed on the board.
func (t *runStatus) flush(b *Board) {
	for name, state := range t.news {
		b.Set(name, state)
	}
	clear(t.news)
}

// Limits of a report, far beyond that of the largest run. Its ranks, and other objects, take much more memory than
// their text.
const (
	maxReport  = 64 << 20 // bytes
	maxRanks   = 1 << 14
	maxObjects = 16 * maxRanks
)

// readReport returns the report among the files of dir: report.json, or another .json file that is one. It returns nil
// if there is none.
func readReport(dir string, names []string) (*output.Report, error) {
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if (name == "report.json") != first || strings.ToLower(filepath.Ext(name)) != ".json" {
				continue
			}
			data, err := regular.ReadFile(filepath.Join(dir, name), maxReport)
			var r output.Report
			if err == nil {
				err = checkCounts(data)
			}
			if err == nil {
				err = json.Unmarshal(data, &r)
			}
			if err == nil {
				err = check(r)
			}
			switch {
			case err == nil:
				return &r, nil
			case first:
				return nil, fmt.Errorf("%s: no report of a run: %s", show.Text(filepath.Join(dir, name)),
					show.Text(err.Error()))
			}
		}
	}
	return nil, nil
}

// checkCounts returns an error if a report has too many ranks or objects.
func checkCounts(report []byte) error {
	if n := bytes.Count(report, []byte{'{'}); n > maxObjects {
		return fmt.Errorf("%d objects; at most %d are read", n, maxObjects)
	}
	return json.Unmarshal(report, &struct{ Ranks rankCount }{})
}

// rankCount reads the list of ranks without keeping it.
type rankCount struct{}

// UnmarshalJSON implements json.Unmarshaler. A report may have the list several times.
func (rankCount) UnmarshalJSON(list []byte) error {
	var ranks []struct{} // without size
	if err := json.Unmarshal(list, &ranks); err != nil {
		return err
	}
	if len(ranks) > maxRanks {
		return fmt.Errorf("%d ranks; at most %d are read", len(ranks), maxRanks)
	}
	return nil
}

// check returns an error if r is not what a run writes.
func check(r output.Report) error {
	decided := r.StopReason == solver.Converged || r.StopReason == solver.Stalled || r.StopReason == solver.Stagnated
	switch {
	case r.RunID == "" || r.Mesh.NX < 1 || r.Mesh.NY < 1:
		return fmt.Errorf("run_id and mesh are missing")
	case decided && r.Decisive == nil:
		return fmt.Errorf("stop_reason %s without decisive", r.StopReason)
	}
	return nil
}

// scaleOf returns output.picture_scale of a configuration.
func scaleOf(config json.RawMessage) string {
	var c struct {
		Output struct {
			Scale string `json:"picture_scale"`
		}
	}
	_ = json.Unmarshal(config, &c) // then the default
	switch c.Output.Scale {
	case output.ScaleLinear, output.ScaleLog, output.ScaleSqrt:
		return c.Output.Scale
	}
	return output.ScaleAuto
}

// RunOf describes the run of a report.
func RunOf(r output.Report) Run {
	goal := solver.Goal{Tolerance: r.Tolerance, Relative: r.RelativeTolerance, Base: r.Base}
	run := Run{Title: r.Title(), ID: r.RunID, Version: r.Version, NX: r.Mesh.NX, NY: r.Mesh.NY, DType: r.Mesh.DType,
		Method: r.Method, Step: configs.Solver{Method: r.Method}.Step(), Max: r.MaxIterations,
		Tolerance: min(goal.Target(), math.MaxFloat64)} // JSON has no infinity
	run.Step = cmp.Or(run.Step, "sweep")
	if r.Setup != nil {
		run.HX, run.HY, run.Facts = r.Setup.SpacingX, r.Setup.SpacingY, r.Setup.Lines()
	}
	return run
}

// EndOf describes the end of the run of a report.
func EndOf(r output.Report) Progress {
	p := Progress{State: Ended, Text: output.Result(r), Good: r.Converged, Sweeps: r.Sweeps,
		GLUPs: roster.Number(r.GLUPS), End: r.Sweeps, Share: 1, Elapsed: r.Times.Sweeps, Results: r.Lines()}
	if r.Norm != nil {
		p.Norm = new(roster.Number(*r.Norm))
	}
	return p
}

// faultsOf says what a report has as not written or missing.
func faultsOf(r output.Report) (faults []string) {
	for _, f := range r.Failed {
		faults = append(faults, f.Name+" was not written: "+f.Error)
	}
	for _, f := range r.Missing {
		faults = append(faults, "no "+f.Name+": "+f.Error)
	}
	return faults
}

// ranksOf returns the table of ranks of a report.
func ranksOf(r output.Report) []Rank {
	list := make([]Rank, len(r.Ranks))
	for i, k := range r.Ranks {
		list[i] = Rank{Rank: k.Rank, Host: k.Host, Device: k.Device, Stripe: k.Stripe, Sweeps: new(r.Sweeps),
			Compute: new(k.Compute), HaloWait: k.HaloWait, NormWait: new(k.NormWait), Memory: new(k.MemoryBytes)}
		var bytes uint64
		known := false
		for _, link := range k.Transports {
			if link.Traffic != nil {
				bytes, known = bytes+link.Traffic.Bytes, true
			}
		}
		if known {
			list[i].Bytes = &bytes
		}
	}
	return list
}
