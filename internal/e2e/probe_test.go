package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jacobi/cuda/driver/drivertest"
	"jacobi/cuda/emulate/emulatetest"
	"jacobi/internal/tools/probe"
)

// probed is the part of the output of launcher probe --json that tests check.
type probed struct {
	Findings   []struct{ Part, Host, Text string }
	Unexpected []struct{ Bound, Host, Why string }

	Devices, Copies, Peers, Overlap, NATS, Sweep []struct {
		Host    string
		Data    json.RawMessage
		Figures []struct {
			Name  string
			Value float64
		}
		NotRun string `json:"not_run"`
		Fault  string
	}
}

// parseProbe parses the output of launcher probe --json.
func parseProbe(t *testing.T, out outcome) (p probed) {
	t.Helper()
	if err := json.Unmarshal([]byte(out.stdout), &p); err != nil {
		t.Fatalf("%v\n%s%s", err, out.stdout, out.stderr)
	}
	return p
}

// probeGPUs returns the environment in which programs find GPUs that run the probe's kernels. The macros configure the
// fake driver.
func probeGPUs(t *testing.T, macros ...string) []string {
	t.Helper()
	macros = append(macros, "-DRUN", "-DFREE=(160ul<<10)")
	nvml := drivertest.Compile(t, "libnvidia-ml.so.1", nvmlSource, "-DGPUS=3")
	return append(libraryPath(emulatetest.BuildProbe(t, append(macros, "-DGPUS=3")...), nvml),
		"JACOBI_DEVICE_BACKEND=auto")
}

