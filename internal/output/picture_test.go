package output

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jacobi/solver"
)

// thumbnailOf returns the thumbnail of f over the whole mesh.
func thumbnailOf(t *testing.T, m solver.Mesh, f func(ix, iy int) float64) *Thumbnail {
	t.Helper()
	th := NewThumbnail(m)
	for iy := range m.NY {
		if err := th.AddRows(iy, testRow(m, iy, f)); err != nil {
			t.Fatal(err)
		}
	}
	return th
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		nx, ny int
		want   scale
	}{
		{1024, 1024, scale{axis{1, 1}, axis{1, 1}}},
		{16384, 16384, scale{axis{13, 1}, axis{13, 1}}},
		{3, 3, scale{axis{1, 267}, axis{1, 267}}},
		{799, 10, scale{axis{1, 1}, axis{1, 14}}},
		{512, 256, scale{axis{1, 2}, axis{1, 2}}},
		{1280, 1281, scale{axis{2, 1}, axis{2, 1}}},
		{4096, 64, scale{axis{4, 1}, axis{1, 3}}},
		{64, 4096, scale{axis{1, 3}, axis{4, 1}}},
		{1 << 20, 1000, scale{axis{820, 1}, axis{4, 1}}},
	} {
		if got := newScale(c.nx, c.ny); got != c.want {
			t.Errorf("%d x %d: %+v, want %+v", c.nx, c.ny, got, c.want)
		}
	}
	for _, n := range []int{3, 4, 31, 400, 640, 641, 799, 800, 1279, 1280, 1281, 5000, 99999} {
		for _, m := range []int{3, 50, 1000, 1281, 70000} {
			s := newScale(n, m)
			w, h := s.x.length(n), s.y.length(m)
			if long, short := max(w, h), min(w, h); long < minPixels/2 || long > maxPixels || short < long/flattest {
				t.Errorf("%d x %d points become %d x %d pixels", n, m, w, h)
			}
		}
	}
}

func TestThumbnailAverages(t *testing.T) {
	// cells of 3 x 3 points, the last column of cells 2 wide
	m := solver.Mesh{NX: 2561, NY: 2562, DType: solver.Float32}
	th := thumbnailOf(t, m, func(ix, iy int) float64 { return float64(ix + 4*iy) })
	cells, err := th.cells()
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) != 854 || len(cells[0]) != 854 {
		t.Fatalf("%d x %d cells", len(cells), len(cells[0]))
	}
	for y, line := range cells {
		for x, got := range line {
			want := float64(3*x+1) + 4*float64(3*y+1)
			if x == 853 {
				want = 2559.5 + 4*float64(3*y+1)
			}
			if got != want {
				t.Fatalf("cell %d, %d: %v, want %v", x, y, got, want)
			}
		}
	}
	if th.min != 0 || th.max != 2560+4*2561 {
		t.Errorf("range %v to %v", th.min, th.max)
	}
}

func TestThumbnailDoesNotDependOnRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := solver.Mesh{NX: 400, NY: 2700, DType: solver.Float64} // cells of 2 x 3 points; stripes begin at multiples of 8
	values := make([]float64, m.NX*m.NY)
	for i := range values {
		values[i] = r.NormFloat64() * math.Exp(10*r.NormFloat64())
	}
	f := func(ix, iy int) float64 { return values[iy*m.NX+ix] }
	one := thumbnailOf(t, m, f)
	want, err := one.cells()
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{2, 5, 300} {
		stripes, err := solver.Partition(m.NY, ranks, 1)
		if err != nil {
			t.Fatal(err)
		}
		merged := NewThumbnail(m)
		r.Shuffle(ranks, func(i, j int) { stripes[i], stripes[j] = stripes[j], stripes[i] })
		for _, s := range stripes {
			th := NewThumbnail(m)
			if err := (View{m, s, memory{m, s, f}, initial{m, f}}).Each(t.Context(), th.AddRows); err != nil {
				t.Fatal(err)
			}
			b, err := th.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			var back Thumbnail
			if err := back.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
			if err := merged.Merge(&back); err != nil {
				t.Fatal(err)
			}
		}
		got, err := merged.cells()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) || merged.min != one.min || merged.max != one.max {
			t.Errorf("%d ranks: the thumbnail differs", ranks)
		}
	}
}

