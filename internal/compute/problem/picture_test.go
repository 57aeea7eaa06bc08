package problem

import (
	"context"
	"errors"
	"image"
	"os"
	"testing"

	"jacobi/configs"
)

// Of a picture the pixels are kept that points of the mesh take, in their order.
func TestSidesOfPictures(t *testing.T) {
	for _, points := range []int{3, 4, 5, 7, 64, 100, 1000} {
		for _, pixels := range []int{1, 2, 3, 5, 64, 99, 100, 101, 1000} {
			s := side{points, pixels}
			for k := 1; k < s.kept(); k++ {
				if s.pixel(k) <= s.pixel(k-1) || s.pixel(k) >= pixels {
					t.Fatalf("%+v: pixel %d after %d", s, s.pixel(k), s.pixel(k-1))
				}
			}
			for i := range points {
				if k := s.at(i); k >= s.kept() || s.pixel(k) != nearestPixel(i, points, pixels) {
					t.Fatalf("%+v: point %d takes pixel %d, the one of %d kept", s, i, k, s.kept())
				}
			}
		}
	}
}

// A picture is not read to its end once nobody waits for it.
func TestPicturesHeedTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	file := pngFile(t, gray([]byte{0, 255}, []byte{255, 255}))
	const want = "problem: working out its values: enough"
	if _, _, err := readPNG(ctx, file); err == nil || err.Error() != want {
		t.Errorf("read: error %v, want %s", err, want)
	}
	img := image.NewGray(image.Rect(0, 0, 2, 2))
	if _, err := newPicture(ctx, img, 4); err == nil || err.Error() != want {
		t.Errorf("black and white: error %v, want %s", err, want)
	}
	if err := new(drawing{x: side{3, 2}, y: side{3, 2}}).read(ctx, img); err == nil || err.Error() != want {
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
		{configs.Problem{Fixed: pngFile(t, gray([]byte{0, 255, 255}, []byte{255, 255, 0}))}, 6 + 8,
			"##...\n##...\n...##\n...##\n"},
		{configs.Problem{Drawing: pngFile(t, drawn("cc..........", "............")),
			Colours: "#b87333 value=1; #ffffff"}, 4*24 + 2*5, "#....\n#....\n.....\n.....\n"},
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
