package output

import (
	"fmt"
	"math"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   string
	}{
		{0, 1, 5, "[0 0.2 0.4 0.6 0.8 1.0]"},
		{0, 1, 2, "[0 0.5 1.0]"},
		{-1, 1, 4, "[−1.0 −0.5 0 0.5 1.0]"},
		{-3e-5, 3e-5, 4, "[−2e-05 0 2e-05]"},
		{300, 390, 9, "[300 310 320 330 340 350 360 370 380 390]"},
		{0, 2.5e6, 5, "[0 5.0e+05 1.0e+06 1.5e+06 2.0e+06 2.5e+06]"},
		{0, 0.99999, 5, "[0 0.2 0.4 0.6 0.8 1.0]"}, // less than a pixel beyond the end
		{1, 1.0001, 2, "[1.00000 1.00005 1.00010]"},
		{-math.MaxFloat64, math.MaxFloat64, 4, "[−1e+308 0 1e+308]"},
	} {
		_, labels := Ticks(c.lo, c.hi, c.n)
		if got := fmt.Sprint(labels); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}
