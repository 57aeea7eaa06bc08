// Package metrics serves the state of a run to Prometheus: what its ranks publish (internal/observe/stats) and its
// progress.
package metrics

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/base/version"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
)

// Info describes a run.
type Info struct {
	Name, Version, Method, Problem, DType string
	NX, NY, Ranks                         int
	Tolerance                             float64
	MaxIterations                         int
}

// InfoOf returns the Info of a run with configuration c on that many working ranks.
func InfoOf(c configs.Config, ranks int) Info {
	return Info{Name: c.Run.Name, Version: version.String(), Method: c.Solver.Method, Problem: c.Problem.Title(),
		DType: c.Grid.DType, NX: c.Grid.NX, NY: c.Grid.NY, Ranks: ranks, Tolerance: c.Solver.Tolerance,
		MaxIterations: c.Solver.MaxIterations}
}

// Run holds what a run has told last. It is a prometheus.Collector. All methods may be called at the same time.
type Run struct {
	now func() time.Time

	// part says that not all ranks are told of: nothing is known that takes all of them, nor of other starts.
	part bool

	mu       sync.Mutex
	info     Info
	ranks    []*stats.Rank // by rank; nil before the first message
	seen     []time.Time   // when the newest message of each rank arrived
	progress *roster.Event // the newest one
	begun    int           // starts of the run
	final    int           // ranks that have sent their final message
	complete chan struct{} // closed when all ranks have
}

// NewRun returns a Run that has told nothing.
func NewRun() *Run { return &Run{now: time.Now} }

// Begin forgets the former start of the run, if there was one.
func (r *Run) Begin(i Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.info, r.ranks, r.seen, r.progress = i, make([]*stats.Rank, i.Ranks), make([]time.Time, i.Ranks), nil
	r.begun++
	r.final, r.complete = 0, make(chan struct{})
}

// Complete returns a channel that is closed when all ranks of this start have sent their final message.
func (r *Run) Complete() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.complete
}

// Event takes an event of a rank. It ignores those that it cannot read.
func (r *Run) Event(e roster.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Rank < 0 || e.Rank >= len(r.ranks) {
		return
	}
	switch e.Kind {
	case roster.Progress:
		r.progress = &e
	case roster.Stats:
		s, err := stats.Parse(e.Report)
		if err != nil {
			return
		}
		if old := r.ranks[e.Rank]; s.Final && (old == nil || !old.Final) {
			if r.final++; r.final == len(r.ranks) {
				close(r.complete)
			}
		}
		r.ranks[e.Rank], r.seen[e.Rank] = &s, r.now()
	}
}

// maxLabel bounds a label in bytes.
const maxLabel = 200

// label makes text of a rank or of the user the value of a label.
func label(text string) string {
	return show.Cut(show.Text(strings.ToValidUTF8(text, "?")), maxLabel)
}

// Describe implements prometheus.Collector.
func (r *Run) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions() {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (r *Run) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := slices.ContainsFunc(r.ranks, func(s *stats.Rank) bool { return s != nil })
	if r.begun == 0 || r.part && !told {
		return
	}
	c := collection{to}
	c.run(r)
	for rank, s := range r.ranks {
		if s != nil {
			c.rank(rank, s, r.seen[rank])
		}
	}
	if !r.part {
		c.whole(r)
	}
}
