package oracle_test

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"jacobi/internal/compute/oracle"
	"jacobi/solver"
)

// Where a run goes on to the floor of rounding, what rounding has moved a conductor by is said, though neither norms
// nor changes show it: what is said is one to four times the error. Any ranks say the same.
func TestErrorOfMovedConductors(t *testing.T) {
	t.Parallel()
	const n = 129
	disc := func(x, y, radius float64) bool { return math.Hypot(x-0.5, y-0.5) < radius }
	for _, c := range []struct {
		name      string
		conducts  func(x, y float64) bool
		contrasts []float64
	}{
		{"disc", func(x, y float64) bool { return disc(x, y, 0.25) }, []float64{3, 10, 100}},
		{"ring", func(x, y float64) bool { return disc(x, y, 0.3) && !disc(x, y, 0.2) }, []float64{10, 1e3, 1e4}},
		{"thin ring", func(x, y float64) bool { return disc(x, y, 0.27) && !disc(x, y, 0.25) }, []float64{1e3}},
		{"64 discs", func(x, y float64) bool {
			return math.Hypot(math.Mod(8*x, 1)-0.5, math.Mod(8*y, 1)-0.5) < 0.3
		}, []float64{10, 100}},
		{"layers", func(x, _ float64) bool { return math.Mod(math.Floor(8*x), 2) == 1 }, []float64{10, 1e4, 1e6}},
	} {
		for _, contrast := range c.contrasts {
			at := func(i int) (x, y float64) { return float64(i%n) / (n - 1), float64(i/n) / (n - 1) }
			r := &random{scale: 1}
			r.Problem = oracle.Problem{Mesh: solver.Mesh{NX: n, NY: n, DType: solver.Float64}, Width: 1, Height: 1,
				Initial: make([]float64, n*n), Materials: &oracle.Materials{Screening: make([]float64, n*n)}}
			for i := range n * n {
				a := 1.0
				if c.conducts(at(i)) {
					a = contrast
				}
				r.Source, r.Materials.Coefficient = append(r.Source, 1), append(r.Materials.Coefficient, a)
			}
			r.array("problem.coefficient", filepath.Join(t.TempDir(), "a.npy"), r.Materials.Coefficient)
			keys := append(r.keys, fmt.Sprintf("grid.nx=%d", n), "problem.source=1", "solver.relative_tolerance=1e-17")
			o, err := run(t, 1, keys...)
			if err != nil {
				t.Fatal(err)
			}
			e := oracle.NewEquations(r.Problem)
			e.ByDifferences()
			u, err := e.Solve()
			if err != nil {
				t.Fatal(err)
			}
			worst := 0.0
			for i := range u {
				if e.Free(i) {
					worst = max(worst, math.Abs(u[i]-o.field[i]))
				}
			}
			t.Logf("%s, contrast %g: %d cycles, error %.2g, said to be %.2g", c.name, contrast, o.Sweeps, worst,
				*o.Accuracy.Error)
			if about := *o.Accuracy.Error; !(worst <= about && about <= 4*worst) {
				t.Errorf("%s, contrast %g: error %g, about %g, accuracy %+v", c.name, contrast, worst, about,
					o.Accuracy)
			}
			if contrast == 10 {
				three, err := run(t, 3, keys...)
				if err != nil || !reflect.DeepEqual(three.Accuracy, o.Accuracy) {
					t.Errorf("three ranks: %v: accuracy %+v, one has %+v", err, three.Accuracy, o.Accuracy)
				}
			}
		}
	}
}
