package driver

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
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

// keeping is memory that a context keeps for the next call of Alloc or AllocHost, which takes the driver milliseconds.
type keeping struct {
	mu     sync.Mutex
	on     bool
	sizes  map[DevicePtr]int64         // of the memory in use
	device map[int64][]kept[DevicePtr] // by size
	host   map[int][]kept[*HostMemory]
}

// kept is memory that is not in use.
type kept[T any] struct {
	memory T
	idle   int // calls of Renew since it was freed
}

// Keep has Free keep memory for further calls of Alloc and AllocHost of the same size, in all Contexts of the device.
// Whoever keeps memory calls Renew now and then. The last Close of the device's context frees it.
func (c *Context) Keep() {
	k := &c.primary.keeping
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on, k.sizes = true, map[DevicePtr]int64{}
	k.device, k.host = map[int64][]kept[DevicePtr]{}, map[int][]kept[*HostMemory]{}
}

// Renew frees what was kept since before the last Renew.
func (c *Context) Renew() error {
	if err := c.Bind(); err != nil {
		return err
	}
	return errors.Join(c.release(1), c.Unbind())
}

// release frees kept memory that is as old.
func (c *Context) release(age int) (err error) {
	k := &c.primary.keeping
	k.mu.Lock()
	defer k.mu.Unlock()
	note := func(e error) {
		if err == nil {
			err = e
		}
	}
	drop(k.device, age, func(p DevicePtr) { note(c.driver.call(&c.driver.api.memFree, uintptr(p))) })
	drop(k.host, age, func(h *HostMemory) { note(h.free()) })
	return err
}

// drop calls free for what is as old, and makes the rest older.
func drop[S comparable, T any](pool map[S][]kept[T], age int, free func(T)) {
	for size, all := range pool {
		var rest []kept[T]
		for _, m := range all {
			if m.idle >= age {
				free(m.memory)
				continue
			}
			m.idle++
			rest = append(rest, m)
		}
		if pool[size] = rest; rest == nil {
			delete(pool, size)
		}
	}
}

// take returns kept memory of a size, if there is some.
func take[S comparable, T any](pool map[S][]kept[T], size S) (memory T, ok bool) {
	all := pool[size]
	if len(all) == 0 {
		return memory, false
	}
	pool[size] = all[:len(all)-1]
	return all[len(all)-1].memory, true
}

// takeDevice returns memory that was kept.
func (k *keeping) takeDevice(n int64) (DevicePtr, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := take(k.device, n)
	if ok {
		k.sizes[p] = n
	}
	return p, ok
}

// gave notes memory that the driver has given.
func (k *keeping) gave(p DevicePtr, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.on {
		k.sizes[p] = n
	}
}

// holds reports whether Free is to keep the memory: it was not allocated before Keep.
func (k *keeping) holds(p DevicePtr) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.sizes[p]
	return ok
}

// keepDevice keeps memory that it holds.
func (k *keeping) keepDevice(p DevicePtr) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.sizes[p]
	delete(k.sizes, p)
	k.device[n] = append(k.device[n], kept[DevicePtr]{memory: p})
}

// zeroed bounds the host memory that is cleared before it is taken again, in bytes. Words that a host and a device
// share are less. More is memory through which rows pass, and to clear it takes as long as a small run.
const zeroed = 1 << 20

// takeHost returns memory that was kept, up to zeroed bytes of zeros.
func (k *keeping) takeHost(n int) (*HostMemory, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, ok := take(k.host, n)
	if ok && n <= zeroed {
		clear(h.bytes)
	}
	return h, ok
}

// keepHost keeps memory of AllocHost.
func (k *keeping) keepHost(h *HostMemory) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.on || h.registered || h.pageable {
		return false
	}
	again := *h
	h.bytes = nil // as after free
	n := len(again.bytes)
	k.host[n] = append(k.host[n], kept[*HostMemory]{memory: &again})
	return true
}

// MinVersion is the oldest driver that Open accepts.
const MinVersion Version = 12000

const library = "libcuda.so.1"

// Version is a version of CUDA in the driver's format: 13000 is 13.0.
type Version int32

// String returns the version as "13.0".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Driver is the CUDA driver of this machine. Several goroutines may use it.
type Driver struct {
	api       api
	ipcOpen   func(p *DevicePtr, h IPCHandle, flags uint32) int32
	version   Version
	arguments sync.Pool // of *arguments

	mu      sync.Mutex
	primary map[int32]*primary // by the handle of the device
}

// Open loads the driver, checks that it is new enough and starts it. The error is ErrNoDriver if there is no driver,
// ErrDriverTooOld if it is older than MinVersion, and ErrNoDevice if it finds no GPU.
func Open() (*Driver, error) { return open(library) }

func open(name string) (*Driver, error) {
	runtime.LockOSThread() // dlerror describes the last error of its thread
	defer runtime.UnlockOSThread()
	lib, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: the loader looked for %s: %w", ErrNoDriver, name, err)
	}
	d := &Driver{arguments: sync.Pool{New: func() any { return new(arguments) }}, primary: map[int32]*primary{}}
	if err := d.api.driverGetVersion.lookUp(lib, "cuDriverGetVersion"); err != nil {
		return nil, fmt.Errorf("%w: %s is something else: %w", ErrNoDriver, name, err)
	}
	// The call works before cuInit, and fails only for a nil pointer.
	d.api.driverGetVersion.call(uintptr(unsafe.Pointer(&d.version)))
	if d.version < MinVersion {
		return nil, fmt.Errorf("%w: %s is for CUDA %v; at least %v is needed", ErrDriverTooOld, name, d.version,
			MinVersion)
	}
	if err := d.api.lookUp(lib); err != nil {
		return nil, fmt.Errorf("%w: %s, for CUDA %v: %w", ErrDriverTooOld, name, d.version, err)
	}
	purego.RegisterFunc(&d.ipcOpen, d.api.ipcOpenMemHandle.addr)
	if err := askForConnections(); err != nil {
		return nil, err
	}
	if err := d.call(&d.api.init, 0); err != nil {
		return nil, fmt.Errorf("start the CUDA driver (%s, for CUDA %v): %w", name, d.version, err)
	}
	return d, nil
}

// connectionsVar is read by the driver when it starts: the number of queues from a process to a GPU. By default there
// are 8, which take 0.1 s of a rank, and 0.8 s where four ranks share two H100s. A run has two streams; a rank alone on
// a GPU may have two runs, whose kernels wait for nobody.
const (
	connectionsVar = "CUDA_DEVICE_MAX_CONNECTIONS"
	connections    = "2"
)

// askForConnections makes the driver have as many queues as a run has streams, unless the user wants another number.
func askForConnections() error {
	if os.Getenv(connectionsVar) != "" {
		return nil
	}
	return os.Setenv(connectionsVar, connections)
}

// Version returns the newest CUDA version that the driver supports. PTX of a newer version does not load.
func (d *Driver) Version() Version { return d.version }
