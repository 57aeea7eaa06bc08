// Package emulatetest builds CUDA drivers that run kernels, compiled from their source, on the CPU.
package emulatetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Build builds the driver that runs the multigrid kernels and returns its path, which ends in libcuda.so.1. A program
// finds the driver if LD_LIBRARY_PATH has the path's directory. Without compilers Build skips the test. The macros
// configure the fake driver behind it, see drivertest.
func Build(t testing.TB, macros ...string) string {
	t.Helper()
	return build(t, "multigrid.cpp", append([]string{"cuModuleGetFunction", "cuFuncSetAttribute",
		"cuDeviceGetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernel",
		"cuStreamCreateWithPriority", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamQuery",
		"cuStreamWaitEvent", "cuStreamWaitValue32_v2", "cuStreamWriteValue32_v2", "cuEventCreate", "cuEventDestroy_v2",
		"cuEventRecord", "cuEventSynchronize", "cuEventQuery", "cuEventElapsedTime", "cuCtxSynchronize",
		"cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
		"cuMemcpy2DAsync_v2", "cuMemsetD8Async", "cuMemsetD32Async", "cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2",
		"cuIpcCloseMemHandle"},
		macros...)...)
}

// BuildProbe builds the driver that runs the kernels of launcher probe, as Build does. The macros configure the fake
// driver behind it, see drivertest.
func BuildProbe(t testing.TB, macros ...string) string {
	t.Helper()
	return build(t, "probe.cpp", append([]string{"cuModuleGetFunction", "cuLaunchKernel",
		"cuOccupancyMaxActiveBlocksPerMultiprocessor"}, macros...)...)
}

// build builds a driver from a C++ file in cuda/emulate and the fake driver, in which the functions given have other
// names. Names that begin with a dash are macros for both.
func build(t testing.TB, emulator string, replaced ...string) string {
	t.Helper()
	for _, compiler := range []string{"gcc", "g++"} {
		if _, err := exec.LookPath(compiler); err != nil {
			t.Skipf("NOT RUN: %s needs %s, to build a driver that needs no GPU", t.Name(), compiler)
		}
	}
	_, here, _, _ := runtime.Caller(0)
	cuda := filepath.Join(filepath.Dir(here), "../..")
	for _, pattern := range []string{"*/*.[ch]*", "driver/drivertest/testdata/*"} {
		readAll(t, filepath.Join(cuda, pattern))
	}
	dir := t.TempDir()
	object, library := filepath.Join(dir, "fake.o"), filepath.Join(dir, "libcuda.so.1")
	var macros []string
	fake := []string{"-c", "-fPIC", "-O2", "-DRUN", filepath.Join(cuda, "driver/drivertest/testdata/fake.c"), "-o",
		object}
	for _, f := range replaced {
		if strings.HasPrefix(f, "-") {
			macros = append(macros, f)
		} else {
			fake = append(fake, "-D"+f+"=fake_"+f)
		}
	}
	// Fibers jump between stacks. The checks of _FORTIFY_SOURCE, which some compilers turn on, call that a fault.
	for _, command := range []*exec.Cmd{
		exec.Command("gcc", append(fake, macros...)...),
		exec.Command("g++", append([]string{"-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-Wall", "-Wno-unknown-pragmas",
			"-ffp-contract=off", "-fPIC", "-pthread", "-shared", "-Wl,-soname,libcuda.so.1", "-o", library,
			filepath.Join(cuda, "emulate", emulator), object}, macros...)...),
	} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, out)
		}
	}
	return library
}

// readAll reads files, so that go's test cache depends on them.
func readAll(t testing.TB, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, err := os.Stat(f); err != nil {
			t.Fatal(err)
		}
	}
}
