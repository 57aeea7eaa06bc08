// Package scaling turns the reports of repeated runs into a benchmark's records: how much faster more ranks are, how
// near that is to what they could be, and how near the copy of a field; and writes them as a table, JSON and CSV.
package scaling

// Kind says what grows with the ranks.
type Kind string

// The kinds.
const (
	Strong Kind = "strong" // nothing: the same mesh for any number of ranks
	Weak   Kind = "weak"   // the rows of the mesh, so that each rank has as many
)

// SpeedUp returns how many times the work of one rank is done in its time: serial/parallel of the same mesh; of a mesh
// that has grown with the ranks, ranks times that. serial and parallel are the times of 1 and of so many ranks.
func (k Kind) SpeedUp(serial, parallel float64, ranks int) float64 {
	if k == Weak {
		return float64(ranks) * serial / parallel
	}
	return serial / parallel
}

// Efficiency returns the speed-up over the ranks: serial/(ranks*parallel) for Strong, serial/parallel for Weak.
func (k Kind) Efficiency(serial, parallel float64, ranks int) float64 {
	if k == Weak {
		return serial / parallel
	}
	return serial / (float64(ranks) * parallel)
}

// Traffic returns the effective traffic in GB/s (10^9 bytes a second) of so many GLUP/s: each update counts as one
// value read and one written, whatever the caches and a pass of several sweeps save.
func Traffic(glups float64, valueBytes int) float64 { return 2 * float64(valueBytes) * glups }
