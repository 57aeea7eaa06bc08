package e2e

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/cuda/driver"
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

// onGPUs returns the arguments of a short run on GPUs.
var onGPUs = set("grid.nx=64", "grid.ny=128", "device.backend=cuda")

// gpusOf runs the launcher on fake GPUs. It returns the GPU of each rank from the report, and the launcher's output.
func gpusOf(t *testing.T, env []string, args ...string) ([]gpu, string) {
	t.Helper()
	dir := t.TempDir()
	out := runWith(t, env, dir, "launcher", append(slices.Clone(onGPUs), args...)...)
	if out.code != 0 {
		t.Fatalf("launcher %v: exit code %d\n%s", args, out.code, out.stderr)
	}
	var gpus []gpu
	for _, r := range readReport(t, filepath.Join(dir, "out")).Ranks {
		gpus = append(gpus, r.GPU)
	}
	return gpus, out.stderr
}

// uuid returns the UUID of CUDA's i-th fake GPU.
func uuid(i int) string {
	var b [16]byte
	for k := range b {
		b[k] = byte(16*k + 10 + i)
	}
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Ranks are spread over the GPUs of their node in the order of device.select, by the readings of local rank 0. NVML's
// order of devices does not matter. A dry run says the same. Each order is proven without processes
// (internal/compute/device).
func TestDeviceSelect(t *testing.T) {
	t.Parallel()
	needNVML(t)
	for _, test := range []struct {
		selection, visible string
		gpus               []int // by rank, among all GPUs
		index              []int // among the visible GPUs
		why                []string
	}{
		{"round-robin", "", []int{0, 1}, []int{0, 1}, []string{"local rank 0, 4 GPUs", "local rank 1, 4 GPUs"}},
		{"least-utilized", "3,1", []int{1, 3}, []int{1, 0}, []string{"local rank 0, number 1 of 2 by utilization (0%)",
			"local rank 1, number 2 of 2 by utilization (20%)"}},
		// Each rank reads different temperatures, by which every rank would choose GPU 0.
		{"coolest", "", []int{0, 1, 2}, []int{0, 1, 2}, []string{"local rank 0, number 1 of 4 by temperature (40 C)",
			"local rank 1, number 2 of 4 by temperature (41 C)", "local rank 2, number 3 of 4 by temperature (42 C)"}},
		{"most-free-memory", "2", []int{2}, []int{0}, []string{"local rank 0, number 1 of 1 by free memory (1.5 GiB)"}},
		{"least-power", "2", []int{2}, []int{0}, []string{"local rank 0, number 1 of 1 by power (100.0 W)"}},
	} {
		t.Run(test.selection, func(t *testing.T) {
			env := fakeGPUs(t)
			if test.visible != "" {
				env = append(env, "CUDA_VISIBLE_DEVICES="+test.visible)
			}
			args := onRanks(len(test.gpus), "device.select="+test.selection, "device.pin=false")
			var want []gpu
			for rank, g := range test.gpus {
				want = append(want, gpu{test.index[rank], fmt.Sprintf("Fake %d", 10+g), uuid(g),
					fmt.Sprintf("0000:%02X:00.0", 10+g), test.selection + ": " + test.why[rank], ""})
			}
			if got, _ := gpusOf(t, env, args...); !slices.Equal(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			dry := runWith(t, env, t.TempDir(), "launcher", slices.Concat(onGPUs, args, []string{"--dry-run"})...)
			for rank, w := range want {
				line := fmt.Sprintf("%d    %s  %s  %s\n", w.Index, w.Name, w.UUID, w.Why)
				if dry.code != 0 || !strings.Contains(dry.stdout, line) {
					t.Errorf("dry run: no line of rank %d ends in %q:\n%s%s", rank, line, dry.stdout, dry.stderr)
				}
			}
		})
	}
}

// A dry run shows the GPUs of this machine, and only for ranks on this machine. Where nobody says how many ranks there
// are, each GPU of this machine gets one, or each slot of the hosts. Without GPUs one rank has all cores.
func TestDryRunWithGPUs(t *testing.T) {
	env, dir := fakeCUDA(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "two.yaml"), []byte("run: {ranks: 2}"), 0o644); err != nil {
		t.Fatal(err)
	}
	const cuda = "--set=device.backend=cuda"
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{cuda, "-np=2", "--host=localhost:1,node7:1"},
			[]string{uuid(0) + "  round-robin: local rank 0, 4 GPUs\n", "  chosen on its host\n"}},
		{[]string{cuda, "-np=2", "--host=node7:2"}, []string{"(auto: preferred by the CUDA backend, "}},
		{[]string{cuda}, []string{"\n  ranks: 4\n"}},
		{nil, []string{"\n  ranks: 1\n"}},
		{[]string{"--config=two.yaml"}, []string{"\n  ranks: 2\n"}},
		{[]string{cuda, "--host=a:3,b:2"}, []string{"\n  ranks: 5\n"}},
		{[]string{cuda, "--config=two.yaml", "--host=a:3,b:2"}, []string{"\n  ranks: 2\n"}},
	} {
		out := runWith(t, env, dir, "launcher", slices.Concat(set("grid.nx=512", "grid.ny=512"), c.args,
			[]string{"--dry-run"})...)
		for _, want := range c.want {
			if out.code != 0 || !strings.Contains(out.stdout, want) {
				t.Errorf("%q: exit code %d, no %q in\n%s%s", c.args, out.code, want, out.stdout, out.stderr)
			}
		}
	}
}

