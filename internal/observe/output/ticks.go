package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Ticks returns round values from lo to hi, about n steps at most, and labels of equal precision.
func Ticks(lo, hi float64, n int) (values []float64, labels []string) {
	return ticksOf(lo, hi, roundStep((hi/2-lo/2)/float64(n)*2), n+1) // hi-lo may overflow
}

// ticksOf returns the multiples of step from lo to hi, at most that number, and labels of equal precision.
func ticksOf(lo, hi, step float64, most int) (values []float64, labels []string) {
	const slack = 5e-3 // of a step, less than a pixel: a bar to 0.99999 has a tick at 1
	for i := math.Ceil(lo/step - slack); i*step-hi <= step*slack && len(values) < most; i++ {
		values = append(values, i*step)
	}
	largest := math.Max(math.Abs(lo), math.Abs(hi))
	format, digits := byte('f'), -decade(step)
	if largest >= 1e5 || largest < 1e-3 {
		format, digits = 'e', decade(largest)-decade(step)
	}
	for _, v := range values {
		labels = append(labels, label(v, format, max(digits, 0)))
	}
	return values, labels
}

const minus = "\u2212" // as wide as a plus

func label(v float64, format byte, digits int) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(math.Abs(v), format, digits, 64)
	if v < 0 {
		return minus + s
	}
	return s
}

// decade returns the largest e with 10^e <= v, with some tolerance for rounding.
func decade(v float64) int { return int(math.Floor(math.Log10(v) + 1e-9)) }

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is at least step.
func roundStep(step float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= step*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// barSlack is how far a tick may lie beyond the end of the bar, as a fraction of the bar: less than a pixel. Such a
// tick is drawn at the end.
const barSlack = 5e-4

// ticks returns about n round values on the bar, and their labels.
func (s colourScale) ticks(n int) (values []float64, labels []string) {
	if s.kind == ScaleLinear {
		return Ticks(s.min, s.max, n)
	}
	for _, d := range s.roundDistances(1 / (1.5 * float64(n))) {
		values, labels = append(values, s.centre+d), append(labels, s.label(d))
		if d > 0 && s.diverging {
			values, labels = append(values, s.centre-d), append(labels, s.label(-d))
		}
	}
	return values, labels
}

// roundDistances returns 0 and round distances from the centre. No two are closer than gap on the bar. The distances
// are negative on a scale whose values lie mostly below the centre.
func (s colourScale) roundDistances(gap float64) []float64 {
	far, sign := s.max-s.centre, 1.0
	if s.centre-s.min > far {
		far, sign = s.centre-s.min, -1
	}
	steps := []float64{1}
	if s.kind == ScaleSqrt {
		steps = []float64{5, 2, 1}
	}
	list, zero, last := []float64{0}, s.at(s.centre), math.Inf(1)
	limit := far * (1 + barSlack)
	for e := decade(limit); ; e-- {
		for _, m := range steps {
			d := m * math.Pow(10, float64(e))
			if d > limit {
				continue
			}
			at := math.Abs(s.at(s.centre+sign*d) - zero)
			if at < gap*(1-1e-6) {
				return list
			}
			if last-at >= gap*(1-1e-6) {
				list, last = append(list, sign*d), at
			}
		}
	}
}

// label returns the label of the tick at distance d from the centre: the value, or "centre + d" where six digits do not
// tell the value from the centre.
func (s colourScale) label(d float64) string {
	format, digits, size := byte('e'), 0, math.Abs(d)
	if size >= 1e-3*(1-1e-6) && size < 1e5 {
		format, digits = 'f', max(0, -decade(size))
	}
	if s.centre == 0 {
		return label(d, format, digits)
	}
	short := func(v float64) string { return strings.Replace(fmt.Sprintf("%.6g", v), "-", minus, 1) }
	if d == 0 || size > 0.9e-4*math.Abs(s.centre) {
		return short(s.centre + d)
	}
	sign := "+"
	if d < 0 {
		sign = minus
	}
	return short(s.centre) + " " + sign + " " + label(size, format, digits)
}
