package oracle_test

import (
	"fmt"
	"math"
	"testing"
)

// Where a weak Robin wall or screening alone holds the constant of a weighted problem, the rounding of weights makes
// most of the error, and the run says so, with the same figure for any number of ranks.
func TestErrorOfAWeaklyHeldConstant(t *testing.T) {
	const n = 33
	// All heat of a source of 1 leaves through the wall at x = 0.
	layers := func(width, h, at, a float64) []float64 {
		step := width / (n - 1)
		material := func(ix int) float64 {
			if float64(ix)/(n-1) < at {
				return 1
			}
			return a
		}
		u := []float64{width / h}
		for ix := range n - 1 {
			here, next := material(ix), material(ix+1)
			u = append(u, u[ix]+step*(width-step*(float64(ix)+0.5))*(here+next)/(2*here*next))
		}
		return u
	}
	ones := make([]float64, n)
	for ix := range ones {
		ones[ix] = 1
	}
	for _, c := range []struct {
		name string
		want []float64 // along x
		keys []string
	}{
		{"two layers", layers(1, 0.0095, 0.92, 52), []string{"problem.left=robin(0.0095, 0)", "problem.source=1",
			"problem.coefficient=ix < 29.44 ? 1 : 52"}},
		{"one material", layers(3, 0.001, 1, 1), []string{"problem.left=robin(0.001, 0)", "problem.source=1",
			"grid.width=3", "grid.height=1"}},
		{"screening", ones, []string{"problem.left=neumann(0)", "problem.source=1e-5*x", "problem.screening=1e-5*x",
			"grid.width=3", "grid.height=1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := []string{"problem.right=neumann(0)", "problem.top=neumann(0)", "problem.bottom=neumann(0)",
				fmt.Sprintf("grid.nx=%d", n), fmt.Sprintf("grid.ny=%d", n)}
			one, err := run(t, 1, append(keys, c.keys...)...)
			if err != nil {
				t.Fatal(err)
			}
			worst := 0.0
			for at, v := range one.field {
				worst = max(worst, math.Abs(v-c.want[at%n]))
			}
			if about := one.Accuracy.Error; about == nil || worst > 2**about || *about > 3*worst {
				t.Fatalf("error %g, about %v", worst, show(about))
			}
			three, err := run(t, 3, append(keys, c.keys...)...)
			if err != nil {
				t.Fatal(err)
			}
			if *three.Accuracy.Error != *one.Accuracy.Error {
				t.Errorf("about %v with 3 ranks, %v with one", *three.Accuracy.Error, *one.Accuracy.Error)
			}
		})
	}
}

// show returns the figure of a report.
func show(figure *float64) any {
	if figure == nil {
		return "nothing"
	}
	return *figure
}
