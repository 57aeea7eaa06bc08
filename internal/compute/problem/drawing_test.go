package problem

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// drawn returns a picture with a pixel for each letter of rows: c copper, b blue, a point white.
func drawn(rows ...string) *image.NRGBA {
	colours := map[rune]color.NRGBA{'c': {0xb8, 0x73, 0x33, 0xff}, 'b': {0x15, 0x65, 0xc0, 0xff},
		'.': {0xff, 0xff, 0xff, 0xff}, 'x': {0xb8, 0x73, 0x34, 0xff}, 'y': {1, 2, 3, 0xff},
		't': {0xff, 0xff, 0xff, 0xfe}}
	img := image.NewNRGBA(image.Rect(0, 0, len(rows[0]), len(rows)))
	for y, row := range rows {
		for x, letter := range row {
			img.SetNRGBA(x, y, colours[letter])
		}
	}
	return img
}

const copperAndBlue = "#b87333 name=strip value=1.5; #1565c0 value=-2; #ffffff name=air"

// withDrawing returns the configuration of a 6 x 5 problem with a drawing.
func withDrawing(t *testing.T, img image.Image) configs.Config {
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY, cfg.Grid.DType = 6, 5, "float64"
	cfg.Problem = configs.Problem{Initial: "x", Drawing: pngFile(t, img), Colours: copperAndBlue}
	return cfg
}

// The areas of a colour with a value keep it, with all points that touch them; where two touch, the later colour
// counts. Other points begin with problem.initial. Sides are as in the run file.
func TestDrawing(t *testing.T) {
	cfg := withDrawing(t, drawn("cc..", ".c.b", "...b", "...."))
	cfg.Problem.Left, cfg.Problem.Right = "periodic", "periodic"
	p, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Columns 0 and 5 are copies of columns 4 and 1.
	if got, want := marks(t, p), "######\n######\n######\n#..##.\n......\n"; strings.SplitN(got, "\n", 2)[1] !=
		strings.SplitN(want, "\n", 2)[1] {
		t.Errorf("fixed points\n%s, want\n%s", got, want)
	}
	values := func(iy int) []float64 {
		row, v := make([]byte, p.Mesh().RowBytes()), make([]float64, 6)
		if err := p.Row(iy, row); err != nil {
			t.Fatal(err)
		}
		p.Mesh().DType.Decode(v, row)
		return v
	}
	for iy, want := range map[int][]float64{
		1: {-2, 1.5, 1.5, -2, -2, 1.5},
		2: {-2, 1.5, 1.5, -2, -2, 1.5},
		3: {-2, 0.25, 0.5, -2, -2, 0.25},
	} {
		for ix, v := range values(iy) {
			if math.Abs(v-want[ix]) > 1e-15 {
				t.Errorf("row %d: %v, want %v", iy, values(iy), want)
				break
			}
		}
	}
	if got := strings.Join(p.RegionNames(), ","); got != "strip,#1565c0," {
		t.Errorf("regions %q", got)
	}
	if a, b := regionAt(t, p, 2, 1), regionAt(t, p, 1, 4); a != 0 || b != 1 {
		t.Errorf("points of the regions %d and %d, want 0 and 1", a, b)
	}
	setup := p.Setup(5)
	want := cfg.Problem.Drawing + ": strip 1.5, #1565c0 -2, air free"
	if setup.Drawing != want || setup.Fixed != NoFixed {
		t.Errorf("drawing %q, fixed %q, want %q", setup.Drawing, setup.Fixed, want)
	}
	want = `problem.drawing "` + cfg.Problem.Drawing + `": strip and #1565c0 touch at column 0, row 0 of the ` +
		`picture; points that both touch have the value of the later colour, and the charges of the two grow with ` +
		`the mesh`
	if w := p.Warnings(t.Context()); len(w) != 1 || w[0] != want {
		t.Errorf("warnings %q, want %q", w, want)
	}
}

// A drawing of another size than the mesh covers it all the same. A colour that no point touches is said.
func TestDrawingOfAnotherSize(t *testing.T) {
	p, err := New(t.Context(), withDrawing(t, drawn("............", "............", ".......b....", "...........c")))
	if err != nil {
		t.Fatal(err)
	}
	if w := p.Warnings(t.Context()); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
	if got, want := marks(t, p), "......\n......\n...#..\n...#.#\n.....#\n"; got != want {
		t.Errorf("fixed points\n%s, want\n%s", got, want)
	}
	rows := slices.Repeat([]string{strings.Repeat(".", 15)}, 12) // three pixels to a spacing
	rows[0], rows[4] = "c"+rows[0][1:], "....b.........."
	coarse := drawn(rows...)
	cfg := withDrawing(t, coarse)
	if p, err = New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if w := p.Warnings(t.Context()); len(w) != 1 || w[0] != "problem.colours: no line of the mesh crosses #1565c0" {
		t.Errorf("warnings %q", w)
	}
}

// A drawing has the same colours in each format, and in 16 bits.
func TestDrawingsOfAllFormats(t *testing.T) {
	img := drawn("......", ".cc..b", "......", "......", "......")
	deep := image.NewNRGBA64(img.Rect)
	draw.Draw(deep, img.Rect, img, image.Point{}, draw.Src)
	want := marks(t, open(t, withDrawing(t, img)))
	for _, file := range []string{encoded(t, "a.bmp", img), encoded(t, "a.TIFF", img), encoded(t, "b.tif", deep),
		encoded(t, "b.png", deep)} {
		cfg := withDrawing(t, img)
		cfg.Problem.Drawing = file
		if got := marks(t, open(t, cfg)); got != want || !strings.Contains(want, "#") {
			t.Errorf("%s:\n%s\nwant\n%s", filepath.Base(file), got, want)
		}
	}
}

