package configs

import (
	"math"

	"jacobi/solver/multigrid"
)

// The methods.
const (
	Jacobi    = "jacobi"
	Multigrid = "multigrid"
)

// Multigrid reports whether the method is multigrid.
func (s Solver) Multigrid() bool { return s.Method == Multigrid }

// Step returns what the method calls an iteration.
func (s Solver) Step() string {
	if s.Multigrid() {
		return "cycle"
	}
	return "sweep"
}

// HaloDepth returns the rows of a halo with the given number of ranks, or 0 if the keys leave it to the backends.
func (c Config) HaloDepth(ranks int) int {
	switch {
	case !c.Solver.Multigrid():
		return c.Halo.Depth
	case ranks == 1:
		return 1
	}
	return multigrid.Overlap
}

// solver checks the method and when it ends.
func (v *validator) solver(c Config) {
	s := c.Solver
	v.oneOf("solver.method", s.Method, Jacobi, Multigrid)
	if t := s.Tolerance; !(t >= 0) || math.IsInf(t, 1) {
		v.fault("solver.tolerance %s: a finite number of at least 0 is wanted", formatFloat(t))
	}
	if t := s.RelativeTolerance; !(t >= 0 && t < 1) {
		v.fault("solver.relative_tolerance %s: a number of at least 0 and below 1 is wanted", formatFloat(t))
	}
	v.atLeast("solver.max_iterations", s.MaxIterations, 1)
	if !s.Multigrid() {
		if s.RelativeTolerance != 0 {
			v.fault("solver.relative_tolerance %s: solver.method %s has it, %s has not",
				formatFloat(s.RelativeTolerance),
				Multigrid, s.Method)
		}
		return
	}
	if c.Grid.DType == "float32" {
		v.fault("grid.dtype %q: solver.method %s needs float64", c.Grid.DType, Multigrid)
	}
	if c.Halo.Depth != 0 {
		v.fault("halo.depth %d: solver.method %s has a depth of its own; auto is allowed", c.Halo.Depth, Multigrid)
	}
}
