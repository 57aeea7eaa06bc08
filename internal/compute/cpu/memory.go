package cpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/huge"
)

// memory is anonymous, zeroed memory outside the Go heap: the garbage collector neither scans nor counts it, and a page
// lands near the thread that first touches it.
type memory []byte

func newMemory(bytes int) (memory, error) {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	huge.Advise(m)
	return m, nil
}

func (m memory) pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData([]byte(m))) }

func (m memory) free() error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}
