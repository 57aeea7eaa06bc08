package driver

import (
	"runtime"
	"unsafe"
)

// Schedule is the way in which a thread waits for the device in Synchronize.
type Schedule uint32

// The schedules that callers use. Spin returns soonest but occupies a core.
const (
	ScheduleAuto Schedule = 0 // the driver spins if there are more cores than contexts
	ScheduleSpin Schedule = 1
)

// Context is the primary context of a device: this process's state and memory on it.
type Context struct {
	Device  *Device
	driver  *Driver
	handle  uintptr
	primary *primary
	outer   []uintptr // the context that was current before each Bind; 0: none
}

// primary is what the Contexts of a device share.
type primary struct {
	users   int                               // Contexts that are not closed; Driver.mu guards both fields
	modules map[*byte]func() (*Module, error) // by the first byte of their code
	keeping keeping
}

// Retain returns the device's context, which it creates with the given schedule if this process has none yet. Close it
// after use.
func (v *Device) Retain(s Schedule) (*Context, error) {
	d := v.driver
	if err := d.call(&d.api.primaryCtxSetFlags, uintptr(v.handle), uintptr(s)); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &Context{Device: v, driver: d}
	if err := d.call(&d.api.primaryCtxRetain, uintptr(unsafe.Pointer(&c.handle)), uintptr(v.handle)); err != nil {
		return nil, err
	}
	if d.primary[v.handle] == nil {
		d.primary[v.handle] = &primary{modules: map[*byte]func() (*Module, error){}}
	}
	c.primary = d.primary[v.handle]
	c.primary.users++
	return c, nil
}

// Close releases the context. The last Close of a device's context frees all resources created in it.
func (c *Context) Close() error {
	d := c.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.primary.users--; c.primary.users == 0 {
		delete(d.primary, c.Device.handle)
	}
	return d.call(&d.api.primaryCtxRelease, uintptr(c.Device.handle))
}

// Bind locks the goroutine to its thread and makes the context current there. Each Bind needs an Unbind, in the reverse
// order.
func (c *Context) Bind() error {
	runtime.LockOSThread()
	outer := new(uintptr)
	err := c.driver.call(&c.driver.api.ctxGetCurrent, uintptr(unsafe.Pointer(outer)))
	if err == nil {
		err = c.driver.call(&c.driver.api.ctxSetCurrent, c.handle)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	c.outer = append(c.outer, *outer)
	return nil
}

// Use makes the context current on the thread of a goroutine that has bound another one. The last Use or Bind counts.
func (c *Context) Use() error { return c.driver.call(&c.driver.api.ctxSetCurrent, c.handle) }

// Unbind makes the context current again that was so before Bind, if there was one, and unlocks the goroutine from its
// thread as often as Bind has locked it.
func (c *Context) Unbind() error {
	var outer uintptr
	if last := len(c.outer) - 1; last >= 0 {
		outer, c.outer = c.outer[last], c.outer[:last]
	}
	err := c.driver.call(&c.driver.api.ctxSetCurrent, outer)
	runtime.UnlockOSThread()
	return err
}

// Synchronize waits until the device has done all work queued in this context.
func (c *Context) Synchronize() error { return c.driver.call(&c.driver.api.ctxSynchronize) }

// EnablePeer lets kernels and copies of this context access the memory of peer. Call it once for each pair and
// direction.
func (c *Context) EnablePeer(peer *Context) error {
	return c.driver.call(&c.driver.api.ctxEnablePeerAccess, peer.handle, 0)
}

// Memory returns the free and the total memory of the device in bytes. Other processes use it too.
func (c *Context) Memory() (free, total int64, err error) {
	err = c.driver.call(&c.driver.api.memGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return free, total, err
}
