package emulatetest

import (
	"testing"

	"github.com/ebitengine/purego"

	"jacobi/cuda/driver"
)

// ProbeGPUs returns the GPUs of this machine, or without any those of a driver that runs the kernels of launcher probe
// on the CPU.
func ProbeGPUs(t *testing.T) []driver.Device {
	t.Helper()
	d, err := driver.Open()
	if err != nil {
		// driver.Open finds the library that is loaded under this name.
		library := BuildProbe(t, "-DPEERS=1", "-DSMS=2", "-DGPUS=4")
		if _, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL); err != nil {
			t.Fatal(err)
		}
		if d, err = driver.Open(); err != nil {
			t.Fatal(err)
		}
	}
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return devices
}
