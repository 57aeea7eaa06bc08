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
	problem := []string{"grid.nx=200", "grid.ny=300", "solver.max_iterations=200"}
	want, _ := solve(t, onRanks(1, problem...)...)
	hostfile := filepath.Join(t.TempDir(), "hosts")
	c.write(hostfile, "a slots=3\nb slots=3 max_slots=4 # as in mpirun\n\nc slots=2\n")
	filled, dealt := []string{"--host", "a:3,b:3,c:2"}, []string{"--hostfile", hostfile, "--map-by", "node"}
	for _, place := range []struct {
		args    []string
		where   string // host by rank
		between string // transport between hosts
		keys    []string
	}{
		{dealt, "abcabcab", "nats", nil},
		{filled, "aaabbbcc", "direct", []string{"halo.transport=direct", "halo.direct.listen=10.77.0.0/24:"}},
		{dealt, "abcabcab", "direct", []string{"halo.transport=direct", "halo.direct.encrypt=always",
			"halo.compress=always"}},
		// Hosts do not reach each other's loopback.
		{filled, "aaabbbcc", "nats", []string{"halo.transport=direct", "halo.direct.listen=127.0.0.1:"}},
	} {
		dir := t.TempDir()
		out := c.run(dir, slices.Concat(onRanks(8, with(problem, place.keys...)...), c.ssh("user"), place.args,
			[]string{"-x", "JACOBI_TEST_MARK=1"})...)
		if out.code != 0 {
			t.Fatalf("%v: exit code %d\n%s%s", place, out.code, out.stdout, out.stderr)
		}
		got, r := answerIn(t, filepath.Join(dir, "out"))
		same(t, got, want, place)
		for rank, on := range r.Ranks {
			if on.Host != place.where[rank:rank+1] {
				t.Errorf("%v: rank %d ran on %s, want %c", place, rank, on.Host, place.where[rank])
			}
			for side, link := range on.Transports {
				want := place.between
				if place.where[link.Neighbour] == place.where[rank] {
					want = "shared memory"
				}
				n, packs := link.Direct, slices.Contains(place.keys, "halo.compress=always")
				if link.Transport != want || packs && n != nil && (n.Packed == 0 || n.Packed >= n.Plain) {
					t.Errorf("%v: rank %d, %s: %s to rank %d (%s), %+v, want %s, and fewer bytes if packed", place,
						rank, side, link.Transport, link.Neighbour, link.Why, n, want)
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
	three := []string{"--host", "a:1,b:2,c:1", "-np", "4", "-v"}
	for _, x := range []struct {
		name   string
		act    func(l *live)
		code   int
		want   string        // a pattern
		within time.Duration // for all processes to end
	}{
		{"interrupt", func(l *live) { c.hidesSecrets(); l.signal(os.Interrupt) }, 130, `(?m)^\[3\] .`, 5 * time.Second},
		{"killed rank", func(*live) { kill(t, c.processes("c", "jacobi-rank")[0]) }, 1,
			"rank 3 on c was killed by SIGKILL", 5 * time.Second},
		{"killed spawner", func(*live) { kill(t, c.processes("b", "launcher")[0]) }, 1,
			`rank [12] on b was lost with its host: `, 5 * time.Second},
		{"killed launcher", func(l *live) { l.signal(os.Kill) }, -1, "", 20 * time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := c.begin(t.TempDir(), three...)
			x.act(l)
			if x.code < 0 { // ranks on other hosts have the output open
				c.leavesNothing(x.within)
			}
			l.ends(x.code, x.want)
			c.leavesNothing(x.within)
		})
	}
}

// hidesSecrets checks that no command line of a run's processes has a secret of the run.
func (c *cluster) hidesSecrets() {
	c.t.Helper()
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.processes("c", "jacobi-rank")[0]))
	if err != nil {
		c.t.Fatal(err)
	}
	m := regexp.MustCompile(`"nats\.url":"tls://jacobi:([^@]{20,})@10\.77\.0\.1:\d+`).FindSubmatch(env)
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
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3)
			l := c.begin(t.TempDir(), "--host", "a:1,b:1,c:1", "-np", "3", "--set", "halo.transport="+transport)
			c.sh("ip", "-n", c.ns("net"), "link", "set", "dev", "c", "down")
			pulled := time.Now()
			l.ends(1, "rank 2 on c was lost with its host: ")
			if took := time.Since(pulled); took > 30*time.Second {
				t.Errorf("the run ended %v after the cable was pulled, want at most 30s", took)
			}
			c.leavesNothing(30 * time.Second)
		})
	}
}

