package problem

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/imagefile"
	"jacobi/solver"
)

// drawing says by the colours of a picture which areas are fixed, and at what values, and what they are made of.
type drawing struct {
	text    string // the value of problem.drawing
	colours []configs.Colour
	*raster
	pointless []bool // by colour: no point of the mesh touches it, or no line if it has a value
	touching  string // where colours of two values touch; "" if none do
	bytes     int64  // of memory, while it was read
}

// openDrawing reads the drawing of def, unless ctx ends before; nil if there is none.
func openDrawing(ctx context.Context, def configs.Problem, m solver.Mesh) (*drawing, error) {
	switch {
	case def.Drawing == "" && def.Colours == "":
		return nil, nil
	case def.Drawing != "" && !imagefile.Named(def.Drawing):
		return nil, fmt.Errorf("problem.drawing %q: must be a picture (%s)", def.Drawing, imagefile.Endings)
	case def.Drawing == "":
		return nil, fmt.Errorf("problem.colours %q: problem.drawing has to name a picture with these colours",
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
	d.look(m)
	return d, nil
}

// open reads the picture.
func (d *drawing) open(ctx context.Context, m solver.Mesh) error {
	img, bytes, lossy, err := readPicture(ctx, d.text)
	if err != nil {
		return err
	}
	defer forget(bytes)
	if lossy {
		return errors.New("JPEG does not keep colours; save the picture as PNG, BMP or TIFF")
	}
	mix := d.mixture(img, m)
	if err := mix.read(ctx); err != nil {
		return err
	}
	d.bytes = bytes + mix.bytes()
	d.raster = newRaster(mix)
	return nil
}

// mixture returns what finds the colours of an image.
func (d *drawing) mixture(img image.Image, m solver.Mesh) *mixture {
	across, down := axes(m)
	mix := &mixture{image: img, across: across, down: down}
	for _, c := range d.colours {
		mix.listed = append(mix.listed, c.RGB)
	}
	mix.colour = func(x, y int) (c [3]uint8, opaque bool) {
		r, g, b, a := img.At(x, y).RGBA()
		return [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}, a == 0xffff
	}
	mix.other = func(c [3]uint8, x, y int) (uint8, error) {
		return 0, fmt.Errorf("%v at column %d, row %d is not in problem.colours, nor between two of them at an edge, "+
			"where one of the two lies within %d pixels", configs.Colour{RGB: c}, x, y, reach)
	}
	return mix
}

// values8 returns the bytes of a picture of 8 bits, in rows without gaps, and the number of them for each pixel; nil
// for another picture. Equal bytes are equal colours.
func values8(img image.Image) (values []uint8, size int) {
	stride := 0
	switch img := img.(type) {
	case *image.Gray:
		values, stride, size = img.Pix, img.Stride, 1
	case *image.Paletted:
		values, stride, size = img.Pix, img.Stride, 1
	case *image.RGBA:
		values, stride, size = img.Pix, img.Stride, 4
	case *image.NRGBA:
		values, stride, size = img.Pix, img.Stride, 4
	}
	if stride != size*img.Bounds().Dx() {
		return nil, 0
	}
	return values, size
}

// look finds the colours that no point of the mesh touches, or no line if they have a value, and a place where two
// values touch.
func (d *drawing) look(m solver.Mesh) {
	d.pointless = slices.Repeat([]bool{true}, len(d.colours))
	across, down := d.across.crossed(d.width, m.NX), d.down.crossed(d.height, m.NY)
	for y, on := range down {
		for x, c := range d.row(y) {
			both := [2]uint8{c, c}
			if c == divided {
				e := d.division(x, y)
				both = [2]uint8{e.before, e.beyond}
			}
			for _, c := range both {
				if on && across[x] || (on || across[x]) && d.colours[c].Value != nil {
					d.pointless[c] = false
				}
			}
		}
	}
	d.touching = d.touch()
}

// neighbours are the pixels beside one, with those of its corners that they touch, in the order in which they are read.
var neighbours = []struct {
	x, y          int
	right, bottom float64
}{{1, 0, 1, 0}, {1, 0, 1, 1}, {-1, 1, 0, 1}, {0, 1, 0, 1}, {0, 1, 1, 1}, {1, 1, 1, 1}}

// clash reports whether two colours have two values.
func clash(one, other *configs.Colour) bool {
	return one != nil && other != nil && one != other && one.Value != nil && other.Value != nil &&
		(*one.Value != *other.Value || one.Floating != nil || other.Floating != nil)
}

// touch names a place of the picture where colours of two values touch, as corners of pixels show; "" if none do.
func (d *drawing) touch() string {
	at := func(x, y int, right, bottom float64) (c *configs.Colour) {
		if d.across.periodic {
			x = (x + d.width) % d.width
		}
		if d.down.periodic {
			y %= d.height
		}
		if x < 0 || x >= d.width || y >= d.height {
			return nil
		}
		n := d.row(y)[x]
		if n == divided {
			e := d.division(x, y)
			n = e.corner(right, bottom)
		}
		return &d.colours[n]
	}
	for y := range d.height {
		for x, c := range d.row(y) {
			one, other := (*configs.Colour)(nil), (*configs.Colour)(nil)
			if c == divided {
				e := d.division(x, y)
				one, other = &d.colours[e.before], &d.colours[e.beyond]
			}
			for _, n := range neighbours {
				if clash(one, other) {
					break
				}
				one = at(x, y, n.right, n.bottom)
				other = at(x+n.x, y+n.y, n.right-float64(n.x), n.bottom-float64(n.y))
			}
			if clash(one, other) {
				return fmt.Sprintf("%s and %s touch at column %d, row %d of the picture", one.Title(),
					other.Title(), x, y)
			}
		}
	}
	return ""
}

// fixed returns a condition: whether the drawing gives a place a value.
func (d *drawing) fixed() node {
	chosen, _ := d.given()
	if !slices.Contains(chosen, true) {
		return compared(constant(0))
	}
	return d.condition(chosen)
}

// given returns which colours have a value, and their values.
func (d *drawing) given() (chosen []bool, values []float64) {
	chosen, values = make([]bool, len(d.colours)), make([]float64, len(d.colours))
	for i, c := range d.colours {
		if c.Value != nil {
			chosen[i], values[i] = true, *c.Value
		}
	}
	return chosen, values
}

// over returns n with the values of the drawing in the place of those of its fixed areas.
func (d *drawing) over(n node) node {
	chosen, values := d.given()
	return d.raster.over(n, chosen, values)
}

// hasCoefficients reports whether a colour has a coefficient.
func (d *drawing) hasCoefficients() bool {
	return slices.ContainsFunc(d.colours, func(c configs.Colour) bool { return c.Coefficient != nil })
}

// coefficients returns the coefficients, 1 for colours without.
func (d *drawing) coefficients() node {
	values := slices.Repeat([]float64{1}, len(d.colours))
	for i, c := range d.colours {
		if c.Coefficient != nil {
			values[i] = *c.Coefficient
		}
	}
	return d.values(values)
}

// warnings returns a line for each property that a user may not expect.
func (d *drawing) warnings() (lines []string) {
	for i, c := range d.colours {
		if d.pointless[i] {
			what := "point of the mesh has"
			if c.Value != nil {
				what = "line of the mesh crosses"
			}
			lines = append(lines, fmt.Sprintf("problem.colours: no %s %s", what, c.Title()))
		}
	}
	if d.touching != "" {
		lines = append(lines, fmt.Sprintf("problem.drawing %q: %s; points that both touch have the value of the later "+
			"colour, and the charges of the two grow with the mesh", d.text, d.touching))
	}
	return lines
}

// describe describes the drawing: its file, its regions with their values, and colours that have nothing but a name, so
// that a value which was forgotten is seen. found says that the values of those that float are known.
func (d *drawing) describe(found bool) string {
	var regions []string
	for _, c := range d.colours {
		switch {
		case c.Value != nil:
			regions = append(regions, c.Title()+" "+valueText(c.Value, c.Floating, found))
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

// regions returns the regions of the colours, by their numbers. Those of colours that are free have no name.
func (d *drawing) regions() (list []configs.Region) {
	for _, c := range d.colours {
		r := configs.Region{Value: c.Value, Floating: c.Floating}
		if c.Value != nil {
			r.Name = c.Title()
		}
		list = append(list, r)
	}
	return list
}
