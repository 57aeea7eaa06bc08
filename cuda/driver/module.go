package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/gzip"
)

// Module is code loaded into a context. It stays until the last Close of the device's context.
type Module struct {
	driver *Driver
	handle uintptr
}

// jit holds the options of the driver's PTX compiler and the buffer for its error log.
type jit struct {
	options [2]uint32
	values  [2]uintptr
	log     [8192]byte
}

// Load loads PTX, which the driver compiles for the context's device, or a cubin, which was compiled before, plain or
// packed by gzip. All calls with the same slice share one module, as long as the device's context exists: unpacking and
// loading take tens of milliseconds, so code must not change. The driver caches its results (in CUDA_CACHE_PATH, by
// default ~/.nv/ComputeCache). The error is ErrInvalidPTX, ErrUnsupportedPTX if the PTX is for a newer CUDA than the
// driver, or another; its Detail holds the compiler's log.
func (c *Context) Load(code []byte) (*Module, error) {
	if len(code) == 0 {
		return nil, errors.New("load a module: there is no code")
	}
	c.driver.mu.Lock()
	load := c.primary.modules[&code[0]]
	if load == nil {
		load = sync.OnceValues(func() (*Module, error) { return c.load(code) })
		c.primary.modules[&code[0]] = load
	}
	c.driver.mu.Unlock()
	return load()
}

func (c *Context) load(code []byte) (*Module, error) {
	const errorLogBuffer, errorLogBytes = 5, 6 // CUjit_option
	ptx, err := unpack(code)
	if err != nil {
		return nil, err
	}
	text := append(ptx[:len(ptx):len(ptx)], 0)
	m, j := &Module{driver: c.driver}, new(jit)
	j.options = [2]uint32{errorLogBuffer, errorLogBytes}
	// j is on the heap, since its address is an argument of the call below.
	j.values = [2]uintptr{uintptr(unsafe.Pointer(&j.log)), uintptr(len(j.log))}
	err = c.driver.call(&c.driver.api.moduleLoadDataEx, uintptr(unsafe.Pointer(&m.handle)),
		uintptr(unsafe.Pointer(&text[0])),
		uintptr(len(j.options)), uintptr(unsafe.Pointer(&j.options)), uintptr(unsafe.Pointer(&j.values)))
	if e := (*Error)(nil); errors.As(err, &e) {
		e.Detail = strings.TrimSpace(cString(j.log[:]))
		if e.Code == ErrUnsupportedPTX {
			e.Detail = strings.TrimSpace(fmt.Sprintf("the driver is for CUDA %v%s\n%s", c.driver.version, ptxNeeds(ptx),
				e.Detail))
		}
		if need := ptxTarget(ptx); need > 10*c.Device.Major+c.Device.Minor {
			e.Detail = strings.TrimSpace(fmt.Sprintf("the GPU has compute capability %d.%d, the PTX needs %d.%d\n%s",
				c.Device.Major, c.Device.Minor, need/10, need%10, e.Detail))
		}
		return nil, err
	}
	return m, nil
}

// unpack returns what gzip has packed, or code itself if it is not packed.
func unpack(code []byte) ([]byte, error) {
	if !bytes.HasPrefix(code, []byte{0x1f, 0x8b}) {
		return code, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(code))
	if err != nil {
		return nil, fmt.Errorf("unpack the kernels: %w", err)
	}
	code, err = io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("unpack the kernels: %w", err)
	}
	return code, nil
}

// Function returns the kernel that PTX calls name.
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{Name: name, driver: m.driver}
	cName := append([]byte(name), 0)
	err := m.driver.call(&m.driver.api.moduleGetFunction, uintptr(unsafe.Pointer(&f.handle)), m.handle,
		uintptr(unsafe.Pointer(&cName[0])))
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	return f, nil
}
