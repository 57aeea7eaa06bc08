package driver

import (
	"errors"
	"strings"
	"testing"

	"jacobi/cuda/driver/drivertest"
)

func isError(err, target error) bool { return err != nil && (target == nil || errors.Is(err, target)) }

func TestOpenWithoutDriver(t *testing.T) {
	_, err := open("libcuda-missing.so.1")
	checkError(t, err, ErrNoDriver, "no CUDA driver: the loader looked for libcuda-missing.so.1: "+
		"libcuda-missing.so.1: cannot open shared object file: No such file or directory")
}

func TestOpenOfAnotherLibrary(t *testing.T) {
	_, err := open("libm.so.6")
	if !isError(err, ErrNoDriver) || !strings.HasPrefix(err.Error(),
		"no CUDA driver: libm.so.6 is something else: no function cuDriverGetVersion: ") {
		t.Errorf("got %v", err)
	}
}

func TestOpenOfAnOldDriver(t *testing.T) {
	lib := drivertest.Build(t, "-DVERSION=11080")
	_, err := open(lib)
	checkError(t, err, ErrDriverTooOld, "CUDA driver too old: "+lib+" is for CUDA 11.8; at least 12.0 is needed")
}

func TestOpenOfADriverThatLacksAFunction(t *testing.T) {
	lib := drivertest.Build(t, "-DVERSION=13000", "-DWITHOUT_IPC")
	_, err := open(lib)
	checkError(t, err, ErrDriverTooOld,
		"CUDA driver too old: "+lib+", for CUDA 13.0: no function cuIpcCloseMemHandle: "+
			lib+": undefined symbol: cuIpcCloseMemHandle")
}

func TestOpenWithoutDevice(t *testing.T) {
	lib := drivertest.Build(t, "-DINIT=100")
	_, err := open(lib)
	checkError(t, err, ErrNoDevice, "start the CUDA driver ("+lib+", for CUDA 12.4): "+
		"cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)")
}

func TestCodesWithoutAName(t *testing.T) {
	lib := drivertest.Build(t, "-DINIT=4321")
	_, err := open(lib)
	checkError(t, err, Code(4321), "start the CUDA driver ("+lib+", for CUDA 12.4): "+
		"cuInit: no text from the driver (CUDA error 4321)")
}

// The driver has the queues that a rank needs, unless the user wants another number.
func TestOpenAsksForConnections(t *testing.T) {
	lib := drivertest.Build(t, `-DINIT=(4000+atoi(getenv("CUDA_DEVICE_MAX_CONNECTIONS")))`)
	for set, want := range map[string]Code{"": 4002, "5": 4005} {
		t.Setenv(connectionsVar, set)
		if _, err := open(lib); !errors.Is(err, want) {
			t.Errorf("set to %q: %v, want %d", set, err, want)
		}
	}
}
