package oracle_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"jacobi/internal/compute/oracle"
	"jacobi/solver"
)

// Between fixed walls, a source in the form of a mode has a multiple of that mode as its solution.
func TestSolutionOfAMode(t *testing.T) {
	p := oracle.Problem{Mesh: solver.Mesh{NX: 21, NY: 34, DType: solver.Float64}, Width: 3, Height: 2, Screening: 5,
		Initial: make([]float64, 21*34), Source: make([]float64, 21*34)}
	for i := range p.Source {
		p.Source[i] = math.Sin(2*math.Pi*float64(i%21)/20) * math.Sin(5*math.Pi*float64(i/21)/33)
	}
	eigenvalue := (2-2*math.Cos(2*math.Pi/20))/(0.15*0.15) + (2-2*math.Cos(5*math.Pi/33))/(2./33*2/33) + 5
	u := solve(t, p)
	for i, v := range u {
		if math.Abs(v-p.Source[i]/eigenvalue) > 1e-15 {
			t.Fatalf("point %d: %g, want %g", i, v, p.Source[i]/eigenvalue)
		}
	}
}

// Without walls and points that fix the constant, the screening of the rounded equations determines it, also where a
// part in 10^11 of a sweep is left of that. Without screening nothing does.
func TestSolutionOfAConstant(t *testing.T) {
	const neumann, periodic = solver.Neumann, solver.Periodic
	for _, w := range []solver.Walls{{Left: neumann, Right: neumann, Top: neumann, Bottom: neumann},
		{Left: periodic, Right: periodic, Top: neumann, Bottom: neumann},
		{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic}} {
		p := oracle.Problem{Mesh: solver.Mesh{NX: 30, NY: 18, Walls: w, DType: solver.Float64}, Width: 1, Height: 1,
			Screening: 1e-8, Initial: make([]float64, 30*18), Source: slices.Repeat([]float64{1}, 30*18)}
		hx, hy := 1/float64(solver.Intervals(30, w.Left)), 1/float64(solver.Intervals(18, w.Top))
		rho := hx / hy * (hx / hy)
		d := 2*(1+rho) + p.Screening*(hx*hx)
		want := hx * hx / d / (1 - 2*((1+rho)/d))
		for i, v := range solve(t, p) {
			if math.Abs(v/want-1) > 1e-13 {
				t.Fatalf("walls %v, point %d: %g, want %g", w, i, v, want)
			}
		}
		p.Screening = 0
		if _, err := oracle.NewEquations(p).Solve(); !errors.Is(err, oracle.ErrSingular) {
			t.Errorf("walls %v without screening: %v", w, err)
		}
	}
}

// The solutions of random problems, with walls and points of every kind, solve their equations to the last digits.
func TestSolutionHasNoDefect(t *testing.T) {
	for seed := range uint64(40) {
		p := newRandom(seed)
		e := oracle.NewEquations(p.Problem)
		u := solve(t, p.Problem)
		largest := 0.0
		for _, v := range u {
			largest = max(largest, math.Abs(v))
		}
		for i, d := range e.Defect(u) {
			if math.Abs(d) > 4*0x1p-53*largest {
				t.Fatalf("seed %d: a defect of %g at point %d beside values of %g: %s", seed, d, i, largest, p)
			}
		}
	}
}

func solve(t *testing.T, p oracle.Problem) []float64 {
	t.Helper()
	u, err := oracle.NewEquations(p).Solve()
	if err != nil {
		t.Fatal(err)
	}
	return u
}
