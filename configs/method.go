package configs

import (
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// The methods.
const (
	Jacobi    = "jacobi"
	Chebyshev = "chebyshev"
	Multigrid = "multigrid"
)

// The fields with which a run begins.
const (
	StartInitial = "initial" // the initial field
	StartFull    = "full"    // the one to which full multigrid leads
)

// FullStart reports whether the run begins with full multigrid.
func (s Solver) FullStart() bool { return s.Start == StartFull }

// Multigrid reports whether the method is multigrid.
func (s Solver) Multigrid() bool { return s.Method == Multigrid }

// Chebyshev reports whether the method is Chebyshev's iteration.
func (s Solver) Chebyshev() bool { return s.Method == Chebyshev }

// Accelerated reports whether the cycles are accelerated by conjugate gradients. fixed reports whether there are fixed
// points inside the mesh: without them, plain cycles take less time.
func (s Solver) Accelerated(fixed bool) bool {
	return s.Multigrid() && (s.Acceleration == "cg" || s.Acceleration == "auto" && fixed)
}

// Norms says which sweeps of Jacobi's method have a norm.
func (s Solver) Norms() solver.Cadence { return solver.EveryNth(s.NormEvery) }

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
	v.oneOf("solver.method", s.Method, Auto, Jacobi, Chebyshev, Multigrid)
	v.oneOf("solver.acceleration", s.Acceleration, "auto", "cg", "none")
	if t := s.Tolerance; !(t >= 0) || math.IsInf(t, 1) {
		v.fault("solver.tolerance %s: a finite number of at least 0 is wanted", formatFloat(t))
	}
	if t := s.RelativeTolerance; !(t >= 0 && t < 1) {
		v.fault("solver.relative_tolerance %s: a number of at least 0 and below 1 is wanted", formatFloat(t))
	}
	v.atLeast("solver.max_iterations", s.MaxIterations, 1)
	v.normEvery(s)
	if !s.Multigrid() && s.Acceleration == "cg" {
		v.fault("solver.acceleration %q: solver.method %s has it, %s has not", s.Acceleration, Multigrid,
			s.MethodText())
	}
	v.oneOf("solver.start", s.Start, StartInitial, StartFull)
	if !s.Multigrid() && s.FullStart() {
		v.fault("solver.start %q: solver.method %s has it, %s has not", s.Start, Multigrid, s.MethodText())
	}
	if s.Method == Jacobi && s.RelativeTolerance != 0 {
		v.fault("solver.relative_tolerance %s: solver.method %s and %s have it, %s has not",
			formatFloat(s.RelativeTolerance), Chebyshev, Multigrid, s.MethodText())
	}
	if c.Grid.DType == "float32" && (s.Chebyshev() || s.Multigrid()) {
		v.fault("grid.dtype %q: solver.method %s needs float64", c.Grid.DType, s.Method)
	}
	if s.Multigrid() && c.Halo.Depth != 0 {
		v.fault("halo.depth %d: solver.method %s has a depth of its own; auto is allowed", c.Halo.Depth, s.MethodText())
	}
}

// normEvery checks the distance of norms.
func (v *validator) normEvery(s Solver) {
	v.atLeast("solver.norm_every", s.NormEvery, 1)
	switch {
	case s.NormEvery <= 1:
	case s.Chebyshev() || s.Multigrid():
		v.fault("solver.norm_every %d: solver.method %s has it; %s computes few norms, and needs all of them",
			s.NormEvery, Jacobi, s.MethodText())
	case s.NormEvery > s.MaxIterations:
		v.fault("solver.norm_every %d: a run of at most solver.max_iterations %d sweeps would have no norm",
			s.NormEvery, s.MaxIterations)
	}
}
