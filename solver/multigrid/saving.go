package multigrid

import (
	"math"

	"jacobi/solver"
)

// saving decides when to save the state. It depends only on the number of cycles and on the flags of all ranks, which
// came with the norm of the same field, so all ranks decide alike.
type saving struct {
	next   int  // cycles after which the next regular save is due; MaxInt for never
	wanted bool // a save is due as soon as no rank is busy
}

func newSaving(cycles, every int) saving {
	if every == 0 || cycles > math.MaxInt-every {
		return saving{next: math.MaxInt}
	}
	return saving{next: (cycles/every + 1) * every}
}

// due reports whether to save now, after the given number of cycles.
func (s *saving) due(cycles, every int, flags solver.Flags) bool {
	wanted := s.wanted || flags&solver.FlagSave != 0
	if cycles >= s.next {
		wanted = true
		s.next = newSaving(cycles, every).next
	}
	s.wanted = wanted && flags&solver.FlagBusy != 0
	return wanted && !s.wanted
}
