package problem

import (
	"context"
	"errors"
	"image"
	"os"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// A place touches the pixels beside it: one within a pixel, two on an edge. Beyond a periodic end they go on.
func TestTouchedPixels(t *testing.T) {
	for _, c := range []struct {
		a           axis
		lo, hi      float64
		pixels      int
		first, last int
	}{
		{axis{8, false}, 0, 0, 8, 0, 0}, {axis{8, false}, 8, 8, 8, 7, 7}, {axis{8, false}, 3, 3, 8, 2, 3},
		{axis{8, false}, 3.5, 3.5, 8, 3, 3}, {axis{8, false}, 2.5, 4, 8, 2, 4}, {axis{49, false}, 5, 5, 49, 4, 5},
		{axis{8, false}, 3, 3, 2, 0, 0}, {axis{8, false}, 4, 4, 2, 0, 1}, {axis{8, false}, 1, 2, 16, 1, 4},
		{axis{4, true}, 4, 4, 4, 3, 4}, {axis{4, true}, 3.5, 4.5, 4, 3, 4}, {axis{4, true}, 0.5, 0.5, 4, 0, 0},
	} {
		if first, last := c.a.touched(c.lo, c.hi, c.pixels); first != c.first || last != c.last {
			t.Errorf("%+v: pixels %d to %d", c, first, last)
		}
	}
}

// A picture is not read to its end once nobody waits for it.
func TestPicturesHeedTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	file := pngFile(t, gray([]byte{0, 255}, []byte{255, 255}))
	const want = "problem: working out its values: enough"
	if _, _, _, err := readPicture(ctx, file); err == nil || err.Error() != want {
		t.Errorf("read: error %v, want %s", err, want)
	}
	img := image.NewGray(image.Rect(0, 0, 2, 2))
	if _, err := newPicture(ctx, img, 4, false, solver.Mesh{NX: 3, NY: 3}); err == nil || err.Error() != want {
		t.Errorf("black and white: error %v, want %s", err, want)
	}
	if err := new(drawing).mixture(img, solver.Mesh{NX: 3, NY: 3}).read(ctx); err == nil || err.Error() != want {
		t.Errorf("colours: error %v, want %s", err, want)
	}
}

// A problem that is opened again has the picture that it had, and says how much memory reading it takes.
func TestPicturesAreReadOnce(t *testing.T) {
	for _, c := range []struct {
		p     configs.Problem
		bytes int64 // of the image, and of what is kept of it
		fixed string
	}{
		{configs.Problem{Fixed: pngFile(t, gray([]byte{0, 255, 255}, []byte{255, 255, 0}))}, 6 + 6,
			"##...\n##...\n...##\n...##\n"},
		{configs.Problem{Drawing: pngFile(t, drawn("cc..........", "............")),
			Colours: "#b87333 value=1; #ffffff"}, 4*24 + 24, "#....\n#....\n.....\n.....\n"},
	} {
		p, err := New(t.Context(), config(5, 4, "float64", c.p))
		if err == nil {
			err = errors.Join(p.Close(), os.Remove(c.p.Fixed+c.p.Drawing))
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Again(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := marks(t, again); got != c.fixed || again.PictureBytes() != c.bytes {
			t.Errorf("%s%d bytes; want\n%s%d bytes", got, again.PictureBytes(), c.fixed, c.bytes)
		}
		if _, err := New(t.Context(), config(5, 4, "float64", c.p)); err == nil {
			t.Error("the file is still there")
		}
	}
}
