package canvas

import (
	"image"
	"image/color"
	"testing"
)

// Lines cover the pixels within half their width, beyond their ends, too, and no others.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		x0, y0, x1, y1 float64
		want           image.Rectangle
	}{
		{5, 10, 15, 10, image.Rect(4, 9, 16, 11)},
		{15, 10, 5, 10, image.Rect(4, 9, 16, 11)},
		{10, 5, 10, 15, image.Rect(9, 4, 11, 16)},
		{-5, 10, 40, 10, image.Rect(0, 9, 20, 11)}, // beyond the picture
		{7, 7, 7, 7, image.Rectangle{}},
	} {
		pic := New(20, 20)
		pic.Line(c.x0, c.y0, c.x1, c.y1, 2, Ink)
		for y := range 20 {
			for x := range 20 {
				want := color.RGBA{0xff, 0xff, 0xff, 0xff}
				if image.Pt(x, y).In(c.want) {
					want = Ink
				}
				if got := pic.RGBAAt(x, y); got != want {
					t.Fatalf("%+v: pixel %d, %d is %v, want %v", c, x, y, got, want)
				}
			}
		}
	}
}