// needNVML skips a test whose programs were built without NVML.
func needNVML(t *testing.T) {
	t.Helper()
	out := runWith(t, fakeCUDA(t), t.TempDir(), "launcher",
		append(set("device.select=coolest", "device.backend=cuda"), "--dry-run")...)
	if strings.Contains(out.stderr, "this program was built without it") {
		t.Skipf("NOT RUN: %s needs programs built with a C compiler, for NVML", t.Name())
	}
}

// A rank is pinned to those of its allowed cores that are near its GPU. Where there are none it says so and sweeps.
func TestDevicePin(t *testing.T) {
	t.Parallel()
	needNVML(t)
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !allowed.IsSet(core) {
		core++
	}
	near, far := fakeGPUs(t, fmt.Sprintf("-DCORE=%d", core)), fakeGPUs(t, "-DCORE=1023")
	for _, c := range []struct {
		env        []string
		keys       []string
		cores, say string
	}{
		{near, nil, fmt.Sprint(core), ""},
		{near, []string{"device.pin=false"}, "", ""},
		{far, nil, "", "not pinned to the cores near GPU 0: no core near the GPU is among those allowed: near are " +
			"1023, allowed are "},
	} {
		gpus, said := gpusOf(t, c.env, append(onRanks(1, c.keys...), "-v")...)
		if gpus[0].Cores != c.cores || !strings.Contains(said, c.say) ||
			len(c.keys) > 0 && strings.Contains(said, "pinned") {
			t.Errorf("%v: pinned to %q, want %q and %q in\n%s", c.keys, gpus[0].Cores, c.cores, c.say, said)
		}
	}
}

// driverOfThisMachine returns the driver of real GPUs, or nil if there is none.
func driverOfThisMachine(t *testing.T) *driver.Driver {
	t.Helper()
	d, err := driver.Open()
	if err != nil && !errors.Is(err, driver.ErrNoDriver) && !errors.Is(err, driver.ErrNoDevice) {
		t.Fatal(err)
	}
	return d
}

// A build without a C compiler runs, with and without GPUs, but refuses settings that need NVML.
func TestBuildWithoutCompiler(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_BIN") != "" {
		t.Skip("NOT RUN: TestBuildWithoutCompiler builds the programs, which are given here")
	}
	dir, env := t.TempDir(), fakeCUDA(t)
	if err := makeBuild(dir, "CC=none"); err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(dir, "launcher")
	args := onRanks(2, "grid.nx=64", "grid.ny=128", "solver.max_iterations=50")
	want, _ := solve(t, args...)
	mustRun(t, dir, launcher, args...)
	got, _ := answerIn(t, filepath.Join(dir, "out"))
	same(t, got, want, "without a compiler")
	runWith(t, env, dir, launcher, onGPUs...).fails(t, 0, "")
	runWith(t, env, dir, launcher, append(set("device.select=coolest"), onGPUs...)...).fails(t, 1,
		`launcher: device.select "coolest": NVML is not available: this program was built without it (it takes cgo `+
			"and -tags nvml); allowed here is round-robin\n")
}

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
	args := onRanks(3, "grid.nx=64", "grid.ny=128", "device.backend=auto", "solver.max_iterations=10")
	out := runWith(t, fakeCUDA(t, "-DVERSION=11080"), t.TempDir(), "launcher", args...)
	const want = "no GPU can be used, the CPU sweeps: CUDA driver too old: libcuda.so.1 is for CUDA 11.8; at least " +
		"12.0 is needed"
	if out.code != 0 || strings.Count(out.stderr, want) != 1 {
		t.Errorf("exit code %d, stderr\n%s\nwant 0 and once %s", out.code, out.stderr, want)
	}
}

// Without NVML, settings that need its readings are refused before anything starts. Other runs work, also in programs
// that were built with NVML; their ranks say with -v why they are not pinned.
func TestWithoutNVMLSelectIsRefused(t *testing.T) {
	needNVML(t)
	if driverOfThisMachine(t) != nil {
		t.Skip("NOT RUN: this machine has NVML")
	}
	env := fakeCUDA(t)
	const want = "NVML is not available: the loader finds no libnvidia-ml.so.1, which comes with the NVIDIA driver"
	runWith(t, env, t.TempDir(), "launcher", append(set("device.select=coolest"), onGPUs...)...).fails(t, 1,
		`launcher: device.select "coolest": `+want+"; allowed here is round-robin\n")
	gpus, said := gpusOf(t, env, "-np", "2", "-v")
	if gpus[1].UUID != uuid(1) || gpus[1].Cores != "" ||
		!strings.Contains(said, "DEBUG\tnot pinned to the cores near GPU 0: "+want) {
		t.Errorf("got %+v\n%s", gpus, said)
	}
}
