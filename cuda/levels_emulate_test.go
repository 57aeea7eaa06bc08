package cuda

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebitengine/purego"

	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// emulated returns a driver that runs the multigrid kernels, compiled from their source, on the CPU.
func emulated(t *testing.T) *driver.Driver {
	t.Helper()
	if noGPU == nil {
		t.Skip("NOT RUN: this process has the driver of a GPU loaded, on which TestLevels runs the same suite")
	}
	for _, compiler := range []string{"gcc", "g++"} {
		if _, err := exec.LookPath(compiler); err != nil {
			t.Skipf("NOT RUN: %s needs %s", t.Name(), compiler)
		}
	}
	dir := t.TempDir()
	object, library := filepath.Join(dir, "fake.o"), filepath.Join(dir, "libcuda.so.1")
	fake := []string{"-c", "-fPIC", "-O2", "-DRUN", "driver/drivertest/testdata/fake.c", "-o", object}
	for _, f := range []string{"cuModuleGetFunction", "cuFuncSetAttribute", "cuDeviceGetAttribute", "cuMemAlloc_v2",
		"cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernel"} {
		fake = append(fake, "-D"+f+"=fake_"+f)
	}
	for _, command := range []*exec.Cmd{
		exec.Command("gcc", fake...),
		exec.Command("g++", "-std=c++17", "-O2", "-Wall", "-Wno-unknown-pragmas", "-ffp-contract=off", "-fPIC",
			"-shared", "-Wl,-soname,libcuda.so.1", "-o", library, "emulate/multigrid.cpp", object),
	} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, out)
		}
	}
	// driver.Open finds the library that is loaded under this name.
	if _, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL); err != nil {
		t.Fatal(err)
	}
	d, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The device of the multigrid cycles, with its kernels on the CPU, passes the conformance suite.
func TestLevelsOnFibers(t *testing.T) {
	d := emulated(t)
	leveltest.Run(t, func(l multigrid.Layout) (multigrid.Device, error) { return NewLevels(d, l, Options{}) })
}

// So it does where strips of columns do not touch the walls.
func TestWideLevelsOnFibers(t *testing.T) {
	d := emulated(t)
	for _, c := range wide {
		t.Run(c.String(), func(t *testing.T) { checkLevels(t, d, c) })
	}
}
