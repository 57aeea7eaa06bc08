package output

import (
	"image/color"
	"math"
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
			if err != nil {
				t.Fatal(err)
			}
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
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
