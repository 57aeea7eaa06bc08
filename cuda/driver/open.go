package driver

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

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
	functions := d.api.names()
	for _, symbol := range slices.Sorted(maps.Keys(functions)) {
		if err := functions[symbol].lookUp(lib, symbol); err != nil {
			return nil, fmt.Errorf("%w: %s, for CUDA %v: %w", ErrDriverTooOld, name, d.version, err)
		}
	}
	for symbol, f := range d.api.optional() {
		_ = f.lookUp(lib, symbol)
	}
	purego.RegisterFunc(&d.ipcOpen, d.api.ipcOpenMemHandle.addr)
	if err := d.call(&d.api.init, 0); err != nil {
		return nil, fmt.Errorf("start the CUDA driver (%s, for CUDA %v): %w", name, d.version, err)
	}
	return d, nil
}

// Version returns the newest CUDA version that the driver supports. PTX of a newer version does not load.
func (d *Driver) Version() Version { return d.version }
