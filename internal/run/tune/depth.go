package tune

import (
	"fmt"
	"math"
	"slices"
	"time"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
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

// Deepening is what the choice of a deeper halo rests on.
type Deepening struct {
	mesh    solver.Mesh
	minRows int // of the lowest stripe
	mode    halo.Mode
	links   []linkTime
	rates   []float64 // by rank: points that a CPU updates in a second; 0: a GPU sweeps
}

// choose returns preferred, or a deeper halo if the estimated time of a sweep is clearly less. Depths are tried that
// are preferred.Rows times a power of two. Passes keep their sweeps.
func (d Deepening) choose(preferred setup.Depth) setup.Depth {
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
func (d Deepening) slowestCPU() (least float64) {
	for _, rate := range d.rates {
		if rate > 0 && (least == 0 || rate < least) {
			least = rate
		}
	}
	return least
}

// pace returns the time of a sweep besides that of its points, and the points that the slowest rank updates in a
// second.
func (d Deepening) pace() (fixed, rate float64) {
	if rate := d.slowestCPU(); rate > 0 {
		return 0, rate
	}
	return cuda.Pace(d.mesh.DType)
}

// oneSweep estimates the time of a sweep without exchanges.
func (d Deepening) oneSweep(t setup.Depth) float64 {
	fixed, rate := d.pace()
	return fixed + float64(d.mesh.NX)*float64(d.minRows+t.Rows-1)/rate
}

// beside returns the time that an exchange may take without cost.
func (d Deepening) beside(t setup.Depth) float64 {
	if d.slowestCPU() > 0 {
		return 0
	}
	return float64(t.Sweeps) * d.oneSweep(t)
}

// sweepSeconds estimates the time of a sweep with halos of the given depth T, and names the slowest link. A rank sweeps
// its rows and, on the average of the T sweeps between two exchanges, (T-1)/2 rows beyond each end. Once in T sweeps it
// waits for an exchange. A GPU does a pass beside it. The threads of a CPU leave no core on which an exchange could go
// on beside them, so it counts as a whole.
func (d Deepening) sweepSeconds(t setup.Depth) (seconds float64, slowest linkTime) {
	sweep, beside := d.oneSweep(t), d.beside(t)
	share := 1.0
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
func (d Deepening) alone(members []roster.Member, t setup.Depth) string {
	nodes := map[string]float64{} // points a second, by node
	host := map[string]string{}
	fixed, gpu := Deepening{mesh: d.mesh}.pace()
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

// DirectSaves estimates the seconds that the sweeps of a run would save over TCP: those of the exchanges, by the
// formula of "The halo depth" in docs/hardware.md, but at most the time that a rank waited for the network. The rank
// that saves most counts, because the others wait for it.
func (d Deepening) DirectSaves(ranks []output.RankReport, t setup.Depth) (seconds float64) {
	for _, k := range ranks {
		for side, facing := range map[solver.Side]solver.Side{solver.Top: solver.Bottom, solver.Bottom: solver.Top} {
			l := k.Transports[side.String()]
			if l.Transport != halo.TransportNATS || !l.Traffic.HasWay() {
				continue
			}
			there := ranks[l.Neighbour].Transports[facing.String()]
			above, below := k.Rank, l.Neighbour
			if side == solver.Top {
				above, below = below, above
			}
			n := float64(l.Traffic.Exchanges)
			saved := n * d.exchangeSaves(above, below, travelled(there)/n, t)
			seconds = max(seconds, min(saved, waited(k, l.Traffic)))
		}
	}
	return seconds
}

// travelled returns the bytes that a rank sent for its rows over NATS.
func travelled(l output.LinkReport) float64 {
	if l.Traffic == nil || l.NATS == nil {
		return 0
	}
	return float64(l.Traffic.Bytes)/2 - float64(l.NATS.Plain) + float64(l.NATS.Packed)
}

// waited returns the seconds in which a rank waited for a link, and not for a neighbour that was late.
func waited(k output.RankReport, t *output.TrafficReport) float64 {
	s := t.Send + t.Wait
	if k.HaloWait != nil {
		s = min(s, *k.HaloWait) // on a GPU goroutines wait, for longer than the rank
	}
	if t.Late != nil {
		s -= max(0, *t.Late)
	}
	return max(0, s)
}

// exchangeSaves estimates how much sooner a rank can go on if the bytes of an exchange go over TCP.
func (d Deepening) exchangeSaves(above, below int, bytes float64, t setup.Depth) float64 {
	beside := d.beside(t)
	for _, l := range d.links {
		if l.From == above && l.To == below && l.Fault == "" {
			return max(0, l.exchangeSeconds(bytes, 1)-beside) - max(0, l.exchangeSeconds(bytes, directShare)-beside)
		}
	}
	return 0
}
