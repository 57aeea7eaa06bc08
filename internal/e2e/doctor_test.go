package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"jacobi/internal/base/proctest"
)

// finding is a fault or a warning of launcher doctor.
type finding struct{ What, Do string }

// diagnosis is the part of the output of launcher doctor --json that tests check.
type diagnosis struct {
	Starts           bool
	Faults, Warnings []finding
	Nodes            []struct {
		Host, Reached, Version string
		Ranks                  []int
		Cores                  int
		Memory                 int64   `json:"memory_available_bytes"`
		RoundTrip              float64 `json:"nats_round_trip_seconds"`
		Clock                  *struct {
			Ahead float64 `json:"ahead_seconds"`
			Error float64 `json:"error_seconds"`
		}
	}
	Ranks []struct {
		Report rankReport
		Access map[string]bool `json:"peer_access"`
	}
}

// parseDiagnosis parses the output of doctor and checks that the exit code agrees with it.
func parseDiagnosis(t *testing.T, out outcome) (d diagnosis) {
	t.Helper()
	if err := json.Unmarshal([]byte(out.stdout), &d); err != nil {
		t.Fatalf("%v\n%s%s", err, out.stdout, out.stderr)
	}
	if d.Starts != (out.code == 0) || d.Starts != (len(d.Faults) == 0) {
		t.Errorf("exit code %d, starts %v, faults %v", out.code, d.Starts, d.Faults)
	}
	return d
}

// foretells checks that the diagnosis of each rank agrees with the report of the run in dir.
func (d diagnosis) foretells(t *testing.T, dir string) {
	t.Helper()
	r := readReport(t, dir)
	if len(d.Ranks) != len(r.Ranks) {
		t.Fatalf("%d ranks were examined, %d ran", len(d.Ranks), len(r.Ranks))
	}
	for i, did := range r.Ranks {
		said := d.Ranks[i].Report
		did.PID, did.RSSBytes, said.PID, said.RSSBytes = 0, 0, 0, 0
		for side, link := range did.Transports { // no rows travel in doctor
			link.Traffic = nil
			did.Transports[side] = link
		}
		if len(said.Transports) == 0 || !reflect.DeepEqual(said, did) {
			t.Errorf("rank %d: doctor says\n%+v\nthe run\n%+v", i, said, did)
		}
	}
}

// leftNothing checks that doctor has left no file and no rank in dir.
func leftNothing(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
	l := live{t: t, cmd: &exec.Cmd{Dir: dir}}
	if pids := l.ranks(); len(pids) > 0 {
		t.Errorf("ranks still run: %v", pids)
	}
}

// Doctor predicts what a run will do, and leaves nothing behind.
func TestDoctorForetellsTheRun(t *testing.T) {
	for want, keys := range map[string][]string{ // the transport between ranks
		"shared memory": {"checkpoint.every=10m", "checkpoint.dir=new/checkpoints"},
		"nats":          {"halo.transport=nats"},
	} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			args := onRanks(3, with(keys, "grid.nx=64", "grid.ny=96", "solver.max_iterations=20",
				"output.dir=new/out")...)
			d := parseDiagnosis(t, run(t, dir, "launcher", append([]string{"doctor", "--json"}, args...)...))
			leftNothing(t, dir)
			mustRun(t, dir, "launcher", args...)
			d.foretells(t, filepath.Join(dir, "new", "out"))
			for side, link := range d.Ranks[1].Report.Transports {
				if link.Transport != want {
					t.Errorf("rank 1 would use %s at its %s, want %s", link.Transport, side, want)
				}
			}
			if n := d.Nodes; len(n) != 1 || n[0].Reached != "this machine" || len(n[0].Ranks) != 3 || n[0].Cores < 1 ||
				n[0].Memory < 1 || n[0].RoundTrip <= 0 || n[0].Clock != nil {
				t.Errorf("nodes %+v", n)
			}
		})
	}
}

