package tune

import (
	"fmt"
	"math"
	"slices"
	"time"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// preferredDepth returns the least depth that any rank's backend prefers.
func preferredDepth(groups []roster.Group) int {
	depth := math.MaxInt
	for _, g := range groups {
		depth = min(depth, g.First.Depth)
	}
	return depth
}

// linkTime is what the ranks measured of one link over NATS.
type linkTime struct {
	From  int           `json:"from"`
	To    int           `json:"to"`
	Trip  time.Duration `json:"trip"`            // of a short message and its acknowledgement
	Large time.Duration `json:"large"`           // the same for probeBytes
	Fault string        `json:"fault,omitempty"` // why there is no measurement
}

func (l linkTime) String() string {
	return fmt.Sprintf("%v from rank %d to %d over NATS, %v with %d KiB", l.Trip.Round(time.Microsecond), l.From, l.To,
		l.Large.Round(time.Microsecond), probeBytes>>10)
}

// exchangeSeconds estimates the time of an exchange of that many bytes. Each takes the given share of what it takes
// over NATS.
func (l linkTime) exchangeSeconds(bytes, share float64) float64 {
	return l.Trip.Seconds() + share*max(0, l.Large-l.Trip).Seconds()/probeBytes*bytes
}

const (
	// maxAutoDepth bounds the depth for halo.depth auto.
	maxAutoDepth = 256
	// clearGain is the share of the time of a sweep that a deeper halo must save where the speed of the sweeps is that
	// of another GPU, and measuredGain where it was measured.
	clearGain    = 0.1
	measuredGain = 0.03
	// directShare is the time of a byte over TCP as a share of that over NATS: see "The halo depth" in
	// docs/hardware.md.
	directShare = 0.4
)

// deepening is what the choice of a deeper halo rests on.
type deepening struct {
	mesh    solver.Mesh
	minRows int // of the lowest stripe
	mode    halo.Mode
	links   []linkTime
	rates   []float64 // by rank: points that a CPU updates in a second; 0: a GPU sweeps
}

// choose returns preferred, or a deeper halo if the estimated time of a sweep is clearly less. Depths are tried that
// are preferred.Rows times a power of two. Passes keep their sweeps.
func (d deepening) choose(preferred setup.Depth) setup.Depth {
	if i := slices.IndexFunc(d.links, func(l linkTime) bool { return l.Fault != "" }); i >= 0 {
		preferred.Why = "auto: preferred by the backends; " + d.links[i].Fault
		return preferred
	}
	best := preferred
	gain, rate := clearGain, d.slowestCPU()
	if rate > 0 {
		gain = measuredGain
	}
	least, slowest := d.sweepSeconds(preferred)
	least *= 1 - gain
	for rows := 2 * preferred.Rows; rows <= min(d.minRows, maxAutoDepth); rows *= 2 {
		deeper := setup.Depth{Rows: rows, Sweeps: preferred.Sweeps}
		if s, _ := d.sweepSeconds(deeper); s < least {
			best, least = deeper, s
		}
	}
	best.Why = fmt.Sprintf("auto: %v", slowest)
	if rate > 0 {
		best.Why += fmt.Sprintf("; a rank sweeps %.1f GLUP/s", rate/1e9)
	}
	return best
}

// slowestCPU returns the least rate of the ranks that sweep on CPUs; 0 if all sweep on GPUs.
func (d deepening) slowestCPU() (least float64) {
	for _, rate := range d.rates {
		if rate > 0 && (least == 0 || rate < least) {
			least = rate
		}
	}
	return least
}

// pace returns the time of a sweep besides that of its points, and the points that the slowest rank updates in a
// second.
func (d deepening) pace() (fixed, rate float64) {
	if rate := d.slowestCPU(); rate > 0 {
		return 0, rate
	}
	return cuda.Pace(d.mesh.DType)
}

// sweepSeconds estimates the time of a sweep with halos of the given depth T, and names the slowest link. A rank sweeps
// its rows and, on the average of the T sweeps between two exchanges, (T-1)/2 rows beyond each end. Once in T sweeps it
// waits for an exchange. A GPU does a pass beside it. The threads of a CPU leave no core on which an exchange could go
// on beside them, so it counts as a whole.
func (d deepening) sweepSeconds(t setup.Depth) (seconds float64, slowest linkTime) {
	fixed, rate := d.pace()
	sweep := fixed + float64(d.mesh.NX)*float64(d.minRows+t.Rows-1)/rate // without exchanges
	share, beside := 1.0, 0.0                                            // what an exchange may take without cost
	if d.slowestCPU() == 0 {
		beside = float64(t.Sweeps) * sweep
	}
	if d.mode == halo.ModeDirect {
		share = directShare
	}
	longest := -1.0
	for _, l := range d.links {
		exchange := l.exchangeSeconds(float64(t.Rows)*float64(d.mesh.RowBytes()), share)
		if exchange > longest {
			longest, slowest = exchange, l
		}
	}
	return sweep + max(0, longest-beside)/float64(t.Rows), slowest
}

// alone returns a warning if the ranks of one node without the others would clearly be faster than all together; ""
// otherwise. Of a node with GPUs, which its ranks may share, one GPU counts.
func (d deepening) alone(members []roster.Member, t setup.Depth) string {
	nodes := map[string]float64{} // points a second, by node
	host := map[string]string{}
	fixed, gpu := deepening{mesh: d.mesh}.pace()
	for i, m := range members {
		node := m.NodeID()
		if host[node] = m.Host; d.rates[i] > 0 {
			nodes[node] += d.rates[i]
		} else {
			nodes[node] = max(nodes[node], gpu)
		}
	}
	best, rate := "", 0.0
	for node, r := range nodes {
		if r > rate || r == rate && host[node] < host[best] {
			best, rate = node, r
		}
	}
	all, _ := d.sweepSeconds(t)
	one := fixed + float64(d.mesh.NX)*float64(d.mesh.NY)/rate
	if len(nodes) < 2 || best == "" || one > (1-clearGain)*all {
		return ""
	}
	return fmt.Sprintf("the ranks of %s alone would be about %.1f times as fast as those of %d nodes: a sweep takes "+
		"%v, and with the network about %v", host[best], all/one, len(nodes), duration(one), duration(all))
}

// duration rounds seconds for a message.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * 1e9).Round(time.Microsecond / 10)
}
