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

// Labels of metrics.
var (
	ofRun  []string
	ofRank = []string{"rank"}
	ofHalo = []string{"rank", "side", "transport"}
	ofGPU  = []string{"rank", "gpu"}
)

// desc describes the metric jacobi_NAME.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("jacobi_"+name, help, labels, nil)
}

// The metrics. Their names and labels are part of the interface; docs/outputs.md lists them.
var (
	runInfo = desc("run_info", "The run that is served.", "name", "version", "method", "problem", "dtype", "nx", "ny",
		"ranks")
	restarts      = desc("restarts_total", "Restarts of the run by the launcher.", ofRun...)
	norm          = desc("norm", "L2 norm of the newest iteration in the run's progress.", ofRun...)
	tolerance     = desc("tolerance", "Norm at which the run ends.", ofRun...)
	maxIterations = desc("max_iterations", "The most iterations that the run does.", ofRun...)
	expected      = desc("expected_iterations", "Estimate of all iterations of the run.", ofRun...)
	remaining     = desc("remaining_seconds", "Estimate of the time until the last iteration.", ofRun...)

	rankInfo   = desc("rank_info", "Where a rank runs.", "rank", "host", "backend", "device")
	seen       = desc("rank_seen_timestamp_seconds", "When the newest statistics of the rank arrived.", ofRank...)
	lagging    = desc("rank_lagging", "1 if the other ranks wait for this one, else 0.", ofRank...)
	iterations = desc("iterations_total", "Sweeps, or cycles of multigrid, with those before a restart.", ofRank...)
	updates    = desc("point_updates_total", "Updates of points of the rank's stripe.", ofRank...)
	elapsed    = desc("sweeping_seconds_total", "Time since the first sweep of the rank.", ofRank...)
	haloWait   = desc("halo_wait_seconds_total", "Time in which the rank sent rows and waited for rows.", ofRank...)
	normWait   = desc("norm_wait_seconds_total", "Time in which the rank sent sums and waited for sums.", ofRank...)
	refused    = desc("refused_messages_total", "Messages over NATS that were not sealed for this run.", ofRank...)

	haloSent     = desc("halo_sent_bytes_total", "Bytes of rows sent to a neighbour.", ofHalo...)
	haloReceived = desc("halo_received_bytes_total", "Bytes of rows received from a neighbour.", ofHalo...)
	haloAsked    = desc("halo_requests_total", "Requests for rows that did not arrive.", ofHalo...)
	haloResent   = desc("halo_resent_frames_total", "Frames sent again.", ofHalo...)
	haloTwice    = desc("halo_duplicate_frames_total", "Frames received again.", ofHalo...)
	haloRefused  = desc("halo_refused_total", "Frames, and connections over TCP, that were refused.", ofHalo...)
	haloLost     = desc("halo_lost_total", "Frames, and sockets over TCP, that were lost.", ofHalo...)

	fieldBytes = desc("field_memory_bytes", "Memory in which the rank sweeps, on its device.", ofRank...)
	resident   = desc("resident_memory_bytes", "Resident memory of the rank's process.", ofRank...)
	peak       = desc("peak_resident_memory_bytes", "The most resident memory of the rank's process.", ofRank...)

	saved       = desc("checkpoints_written_total", "Checkpoints written.", ofRun...)
	unsaved     = desc("checkpoints_failed_total", "Checkpoints that failed.", ofRun...)
	savedBytes  = desc("checkpoint_size_bytes", "Size of the newest checkpoint.", ofRun...)
	savedTime   = desc("checkpoint_duration_seconds", "Time that the newest checkpoint took.", ofRun...)
	savedSweeps = desc("checkpoint_iterations", "Iterations that the newest checkpoint holds.", ofRun...)

	gpuInfo        = desc("gpu_info", "The GPU of a rank.", "rank", "gpu", "name", "uuid")
	gpuTemperature = desc("gpu_temperature_celsius", "Temperature of the rank's GPU.", ofGPU...)
	gpuPower       = desc("gpu_power_watts", "Power that the rank's GPU draws.", ofGPU...)
	gpuMemory      = desc("gpu_memory_used_bytes", "Memory of the rank's GPU in use, by all processes.", ofGPU...)
	gpuClock       = desc("gpu_sm_clock_hertz", "Clock of the rank's GPU.", ofGPU...)
	gpuLimited     = desc("gpu_clock_limited", "1 if the clocks are lower than they could be under load.", ofGPU...)
	gpuErrors      = desc("gpu_ecc_errors_total", "Errors of the GPU's memory since its driver was loaded.",
		append(ofGPU[:2:2], "kind")...)
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

// collection passes metrics on.
type collection struct{ to chan<- prometheus.Metric }

func (c collection) counter(d *prometheus.Desc, v float64, labels ...string) {
	c.to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func (c collection) gauge(d *prometheus.Desc, v float64, labels ...string) {
	c.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// reading passes on a reading times unit, unless the device has none.
func (c collection) reading(d *prometheus.Desc, v *int64, unit float64, labels ...string) {
	if v != nil {
		c.gauge(d, float64(*v)*unit, labels...)
	}
}

// run passes on what concerns the whole run.
func (c collection) run(r *Run) {
	i := r.info
	c.gauge(runInfo, 1, label(i.Name), i.Version, i.Method, i.Problem, i.DType, strconv.Itoa(i.NX), strconv.Itoa(i.NY),
		strconv.Itoa(i.Ranks))
	c.gauge(tolerance, i.Tolerance)
	c.gauge(maxIterations, float64(i.MaxIterations))
	if p := r.progress; p != nil {
		if !math.IsNaN(float64(p.Norm)) {
			c.gauge(norm, float64(p.Norm))
		}
		if p.End > 0 {
			c.gauge(expected, float64(p.End))
			c.gauge(remaining, p.Left.Seconds())
		}
	}
	if len(r.ranks) > 0 && r.ranks[0] != nil && r.ranks[0].Checkpoints != nil {
		k := r.ranks[0].Checkpoints
		c.counter(saved, float64(k.Written))
		c.counter(unsaved, float64(k.Failed))
		if k.Written > 0 {
			c.gauge(savedBytes, float64(k.Bytes))
			c.gauge(savedTime, k.Seconds)
			c.gauge(savedSweeps, float64(k.Sweeps))
		}
	}
}

// whole passes on what is known where all ranks are told of.
func (c collection) whole(r *Run) {
	c.counter(restarts, float64(r.begun-1))
	lags := stats.Lagging(r.ranks)
	for rank, s := range r.ranks {
		if s != nil {
			c.gauge(lagging, flag(slices.Contains(lags, rank)), strconv.Itoa(rank))
		}
	}
}

// rank passes on what a rank has told.
func (c collection) rank(number int, s *stats.Rank, at time.Time) {
	rank := strconv.Itoa(number)
	c.gauge(rankInfo, 1, rank, label(s.Host), label(s.Backend), label(s.Device))
	c.gauge(seen, float64(at.UnixMilli())/1e3, rank)
	c.counter(iterations, float64(s.Sweeps), rank)
	c.counter(updates, s.Updates, rank)
	c.counter(elapsed, s.Elapsed, rank)
	if s.HaloWait != nil {
		c.counter(haloWait, *s.HaloWait, rank)
	}
	c.counter(normWait, s.NormWait, rank)
	c.counter(refused, float64(s.RefusedMessages), rank)
	c.gauge(fieldBytes, float64(s.Memory.Field), rank)
	c.gauge(resident, float64(s.Memory.Resident), rank)
	c.gauge(peak, float64(s.Memory.Peak), rank)
	for _, h := range s.Halos {
		at := []string{rank, label(h.Side), label(h.Transport)}
		for d, n := range map[*prometheus.Desc]uint64{haloSent: h.Sent, haloReceived: h.Received, haloAsked: h.Asked,
			haloResent: h.Resent, haloTwice: h.Duplicates, haloRefused: h.Refused, haloLost: h.Lost} {
			c.counter(d, float64(n), at...)
		}
	}
	if s.GPU != nil {
		c.gpu(rank, s.GPU)
	}
}

// gpu passes on the readings of a rank's GPU.
func (c collection) gpu(rank string, g *stats.GPU) {
	index := strconv.Itoa(g.Index)
	c.gauge(gpuInfo, 1, rank, index, label(g.Name), label(g.UUID))
	c.reading(gpuTemperature, g.Celsius, 1, rank, index)
	c.reading(gpuPower, g.Milliwatts, 1e-3, rank, index)
	c.reading(gpuMemory, g.UsedBytes, 1, rank, index)
	c.reading(gpuClock, g.SMClock, 1e6, rank, index)
	c.gauge(gpuLimited, flag(len(g.Throttled) > 0), rank, index)
	for kind, n := range map[string]*int64{"corrected": g.Corrected, "uncorrected": g.Uncorrected} {
		if n != nil {
			c.counter(gpuErrors, float64(*n), rank, index, kind)
		}
	}
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
