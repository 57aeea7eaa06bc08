// Package emulatetest builds CUDA drivers that run kernels, compiled from their source, on the CPU.
package emulatetest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Build builds the driver that runs the kernels of sweeps, multigrid and conjugate gradients on four GPUs, of which the
// last one has no peers, and returns its path, which ends in libcuda.so.1. A program finds the driver if
// LD_LIBRARY_PATH has the path's directory. Without compilers Build skips the test.
func Build(t testing.TB) string {
	t.Helper()
	return build(t, "multigrid.cpp", "-DGPUS=4", "-DWITHOUT_PEERS=13", "cuModuleGetFunction", "cuFuncSetAttribute",
		"cuDeviceGetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernel",
		"cuStreamCreateWithPriority", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamQuery",
		"cuStreamWaitEvent", "cuStreamWaitValue32_v2", "cuStreamWriteValue32_v2", "cuEventCreate", "cuEventDestroy_v2",
		"cuEventRecord", "cuEventSynchronize", "cuEventQuery", "cuEventElapsedTime", "cuCtxSynchronize",
		"cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
		"cuMemcpy2DAsync_v2", "cuMemsetD8Async", "cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2",
		"cuIpcCloseMemHandle")
}

// BuildProbe builds the driver that runs the kernel of launcher probe, as Build does. The macros configure the fake
// driver behind it, see drivertest.
func BuildProbe(t testing.TB, macros ...string) string {
	t.Helper()
	return build(t, "probe.cpp", append([]string{"cuModuleGetFunction", "cuLaunchKernel"}, macros...)...)
}

// build builds a driver from a C++ file in cuda/emulate and the fake driver, in which the functions given have other
// names. Names that begin with a dash are macros for both. The driver stays in bin/emulate, where all tests with the
// same sources and macros find it.
func build(t testing.TB, emulator string, replaced ...string) string {
	t.Helper()
	for _, compiler := range []string{"gcc", "g++"} {
		if _, err := exec.LookPath(compiler); err != nil {
			t.Skipf("NOT RUN: %s needs %s, to build a driver that needs no GPU", t.Name(), compiler)
		}
	}
	_, here, _, _ := runtime.Caller(0)
	cuda := filepath.Join(filepath.Dir(here), "../..")
	kept := filepath.Join(cuda, "../bin/emulate")
	if err := os.MkdirAll(kept, 0o777); err != nil {
		t.Fatal(err)
	}
	key := sha256.New()
	fmt.Fprintln(key, emulator, replaced)
	for _, pattern := range []string{"*/*.[ch]*", "driver/drivertest/testdata/*", "emulate/emulatetest/*.go"} {
		readAll(t, filepath.Join(cuda, pattern), key)
	}
	done := filepath.Join(kept, hex.EncodeToString(key.Sum(nil)))
	if _, err := os.Stat(done); err == nil {
		return filepath.Join(done, library)
	}
	making, err := os.MkdirTemp(kept, "making-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(making)
	compile(t, cuda, making, emulator, replaced)
	if err := os.Rename(making, done); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) {
		t.Fatal(err) // with these errors another process was faster
	}
	return filepath.Join(done, library)
}

const library = "libcuda.so.1"

// compile builds the driver in dir.
func compile(t testing.TB, cuda, dir, emulator string, replaced []string) {
	t.Helper()
	object := filepath.Join(dir, "fake.o")
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
	for _, command := range []*exec.Cmd{
		exec.Command("gcc", append(fake, macros...)...),
		exec.Command("g++", append([]string{"-std=c++17", "-O1", "-Wall", "-Wno-unknown-pragmas", "-ffp-contract=off",
			"-fPIC", "-pthread", "-shared", "-Wl,-soname," + library, "-o",
			filepath.Join(dir, library), filepath.Join(cuda, "emulate", emulator), object}, macros...)...),
	} {
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, out)
		}
	}
}

// readAll copies files to w. Reading them also makes go's test cache depend on them.
func readAll(t testing.TB, pattern string, w io.Writer) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "%s %d\n%s", f, len(b), b)
	}
}
