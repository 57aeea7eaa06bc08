package configs

import (
	"fmt"
	"math"
	"strings"

	"jacobi/solver"
	"jacobi/solver/methods"
)

// The methods that Auto takes.
const (
	Jacobi    = methods.Jacobi
	Multigrid = methods.Multigrid
)

// The fields with which a run begins.
const (
	StartInitial = "initial" // the initial field
	StartFull    = "full"    // the one to which full multigrid leads
)

// FullStart reports whether the run begins with full multigrid.
func (s Solver) FullStart() bool { return s.Start == StartFull }

// Entry returns what the method can do.
func (s Solver) Entry() methods.Method { return methods.Of(s.Method) }

// Accelerated reports whether conjugate gradients accelerate the iterations. hard reports whether there are fixed
// points inside the mesh, or weights of points: without them, plain cycles take less time.
func (s Solver) Accelerated(hard bool) bool {
	return s.Entry().CG && (s.Acceleration == "cg" || s.Acceleration == "auto" && hard)
}

// Norms says which iterations have a norm.
func (s Solver) Norms() solver.Cadence { return solver.EveryNth(s.NormEvery) }

// Step returns what the method calls an iteration.
func (s Solver) Step() string { return s.Entry().Unit }

// HaloDepth returns the rows of a halo, or 0 if the keys leave it to the backends.
func (c Config) HaloDepth() int {
	own := c.Solver.Entry().Halo
	switch {
	case own == 0:
		return c.Halo.Depth
	case c.Working() == 1:
		return 1
	}
	return own
}

// solver checks the method and when it ends.
func (v *validator) solver(c Config) {
	s := c.Solver
	v.oneOf("solver.method", s.Method, append([]string{Auto}, methods.Names(nil)...)...)
	v.oneOf("solver.acceleration", s.Acceleration, "auto", "cg", "none")
	if t := s.Tolerance; !(t >= 0) || math.IsInf(t, 1) {
		v.fault("solver.tolerance %s: must be a finite number of at least 0", formatFloat(t))
	}
	if t := s.RelativeTolerance; !(t >= 0 && t < 1) {
		v.fault("solver.relative_tolerance %s: must be a number of at least 0 and below 1", formatFloat(t))
	}
	v.atLeast("solver.max_iterations", s.MaxIterations, 1)
	v.oneOf("solver.start", s.Start, StartInitial, StartFull)
	v.atLeast("solver.norm_every", s.NormEvery, 1)
	if !c.pending() {
		v.method(c)
	}
}

// method refuses keys that another method has.
func (v *validator) method(c Config) {
	s, can := c.Solver, c.Solver.Entry()
	if !can.CG && s.Acceleration == "cg" {
		v.fault("solver.acceleration %q: needs solver.method %s, not %s", s.Acceleration,
			having(func(m methods.Method) bool { return m.CG }), s.MethodText())
	}
	if !can.Full && s.FullStart() {
		v.fault("solver.start %q: needs solver.method %s, not %s", s.Start,
			having(func(m methods.Method) bool { return m.Full }), s.MethodText())
	}
	v.weighted(c)
	if c.Grid.DType == "float32" && !can.Float32 {
		v.fault("grid.dtype %q: solver.method %s needs float64", c.Grid.DType, s.Method)
	}
	if can.Halo > 0 && c.Halo.Depth != 0 {
		v.fault("halo.depth %d: needs solver.method %s, not %s; write auto", c.Halo.Depth,
			having(func(m methods.Method) bool { return m.Halo == 0 }), s.MethodText())
	}
	switch {
	case s.NormEvery <= 1:
	case !can.SomeNorms:
		v.fault("solver.norm_every %d: needs solver.method %s, not %s, which needs every norm",
			s.NormEvery, having(func(m methods.Method) bool { return m.SomeNorms }), s.MethodText())
	case s.NormEvery > s.MaxIterations:
		v.fault("solver.norm_every %d: a run of at most solver.max_iterations %d sweeps would have no norm",
			s.NormEvery, s.MaxIterations)
	}
	for _, i := range c.intervals() {
		unit := strings.TrimSuffix(i.every.Unit, "s")
		if unit == "" || unit == can.Unit {
			continue
		}
		alone := ""
		if can.Unit == methods.Cycle {
			alone = fmt.Sprintf("; %d alone counts %ss", i.every.Sweeps, can.Unit)
		}
		v.fault("%s %q: %ss need solver.method %s, not %s%s", i.key, i.every, unit,
			having(func(m methods.Method) bool { return m.Unit == unit }), s.MethodText(), alone)
	}
}

// having names the methods that can do something.
func having(can func(methods.Method) bool) string { return strings.Join(methods.Names(can), " or ") }

// Verdict says whether a run did what it was to do.
type Verdict string

// The verdicts.
const (
	Met         Verdict = "met"         // a norm met the tolerance; the default one also at the floor of rounding
	Missed      Verdict = "missed"      // the run was to meet a tolerance, and did not
	Done        Verdict = "done"        // the iterations that were asked for are done
	Interrupted Verdict = "interrupted" // a signal or a time limit ended the run
)

// Verdict judges a run that ended for the given reason. The default tolerance is met at the floor of rounding by a
// method whose runs prove it before they stall.
func (s Solver) Verdict(reason solver.StopReason) Verdict {
	switch {
	case reason == solver.Interrupted:
		return Interrupted
	case reason == solver.Converged,
		reason == solver.Stalled && s.DefaultTolerance && s.Entry().Floor:
		return Met
	case reason != "" && !s.IterationsAsked():
		return Missed
	}
	return Done
}
