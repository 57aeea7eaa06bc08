package driver

import (
	"math"
	"time"
	"unsafe"
)

// Stream is a queue of work on the device. Streams run concurrently, and none waits for the legacy default stream.
type Stream struct {
	context *Context
	driver  *Driver
	handle  uintptr
	copy2D  copy2D // scratch of Copy2D, so that it allocates nothing
}

// Priorities returns the range of stream priorities. The number of the lowest priority is not below that of the
// highest.
func (c *Context) Priorities() (lowest, highest int, err error) {
	var p [2]int32
	err = c.driver.call(&c.driver.api.ctxGetStreamPriorityRange, uintptr(unsafe.Pointer(&p[0])),
		uintptr(unsafe.Pointer(&p[1])))
	return int(p[0]), int(p[1]), err
}

// NewStream creates a stream with a priority in the range of Priorities; 0 is the default.
func (c *Context) NewStream(priority int) (*Stream, error) {
	const nonBlocking = 1
	s := &Stream{context: c, driver: c.driver}
	err := s.driver.call(&s.driver.api.streamCreate, uintptr(unsafe.Pointer(&s.handle)), nonBlocking, uintptr(priority))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Close frees the stream. Work queued in it is still done.
func (s *Stream) Close() error { return s.driver.call(&s.driver.api.streamDestroy, s.handle) }

// Synchronize waits until the stream is empty.
func (s *Stream) Synchronize() error { return s.driver.do(&s.driver.api.streamSynchronize, s.handle) }

// Done reports whether the stream is empty. It does not wait.
func (s *Stream) Done() (bool, error) { return s.driver.done(&s.driver.api.streamQuery, s.handle) }

// Wait holds back later work of the stream until the last Record of e before this call has passed.
func (s *Stream) Wait(e *Event) error {
	return s.driver.do(&s.driver.api.streamWaitEvent, s.handle, e.handle, 0)
}

// WaitValue holds back later work of the stream until int32(*p - v) >= 0, with *p the 32-bit word at p. The word lies
// in this device's memory or in host memory. Any device or process may write it. No kernel spins meanwhile.
func (s *Stream) WaitValue(p DevicePtr, v uint32) error {
	const greaterOrEqual = 0
	return s.driver.do(&s.driver.api.streamWaitValue32, s.handle, uintptr(p), uintptr(v), greaterOrEqual)
}

// WriteValue writes v to the 32-bit word at p, which may be a peer's, after all earlier work of the stream. The memory
// writes of that work are visible before v is.
func (s *Stream) WriteValue(p DevicePtr, v uint32) error {
	return s.driver.do(&s.driver.api.streamWriteValue32, s.handle, uintptr(p), uintptr(v), 0)
}

// done calls a query of a stream or an event. Not being ready is not an error.
func (d *Driver) done(f *function, handle uintptr) (bool, error) {
	switch r := d.query(f, handle); r {
	case 0:
		return true, nil
	case notReady:
		return false, nil
	default:
		return false, d.fail(f, r)
	}
}

// Event marks a place in a stream.
type Event struct {
	driver *Driver
	handle uintptr
}

// NewEvent creates an event. An event without timing costs less but cannot be given to Elapsed.
func (c *Context) NewEvent(timing bool) (*Event, error) {
	const disableTiming = 2
	flags := uintptr(disableTiming)
	if timing {
		flags = 0
	}
	e := &Event{driver: c.driver}
	if err := e.driver.call(&e.driver.api.eventCreate, uintptr(unsafe.Pointer(&e.handle)), flags); err != nil {
		return nil, err
	}
	return e, nil
}

// Close frees the event.
func (e *Event) Close() error { return e.driver.call(&e.driver.api.eventDestroy, e.handle) }

// Record places the event after all work in the stream.
func (e *Event) Record(s *Stream) error {
	return e.driver.do(&e.driver.api.eventRecord, e.handle, s.handle)
}

// Synchronize waits until the last Record has passed. Without a Record it returns at once.
func (e *Event) Synchronize() error { return e.driver.do(&e.driver.api.eventSynchronize, e.handle) }

// Done reports whether the last Record has passed. It does not wait.
func (e *Event) Done() (bool, error) { return e.driver.done(&e.driver.api.eventQuery, e.handle) }

// Elapsed returns the time on the device between two events that have passed, to about 0.5 us.
func Elapsed(from, to *Event) (time.Duration, error) {
	var ms float32
	err := to.driver.call(&to.driver.api.eventElapsedTime, uintptr(unsafe.Pointer(&ms)), from.handle, to.handle)
	return time.Duration(math.Round(float64(ms) * 1e6)), err
}
