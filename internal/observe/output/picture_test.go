package output

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/solver"
)

// rgb returns the colour of a pixel.
func rgb(img image.Image, x, y int) color.RGBA {
	return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
}

func TestPicture(t *testing.T) {
	m := solver.Mesh{NX: 800, NY: 400, DType: solver.Float32} // one pixel per point
	// 1 above, 0 below: the two ends of inferno.
	th := thumbnailOf(t, m, func(_, iy int) float64 {
		if iy < 200 {
			return 1
		}
		return 0
	})
	f, err := os.Open(writePicture(t, "field.png", th))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	area := meshArea(t, img)
	if area.Dx() != 800 || area.Dy() != 400 {
		t.Fatalf("the mesh is at %v", area)
	}
	if img.Bounds().Dx() > 1600 || img.Bounds().Dx() < 900 {
		t.Errorf("the picture is %v", img.Bounds())
	}
	top, bottom := color.RGBA{0xfc, 0xff, 0xa4, 0xff}, color.RGBA{0x00, 0x00, 0x04, 0xff}
	for _, p := range []struct {
		x, y int
		want color.RGBA
	}{
		{0, 0, top}, {799, 199, top}, {0, 200, bottom}, {799, 399, bottom}, // the mesh
		{799 + barGap + 2, 0, top}, {799 + barGap + 2, 399, bottom}, // the colour bar
	} {
		if got := rgb(img, area.Min.X+p.x, area.Min.Y+p.y); !near(got, p.want) {
			t.Errorf("pixel %d, %d is %v, want %v", p.x, p.y, got, p.want)
		}
	}
}

// writePicture writes the picture name, checks that it fits in its room, and returns its path.
func writePicture(t *testing.T, name string, th *Thumbnail) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	p, err := createLocal(dir, path, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	data, err := EncodePicture(name, th, Caption{Title: "dirichlet", Sweeps: 1, Norm: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	done, err := WritePicture(p, "picture", name, data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || done != fileOf(name, got) {
		t.Errorf("%+v, %v; want %+v", done, err, fileOf(name, got))
	}
	if room := pictureBytes(th.grid()); done.Bytes > room {
		t.Errorf("%s has %d bytes, its room is %d", name, done.Bytes, room)
	}
	return path
}

// The extension chooses the format.
func TestPictureFormats(t *testing.T) {
	m := solver.Mesh{NX: 8, NY: 8, DType: solver.Float32}
	for name, format := range map[string]string{"a.png": "png", "b.PNG": "png", "c.jpg": "jpeg", "d.jpeg": "jpeg"} {
		th := thumbnailOf(t, m, func(ix, iy int) float64 { return float64(ix * iy) })
		f, err := os.Open(writePicture(t, name, th))
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := image.Decode(f); err != nil || got != format {
			t.Errorf("%s is a %s, %v; want %s", name, got, err, format)
		}
		f.Close()
	}
}

// meshArea returns the area inside the frame of the mesh. It finds the first long line of ink, which is the top of the
// frame, and follows the frame.
func meshArea(t *testing.T, img image.Image) image.Rectangle {
	t.Helper()
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			right := x
			for right < b.Max.X && rgb(img, right, y) == ink {
				right++
			}
			if right-x > 60 {
				// A tick of the y axis extends the line to the left, so the frame begins where ink continues downwards.
				down := y
				for rgb(img, right-1, down) == ink {
					down++
				}
				for rgb(img, x, y+1) != ink || rgb(img, x, y+2) != ink {
					x++
				}
				return image.Rect(x+1, y+1, right-1, down-1)
			}
		}
	}
	t.Fatal("the picture has no frame")
	return image.Rectangle{}
}

// A title is cut to the longest prefix that fits.
func TestTitleFits(t *testing.T) {
	faces, err := newTypefaces(pictureText)
	if err != nil {
		t.Fatal(err)
	}
	face := faces.title
	for _, s := range []string{"", "short", strings.Repeat("wide ", 10000), strings.Repeat("i", 300)} {
		for _, pixels := range []int{0, 10, 300, 1200} {
			got := face.Fit(s, pixels)
			kept := strings.TrimSuffix(got, "…")
			if !strings.HasPrefix(s, kept) || got != s && kept != "" && face.Width(got) > pixels {
				t.Fatalf("%d characters in %d pixels: %q", len(s), pixels, got)
			}
			if got != s && face.Width(s[:len(kept)+1]+"…") <= pixels {
				t.Errorf("%d characters in %d pixels: %q, and one more fits", len(s), pixels, got)
			}
		}
	}
}

func TestPictureSizes(t *testing.T) {
	for _, c := range []struct{ nx, ny, width, height int }{
		{4096, 64, 1024, 128}, {64, 4096, 128, 1024}, {3, 3, 801, 801}, {1281, 1281, 641, 641},
	} {
		m := solver.Mesh{NX: c.nx, NY: c.ny, DType: solver.Float64}
		img, err := thumbnailOf(t, m, valueAt).Draw(
			Caption{Title: "a name much longer than any picture is wide, and with no end in sight, and no end at all",
				Sweeps: 1e9, Norm: math.NaN(), Interrupted: true})
		if err != nil {
			t.Fatal(err)
		}
		if area := meshArea(t, img); area.Dx() != c.width || area.Dy() != c.height {
			t.Errorf("%d x %d: the mesh is %v, want %d x %d", c.nx, c.ny, area, c.width, c.height)
		}
		if w := img.Bounds().Dx(); w < 400 || w > 1600 {
			t.Errorf("%d x %d: the picture is %v", c.nx, c.ny, img.Bounds())
		}
	}
}

func TestPictureSaysInterrupted(t *testing.T) {
	th := thumbnailOf(t, solver.Mesh{NX: 8, NY: 8, DType: solver.Float64}, func(int, int) float64 { return 0 })
	for _, want := range []bool{false, true} {
		img, err := th.Draw(Caption{Title: "t", Interrupted: want})
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for i := 0; i < len(img.Pix); i += 4 {
			seen = seen || bytes.Equal(img.Pix[i:i+4], []byte{alarm.R, alarm.G, alarm.B, alarm.A})
		}
		if seen != want {
			t.Errorf("interrupted %v: shown %v", want, seen)
		}
	}
}

func TestPictureSaysStalled(t *testing.T) {
	th := thumbnailOf(t, solver.Mesh{NX: 8, NY: 8, DType: solver.Float64}, func(int, int) float64 { return 0 })
	col, err := newColours(newColourScale(ScaleLinear, [][]float64{{0}}, 0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true} {
		parts := th.captionParts(Caption{Title: "t", Stalled: want}, col, contours{})
		if slices.Contains(parts, "stalled") != want {
			t.Errorf("stalled %v: %q", want, parts)
		}
	}
}
