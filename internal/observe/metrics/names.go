// Package metrics serves the state of a run to Prometheus: what its ranks publish (internal/observe/stats) and its
// progress.
package metrics

import (
	"math"
	"slices"
	"strconv"
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

// nodeStay is how long the last values of a run stay on a Node, so that they are scraped.
const nodeStay = time.Minute

// Node holds what the ranks on one node have told last, of all runs that have ranks there. It is a
// prometheus.Collector. Its metrics are those of a Run, but with the label run, since ranks of several runs may have
// the same number.
type Node struct {
	mu   sync.Mutex
	runs map[string]*Run // by id
}

// NewNode returns a Node without runs.
func NewNode() *Node { return &Node{runs: map[string]*Run{}} }

// Begin adds a run, whose ranks on this node are about to start. Only events of these ranks belong to it.
func (n *Node) Begin(id string, i Info) *Run {
	r := NewRun()
	r.part = true
	r.Begin(i)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs[id] = r
	return r
}

// End tells that the ranks of a run have ended on this node. Their values stay for a minute, and change with events
// that are still on their way. Then gone is called.
func (n *Node) End(id string, r *Run, gone func()) {
	time.AfterFunc(nodeStay, func() {
		n.mu.Lock()
		if n.runs[id] == r { // else a later run has this id
			delete(n.runs, id)
		}
		n.mu.Unlock()
		gone()
	})
}

// Describe implements prometheus.Collector. The runs are not known beforehand, and so a Node describes nothing.
func (n *Node) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (n *Node) Collect(to chan<- prometheus.Metric) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, r := range n.runs {
		prometheus.WrapCollectorWith(prometheus.Labels{"run": label(id)}, r).Collect(to)
	}
}

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

// Describe implements prometheus.Collector. What a run does not know has no metric, and so a Run describes nothing.
func (r *Run) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (r *Run) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := slices.ContainsFunc(r.ranks, func(s *stats.Rank) bool { return s != nil })
	if r.begun == 0 || r.part && !told {
		return
	}
	c := collection{to: to}
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

// collection passes on metrics with labels. Their names and labels are part of the interface; docs/outputs.md lists
// them.
type collection struct {
	to             chan<- prometheus.Metric
	labels, values []string
}

// with returns a collection with further labels, names and values by turns.
func (c collection) with(labels ...string) collection {
	c.labels, c.values = slices.Clone(c.labels), slices.Clone(c.values)
	for pair := range slices.Chunk(labels, 2) {
		c.labels, c.values = append(c.labels, pair[0]), append(c.values, pair[1])
	}
	return c
}

// add passes on the metric jacobi_NAME, a counter if its name ends with _total and a gauge otherwise.
func (c collection) add(name, help string, v float64) {
	kind := prometheus.GaugeValue
	if strings.HasSuffix(name, "_total") {
		kind = prometheus.CounterValue
	}
	d := prometheus.NewDesc("jacobi_"+name, help, c.labels, nil)
	c.to <- prometheus.MustNewConstMetric(d, kind, v, c.values...)
}

// reading passes on a reading times unit, unless the device has none.
func (c collection) reading(name, help string, v *int64, unit float64) {
	if v != nil {
		c.add(name, help, float64(*v)*unit)
	}
}

// run passes on what concerns the whole run.
func (c collection) run(r *Run) {
	i := r.info
	c.with("name", label(i.Name), "version", i.Version, "method", i.Method, "problem", i.Problem, "dtype", i.DType,
		"nx", strconv.Itoa(i.NX), "ny", strconv.Itoa(i.NY), "ranks", strconv.Itoa(i.Ranks)).
		add("run_info", "The run that is served.", 1)
	c.add("tolerance", "Norm at which the run ends.", i.Tolerance)
	c.add("max_iterations", "The most iterations that the run does.", float64(i.MaxIterations))
	if p := r.progress; p != nil {
		if !math.IsNaN(float64(p.Norm)) {
			c.add("norm", "L2 norm of the newest iteration in the run's progress.", float64(p.Norm))
		}
		if p.End > 0 {
			c.add("expected_iterations", "Estimate of all iterations of the run.", float64(p.End))
			c.add("remaining_seconds", "Estimate of the time until the last iteration.", p.Left.Seconds())
		}
	}
	if len(r.ranks) > 0 && r.ranks[0] != nil && r.ranks[0].Checkpoints != nil {
		k := r.ranks[0].Checkpoints
		c.add("checkpoints_written_total", "Checkpoints written.", float64(k.Written))
		c.add("checkpoints_failed_total", "Checkpoints that failed.", float64(k.Failed))
		if k.Written > 0 {
			c.add("checkpoint_size_bytes", "Size of the newest checkpoint.", float64(k.Bytes))
			c.add("checkpoint_duration_seconds", "Time that the newest checkpoint took.", k.Seconds)
			c.add("checkpoint_iterations", "Iterations that the newest checkpoint holds.", float64(k.Sweeps))
		}
	}
}

