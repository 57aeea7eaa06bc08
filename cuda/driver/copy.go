package driver

import (
	"fmt"
	"runtime"
	"unsafe"
)

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

// Fill32 sets n 32-bit words at p to v.
func (s *Stream) Fill32(p DevicePtr, v uint32, n int) error {
	return s.driver.do(&s.driver.api.memsetD32Async, uintptr(p), uintptr(v), uintptr(n), s.handle)
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
