package problem

import (
	"context"
	"encoding/binary"
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
	img, bytes, err := readPicture(ctx, d.text)
	if err != nil {
		return err
	}
	defer forget(bytes)
	size := img.Bounds().Size()
	d.bytes = bytes + int64(size.X)*int64(size.Y)
	pixels, err := d.read(ctx, img)
	across, down := axes(m)
	if err == nil {
		d.raster = newRaster(size.X, size.Y, pixels, across, down)
	}
	return err
}

// read finds the colour of each pixel.
func (d *drawing) read(ctx context.Context, img image.Image) (pixels []uint8, err error) {
	values, size := values8(img)
	width, height := img.Bounds().Dx(), img.Bounds().Dy()
	pixels = make([]uint8, width*height)
	places := map[[3]uint8]uint8{}
	for i, c := range d.colours {
		places[c.RGB] = uint8(i)
	}
	var place uint8
	var value, last uint32 // of the pixel before, which mostly is of the same colour
	known := false
	for y := range height {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		line := values[y*width*size:]
		for x := range width {
			if value = uint32(line[x*size]); size == 4 {
				value = binary.LittleEndian.Uint32(line[4*x:])
			}
			if !known || value != last {
				r, g, b, a := img.At(x, y).RGBA()
				if a != 0xffff {
					return nil, fmt.Errorf("the pixel at column %d, row %d is transparent; all must be opaque", x, y)
				}
				rgb := [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
				var ok bool
				place, ok = places[rgb]
				last, known = value, true
				if !ok {
					return nil, fmt.Errorf("%v at column %d, row %d is not in problem.colours",
						configs.Colour{RGB: rgb}, x, y)
				}
			}
			pixels[y*width+x] = place
		}
	}
	return pixels, nil
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
	if d.width < m.NX && d.height < m.NY { // each pixel has points
		for _, c := range d.pixels {
			d.pointless[c] = false
		}
	} else {
		across, down := d.across.crossed(d.width, m.NX), d.down.crossed(d.height, m.NY)
		for y, on := range down {
			for x, c := range d.row(y) {
				if on && across[x] || (on || across[x]) && d.colours[c].Value != nil {
					d.pointless[c] = false
				}
			}
		}
	}
	d.touching = d.touch()
}

// touch names a place of the picture where colours of two values touch; "" if none do.
func (d *drawing) touch() string {
	at := func(x, y int) (c *configs.Colour, ok bool) {
		if d.across.periodic {
			x = (x + d.width) % d.width
		}
		if d.down.periodic {
			y %= d.height
		}
		if x < 0 || x >= d.width || y >= d.height {
			return nil, false
		}
		c = &d.colours[d.row(y)[x]]
		return c, c.Value != nil
	}
	for y := range d.height {
		for x := range d.width {
			here, ok := at(x, y)
			for _, n := range [][2]int{{x + 1, y}, {x - 1, y + 1}, {x, y + 1}, {x + 1, y + 1}} {
				if other, also := at(n[0], n[1]); ok && also && other != here &&
					(*other.Value != *here.Value || other.Floating != nil || here.Floating != nil) {
					return fmt.Sprintf("%s and %s touch at column %d, row %d of the picture", here.Title(),
						other.Title(), x, y)
				}
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
