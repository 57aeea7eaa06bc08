// Package methods is the table of the methods of a run: their names and capabilities. The rest of the program
// asks the table, so that a further method is a package with a solver.Iteration and an entry here.
package methods

import (
	"slices"

	"jacobi/solver/multigrid"
)

// The methods.
const (
	Jacobi    = "jacobi"
	Multigrid = "multigrid"
)

// Unnamed is the method of checkpoints that name none, as those of early versions do.
const Unnamed = Jacobi

// The units in which methods count their iterations.
const (
	Sweep = "sweep"
	Cycle = "cycle"
)

// Method is an entry of the table.
type Method struct {
	Name               string // in solver.method
	Unit               string // an iteration: Sweep or Cycle
	SweepsPerIteration int    // of the mesh in an iteration
	Delay              int    // as in solver.Traits
	// Halo is the rows of a halo, and the fewest rows of a rank among others; 0: halo.depth says.
	Halo      int
	Float32   bool // the field may be in float32
	SomeNorms bool // solver.norm_every: iterations may go without a norm
	// Floor reports whether a stall of the method is a proof that only rounding is left.
	Floor bool
	// Levels reports whether the method works on the levels of a multigrid.Device rather than on a solver.Backend. Its
	// iterations are then Cycles, in the course of which values may exceed those of the data.
	Levels bool
	// Instead is a method that takes far less time; "" if there is none.
	Instead string
}

// All returns the methods in the order in which they are listed.
func All() []Method {
	return []Method{
		{Name: Jacobi, Unit: Sweep, SweepsPerIteration: 1, Delay: 2, Float32: true, SomeNorms: true,
			Instead: Multigrid},
		{Name: Multigrid, Unit: Cycle, SweepsPerIteration: 2 * multigrid.SmootherSweeps, Halo: multigrid.HaloDepth,
			Floor: true, Levels: true},
	}
}

// Find returns the method of that name.
func Find(name string) (m Method, ok bool) {
	all := All()
	if i := slices.IndexFunc(all, func(m Method) bool { return m.Name == name }); i >= 0 {
		return all[i], true
	}
	return m, false
}

// Of returns the method of that name, or that of Jacobi for a name that is none, such as "auto".
func Of(name string) Method {
	if m, ok := Find(name); ok {
		return m
	}
	return All()[0]
}

// Names returns the names of all methods that can do something; of all methods for nil.
func Names(can func(Method) bool) (names []string) {
	for _, m := range All() {
		if can == nil || can(m) {
			names = append(names, m.Name)
		}
	}
	return names
}
