package output

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/palette/moreland"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

const shades = 1024

// colours maps values to colours by a table of shades. A field on one side of its centre gets inferno (black, violet,
// red, orange, pale yellow). A field on both sides gets Moreland's cool and warm map, whose centre is pale: equal
// distances below and above the centre look equally strong. In both maps equal steps on the scale look like equal
// steps.
type colours struct {
	colourScale
	place func(v float64) float64 // at, for many values
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
	c := &colours{colourScale: s, place: s.placing()}
	cm.SetMin(0)
	cm.SetMax(shades - 1)
	err = parallel.Each(shades, func(i int) error {
		shade, err := cm.At(float64(i))
		if err != nil {
			return fmt.Errorf("colour map: %w", err)
		}
		c.table[i] = color.RGBAModel.Convert(shade).(color.RGBA)
		return nil
	})
	return c, err
}

// of returns the colour of v.
func (c *colours) of(v float64) color.RGBA {
	switch {
	case math.IsNaN(v):
		return outside
	case math.IsInf(v, 0):
		return infinite
	}
	return c.table[int(math.Round(c.place(v)*(shades-1)))]
}

// The values of output.picture_scale.
const (
	ScaleAuto   = "auto"
	ScaleLinear = "linear"
	ScaleLog    = "log"
	ScaleSqrt   = "sqrt"
)

// The automatic scale is logarithmic or a square root when more than half of the cells lie within these distances of
// the centre, in units of the largest distance.
const (
	logBelow  = 1e-3
	sqrtBelow = 1.0 / 30
)

// maxDecades bounds the range of a logarithmic scale. Values nearer to the centre have nearly its colour.
const maxDecades = 12

// colourScale maps values to positions on the colour bar, from 0 at min to 1 at max. A logarithmic and a square-root
// scale apply to the distance from centre, on both sides of it; centre is 0 or the value of most of the field. Up to
// the distance near, a logarithmic scale is linear; that part is as long as one decade.
type colourScale struct {
	kind           string // ScaleLinear, ScaleLog or ScaleSqrt
	min, max       float64
	centre, near   float64
	diverging      bool    // values lie on both sides of centre, which is then the middle of the bar
	close, closeBy float64 // share of the cells within closeBy of centre; closeBy is 1/1000 of the largest distance
}

// newColourScale returns the scale called kind for cells with values in [min, max]. The scale depends on the cells
// alone, so it is the same for any number of ranks.
func newColourScale(kind string, cells [][]float64, min, max, rounding float64) colourScale {
	if !(min <= max) || max-min < 1e-300 && math.Abs(min) < 1e-300 { // no finite value, or all nearly 0
		min, max = 0, 0
	}
	if max-min <= 1e-12*math.Max(math.Abs(min), math.Abs(max)) {
		// The field is constant up to rounding, so any interval around it will do.
		half := math.Abs(min) / 2
		if half == 0 {
			half = 0.5
		}
		return colourScale{kind: ScaleLinear, min: math.Max(min-half, -math.MaxFloat64),
			max: math.Min(max+half, math.MaxFloat64)}
	}
	s := colourScale{kind: kind, min: min, max: max}
	sample := sampled(cells)
	s.centre = centre(sample, min, max)
	far := math.Min(math.Max(s.centre-min, max-s.centre), math.MaxFloat64)
	for i, v := range sample {
		sample[i] = math.Abs(v - s.centre)
	}
	s.closeBy = far * logBelow
	s.close = share(sample, s.closeBy)
	if kind == ScaleAuto {
		s.kind = ScaleLinear
		switch {
		case s.close > 0.5:
			s.kind = ScaleLog
		case share(sample, far*sqrtBelow) > 0.5:
			s.kind = ScaleSqrt
		}
	}
	switch s.kind {
	case ScaleLinear:
		s.centre = 0
	case ScaleLog:
		s.near = nearest(sample, far, rounding*math.Abs(s.centre))
	}
	if s.diverging = min < s.centre && s.centre < max; s.diverging {
		far = math.Max(s.centre-min, max-s.centre)
		s.min, s.max = math.Max(s.centre-far, -math.MaxFloat64), math.Min(s.centre+far, math.MaxFloat64)
	}
	return s
}

