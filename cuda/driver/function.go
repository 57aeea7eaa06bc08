package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/gzip"
)

// Function is a kernel.
type Function struct {
	Name   string
	driver *Driver
	handle uintptr
}

// SetDynamicShared allows launches with up to n bytes of dynamic shared memory. The default limit is 48 KiB less the
// static shared memory.
func (f *Function) SetDynamicShared(n int) error {
	const maxDynamicShared = 8
	if err := f.driver.call(&f.driver.api.funcSetAttribute, f.handle, maxDynamicShared, uintptr(n)); err != nil {
		return fmt.Errorf("kernel %s: %d bytes of dynamic shared memory: %w", f.Name, n, err)
	}
	return nil
}

// BlocksPerSM returns how many blocks of the given size fit on a multiprocessor at once.
func (f *Function) BlocksPerSM(threads, dynamicShared int) (int, error) {
	var n int32
	err := f.driver.call(&f.driver.api.occupancyMaxBlocks, uintptr(unsafe.Pointer(&n)), f.handle, uintptr(threads),
		uintptr(dynamicShared))
	if err != nil {
		return 0, fmt.Errorf("kernel %s: %w", f.Name, err)
	}
	return int(n), nil
}

// Args holds pointers to the arguments of a kernel. Each Launch passes the values that the variables have at that
// moment, so one Args serves many launches.
type Args struct{ pointers []unsafe.Pointer }

// Args takes a pointer to each argument of the kernel, in order. An argument has the size that the kernel declares: it
// is a fixed-size number, a DevicePtr, or a struct of them laid out as in C. Drivers for CUDA 12.4 and later tell the
// number and sizes of the arguments, and Args checks them there.
func (f *Function) Args(pointers ...any) (*Args, error) {
	a := &Args{make([]unsafe.Pointer, len(pointers))}
	for i, p := range pointers {
		v := reflect.ValueOf(p)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return nil, fmt.Errorf("kernel %s: argument %d is %T, not a pointer to it", f.Name, i, p)
		}
		a.pointers[i] = v.UnsafePointer()
		if err := f.checkArg(i, v.Type().Elem().Size()); err != nil {
			return nil, err
		}
	}
	if f.driver.api.funcGetParamInfo.addr != 0 {
		if _, ok := f.paramSize(len(pointers)); ok {
			return nil, fmt.Errorf("kernel %s: %d arguments given, it takes more", f.Name, len(pointers))
		}
	}
	return a, nil
}

// checkArg returns an error if the kernel has no argument i or if that argument has another size.
func (f *Function) checkArg(i int, size uintptr) error {
	if f.driver.api.funcGetParamInfo.addr == 0 {
		return nil
	}
	want, ok := f.paramSize(i)
	if !ok {
		return fmt.Errorf("kernel %s: it takes %d arguments", f.Name, i)
	}
	if want != size {
		return fmt.Errorf("kernel %s: argument %d has %d bytes, the kernel declares %d", f.Name, i, size, want)
	}
	return nil
}

// paramSize returns the size of argument i; ok is false if there is none.
func (f *Function) paramSize(i int) (size uintptr, ok bool) {
	var offset uintptr
	r := f.driver.api.funcGetParamInfo.call(f.handle, uintptr(i), uintptr(unsafe.Pointer(&offset)),
		uintptr(unsafe.Pointer(&size)))
	return size, r == 0
}

// Dim is the extent of a grid in blocks or of a block in threads.
type Dim struct{ X, Y, Z int }

// Launch puts the kernel into the stream: grid blocks of block threads, with shared bytes of dynamic shared memory for
// each block. It allocates nothing. The caller may change the arguments when it returns. Zero extents count as 1.
func (f *Function) Launch(s *Stream, grid, block Dim, shared int, a *Args) error {
	var args uintptr
	if len(a.pointers) > 0 {
		args = uintptr(unsafe.Pointer(&a.pointers[0]))
	}
	err := f.driver.do(&f.driver.api.launchKernel, f.handle,
		extent(grid.X), extent(grid.Y), extent(grid.Z), extent(block.X), extent(block.Y), extent(block.Z),
		uintptr(shared), s.handle, args, 0)
	runtime.KeepAlive(a)
	if err != nil {
		return fmt.Errorf("kernel %s, grid %v, block %v, %d bytes shared: %w", f.Name, grid, block, shared, err)
	}
	return nil
}

func extent(n int) uintptr { return uintptr(max(n, 1)) }

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

var (
	ptxVersions = regexp.MustCompile(`(?m)^\.version\s+(\d+)\.(\d+)`)
	ptxTargets  = regexp.MustCompile(`(?m)^\.target\s+sm_(\d+)`)
)

// ptxNeeds returns text to follow "the driver is for CUDA 12.4": the CUDA version that the PTX is for, or "" if the PTX
// does not tell.
func ptxNeeds(ptx []byte) string {
	m := ptxVersions.FindSubmatch(ptx)
	if m == nil {
		return ""
	}
	major, minor := number(m[1]), number(m[2])
	// From the release notes in NVIDIA's "Parallel Thread Execution ISA".
	switch {
	case major == 8 && minor > 5:
		minor++ // CUDA 12.6 had the PTX version of 12.5
		fallthrough
	case major >= 7 && major <= 9:
		return fmt.Sprintf(", the PTX needs %d.%d", major+4, minor)
	}
	return fmt.Sprintf(", the PTX is version %d.%d", major, minor)
}

// ptxTarget returns ten times the lowest compute capability that the PTX runs on, or 0 if the PTX does not tell.
func ptxTarget(ptx []byte) int {
	m := ptxTargets.FindSubmatch(ptx)
	if m == nil {
		return 0
	}
	return number(m[1])
}

// number returns the value of a string of digits.
func number(digits []byte) int {
	// The patterns above match nothing but digits. For too many digits Atoi returns the largest int.
	n, _ := strconv.Atoi(string(digits))
	return n
}
