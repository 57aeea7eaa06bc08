package driver

import (
	"errors"
	"sync"
)

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
