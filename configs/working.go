package configs

import (
	"cmp"
	"fmt"

	"jacobi/solver"
)

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
