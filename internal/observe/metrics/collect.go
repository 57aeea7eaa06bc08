package metrics

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jacobi/internal/observe/stats"
)

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
