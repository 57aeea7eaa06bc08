package chebyshev

import (
	"math"
	"slices"
	"strings"
	"testing"

	"jacobi/solver"
)

func TestOrder(t *testing.T) {
	if got, want := order(8), []int{1, 15, 7, 9, 3, 13, 5, 11}; !slices.Equal(got, want) {
		t.Errorf("order(8) is %v, want %v", got, want)
	}
}

// worst returns the largest absolute value, over eigenvalues from least to largest, of the product of 1 - w*eigenvalue.
func worst(weights []float64, least, largest float64) float64 {
	w := 0.0
	for i := range 1001 {
		v, p := least+(largest-least)*(1-math.Cos(math.Pi*float64(i)/1000))/2, 1.0
		for _, weight := range weights {
			p *= 1 - weight*v
		}
		w = max(w, math.Abs(p))
	}
	return w
}

// A cycle leaves at most Factor of every error. After one or more quarters of it no error is larger than before.
func TestQuartersAndCycle(t *testing.T) {
	for _, n := range []int{3, 4, 5, 9, 23, 65, 100, 181, 182, 257, 400, 1000} {
		for _, walls := range []solver.Walls{{}, solver.WrapRows(true), {Left: solver.Neumann}} {
			p, err := NewPlan(solver.Mesh{NX: n, NY: n, DType: solver.Float64, Walls: walls}, solver.Operator{})
			if err != nil {
				t.Fatal(err)
			}
			var weights []float64
			for q := range Quarters {
				part := p.Weights[q*p.Stride : (q+1)*p.Stride]
				if part[0] != 0 || slices.Contains(part[1:], 0) {
					t.Fatalf("%d, %v: quarter %d has weights %v", n, walls, q, part)
				}
				weights = append(weights, part[1:]...)
				if w := worst(weights, p.Least, p.Largest); !(w <= 1) {
					t.Errorf("%d, %v: after %d quarters an error is %g as large", n, walls, q+1, w)
				}
			}
			if w, f := worst(weights, p.Least, p.Largest), p.Factor(); !(w <= f*(1+1e-6)) || f > 2./damping {
				t.Errorf("%d, %v: a cycle leaves %g, Factor is %g", n, walls, w, f)
			}
		}
	}
}

// The sizes of the documents.
func TestCycles(t *testing.T) {
	neumann := solver.Walls{Left: solver.Neumann, Right: solver.Neumann, Top: solver.Neumann, Bottom: solver.Neumann}
	for _, c := range []struct {
		nx, ny int
		walls  solver.Walls
		op     solver.Operator
		cycle  int
		factor float64
	}{
		{257, 257, solver.Walls{}, solver.Operator{}, 1024, 6.97e-6},
		{257, 257, solver.WrapRows(true), solver.Operator{}, 1024, 2.76e-4},
		{257, 257, neumann, solver.Operator{}, 4096, 1.924e-3},
		{2000, 100, solver.Walls{}, solver.Operator{}, 512, 0},
		{1000, 1000, neumann, solver.Operator{Scale: 0.4999, Blend: 0.5}, 512, 0},
		{16384, 16384, solver.Walls{}, solver.Operator{}, 65536, 6.97e-6},
	} {
		p, err := NewPlan(solver.Mesh{NX: c.nx, NY: c.ny, DType: solver.Float64, Walls: c.walls}, c.op)
		if err != nil {
			t.Fatal(err)
		}
		if got := Quarters * (p.Stride - 1); got != c.cycle || len(p.Weights) != Quarters*p.Stride {
			t.Errorf("%d x %d, %v: cycles of %d sweeps, want %d", c.nx, c.ny, c.walls, got, c.cycle)
		}
		if f := p.Factor(); c.factor != 0 && math.Abs(f/c.factor-1) > 0.01 {
			t.Errorf("%d x %d, %v: factor %g, want %g", c.nx, c.ny, c.walls, f, c.factor)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for want, m := range map[string]solver.Mesh{
		"a mesh of float32: only float64 is possible": {NX: 9, NY: 9, DType: solver.Float32},
		"a mesh of 2147483647 x 2147483647 needs cycles of 4.7e+09 sweeps; at most 16777216 are possible": {
			NX: 1<<31 - 1, NY: 1<<31 - 1, DType: solver.Float64},
	} {
		if _, err := NewPlan(m, solver.Operator{}); err == nil || err.Error() != "chebyshev: "+want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestLast(t *testing.T) {
	p := Plan{Stride: 5}
	for limit, want := range map[int]int{6: 6, 7: 6, 10: 6, 11: 11, 1000: 996} {
		if got, err := p.Last(limit); got != want || err != nil {
			t.Errorf("Last(%d) is %d, %v; want %d", limit, got, err, want)
		}
	}
	if _, err := p.Last(5); err == nil || !strings.Contains(err.Error(), "at least 6 are wanted") {
		t.Errorf("Last(5): error %v", err)
	}
}

// The weighted sweeps and the plain ones of a quarter fit a layout only with the general operator.
func TestFit(t *testing.T) {
	m := solver.Mesh{NX: 9, NY: 9, DType: solver.Float64}
	p, err := NewPlan(m, solver.Operator{})
	if err != nil {
		t.Fatal(err)
	}
	l := solver.Layout{Mesh: m, Stripe: m.Interior(), Depth: 2, Weights: p.Weights}
	if err := l.Check(); err == nil {
		t.Error("weights with the plain average are allowed")
	}
	if l = p.Fit(l); l.Check() != nil || l.Magnitude != 9 || l.Operator.Scale != 0.5 || l.Operator.Blend != 0.5 {
		t.Errorf("%+v: %v", l, l.Check())
	}
}
