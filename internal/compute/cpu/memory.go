package cpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is anonymous, zeroed memory outside the Go heap: the garbage collector neither scans nor counts it, and a page
// lands near the thread that first touches it.
type memory []byte

// hugePage is the size of a huge page. Memory of twice that size is certain to hold an aligned one.
const hugePage = 2 << 20

func newMemory(bytes int) (memory, error) {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	if bytes >= 2*hugePage {
		adviseHuge(m)
	}
	return m, nil
}

func (m memory) pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData([]byte(m))) }

func (m memory) free() error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}
