package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// begin starts an endless run on the cluster and waits until it sweeps.
func (c *cluster) begin(dir string, args ...string) *live {
	c.t.Helper()
	l := c.start(dir, append(append(c.ssh("user"), args...), set(endless...)...)...)
	l.waitFor(progress)
	l.yield()
	return l
}

// Eight ranks on three hosts have the answer of one rank, and each pair of neighbours uses the fastest transport that
// it can verify.
func TestThreeHostsGiveTheAnswerOfOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	problem := set("grid.nx=200", "grid.ny=300", "solver.max_iterations=200")
	want, _ := solve(t, append(problem, "-np", "1")...)
	hostfile := filepath.Join(t.TempDir(), "hosts")
	c.write(hostfile, "a slots=3\nb slots=3 max_slots=4 # as in mpirun\n\nc slots=2\n")
	for _, place := range []struct {
		args    []string
		where   string // host by rank
		between string // transport between hosts
	}{
		{[]string{"--host", "a:3,b:3,c:2"}, "aaabbbcc", "nats"},
		{[]string{"--hostfile", hostfile, "--map-by", "node"}, "abcabcab", "nats"},
		{append([]string{"--host", "a:3,b:3,c:2"}, set("halo.transport=direct", "halo.direct.listen=10.77.0.0/24:")...),
			"aaabbbcc", "direct"},
		{append([]string{"--hostfile", hostfile, "--map-by", "node"}, set("halo.transport=direct",
			"halo.direct.encrypt=always", "halo.compress=always")...), "abcabcab", "direct"},
		// Hosts do not reach each other's loopback.
		{append([]string{"--host", "a:3,b:3,c:2"}, set("halo.transport=direct", "halo.direct.listen=127.0.0.1:")...),
			"aaabbbcc", "nats"},
	} {
		dir := t.TempDir()
		args := append(append(append(problem, c.ssh("user")...), place.args...), "-np", "8", "-x", "JACOBI_TEST_MARK=1")
		out := c.run(dir, args...)
		if out.code != 0 {
			t.Fatalf("%v: exit code %d\n%s%s", place.args, out.code, out.stdout, out.stderr)
		}
		r := readReport(t, filepath.Join(dir, "out"))
		history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if got := (answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}); got != want {
			t.Errorf("%v: field %s after %d sweeps, want %s after %d, with the same norms", place.args, got.sha,
				got.sweeps, want.sha, want.sweeps)
		}
		for rank, on := range r.Ranks {
			if on.Host != place.where[rank:rank+1] {
				t.Errorf("%v: rank %d ran on %s, want %c", place.args, rank, on.Host, place.where[rank])
			}
			for side, link := range on.Transports {
				want := place.between
				if place.where[link.Neighbour] == place.where[rank] {
					want = "shared memory"
				}
				if link.Transport != want {
					t.Errorf("%v: rank %d, %s: %s to rank %d (%s), want %s", place.args, rank, side, link.Transport,
						link.Neighbour, link.Why, want)
				}
				packs := link.Direct != nil && slices.Contains(place.args, "halo.compress=always")
				if n := link.Direct; packs && (n.Packed == 0 || n.Packed >= n.Plain) {
					t.Errorf("%v: rank %d, %s: %+v; want fewer bytes packed than plain", place.args, rank, side, n)
				}
			}
		}
		c.leavesNothing(5 * time.Second)
	}
	studyAndServe(t, c.on, append(c.ssh("user"), "--host", "a:1,b:2", "-np", "3")...)
	c.leavesNothing(5 * time.Second)
}

