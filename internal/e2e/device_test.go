package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/cuda/driver"
)

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

// Ranks are spread over the GPUs of their node in the order of device.select. NVML's order of devices does not matter.
func TestDeviceSelect(t *testing.T) {
	t.Parallel()
	needNVML(t)
	env := fakeGPUs(t)
	type row struct {
		index, gpu int // among the visible GPUs; among all GPUs
		why        string
	}
	for _, test := range []struct {
		selection, visible string
		want               []row
	}{
		{"round-robin", "", []row{
			{0, 0, "round-robin: local rank 0, 4 GPUs"}, {1, 1, "round-robin: local rank 1, 4 GPUs"},
			{2, 2, "round-robin: local rank 2, 4 GPUs"}, {3, 3, "round-robin: local rank 3, 4 GPUs"},
		}},
		{"least-utilized", "", []row{
			{1, 1, "least-utilized: local rank 0, number 1 of 4 by utilization (0%)"},
			{0, 0, "least-utilized: local rank 1, number 2 of 4 by utilization (10%)"},
			{3, 3, "least-utilized: local rank 2, number 3 of 4 by utilization (20%)"},
			{2, 2, "least-utilized: local rank 3, number 4 of 4 by utilization (30%)"},
		}},
		{"least-utilized", "3,1", []row{
			{1, 1, "least-utilized: local rank 0, number 1 of 2 by utilization (0%)"},
			{0, 3, "least-utilized: local rank 1, number 2 of 2 by utilization (20%)"},
		}},
		// Each rank reads different temperatures, by which every rank would choose GPU 0. The readings of local rank 0
		// decide.
		{"coolest", "", []row{
			{0, 0, "coolest: local rank 0, number 1 of 4 by temperature (40 C)"},
			{1, 1, "coolest: local rank 1, number 2 of 4 by temperature (41 C)"},
			{2, 2, "coolest: local rank 2, number 3 of 4 by temperature (42 C)"},
			{3, 3, "coolest: local rank 3, number 4 of 4 by temperature (43 C)"},
		}},
		{"most-free-memory", "2",
			[]row{{0, 2, "most-free-memory: local rank 0, number 1 of 1 by free memory (1.5 GiB)"}}},
		{"least-power", "2", []row{{0, 2, "least-power: local rank 0, number 1 of 1 by power (100.0 W)"}}},
	} {
		t.Run(test.selection+test.visible, func(t *testing.T) {
			env := slices.Clone(env)
			if test.visible != "" {
				env = append(env, "CUDA_VISIBLE_DEVICES="+test.visible)
			}
			args := append(set("device.select="+test.selection, "device.pin=false"), "-np", fmt.Sprint(len(test.want)))
			var want []gpu
			for _, w := range test.want {
				want = append(want, gpu{w.index, fmt.Sprintf("Fake %d", 10+w.gpu), uuid(w.gpu),
					fmt.Sprintf("0000:%02X:00.0", 10+w.gpu), w.why, ""})
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

// A dry run shows the GPUs of this machine, and only for ranks on this machine.
func TestDryRunShowsTheGPUsOfThisMachine(t *testing.T) {
	env := fakeCUDA(t)
	args := append(slices.Clone(onGPUs), "-np", "2", "--dry-run", "--host")
	for hosts, want := range map[string][]string{
		"localhost:1,node7:1": {uuid(0) + "  round-robin: local rank 0, 4 GPUs\n", "  chosen on its host\n"},
		"node7:2":             {"(auto: preferred by the CUDA backend, "},
	} {
		out := runWith(t, env, t.TempDir(), "launcher", append(slices.Clone(args), hosts)...)
		for _, w := range want {
			if out.code != 0 || !strings.Contains(out.stdout, w) {
				t.Errorf("%s: exit code %d, no %q in\n%s%s", hosts, out.code, w, out.stdout, out.stderr)
			}
		}
	}
}

// Where nobody says how many ranks there are, each GPU of this machine gets one, or each slot of the hosts. Without
// GPUs one rank has all cores.
func TestRanksByDefault(t *testing.T) {
	env, dir := fakeCUDA(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "two.yaml"), []byte("run: {ranks: 2}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want int
	}{
		{onGPUs, 4}, {set("device.backend=cpu"), 1}, {[]string{"--config", "two.yaml"}, 2},
		{append(slices.Clone(onGPUs), "--host", "a:3,b:2"), 5},
		{append(slices.Clone(onGPUs), "--config", "two.yaml", "--host", "a:3,b:2"), 2},
	} {
		args := slices.Concat(c.args, set("grid.nx=512", "grid.ny=512"), []string{"--dry-run"})
		out := runWith(t, env, dir, "launcher", args...)
		if want := fmt.Sprintf("\n  ranks: %d\n", c.want); out.code != 0 || !strings.Contains(out.stdout, want) {
			t.Errorf("%q: exit code %d, want %d ranks\n%s%s", c.args, out.code, c.want, out.stdout, out.stderr)
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

// If there are more ranks than GPUs, ranks share GPUs, and one message says so.
func TestMoreRanksThanGPUs(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	gpus, said := gpusOf(t, fakeCUDA(t), "-np", "9")
	for i, g := range gpus {
		if g.Index != i%4 || g.UUID != uuid(i%4) {
			t.Errorf("rank %d took %+v", i, g)
		}
	}
	if warning := "WARN\t9 ranks share 4 GPUs on " + host; strings.Count(said, "ranks share") != 1 ||
		!strings.Contains(said, warning) {
		t.Errorf("want once %q in\n%s", warning, said)
	}
	if _, said := gpusOf(t, fakeCUDA(t), "-np", "4"); strings.Contains(said, "share") {
		t.Errorf("4 ranks have 4 GPUs:\n%s", said)
	}
}

// A rank is pinned to those of its allowed cores that are near its GPU.
func TestDevicePin(t *testing.T) {
	t.Parallel()
	needNVML(t)
	var cores []string
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	for c := range 1024 {
		if allowed.IsSet(c) {
			cores = append(cores, fmt.Sprint(c))
		}
	}
	env := fakeGPUs(t, "-DCORE="+cores[0])
	pinned := func(args ...string) (string, string) {
		t.Helper()
		gpus, said := gpusOf(t, env, append(args, "-np", "1", "-v")...)
		return gpus[0].Cores, said
	}
	if got, said := pinned(); got != cores[0] {
		t.Errorf("pinned to %q, want %s\n%s", got, cores[0], said)
	}
	if got, said := pinned("--set", "device.pin=false"); got != "" || strings.Contains(said, "pinned") {
		t.Errorf("device.pin=false: pinned to %q\n%s", got, said)
	}
	if len(cores) > 1 {
		args := slices.Concat([]string{"-c", cores[1], filepath.Join(bin, "launcher")}, onGPUs, []string{"-np", "1"})
		out := runWith(t, env, t.TempDir(), needTaskset(t), args...)
		want := "INFO\tnot pinned to the cores near GPU 0: no core near the GPU is among those allowed: near are " +
			cores[0] + ", allowed are " + cores[1]
		if out.code != 0 || !strings.Contains(out.stderr, want) {
			t.Errorf("exit code %d, want 0 and %q in\n%s", out.code, want, out.stderr)
		}
	} else {
		t.Logf("NOT RUN: a rank with fewer cores than the machine has: there is one core")
	}
	env = fakeGPUs(t, "-DCORE=1023")
	near := "not pinned to the cores near GPU 0: no core near the GPU is among those allowed: near are 1023, allowed " +
		"are "
	if got, said := pinned(); got != "" || !strings.Contains(said, near) {
		t.Errorf("pinned to %q, want %q in\n%s", got, near, said)
	}
	env = fakeCUDA(t)
	if driverOfThisMachine(t) != nil {
		return // the machine has a real NVML, which does not know the fake GPUs
	}
	none := "DEBUG\tnot pinned to the cores near GPU 0: NVML is not available: the loader finds no " +
		"libnvidia-ml.so.1, which comes with the NVIDIA driver"
	if got, said := pinned(); got != "" || !strings.Contains(said, none) {
		t.Errorf("pinned to %q, want %q in\n%s", got, none, said)
	}
}

func needTaskset(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("taskset")
	if err != nil {
		t.Fatal(err) // every Linux on which CI runs has it
	}
	return path
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

// A build without a C compiler says so and runs, but refuses settings that need NVML.
func TestBuildWithoutCompiler(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_BIN") != "" {
		t.Skip("NOT RUN: TestBuildWithoutCompiler builds the programs, which are given here")
	}
	dir := t.TempDir()
	if err := makeBuild(dir, "CC=none"); err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(dir, "launcher")
	args := append(set("grid.nx=64", "grid.ny=128", "solver.max_iterations=50"), "-np", "2")
	var sums []string
	for _, program := range []string{"launcher", launcher} {
		out := run(t, dir, program, args...)
		if out.code != 0 {
			t.Fatalf("%s: exit code %d\n%s", program, out.code, out.stderr)
		}
		sums = append(sums, readReport(t, filepath.Join(dir, "out")).FieldSHA256)
	}
	if sums[0] != sums[1] {
		t.Errorf("field %s, without a compiler %s", sums[0], sums[1])
	}
	env := fakeCUDA(t)
	args = append(slices.Clone(onGPUs), "-np", "2")
	if out := runWith(t, env, dir, launcher, args...); out.code != 0 {
		t.Errorf("on GPUs: exit code %d\n%s", out.code, out.stderr)
	}
	out := runWith(t, env, dir, launcher, append(args, "--set", "device.select=coolest")...)
	const want = "launcher: device.select \"coolest\": NVML is not available: this program was built without it (it " +
		"takes cgo and -tags nvml); " +
		"allowed here is round-robin\n"
	if out.code != 1 || out.stderr != want {
		t.Errorf("exit code %d, %s; want 1 and %s", out.code, out.stderr, want)
	}
}
