package output

import (
	"image/color"
	"math"

	"jacobi/solver"
)

// Bar is the colour bar of a field: how its values become colours. It is the same as that of a picture of the same
// cells. A value v is at the position (w(v) - w(Min)) / (w(Max) - w(Min)) of the bar, where w depends on Scale; see
// warp in colourscale.go.
type Bar struct {
	Scale     string  `json:"scale"` // ScaleLinear, ScaleLog or ScaleSqrt
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Centre    float64 `json:"centre"`
	Near      float64 `json:"near"`
	Diverging bool    `json:"diverging"` // chooses between the two lists of Shades
	Ticks     []Tick  `json:"ticks"`
	Caption   string  `json:"caption"` // "" for a linear scale
}

// Tick is a labelled value of a colour bar.
type Tick struct {
	Value float64 `json:"value"`
	Label string  `json:"label"`
}

// NewBar returns the bar for lines of cells on the scale called kind, ScaleAuto included, with about the given number
// of ticks.
func NewBar(kind string, cells [][]float64, d solver.DType, about int) Bar {
	lo, hi := math.Inf(1), math.Inf(-1) // of all finite values
	for _, line := range cells {
		for _, v := range line {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	s := newColourScale(kind, cells, lo, hi, (&Thumbnail{mesh: solver.Mesh{DType: d}}).rounding())
	b := Bar{Scale: s.kind, Min: s.min, Max: s.max, Centre: s.centre, Near: s.near, Diverging: s.diverging,
		Caption: s.caption()}
	values, labels := s.ticks(about)
	for i, v := range values {
		b.Ticks = append(b.Ticks, Tick{v, labels[i]})
	}
	return b
}

// Shades returns the colours of a bar, from its lower to its upper end in equal steps.
func Shades(diverging bool) ([]color.RGBA, error) {
	c, err := newColours(colourScale{kind: ScaleLinear, max: 1, diverging: diverging})
	if err != nil {
		return nil, err
	}
	return c.table[:], nil
}
