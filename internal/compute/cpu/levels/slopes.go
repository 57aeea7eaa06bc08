package levels

import (
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// slopes is the restriction from the rows of a level to the rows of the next coarser one that the rank owns.
type slopes struct {
	axis multigrid.Axis
	own  solver.Stripe // coarse rows
}

func newSlopes(a multigrid.Axis, own solver.Stripe) *slopes { return &slopes{axis: a, own: own} }

// part returns the coarse rows that belong to fine rows s; own are all fine rows of the rank.
func (r *slopes) part(s, own solver.Stripe) solver.Stripe {
	at := func(y int) int {
		switch {
		case y <= own.Lo:
			return r.own.Lo
		case y >= own.Hi:
			return r.own.Hi
		}
		y = (y*r.axis.Coarse + r.axis.Fine - 1) / r.axis.Fine
		return min(max(y, r.own.Lo), r.own.Hi)
	}
	return solver.Stripe{Lo: at(s.Lo), Hi: at(s.Hi)}
}

// reads returns the fine rows that the restriction to coarse rows s reads.
func (r *slopes) reads(s solver.Stripe) solver.Stripe {
	if s.Rows() <= 0 {
		return solver.Stripe{}
	}
	lo, _ := r.axis.Around(s.Lo)
	first, n := r.axis.Around(s.Hi - 1)
	return solver.Stripe{Lo: lo, Hi: first + n}
}
