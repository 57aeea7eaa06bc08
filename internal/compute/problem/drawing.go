package problem

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"jacobi/configs"
	"jacobi/solver"
)

// drawing says by the colours of a picture which points are fixed, and at what values. Each point takes the pixel that
// is nearest to it.
type drawing struct {
	text          string // the value of problem.drawing
	width, height int
	pixels        []uint8 // rows one after the other: the place of the colour among colours
	colours       []configs.Colour
	columns       []int  // the pixel of each column of the mesh
	rows          []int  // and of each row
	unseen        []bool // by colour: no point of the mesh has it
	*blocks              // one
}

// openDrawing reads the drawing of def; nil if there is none.
func openDrawing(def configs.Problem, m solver.Mesh) (*drawing, error) {
	switch {
	case def.Drawing == "" && def.Colours == "":
		return nil, nil
	case def.Drawing != "" && !hasSuffix(def.Drawing, ".png") && fileName.MatchString(def.Drawing):
		return nil, fmt.Errorf("problem.drawing %q: a file of kind %s cannot be read; it must be %s", def.Drawing,
			filepath.Ext(def.Drawing), pngKind)
	case def.Drawing == "":
		return nil, fmt.Errorf("problem.colours %q: problem.drawing has to name a PNG file with these colours",
			def.Colours)
	case def.Colours == "":
		return nil, fmt.Errorf("problem.drawing %q: problem.colours has to say what its colours mean", def.Drawing)
	}
	colours, err := configs.ParseColours(def.Colours)
	if err == nil && !slices.ContainsFunc(colours, func(c configs.Colour) bool {
		return c.Value != nil || c.Coefficient != nil
	}) {
		err = fmt.Errorf("%q: at least one colour must have a value or a coefficient", def.Colours)
	}
	if err != nil {
		return nil, fmt.Errorf("problem.colours %w", err)
	}
	img, err := readPNG(def.Drawing)
	if err != nil {
		return nil, fmt.Errorf("problem.drawing %q: %w", def.Drawing, def.Missing(err))
	}
	d := &drawing{text: def.Drawing, colours: colours}
	if err := d.read(img); err != nil {
		return nil, fmt.Errorf("problem.drawing %q: %w", def.Drawing, err)
	}
	for ix := range m.NX {
		d.columns = append(d.columns, nearestPixel(ix, m.NX, d.width))
	}
	for iy := range m.NY {
		d.rows = append(d.rows, nearestPixel(iy, m.NY, d.height))
	}
	d.look()
	d.blocks = oneBlock(d.width, d.pixels)
	return d, nil
}

// read finds the colour of each pixel.
func (d *drawing) read(img image.Image) error {
	switch img.ColorModel() {
	case color.Gray16Model, color.RGBA64Model, color.NRGBA64Model:
		return errors.New("its colours have 16 bits; they must have 8")
	}
	size := img.Bounds().Size()
	d.width, d.height, d.pixels = size.X, size.Y, make([]uint8, size.X*size.Y)
	places := map[[3]uint8]uint8{}
	for i, c := range d.colours {
		places[c.RGB] = uint8(i)
	}
	unknown := map[[3]uint8]bool{}
	var first string
	var last color.RGBA64 // of the pixel before, which mostly is of the same colour
	at, known := img.(image.RGBA64Image).RGBA64At, false
	for i := range d.pixels {
		x, y := i%size.X, i/size.X
		c := at(x, y)
		if known && c == last {
			d.pixels[i] = d.pixels[i-1]
			continue
		}
		if c.A != 0xffff {
			return fmt.Errorf("the pixel at column %d, row %d is transparent; all must be opaque", x, y)
		}
		rgb := [3]uint8{uint8(c.R >> 8), uint8(c.G >> 8), uint8(c.B >> 8)}
		place, ok := places[rgb]
		last, known = c, ok
		if !ok && len(unknown) == 0 {
			first = fmt.Sprintf("%v at column %d, row %d", configs.Colour{RGB: rgb}, x, y)
		}
		if !ok && len(unknown) < maxUnknown {
			unknown[rgb] = true
		}
		d.pixels[i] = place
	}
	switch more := len(unknown) - 1; {
	case more < 0:
		return nil
	case more == 0:
		return fmt.Errorf("%s is not in problem.colours", first)
	case len(unknown) < maxUnknown:
		return fmt.Errorf("%s, and %s, are not in problem.colours; draw without smooth edges", first,
			english.Plural(more, "other colour", ""))
	default:
		return fmt.Errorf("%s, and at least %d other colours, are not in problem.colours; draw without smooth edges",
			first, more)
	}
}