func TestThumbnailRefuses(t *testing.T) {
	m := solver.Mesh{NX: 3, NY: 3, DType: solver.Float64}
	th := thumbnailOf(t, m, valueAt)
	if err := th.AddRows(1, testRow(m, 1, valueAt)); err == nil {
		t.Error("a row twice")
	}
	if err := th.Merge(thumbnailOf(t, m, valueAt)); err == nil {
		t.Error("all rows twice")
	}
	if err := th.Merge(NewThumbnail(solver.Mesh{NX: 3, NY: 4, DType: solver.Float64})); err == nil {
		t.Error("another mesh")
	}
	for _, c := range []struct{ lo, bytes int }{{-1, 24}, {3, 24}, {2, 48}, {0, 23}} {
		if err := NewThumbnail(m).AddRows(c.lo, make([]byte, c.bytes)); err == nil {
			t.Errorf("%d bytes at row %d", c.bytes, c.lo)
		}
	}
	part := NewThumbnail(m)
	if err := part.AddRows(0, testRow(m, 0, valueAt)); err != nil {
		t.Fatal(err)
	}
	if _, err := part.Draw(Caption{}); err == nil {
		t.Error("a picture of missing rows")
	}
}

func FuzzThumbnailUnmarshal(f *testing.F) {
	th := NewThumbnail(solver.Mesh{NX: 3, NY: 3000, DType: solver.Float32})
	if err := th.AddRows(1, make([]byte, 12*10)); err != nil {
		f.Fatal(err)
	}
	b, err := th.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add(append(slices.Clone(b), b[thumbHeader:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var th Thumbnail
		if th.UnmarshalBinary(b) != nil {
			return
		}
		again, err := th.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var back Thumbnail
		if err := back.UnmarshalBinary(again); err != nil {
			t.Fatalf("what was read does not read again: %v", err)
		}
	})
}

// rgb returns the colour of a pixel.
func rgb(img image.Image, x, y int) color.RGBA {
	return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
}

func TestPicture(t *testing.T) {
	m := solver.Mesh{NX: 800, NY: 400, DType: solver.Float32} // a pixel a point
	// 1 above, 0 below: white at either end of inferno would show a wrong map.
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

// writePicture writes the picture name, whose room suffices, and returns the path of its partial file.
func writePicture(t *testing.T, name string, th *Thumbnail) string {
	t.Helper()
	dir := t.TempDir()
	p, err := Dir(dir).Create(name, "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	done, err := WritePicture(p, name, th, Caption{Title: "dirichlet", Sweeps: 1, Norm: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, p.File())
	got, err := os.ReadFile(path)
	if err != nil || done != fileOf(name, got) {
		t.Errorf("%+v, %v; want %+v", done, err, fileOf(name, got))
	}
	if room := pictureBytes(th.mesh); done.Bytes > room {
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

// near forgives the rounding of colour spaces.
func near(a, b color.RGBA) bool {
	d := func(x, y uint8) bool { return max(x, y)-min(x, y) <= 2 }
	return d(a.R, b.R) && d(a.G, b.G) && d(a.B, b.B) && a.A == b.A
}

// meshArea finds the first long line of ink in img, the frame's upper side, and follows the frame.
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
				// Ticks of the axis of y join the frame at its left: begin where the frame goes down.
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

// The longest beginning of a title that has room is kept, and found without trying each.
func TestTitleFits(t *testing.T) {
	faces, err := newTypefaces()
	if err != nil {
		t.Fatal(err)
	}
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
		{4096, 64, 1024, 192}, {64, 4096, 192, 1024}, {3, 3, 801, 801}, {1281, 1281, 641, 641},
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
		parts := th.captionParts(Caption{Title: "t", Stalled: want}, col)
		if slices.Contains(parts, "stalled") != want {
			t.Errorf("stalled %v: %q", want, parts)
		}
	}
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
			if col.of(math.NaN()) != undefined || col.of(inf) != undefined {
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
		_, labels := ticks(c.lo, c.hi, c.n)
		if got := fmt.Sprint(labels); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}

func BenchmarkThumbnail(b *testing.B) {
	m := solver.Mesh{NX: 16384, NY: 16384, DType: solver.Float32}
	rows := bytes.Repeat(testRow(m, 1, valueAt), 13)
	b.SetBytes(int64(len(rows)))
	for b.Loop() {
		if err := NewThumbnail(m).AddRows(0, rows); err != nil {
			b.Fatal(err)
		}
	}
}
