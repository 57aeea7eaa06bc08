package e2e

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// startAgent starts an agent in dir and waits until it offers its slots.
func startAgent(t *testing.T, dir string, u *url.URL, args ...string) *live {
	t.Helper()
	return startAgentBy(t, nil, dir, u, args...)
}

// startAgentBy is startAgent by way of another command.
func startAgentBy(t *testing.T, by []string, dir string, u *url.URL, args ...string) *live {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*limit)
	cmd := command(ctx, dir, "launcher", append([]string{"node"}, args...)...)
	cmd.Env = append(cmd.Env, "JACOBI_NATS_URL="+u.String())
	if by != nil {
		through(t, cmd, by...)
	}
	a := startCommand(t, cmd)
	t.Cleanup(func() {
		cancel() // kills
		_ = cmd.Wait()
	})
	a.waitFor("node agent")
	return a
}

// onNodes returns the arguments of a launcher that uses agents.
func onNodes(u *url.URL, args ...string) []string {
	return append(args, "--nodes", "--set", "nats.url="+u.String())
}

// Ranks of agents have the answer of one local rank. The server's services include the agents.
func TestNodesGiveTheSameAnswer(t *testing.T) {
	args := set("grid.nx=64", "grid.ny=96", "solver.max_iterations=60", "halo.depth=2", "halo.transport=nats")
	want, _ := solve(t, append(args, "-np", "1")...)
	u := startServer(t)
	dir := t.TempDir()
	var pids []int
	for range 3 { // in separate directories, as on nodes without a shared file system
		pids = append(pids, startAgent(t, t.TempDir(), u, "--slots", "2").cmd.Process.Pid)
	}
	services(t, u, pids)
	mustRun(t, dir, "launcher", onNodes(u, append(args, "-np", "5", "--map-by", "node")...)...)
	got, _ := answerIn(t, filepath.Join(dir, "out"))
	same(t, got, want, "agents")
	here := func(launcher *exec.Cmd) *exec.Cmd { return launcher }
	studyAndServe(t, here, onNodes(u, "-np", "3", "--map-by", "node")...)
	list := run(t, dir, "launcher", "nodes", "--here", "--set", "nats.url="+u.String())
	if got := regexp.MustCompile(`(?m)^\S+ +\d+ +2 +2 +--slots `).FindAllString(list.stdout, -1); list.code != 0 ||
		len(got) != 3 {
		t.Errorf("launcher nodes: exit code %d\n%s%s", list.code, list.stdout, list.stderr)
	}
}

// services requests all services, as nats micro ls does.
func services(t *testing.T, u *url.URL, pids []int) {
	t.Helper()
	nc, err := nats.Connect(u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	inbox, err := nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("$SRV.INFO.jacobi-node", inbox.Subject, nil); err != nil {
		t.Fatal(err)
	}
	for range pids {
		m, err := inbox.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var info micro.Info
		if err := json.Unmarshal(m.Data, &info); err != nil || info.Name != "jacobi-node" ||
			info.Metadata["slots"] != "2" {
			t.Errorf("service %+v, %v", info, err)
		}
	}
}

// Too few slots and missing agents are reported within --wait. The error says which agents were asked and which
// answered.
func TestTooFewSlots(t *testing.T) {
	t.Parallel()
	u := startServer(t)
	dir := t.TempDir()
	base := set("grid.nx=64", "grid.ny=96", "solver.max_iterations=30")
	for _, c := range []struct {
		agents int
		want   string
	}{
		{0, `launcher: --nodes: 3 ranks need 3 slots, and after 2s there are 0, 3 too few: ` +
			`all agents at nats://[0-9.:]+ were asked; none answered`},
		{1, `launcher: --nodes: 3 ranks need 3 slots, and after 2s there are 2, 1 too few: ` +
			`all agents at nats://[0-9.:]+ were asked; \S+ has 2 of 2 slots free`},
	} {
		for range c.agents {
			startAgent(t, dir, u, "--slots", "2")
		}
		out := run(t, dir, "launcher", onNodes(u, append(base, "-np", "3", "--wait", "2s")...)...)
		if out.code != 1 || !regexp.MustCompile(c.want).MatchString(out.stderr) {
			t.Errorf("%d agents: exit code %d, want a match of %s in\n%s", c.agents, out.code, c.want, out.stderr)
		}
	}
	// The launcher uses an agent that starts while it waits.
	started := make(chan *live, 1)
	go func() { started <- startAgent(t, dir, u, "--slots", "2") }()
	mustRun(t, dir, "launcher", onNodes(u, append(base, "-np", "3")...)...)
	<-started
	run(t, dir, "launcher", append(base, "--nodes")...).fails(t, 1, "--nodes: -np has to say how many ranks there are")
}

// A second run uses the remaining slots. A run that waits for more says so, and starts when the run that has them ends.
func TestSlotsAreTakenOnce(t *testing.T) {
	t.Parallel()
	u := startServer(t)
	dir := t.TempDir()
	a := startAgent(t, dir, u, "--slots", "3")
	first := begin(t, dir, onNodes(u, "-np", "2")...)
	first.yield()
	small := set("grid.nx=64", "grid.ny=96", "solver.max_iterations=30")
	waits := startLive(t, t.TempDir(), onNodes(u, append(small, "-np", "3", "--wait", "90s")...)...)
	waits.waitFor(`^launcher: waiting up to 1m30s for 3 slots: \S+ has 1 of 3 slots free$`)
	mustRun(t, t.TempDir(), "launcher", onNodes(u, append(small, "-np", "1")...)...)
	first.signal(os.Interrupt)
	first.ends(130, "INTERRUPTED")
	first.leavesNothing()
	a.waitFor("ranks ended.*\"ranks\": 2")
	ended := time.Now()
	if waits.ends(0); time.Since(ended) > 45*time.Second {
		t.Errorf("the run that waited ended %v after the first one", time.Since(ended))
	}
}

// An agent ends the ranks of a killed launcher after its timeout.
func TestAgentEndsRanksOfAKilledLauncher(t *testing.T) {
	t.Parallel()
	u := startServer(t)
	dir := t.TempDir()
	a := startAgent(t, dir, u, "--slots", "2")
	l := begin(t, dir, onNodes(u, "-np", "2")...)
	l.yield()
	l.allRanks(2)
	l.signal(os.Kill)
	a.waitFor(`ranks ended.*the launcher: nothing was heard of it for 12s`)
	l.ends(-1)
	if pids := l.ranks(); len(pids) > 0 {
		t.Errorf("ranks still run: %v", pids)
	}
}

// An agent that gets a signal ends its ranks, and the launcher says so. The launcher detects a killed agent in bounded
// time.
func TestAgentThatEndsEndsTheRun(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		want   string
	}{
		{syscall.SIGTERM,
			`rank [01] on \S+ (was lost with its host: its agent says: the agent on \S+ ends: terminated)`},
		{syscall.SIGKILL, `rank [01] on \S+ (was lost with its host: nothing was heard of it for 12s|failed: .*)`},
	} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			u := startServer(t)
			dir := t.TempDir()
			first, second := startAgent(t, dir, u, "--slots", "1"), startAgent(t, dir, u, "--slots", "1")
			l := begin(t, dir, onNodes(u, "-np", "2", "--set", "halo.transport=nats", "--set", "halo.timeout=20s")...)
			first.signal(c.signal)
			l.ends(1, c.want)
			second.waitFor("ranks ended")
			l.leavesNothing()
		})
	}
}
