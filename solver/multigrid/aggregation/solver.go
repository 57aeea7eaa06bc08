package aggregation

import (
	"context"
	"errors"
)

// Solver solves the equations of level 1 by a cycle. It has vectors for one at a time.
type Solver struct {
	levels  *Levels
	threads int
}

// NewSolver returns a solver that works on the given number of threads. Its bits do not depend on that.
func (l *Levels) NewSolver(threads int) *Solver { return &Solver{levels: l, threads: threads} }

// Solve sets x to the result of a cycle for the right-hand side b, by unknown of level 1. It fails if the context ends.
func (s *Solver) Solve(ctx context.Context, x, b []float64) error {
	return errors.New("aggregation: not yet")
}

// Bytes returns the bytes of memory that the solver takes beside that of the levels.
func (s *Solver) Bytes() int64 { return 0 }
