package output

import (
	"image"
	"image/color"
	"math"
)

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
