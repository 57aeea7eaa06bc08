package problem

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"
	"testing"

	"jacobi/configs"
)

// greys is a picture with a pixel for each number of rows, its grey.
func greys(rows ...string) *image.Gray {
	var values [][]byte
	for _, row := range rows {
		var line []byte
		for _, field := range strings.Fields(row) {
			var v byte
			if _, err := fmt.Sscan(field, &v); err != nil {
				panic(err)
			}
			line = append(line, v)
		}
		values = append(values, line)
	}
	return gray(values...)
}

// withGreys returns the configuration of a problem with a drawing, on a mesh with a point at each corner of its pixels.
func withGreys(t *testing.T, img image.Image, colours string) configs.Config {
	cfg := configs.Default()
	cfg.Grid = configs.Grid{NX: img.Bounds().Dx() + 1, NY: img.Bounds().Dy() + 1, DType: "float64", Width: 1}
	cfg.Problem = configs.Problem{Drawing: pngFile(t, img), Colours: colours}
	return cfg
}

// nearly reports whether two numbers are the same but for bisections of edges.
func nearly(a, b float64) bool { return math.Abs(a-b) < 1e-8*max(1, math.Abs(b)) }

// A grey pixel is divided by the edge of black, which cuts faces where it lies.
func TestSmoothEdges(t *testing.T) {
	const black = "#000000 name=in value=1; #c8c8c8"
	upright := greys("0 0 80 200 200", "0 0 80 200 200", "0 0 80 200 200") // 0.6 of the third pixel are black
	// An edge from the bottom left to the top right, through the middles of sides of pixels: x + y = 3.5.
	slanted := greys("0 0 25 175 200", "0 25 175 200 200", "25 175 200 200 200", "175 200 200 200 200")
	for _, c := range []struct {
		cfg       configs.Config
		marks     string
		iy, ix    int
		east      float64
		iyS, ixS  int
		southFace float64
	}{
		{withGreys(t, upright, black), "###...\n###...\n###...\n###...\n", 1, 2, 1 / 0.4, 1, 3, 1},
		{config(6, 4, "float64", configs.Problem{Fixed: pngFile(t, greys("0 0 102 255 255", "0 0 102 255 255",
			"0 0 102 255 255"))}), "###...\n###...\n###...\n###...\n", 1, 2, 1 / 0.4, 1, 3, 1},
		{withGreys(t, slanted, black), "####..\n###...\n##....\n#.....\n......\n", 1, 2, 2, 1, 2, 2},
	} {
		p := open(t, c.cfg)
		if got := marks(t, p); got != c.marks {
			t.Errorf("fixed points\n%s, want\n%s", got, c.marks)
		}
		f, err := p.take(0).faces(c.iy)
		if err != nil {
			t.Fatal(err)
		}
		if !nearly(f.east[c.ix], c.east) || !nearly(f.south[c.ixS], c.southFace) {
			t.Errorf("%v: faces %v, %v; want %v, %v", c.cfg.Problem, f.east, f.south, c.east, c.southFace)
		}
	}
}

// Materials have what they cover of a pixel: side by side along a face, in series across.
func TestSmoothMaterials(t *testing.T) {
	row := "0 0 80 200 200"
	p := open(t, withGreys(t, greys(row, row, row), "#000000 coefficient=4; #c8c8c8 coefficient=1"))
	f, err := p.take(0).faces(1)
	if err != nil {
		t.Fatal(err)
	}
	// Strips of columns reach half a pixel to either side.
	for _, c := range []struct{ got, want float64 }{
		{f.east[1], 4}, {f.east[2], 1 / (0.6/4 + 0.4)}, {f.east[3], 1}, {f.south[2], 4}, {f.south[3], 1.3},
	} {
		if !nearly(c.got, c.want) {
			t.Errorf("%v, %v: %v, want %v", f.east, f.south, c.got, c.want)
		}
	}
}

