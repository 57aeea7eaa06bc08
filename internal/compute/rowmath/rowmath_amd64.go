package rowmath

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Each of these does the first numbers, four at a time, and returns how many it has done.

func ratios(dst, a, b []float64) int {
	return fours(len(dst), func(n int) { ratiosAVX2(at(dst), at(a), at(b), n) })
}

func means(dst, a, b []float64) int {
	return fours(len(dst), func(n int) { meansAVX2(at(dst), at(a), at(b), n) })
}

func scale(dst, a, factors []float64) int {
	four := [4]float64{1, 1, 1, 1}
	if copy(four[:], factors) < len(factors) {
		return 0
	}
	return fours(len(dst), func(n int) { scaleAVX2(at(dst), at(a), n, at(four[:])) })
}

func centres(dst, along, above, below []float64) int {
	return fours(len(dst), func(n int) { centresAVX2(at(dst), at(along), at(above), at(below), n) })
}

func residuals(dst []float64, p *Points) int {
	n := len(dst)
	_, _, _, _, _ = p.D[:n], p.B[:n], p.Hold[:n], p.Along[:n+1], p.U[:n+2]
	_, _, _, _ = p.Above[:n], p.Below[:n], p.North[:n], p.South[:n]
	return fours(n, func(n int) {
		residualsAVX2(at(dst), at(p.D), at(p.B), at(p.Hold), at(p.Along), at(p.Above), at(p.Below), at(p.U),
			at(p.North), at(p.South), n)
	})
}

func quotients(dst, a []float64, d float64) int {
	const least, most = 0x1p-400, 0x1p400 // in which nothing underflows, and nothing overflows
	from := least
	if v := math.Abs(d); !cpu.X86.HasFMA || !(v >= least && v <= most) {
		from = math.Inf(1) // all are divided
	}
	return fours(len(dst), func(n int) { quotientsAVX2(at(dst), at(a), n, d, 1/d, from, most) })
}

func shift(dst, a []float64, b float64) int {
	return fours(len(dst), func(n int) { shiftAVX2(at(dst), at(a), n, b) })
}

func count(dst []float64, first int, d float64) int {
	from := [4]float64{float64(first), float64(first + 1), float64(first + 2), float64(first + 3)}
	return fours(len(dst), func(n int) { countAVX2(at(dst), at(from[:]), n, 4, d) })
}

func within(a []float64, least, most float64) (done int) {
	fours(len(a), func(n int) { done = withinAVX2(at(a), n, least, most) })
	return done
}

func least(a []float64, sofar *[4]float64) (done int, zero bool) {
	done = fours(len(a), func(n int) { zero = leastAVX2(at(a), n, at(sofar[:])) != 0 })
	return done, zero
}

func largest(a []float64, sofar *[4]float64) int {
	return fours(len(a), func(n int) { largestAVX2(at(a), n, at(sofar[:])) })
}

func at(row []float64) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(row)) }

// fours calls do with as many of n numbers as are done four at a time, and returns these.
func fours(n int, do func(n int)) int {
	if n &^= 3; n == 0 || !cpu.X86.HasAVX2 {
		return 0
	}
	do(n)
	return n
}

//go:noescape
func ratiosAVX2(dst, a, b unsafe.Pointer, n int)

//go:noescape
func meansAVX2(dst, a, b unsafe.Pointer, n int)

//go:noescape
func scaleAVX2(dst, a unsafe.Pointer, n int, factors unsafe.Pointer)

//go:noescape
func centresAVX2(dst, along, above, below unsafe.Pointer, n int)

//go:noescape
func residualsAVX2(dst, d, b, hold, along, above, below, u, north, south unsafe.Pointer, n int)

//go:noescape
func quotientsAVX2(dst, a unsafe.Pointer, n int, d, inverse, least, most float64)

//go:noescape
func shiftAVX2(dst, a unsafe.Pointer, n int, b float64)

//go:noescape
func countAVX2(dst, from unsafe.Pointer, n int, step, d float64)

//go:noescape
func withinAVX2(a unsafe.Pointer, n int, least, most float64) int

//go:noescape
func leastAVX2(a unsafe.Pointer, n int, to unsafe.Pointer) int

//go:noescape
func largestAVX2(a unsafe.Pointer, n int, to unsafe.Pointer)
