package jacobi

import "jacobi/solver"

const (
	// These bound the passes ahead beyond the first: in number, in sweeps, and in updates of points of the largest
	// stripe. A GPU does maxWorkAhead updates in about a millisecond, the time of several messages between nodes. A
	// core takes 0.3 s in float32 and 0.7 s in float64; a request to stop is as late.
	maxAhead       = 32
	maxSweepsAhead = 512
	maxWorkAhead   = 1 << 31
)

// PassesAhead returns how many passes of the given number of sweeps to sweep before the norms of the oldest of them are
// waited for: Options.Ahead of a run over stripes. It is the same on all ranks.
func PassesAhead(m solver.Mesh, stripes []solver.Stripe, sweeps int) int {
	rows := 0
	for _, s := range stripes {
		rows = max(rows, s.Rows())
	}
	return 1 + min(maxAhead, maxSweepsAhead/sweeps, maxWorkAhead/(rows*m.NX*sweeps))
}
