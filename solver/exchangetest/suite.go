// Package exchangetest is the conformance suite of solver.Exchange. It drives several ranks, each with a goroutine, a
// backend and an exchange of its own, and compares their halos and stripes, bit for bit, with the iteration over the
// whole mesh.
package exchangetest

import (
	"context"
	"fmt"
	"testing"

	"jacobi/solver"
)

// Rank is one rank of a run. If its Exchange is an io.Closer, the suite closes it after the last call of any rank, and
// closes the backend when all exchanges are closed.
type Rank struct {
	Backend  solver.Backend
	Exchange solver.Exchange
	// Halo copies the halo of now beyond a side, Depth dense rows, as it is after a Wait. It has no effect on later
	// calls of Backend and Exchange.
	Halo func(ctx context.Context, side solver.Side, dst []byte) error
}

// Open opens one rank. The suite calls it for all ranks at once, each in the goroutine that makes all later calls to
// the rank, so Open may wait for other ranks until ctx ends.
type Open func(ctx context.Context, rank int) (Rank, error)

// Factory prepares a run of ranks with the given layouts. It may skip a test that the machine cannot run.
type Factory func(t *testing.T, layouts []solver.Layout) Open

// Case is one run.
type Case struct {
	Mesh      solver.Mesh
	Ranks     int
	Depth     int
	Sweeps    int // in a pass; 0: Depth, or as many as the backend does
	Exchanges int
}

// String names a case.
func (c Case) String() string {
	periodic := ""
	if c.Mesh.PeriodicRows() {
		periodic = " periodic"
	}
	return fmt.Sprintf("ranks %d%s %v depth %d by %d", c.Ranks, periodic, c.Mesh.DType, c.Depth, c.Sweeps)
}

// Run checks an exchange on the standard cases. With every one of them it also holds one rank back, so that its
// neighbours are as far ahead of it as they can be.
func Run(t *testing.T, factory Factory) {
	for _, c := range Cases() {
		t.Run(c.String(), func(t *testing.T) {
			t.Run("free", func(t *testing.T) { runCase(t, factory, c, nobody) })
			if c.Ranks > 1 {
				t.Run("slow neighbour", func(t *testing.T) { runCase(t, factory, c, c.Ranks/2) })
			}
		})
	}
	for _, periodic := range []bool{false, true} {
		for _, ranks := range []int{2, 3} {
			c := newCase(ranks, periodic, solver.Float64, 4, 0)
			t.Run("cancel "+c.String(), func(t *testing.T) { runCancel(t, factory, c) })
		}
	}
}

// Cases returns the standard cases: one to three ranks, some of which are neighbours on both sides or their own
// neighbours, and halos that are used up in one pass or in several.
func Cases() (cases []Case) {
	for _, d := range []solver.DType{solver.Float32, solver.Float64} {
		for _, periodic := range []bool{false, true} {
			for ranks := 1; ranks <= 3; ranks++ {
				cases = append(cases, newCase(ranks, periodic, d, 1, 0), newCase(ranks, periodic, d, 8, 0),
					newCase(ranks, periodic, d, 8, 3), newCase(ranks, periodic, d, 20, 0))
			}
		}
	}
	return cases
}

func newCase(ranks int, periodic bool, d solver.DType, depth, sweeps int) Case {
	return Case{Mesh: solver.Mesh{NX: 37, NY: 24*ranks + 5, DType: d, Walls: solver.WrapRows(periodic)}, Ranks: ranks,
		Depth: depth, Sweeps: sweeps, Exchanges: 5}
}

// layouts returns the layouts of all ranks.
func (c Case) layouts(e solver.Magnitude) ([]solver.Layout, error) {
	stripes, err := solver.Partition(c.Mesh.Interior(), c.Ranks, c.Depth)
	if err != nil {
		return nil, err
	}
	var layouts []solver.Layout
	for r, s := range stripes {
		layouts = append(layouts, solver.Layout{Mesh: c.Mesh, Stripe: s, Depth: c.Depth, MaxSweeps: c.Sweeps,
			Magnitude: e, Neighbour: [2]bool{Neighbour(c.Mesh, c.Ranks, r, solver.Top) >= 0,
				Neighbour(c.Mesh, c.Ranks, r, solver.Bottom) >= 0}})
	}
	return layouts, nil
}

// Neighbour returns the rank beyond a side of a rank, or -1 if there is none.
func Neighbour(m solver.Mesh, ranks, rank int, side solver.Side) int {
	n := rank + 2*int(side) - 1
	switch {
	case m.PeriodicRows():
		return (n + ranks) % ranks
	case n == ranks:
		return -1
	}
	return n
}