// Output, signals and the naming of failed ranks work on three hosts as on one.
func TestRunOverHostsEndsAsOneOnThisMachine(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	three := []string{"--host", "a:1,b:2,c:1", "-np", "4"}
	t.Run("interrupt", func(t *testing.T) {
		l := c.begin(t.TempDir(), append(three, "-v")...)
		c.hidesSecrets()
		if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		code, output := l.end()
		if code != 130 || !regexp.MustCompile(`(?m)^\[3\] .`).MatchString(output) {
			t.Errorf("exit code %d, want 130, and lines of rank 3 on c\n%s", code, output)
		}
		c.leavesNothing(5 * time.Second)
	})
	t.Run("killed rank", func(t *testing.T) {
		l := c.begin(t.TempDir(), three...)
		if err := syscall.Kill(c.processes("c", "jacobi-rank")[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		code, output := l.end()
		if code != 1 || !strings.Contains(output, "rank 3 on c was killed by SIGKILL") {
			t.Errorf("exit code %d, want 1 and rank 3 on c blamed\n%s", code, output)
		}
		c.leavesNothing(5 * time.Second)
	})
	t.Run("killed spawner", func(t *testing.T) {
		l := c.begin(t.TempDir(), three...)
		if err := syscall.Kill(c.processes("b", "launcher")[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		code, output := l.end()
		if code != 1 || !regexp.MustCompile(`rank [12] on b was lost with its host: `).MatchString(output) {
			t.Errorf("exit code %d, want 1 and a lost host\n%s", code, output)
		}
		c.leavesNothing(5 * time.Second)
	})
	t.Run("killed launcher", func(t *testing.T) {
		l := c.begin(t.TempDir(), three...)
		if err := l.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.leavesNothing(20 * time.Second)
		l.end()
	})
}

// hidesSecrets checks that no command line of a run's processes has a secret of the run.
func (c *cluster) hidesSecrets() {
	c.t.Helper()
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.processes("c", "jacobi-rank")[0]))
	if err != nil {
		c.t.Fatal(err)
	}
	m := regexp.MustCompile(`JACOBI_NATS_URL=tls://jacobi:([^@]{20,})@10\.77\.0\.1:\d+`).FindSubmatch(env)
	if m == nil {
		c.t.Fatal("a rank on another host has no password for the server, or another address than that of the " +
			"launcher's host")
	}
	for _, pid := range c.all() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			c.t.Fatal(err)
		}
		if bytes.Contains(line, m[1]) {
			c.t.Errorf("process %d shows the password on its command line", pid)
		}
	}
}

// A broken network link ends the run on all hosts in bounded time, and the launcher names the lost host.
func TestPulledCableEndsTheRun(t *testing.T) {
	for _, transport := range []string{"auto", "direct"} {
		t.Run(transport, func(t *testing.T) { testPulledCable(t, transport) })
	}
}

func testPulledCable(t *testing.T, transport string) {
	t.Parallel()
	c := newCluster(t, 3)
	l := c.begin(t.TempDir(), "--host", "a:1,b:1,c:1", "-np", "3", "--set", "halo.transport="+transport)
	c.sh("ip", "-n", c.ns("net"), "link", "set", "dev", "c", "down")
	pulled := time.Now()
	code, output := l.end()
	if took := time.Since(pulled); took > 30*time.Second {
		t.Errorf("the run ended %v after the cable was pulled, want at most 30s", took)
	}
	if code != 1 || !strings.Contains(output, "rank 2 on c was lost with its host: ") {
		t.Errorf("exit code %d, want 1 and rank 2 on c lost\n%s", code, output)
	}
	c.leavesNothing(30 * time.Second)
}

// With checkpoints and free slots on other hosts, a run continues without the host behind a broken link and has the
// same answer.
func TestPulledCableIsSurvivedWithCheckpoints(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	// Rows that travel after each sweep make the run last long enough to lose a host on its way.
	problem := set("grid.nx=130", "grid.ny=270", "solver.tolerance=0", "solver.max_iterations=4000", "output.field=",
		"output.picture=", "halo.depth=1")
	want, _ := solve(t, append(problem, "-np", "1")...)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "checkpoints"), 0o777); err != nil {
		t.Fatal(err)
	}
	l := c.start(dir, slices.Concat(c.ssh("user"), problem, set("checkpoint.every=200", "checkpoint.dir=checkpoints"),
		[]string{"--host", "a:2,b:2,c:1", "--map-by", "node", "-np", "3", "--max-restarts", "1"})...)
	awaitName(t, filepath.Join(dir, "checkpoints"), isCheckpoint, l)
	c.sh("ip", "-n", c.ns("net"), "link", "set", "dev", "c", "down")
	code, output := l.end()
	if code != 0 || !regexp.MustCompile(`rank 2 on c was lost with its host: (?s:.*)restart 1 of 1: on after sweep `+
		`\d+, from checkpoints\n`).MatchString(output) {
		t.Fatalf("exit code %d, want 0 and a restart without c\n%s", code, output)
	}
	r := readReport(t, filepath.Join(dir, "out"))
	history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got := (answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}); got != want || r.ResumedAfter == 0 {
		t.Errorf("field %s, resumed after %d sweeps; want %s, with the same norms", got.sha, r.ResumedAfter, want.sha)
	}
	c.leavesNothing(30 * time.Second)
}

