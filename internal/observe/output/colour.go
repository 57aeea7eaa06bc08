package output

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/palette/moreland"
)

const shades = 1024

// colours maps values to colours by a table of shades. A field on one side of its centre gets inferno (black, violet,
// red, orange, pale yellow). A field on both sides gets Moreland's cool and warm map, whose centre is pale: equal
// distances below and above the centre look equally strong. In both maps equal steps on the scale look like equal
// steps.
type colours struct {
	colourScale
	table [shades]color.RGBA
}

// inferno is matplotlib's map of that name at ten points, equally spaced in lightness.
var inferno = []color.Color{
	color.RGBA{0x00, 0x00, 0x04, 0xff}, color.RGBA{0x1b, 0x0c, 0x42, 0xff}, color.RGBA{0x4b, 0x0c, 0x6b, 0xff},
	color.RGBA{0x78, 0x1c, 0x6d, 0xff}, color.RGBA{0xa5, 0x2c, 0x60, 0xff}, color.RGBA{0xcf, 0x44, 0x46, 0xff},
	color.RGBA{0xed, 0x69, 0x25, 0xff}, color.RGBA{0xfb, 0x9a, 0x06, 0xff}, color.RGBA{0xf7, 0xd0, 0x3c, 0xff},
	color.RGBA{0xfc, 0xff, 0xa4, 0xff},
}

// The colours of infinities, and of NaN, which stands for points outside the material.
var (
	infinite = color.RGBA{0, 255, 0, 255}
	outside  = color.RGBA{0xb4, 0xb4, 0xb4, 0xff}
)

// newColours returns the colours for values on the scale s.
func newColours(s colourScale) (*colours, error) {
	cm, err := moreland.NewLuminance(inferno)
	if err != nil {
		return nil, fmt.Errorf("colour map: %w", err)
	}
	if s.diverging {
		cm = moreland.SmoothBlueRed()
	}
	c := &colours{colourScale: s}
	cm.SetMin(0)
	cm.SetMax(shades - 1)
	for i := range c.table {
		shade, err := cm.At(float64(i))
		if err != nil {
			return nil, fmt.Errorf("colour map: %w", err)
		}
		c.table[i] = color.RGBAModel.Convert(shade).(color.RGBA)
	}
	return c, nil
}

// of returns the colour of v.
func (c *colours) of(v float64) color.RGBA {
	switch {
	case math.IsNaN(v):
		return outside
	case math.IsInf(v, 0):
		return infinite
	}
	return c.table[int(math.Round(c.at(v)*(shades-1)))]
}