// With checkpoints and free slots on other hosts, a run continues without the host behind a broken link and has the
// same answer.
func TestPulledCableIsSurvivedWithCheckpoints(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	// Rows that travel after each sweep make the run last long enough to lose a host on its way.
	problem := with(long, "solver.max_iterations=4000", "halo.depth=1")
	want, _ := solve(t, onRanks(1, problem...)...)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "checkpoints"), 0o777); err != nil {
		t.Fatal(err)
	}
	l := c.start(dir, slices.Concat(c.ssh("user"), onRanks(3, with(problem, "checkpoint.every=200",
		"checkpoint.dir=checkpoints")...), []string{"--host", "a:2,b:2,c:1", "--map-by", "node", "--max-restarts",
		"1"})...)
	awaitName(t, filepath.Join(dir, "checkpoints"), isCheckpoint, l)
	c.sh("ip", "-n", c.ns("net"), "link", "set", "dev", "c", "down")
	l.ends(0, `rank 2 on c was lost with its host: (?s:.*)restart 1 of 1: on after sweep \d+, from checkpoints\n`)
	got, r := answerIn(t, filepath.Join(dir, "out"))
	if same(t, got, want); r.ResumedAfter == 0 {
		t.Error("the run began again")
	}
	c.leavesNothing(30 * time.Second)
}

// Hosts that cannot start ranks are an error in bounded time, before any rank starts. The error names all of them.
func TestHostsThatDoNotWillAreNamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	other, lonely := t.TempDir(), lonelyLauncher(t)
	build := exec.Command("go", "build", "-tags", "netgo,osusergo", "-ldflags", // programs of another version
		"-s -w -X jacobi/internal/base/version.stamp=other", "-o", other+"/", "jacobi/cmd/launcher")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	user, stranger := c.ssh("user"), c.ssh("stranger")
	for _, x := range []struct {
		name string
		args []string
		want string // a pattern
	}{
		{"refused", append(stranger, "--host", "a,b,c", "-np", "3"), `host b: .*: Permission denied (?s:.*)host c: `},
		{"no server", append(user, "--host", "b,10.77.0.99", "-np", "2"), `host 10\.77\.0\.99: ssh: connect to host `},
		{"no ssh", []string{"--ssh", "no-such-ssh", "--host", "b", "-np", "1"},
			`host b: exec: "no-such-ssh": .*; --ssh says how to start it`},
		{"no launcher", append(user, "--host", "a,b", "-np", "2", "--remote-bin", "/no where"),
			`host b: /no where/launcher cannot be started there \(.*\); --remote-bin names`},
		{"no rank", append(user, "--host", "a,b", "-np", "2", "--remote-bin", lonely),
			`start rank 1 on b: find jacobi-rank: neither beside the launcher in ` + lonely},
		{"other version", append(user, "--host", "a,b", "-np", "2", "--remote-bin", other),
			`host b: ` + other + `/launcher is of version other there, and of version .* here`},
		{"one machine twice", append(user, "--host", "b,10.77.0.2", "-np", "2"),
			`hosts b and 10\.77\.0\.2 are one machine: give it one name`},
		{"this machine twice", append(user, "--host", "a,localhost", "-np", "2"),
			`hosts a and localhost are one machine`},
		{"no memory there", append(user, "--host", "b", "-np", "1", "--set", "grid.nx=300000", "--set",
			"grid.ny=300000", "--set", "output.field="),
			`start rank 0 on b: grid\.nx 300000, grid\.ny 300000: memory: `},
		{"no GPU there", append(user, "--host", "b", "-np", "1", "--set", "device.backend=cuda"),
			`start rank 0 on b: device.backend "cuda": `},
	} {
		t.Run(x.name, func(t *testing.T) {
			out := c.run(t.TempDir(), append(set("grid.nx=64", "grid.ny=80"), x.args...)...)
			if out.code != 1 || !regexp.MustCompile(x.want).MatchString(out.stderr) || out.took > 20*time.Second {
				t.Errorf("exit code %d after %v\n%swant 1 and %q", out.code, out.took, out.stderr, x.want)
			}
			c.leavesNothing(5 * time.Second)
		})
	}
}