// Hosts that cannot start ranks are an error in bounded time, before any rank starts. The error names all of them.
func TestHostsThatDoNotWillAreNamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	other := t.TempDir() // programs of another version
	build := exec.Command("go", "build", "-tags", "netgo,osusergo", "-ldflags",
		"-s -w -X jacobi/internal/base/version.stamp=other", "-o", other+"/", "jacobi/cmd/launcher")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(bin, "launcher"))
	if err != nil {
		t.Fatal(err)
	}
	lonely := t.TempDir() // has a launcher without jacobi-rank
	if err := os.WriteFile(filepath.Join(lonely, "launcher"), data, 0o755); err != nil {
		t.Fatal(err)
	}
	user, stranger := c.ssh("user"), c.ssh("stranger")
	for _, x := range []struct {
		name string
		args []string
		want []string // patterns
	}{
		{"too few slots", append(user, "--host", "a:1,b:1", "-np", "3"),
			[]string{`launcher: -np 3 ranks need 3 slots, and there are 2: a 1, b 1\n`}},
		{"unknown", append(user, "--host", "a,nowhere", "-np", "2"),
			[]string{`host nowhere: ssh: Could not resolve hostname nowhere: `}},
		{"refused", append(stranger, "--host", "a,b,c", "-np", "3"),
			[]string{`host b: .*: Permission denied \(publickey`, `host c: .*: Permission denied`}},
		{"no server", append(user, "--host", "b,10.77.0.99", "-np", "2"),
			[]string{`host 10\.77\.0\.99: ssh: connect to host 10\.77\.0\.99 port 22: `}},
		{"no sshd", append([]string{"--ssh", user[1] + " -p 2222"}, "--host", "b", "-np", "1"),
			[]string{`host b: ssh: connect to host b port 2222: Connection refused`}},
		{"no ssh", []string{"--ssh", "no-such-ssh", "--host", "b", "-np", "1"},
			[]string{`host b: exec: "no-such-ssh": executable file not found in \$PATH; --ssh says how to start it`}},
		{"no launcher", append(user, "--host", "a,b", "-np", "2", "--remote-bin", "/no where"),
			[]string{`host b: /no where/launcher cannot be started there \(.*(No such file or directory|not ` +
				`found)\); --remote-bin names`}},
		{"no rank", append(user, "--host", "a,b", "-np", "2", "--remote-bin", lonely),
			[]string{`start rank 1 on b: find jacobi-rank: neither beside the launcher in ` + lonely + ` nor on PATH`}},
		{"other version", append(user, "--host", "a,b", "-np", "2", "--remote-bin", other),
			[]string{`host b: ` + other + `/launcher is of version other there, and of version .* here`}},
		{"other version, doctor", append([]string{"doctor", "--json", "--host", "a,b", "-np", "2", "--remote-bin",
			other}, user...),
			[]string{`"what": "host b: ` + other + `/launcher is of version other there, and of version .* here"`}},
		{"one machine twice", append(user, "--host", "b,10.77.0.2", "-np", "2"),
			[]string{`hosts b and 10\.77\.0\.2 are one machine: give it one name`}},
		{"this machine twice", append(user, "--host", "a,localhost", "-np", "2"),
			[]string{`hosts a and localhost are one machine`}},
		{"no memory there", append(user, "--host", "b", "-np", "1", "--set", "grid.nx=300000", "--set",
			"grid.ny=300000", "--set", "output.field="),
			[]string{`start rank 0 on b: grid\.nx 300000, grid\.ny 300000: memory: `}},
		{"no GPU there", append(user, "--host", "b", "-np", "1", "--set", "device.backend=cuda"),
			[]string{`start rank 0 on b: device.backend "cuda": `}},
	} {
		t.Run(x.name, func(t *testing.T) {
			out := c.run(t.TempDir(), append(set("grid.nx=64", "grid.ny=80"), x.args...)...)
			if out.code != 1 {
				t.Errorf("exit code %d, want 1", out.code)
			}
			for _, want := range x.want {
				if !regexp.MustCompile(want).MatchString(out.stderr + out.stdout) {
					t.Errorf("output\n%s%s\nwant %q", out.stderr, out.stdout, want)
				}
			}
			if out.took > 20*time.Second {
				t.Errorf("took %v", out.took)
			}
			c.leavesNothing(5 * time.Second)
		})
	}
}
