package configs

import (
	"fmt"
	"math"

	"jacobi/internal/elementary"
	"jacobi/solver"
	"jacobi/solver/chebyshev"
	"jacobi/solver/multigrid"
)

// Auto as solver.method leaves the method to Load; see choose.
const Auto = "auto"

// EnvWhy is the variable in which a launcher gives Solver.Why to its ranks, whose solver.method is no longer Auto.
const EnvWhy = "JACOBI_METHOD_WHY"

// benchmark is the preset with which Auto stays Jacobi: its norms after a number of sweeps are known.
const benchmark = "gtc2019"

const presetWhy = "problem.preset " + benchmark

// Chosen reports whether solver.method was Auto.
func (s Solver) Chosen() bool { return s.Why != "" }

// Prefer returns c with the given method, for the given reason, unless the user has named one.
func (c Config) Prefer(method, why string) Config {
	if c.Solver.Chosen() {
		c.Solver.Method, c.Solver.Why = method, why
	}
	for _, i := range c.intervals() {
		*i.every = i.every.of(c.Solver)
	}
	return c
}

// MethodText names the method and, where Auto took it, the reason.
func (s Solver) MethodText() string {
	if s.Chosen() {
		return fmt.Sprintf("%s (%s: %s)", s.Method, Auto, s.Why)
	}
	return s.Method
}

// choose returns the method that Auto takes for c, and the reason. The method is Multigrid where that can be used and a
// key needs it, or Jacobi's method would not meet the tolerance within the default of solver.max_iterations. It stays
// Jacobi where keys count sweeps; counted reports that solver.max_iterations was given. The choice depends on the
// configuration alone, and so is the same on all ranks. Where c is not valid, it means nothing.
func choose(c Config, counted bool) (method, why string) {
	s := c.Solver
	need, sweeps := "", "" // keys that count cycles, and keys that count sweeps
	for _, i := range c.intervals() {
		switch {
		case i.every.Cycles:
			need = i.key + " counts cycles"
		case i.every.Sweeps > 0:
			sweeps = i.key + " counts sweeps"
		}
	}
	switch {
	case s.FullStart():
		need = "solver.start " + s.Start
	case s.Acceleration == "cg":
		need = "solver.acceleration " + s.Acceleration
	case s.RelativeTolerance > 0:
		need = "solver.relative_tolerance"
	}
	switch most := c.CycleRanks(); {
	case need == "" && c.Problem.Preset == benchmark:
		return Jacobi, presetWhy
	case c.Grid.DType != "float64":
		return Jacobi, "grid.dtype " + c.Grid.DType
	case c.Run.Ranks > most:
		return Jacobi, fmt.Sprintf("run.ranks %d, and with %s grid.ny %d allows at most %d", c.Run.Ranks, Multigrid,
			c.Grid.NY, most)
	case need != "":
		return Multigrid, need
	case counted:
		return Jacobi, "solver.max_iterations is given"
	case s.NormEvery > 1:
		return Jacobi, "solver.norm_every is given"
	case c.Halo.Depth > 0:
		return Jacobi, "halo.depth is given"
	case sweeps != "":
		return Jacobi, sweeps
	case !(s.Tolerance > 0):
		return Jacobi, "no tolerance"
	case sweepsTo(c) <= float64(s.MaxIterations):
		return Jacobi, fmt.Sprintf("the tolerance takes at most %d sweeps", s.MaxIterations)
	}
	return Multigrid, fmt.Sprintf("the tolerance takes more than %d sweeps", s.MaxIterations)
}

// CycleRanks returns the most ranks among which multigrid can divide the mesh.
func (c Config) CycleRanks() int {
	walls, _ := c.Problem.Walls(c.Grid.DType) // Validate reports the error
	interior := solver.Mesh{NX: c.Grid.NX, NY: c.Grid.NY, Walls: walls}.Interior()
	return max(1, solver.MaxRanks(interior, multigrid.Overlap))
}

// sweepsTo estimates the sweeps of Jacobi's method until the norm is at most solver.tolerance, for a field with an
// error of about 1 in its slowest mode. Fixed points inside the mesh, which make that mode faster, do not count.
func sweepsTo(c Config) float64 {
	walls, err := c.Problem.Walls(c.Grid.DType)
	nx, ny := solver.Intervals(c.Grid.NX, walls.Left), solver.Intervals(c.Grid.NY, walls.Top)
	if err != nil || nx < 1 || ny < 1 {
		return 0
	}
	hx := c.Grid.Width / float64(nx)
	hy := hx
	if c.Grid.Height != 0 {
		hy = c.Grid.Height / float64(ny)
	}
	ratio := hx / hy
	rho := float64(ratio * ratio)
	op := solver.Operator{Blend: rho / (1 + rho)}
	op.Scale = (1 + rho) / (float64(2*(1+rho)) + float64(c.Problem.Screening*float64(hx*hx)))
	slow := chebyshev.LeastOf(solver.Mesh{NX: c.Grid.NX, NY: c.Grid.NY, Walls: walls}, op)
	first := float64(slow*math.Sqrt(float64(nx))) * math.Sqrt(float64(ny)) / 2
	return math.Ceil(elementary.Log(max(1, first/c.Solver.Tolerance)) / slow)
}
