package solver

// CycleSaving decides when to save the state of a run whose flags come with the norm of the same field. It depends only
// on the number of iterations and on the flags of all ranks, so all ranks decide alike.
type CycleSaving struct {
	every  int  // iterations from one regular save to the next; 0 for never
	next   int  // iterations after which the next regular save is due; MaxInt for never
	wanted bool // a save is due as soon as no rank is busy
}

// NewCycleSaving returns the CycleSaving of a run that has done some iterations and saves regularly every so many; 0
// for never.
func NewCycleSaving(iterations, every int) CycleSaving {
	return CycleSaving{every: every, next: nextSave(iterations, every)}
}

// Due reports whether to save now, after the given number of iterations.
func (s *CycleSaving) Due(iterations int, flags Flags) bool {
	wanted := s.wanted || flags&FlagSave != 0
	if iterations >= s.next {
		wanted = true
		s.next = nextSave(iterations, s.every)
	}
	s.wanted = wanted && flags&FlagBusy != 0
	return wanted && !s.wanted
}
