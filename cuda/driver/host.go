package driver

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HostMemory is memory of the host, outside the Go heap. Unless AllocPageable allocated it, it is page-locked, and the
// device can access it too. Go sees the
// device's writes after an event or a stream has been synchronized. Before that it sees only single words, through
// sync/atomic, that a kernel wrote last, after a system-wide fence.
type HostMemory struct {
	bytes      []byte
	device     DevicePtr
	context    *Context
	registered bool
	pageable   bool
}

// Flags of cuMemHostAlloc and cuMemHostRegister.
const (
	hostPortable = 1 // page-locked for every context of the process
	hostMapped   = 2 // the device has an address for it
)

// AllocHost allocates n bytes of host memory.
func (c *Context) AllocHost(n int) (*HostMemory, error) {
	if h, ok := c.primary.keeping.takeHost(n); ok {
		h.context = c
		return h, nil
	}
	var p *byte
	err := c.driver.call(&c.driver.api.memHostAlloc, uintptr(unsafe.Pointer(&p)), uintptr(n), hostPortable|hostMapped)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of page-locked host memory: %w", n, err)
	}
	return c.hostMemory(unsafe.Slice(p, n), false)
}

// AllocPageable allocates n bytes of host memory, whose pages are not locked. Copies on a stream pass through memory of
// the driver, and the calls that queue them may wait for that. The device has no address for it.
func (c *Context) AllocPageable(n int) (*HostMemory, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of host memory: %w", n, err)
	}
	return &HostMemory{bytes: b, context: c, pageable: true}, nil
}

// RegisterHost locks the pages of b, which must come from mmap, never from Go, and must stay mapped until Free.
func (c *Context) RegisterHost(b []byte) (*HostMemory, error) {
	err := c.driver.call(&c.driver.api.memHostRegister, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		hostPortable|hostMapped)
	if err != nil {
		return nil, fmt.Errorf("lock %d bytes of host memory: %w", len(b), err)
	}
	return c.hostMemory(b, true)
}

func (c *Context) hostMemory(b []byte, registered bool) (*HostMemory, error) {
	h := &HostMemory{bytes: b, context: c, registered: registered}
	err := c.driver.call(&c.driver.api.memHostGetDevicePointer, uintptr(unsafe.Pointer(&h.device)),
		uintptr(unsafe.Pointer(&b[0])), 0)
	if err != nil {
		_ = h.Free()
		return nil, err
	}
	return h, nil
}

// Bytes returns the memory itself, which must not be used after Free.
func (h *HostMemory) Bytes() []byte { return h.bytes }

// Device returns the address of the memory on the device; 0 if it is pageable.
func (h *HostMemory) Device() DevicePtr { return h.device }

// Free unlocks the memory, and frees it if AllocHost or AllocPageable allocated it. No copy or kernel may still use it.
func (h *HostMemory) Free() error {
	if h.context.primary.keeping.keepHost(h) {
		return nil
	}
	return h.free()
}

func (h *HostMemory) free() error {
	if h.pageable {
		b := h.bytes
		h.bytes = nil
		return unix.Munmap(b)
	}
	f := &h.context.driver.api.memFreeHost
	if h.registered {
		f = &h.context.driver.api.memHostUnregister
	}
	p := unsafe.SliceData(h.bytes)
	h.bytes = nil
	return h.context.driver.call(f, uintptr(unsafe.Pointer(p)))
}

// part returns the address of bytes [offset, offset+n), or an error if the memory does not have them.
func (h *HostMemory) part(offset, n int) (uintptr, error) {
	if offset < 0 || n < 0 || n > len(h.bytes)-offset {
		return 0, fmt.Errorf("host memory of %d bytes has no part [%d, %d)", len(h.bytes), offset, offset+n)
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(h.bytes))) + uintptr(offset), nil
}
