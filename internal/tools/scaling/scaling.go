// Package scaling turns the reports of repeated runs into the records of a benchmark: speed-up, efficiency and the
// fraction of the speed of a copy. It writes records as a table, JSON and CSV.
package scaling

// Kind is the kind of scaling: what grows with the number of ranks.
type Kind string

// The kinds.
const (
	Strong Kind = "strong" // nothing grows: the mesh is the same for any number of ranks
	Weak   Kind = "weak"   // the rows of the mesh grow, so that each rank has the same number
)

// SpeedUp returns the ratio of the speeds of ranks ranks and of 1 rank: serial/parallel for Strong, and
// ranks*serial/parallel for Weak, where the mesh is ranks times as large. serial is the time of 1 rank, and parallel
// the time of ranks ranks.
func (k Kind) SpeedUp(serial, parallel float64, ranks int) float64 {
	if k == Weak {
		return float64(ranks) * serial / parallel
	}
	return serial / parallel
}

// Efficiency returns the speed-up divided by ranks: serial/(ranks*parallel) for Strong, serial/parallel for Weak.
func (k Kind) Efficiency(serial, parallel float64, ranks int) float64 {
	if k == Weak {
		return serial / parallel
	}
	return serial / (float64(ranks) * parallel)
}

// Traffic returns the effective traffic of a speed in GLUP/s, in GB/s (10^9 bytes per second). Each update counts as
// one value read and one written, even if caches or a pass of several sweeps save traffic.
func Traffic(glups float64, valueBytes int) float64 { return 2 * float64(valueBytes) * glups }
