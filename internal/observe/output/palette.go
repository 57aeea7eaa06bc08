package output

import (
	"image"
	"image/color"
)

// palette is the 256 colours of an animation: those of the field, and those of text on white.
type palette struct {
	colours color.Palette
	known   map[color.RGBA]uint8
}

// newPalette returns the palette of a picture in these colours.
func newPalette(col *colours) palette {
	p := palette{known: map[color.RGBA]uint8{}}
	add := func(c color.RGBA) { p.colours = append(p.colours, c) }
	add(color.RGBA{255, 255, 255, 255})
	add(infinite)
	add(outside)
	for _, text := range []color.RGBA{ink, faint, alarm} {
		const steps = 8
		for i := 1; i <= steps; i++ {
			mix := func(v uint8) uint8 { return uint8(255 + (int(v)-255)*i/steps) }
			add(color.RGBA{mix(text.R), mix(text.G), mix(text.B), 255})
		}
	}
	for i, first := 0, len(p.colours); len(p.colours) < 256; i++ {
		add(col.table[i*(shades-1)/(255-first)])
	}
	return p
}

// reduce returns pic in the colours of the palette.
func (p palette) reduce(pic *image.RGBA) *image.Paletted {
	out := image.NewPaletted(pic.Bounds(), p.colours)
	for i := range out.Pix {
		c := color.RGBA{pic.Pix[4*i], pic.Pix[4*i+1], pic.Pix[4*i+2], pic.Pix[4*i+3]}
		at, ok := p.known[c]
		if !ok {
			at = uint8(p.colours.Index(c))
			p.known[c] = at
		}
		out.Pix[i] = at
	}
	return out
}
