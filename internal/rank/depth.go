package rank

import (
	"fmt"
	"slices"
	"time"

	"jacobi/halo"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// haloDepth is the depth of a run. It is the same on all ranks.
type haloDepth struct {
	Rows   int    `json:"rows"`   // in a halo
	Sweeps int    `json:"sweeps"` // most sweeps in a pass
	Why    string `json:"why"`    // for the report; "" unless links were measured
}

// commonDepth returns the depth for halo.depth auto without measurements: the least depth that any rank's backend
// prefers, at most the rows of the lowest stripe.
func commonDepth(members []roster.Member, minRows int) haloDepth {
	depth := minRows
	for _, m := range members {
		depth = min(depth, m.Depth)
	}
	depth = max(1, depth)
	return haloDepth{Rows: depth, Sweeps: depth}
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

// Figures of one H200: see "Single node" in docs/results.md. They give 1.4 us a sweep at 1024^2, 2.6 us at 2048^2 and
// 100 us at 16384^2 in float32; 1.4 to 1.6, 2.7 and 98 us were measured.
const (
	gpuSweepSeconds = 1e-6
	gpuPoints32     = 2.7e12 // points a second
	gpuPoints64     = 1.55e12
)

const (
	// maxAutoDepth bounds the depth for halo.depth auto.
	maxAutoDepth = 256
	// clearGain is the share of the time of a sweep that a deeper halo must save: estimates are rough.
	clearGain = 0.1
	// directShare is the time of an exchange over TCP as a share of one over NATS: see "The halo depth" in
	// docs/network.md.
	directShare = 0.4
)

// deepening is what the choice of a deeper halo rests on.
type deepening struct {
	mesh    solver.Mesh
	minRows int // of the lowest stripe
	mode    halo.Mode
	links   []linkTime
}

// choose returns preferred, or a deeper halo if the estimated time of a sweep is clearly less. Depths are tried that
// are preferred.Rows times a power of two. Passes keep their sweeps.
func (d deepening) choose(preferred haloDepth) haloDepth {
	if i := slices.IndexFunc(d.links, func(l linkTime) bool { return l.Fault != "" }); i >= 0 {
		preferred.Why = "auto: preferred by the backends; " + d.links[i].Fault
		return preferred
	}
	best := preferred
	least, slowest := d.sweepSeconds(preferred)
	least *= 1 - clearGain
	for rows := 2 * preferred.Rows; rows <= min(d.minRows, maxAutoDepth); rows *= 2 {
		deeper := haloDepth{Rows: rows, Sweeps: preferred.Sweeps}
		if s, _ := d.sweepSeconds(deeper); s < least {
			best, least = deeper, s
		}
	}
	best.Why = fmt.Sprintf("auto: %v", slowest)
	return best
}

// sweepSeconds estimates the time of a sweep with halos of the given depth T, and names the slowest link. A rank sweeps
// its rows and, on the average of the T sweeps between two exchanges, (T-1)/2 rows beyond each end. An exchange runs
// beside the last pass; the rank waits for the rest once in T sweeps.
func (d deepening) sweepSeconds(t haloDepth) (seconds float64, slowest linkTime) {
	points := gpuPoints32
	if d.mesh.DType == solver.Float64 {
		points = gpuPoints64
	}
	sweep := gpuSweepSeconds + float64(d.mesh.NX)*float64(d.minRows+t.Rows-1)/points
	share := 1.0
	if d.mode == halo.ModeDirect {
		share = directShare
	}
	longest := -1.0
	for _, l := range d.links {
		perByte := max(0, l.Large-l.Trip).Seconds() / probeBytes
		exchange := share * (l.Trip.Seconds() + perByte*float64(t.Rows)*float64(d.mesh.RowBytes()))
		if exchange > longest {
			longest, slowest = exchange, l
		}
	}
	return sweep + max(0, longest-float64(t.Sweeps)*sweep)/float64(t.Rows), slowest
}
