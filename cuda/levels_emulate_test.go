package cuda

import (
	"testing"

	"github.com/ebitengine/purego"

	"jacobi/cuda/driver"
	"jacobi/cuda/emulate/emulatetest"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// emulated returns a driver that runs the kernels, compiled from their source, on the CPU.
func emulated(t *testing.T) *driver.Driver {
	t.Helper()
	if noGPU == nil {
		t.Skip("NOT RUN: this process has the driver of a GPU loaded, on which other tests run the same suites")
	}
	// driver.Open finds the library that is loaded under this name.
	if _, err := purego.Dlopen(emulatetest.Build(t), purego.RTLD_NOW|purego.RTLD_LOCAL); err != nil {
		t.Fatal(err)
	}
	d, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// emulatedAlone is emulated for a test of one goroutine. Short tests, which are those of the race detector, do without
// it.
func emulatedAlone(t *testing.T) *driver.Driver {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN with -short: one goroutine races with nobody")
	}
	return emulated(t)
}

// The device of the multigrid cycles, with its kernels on the CPU, passes the conformance suite, whether levels are
// done in tiles or stream.
func TestLevelsOnFibers(t *testing.T) {
	d := emulatedAlone(t)
	for name, f := range map[string]newer{"tiles": NewLevels, "streams": openStreamed} {
		t.Run(name, func(t *testing.T) {
			open := func(l multigrid.Layout) (multigrid.Device, error) { return f(d, l, Options{}) }
			leveltest.Run(t, open)
			leveltest.RunFixed(t, open)
			if name == "tiles" { // the ways between two meshes have neither
				leveltest.RunFull(t, open)
			}
		})
	}
}

// So it does where strips of columns do not touch the walls.
func TestWideLevelsOnFibers(t *testing.T) {
	d := emulatedAlone(t)
	for _, c := range wide {
		t.Run(c.String(), func(t *testing.T) {
			checkLevels(t, d, NewLevels, c)
			checkLevels(t, d, openStreamed, c)
		})
	}
}
