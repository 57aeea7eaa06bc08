package configs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

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
	wanted := fmt.Sprintf("it must be equal, auto, or a positive number for each of %d ranks, as in 2,1", r.Ranks)
	parts := strings.Split(r.Balance, ",")
	weights := make([]float64, len(parts))
	for rank, text := range parts {
		w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(w >= minWeight && w <= maxWeight) {
			return nil, fmt.Errorf("run.balance %q: %q is the weight of rank %d; %s", r.Balance, text, rank, wanted)
		}
		weights[rank] = w
	}
	if len(weights) != r.Ranks {
		return nil, fmt.Errorf("run.balance %q: it has %d weights, and run.ranks is %d; %s", r.Balance, len(weights),
			r.Ranks, wanted)
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
