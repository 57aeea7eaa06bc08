package output

import (
	"fmt"
	"math"
	"slices"
)

// The values of output.picture_scale.
const (
	ScaleAuto   = "auto"
	ScaleLinear = "linear"
	ScaleLog    = "log"
	ScaleSqrt   = "sqrt"
)

// When auto leaves the linear scale: at these distances of the median cell from the centre, in units of the largest
// distance.
const (
	logBelow  = 1e-3
	sqrtBelow = 1.0 / 30
)

// mostDecades bounds a logarithmic scale. What is nearer to the centre is shown as next to nothing.
const mostDecades = 12

// colourScale maps values to places on the colour bar, from 0 at min to 1 at max. The logarithm and the square root
// are of the distance from centre, on both sides of it: of 0, or of the value that most of the field has. Up to near
// the logarithmic scale is linear, at the length of one decade.
type colourScale struct {
	kind           string // ScaleLinear, ScaleLog or ScaleSqrt
	min, max       float64
	centre, near   float64
	diverging      bool    // there are values on both sides of centre, which is in the middle then
	close, closeBy float64 // share of the cells within closeBy, a thousandth of the largest distance, of the centre
}

// newColourScale returns the scale called kind for cells with values in [min, max]. It depends on the cells alone,
// which do not depend on the ranks.
func newColourScale(kind string, cells [][]float64, min, max, rounding float64) colourScale {
	if !(min <= max) || max-min < 1e-300 && math.Abs(min) < 1e-300 { // no finite value at all, or as good as 0
		min, max = 0, 0
	}
	if max-min <= 1e-12*math.Max(math.Abs(min), math.Abs(max)) {
		// A constant field, but for rounding: any interval around it will do.
		half := math.Abs(min) / 2
		if half == 0 {
			half = 0.5
		}
		return colourScale{kind: ScaleLinear, min: min - half, max: max + half}
	}
	s := colourScale{kind: kind, min: min, max: max}
	sample := sampled(cells)
	s.centre = centre(sample, min, max)
	far := math.Min(math.Max(s.centre-min, max-s.centre), math.MaxFloat64)
	for i, v := range sample {
		sample[i] = math.Abs(v - s.centre)
	}
	slices.Sort(sample)
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

// sampled returns about a hundred thousand finite values of cells, or all if there are fewer, sorted.
func sampled(cells [][]float64) (values []float64) {
	step := 1 + len(cells)*len(cells[0])>>17
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

// centre returns the value that more than half of the field has, give or take a thousandth of its range, else what is
// nearest to 0. It is 0 wherever it is 0 within that tolerance.
func centre(sorted []float64, lo, hi float64) float64 {
	slack := (hi/2 - lo/2) * logBelow * 2
	c := math.Min(math.Max(0, lo), hi)
	if n := len(sorted); n > 0 {
		m := sorted[n/2]
		from, _ := slices.BinarySearch(sorted, m-slack)
		if to, _ := slices.BinarySearch(sorted, m+slack); 2*(to-from) > n {
			c = m
		}
	}
	if math.Abs(c) <= slack {
		return 0
	}
	return c
}

// share returns the part of the sorted values that is at most limit.
func share(sorted []float64, limit float64) float64 {
	n, _ := slices.BinarySearchFunc(sorted, limit, func(v, limit float64) int {
		if v <= limit {
			return -1
		}
		return 1
	})
	return float64(n) / math.Max(1, float64(len(sorted)))
}

// nearest returns where a logarithmic scale up to far begins: a power of ten with all but 2% of the distances that
// are not 0 above it, that is at least two and at most mostDecades decades below far, and not in the rounding.
func nearest(distances []float64, far, rounding float64) float64 {
	top := decade(far)
	least, most := top-mostDecades, top-2
	if rounding > 0 {
		least = max(least, decade(rounding)+1)
	}
	low := least
	if zeros, _ := slices.BinarySearch(distances, math.SmallestNonzeroFloat64); zeros < len(distances) {
		low = decade(distances[zeros+(len(distances)-zeros)/50])
	}
	return math.Pow(10, float64(max(least, min(low, most))))
}

// warp is a growing function of v.
func (s colourScale) warp(v float64) float64 {
	half := v/2 - s.centre/2 // for v - s.centre may overflow
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

// at returns the place of v on the bar.
func (s colourScale) at(v float64) float64 {
	low := s.warp(s.min)
	return math.Min(math.Max((s.warp(v)-low)/(s.warp(s.max)-low), 0), 1) // averages may leave [min, max] by a rounding
}

// caption says what the scale is, where it is not linear.
func (s colourScale) caption() string {
	text := map[string]string{ScaleLog: "log scale", ScaleSqrt: "square-root scale"}[s.kind]
	if text == "" || s.close <= 0.5 {
		return text
	}
	percent := math.Floor(100 * s.close)
	return fmt.Sprintf("%s: %.0f%% of the field is within %.2g of %.6g", text, percent, s.closeBy, s.centre)
}
