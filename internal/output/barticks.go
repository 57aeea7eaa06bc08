package output

import (
	"fmt"
	"math"
	"strings"
)

// barSlack is how far, relative to the bar, a tick may lie beyond its end, where it is drawn: less than a pixel.
const barSlack = 5e-4

// ticks returns round values for a bar with room for about n, and their labels.
func (s colourScale) ticks(n int) (values []float64, labels []string) {
	if s.kind == ScaleLinear {
		return ticks(s.min, s.max, n)
	}
	for _, d := range s.roundDistances(1 / (1.5 * float64(n))) {
		values, labels = append(values, s.centre+d), append(labels, s.label(d))
		if d > 0 && s.diverging {
			values, labels = append(values, s.centre-d), append(labels, s.label(-d))
		}
	}
	return values, labels
}

// roundDistances returns 0, and round distances from the centre of which no two are closer than gap on the bar. A
// scale that lies below its centre has negative ones.
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
	most := far * (1 + barSlack)
	for e := decade(most); ; e-- {
		for _, m := range steps {
			d := m * math.Pow(10, float64(e))
			if d > most {
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

// label returns the label of the tick at distance d from the centre: the value, or how it comes from the centre where
// six digits do not tell them apart.
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
