package output

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/palette/moreland"
)

const shades = 1024

// colours maps values to colours by a table of shades. Both maps are made for perceived differences
// in proportion to the values: inferno (black, violet, red, orange, pale yellow) for a field of one sign; Moreland's
// cool and warm, with a pale centre at 0, for one with both signs, so that equal amounts below and above 0 look
// equally strong.
type colours struct {
	min, max float64 // of the colour bar; min < max
	table    [shades]color.RGBA
}

// inferno is matplotlib's map of that name at ten places of equal distance in lightness.
var inferno = []color.Color{
	color.RGBA{0x00, 0x00, 0x04, 0xff}, color.RGBA{0x1b, 0x0c, 0x42, 0xff}, color.RGBA{0x4b, 0x0c, 0x6b, 0xff},
	color.RGBA{0x78, 0x1c, 0x6d, 0xff}, color.RGBA{0xa5, 0x2c, 0x60, 0xff}, color.RGBA{0xcf, 0x44, 0x46, 0xff},
	color.RGBA{0xed, 0x69, 0x25, 0xff}, color.RGBA{0xfb, 0x9a, 0x06, 0xff}, color.RGBA{0xf7, 0xd0, 0x3c, 0xff},
	color.RGBA{0xfc, 0xff, 0xa4, 0xff},
}

// undefined is the colour of what is no finite number.
var undefined = color.RGBA{0, 255, 0, 255}

// newColours returns the colours for values in [min, max].
func newColours(min, max float64) (*colours, error) {
	cm, err := moreland.NewLuminance(inferno)
	if err != nil {
		return nil, fmt.Errorf("colour map: %w", err)
	}
	if !(min <= max) { // no finite value at all
		min, max = 0, 0
	}
	switch {
	case min < 0 && max > 0:
		cm = moreland.SmoothBlueRed()
		max = math.Max(-min, max)
		min = -max
	case max-min <= 1e-12*math.Max(math.Abs(min), math.Abs(max)):
		// A constant field, but for rounding: any interval around it will do.
		half := math.Abs(min) / 2
		if half == 0 {
			half = 0.5
		}
		min, max = min-half, max+half
	}
	c := &colours{min: min, max: max}
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

// at returns the colour of v. Averages may leave [min, max] by a rounding.
func (c *colours) at(v float64) color.RGBA {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return undefined
	}
	t := (v/2 - c.min/2) / (c.max/2 - c.min/2) // halves, for the span may overflow
	return c.table[int(math.Round(math.Min(math.Max(t, 0), 1)*(shades-1)))]
}
