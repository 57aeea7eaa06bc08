package levels

import (
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// slopes is the restriction from the rows of a level to the rows of the next coarser one that the rank owns.
type slopes struct {
	own    solver.Stripe                     // coarse rows
	from   func(y int) int                   // the first coarse row that lies on fine row y or behind it
	around func(coarse int) (first, end int) // the fine rows that a coarse row reads
}

func newSlopes(a multigrid.Axis, own solver.Stripe) *slopes {
	return &slopes{own: own,
		from: func(y int) int { return (y*a.Coarse + a.Fine - 1) / a.Fine },
		around: func(coarse int) (first, end int) {
			first, n := a.Around(coarse)
			return first, first + n
		},
	}
}

// part returns the coarse rows that belong to fine rows s; own are all fine rows of the rank.
func (r *slopes) part(s, own solver.Stripe) solver.Stripe {
	at := func(y int) int {
		switch {
		case y <= own.Lo:
			return r.own.Lo
		case y >= own.Hi:
			return r.own.Hi
		}
		return min(max(r.from(y), r.own.Lo), r.own.Hi)
	}
	return solver.Stripe{Lo: at(s.Lo), Hi: at(s.Hi)}
}

// reads returns the fine rows that the restriction to coarse rows s reads.
func (r *slopes) reads(s solver.Stripe) solver.Stripe {
	if s.Rows() <= 0 {
		return solver.Stripe{}
	}
	lo, _ := r.around(s.Lo)
	_, hi := r.around(s.Hi - 1)
	return solver.Stripe{Lo: lo, Hi: hi}
}
