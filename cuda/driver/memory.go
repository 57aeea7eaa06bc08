package driver

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
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

// CopyToDevice copies n bytes of h, starting at offset, to the device.
func (s *Stream) CopyToDevice(dst DevicePtr, h *HostMemory, offset, n int) error {
	src, err := h.part(offset, n)
	if err != nil {
		return err
	}
	return s.driver.do(&s.driver.api.memcpyHtoDAsync, uintptr(dst), src, uintptr(n), s.handle)
}

// CopyFromDevice copies n bytes from the device to h, starting at offset.
func (s *Stream) CopyFromDevice(h *HostMemory, offset int, src DevicePtr, n int) error {
	dst, err := h.part(offset, n)
	if err != nil {
		return err
	}
	return s.driver.do(&s.driver.api.memcpyDtoHAsync, dst, uintptr(src), uintptr(n), s.handle)
}

// CopyOnDevice copies n bytes within this device's memory and the memory of peers mapped into it.
func (s *Stream) CopyOnDevice(dst, src DevicePtr, n int) error {
	return s.driver.do(&s.driver.api.memcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(n), s.handle)
}

// CopyToPeer copies n bytes from this device's memory to that of peer, which may be this device. Without peer access
// the driver passes them through the host.
func (s *Stream) CopyToPeer(peer *Context, dst, src DevicePtr, n int) error {
	return s.driver.do(&s.driver.api.memcpyPeerAsync, uintptr(dst), peer.handle, uintptr(src), s.context.handle,
		uintptr(n), s.handle)
}

// Fill sets n bytes at p to v.
func (s *Stream) Fill(p DevicePtr, v byte, n int) error {
	return s.driver.do(&s.driver.api.memsetD8Async, uintptr(p), uintptr(v), uintptr(n), s.handle)
}

// Rows locates the rows of a rectangle, which are pitch bytes apart.
type Rows struct {
	device DevicePtr
	host   *HostMemory
	offset int
	pitch  int
}

// Rows returns rows that begin at p, with pitch bytes from one to the next.
func (p DevicePtr) Rows(pitch int) Rows { return Rows{device: p, pitch: pitch} }

// Rows returns rows that begin at offset in the memory, with pitch bytes from one to the next.
func (h *HostMemory) Rows(offset, pitch int) Rows { return Rows{host: h, offset: offset, pitch: pitch} }

// copy2D is the driver's CUDA_MEMCPY2D.
type copy2D struct {
	src, dst      end2D
	width, height uintptr // bytes, rows
}

// end2D is one end of a copy2D.
type end2D struct {
	x, y   uintptr
	kind   uint32 // 1 host, 2 device
	_      uint32
	host   uintptr
	device DevicePtr
	array  uintptr
	pitch  uintptr
}

// end describes height rows of width bytes, or returns an error if the rows do not exist.
func (r Rows) end(width, height int) (end2D, error) {
	const onHost, onDevice = 1, 2
	if height > 1 && r.pitch < width {
		return end2D{}, fmt.Errorf("rows of %d bytes overlap: their pitch is %d", width, r.pitch)
	}
	if r.host == nil {
		return end2D{kind: onDevice, device: r.device, pitch: uintptr(r.pitch)}, nil
	}
	p, err := r.host.part(r.offset, (height-1)*r.pitch+width)
	return end2D{kind: onHost, host: p, pitch: uintptr(r.pitch)}, err
}

// Copy2D copies height rows of width bytes.
func (s *Stream) Copy2D(dst, src Rows, width, height int) error {
	if width <= 0 || height <= 0 {
		return fmt.Errorf("copy %d rows of %d bytes: nothing to copy", height, width)
	}
	to, err := dst.end(width, height)
	if err != nil {
		return fmt.Errorf("copy to: %w", err)
	}
	from, err := src.end(width, height)
	if err != nil {
		return fmt.Errorf("copy from: %w", err)
	}
	s.copy2D = copy2D{src: from, dst: to, width: uintptr(width), height: uintptr(height)}
	err = s.driver.do(&s.driver.api.memcpy2DAsync, uintptr(unsafe.Pointer(&s.copy2D)), s.handle)
	runtime.KeepAlive(s)
	return err
}

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

// IPCHandle lets another process of the same node map device memory of this process. It is plain data.
type IPCHandle struct{ Words [8]uint64 }

// IPCHandle returns the handle of memory that Alloc returned. The memory must live until the last process that opened
// the handle has closed it.
func (c *Context) IPCHandle(p DevicePtr) (IPCHandle, error) {
	var h IPCHandle
	err := c.driver.call(&c.driver.api.ipcGetMemHandle, uintptr(unsafe.Pointer(&h)), uintptr(p))
	return h, err
}

// OpenIPC maps the memory of another process, on this device or on a peer that this process can see too. It fails in
// the process that made the handle (ErrInvalidContext), if the devices are not peers (ErrPeerAccessUnsupported), if the
// two processes do not share a PID and IPC namespace, and if the system has no CUDA IPC.
func (c *Context) OpenIPC(h IPCHandle) (DevicePtr, error) {
	const enablePeerAccess = 1
	var p DevicePtr
	if r := Code(c.driver.ipcOpen(&p, h, enablePeerAccess)); r != 0 {
		return 0, c.driver.fail(&c.driver.api.ipcOpenMemHandle, r)
	}
	return p, nil
}

// CloseIPC unmaps memory that OpenIPC mapped.
func (c *Context) CloseIPC(p DevicePtr) error {
	return c.driver.call(&c.driver.api.ipcCloseMemHandle, uintptr(p))
}
