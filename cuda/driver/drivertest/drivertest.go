// Package drivertest builds a fake CUDA driver that needs no GPU, for tests.
package drivertest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed testdata/fake.c
var source []byte

// Build builds the driver with the given macros (-DNAME=value, see testdata/fake.c) and returns its path, which ends in
// libcuda.so.1. A program finds the driver if LD_LIBRARY_PATH has the path's directory. Without gcc Build skips the
// test.
func Build(t testing.TB, macros ...string) string {
	t.Helper()
	return Compile(t, "libcuda.so.1", source, macros...)
}

// Compile builds a shared library from C source in a directory of its own and returns its path.
func Compile(t testing.TB, name string, source []byte, macros ...string) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("NOT RUN: %s needs gcc, to build a driver that needs no GPU: %v", t.Name(), err)
	}
	dir := t.TempDir()
	file, lib := filepath.Join(dir, "fake.c"), filepath.Join(dir, name)
	if err := os.WriteFile(file, source, 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-Wall", "-Werror", "-shared", "-fPIC", "-o", lib, file}, macros...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", cc, args, err, out)
	}
	return lib
}
