package cuda

import "jacobi/solver"

// halos says what the kernel of a pass does with halos besides reading them. The Exchange makes the value, and Backend
// hands it to the kernel. With the zero value the kernel does nothing else.
type halos struct {
	awaited solver.ExchangeNumber // rows that the kernel waits for; 0: none
	posted  solver.ExchangeNumber // the exchange whose rows it hands on; 0: none
	sides   [2]passSide           // where rows go, and the words of both
}

// mover is what Backend asks of its Exchange.
type mover interface {
	// beforeEdges tells neighbours, after all earlier work of the fast stream, that the halo of next is free for the
	// next exchange, if they cannot know.
	beforeEdges() error
	// inKernel returns what the kernel of a pass over the whole stripe does with halos; exchange tells whether an
	// exchange follows the pass. ok is false if kernels do not move rows.
	inKernel(exchange bool) (h halos, ok bool)
	// settle makes the fast stream wait for halos for which no work waits yet.
	settle() error
	// loaded makes later work of the fast stream wait until the neighbours that write into this rank's memory have
	// loaded their fields, too. A rank that is ahead would hand on rows into a halo that a Load overwrites.
	loaded() error
}

// alone is the mover of a Backend without an Exchange.
type alone struct{}

func (alone) beforeEdges() error          { return nil }
func (alone) inKernel(bool) (halos, bool) { return halos{}, false }
func (alone) settle() error               { return nil }
func (alone) loaded() error               { return nil }
