package problem

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"jacobi/configs"
)

// marks returns the fixed points of p as a picture of # and dots.
func marks(t testing.TB, p *Problem) string {
	t.Helper()
	var b strings.Builder
	row := make([]bool, p.Mesh().NX)
	for iy := range p.Mesh().NY {
		if err := p.FixedRow(iy, row); err != nil {
			t.Fatal(err)
		}
		for _, fixed := range row {
			b.WriteByte(".#"[map[bool]int{true: 1}[fixed]])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// boolFile writes a .npy file of truth values and returns its path.
func boolFile(t testing.TB, fortran, shape string, values []byte) string {
	t.Helper()
	dict := fmt.Sprintf("{'descr': '|b1', 'fortran_order': %s, 'shape': %s, }\n", fortran, shape)
	b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(b[8:], uint16(len(dict)))
	return writeFile(t, "mask.npy", append(append(b, dict...), values...))
}

func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func pngFile(t testing.TB, img image.Image) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "mask.png", b.Bytes())
}

// encoded writes a picture to a file of the format of its name.
func encoded(t testing.TB, name string, img image.Image) string {
	t.Helper()
	var b bytes.Buffer
	encode := map[string]func() error{
		".bmp": func() error { return bmp.Encode(&b, img) }, ".tif": func() error { return tiff.Encode(&b, img, nil) },
		".tiff": func() error { return tiff.Encode(&b, img, &tiff.Options{Compression: tiff.Deflate}) },
		".jpeg": func() error { return jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}) },
		".png":  func() error { return png.Encode(&b, img) },
	}[strings.ToLower(filepath.Ext(name))]
	if err := encode(); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, name, b.Bytes())
}

// gray returns a picture with the grey values of rows.
func gray(rows ...[]byte) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, len(rows[0]), len(rows)))
	for y, row := range rows {
		copy(img.Pix[y*img.Stride:], row)
	}
	return img
}

// A condition, an array in either order, and pictures of all kinds say which points are fixed.
func TestFixedPoints(t *testing.T) {
	const want = ".....\n.##..\n..#..\n....#\n"
	values := []byte(strings.NewReplacer(".", "\x00", "#", "\x01", "\n", "").Replace(want))
	turned, full, wide := make([]byte, len(values)), make([]byte, len(values)), make([]byte, 8*len(values))
	img := image.NewNRGBA(image.Rect(0, 0, 5, 4))
	bright, deep := image.NewGray(img.Rect), image.NewGray16(img.Rect)
	palette := image.NewPaletted(img.Rect, color.Palette{color.White, color.RGBA{R: 0xff, A: 0xff}, color.Transparent})
	for i, v := range values {
		ix, iy := i%5, i/5
		turned[ix*4+iy], full[i] = v, 255*v
		binary.LittleEndian.PutUint64(wide[8*i:], math.Float64bits(float64(v)))
		img.Set(ix, iy, color.NRGBA{0, 0, 0, 0}) // transparent, which is white
		if v == 1 {
			img.Set(ix, iy, color.NRGBA{100, 100, 100, 0xff})
		}
		bright.SetGray(ix, iy, color.Gray{255 - 255*v})
		deep.SetGray16(ix, iy, color.Gray16{0x80ff - 0x100*uint16(v)})
		palette.SetColorIndex(ix, iy, v)
		if iy == 0 {
			palette.SetColorIndex(ix, iy, 2)
		}
	}
	for _, text := range []string{
		"iy == 1 and (ix == 1 or ix == 2) or iy == 2 and ix == 2 or iy == 3 and ix == 4",
		boolFile(t, "False", "(4, 5)", values), boolFile(t, "True", "(4, 5)", turned), pngFile(t, img),
		pngFile(t, palette), writeFile(t, "full.npy", append(npyBytes(1, "|u1", "False", "(1, 4, 5)", 0, 0), full...)),
		encoded(t, "mask.bmp", bright), encoded(t, "mask.TIF", img), encoded(t, "mask.jpeg", bright),
		encoded(t, "deep.png", deep), encoded(t, "deep.tiff", deep),
		writeFile(t, "wide.npy", append(npyBytes(1, "<f8", "False", "(4, 5)", 0, 0), wide...)),
	} {
		p := open(t, config(5, 4, "float32", configs.Problem{Fixed: text}))
		if got := marks(t, p); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", filepath.Base(text), got, want)
		}
		// Of the marked points, the one in the last row and column belongs to walls.
		for lo := range 5 {
			for hi := lo; hi <= 4; hi++ {
				n := int64(0)
				if lo <= 1 && hi > 1 {
					n += 2
				}
				if lo <= 2 && hi > 2 {
					n++
				}
				if got, err := p.CountFixed(t.Context(), lo, hi); err != nil || got != n {
					t.Errorf("%s: rows [%d, %d): %d, %v, want %d", filepath.Base(text), lo, hi, got, err, n)
				}
			}
		}
		if err := p.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if w := p.Warnings(t.Context()); w != nil {
			t.Errorf("warnings %q", w)
		}
	}
}