// Ranks without rows are told of, and are no fault.
func TestDoctorWithIdleRanks(t *testing.T) {
	args := set("problem.preset=dirichlet", "solver.method=multigrid", "grid.nx=64", "grid.ny=40")
	out := run(t, t.TempDir(), "launcher", append([]string{"doctor", "-np", "3"}, args...)...)
	for _, want := range []string{"1 of 3 ranks stays idle: with solver.method multigrid, grid.ny 40 has rows for 2",
		"-np 2 does the same", "The run would start."} {
		if out.code != 0 || !strings.Contains(strings.Join(strings.Fields(out.stdout), " "), want) {
			t.Errorf("exit code %d, want %q in\n%s%s", out.code, want, out.stdout, out.stderr)
		}
	}
}

// The text output fits in 100 columns and has all findings.
func TestDoctorForPeople(t *testing.T) {
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(set("grid.nx=64", "grid.ny=96", "device.threads=4096"), "doctor", "-np",
		"2")...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	for _, want := range []string{
		`^2 ranks on \S+: gtc2019, 64 x 96 float32, jacobi\n`, `\n\S+: ranks 0, 1 \(this machine\), version `,
		`NATS\s+round\s+trip\s+\S+s\n`, `/dev/shm\s+\S+\s+\S+\s+available`,
		`\nrank 1: cpu .*, 4096 threads`, `\nranks 0 and 1: shared memory: same node`,
		`\nranks 1 and 0: shared memory: same node`,
		`\noutput.dir out: on \S+, 3.9 MiB needed, \S+ \S+ available\n`,
		`\nwarning: \S+: 8192 threads of ranks 0, 1 share \d+ cores\n  to do: start fewer ranks there, or set ` +
			`device.threads\n`, `\nThe run would start.\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.stdout) {
			t.Errorf("no match of %s in\n%s", want, out.stdout)
		}
	}
	for line := range strings.Lines(out.stdout) {
		if utf8.RuneCountInString(line) > 101 {
			t.Errorf("longer than 100 columns: %s", line)
		}
	}
	leftNothing(t, dir)
}

// lonelyLauncher returns a directory that has a launcher without jacobi-rank.
func lonelyLauncher(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "launcher"), []byte(readText(t, bin, "launcher")), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Doctor names everything that would keep a run from starting, as far as it can be found at once, and says what to do.
// What each check finds is proven where runs are refused (TestBadInputIsRefused).
func TestDoctorNamesFaults(t *testing.T) {
	u := startServer(t)
	wrong := *u
	wrong.User = url.UserPassword(u.User.Username(), "hunter2")
	taken, free := takenPort(t), fmt.Sprint("127.0.0.1:", proctest.Port(t))
	lonely := lonelyLauncher(t)
	for _, c := range []struct {
		name     string
		launcher string
		args     []string
		want     []string // one pattern per fault
	}{
		{"no rank", filepath.Join(lonely, "launcher"), nil,
			[]string{`find jacobi-rank: neither beside the launcher in ` + lonely + ` nor on PATH`}},
		{"expressions and others", "launcher",
			set("problem.left=sinn(x)", "problem.right=1/(", "output.dir=/proc/none", "nats.url=nats://127.0.0.1:1",
				"checkpoint.resume=nowhere"),
			[]string{`problem\.left "sinn\(x\)": column 1: `, `problem\.right "1/\(": column 4: `,
				`output\.dir "/proc/none": cannot be created`, `checkpoint\.resume "nowhere": `,
				`nats\.url: connect to the NATS server at nats://127\.0\.0\.1:1: connection refused`}},
		{"an expression and memory", "launcher", set("problem.left=sinn(x)", "grid.nx=4000000", "grid.ny=4000000",
			"output.field="),
			[]string{`problem\.left "sinn\(x\)": column 1: `, `grid\.nx 4000000, grid\.ny 4000000: memory: \S+ GiB `}},
		{"a key, an expression and a directory", "launcher", set("device.backend=gpu", "problem.left=sinn(x)",
			"output.dir=/proc/none"),
			[]string{`device\.backend "gpu": allowed are auto, cpu and cuda`, `problem\.left "sinn\(x\)"`,
				`output\.dir "/proc/none": cannot be created`}},
		{"slots and an expression", "launcher", []string{"-np", "3", "--host", "a:1,b:1", "--set",
			"problem.left=sinn(x)"},
			[]string{`-np 3 ranks need 3 slots, and there are 2: a 1, b 1`, `problem\.left "sinn\(x\)": column 1: `}},
		{"password", "launcher", set("nats.url=" + wrong.String()),
			[]string{`nats\.url: connect to the NATS server at nats://\S+: (?i).*(authorization|credentials)`}},
		{"ports", "launcher", set("metrics.listen="+taken, "view.listen="+taken),
			[]string{`metrics\.listen "` + taken + `": bind: address already in use$`,
				`view\.listen "` + taken + `": bind: address already in use$`}},
		{"one port for both", "launcher", set("metrics.listen="+free, "view.listen="+free),
			[]string{`view\.listen "` + free + `": bind: address already in use$`}},
		{"an address and a key", "launcher", set("metrics.listen=192.0.2.1:9464", "grid.nx=1"),
			[]string{`grid\.nx 1: `, `metrics\.listen "192\.0\.2\.1:9464": bind: cannot assign requested address$`}},
		{"no agents", "launcher", append(set("nats.url="+u.String()), "-np", "4", "--nodes", "--wait", "200ms"),
			[]string{`--nodes: 4 ranks .* there are 0, 4 too few: .*none answered`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // one waits 5 s for a server
			dir := t.TempDir()
			out := run(t, dir, c.launcher, slices.Concat([]string{"doctor", "--json"}, set("grid.nx=64", "grid.ny=96"),
				c.args)...)
			checkFaults(t, parseDiagnosis(t, out), c.want...)
			if out.code != 1 || strings.Contains(out.stdout+out.stderr, "hunter2") {
				t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
			}
			leftNothing(t, dir)
		})
	}
}

