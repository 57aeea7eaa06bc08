package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/cuda/driver/drivertest"
	"jacobi/cuda/emulate/emulatetest"
	"jacobi/internal/tools/probe"
)

// probed is the part of the output of launcher probe --json that tests check.
type probed struct {
	Findings   []struct{ Part, Host, Text string }
	Unexpected []struct{ Bound, Host, Why string }

	Devices, Copies, Peers, NATS, Sweep []struct {
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

// probeGPUs returns the environment in which programs find GPUs that run the probe's kernel. The macros configure the
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
	bounds := `{"copies.host": 1e6, "peers.shared_memory.latency": {"max": 10}, "nats.*.rate": 1000,
		"sweep.cpu.*": 1e-6}`
	writeText(t, bounds, dir, "expect.json")
	out := run(t, dir, "launcher", "probe", "-np", "2", "--json", "--expect", "expect.json", "-q")
	p := parseProbe(t, out)
	if out.code != 0 || out.stderr != "" || len(p.Unexpected) > 0 {
		t.Errorf("exit code %d, unexpected %v\n%s", out.code, p.Unexpected, out.stderr)
	}
	const cpu = `device.backend "cpu"`
	for part, want := range map[string]string{p.Devices[0].NotRun: "no GPU: " + cpu,
		p.Copies[0].NotRun: "copies of GPUs: " + cpu, p.Peers[0].NotRun: "links between GPUs: " + cpu,
		p.Sweep[0].NotRun: "GPUs: " + cpu, p.NATS[0].NotRun: ""} {
		if part != want {
			t.Errorf("not run: %q, want %q", part, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// The flags of a probe say so if there is none.
func TestProbeFlagsOfARank(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  []string
		want string
	}{
		{[]string{"--expect", "x"}, nil, "jacobi-rank: --json and --expect go with --probe\n"},
		{[]string{"--json"}, nil, "jacobi-rank: --json and --expect go with --probe\n"},
		{[]string{"--probe", "copies"}, []string{"JACOBI_RANK=0", "JACOBI_SIZE=1", "JACOBI_LOCAL_RANK=0",
			"JACOBI_LOCAL_SIZE=1", "JACOBI_RUN_ID=r", "JACOBI_NATS_URL=nats://127.0.0.1:1"},
			"--probe is for ranks that a scheduler starts; with a launcher: launcher probe\n"},
	} {
		if out := runWith(t, c.env, t.TempDir(), "jacobi-rank", c.args...); out.code != 1 ||
			!strings.HasSuffix(out.stderr, c.want) {
			t.Errorf("%v: exit code %d\n%s", c.args, out.code, out.stderr)
		}
	}
}

// A figure below its bound, and a bound of a figure that was not measured, make the probe fail. A rank without a
// launcher measures, too.
func TestProbeExpects(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "launcher", "probe", "--expect", "expect.json").fails(t, 1, "launcher: --expect: open expect.json: ")
	bounds := `{"peers.shared_memory.rate": 1e18, "peers.gpu0.gpu1.rate": 1}`
	writeText(t, bounds, dir, "expect.json")
	for _, command := range [][]string{{"launcher", "probe", "peers", "-np", "1", "--expect", "expect.json"},
		{"jacobi-rank", "--probe", "peers", "--expect", "expect.json"}} {
		out := run(t, dir, command[0], command[1:]...)
		for _, want := range []string{"peers.gpu0.gpu1.rate: no part measured it\n", "shared memory between ranks: ",
			"at least 1000000000 GB/s was expected\n", "2 of what was expected did not hold.\n"} {
			if out.code != 1 || !strings.Contains(out.stdout, want) {
				t.Errorf("%v: exit code %d, no %q in\n%s%s", command, out.code, want, out.stdout, out.stderr)
			}
		}
	}
}

// Two GPUs reach each other. GPU 2 has no peers, and page-locked memory is short.
func TestProbeOnFakeGPUs(t *testing.T) {
	t.Parallel()
	env := probeGPUs(t, "-DPEERS=1", "-DWITHOUT_PEERS=12", "-DLOCKABLE=8192ul")
	out := runWith(t, env, t.TempDir(), "launcher", "probe", "devices", "copies", "peers", "-np", "2", "--json", "-q")
	p := parseProbe(t, out)
	if out.code != 0 || out.stderr != "" {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stderr, out.stdout)
	}
	var peers []probe.Table
	if err := json.Unmarshal(p.Peers[0].Data, &peers); err != nil {
		t.Fatal(err)
	}
	if want := "CUDA_ERROR_OUT_OF_MEMORY"; !strings.Contains(p.Copies[0].NotRun, want) {
		t.Errorf("copies: not run: %q", p.Copies[0].NotRun)
	}
	want := [][]any{{"GPU 0", nil, true, false}, {"GPU 1", true, nil, false}, {"GPU 2", false, false, nil}}
	if len(peers) != 4 || !reflect.DeepEqual(peers[0].Rows, want) {
		t.Errorf("access: %+v, want %v", peers, want)
	}
	lacks := "GPU 2 has no access to the memory of GPU 0; copies go through the host."
	if !slices.ContainsFunc(p.Findings, func(f struct{ Part, Host, Text string }) bool { return f.Text == lacks }) {
		t.Errorf("findings: %v", p.Findings)
	}
}

// GPUs that compute nothing are found out, and GPUs without memory, without NVML too.
func TestProbeNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	env := append(fakeCUDA(t, "-DFREE=(256ul<<20)"), "JACOBI_DEVICE_BACKEND=auto")
	out := runWith(t, env, t.TempDir(), "launcher", "probe", "sweep", "-np", "1", "--json", "-q")
	p := parseProbe(t, out)
	if out.code != 1 || !strings.HasPrefix(p.Sweep[0].Fault, "GPU 0 computes another norm than the CPU\n") {
		t.Errorf("exit code %d\n%s", out.code, out.stdout)
	}
	env = append(fakeCUDA(t, "-DFREE=100"), "JACOBI_DEVICE_BACKEND=auto")
	out = runWith(t, env, t.TempDir(), "launcher", "probe", "devices", "copies", "-np", "1", "--json", "-q")
	p = parseProbe(t, out)
	if want := "no memory is left on the GPU for a copy of 4.0 KiB"; !strings.Contains(p.Copies[0].NotRun, want) ||
		out.code != 0 {
		t.Errorf("exit code %d\n%s", out.code, out.stdout)
	}
	if want := "readings of NVML: NVML is not available: "; !strings.HasPrefix(p.Devices[0].NotRun, want) {
		t.Errorf("devices: not run: %q", p.Devices[0].NotRun)
	}
}

// reached returns the nodes that measured the part nats, and those that answered them, in their order.
func reached(t *testing.T, out outcome) (from, to []string) {
	t.Helper()
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	for _, r := range parseProbe(t, out).NATS {
		var links []probe.Table
		if r.Data == nil && r.Fault == "" {
			continue
		}
		if err := json.Unmarshal(r.Data, &links); err != nil {
			t.Errorf("%s: %s %v", r.Host, r.Fault, err)
		}
		from = append(from, r.Host)
		for _, row := range links[0].Rows {
			to = append(to, fmt.Sprint(row[0]))
		}
	}
	return from, to
}

// On several hosts one rank of each measures its own, and the first one the network to all. A soak over hosts compares
// the fields of all ranks.
func TestProbeAndSoakOverHosts(t *testing.T) {
	c := newCluster(t, 2)
	place := append(c.ssh("user"), "--host", "a:2,b:1", "-np", "3")
	out := c.run(t.TempDir(), append([]string{"probe", "nats", "--json", "-q"}, place...)...)
	from, to := reached(t, out)
	if !slices.Equal(from, []string{"a"}) || !slices.Equal(to, []string{"a", "b"}) {
		t.Errorf("%v measured the network to %v, want a to a and b", from, to)
	}
	c.leavesNothing(5 * time.Second)

	mesh := set("grid.nx=130", "grid.ny=97", "solver.max_iterations=60")
	out = c.run(t.TempDir(), slices.Concat([]string{"soak", "--json", "--for", "1ms"}, place, mesh)...)
	events := soakEvents(t, out)
	if out.code != 0 || len(events) < 3 || events[1].Step == nil {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	var hosts []string
	for _, r := range events[1].Step.Ranks {
		hosts = append(hosts, r.Host)
	}
	if end := events[len(events)-1].End; !slices.Equal(hosts, []string{"a", "a", "b"}) || end.Differing != 0 {
		t.Errorf("ranks on %v, %d differ; want a, a, b and 0", hosts, end.Differing)
	}
	c.leavesNothing(5 * time.Second)
}

// A probe and a soak run on the slots of agents.
func TestProbeAndSoakOfAgents(t *testing.T) {
	u := startServer(t)
	startAgent(t, t.TempDir(), u, "--slots", "2")
	measuredItself(t, run(t, t.TempDir(), "launcher", append([]string{"probe", "nats", "--json", "-q"},
		onNodes(u, "-np", "2")...)...))
	out := run(t, t.TempDir(), "launcher", slices.Concat([]string{"soak", "--for", "1ms"}, onNodes(u, "-np", "2"),
		set("grid.nx=64", "grid.ny=96", "solver.max_iterations=4"))...)
	if want := " bits compared, none differs\n"; out.code != 0 || !strings.HasSuffix(out.stdout, want) {
		t.Errorf("exit code %d, want the end %q\n%s%s", out.code, want, out.stdout, out.stderr)
	}
}
