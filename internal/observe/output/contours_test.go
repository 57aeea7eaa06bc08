package output

import (
	"math"
	"slices"
	"testing"

	"jacobi/solver"
)

// drawn returns the columns of the middle row of the mesh in which the picture with contours differs from that without.
func drawn(t *testing.T, th *Thumbnail, c Caption) (columns []int, width int) {
	t.Helper()
	without, err := th.Draw(Caption{Scale: c.Scale})
	if err != nil {
		t.Fatal(err)
	}
	c.Title = ""
	with, err := th.Draw(c)
	if err != nil {
		t.Fatal(err)
	}
	plain, area := meshArea(t, without), meshArea(t, with)
	if plain.Size() != area.Size() {
		t.Fatalf("the mesh is at %v and %v", plain, area)
	}
	for x := range area.Dx() {
		y := area.Dy() / 2
		if rgb(with, area.Min.X+x, area.Min.Y+y) != rgb(without, plain.Min.X+x, plain.Min.Y+y) {
			columns = append(columns, x)
		}
	}
	return columns, area.Dx()
}

// Contours divide the range of a field into equal parts, wherever the cells of the picture begin.
func TestContours(t *testing.T) {
	slope := func(n int) *Thumbnail {
		m := solver.Mesh{NX: n, NY: n / 2, DType: solver.Float64}
		return thumbnailOf(t, m, func(ix, _ int) float64 { return 3 + 2*float64(ix)/float64(n-1) })
	}
	for _, n := range []int{6, 801, 2600} { // cells of many pixels, of one, and of several points
		th := slope(n)
		got, width := drawn(t, th, Caption{Scale: ScaleLinear, Contours: 9})
		var want []int
		for i := 1; i <= 9; i++ {
			// The middles of the first and the last cell have the least and the largest value.
			half := float64(width) / float64(n) / 2
			want = append(want, int(math.Round(half+(float64(width)-2*half)*float64(i)/10)))
		}
		if len(got) != len(want) {
			t.Fatalf("%d points: lines at %v, want %v", n, got, want)
		}
		for i := range got {
			if got[i] < want[i]-2 || got[i] > want[i]+2 {
				t.Errorf("%d points: lines at %v, want %v", n, got, want)
				break
			}
		}
	}
	if got, _ := drawn(t, slope(100), Caption{Scale: ScaleLinear}); got != nil {
		t.Errorf("lines at %v without contours", got)
	}
	flat := thumbnailOf(t, solver.Mesh{NX: 100, NY: 60, DType: solver.Float32}, func(int, int) float64 { return 7 })
	if got, _ := drawn(t, flat, Caption{Contours: 5}); got != nil {
		t.Errorf("lines at %v in a constant field", got)
	}
}

// A part of the field that lies on a level has no lines from rounding.
func TestContoursOfALevelPart(t *testing.T) {
	m := solver.Mesh{NX: 400, NY: 200, DType: solver.Float32}
	th := thumbnailOf(t, m, func(ix, iy int) float64 {
		switch {
		case ix < 100:
			return -1
		case ix >= 300:
			return 1
		}
		return float64(iy%2) * -1e-8
	})
	got, _ := drawn(t, th, Caption{Scale: ScaleLinear, Contours: 3})
	if want := []int{200, 201, 600}; !slices.Equal(got, want) { // levels -0.5, 0 and 0.5, and two pixels a cell
		t.Errorf("lines at %v, want %v", got, want)
	}
}

func TestContoursInTheCaption(t *testing.T) {
	for kind, want := range map[string]string{ScaleLinear: "contours every 0.2", ScaleSqrt: "9 contours"} {
		c := newContours(9, colourScale{kind: kind, min: 0, max: 2}, 0, 2, 0)
		if got := c.caption(0, 2); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// A contour is dark or light along its whole length, although of the shades beside it some are lighter than that of its
// level and some are darker.
func TestContoursDoNotAlternate(t *testing.T) {
	m := solver.Mesh{NX: 25, NY: 25, DType: solver.Float64}
	th := thumbnailOf(t, m, func(ix, iy int) float64 { return math.Hypot(float64(ix-12), float64(iy-12)) })
	plain, err := th.Draw(Caption{Scale: ScaleLinear})
	if err != nil {
		t.Fatal(err)
	}
	lined, err := th.Draw(Caption{Scale: ScaleLinear, Contours: 1})
	if err != nil {
		t.Fatal(err)
	}
	area := meshArea(t, plain)
	if area != meshArea(t, lined) {
		t.Fatalf("the mesh is at %v and %v", area, meshArea(t, lined))
	}
	darker, lighter := 0, 0
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			switch a, b := brightness(plain.RGBAAt(x, y)), brightness(lined.RGBAAt(x, y)); {
			case b < a:
				darker++
			case b > a:
				lighter++
			}
		}
	}
	if min(darker, lighter) > 0 || max(darker, lighter) < area.Dx()/2 {
		t.Errorf("the contour has %d dark and %d light pixels", darker, lighter)
	}
}