// Wrong drawings are refused, with the colour and its place.
func TestWrongDrawings(t *testing.T) {
	good := drawn("......", ".cc..b", "......", "......", "......")
	for name, c := range map[string]struct {
		img    image.Image
		change func(*configs.Config)
		want   string
	}{
		"a colour": {drawn("......", "..y...", "......"), nil, `problem.drawing "F": #010203 at column 2, row 1 is ` +
			`not in problem.colours, nor between two of them at an edge, where one of the two lies within 2 pixels`},
		"a colour far from edges": {drawn("cxxxxx"), nil, `problem.drawing "F": #b87334 at column 3, row 0 is ` +
			`not in problem.colours, nor between two of them at an edge, where one of the two lies within 2 pixels`},
		"JPEG": {good, func(c *configs.Config) { c.Problem.Drawing = encoded(t, "a.jpeg", good) },
			`problem.drawing "F": JPEG does not keep colours; save the picture as PNG, BMP or TIFF`},
		"transparent": {drawn("......", ".....t", "......"), nil,
			`problem.drawing "F": the pixel at column 5, row 1 is transparent; all must be opaque`},
		"no colours": {good, func(c *configs.Config) { c.Problem.Colours = "" },
			`problem.drawing "F": problem.colours has to say what its colours mean`},
		"no drawing": {good, func(c *configs.Config) { c.Problem.Drawing = "" }, `problem.colours "` + copperAndBlue +
			`": problem.drawing has to name a picture with these colours`},
		"wrong colours": {good, func(c *configs.Config) { c.Problem.Colours = "copper" },
			`problem.colours "copper": must begin with a colour, as in #b87333 name=strip value=1`},
		"no value": {good, func(c *configs.Config) { c.Problem.Colours = "#b87333; #ffffff" },
			`problem.colours "#b87333; #ffffff": at least one colour must have a value or a coefficient`},
		"two coefficients": {good, func(c *configs.Config) {
			c.Problem.Colours, c.Problem.Coefficient = "#b87333 coefficient=2; #1565c0; #ffffff", "1 + x"
		}, `problem.coefficient "1 + x": colours of problem.drawing have coefficients; name them in one of the two`},
		"a coefficient of 1": {good, func(c *configs.Config) {
			c.Problem.Colours, c.Problem.Coefficient = "#b87333 coefficient=2; #1565c0; #ffffff", "1"
		}, `problem.coefficient "1": colours of problem.drawing have coefficients; name them in one of the two`},
		"fixed": {good, func(c *configs.Config) { c.Problem.Fixed = "x < 0.5" },
			`problem.fixed "x < 0.5": problem.drawing says which points are fixed; name one of the two`},
		"a large value": {good, func(c *configs.Config) {
			c.Problem.Colours, c.Grid.DType = strings.Replace(copperAndBlue, "1.5", "1e39", 1), "float32"
		}, `problem.colours: strip: value 1e+39 is too large for float32`},
		"no file": {good, func(c *configs.Config) { c.Problem.Drawing = "none.png" },
			`problem.drawing "none.png": no such file or directory`},
		"an initial file": {good, func(c *configs.Config) {
			c.Problem.Initial = writeFile(t, "start.npy", npyBytes(1, "<f8", "False", "(5, 6)", 30, solver.Float64))
		}, `problem.initial "I": beside problem.drawing it must be a number or an expression`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withDrawing(t, c.img)
			file := cfg.Problem.Drawing
			if c.change != nil {
				c.change(&cfg)
			}
			if cfg.Problem.Drawing != "" && c.change != nil {
				file = cfg.Problem.Drawing
			}
			_, err := New(t.Context(), cfg)
			want := strings.NewReplacer(`"F"`, `"`+file+`"`, `"I"`, `"`+cfg.Problem.Initial+`"`).Replace(c.want)
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	cfg := withDrawing(t, drawn("cccccc", "cccccc", "cccccc", "cccccc", "cccccc"))
	p, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := `problem.drawing "` + cfg.Problem.Drawing + `": it fixes all 12 points that a sweep could change; ` +
		`at least one has to be free`
	if err := p.Check(t.Context()); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A colour may have a coefficient: a face has that of the pixels in its strip, up to the edge of a colour with a value.
func TestDrawnMaterials(t *testing.T) {
	cfg := withDrawing(t, drawn(".....", ".bb..", ".cc.y", ".y..."))
	cfg.Problem.Colours = "#b87333 name=strip value=1; #1565c0 name=board coefficient=4; #010203 value=0 " +
		"coefficient=3; #ffffff"
	p := open(t, cfg)
	if !p.Weighted() {
		t.Error("not weighted")
	}
	one, err := p.take(0).faces(1)
	if err != nil {
		t.Fatal(err)
	}
	zero, err := p.take(0).faces(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want float64 }{
		{one.east[0], 1}, {one.east[1], 2.5}, {one.east[2], 2.5}, {one.east[3], 1}, // above 1, below 4
		{one.south[1], 2.5}, {one.south[2], 4}, {one.south[3], 2.5}, {zero.south[2], 1}, {zero.east[1], 1},
	} {
		if math.Abs(c.got-c.want) > 1e-10 {
			t.Errorf("faces %v, %v, %v, want %v", zero, one.east, one.south, c)
		}
	}
	setup := p.Setup(4)
	if setup.Materials != "board 4, #010203 3" || setup.Coefficient != "1" || !setup.Weighted {
		t.Errorf("%+v", setup)
	}
	if err := p.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
