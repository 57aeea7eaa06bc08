package output

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
)

const shades = 1024

// colours maps values to colours by a table of shades. Both maps are Moreland's, made for perceived differences
// in proportion to the values: black body (black, violet, red, orange, yellow, white) for a field of one sign; cool
// and warm, with a pale centre at 0, for one with both signs, so that equal amounts below and above 0 look
// equally strong.
type colours struct {
	min, max float64 // of the colour bar; min < max
	table    [shades]color.RGBA
}

// undefined is the colour of what is no finite number.
var undefined = color.RGBA{0, 255, 0, 255}

// newColours returns the colours for values in [min, max].
func newColours(min, max float64) (*colours, error) {
	var cm palette.ColorMap = moreland.ExtendedBlackBody()
	if !(min <= max) { // no finite value at all
		min, max = 0, 0
	}
	switch {
	case min < 0 && max > 0:
		cm = moreland.SmoothBlueRed()
		max = math.Max(-min, max)
		min = -max
	case min == max:
		// A constant field: any interval around it will do, as long as float64 can tell its ends apart.
		half := math.Max(math.Abs(min)/2, 0.5)
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
