package halo

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// The divide functions do values from the ninth on, and the join functions those from the first on. All return the
// first one that they have not done.

func divideEights32(planes, rows []byte, n int) int {
	return eights(planes, rows, 4*n, eight, n, divide32AVX2)
}

func joinEights32(rows, planes []byte, n int) int {
	return eights(planes, rows, 4*n, 0, n, join32AVX2)
}

func divideEights64(planes, rows []byte, n int) int {
	return eights(planes, rows, 8*n, eight, n, divide64AVX2)
}

func joinEights64(rows, planes []byte, n int) int {
	return eights(planes, rows, 8*n, 0, n, join64AVX2)
}

// eights has do do values from one on, if both arrays have the bytes of all n values.
func eights(planes, rows []byte, bytes, from, n int, do func(planes, rows unsafe.Pointer, n, from, to int)) int {
	to := n &^ (eight - 1)
	if !cpu.X86.HasAVX2 || to <= from {
		return min(from, n)
	}
	_, _ = planes[:bytes], rows[:bytes]
	do(unsafe.Pointer(unsafe.SliceData(planes)), unsafe.Pointer(unsafe.SliceData(rows)), n, from, to)
	return to
}

//go:noescape
func divide32AVX2(planes, rows unsafe.Pointer, n, from, to int)

//go:noescape
func join32AVX2(planes, rows unsafe.Pointer, n, from, to int)

//go:noescape
func divide64AVX2(planes, rows unsafe.Pointer, n, from, to int)

//go:noescape
func join64AVX2(planes, rows unsafe.Pointer, n, from, to int)