// Without a GPU, what makes sense on a CPU is measured, and the rest says why not.
func TestProbeWithoutGPU(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	expect := filepath.Join(dir, "expect.json")
	bounds := `{"copies.host": 1e6, "peers.shared_memory.latency": {"max": 10}, "nats.*.rate": 1000,
		"sweep.cpu.*": 1e-6}`
	if err := os.WriteFile(expect, []byte(bounds), 0o600); err != nil {
		t.Fatal(err)
	}
	out := run(t, dir, "launcher", "probe", "-np", "2", "--json", "--expect", expect, "-q")
	p := parseProbe(t, out)
	if out.code != 0 || out.stderr != "" || len(p.Unexpected) > 0 {
		t.Errorf("exit code %d, unexpected %v\n%s", out.code, p.Unexpected, out.stderr)
	}
	const cpu = `device.backend "cpu"`
	for part, want := range map[string]string{p.Devices[0].NotRun: "no GPU: " + cpu,
		p.Copies[0].NotRun: "copies of GPUs: " + cpu, p.Peers[0].NotRun: "links between GPUs: " + cpu,
		p.Overlap[0].NotRun: cpu, p.Sweep[0].NotRun: "GPUs: " + cpu, p.NATS[0].NotRun: ""} {
		if part != want {
			t.Errorf("not run: %q, want %q", part, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// A figure below its bound, and a bound of a figure that was not measured, make the probe fail. A rank without a
// launcher measures, too.
func TestProbeExpects(t *testing.T) {
	dir := t.TempDir()
	expect := filepath.Join(dir, "expect.json")
	bounds := `{"peers.shared_memory.rate": 1e18, "peers.gpu0.gpu1.rate": 1}`
	if err := os.WriteFile(expect, []byte(bounds), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"launcher", "probe", "peers", "-np", "1", "--expect", expect},
		{"jacobi-rank", "--probe", "peers", "--expect", expect},
	} {
		out := run(t, dir, command[0], command[1:]...)
		for _, want := range []string{"peers.gpu0.gpu1.rate: no part measured it\n", "shared memory between ranks: ",
			"at least 1000000000 GB/s was expected\n", "2 of what was expected did not hold.\n"} {
			if !strings.Contains(out.stdout, want) {
				t.Errorf("%v: no %q in\n%s", command, want, out.stdout)
			}
		}
		if out.code != 1 {
			t.Errorf("%v: exit code %d\n%s", command, out.code, out.stderr)
		}
	}
}

func TestProbeRefuses(t *testing.T) {
	dir := t.TempDir()
	const allowed = "allowed are devices, copies, peers, overlap, nats, sweep, transposes, reductions"
	for want, args := range map[string][]string{
		`launcher: part "copy": ` + allowed:                                                 {"copy"},
		`launcher: part "device": ` + allowed + "; did you mean devices?":                   {"device"},
		"launcher: --expect: open none.json: no such file or directory":                     {"--expect", "none.json"},
		"launcher: --weight -1: allowed are 1 to 262144, and 0 for as long as a copy takes": {"--weight", "-1"},
	} {
		out := run(t, dir, "launcher", append([]string{"probe"}, args...)...)
		if out.code != 1 || out.stderr != want+"\n" || out.stdout != "" {
			t.Errorf("%v: exit code %d, %q\nwant %q", args, out.code, out.stderr, want)
		}
	}
}

// Overlapped chunks of an array give what the CPU computes. GPU 2 has no peers, and page-locked memory is short.
func TestProbeOnFakeGPUs(t *testing.T) {
	t.Parallel()
	env := probeGPUs(t, "-DPEERS=1", "-DWITHOUT_PEERS=12", "-DLOCKABLE=8192ul")
	dir := t.TempDir()
	out := runWith(t, env, dir, "launcher", "probe", "devices", "copies", "peers", "overlap", "-np", "2", "--json",
		"--pictures", filepath.Join(dir, "pictures"), "-q")
	p := parseProbe(t, out)
	if out.code != 0 || out.stderr != "" {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stderr, out.stdout)
	}
	var overlap, peers []probe.Table
	if err := errors.Join(json.Unmarshal(p.Overlap[0].Data, &overlap),
		json.Unmarshal(p.Peers[0].Data, &peers)); err != nil {
		t.Fatal(err)
	}
	if len(overlap) != 2 || len(overlap[0].Rows) != 3 || overlap[0].Rows[0][1] != float64(4*(40<<10/4-5)) ||
		len(overlap[1].Rows) != 7 || overlap[1].Rows[6][1] != nil || overlap[1].Rows[6][3] == nil {
		t.Errorf("overlap: %+v", overlap)
	}
	if want := "GPU 0: pinned memory, so copies are from pageable memory: 40940 bytes of page-locked host memory: " +
		"cuMemHostAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)"; !strings.HasPrefix(p.Overlap[0].NotRun, want) {
		t.Errorf("overlap: not run: %q", p.Overlap[0].NotRun)
	}
	want := [][]any{{"GPU 0", nil, true, false}, {"GPU 1", true, nil, false}, {"GPU 2", false, false, nil}}
	if len(peers) != 4 || !reflect.DeepEqual(peers[0].Rows, want) {
		t.Errorf("access: %+v, want %v", peers, want)
	}
	lacks := "GPU 2 has no access to the memory of GPU 0; copies go through the host."
	if !slices.ContainsFunc(p.Findings, func(f struct{ Part, Host, Text string }) bool { return f.Text == lacks }) {
		t.Errorf("findings: %v", p.Findings)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "pictures", "probe-*.png"))
	if err != nil || len(pictures) != 2 {
		t.Errorf("pictures: %v, %v", pictures, err)
	}
}

// GPUs that compute nothing are found out, and GPUs without memory, without NVML too.
func TestProbeNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	env := append(fakeCUDA(t, "-DFREE=(256ul<<20)"), "JACOBI_DEVICE_BACKEND=auto")
	out := runWith(t, env, t.TempDir(), "launcher", "probe", "overlap", "sweep", "-np", "1", "--json", "-q")
	p := parseProbe(t, out)
	const wrong = "GPU 0 (Fake 10, 0000:0A:00.0): the result is wrong: value"
	if out.code != 1 || !strings.HasPrefix(p.Overlap[0].Fault, wrong) ||
		!strings.HasPrefix(p.Sweep[0].Fault, "GPU 0 computes another norm than the CPU\n") {
		t.Errorf("exit code %d\n%s", out.code, out.stdout)
	}
	env = append(fakeCUDA(t, "-DFREE=100"), "JACOBI_DEVICE_BACKEND=auto")
	out = runWith(t, env, t.TempDir(), "launcher", "probe", "devices", "copies", "overlap", "-np", "1", "--json", "-q")
	p = parseProbe(t, out)
	if want := "no memory is left on the GPU for a copy of 4.0 KiB"; !strings.Contains(p.Copies[0].NotRun, want) ||
		!strings.Contains(p.Overlap[0].NotRun, "no memory is left on the GPU for an array") || out.code != 0 {
		t.Errorf("exit code %d\n%s", out.code, out.stdout)
	}
	if want := "readings of NVML: NVML is not available: "; !strings.HasPrefix(p.Devices[0].NotRun, want) {
		t.Errorf("devices: not run: %q", p.Devices[0].NotRun)
	}
}
