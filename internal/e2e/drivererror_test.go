package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Messages about GPU faults say what to do. docs/hardware.md has these messages.
func TestDriverErrors(t *testing.T) {
	t.Parallel()
	const launcherSays = `(?m)^launcher: `
	for _, test := range []struct {
		name   string
		macros []string // of the fake driver
		args   []string
		want   string // a regular expression
	}{
		{"driver too old", []string{"-DVERSION=11080"}, nil,
			`device\.backend "cuda": CUDA driver too old: libcuda\.so\.1 is for CUDA 11\.8; at least 12\.0 is ` +
				`needed; allowed here are auto and cpu$`},
		{"driver too old for the PTX", []string{"-DPTX=222"}, nil,
			`rank 0 on \S+ failed: cuda backend on device 0 \(Fake 10\): cuModuleLoadDataEx: the provided PTX was ` +
				`compiled with an unsupported toolchain\. ` +
				`\(CUDA_ERROR_UNSUPPORTED_PTX_VERSION\): the driver is for CUDA 12\.4, the PTX needs \d+\.\d+$`},
		{"no memory of the GPU", nil, set("grid.nx=20480", "grid.ny=20480"),
			`rank 0 on \S+ failed: cuda backend on device 0 \(Fake 10\): 3\.1 GiB for two fields of \d+ rows of ` +
				`81920 bytes: ` +
				`cuMemAlloc: out of memory \(CUDA_ERROR_OUT_OF_MEMORY\): 1\.6 GiB wanted, 1\.5 GiB of 10 GiB free`},
		{"more than the GPU has", nil, set("grid.nx=60480", "grid.ny=60480"),
			`grid\.nx 60480, grid\.ny 60480: memory of GPU 0 \(Fake 10\): 27 GiB are needed and there are 10 GiB$`},
		{"context lost", []string{"-DLOSE=5"}, append(set("halo.depth=1"), "-np", "2"),
			`rank 1 on \S+ failed: GPU 1 \(Fake 11, ` +
				uuid(1) + `\): sweep \d+: .*an illegal memory access was encountered \(CUDA_ERROR_ILLEGAL_ADDRESS\)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := slices.Concat(onGPUs, set("run.ranks=1", "output.field=", "output.picture="), test.args)
			out := runWith(t, fakeCUDA(t, test.macros...), t.TempDir(), "launcher", args...)
			if out.code != 1 || !regexp.MustCompile(launcherSays+test.want).MatchString(out.stderr) {
				t.Errorf("exit code %d, stderr\n%s\nwant 1 and %s", out.code, out.stderr, test.want)
			}
			if n := strings.Count(out.stderr, "close"); n > 0 {
				t.Errorf("closing is reported:\n%s", out.stderr)
			}
		})
	}
}

// With device.backend auto the CPU sweeps if the driver cannot be used, and one rank says why.
func TestDriverTooOldForAutoMeansTheCPU(t *testing.T) {
	args := append(set("grid.nx=64", "grid.ny=128", "device.backend=auto", "solver.max_iterations=10"), "-np", "3")
	out := runWith(t, fakeCUDA(t, "-DVERSION=11080"), t.TempDir(), "launcher", args...)
	const want = "no GPU can be used, the CPU sweeps: CUDA driver too old: libcuda.so.1 is for CUDA 11.8; at least " +
		"12.0 is needed"
	if out.code != 0 || strings.Count(out.stderr, want) != 1 {
		t.Errorf("exit code %d, stderr\n%s\nwant 0 and once %s", out.code, out.stderr, want)
	}
}

// Without NVML, settings that need its readings are refused before anything starts. Other runs work, also in programs
// that were built with NVML.
func TestWithoutNVMLSelectIsRefused(t *testing.T) {
	needNVML(t)
	if driverOfThisMachine(t) != nil {
		t.Skip("NOT RUN: this machine has NVML")
	}
	env := fakeCUDA(t)
	out := runWith(t, env, t.TempDir(), "launcher", append(set("device.select=coolest"), onGPUs...)...)
	const want = "launcher: device.select \"coolest\": NVML is not available: the loader finds no libnvidia-ml.so.1, " +
		"which comes with the NVIDIA driver; " +
		"allowed here is round-robin\n"
	if out.code != 1 || out.stderr != want {
		t.Errorf("exit code %d, %s; want 1 and %s", out.code, out.stderr, want)
	}
	if gpus, _ := gpusOf(t, env, "-np", "2"); gpus[1].UUID != uuid(1) {
		t.Errorf("got %+v", gpus)
	}
}
