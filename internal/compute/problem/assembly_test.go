package problem

import (
	"slices"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/rowmath"
	"jacobi/solver"
)

// The equations of rows follow from the coefficients and the right-hand sides as solver.Assembly says.
func TestAssembly(t *testing.T) {
	const nx, ny = 40, 9
	for _, c := range []configs.Problem{
		{Coefficient: "1+0.9*sin(6*x)*cos(5*y)", Source: "x-y", Left: "neumann(y)", Bottom: "neumann(1-x)"},
		{Coefficient: "exp(3*x-2*y)", Right: "x+y", Top: "neumann(1)"},
		{Coefficient: "1+x", Source: "1"},
		{Coefficient: "1+y", Left: "neumann(1)", Right: "flux(x)", Top: "flux(1)", Source: "1"},
	} {
		p := assembled(t, nx, ny, c)
		most, err := p.Maxima(t.Context(), 0, ny)
		if err != nil {
			t.Fatal(err)
		}
		p.SetMaxima(most)
		by, ok := p.Assembly()
		if !ok {
			t.Fatalf("%v: the equations do not follow from the coefficient", c)
		}
		fresh := assembled(t, nx, ny, c) // it has worked out no equations
		values := func(iy int, k solver.Value) []float64 {
			row, dst := make([]byte, 8*nx), make([]float64, nx)
			of := p
			if k >= solver.Coefficient {
				of = fresh
			}
			if err := of.ValueRow(iy, k, row); err != nil {
				t.Fatal(err)
			}
			solver.Float64.Decode(dst, row)
			return dst
		}
		lo, hi := p.mesh.InteriorColumns()
		scaled := func(v float64) float64 { return float64(float64(v*by.HX)*by.HY) * by.Unit }
		for iy := 1; iy < ny-1; iy++ {
			above, here, below := values(iy-1, solver.Coefficient), values(iy, solver.Coefficient),
				values(iy+1, solver.Coefficient)
			right := values(iy, solver.RightHandSide)
			got := [4][]float64{values(iy, solver.Source), values(iy, solver.Diagonal), values(iy, solver.EastFace),
				values(iy, solver.SouthFace)}
			for ix := range nx {
				face := func(other, h float64) float64 { return rowmath.Mean(here[ix], other) / float64(h*h) }
				west, east := p.columnsBeside(ix)
				e, s := face(here[east], by.HX), face(below[ix], by.HY)
				d := float64((face(here[west], by.HX) + e) + (face(above[ix], by.HY) + s))
				part := 1.0
				if (ix == 0 || ix == nx-1) && lo <= ix && ix < hi {
					part = 0.5
				}
				want := [4]float64{right[ix] / d, scaled(d * part), scaled(e), scaled(s * part)}
				if ix < lo || ix >= hi {
					want[0], want[1] = 0, 0
				}
				if ix == nx-1 {
					want[2] = 0
				}
				for k := range want {
					if got[k][ix] != want[k] {
						t.Fatalf("%v: row %d, column %d, value %d: %v, want %v", c, iy, ix, k, got[k][ix], want[k])
					}
				}
			}
		}
	}
}

// The equations of other problems do not follow from the coefficient alone.
func TestNoAssembly(t *testing.T) {
	equal := make([][]float64, 29)
	for i := range equal {
		equal[i] = slices.Repeat([]float64{1.6}, 39)
	}
	for name, c := range map[string]configs.Problem{
		"without weights":     {},
		"areas":               {Coefficient: "x>0.4?3:1"},
		"points":              {Coefficient: "1+ix"},
		"equal cells":         {Coefficient: cellFile(t, equal...)},
		"fixed":               {Coefficient: "1+x", Fixed: "hypot(x-0.5,y-0.5)<0.2"},
		"screening":           {Coefficient: "1+x", Screening: "1"},
		"heat transfer":       {Coefficient: "1+x", Left: "robin(1,2)"},
		"periodic":            {Coefficient: "1+y", Left: "periodic", Right: "periodic"},
		"outside of material": {Coefficient: "max(0,x-0.5)"},
	} {
		if _, ok := assembled(t, 40, 30, c).Assembly(); ok {
			t.Errorf("%s: the equations follow from the coefficient", name)
		}
	}
}

// assembled opens a problem that multigrid solves.
func assembled(t *testing.T, nx, ny int, c configs.Problem) *Problem {
	t.Helper()
	cfg := config(nx, ny, "float64", c)
	cfg.Grid.Height, cfg.Solver.Method = 0.7, "multigrid"
	return open(t, cfg)
}
