package output

import (
	"image"
	"math"
	"testing"

	"jacobi/solver"
)

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