// checkFaults compares the faults of a diagnosis with patterns.
func checkFaults(t *testing.T, d diagnosis, want ...string) {
	t.Helper()
	if len(d.Faults) != len(want) {
		t.Errorf("%d faults, want %d: %+v", len(d.Faults), len(want), d.Faults)
		return
	}
	for i, w := range want {
		if f := d.Faults[i]; !regexp.MustCompile("^(?:"+w+")").MatchString(f.What) || f.Do == "" {
			t.Errorf("fault %+v, want a match of %s, and what to do", f, w)
		}
	}
}

// A read-only file system is a fault even for root, who may write regardless of permissions.
func TestDoctorOnAReadOnlyFileSystem(t *testing.T) {
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: %s: no file system of its own to mount: %v %s", t.Name(), err, out)
	}
	dir := t.TempDir()
	cmd := command(t.Context(), dir, "launcher", append(
		set("grid.nx=64", "grid.ny=96", "output.dir=.", "checkpoint.every=10m", "checkpoint.dir=."), "doctor",
		"--json")...)
	cmd = through(t, cmd, "unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o ro none "$PWD" && cd "$PWD" && exec "$0" "$@"`)
	d := parseDiagnosis(t, finish(t, t.Context(), cmd))
	checkFaults(t, d, `output\.dir "\.": cannot be written: .*read-only file system`,
		`checkpoint\.dir "\.": cannot be written: .*read-only file system`)
}

// Doctor examines agents like other nodes, and then releases their slots.
func TestDoctorOfAgents(t *testing.T) {
	u := startServer(t)
	dir := t.TempDir()
	for range 2 {
		startAgent(t, dir, u, "--slots", "2")
	}
	args := onRanks(4, "grid.nx=64", "grid.ny=96", "solver.max_iterations=20")
	d := parseDiagnosis(t, run(t, dir, "launcher", onNodes(u, append(args, "doctor", "--json")...)...))
	leftNothing(t, dir)
	if len(d.Nodes) != 2 || d.Nodes[0].Reached != "agent" || d.Nodes[1].Reached != "agent" || d.Nodes[0].Clock != nil ||
		d.Nodes[1].Clock == nil {
		t.Errorf("nodes %+v", d.Nodes)
	}
	mustRun(t, dir, "launcher", onNodes(u, args...)...)
	d.foretells(t, filepath.Join(dir, "out"))
}

