package multigrid_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// coarsestCase returns a random layout whose coarsest level has a solution.
func coarsestCase(t *testing.T, r *rand.Rand) (multigrid.Layout, solver.Mesh) {
	t.Helper()
	ends := func() (a, b solver.Wall) {
		if r.IntN(3) == 0 {
			return solver.Periodic, solver.Periodic
		}
		walls := []solver.Wall{solver.Dirichlet, solver.Neumann}
		return walls[r.IntN(2)], walls[r.IntN(2)]
	}
	m := solver.Mesh{NX: 3 + r.IntN(30), NY: 3 + r.IntN(30), DType: solver.Float64}
	m.Walls.Left, m.Walls.Right = ends()
	m.Walls.Top, m.Walls.Bottom = ends()
	rho := math.Pow(10, 6*r.Float64()-3)
	op := solver.Operator{Scale: (1 + rho) / (2*(1+rho) + 0.001), Blend: rho / (1 + rho)}
	plan, err := multigrid.NewPlan(m, op)
	if err != nil {
		t.Fatal(err)
	}
	return multigrid.Layout{Plan: plan}, plan.Levels[len(plan.Levels)-1].Mesh
}

// TestCoarsestPoint puts solutions into the equations of the level, point by point.
func TestCoarsestPoint(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 11))
	for range 500 {
		l, m := coarsestCase(t, r)
		f, err := l.NewFactors(l.Plan.CoarsestPoint)
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		u, right := make([]float64, m.NX*m.NY), make([]float64, m.NX*m.NY)
		var places []int
		largest := 0.0
		f.Solve(func(x, y int) float64 {
			right[y*m.NX+x] = r.Float64() - 0.5
			return right[y*m.NX+x]
		}, func(x, y int, v float64) {
			places = append(places, y*m.NX+x)
			u[y*m.NX+x], largest = v, max(largest, math.Abs(v))
		})
		if n := f.Blocks * f.Slots; len(places) != n {
			t.Errorf("%+v: %d of %d points are unknowns", m, len(places), n)
		}
		value := func(px, py int) float64 {
			return u[beside(py, m.NY, m.Walls.Top)*m.NX+beside(px, m.NX, m.Walls.Left)]
		}
		c := l.Plan.Coarsest
		for _, place := range places {
			px, py := place%m.NX, place/m.NX
			rest := u[place] - c.X*(value(px-1, py)+value(px+1, py)) - c.Y*(value(px, py-1)+value(px, py+1)) -
				right[place]
			if !(math.Abs(rest) <= 1e-14*(1+largest)) {
				t.Errorf("%+v: a residual of %g at (%d, %d), values up to %g", m, rest, px, py, largest)
			}
		}
	}
}

// beside returns the place of n whose value place i has, which may lie beyond a wall.
func beside(i, n int, w solver.Wall) int {
	switch {
	case w == solver.Periodic:
		return 1 + (i-1+n-2)%(n-2)
	case i < 0:
		return 1
	case i == n:
		return n - 2
	}
	return i
}

// TestWhereTheCoarsestLevelDecides checks cycles on meshes on which sweeps of the coarsest level took thousands, or
// lost the screening: with screening alone to determine a constant, and long and thin ones.
func TestWhereTheCoarsestLevelDecides(t *testing.T) {
	skipAlone(t)
	const neumann, periodic = solver.Neumann, solver.Periodic
	all := solver.Walls{Left: neumann, Right: neumann, Top: neumann, Bottom: neumann}
	sides, ring := solver.Walls{Left: neumann, Right: neumann}, solver.Walls{Left: periodic, Right: periodic}
	rings := solver.Walls{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic}
	screened := func(n int, k2 float64) solver.Operator {
		return solver.Operator{Scale: 2 / (4 + k2/float64(n*n)), Blend: 0.5}
	}
	high := func(nx, ny int, height float64) solver.Operator {
		rho := math.Pow(float64(ny)/float64(nx)/height, 2)
		return solver.Operator{Scale: 0.5, Blend: rho / (1 + rho)}
	}
	for _, c := range []struct {
		nx, ny int
		walls  solver.Walls
		op     solver.Operator
	}{
		{65, 65, all, screened(64, 1e-6)}, {65, 65, all, screened(64, 1e-8)}, {66, 66, rings, screened(64, 1e-7)},
		{65, 49, all, screened(64, 3e-6)},
		{33, 65, sides, high(32, 64, 2000)}, {33, 65, sides, high(32, 64, 10000)}, {34, 65, ring, high(32, 64, 10000)},
		{65, 33, solver.Walls{Top: periodic, Bottom: periodic}, high(64, 31, 1e-4)},
		{9, 3000, sides, high(8, 2999, 375)},
		{3000, 9, solver.Walls{Top: neumann, Bottom: neumann}, high(2999, 8, 1./375)},
		{9, 10000, sides, high(8, 9999, 1250)}, {3, 20001, sides, high(2, 20000, 10000)},
	} {
		t.Run(fmt.Sprintf("%dx%d %v %.3g %.3g", c.nx, c.ny, c.walls, c.op.Scale, c.op.Blend), func(t *testing.T) {
			norms := norms(t, solver.Mesh{NX: c.nx, NY: c.ny, DType: solver.Float64, Walls: c.walls}, c.op, 8)
			if !(norms[8] <= 1e-9*norms[0]) {
				t.Errorf("norms %.1e: want 1e-9 of the first one after 8 cycles", norms)
			}
		})
	}
}
