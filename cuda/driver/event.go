package driver

import (
	"math"
	"time"
	"unsafe"
)

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
