package driver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/dustin/go-humanize"
)

// DevicePtr is an address that the device can use: in its own memory, in a peer's, or in host memory mapped into it.
type DevicePtr uint64

// Alloc allocates n bytes on the device, aligned to at least 256. Their content is undefined. If there is not enough
// memory, the error (ErrOutOfMemory) tells how much was wanted and how much is free.
func (c *Context) Alloc(n int64) (DevicePtr, error) {
	keeping := &c.primary.keeping
	if p, ok := keeping.takeDevice(n); ok {
		return p, nil
	}
	var p DevicePtr
	alloc := func() error {
		return c.driver.call(&c.driver.api.memAlloc, uintptr(unsafe.Pointer(&p)), uintptr(n))
	}
	err := alloc()
	if e, ok := errors.AsType[*Error](err); ok && e.Code == ErrOutOfMemory && c.release(0) == nil {
		err = alloc()
	}
	if err == nil {
		keeping.gave(p, n)
	}
	if e := (*Error)(nil); errors.As(err, &e) && e.Code == ErrOutOfMemory {
		e.Detail = fmt.Sprintf("%s wanted", humanize.IBytes(uint64(n)))
		if free, total, err := c.Memory(); err == nil {
			e.Detail += fmt.Sprintf(", %s of %s free", humanize.IBytes(uint64(free)), humanize.IBytes(uint64(total)))
		}
	}
	return p, err
}

// Free frees memory that Alloc returned. It waits for the device.
func (c *Context) Free(p DevicePtr) error {
	if k := &c.primary.keeping; k.holds(p) {
		if err := c.Synchronize(); err != nil {
			return err
		}
		k.keepDevice(p)
		return nil
	}
	return c.driver.call(&c.driver.api.memFree, uintptr(p))
}

// CopyToDevice copies src, which may be Go memory, and waits for the copy.
func (c *Context) CopyToDevice(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	err := c.driver.call(&c.driver.api.memcpyHtoD, uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)))
	if err != nil {
		return err
	}
	// The driver has read src by now, but its staged copy may still be in flight, in a stream that other streams do not
	// wait for.
	const defaultStream = 0
	return c.driver.call(&c.driver.api.streamSynchronize, defaultStream)
}

// CopyFromDevice copies device memory to dst, which may be Go memory, and waits for the copy.
func (c *Context) CopyFromDevice(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	return c.driver.call(&c.driver.api.memcpyDtoH, uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)))
}
