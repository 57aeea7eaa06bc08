package e2e

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"jacobi/cuda/driver/drivertest"
)

//go:embed testdata/nvml.c
var nvmlSource []byte

// fakeGPUs returns the environment in which programs find 4 fake GPUs, which compute nothing, and an NVML for them. The
// macros configure the C sources of both.
func fakeGPUs(t *testing.T, macros ...string) []string {
	t.Helper()
	macros = append(macros, "-DRUN", "-DGPUS=4")
	nvml := drivertest.Compile(t, "libnvidia-ml.so.1", nvmlSource, macros...)
	return libraryPath(drivertest.Build(t, macros...), nvml)
}

// fakeCUDA returns the environment in which programs find the GPUs of fakeGPUs, but no NVML.
func fakeCUDA(t *testing.T, macros ...string) []string {
	t.Helper()
	return libraryPath(drivertest.Build(t, append(macros, "-DRUN", "-DGPUS=4")...))
}

// libraryPath returns the environment in which the loader searches the directories of these libraries first.
func libraryPath(libraries ...string) []string {
	path := ""
	for _, l := range libraries {
		path += filepath.Dir(l) + ":"
	}
	return []string{fmt.Sprintf("LD_LIBRARY_PATH=%s%s", path, os.Getenv("LD_LIBRARY_PATH"))}
}
