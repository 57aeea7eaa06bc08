package oracle_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"jacobi/internal/compute/accuracy"
)

// Across layers of two materials, the error is about as large as is said, also where the norm of a large contrast says
// little; any ranks say the same. A contrast that multigrid cannot hold ends with an error that says so.
func TestLargeContrasts(t *testing.T) {
	const n = 65
	keys := func(contrast float64) []string {
		return []string{fmt.Sprintf("grid.nx=%d", n), "grid.ny=33", "problem.left=1", "problem.top=neumann(0)",
			"problem.bottom=neumann(0)", fmt.Sprintf("problem.coefficient=mod(ix, 10) < 5 ? %g : 1", contrast)}
	}
	for _, contrast := range []float64{1, 1e2, 1e4, 1e6, 1e8} {
		o, err := run(t, 1, keys(contrast)...)
		if err != nil {
			t.Fatal(err)
		}
		resistance := [n]float64{} // up to each column
		for ix := 1; ix < n; ix++ {
			side := func(ix int) float64 {
				if ix%10 < 5 {
					return 0.5 / contrast
				}
				return 0.5
			}
			resistance[ix] = resistance[ix-1] + side(ix-1) + side(ix)
		}
		far := 0.0
		for i, v := range o.field {
			far = max(far, math.Abs(v-(1-resistance[i%n]/resistance[n-1])))
		}
		about := o.Accuracy.Error
		if about == nil || far > 3**about ||
			contrast <= 1e6 && far < *about/10 || o.Accuracy.Uncertain != (contrast > accuracy.Sure) {
			if about == nil {
				about = new(math.NaN())
			}
			t.Errorf("contrast %g: error %g, about %g, accuracy %+v", contrast, far, *about, o.Accuracy)
			continue
		}
		if contrast == 1e4 {
			three, err := run(t, 3, keys(contrast)...)
			if err != nil || !reflect.DeepEqual(three.Accuracy, o.Accuracy) {
				t.Errorf("three ranks: %v: accuracy %+v, one has %+v", err, three.Accuracy, o.Accuracy)
			}
		}
		if contrast <= 1e4 && (!o.Converged || far > 1e-6) {
			t.Errorf("contrast %g: error %g after %d cycles (%v)", contrast, far, o.Sweeps, o.StopReason)
		}
		t.Logf("contrast %g: %d cycles (%v), error %.1e, about %.1e", contrast, o.Sweeps, o.StopReason, far,
			*about)
	}
	if _, err := run(t, 1, keys(1e20)...); err == nil || !strings.Contains(err.Error(), "smaller contrast") {
		t.Errorf("contrast 1e20: %v", err)
	}
}

// Layers of 8 points at a contrast of 10^5, for which coarser meshes left errors that the norm did not show, have the
// right flux: 1 over the sum of the resistances of 256 faces. The report does not trust its estimate all the same.
func TestLayersOfALargeContrast(t *testing.T) {
	o, err := run(t, 1, "grid.nx=257", "grid.ny=257", "problem.left=1", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.coefficient=mod(floor(ix/8), 2) == 1 ? 1e5 : 1")
	if err != nil {
		t.Fatal(err)
	}
	left, right, want := *o.Results.Flux["left"], *o.Results.Flux["right"], 256/(128+128e-5)
	if !o.Converged || math.Abs(left-want) > 1e-5 || math.Abs(right+want) > 1e-5 || !o.Accuracy.Uncertain {
		t.Errorf("%v after %d cycles, fluxes %g and %g, want %g; accuracy %+v", o.StopReason, o.Sweeps, left, right,
			want, o.Accuracy)
	}
}

// What is said of a field where no cycle was done, and around a hole, which is no contrast: coefficients are 1 or none.
func TestErrorWithoutContrast(t *testing.T) {
	for _, c := range []struct {
		keys  []string
		about bool
		why   string
	}{
		{[]string{"problem.coefficient=1+x", "problem.preset=dirichlet", "problem.initial=1", "problem.left=1",
			"problem.right=1", "problem.top=1", "problem.bottom=1"}, false, "no cycle was done"},
		{[]string{"problem.coefficient=1+x"}, false, "no cycle was done"},
		{[]string{"problem.coefficient=hypot(x-0.5, y-0.5) < 0.2 ? 0 : 1", "problem.left=1"}, true, ""},
	} {
		for _, ranks := range []int{1, 3} {
			o, err := run(t, ranks, append([]string{"grid.nx=65", "grid.ny=65"}, c.keys...)...)
			if err != nil {
				t.Fatal(err)
			}
			a := o.Accuracy
			if (a.Error != nil) != c.about || a.Why != c.why || a.Uncertain {
				t.Errorf("%q on %d ranks: %+v", c.keys, ranks, a)
			}
		}
	}
}