// whole passes on what is known where all ranks are told of.
func (c collection) whole(r *Run) {
	c.add("restarts_total", "Restarts of the run by the launcher.", float64(r.begun-1))
	lags := stats.Lagging(r.ranks)
	for rank, s := range r.ranks {
		if s != nil {
			c.with("rank", strconv.Itoa(rank)).add("rank_lagging", "1 if the other ranks wait for this one, else 0.",
				flag(slices.Contains(lags, rank)))
		}
	}
}

// rank passes on what a rank has told.
func (c collection) rank(number int, s *stats.Rank, at time.Time) {
	c = c.with("rank", strconv.Itoa(number))
	c.with("host", label(s.Host), "backend", label(s.Backend), "device", label(s.Device)).
		add("rank_info", "Where a rank runs.", 1)
	c.add("rank_seen_timestamp_seconds", "When the newest statistics of the rank arrived.", float64(at.UnixMilli())/1e3)
	c.add("iterations_total", "Sweeps, or cycles of multigrid, with those before a restart.", float64(s.Sweeps))
	c.add("point_updates_total", "Updates of points of the rank's stripe.", s.Updates)
	c.add("sweeping_seconds_total", "Time since the first sweep of the rank.", s.Elapsed)
	if s.HaloWait != nil {
		c.add("halo_wait_seconds_total", "Time in which the rank sent rows and waited for rows.", *s.HaloWait)
	}
	c.add("norm_wait_seconds_total", "Time in which the rank sent sums and waited for sums.", s.NormWait)
	c.add("refused_messages_total", "Messages over NATS that were not sealed for this run.", float64(s.RefusedMessages))
	c.add("field_memory_bytes", "Memory in which the rank sweeps, on its device.", float64(s.Memory.Field))
	c.add("resident_memory_bytes", "Resident memory of the rank's process.", float64(s.Memory.Resident))
	c.add("peak_resident_memory_bytes", "The most resident memory of the rank's process.", float64(s.Memory.Peak))
	for _, h := range s.Halos {
		c := c.with("side", label(h.Side), "transport", label(h.Transport))
		c.add("halo_sent_bytes_total", "Bytes of rows sent to a neighbour.", float64(h.Sent))
		c.add("halo_received_bytes_total", "Bytes of rows received from a neighbour.", float64(h.Received))
		c.add("halo_requests_total", "Requests for rows that did not arrive.", float64(h.Asked))
		c.add("halo_resent_frames_total", "Frames sent again.", float64(h.Resent))
		c.add("halo_duplicate_frames_total", "Frames received again.", float64(h.Duplicates))
		c.add("halo_refused_total", "Frames, and connections over TCP, that were refused.", float64(h.Refused))
		c.add("halo_lost_total", "Frames, and sockets over TCP, that were lost.", float64(h.Lost))
	}
	if s.GPU != nil {
		c.with("gpu", strconv.Itoa(s.GPU.Index)).gpu(s.GPU)
	}
}

// gpu passes on the readings of a rank's GPU.
func (c collection) gpu(g *stats.GPU) {
	c.with("name", label(g.Name), "uuid", label(g.UUID)).add("gpu_info", "The GPU of a rank.", 1)
	c.reading("gpu_temperature_celsius", "Temperature of the rank's GPU.", g.Celsius, 1)
	c.reading("gpu_power_watts", "Power that the rank's GPU draws.", g.Milliwatts, 1e-3)
	c.reading("gpu_memory_used_bytes", "Memory of the rank's GPU in use, by all processes.", g.UsedBytes, 1)
	c.reading("gpu_sm_clock_hertz", "Clock of the rank's GPU.", g.SMClock, 1e6)
	c.add("gpu_clock_limited", "1 if the clocks are lower than they could be under load.", flag(len(g.Throttled) > 0))
	const errors = "Errors of the GPU's memory since its driver was loaded."
	c.with("kind", "corrected").reading("gpu_ecc_errors_total", errors, g.Corrected, 1)
	c.with("kind", "uncorrected").reading("gpu_ecc_errors_total", errors, g.Uncorrected, 1)
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
