package output

import (
	"math"
	"strconv"
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
