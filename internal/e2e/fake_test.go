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

// fakeGPUs returns the environment in which programs find 4 GPUs that sweep nothing, and NVML for them. The macros are
// those of the two sources.
func fakeGPUs(t *testing.T, macros ...string) []string {
	t.Helper()
	macros = append(macros, "-DRUN", "-DGPUS=4")
	nvml := drivertest.Compile(t, "libnvidia-ml.so.1", nvmlSource, macros...)
	return libraryPath(drivertest.Build(t, macros...), nvml)
}

// fakeCUDA returns the environment in which programs find GPUs as those of fakeGPUs, but no NVML.
func fakeCUDA(t *testing.T, macros ...string) []string {
	t.Helper()
	return libraryPath(drivertest.Build(t, append(macros, "-DRUN", "-DGPUS=4")...))
}

// libraryPath returns the environment in which the loader finds the libraries first.
func libraryPath(libraries ...string) []string {
	path := ""
	for _, l := range libraries {
		path += filepath.Dir(l) + ":"
	}
	return []string{fmt.Sprintf("LD_LIBRARY_PATH=%s%s", path, os.Getenv("LD_LIBRARY_PATH"))}
}
