package halo

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// The divide functions do values from the ninth on, as differences read two values back, and the join functions those
// from the first on. All return the first one that they have not done. The race detector does not see what they read
// and write.

func divideEights32(planes, rows []byte, n int) int {
	return eights(planes, rows, 4, eight, n, divide32AVX)
}

func joinEights32(rows, planes []byte, n int) int {
	return eights(planes, rows, 4, 0, n, join32AVX)
}

func divideEights64(planes, rows []byte, n int) int {
	return eights(planes, rows, 8, eight, n, divide64AVX)
}

func joinEights64(rows, planes []byte, n int) int {
	return eights(planes, rows, 8, 0, n, join64AVX)
}

// eights calls do for values from one on, in whole eights, and returns the first one left over. Values have size bytes.
// It panics if a slice is shorter than n values.
func eights(planes, rows []byte, size, from, n int, do func(planes, rows unsafe.Pointer, n, to int)) int {
	to := n &^ (eight - 1)
	if !cpu.X86.HasAVX || to <= from {
		return min(from, n)
	}
	_, _ = planes[size*n-1], rows[size*n-1]
	do(unsafe.Pointer(unsafe.SliceData(planes)), unsafe.Pointer(unsafe.SliceData(rows)), n, to)
	return to
}

//go:noescape
func divide32AVX(planes, rows unsafe.Pointer, n, to int)

//go:noescape
func join32AVX(planes, rows unsafe.Pointer, n, to int)

//go:noescape
func divide64AVX(planes, rows unsafe.Pointer, n, to int)

//go:noescape
func join64AVX(planes, rows unsafe.Pointer, n, to int)
