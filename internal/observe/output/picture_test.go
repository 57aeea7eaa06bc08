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
	must(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	must(t, err)
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
	must(t, err)
	data, err := EncodePicture(name, th, Caption{Title: "dirichlet", Sweeps: 1, Norm: 0.5})
	must(t, err)
	done, err := WritePicture(p, name, data)
	must(t, err)
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
		must(t, err)
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
	faces, err := newTypefaces()
	must(t, err)
	face := faces.title
	for _, s := range []string{"", "short", strings.Repeat("wide ", 10000), strings.Repeat("i", 300)} {
		for _, pixels := range []int{0, 10, 300, 1200} {
			got := face.fit(s, pixels)
			kept := strings.TrimSuffix(got, "…")
			if !strings.HasPrefix(s, kept) || got != s && kept != "" && face.width(got) > pixels {
				t.Fatalf("%d characters in %d pixels: %q", len(s), pixels, got)
			}
			if got != s && face.width(s[:len(kept)+1]+"…") <= pixels {
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
		must(t, err)
		if area := meshArea(t, img); area.Dx() != c.width || area.Dy() != c.height {
			t.Errorf("%d x %d: the mesh is %v, want %d x %d", c.nx, c.ny, area, c.width, c.height)
		}
		if w := img.Bounds().Dx(); w < 400 || w > 1600 {
			t.Errorf("%d x %d: the picture is %v", c.nx, c.ny, img.Bounds())
		}
	}
}

func TestPictureSaysHowTheRunEnded(t *testing.T) {
	th := thumbnailOf(t, solver.Mesh{NX: 8, NY: 8, DType: solver.Float64}, func(int, int) float64 { return 0 })
	for _, want := range []bool{false, true} {
		img, err := th.Draw(Caption{Title: "t", Interrupted: want})
		must(t, err)
		seen := false
		for i := 0; i < len(img.Pix); i += 4 {
			seen = seen || bytes.Equal(img.Pix[i:i+4], []byte{alarm.R, alarm.G, alarm.B, alarm.A})
		}
		if seen != want {
			t.Errorf("interrupted %v: shown %v", want, seen)
		}
		if parts := th.captionParts(Caption{Title: "t", Stalled: want}, &colours{}, contours{}); slices.Contains(parts,
			"stalled") != want {
			t.Errorf("stalled %v: %q", want, parts)
		}
	}
}

// drawn returns the columns of the middle row of the mesh in which the picture with contours differs from that without.
func drawn(t *testing.T, th *Thumbnail, c Caption) (columns []int, width int) {
	t.Helper()
	without, err := th.Draw(Caption{Scale: c.Scale})
	must(t, err)
	c.Title = ""
	with, err := th.Draw(c)
	must(t, err)
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
	must(t, err)
	lined, err := th.Draw(Caption{Scale: ScaleLinear, Contours: 1})
	must(t, err)
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
		must(t, err)
		got, err := th.Draw(Caption{Contours: 3, Outlines: c.lines})
		must(t, err)
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
