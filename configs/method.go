package configs

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"jacobi/solver"
	"jacobi/solver/methods"
)

// The methods that Auto takes.
const (
	Jacobi    = methods.Jacobi
	Multigrid = methods.Multigrid
)

// Entry returns what the method can do.
func (s Solver) Entry() methods.Method { return methods.Of(s.Method) }

// Norms says which iterations have a norm.
func (s Solver) Norms() solver.Cadence { return solver.EveryNth(s.NormEvery) }

// Step returns what the method calls an iteration.
func (s Solver) Step() string { return s.Entry().Unit }

// solver checks the method and when it ends.
func (v *validator) solver(c Config) {
	s := c.Solver
	v.oneOf("solver.method", s.Method, append([]string{Auto}, methods.Names(nil)...)...)
	if t := s.Tolerance; !(t >= 0) || math.IsInf(t, 1) {
		v.fault("solver.tolerance %s: must be a finite number of at least 0", formatFloat(t))
	}
	if t := s.RelativeTolerance; !(t >= 0 && t < 1) {
		v.fault("solver.relative_tolerance %s: must be a number of at least 0 and below 1", formatFloat(t))
	}
	if !c.pending() {
		v.method(c)
	}
}

// method refuses keys that another method has.
func (v *validator) method(c Config) {
	s, can := c.Solver, c.Solver.Entry()
	needs := func(fault bool, key, value string, has func(methods.Method) bool) {
		if fault {
			v.fault("%s %s: needs solver.method %s, not %s", key, value,
				english.WordSeries(methods.Names(has), "or"), s.MethodText())
		}
	}
	needs(!can.Levels && s.MeshError == "on", "solver.mesh_error", `"on"`,
		func(m methods.Method) bool { return m.Levels })
	needs(c.Grid.DType == "float32" && !can.Float32, "grid.dtype", `"float32"`,
		func(m methods.Method) bool { return m.Float32 })
	needs(can.Halo > 0 && c.Halo.Depth != 0, "halo.depth", fmt.Sprint(c.Halo.Depth),
		func(m methods.Method) bool { return m.Halo == 0 })
	needs(s.NormEvery > 1 && !can.SomeNorms, "solver.norm_every", fmt.Sprint(s.NormEvery),
		func(m methods.Method) bool { return m.SomeNorms })
	for _, k := range keys() {
		if k.kind == interval {
			i, _ := k.value(c).(Interval)
			unit := strings.TrimSuffix(i.Unit, "s")
			needs(unit != "" && unit != can.Unit, k.name, strconv.Quote(i.String()),
				func(m methods.Method) bool { return m.Unit == unit })
		}
	}
	if can.SomeNorms && s.NormEvery > s.MaxIterations {
		v.fault("solver.norm_every %d: a run of at most solver.max_iterations %d sweeps would have no norm",
			s.NormEvery, s.MaxIterations)
	}
}

// Verdict says whether a run met its tolerance or did its iterations.
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

// Working returns the number of ranks among which the mesh is divided: as many of the first ranks as can have enough
// rows. The others stay idle. The number follows from keys alone, so the launcher and all ranks find the same one.
func (c Config) Working() int {
	return min(c.Run.Ranks, max(1, solver.MaxRanks(c.interior(), c.leastRows())))
}

// Idle says in one line how many ranks stay idle, and why; "" if none does.
func (c Config) Idle() string {
	working := c.Working()
	idle, why, verb := c.Run.Ranks-working, "", "stay"
	switch {
	case idle <= 0:
		return ""
	case c.Solver.Entry().Halo > 0:
		why = fmt.Sprintf("with solver.method %s, ", c.Solver.Method)
	case c.Halo.Depth > 0:
		why = fmt.Sprintf("with halo.depth %d, ", c.Halo.Depth)
	}
	if idle == 1 {
		verb = "stays"
	}
	return fmt.Sprintf("%d of %d ranks %s idle: %sgrid.ny %d has rows for %d", idle, c.Run.Ranks, verb, why, c.Grid.NY,
		working)
}

// leastRows returns the fewest rows that a rank among others must have.
func (c Config) leastRows() int {
	return max(1, cmp.Or(c.Solver.Entry().Halo, c.Halo.Depth))
}

// interior returns the interior rows of the mesh. Validate reports the errors of the walls.
func (c Config) interior() solver.Stripe {
	walls, _ := c.Problem.Walls(c.Grid.DType)
	return solver.Mesh{NX: c.Grid.NX, NY: c.Grid.NY, Walls: walls}.Interior()
}

// The values of run.balance that are no weights.
const (
	BalanceEqual = "equal" // stripes differ by at most one row group
	BalanceAuto  = "auto"  // stripes in proportion to the speeds that the ranks measure
)

// Weights returns the weights of run.balance, one a rank; nil for equal and auto.
func (r Run) Weights() ([]float64, error) {
	if r.Balance == BalanceEqual || r.Balance == BalanceAuto {
		return nil, nil
	}
	wrong := fmt.Errorf("run.balance %q: must be equal, auto, or a positive number for each of %d ranks, as in 2,1",
		r.Balance, r.Ranks)
	parts := strings.Split(r.Balance, ",")
	weights := make([]float64, len(parts))
	for rank, text := range parts {
		w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(w >= minWeight && w <= maxWeight) {
			return nil, wrong
		}
		weights[rank] = w
	}
	if len(weights) != r.Ranks {
		return nil, wrong
	}
	return weights, nil
}

// Weights returns the weights of run.balance of the working ranks; nil for equal and auto.
func (c Config) Weights() ([]float64, error) {
	weights, err := c.Run.Weights()
	if weights == nil {
		return nil, err
	}
	return weights[:c.Working()], err
}

// Weights beyond these bounds are mistakes, and their sums might not be finite.
const (
	minWeight = 1e-9
	maxWeight = 1e9
)
