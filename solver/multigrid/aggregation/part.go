package aggregation

import (
	"context"
	"errors"

	"jacobi/solver"
)

// Row is the equations of a row of points, NX values each, as solver.Values of these names.
type Row struct {
	Diagonal    []float64 // 0 at a point that is not an unknown
	East, South []float64 // faces; those of walls and to points that are not unknowns count for the excess
}

// Part is what one rank computes of level 1: the sets of the points of the rows of tiles that it covers, and the
// equations of those that it owns.
type Part struct {
	tiling Tiling
}

// Aggregate computes a part on the given number of threads. Covered and owned are rows of tiles; the owned ones and the
// ones beside them are covered. read reads a row of the mesh, also one of a fixed wall; of the rows of tiles that are
// covered, and the rows above and below them. It may be called by several goroutines at once.
func (t Tiling) Aggregate(ctx context.Context, read func(y int, to Row) error, covered, owned solver.Stripe,
	threads int) (*Part, error) {
	return nil, errors.New("aggregation: not yet")
}

// Sets returns, by column, the index of the set of each point of row y among those of its row of tiles, and -1 at
// points that are not unknowns. The row lies in a row of tiles that is covered; it may lie beyond the ends of the mesh.
func (p *Part) Sets(y int) []int32 { return nil }

// Bytes returns the equations of the rows of tiles that are owned, for New.
func (p *Part) Bytes() []byte { return nil }