// maxUnknown bounds the unknown colours that an error counts.
const maxUnknown = 1000

// look finds the colours that no point of the mesh has.
func (d *drawing) look() {
	d.unseen = slices.Repeat([]bool{true}, len(d.colours))
	left := len(d.colours)
	for iy, row := range d.rows {
		if iy > 0 && row == d.rows[iy-1] {
			continue
		}
		for _, column := range d.columns {
			if place := d.pixels[row*d.width+column]; d.unseen[place] {
				d.unseen[place] = false
				left--
			}
		}
		if left == 0 {
			return
		}
	}
}

// at returns the colour of a point.
func (d *drawing) at(iy, ix int) *configs.Colour { return &d.colours[d.place(iy, ix)] }

func (d *drawing) place(iy, ix int) uint8 { return d.pixels[d.rows[iy]*d.width+d.columns[ix]] }

// fixed returns a condition: whether the drawing gives a point a value.
func (d *drawing) fixed() node {
	return node{onX: true, drawn: true, isBool: true, eval: func(s *span, dst []float64) {
		for i := range dst {
			dst[i] = 0
			if d.at(s.row, s.col+i).Value != nil {
				dst[i] = 1
			}
		}
	}}
}

// over returns n with the values of the drawing in the place of those of its fixed points.
func (d *drawing) over(n node) node {
	return node{onX: true, onY: n.onY, drawn: true, eval: func(s *span, dst []float64) {
		n.fill(s, dst)
		for i := range dst {
			if v := d.at(s.row, s.col+i).Value; v != nil {
				dst[i] = *v
			}
		}
	}}
}

// hasCoefficients reports whether a colour has a coefficient.
func (d *drawing) hasCoefficients() bool {
	return slices.ContainsFunc(d.colours, func(c configs.Colour) bool { return c.Coefficient != nil })
}

// coefficients returns the coefficients of the points, 1 for colours without.
func (d *drawing) coefficients() node {
	return node{onX: true, drawn: true, eval: func(s *span, dst []float64) {
		for i := range dst {
			dst[i] = 1
			if a := d.at(s.row, s.col+i).Coefficient; a != nil {
				dst[i] = *a
			}
		}
	}}
}

// warnings returns a line for each property that a user may not expect.
func (d *drawing) warnings(m solver.Mesh) (lines []string) {
	if d.width != m.NX || d.height != m.NY {
		lines = append(lines, fmt.Sprintf("problem.drawing %q: %s", d.text, scaled(d.width, d.height, m)))
	}
	for i, c := range d.colours {
		if d.unseen[i] {
			lines = append(lines, fmt.Sprintf("problem.colours: no point of the mesh has %s", c.Title()))
		}
	}
	return lines
}

// scaled says that a picture has another size than the mesh.
func scaled(width, height int, m solver.Mesh) string {
	return fmt.Sprintf("a picture of %d x %d; each of the %d x %d points takes the nearest pixel", width, height, m.NX,
		m.NY)
}

// String describes the drawing: its file, its regions with their values, and colours that have nothing but a name, so
// that a value which was forgotten is seen.
func (d *drawing) String() string {
	var regions []string
	for _, c := range d.colours {
		switch {
		case c.Value != nil:
			regions = append(regions, fmt.Sprintf("%s %.6g", c.Title(), *c.Value))
		case c.Coefficient == nil && c.Name != "":
			regions = append(regions, c.Name+" free")
		}
	}
	if regions == nil {
		return d.text
	}
	return d.text + ": " + strings.Join(regions, ", ")
}

// materials names the colours that have a coefficient, with it; "" for none.
func (d *drawing) materials() string {
	var list []string
	for _, c := range d.colours {
		if c.Coefficient != nil {
			list = append(list, fmt.Sprintf("%s %.6g", c.Title(), *c.Coefficient))
		}
	}
	return strings.Join(list, ", ")
}

// RegionNames returns the names of the regions of a drawing by their numbers, "" for colours that are free; nil without
// a drawing.
func (p *Problem) RegionNames() (names []string) {
	if p.drawing == nil {
		return nil
	}
	for _, c := range p.drawing.colours {
		name := ""
		if c.Value != nil {
			name = c.Title()
		}
		names = append(names, name)
	}
	return names
}

// Region returns the number of the region of a fixed point of a problem with a drawing.
func (p *Problem) Region(iy, ix int) int {
	iy, _ = p.mesh.Canonical(iy)
	return int(p.drawing.place(iy, ix))
}
