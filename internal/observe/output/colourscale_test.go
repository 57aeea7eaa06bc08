package output

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// fieldOf returns 100 by 100 cells and the range of their values; x goes from 0 to 1.
func fieldOf(f func(x float64) float64) (cells [][]float64, lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for range 100 {
		line := make([]float64, 100)
		for i := range line {
			line[i] = f(float64(i) / 99)
			lo, hi = math.Min(lo, line[i]), math.Max(hi, line[i])
		}
		cells = append(cells, line)
	}
	return cells, lo, hi
}

func TestAutoScaleShowsSomething(t *testing.T) {
	decay := func(length float64) func(float64) float64 {
		return func(x float64) float64 { return math.Exp(-x / length) }
	}
	wave := func(steep float64) func(float64) float64 {
		return func(x float64) float64 { return math.Exp(-steep*x) - math.Exp(-steep*(1-x)) }
	}
	for _, c := range []struct {
		name    string
		f       func(x float64) float64
		kind    string
		caption string
		ticks   string // in the order of the bar
	}{
		{"even", decay(1), ScaleLinear, "", "[0.4 0.5 0.6 0.7 0.8 0.9 1.0]"},
		{"hundredths", decay(0.125), ScaleSqrt, "square-root scale", "[0 0.02 0.05 0.1 0.2 0.5 1]"},
		{"thousandths", decay(0.05), ScaleLog, "log scale: 65% of the field is within 0.001 of 0",
			"[0 1e-08 1e-07 1e-06 1e-05 1e-04 0.001 0.01 0.1 1]"},
		{"a wave that has hardly begun", wave(700), ScaleLog, "log scale: 98% of the field is within 0.001 of 0",
			"[−1 −0.01 −1e-04 −1e-06 −1e-08 −1e-10 0 1e-10 1e-08 1e-06 1e-04 0.01 1]"},
		{"another background", func(x float64) float64 { return 5 + wave(100)(x) }, ScaleLog,
			"log scale: 86% of the field is within 0.001 of 5",
			"[4 4.9 4.99 4.999 5 − 1e-04 5 5 + 1e-04 5.001 5.01 5.1 6]"},
		{"a background above all", func(x float64) float64 { return 1 - math.Exp(-100*x) }, ScaleLog,
			"log scale: 93% of the field is within 0.001 of 1", "[0 0.9 0.99 0.999 0.9999 1 − 1e-05 1]"},
		{"far from 0", func(x float64) float64 { return 300 + 90*x }, ScaleLinear, "",
			"[300 310 320 330 340 350 360 370 380 390]"},
		{"constant", func(float64) float64 { return 0 }, ScaleLinear, "", "[−0.4 −0.2 0 0.2 0.4]"},
		{"no number", func(float64) float64 { return math.NaN() }, ScaleLinear, "", "[−0.4 −0.2 0 0.2 0.4]"},
	} {
		cells, lo, hi := fieldOf(c.f)
		if math.IsNaN(lo) { // a thumbnail's range has finite values only
			lo, hi = math.Inf(1), math.Inf(-1)
		}
		s := newColourScale(ScaleAuto, cells, lo, hi, 0x1p-18)
		if s.kind != c.kind || s.caption() != c.caption {
			t.Errorf("%s: %s scale, %q; want %s, %q", c.name, s.kind, s.caption(), c.kind, c.caption)
		}
		values, labels := s.ticks(9)
		order := make([]int, len(values))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, values[a]-values[b])) })
		var got []string
		for _, i := range order {
			got = append(got, labels[i])
		}
		if fmt.Sprint(got) != c.ticks {
			t.Errorf("%s: ticks %v, want %s", c.name, got, c.ticks)
		}
	}
}

// For every field the position on the bar grows with the value, from one end to the other.
func TestColourScaleGrows(t *testing.T) {
	for _, c := range []struct{ lo, hi float64 }{
		{0, 1}, {-1, 1}, {-1e-3, 7}, {-9, -2}, {1e-300, 1e300}, {0, 1e-310}, {0, math.SmallestNonzeroFloat64},
		{-math.MaxFloat64, math.MaxFloat64},
	} {
		for _, kind := range []string{ScaleAuto, ScaleLinear, ScaleLog, ScaleSqrt} {
			s := newColourScale(kind, [][]float64{{c.lo, c.hi, c.lo / 1e5, c.hi / 1e5}}, c.lo, c.hi, 0)
			last := -1.0
			for i := range 1001 {
				f := float64(i) / 1000
				at := s.at(s.min*(1-f) + s.max*f)
				if !(at >= last && at <= 1) {
					t.Fatalf("%s [%v, %v]: place %v follows %v", kind, c.lo, c.hi, at, last)
				}
				last = at
			}
			values, labels := s.ticks(8)
			if s.at(s.min) != 0 || s.at(s.max) != 1 || len(values) == 0 || len(values) != len(labels) {
				t.Errorf("%s [%v, %v]: ends at %v and %v, ticks %v", kind, c.lo, c.hi, s.at(s.min), s.at(s.max), labels)
			}
		}
	}
}