// sampled returns about sixteen thousand finite values of cells, or all if there are fewer, in ascending order. A page
// gets five frames a second, each with a scale: sorting more of them would take most of its time.
func sampled(cells [][]float64) (values []float64) {
	step := 1 + len(cells)*len(cells[0])>>14
	for y, line := range cells {
		for x := y % step; x < len(line); x += step {
			if v := line[x]; !math.IsNaN(v) && !math.IsInf(v, 0) {
				values = append(values, v)
			}
		}
	}
	slices.Sort(values)
	return values
}

// centre returns the value shared by more than half of the field within a tolerance of a thousandth of its range.
// Without such a value it returns the number in [lo, hi] nearest to 0. A result within the tolerance of 0 becomes 0.
func centre(sample []float64, lo, hi float64) float64 {
	slack := (hi/2 - lo/2) * logBelow * 2
	c := math.Min(math.Max(0, lo), hi)
	if n := len(sample); n > 0 {
		m := sample[n/2]
		if 2*count(sample, func(v float64) bool { return m-slack <= v && v < m+slack }) > n {
			c = m
		}
	}
	if math.Abs(c) <= slack {
		return 0
	}
	return c
}

// share returns the fraction of the values that are at most limit.
func share(values []float64, limit float64) float64 {
	n := count(values, func(v float64) bool { return v <= limit })
	return float64(n) / math.Max(1, float64(len(values)))
}

// nearest returns the distance at which a logarithmic scale up to far begins. This is a power of ten with all but 2% of
// the nonzero distances above it, two to maxDecades decades below far, and above the rounding.
func nearest(distances []float64, far, rounding float64) float64 {
	top := decade(far)
	lowest, highest := top-maxDecades, top-2
	if rounding > 0 {
		lowest = max(lowest, decade(rounding)+1)
	}
	low := lowest
	if zeros := count(distances, func(v float64) bool { return v == 0 }); zeros < len(distances) {
		slices.Sort(distances)
		low = decade(distances[zeros+(len(distances)-zeros)/50])
	}
	return math.Pow(10, float64(max(lowest, min(low, highest))))
}

// warp maps v to the scale before it is normalised to [0, 1]. It grows with v.
func (s *colourScale) warp(v float64) float64 {
	half := v/2 - s.centre/2 // v - s.centre may overflow
	switch s.kind {
	case ScaleSqrt:
		return math.Copysign(math.Sqrt(math.Abs(half)), half)
	case ScaleLog:
		d := math.Abs(half) / (s.near / 2)
		if d > 1 {
			d = 1 + math.Log10(d)
		}
		return math.Copysign(d, half)
	}
	return half
}

// at returns the position of v on the bar, from 0 to 1.
func (s colourScale) at(v float64) float64 { return s.placing()(v) }

// placing returns at for many values, such as those of a picture: it works out the ends of the bar once.
func (s colourScale) placing() func(v float64) float64 {
	low := s.warp(s.min)
	length := s.warp(s.max) - low
	return func(v float64) float64 {
		return min(max((s.warp(v)-low)/length, 0), 1) // rounding may put averages outside [min, max]
	}
}

// caption describes a scale that is not linear.
func (s colourScale) caption() string {
	text := map[string]string{ScaleLog: "log scale", ScaleSqrt: "square-root scale"}[s.kind]
	if text == "" || s.close <= 0.5 {
		return text
	}
	percent := math.Floor(100 * s.close)
	return fmt.Sprintf("%s: %.0f%% of the field is within %.2g of %.6g", text, percent, s.closeBy, s.centre)
}

// count returns how many of the values satisfy is.
func count(values []float64, is func(float64) bool) (n int) {
	for _, v := range values {
		if is(v) {
			n++
		}
	}
	return n
}

// Bar is the colour bar of a field: how its values become colours. It is the same as that of a picture of the same
// cells. A value v is at the position (w(v) - w(Min)) / (w(Max) - w(Min)) of the bar, where w is colourScale.warp.
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
	s := newColourScale(kind, cells, lo, hi, rounding(d))
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