// Doctor lists GPUs by UUID and warns of ranks that share one.
func TestDoctorOfGPUs(t *testing.T) {
	dir, env := t.TempDir(), fakeCUDA(t)
	args := slices.Concat(onGPUs, onRanks(5, "solver.tolerance=1e-3"))
	d := parseDiagnosis(t, runWith(t, env, dir, "launcher", append(args, "doctor", "--json")...))
	leftNothing(t, dir)
	if !d.Starts || !slices.ContainsFunc(d.Warnings, func(f finding) bool {
		return strings.HasPrefix(f.What, "ranks 0, 4 share one GPU, "+uuid(0))
	}) {
		t.Errorf("starts %v, faults %v, warnings %v, want one of a shared GPU", d.Starts, d.Faults, d.Warnings)
	}
	for i, r := range d.Ranks {
		_, own := r.Access[uuid(i%4)]
		if r.Report.GPU.UUID != uuid(i%4) || len(r.Access) != 3 || own {
			t.Errorf("rank %d: %+v, access to %v", i, r.Report.GPU, r.Access)
		}
	}
	runWith(t, env, dir, "launcher", args...).fails(t, 0, "")
	d.foretells(t, filepath.Join(dir, "out"))
}

// On several hosts doctor predicts the links of the run. A checkpoint directory that they do not share is a fault.
func TestDoctorOfHosts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	dir := t.TempDir()
	apart := filepath.Join(dir, "apart")
	if err := os.Mkdir(apart, 0o777); err != nil {
		t.Fatal(err)
	}
	base := slices.Concat(c.ssh("user"), set("grid.nx=64", "grid.ny=96", "solver.max_iterations=20"))
	doctor := func(args ...string) diagnosis {
		t.Helper()
		out := c.run(dir, slices.Concat([]string{"doctor", "--json"}, base, args)...)
		c.leavesNothing(5 * time.Second)
		return parseDiagnosis(t, out)
	}
	where := []string{"--host", "a:1,b:2", "-np", "3"}
	d := doctor(where...)
	if len(d.Nodes) != 2 || d.Nodes[0].Reached != "this machine" || d.Nodes[1].Reached != "ssh" {
		t.Fatalf("faults %v, nodes %+v", d.Faults, d.Nodes)
	}
	for i, n := range d.Nodes {
		if n.Host != string("ab"[i]) || n.Version == "" || (n.Clock == nil) != (i == 0) {
			t.Errorf("node %+v", n)
		}
		if n.Clock != nil && (n.Clock.Ahead > n.Clock.Error || -n.Clock.Ahead > n.Clock.Error) {
			t.Errorf("%s has the clock of a, and doctor says %+v", n.Host, n.Clock)
		}
	}
	c.run(dir, append(base, where...)...).fails(t, 0, "")
	d.foretells(t, filepath.Join(dir, "out"))

	checkFaults(t, doctor("--host", "a,nowhere", "-np", "2", "--set", "output.dir=/proc/none"),
		`output\.dir "/proc/none"`, `host nowhere: ssh: `)

	c.sh("nsenter", "--mount", "--target", fmt.Sprint(c.processes("b", "sshd")[0]), "mount", "-t", "tmpfs", "none",
		apart)
	d = doctor("--host", "a,b", "-np", "2", "--set", "output.dir=apart")
	if len(d.Faults) > 0 || d.Ranks[0].Report.Output != "file" || d.Ranks[1].Report.Output != "nats to a" {
		t.Errorf("faults %v, ranks %+v", d.Faults, d.Ranks)
	}
	d = doctor("--host", "a,b", "-np", "2", "--set", "checkpoint.every=10m", "--set", "checkpoint.dir=apart")
	checkFaults(t, d, `rank [01] on [ab]: checkpoints in apart: rank 1 on b does not see what rank 0 wrote there; `+
		`all nodes have to share the place: `)
	leftNothing(t, apart)
}
