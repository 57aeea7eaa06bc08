package oracle_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Across layers of two materials, the error is within the bound also where the norm of a large contrast says little. A
// contrast that multigrid cannot hold ends with an error that says so.
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
		most := o.Accuracy.AtMost
		if most == nil || far > *most || o.Accuracy.Error != nil || o.Accuracy.Why == "" {
			t.Errorf("contrast %g: error %g, accuracy %+v", contrast, far, o.Accuracy)
			continue
		}
		if contrast <= 1e4 && (!o.Converged || far > 1e-6) {
			t.Errorf("contrast %g: error %g after %d cycles (%v)", contrast, far, o.Sweeps, o.StopReason)
		}
		t.Logf("contrast %g: %d cycles (%v), error %.1e, at most %.1e", contrast, o.Sweeps, o.StopReason, far, *most)
	}
	if _, err := run(t, 1, keys(1e20)...); err == nil || !strings.Contains(err.Error(), "smaller contrast") {
		t.Errorf("contrast 1e20: %v", err)
	}
}
