package levels

import (
	"reflect"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// hidden hides from a device that rows of values repeat.
type hidden struct{ solver.ValueRows }

// Points of rows that repeat, loaded from one row, are those of each row.
func TestRepeatedPoints(t *testing.T) {
	for _, fixed := range []string{"false", "x > 0.5 and y > 0.5"} {
		cfg := configs.Default()
		cfg.Grid = configs.Grid{NX: 40, NY: 70, DType: "float64", Width: 1}
		cfg.Problem = configs.Problem{Preset: "dirichlet", Coefficient: "1 + x", Source: "x", Top: "neumann(1)",
			Fixed: fixed}
		p, err := problem.New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		most, err := p.Maxima(t.Context(), 0, 70)
		if err != nil {
			t.Fatal(err)
		}
		p.SetMaxima(most)
		plan, err := multigrid.NewPlan(p.Mesh(), p.Operator())
		if err != nil {
			t.Fatal(err)
		}
		var loaded [2]*level[float64]
		for i, values := range []solver.ValueRows{p, hidden{p}} {
			stripes, whole := plan.Divide([]solver.Stripe{p.Mesh().Interior()}, 1)
			l := plan.LayoutOf(stripes, whole, 0)
			l.Values = values
			if p.Operator().Fixed != nil {
				if l.Fixed, err = multigrid.FixedPoints(p.Mesh(), p.Operator().Fixed); err != nil {
					t.Fatal(err)
				}
			}
			d, err := New(l, 2, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Load(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			loaded[i] = d.finest
		}
		a, b := loaded[0], loaded[1]
		if !reflect.DeepEqual(a.points, b.points) || !reflect.DeepEqual(a.b, b.b) || !reflect.DeepEqual(a.u, b.u) ||
			!reflect.DeepEqual(a.fixed, b.fixed) {
			t.Errorf("fixed %s: points differ from those read row by row", fixed)
		}
	}
}
