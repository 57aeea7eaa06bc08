package output

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"jacobi/internal/base/parallel"
)

// contours are lines of equal value in a picture. Their levels divide the range of the field on the colour scale into
// equal parts.
type contours struct {
	count     int
	scale     colourScale
	place     func(v float64) float64 // scale.at, for many values
	low, high float64                 // positions of the least and the largest value on the scale
	slack     float64                 // in parts: values so near below a level count as above it
}

// newContours returns count contours of a field with values in [min, max], which rounding shifts by a relative amount.
func newContours(count int, s colourScale, min, max, rounding float64) contours {
	c := contours{count: count, scale: s, place: s.placing(), low: s.at(min), high: s.at(max)}
	if !(c.high-c.low > 0) {
		c.count = 0
	}
	c.slack = 4 * rounding * float64(count+1)
	return c
}

// part returns in which part of the range v lies, from 0 to count; -1 if it is no number.
func (c contours) part(v float64) int {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return -1
	}
	return min(c.count, int((c.place(v)-c.low)/(c.high-c.low)*float64(c.count+1)+c.slack))
}

// caption describes the levels.
func (c contours) caption(min, max float64) string {
	if c.count == 0 {
		return ""
	}
	if c.scale.kind == ScaleLinear {
		return fmt.Sprintf("contours every %.3g", (max-min)/float64(c.count+1))
	}
	return plural(c.count, "contour")
}

// levels returns the shade of the level below each part, that of the least value below the first one.
func (c contours) levels(col *colours) []color.RGBA {
	list := make([]color.RGBA, c.count+1)
	for part := range list {
		at := c.low + (c.high-c.low)*float64(part)/float64(c.count+1)
		list[part] = col.table[int(math.Round(at*(shades-1)))]
	}
	return list
}

// contours draws lines between pixels in different parts of the range. Between the middles of cells the value of a
// pixel is interpolated.
func (pic sheet) contours(r image.Rectangle, cells [][]float64, s scale, c contours, col *colours) {
	if c.count == 0 {
		return
	}
	levels, columns, lines := c.levels(col), s.x.middles(r.Dx(), len(cells[0])), s.y.middles(r.Dy(), len(cells))
	parts := make([][]int32, r.Dy())
	_ = parallel.Each(len(parts), func(y int) error { // never fails
		parts[y] = make([]int32, r.Dx())
		above, below := cells[lines[y].before], cells[lines[y].after]
		for x, at := range columns {
			parts[y][x] = int32(c.part(mix(mix(above[at.before], above[at.after], at.part),
				mix(below[at.before], below[at.after], at.part), lines[y].part)))
		}
		return nil
	})
	_ = parallel.Each(len(parts), func(y int) error { // never fails
		for x, part := range parts[y] {
			before := part
			if x > 0 && differ(parts[y][x-1], part) {
				before = parts[y][x-1]
			} else if y > 0 && differ(parts[y-1][x], part) {
				before = parts[y-1][x]
			}
			if before != part {
				at := r.Min.Add(image.Pt(x, y))
				pic.SetRGBA(at.X, at.Y, lined(pic.RGBAAt(at.X, at.Y), levels[max(before, part)]))
			}
		}
		return nil
	})
}

// differ reports whether a level lies between two parts.
func differ(a, b int32) bool { return a != b && a >= 0 && b >= 0 }

// mix returns the value at part f of the way from a to b.
func mix(a, b, f float64) float64 {
	if f == 0 {
		return a
	}
	return float64(a*(1-f)) + float64(b*f)
}

// middle is where the middle of a pixel lies: between the middles of two cells, and which part of the way between them.
type middle struct {
	before, after int
	part          float64
}

// middles returns where the middles of pixels lie among n cells.
func (a axis) middles(pixels, n int) []middle {
	all := make([]middle, pixels)
	for i := range all {
		at := max(0, min((float64(i)+0.5)/a.pixels-0.5, float64(n-1)))
		before := int(at)
		all[i] = middle{before, min(before+1, n-1), at - float64(before)}
	}
	return all
}

// lined returns a shade under a contour: darker if it is light, and lighter if it is dark. In between, where both
// contrast, the shade of the level decides, so that a line does not alternate.
func lined(c, level color.RGBA) color.RGBA {
	line := color.RGBA{0, 0, 0, 0xff}
	if b := brightness(c); b < 92 || b < 122 && brightness(level) < 110 {
		line = color.RGBA{0xff, 0xff, 0xff, 0xff}
	}
	mix := func(a, b uint8) uint8 { return uint8((int(a) + 4*int(b)) / 5) }
	return color.RGBA{mix(c.R, line.R), mix(c.G, line.G), mix(c.B, line.B), 0xff}
}

// brightness returns from 0 to 255 how light a shade is.
func brightness(c color.RGBA) int { return (299*int(c.R) + 587*int(c.G) + 114*int(c.B)) / 1000 }

// edge returns the pixel that begins at a place i points from the first one of a side.
func (a axis) edge(i float64) int { return int(math.Round((i + 0.5) * a.perPoint())) }

// outlines draws lines of Caption.Outlines over the mesh at r: two pixels of ink between pale ones, which are readable
// on every shade and unlike a contour.
func (pic sheet) outlines(r image.Rectangle, s scale, lines [][4]float64) {
	if len(lines) == 0 {
		return
	}
	const pale, dark = 1, 2
	mask := make([]uint8, r.Dx()*r.Dy()) // so that where lines meet, each pixel is drawn once
	for _, part := range []struct {
		shade  uint8
		beside int // pixels on each side of a line
	}{{pale, 2}, {dark, 1}} {
		for _, l := range lines {
			line := image.Rect(s.x.edge(l[0]), s.y.edge(l[1]), s.x.edge(l[2]), s.y.edge(l[3])).Inset(-part.beside)
			line = line.Intersect(image.Rectangle{Max: r.Size()})
			for y := line.Min.Y; y < line.Max.Y; y++ {
				for x := line.Min.X; x < line.Max.X; x++ {
					mask[y*r.Dx()+x] = part.shade
				}
			}
		}
	}
	for i, shade := range mask {
		x, y := r.Min.X+i%r.Dx(), r.Min.Y+i/r.Dx()
		switch shade {
		case pale:
			pic.SetRGBA(x, y, paled(pic.RGBAAt(x, y)))
		case dark:
			pic.SetRGBA(x, y, ink)
		}
	}
}

// paled returns a shade that is two thirds white.
func paled(c color.RGBA) color.RGBA {
	mix := func(v uint8) uint8 { return uint8((int(v) + 2*0xff) / 3) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}