// A picture covers the mesh from side to side. A point is fixed if a black pixel touches it.
func TestPictureOfAnotherSize(t *testing.T) {
	const b, w = 0, 255
	path := encoded(t, "mask.png", gray([]byte{b, w}, []byte{w, b}, []byte{w, w}))
	p := open(t, config(5, 6, "float32", configs.Problem{Fixed: path}))
	if got, want := marks(t, p), "###..\n###..\n..###\n..###\n.....\n.....\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if w := p.Warnings(t.Context()); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
}

func TestFixedPointsOfPeriodicSides(t *testing.T) {
	p := open(t, config(6, 5, "float32", configs.Problem{Left: "periodic", Right: "periodic", Top: "periodic",
		Bottom: "periodic", Fixed: "ix == 1 && iy == 3"}))
	if got, want := marks(t, p), ".#...#\n......\n......\n.#...#\n......\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := open(t, config(6, 5, "float32", configs.Problem{})).Operator().Fixed; got != nil {
		t.Errorf("fixed points %v without any", got)
	}
}

// hugePNG is the start of a PNG file that claims to have the given numbers of pixels.
func hugePNG(width, height uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, width), height)
	b = append(b, 8, 2, 0, 0, 0)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[12:]))
}

// hugeJPEG is the same as JPEG, of 20000 x 20000 pixels.
func hugeJPEG(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, 0x1234, 0x12)), nil); err != nil {
		t.Fatal(err)
	}
	return bytes.Replace(b.Bytes(), []byte("\x00\x12\x12\x34"), []byte("\x4e\x20\x4e\x20"), 1)
}

// interlaced returns the start of a PNG file as that of one with interlacing.
func interlaced(b []byte) []byte {
	b[28] = 1
	return binary.BigEndian.AppendUint32(b[:29], crc32.ChecksumIEEE(b[12:29]))
}

