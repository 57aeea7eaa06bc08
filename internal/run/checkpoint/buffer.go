package checkpoint

import (
	"golang.org/x/sys/unix"
)

// buffer is anonymous memory outside the Go heap. It must be freed.
type buffer []byte

func newBuffer(bytes int) (buffer, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func (b buffer) free() error { return unix.Munmap(b) }
