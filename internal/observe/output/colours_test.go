package output

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"testing"
)

// near reports whether two colours are equal up to the rounding of colour spaces.
func near(a, b color.RGBA) bool {
	d := func(x, y uint8) bool { return max(x, y)-min(x, y) <= 2 }
	return d(a.R, b.R) && d(a.G, b.G) && d(a.B, b.B) && a.A == b.A
}

func TestColours(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct{ min, max, wantMin, wantMax float64 }{
		{0, 1, 0, 1}, {-3, -1, -3, -1}, {-1, 3, -3, 3}, {-3, 1, -3, 3}, {0, 0, -0.5, 0.5}, {5, 5, 2.5, 7.5},
		{-2, -2, -3, -1},
		{inf, -inf, -0.5, 0.5}, // no finite value
		{-math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64},
	} {
		for _, kind := range []string{ScaleAuto, ScaleLinear, ScaleLog, ScaleSqrt} {
			col, err := newColours(newColourScale(kind, [][]float64{{c.min, c.max}}, c.min, c.max, 0))
			must(t, err)
			if col.min != c.wantMin || col.max != c.wantMax {
				t.Errorf("%s %v: bar from %v to %v", kind, c, col.min, col.max)
			}
			if col.of(math.NaN()) != outside || col.of(inf) != infinite {
				t.Error("NaN or Inf has a colour of the map")
			}
			if col.of(c.wantMax) != col.table[shades-1] || col.of(c.wantMin) != col.table[0] {
				t.Errorf("%s [%v, %v]: the ends are not the ends of the map", kind, c.min, c.max)
			}
		}
	}
	for _, kind := range []string{ScaleLinear, ScaleLog, ScaleSqrt} {
		col, err := newColours(newColourScale(kind, [][]float64{{-1, 3}}, -1, 3, 0))
		must(t, err)
		if got, want := col.of(0), (color.RGBA{0xdd, 0xdd, 0xdd, 0xff}); !near(got, want) {
			t.Errorf("%s: 0 between both signs is %v, want %v", kind, got, want)
		}
	}
}

// A contour of any level contrasts with every shade of both maps, and so do the two shades of an outline: relative
// luminances (WCAG 2.1) differ by a ratio of 3 at least.
func TestLinesContrast(t *testing.T) {
	luminance := func(c color.RGBA) (l float64) {
		for i, v := range []uint8{c.R, c.G, c.B} {
			part := float64(v) / 255
			if part > 0.04045 {
				part = math.Pow((part+0.055)/1.055, 2.4)
			} else {
				part /= 12.92
			}
			l += []float64{0.2126, 0.7152, 0.0722}[i] * part
		}
		return l
	}
	for _, low := range []float64{0, -1} {
		col, err := newColours(newColourScale(ScaleLinear, [][]float64{{low, 1}}, low, 1, 0))
		must(t, err)
		for _, c := range col.table {
			dark, light := lined(c, col.table[0]), lined(c, color.RGBA{0xff, 0xff, 0xff, 0xff})
			for line, ground := range map[color.RGBA]color.RGBA{dark: c, light: c, ink: paled(c)} {
				a, b := luminance(line), luminance(ground)
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 3 {
					t.Fatalf("a line of %v on %v: a ratio of %.2f", line, ground, ratio)
				}
			}
		}
	}
}

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