func TestBadFixedPoints(t *testing.T) {
	values := bytes.Repeat([]byte{0}, 20)
	bad := bytes.Clone(values)
	bad[7] = 9
	floating := configs.Problem{Preset: "gtc2019", Left: "neumann(0)", Right: "neumann(0)"}
	with := func(p configs.Problem, fixed string) configs.Problem {
		p.Fixed = fixed
		return p
	}
	const unique = `so any constant can be added to a solution; give a value on a side, points in problem.fixed, `
	for _, c := range []struct {
		p    configs.Problem
		want string // %s is the file
	}{
		{configs.Problem{Fixed: "x"}, `problem.fixed "x": it is a number, not a condition; allowed are a condition, ` +
			`such as hypot(x-0.5, y-0.5) < 0.2, a NumPy array (.npy) and a picture (.png, ` +
			`.bmp, .tif, .tiff, .jpg or .jpeg)`},
		{configs.Problem{Fixed: "true"}, `problem.fixed "true": it fixes all 6 points that a sweep could change; at ` +
			`least one has to be free`},
		{configs.Problem{Fixed: "x > 0 and x < 1 and y > 0 and y < 1"},
			`problem.fixed "x > 0 and x < 1 and y > 0 and y ` +
				`< 1": it fixes all 6 points that a sweep could change; at least one has to be free`},
		{floating, `solver.method "jacobi": no side has values, so any constant can be added to a solution, and ` +
			`sweeps keep what alternates from point to point; take multigrid, which finds the field with the mean ` +
			`0, or give a value on a side or points in problem.fixed`},
		{with(floating, "x > 2"), `problem.left "neumann(0)", right "neumann(0)", top "periodic", bottom ` +
			`"periodic": no ` +
			`side has values, ` + unique + `problem.screening above 0, or a robin side with h above 0`},
		{with(floating, "ix == 0 and iy == 1"), ""},
		{configs.Problem{Source: "../f.csv"}, `problem.source "../f.csv": column 1: . is not allowed in an ` +
			`expression; allowed are a number, an expression and a NumPy array (.npy)`},
		{configs.Problem{Fixed: "absent.png"}, `problem.fixed "absent.png": no such file or directory`},
		{configs.Problem{Fixed: writeFile(t, "a.png", []byte("GIF89a, for instance"))},
			`problem.fixed %q: it is not a PNG, BMP, TIFF or JPEG picture`},
		{configs.Problem{Fixed: writeFile(t, "a.png", hugePNG(20000, 20000))},
			`problem.fixed %q: a picture of 20000 x ` +
				`20000 pixels takes 1525 MiB; at most 256 MiB are allowed, which is 16384 x 16384 pixels of 8-bit ` +
				`grey`},
		{configs.Problem{Fixed: writeFile(t, "a.png", interlaced(hugePNG(16000, 8000)))},
			`problem.fixed %q: a picture of 16000 x 8000 interlaced pixels takes 976 MiB; at most 256 MiB are ` +
				`allowed, which is 16384 x 16384 pixels of 8-bit grey without interlacing`},
		{configs.Problem{Fixed: writeFile(t, "a.jpg", hugeJPEG(t))}, `problem.fixed %q: a picture of 20000 x 20000 ` +
			`pixels takes 7247 MiB; at most 256 MiB are allowed, which is 16384 x 16384 pixels of 8-bit grey as PNG`},
		{configs.Problem{Fixed: writeFile(t, "a.png", hugePNG(5, 4))},
			`problem.fixed %q: not a complete PNG file of at most 256 MiB: unexpected EOF`},
		{configs.Problem{Fixed: boolFile(t, "False", "(5, 4)", values)},
			`problem.fixed %q: shape (5, 4); it must be (4, 5) for points or (3, 4) for cells between them (grid.ny, ` +
				`grid.nx)`},
		{configs.Problem{Fixed: boolFile(t, "False", "(4, 5)", bad)},
			`problem.fixed %q: row 1: column 2: 9 is no truth value, which is 0, 1 or 255`},
		{configs.Problem{Fixed: boolFile(t, "False", "(4, 5)", values[1:])},
			`problem.fixed %q: truncated: 89 bytes of 90`},
	} {
		p, err := New(t.Context(), config(5, 4, "float32", c.p))
		if err == nil {
			err = errors.Join(p.Check(t.Context()), p.Close())
		} else if o := p.Operator(); o.Fixed != nil {
			t.Errorf("%v: operator %+v", err, o)
		}
		want := c.want
		if strings.Contains(want, "%q") {
			want = fmt.Sprintf(want, c.p.Fixed+strings.TrimPrefix(c.p.Source, "0"))
		}
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestCountFixedHeedsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	p := open(t, config(9, 9, "float32", configs.Problem{Fixed: "x > 0.5"}))
	const want = "problem: working out its values: enough"
	if _, err := p.CountFixed(ctx, 0, 9); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A screening that float64 nearly loses is refused where nothing else determines a constant.
func TestScreeningIsTooWeak(t *testing.T) {
	weak := configs.Problem{Left: "neumann(0)", Right: "neumann(0)", Top: "neumann(0)", Bottom: "neumann(0)",
		Screening: "1e-09"}
	check := func(p configs.Problem) error { return open(t, config(65, 65, "float64", p)).Check(t.Context()) }
	const want = `problem.screening 1e-09: with no side that has values and no points in problem.fixed, ` +
		`it must be at least 3.725290298461914e-09 on this mesh, as rounding loses less; values on a side or fixed ` +
		`points help, too`
	if err := check(weak); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	enough, pinned := weak, weak
	enough.Screening, pinned.Fixed = "4e-09", "ix == 3 and iy == 3"
	for _, p := range []configs.Problem{enough, pinned} {
		if err := check(p); err != nil {
			t.Error(err)
		}
	}
}

// With coarser levels, fixed points give all points weights of their own, and sweeps alone keep the constant operator.
func TestFixedPointsOfMultigridAreWeighted(t *testing.T) {
	for _, c := range []struct {
		method, fixed string
		want          bool
		rule          int
	}{
		{"multigrid", "ix == 3", true, edgeRule}, {"multigrid", NoFixed, false, 0}, {"jacobi", "ix == 3", false, 0},
	} {
		cfg := config(9, 9, "float64", configs.Problem{Fixed: c.fixed})
		cfg.Solver.Method = c.method
		if p := open(t, cfg); p.Weighted() != c.want || p.EdgeRule() != c.rule {
			t.Errorf("%s, %s: weighted %t, rule %d, want %t, %d", c.method, c.fixed, p.Weighted(), p.EdgeRule(), c.want,
				c.rule)
		}
	}
}
