package problem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/solver"
)

// drawing says by the colours of a picture which points are fixed, and at what values. Each point takes the pixel that
// is nearest to it.
type drawing struct {
	text    string // the value of problem.drawing
	x, y    side
	pixels  []uint8 // that are kept, rows one after the other: the place of the colour among colours
	colours []configs.Colour
	unseen  []bool // by colour: no point of the mesh has it
	bytes   int64  // of memory, while it was read
	*blocks        // one
}

// side is a side of a picture beside that of the mesh. The pixels are kept that points take.
type side struct{ points, pixels int }

// kept returns the number of pixels that are kept.
func (s side) kept() int { return min(s.points, s.pixels) }

// pixel returns pixel k of those that are kept.
func (s side) pixel(k int) int {
	if s.points < s.pixels {
		return nearestPixel(k, s.points, s.pixels)
	}
	return k
}

// at returns which of the pixels that are kept point i takes.
func (s side) at(i int) int {
	if s.points > s.pixels {
		return nearestPixel(i, s.points, s.pixels)
	}
	return i
}

// openDrawing reads the drawing of def, unless ctx ends before; nil if there is none.
func openDrawing(ctx context.Context, def configs.Problem, m solver.Mesh) (*drawing, error) {
	switch {
	case def.Drawing == "" && def.Colours == "":
		return nil, nil
	case def.Drawing != "" && !hasSuffix(def.Drawing, ".png"):
		return nil, fmt.Errorf("problem.drawing %q: must be a PNG picture (.png)", def.Drawing)
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
	d := &drawing{text: def.Drawing, colours: colours}
	if err := d.open(ctx, m); err != nil {
		return nil, fmt.Errorf("problem.drawing %q: %w", def.Drawing, def.Missing(err))
	}
	d.look()
	d.blocks = oneBlock(d.x.kept(), d.pixels)
	return d, nil
}

// open reads the picture.
func (d *drawing) open(ctx context.Context, m solver.Mesh) error {
	img, bytes, err := readPNG(ctx, d.text)
	if err != nil {
		return err
	}
	defer forget(bytes)
	size := img.Bounds().Size()
	d.x, d.y = side{m.NX, size.X}, side{m.NY, size.Y}
	d.bytes = bytes + int64(d.x.kept())*int64(d.y.kept())
	return d.read(ctx, img)
}

// read finds the colour of each pixel.
func (d *drawing) read(ctx context.Context, img image.Image) error {
	values, size := values8(img)
	if values == nil {
		return errors.New("its colours have 16 bits; they must have 8")
	}
	d.pixels = make([]uint8, 0, d.x.kept()*d.y.kept())
	places := map[[3]uint8]uint8{}
	for i, c := range d.colours {
		places[c.RGB] = uint8(i)
	}
	var place uint8
	var value, last uint32 // of the pixel before, which mostly is of the same colour
	known, row := false, make([]uint8, d.x.pixels)
	for y := range d.y.pixels {
		if err := ended(ctx); err != nil {
			return err
		}
		line := values[y*len(row)*size:]
		for x := range row {
			if value = uint32(line[x*size]); size == 4 {
				value = binary.LittleEndian.Uint32(line[4*x:])
			}
			if !known || value != last {
				r, g, b, a := img.At(x, y).RGBA()
				if a != 0xffff {
					return fmt.Errorf("the pixel at column %d, row %d is transparent; all must be opaque", x, y)
				}
				rgb := [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
				var ok bool
				place, ok = places[rgb]
				last, known = value, true
				if !ok {
					return fmt.Errorf("%v at column %d, row %d is not in problem.colours", configs.Colour{RGB: rgb}, x,
						y)
				}
			}
			row[x] = place
		}
		if k := len(d.pixels) / d.x.kept(); k < d.y.kept() && d.y.pixel(k) == y {
			for i := range d.x.kept() {
				d.pixels = append(d.pixels, row[d.x.pixel(i)])
			}
		}
	}
	return nil
}

// values8 returns the bytes of a picture of 8 bits, in rows without gaps, and the number of them for each pixel; nil
// for another picture. Equal bytes are equal colours.
func values8(img image.Image) (values []uint8, size int) {
	switch img := img.(type) {
	case *image.Gray:
		return img.Pix, 1
	case *image.Paletted:
		return img.Pix, 1
	case *image.RGBA:
		return img.Pix, 4
	case *image.NRGBA:
		return img.Pix, 4
	}
	return nil, 0
}

// look finds the colours that no point of the mesh has.
func (d *drawing) look() {
	d.unseen = slices.Repeat([]bool{true}, len(d.colours))
	left := len(d.colours)
	for _, place := range d.pixels {
		if d.unseen[place] {
			d.unseen[place] = false
			if left--; left == 0 {
				return
			}
		}
	}
}

// row returns the places of the colours of a row of the mesh, by pixels that are kept.
func (d *drawing) row(iy int) []uint8 {
	n := d.x.kept()
	return d.pixels[d.y.at(iy)*n:][:n]
}

// eachColour calls f with the colours of the n points of a span.
func (d *drawing) eachColour(s *span, n int, f func(i int, c *configs.Colour)) {
	row := d.row(s.row)
	for i := range n {
		f(i, &d.colours[row[d.x.at(s.col+i)]])
	}
}

// fixed returns a condition: whether the drawing gives a point a value.
func (d *drawing) fixed() node {
	return node{onX: true, drawn: true, isBool: true, eval: func(s *span, dst []float64) {
		d.eachColour(s, len(dst), func(i int, c *configs.Colour) {
			dst[i] = 0
			if c.Value != nil {
				dst[i] = 1
			}
		})
	}}
}

// over returns n with the values of the drawing in the place of those of its fixed points.
func (d *drawing) over(n node) node {
	return node{onX: true, onY: n.onY, drawn: true, eval: func(s *span, dst []float64) {
		n.fill(s, dst)
		d.eachColour(s, len(dst), func(i int, c *configs.Colour) {
			if c.Value != nil {
				dst[i] = *c.Value
			}
		})
	}}
}

// hasCoefficients reports whether a colour has a coefficient.
func (d *drawing) hasCoefficients() bool {
	return slices.ContainsFunc(d.colours, func(c configs.Colour) bool { return c.Coefficient != nil })
}

// coefficients returns the coefficients of the points, 1 for colours without.
func (d *drawing) coefficients() node {
	return node{onX: true, drawn: true, eval: func(s *span, dst []float64) {
		d.eachColour(s, len(dst), func(i int, c *configs.Colour) {
			dst[i] = 1
			if c.Coefficient != nil {
				dst[i] = *c.Coefficient
			}
		})
	}}
}

// warnings returns a line for each property that a user may not expect.
func (d *drawing) warnings(m solver.Mesh) (lines []string) {
	if d.x.pixels != m.NX || d.y.pixels != m.NY {
		lines = append(lines, fmt.Sprintf("problem.drawing %q: %s", d.text, scaled(d.x.pixels, d.y.pixels, m)))
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
	return int(p.drawing.row(iy)[p.drawing.x.at(ix)])
}