// Which two colours divide a pixel follows from those around it.
func TestColoursOfSmoothEdges(t *testing.T) {
	rgb := func(v uint32) color.RGBA { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }
	const red, green = 0xff0000, 0x00ff00
	for _, c := range []struct {
		name           string
		colours        string
		rows           [3][3]uint32
		before, beyond string // of the pixel in the middle
		share          float64
	}{
		{"black and white", "#000000 value=1; #ffffff", [3][3]uint32{{0, 0x666666, 0xffffff}, {0, 0x666666, 0xffffff},
			{0, 0x666666, 0xffffff}}, "#000000", "#ffffff", 0.6},
		{"rounding", "#000000 value=1; #ffffff", [3][3]uint32{{0, 0x666466, 0xffffff}, {0, 0x686664, 0xffffff},
			{0, 0x666666, 0xffffff}}, "#000000", "#ffffff", 0.6},
		{"a listed colour between", "#000000 value=1; #808080; #ffffff", [3][3]uint32{{0, 0x808080, 0xffffff},
			{0, 0x808080, 0xffffff}, {0, 0x808080, 0xffffff}}, "#808080", "", 1},
		{"beside a listed colour between", "#000000 value=1; #808080; #ffffff", [3][3]uint32{{0, 0x404040, 0x808080},
			{0, 0x404040, 0x808080}, {0, 0x404040, 0x808080}}, "#000000", "#808080", 0.5},
		{"a listed colour between, elsewhere", "#000000 value=1; #808080; #ffffff", [3][3]uint32{
			{0, 0x333333, 0xffffff}, {0, 0x333333, 0xffffff}, {0, 0x333333, 0xffffff}}, "#000000", "#ffffff", 0.8},
		{"a listed colour but for rounding", "#000000 value=1; #ffffff", [3][3]uint32{{0, 0, 0}, {0, 0x020102, 0},
			{0, 0, 0}}, "#000000", "", 1},
		{"a small part", "#000000 value=1; #ffffff", [3][3]uint32{{0, 0, 0}, {0, 0x020202, 0}, {0, 0, 0xffffff}},
			"#000000", "#ffffff", 253.0 / 255},
		{"beyond a listed colour", "#ffffff; #020202 value=1", [3][3]uint32{{0x020202, 0x020202, 0xffffff},
			{0x020202, 0, 0xffffff}, {0x020202, 0x020202, 0xffffff}}, "#020202", "", 1},
		{"where three meet", "#ff0000 value=1; #00ff00 coefficient=2; #ffffff", [3][3]uint32{{red, red, red},
			{0xffffff, 0x999933, green}, {0xffffff, 0x80ff80, green}}, "#ff0000", "#00ff00", 0.5},
		{"a line thinner than a pixel", "#000000 value=1; #ffffff", [3][3]uint32{{0xffffff, 0xffffff, 0xffffff},
			{0x999999, 0x999999, 0x999999}, {0xffffff, 0xffffff, 0xffffff}}, "#000000", "#ffffff", 0.4},
	} {
		img := image.NewRGBA(image.Rect(0, 0, 3, 3))
		for i := range 9 {
			img.Set(i%3, i/3, rgb(c.rows[i/3][i%3]))
		}
		p := open(t, withGreys(t, img, c.colours))
		name := func(k uint8) string { return p.drawing.colours[k].String() }
		k := p.drawing.row(1)[1]
		before, beyond, share := "", "", 1.0
		if k == divided {
			e := p.drawing.division(1, 1)
			before, beyond, share = name(e.before), name(e.beyond), e.share(0, 0)
		} else {
			before = name(k)
		}
		if before != c.before || beyond != c.beyond || math.Abs(share-c.share) > 1e-3 {
			t.Errorf("%s: %s, %s, %v; want %s, %s, %v", c.name, before, beyond, share, c.before, c.beyond, c.share)
		}
	}
}

// A problem goes on where its picture has the same shares of pixels, not only the same colours.
func TestContentsOfSmoothEdges(t *testing.T) {
	sum := func(row string) string {
		cfg := withGreys(t, greys(row, row), "#000000 value=1; #c8c8c8")
		contents, err := open(t, cfg).Contents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return contents[fmt.Sprintf("problem.drawing %q", cfg.Problem.Drawing)]
	}
	if one, other := sum("0 0 80 200"), sum("0 0 81 200"); one == other || one == "" {
		t.Errorf("contents %s and %s", one, other)
	}
}

// Where an edge divides a pixel between two values, they touch.
func TestTouchingAtSmoothEdges(t *testing.T) {
	for _, c := range []struct{ colours, row, want string }{
		{"#000000 value=1; #c8c8c8 value=2", "0 0 80 200 200", "#000000 and #c8c8c8 touch at column 2, row 0"},
		{"#000000 value=1; #c8c8c8; #ff00ff value=2", "0 0 80 200 200", ""},
	} {
		p := open(t, withGreys(t, greys(c.row, c.row, c.row), c.colours))
		got := strings.Join(p.drawing.warnings(), "\n")
		if !strings.Contains(got, c.want) || strings.Contains(got, "touch") != (c.want != "") {
			t.Errorf("%s: warnings %q, want %q", c.colours, got, c.want)
		}
	}
}

// Greys at edges of a picture in black and white divide pixels, and those elsewhere, or of a lossy one, are the nearer.
func TestGreysOfBlackAndWhite(t *testing.T) {
	smooth := greys("0 0 100 255 255", "0 0 100 255 255", "0 0 100 255 255")
	plain := greys("100 100 100 200 200", "100 100 100 200 200", "100 100 100 200 200")
	for _, c := range []struct {
		file      string
		divisions int
	}{{pngFile(t, smooth), 3}, {encoded(t, "smooth.jpeg", smooth), 0}, {pngFile(t, plain), 0}} {
		p := open(t, config(6, 4, "float64", configs.Problem{Fixed: c.file}))
		if n := len(p.fixed.picture.divisions); n != c.divisions {
			t.Errorf("%s: %d divisions, want %d", c.file, n, c.divisions)
		}
	}
}
