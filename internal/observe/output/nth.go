package output

import (
	"math"
	"slices"
)

// nth returns the value at place n, from 0, among the values in ascending order. None of them is NaN. The time is
// proportional to their number: a page gets five frames a second, and sorting would take most of the time of each.
func nth(values []float64, n int) float64 {
	const digit = 1<<16 - 1
	left, counts := slices.Clone(values), make([]int, digit+1)
	for shift := 48; shift >= 0 && len(left) > 1; shift -= 16 {
		clear(counts)
		for _, v := range left {
			counts[ordered(v)>>shift&digit]++
		}
		d := 0
		for ; n >= counts[d]; d++ {
			n -= counts[d]
		}
		left = slices.DeleteFunc(left, func(v float64) bool { return ordered(v)>>shift&digit != uint64(d) })
	}
	return left[0]
}

// ordered returns a number that grows with v.
func ordered(v float64) uint64 {
	b := math.Float64bits(v)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
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
