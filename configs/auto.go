package configs

import (
	"fmt"
	"strings"

	"jacobi/solver/methods"
)

// Auto as solver.method leaves the method to Load; see resolve.
const Auto = "auto"

// benchmark is the preset of runs that say nothing about a problem. Auto stays Jacobi with it: its norms after a number
// of sweeps are known.
const benchmark = "gtc2019"

// The reasons of Auto.
const (
	presetWhy = "problem.preset " + benchmark
	otherWhy  = "any problem but " + benchmark
	savedWhy  = "that of the checkpoint"
)

// small is the side of a mesh that nobody has named, of any problem but benchmark: it is solved in well under a second,
// and shows whether the problem is the one that was meant.
const small = 513

// The tolerances of runs that name none.
const (
	defaultTolerance  = 1e-8 // of benchmark, absolute
	defaultRelativity = 1e-8 // of any other problem, relative
)

// Chosen reports whether solver.method was Auto.
func (s Solver) Chosen() bool { return s.Why != "" }

// IterationsAsked reports whether the user asked for iterations rather than for a tolerance: a run that ends with the
// last of solver.max_iterations has done what it should.
func (s Solver) IterationsAsked() bool {
	sweepsBenchmark := s.Step() == methods.Sweep && s.Tolerance > 0 // other problems have a relative default
	return s.DefaultTolerance && sweepsBenchmark || s.Tolerance == 0 && s.RelativeTolerance == 0
}

// MethodText names the method and, where Auto took it, the reason.
func (s Solver) MethodText() string {
	if s.Chosen() {
		return fmt.Sprintf("%s (%s: %s)", s.Method, Auto, s.Why)
	}
	return s.Method
}

// resolve returns c with what its keys leave open; given reports whether the user has given a key. It depends on the
// keys and the sizes of files alone, and so gives the same on all ranks.
//
//   - A run with a key of the problem, and without problem.preset, has a problem of the user's own: the preset is "".
//   - The side that is grid.axis is natural.
//   - Auto takes Jacobi for benchmark, and Multigrid for any other problem.
//   - One of grid.nx and grid.ny alone is both. Without either, the mesh has the size of a file of the problem, with a
//     point at each corner of a picture's pixels, or is small.
//   - Without grid.dtype, sweeps of benchmark are in float32, and everything else in float64.
//   - A tolerance that is not given is 0 if the other one is given.
func (c Config) resolve(given map[string]bool) Config {
	if !given["problem.preset"] && own(given) {
		c.Problem.Preset = ""
	}
	if side, _ := c.Problem.axisOf(c.Grid.Axis); side != nil && *side == "" {
		*side = natural
	}
	// A number that Validate refuses stays alone, so that the error names the key that was given.
	switch nx, ny := given["grid.nx"], given["grid.ny"]; {
	case nx && !ny && validSide(c.Grid.NX):
		c.Grid.NY = c.Grid.NX
	case ny && !nx && validSide(c.Grid.NY):
		c.Grid.NX = c.Grid.NY
	case !nx && !ny:
		if size, key := c.Problem.size(); key != "" {
			c.Grid.NX, c.Grid.NY, c.Grid.From = size.X, size.Y, key
		} else if c.Problem.Preset != benchmark {
			c.Grid.NX, c.Grid.NY = small, small
		}
	}
	if c.Solver.Method == Auto {
		c.Solver.Method, c.Solver.Why = Multigrid, otherWhy
		if c.Problem.Preset == benchmark {
			c.Solver.Method, c.Solver.Why = Jacobi, presetWhy
		}
	}
	if given["grid.dtype"] {
		c.Grid.Named = c.Grid.DType
	}
	s := &c.Solver
	switch absolute, relative := given["solver.tolerance"], given["solver.relative_tolerance"]; {
	case absolute && relative:
	case absolute:
		s.RelativeTolerance = 0
	case relative:
		s.Tolerance = 0
	case c.Problem.Preset == benchmark:
		s.Tolerance, s.RelativeTolerance, s.DefaultTolerance = defaultTolerance, 0, true
	default:
		s.Tolerance, s.RelativeTolerance, s.DefaultTolerance = 0, defaultRelativity, true
	}
	return c.typed()
}

// own reports whether a key that describes a problem is given. The points of the mesh and their type do not.
func own(given map[string]bool) bool {
	for key := range given {
		if strings.HasPrefix(key, "problem.") || key == "grid.width" || key == "grid.height" || key == "grid.axis" {
			return true
		}
	}
	return false
}

// typed returns c with the type of the field that its method and grid.dtype mean. With a method that computes in
// float64 alone, float32 is the type of the files.
func (c Config) typed() Config {
	named := c.Grid.Named
	switch {
	case !c.Solver.Entry().Float32 && (named == "" || named == "float32"):
		c.Grid.DType = "float64"
		c.Output.Float32 = c.Output.Float32 || named == "float32"
	case named != "":
		c.Grid.DType = named
	case c.Problem.Preset == benchmark:
		c.Grid.DType = "float32"
	default:
		c.Grid.DType = "float64"
	}
	return c
}

// Prefer returns c with the given method, for the given reason, unless the user has named one.
func (c Config) Prefer(method, why string) Config {
	if !c.Solver.Chosen() {
		return c
	}
	c.Solver.Method, c.Solver.Why = method, why
	return c.typed()
}

// Continue returns c with the method and the type of the checkpoint from which it goes on, unless the user has named
// others.
func (c Config) Continue(method, dtype string) Config {
	c = c.Prefer(method, savedWhy)
	if c.Grid.Named == "" && dtype != "" {
		c.Grid.DType = dtype
	}
	return c
}

// pending reports whether Continue is to give c its method.
func (c Config) pending() bool {
	return c.Checkpoint.Resume != "" && c.Solver.Chosen() && c.Solver.Why != savedWhy
}

// Open reports whether the user has left to Load what Continue takes from a checkpoint.
func (c Config) Open() bool { return c.Solver.Chosen() || c.Grid.Named == "" }
