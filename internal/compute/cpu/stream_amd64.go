package cpu

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// streamCopy returns a function that copies whole pages with stores that bypass the caches, or nil if the processor has
// none. The runtime's own copy uses such stores on some processors only, and only above a size that it chooses.
func streamCopy() func(dst, src []byte) {
	if !cpu.X86.HasAVX {
		return nil
	}
	return func(dst, src []byte) {
		if len(dst) > 0 {
			streamAVX(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), len(dst))
		}
	}
}

//go:noescape
func streamAVX(dst, src unsafe.Pointer, n int)
