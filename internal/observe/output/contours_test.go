package output

import (
	"image"
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

// Outlines are two pixels of ink between pale ones, where points look different. They end at the frame, where they meet
// each pixel is drawn once, and the rest of the picture is as without them.
func TestOutlines(t *testing.T) {
	corner := [][4]float64{{2.5, 1.5, 2.5, 2.5}, {2.5, 2.5, 7.5, 2.5}} // down, and right to the last column
	for _, c := range []struct {
		n      int // of points
		lines  [][4]float64
		x0, y0 int // pixels of the mesh where the corner begins
		x1, y1 int // and its longer line ends
	}{
		{8, corner, 300, 200, 800, 300},
		{3840, [][4]float64{{899, 599.5, 899, 899.5}, {899, 899.5, 3839.5, 899.5}}, 300, 200, 1280, 300}, // 3 a pixel
	} {
		if testing.Short() && c.n > 1000 {
			continue // slow under the race detector
		}
		m := solver.Mesh{NX: c.n, NY: c.n, DType: solver.Float32}
		th := thumbnailOf(t, m, func(ix, _ int) float64 { return float64(ix) })
		plain, err := th.Draw(Caption{Contours: 3})
		if err != nil {
			t.Fatal(err)
		}
		got, err := th.Draw(Caption{Contours: 3, Outlines: c.lines})
		if err != nil {
			t.Fatal(err)
		}
		area := meshArea(t, plain)
		drawn := func(x, y, beside int) bool {
			p := image.Pt(x, y)
			down, right := image.Rect(c.x0, c.y0, c.x0, c.y1), image.Rect(c.x0, c.y1, c.x1, c.y1)
			return p.In(down.Inset(-beside)) || p.In(right.Inset(-beside))
		}
		wrong := 0
		for y := range got.Bounds().Dy() {
			for x := range got.Bounds().Dx() {
				want := plain.RGBAAt(x, y)
				if at := image.Pt(x, y).Sub(area.Min); !image.Pt(x, y).In(area) {
					// The outlines end at the frame.
				} else if drawn(at.X, at.Y, 1) {
					want = ink
				} else if drawn(at.X, at.Y, 2) {
					want = paled(want)
				}
				if got.RGBAAt(x, y) != want {
					if wrong++; wrong == 1 {
						t.Errorf("%d points: pixel %d, %d is %v, want %v", c.n, x, y, got.RGBAAt(x, y), want)
					}
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%d points: %d pixels are wrong", c.n, wrong)
		}
	}
}

// The frames of a film have the outlines at the same pixels, although their cells are larger.
func TestOutlinesOfAFilm(t *testing.T) {
	m := solver.Mesh{NX: 801, NY: 801, DType: solver.Float32}
	var a Animation
	if err := a.Add(0, math.NaN(), frameOf(t, m, func(ix, _ int) float64 { return float64(ix) }), false); err != nil {
		t.Fatal(err)
	}
	pictures, err := a.draw(Caption{Outlines: [][4]float64{{299.5, 99.5, 299.5, 199.5}}})
	if err != nil {
		t.Fatal(err)
	}
	area := meshArea(t, pictures[0])
	for x := 297; x < 303; x++ {
		if got, want := rgb(pictures[0], area.Min.X+x, area.Min.Y+150) == ink, x == 299 || x == 300; got != want {
			t.Errorf("column %d is ink: %v, want %v", x, got, want)
		}
	}
}
