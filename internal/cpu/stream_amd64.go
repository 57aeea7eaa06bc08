package cpu

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// streamCopy copies whole pages with stores that go past the caches; nil where there are none. The runtime's own copy
// does so on some processors only, and above a size of its choice.
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
