package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap/zaptest"

	"jacobi/configs"
	"jacobi/internal/launch"
	"jacobi/internal/roster"
	"jacobi/internal/roster/rostertest"
	"jacobi/internal/version"
	"jacobi/internal/wire"
)

const (
	secret = "what agents and launchers share"
	long   = 30 * time.Second
)

func quiet(string) {}

func join(t *testing.T, s *rostertest.Server, secret string) *wire.Conn {
	t.Helper()
	n := configs.NATS{URL: s.URL()}
	if secret != "" {
		n.SecretFile = configs.Inline(secret)
	}
	c, err := wire.Connect(t.Context(), wire.Options{Server: n, RunID: Group, Timeout: long})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// startAgent runs an agent whose ranks are the shell script, and returns how to end it.
func startAgent(t *testing.T, conn *wire.Conn, script string) (end func(error) error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rank")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Conn: conn, Server: configs.NATS{URL: "nats://own"}, Host: "node", Slots: 3,
			What: "3 cores", Path: path, Log: zaptest.NewLogger(t)})
	}()
	var once sync.Once
	var err error
	end = func(cause error) error {
		once.Do(func() { cancel(cause); err = <-done })
		return err
	}
	t.Cleanup(func() { _ = end(nil) })
	return end
}

// ranks are what becomes of ranks.
type ranks struct {
	lines chan string
	exits chan launch.Exit
}

func start(t *testing.T, h launch.Host, n int, env ...string) (*ranks, error) {
	t.Helper()
	spec := launch.Spec{Path: "/bin/false", Env: env}
	for r := range n {
		spec.Ranks = append(spec.Ranks, roster.Identity{RunID: "run-" + fmt.Sprint(n), Rank: r, Size: n, LocalRank: r,
			LocalSize: n})
	}
	out := &ranks{make(chan string, 100), make(chan launch.Exit, n)}
	err := h.Start(t.Context(), spec, launch.Sink{
		Line: func(rank int, s launch.Stream, line []byte) { out.lines <- fmt.Sprintf("%d %v %s", rank, s, line) },
		Exit: func(e launch.Exit) { out.exits <- e },
	})
	return out, err
}

func host(t *testing.T, conn *wire.Conn) launch.Host {
	t.Helper()
	offers, err := Find(t.Context(), conn, 1, long, quiet)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := Hosts(conn, offers, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	h := hosts["node"]
	if len(hosts) != 1 || h == nil {
		t.Fatalf("hosts %v, want node", hosts)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func TestRanksOfAnAgent(t *testing.T) {
	for _, shared := range []string{"", secret} {
		s := rostertest.Start(t, 0)
		startAgent(t, join(t, s, shared), `echo "rank $JACOBI_RANK of $JACOBI_SIZE with $JACOBI_GRID_NX at `+
			`$JACOBI_NATS_URL, $JACOBI_NATS_SECRET_FILE"; exit $((JACOBI_RANK * 7))`)
		conn := join(t, s, shared)
		h := host(t, conn)
		r, err := start(t, h, 2, "JACOBI_GRID_NX=12", "JACOBI_NATS_URL=nats://theirs",
			"JACOBI_NATS_SECRET_FILE=inline:of the run")
		if err != nil {
			t.Fatal(err)
		}
		codes := [2]int{}
		for range codes {
			e := <-r.exits
			codes[e.Rank] = e.Code
		}
		got := map[string]bool{<-r.lines: true, <-r.lines: true}
		for rank := range 2 {
			if want := fmt.Sprintf("%d stdout rank %d of 2 with 12 at nats://own, inline:of the run", rank,
				rank); !got[want] {
				t.Errorf("lines %v, want %q", got, want)
			}
		}
		if codes != [2]int{0, 7} {
			t.Errorf("exit codes %v, want 0 and 7", codes)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAgentRefuses(t *testing.T) {
	s := rostertest.Start(t, 0)
	end := startAgent(t, join(t, s, ""), "exec sleep 600")
	conn := join(t, s, "")
	for _, c := range []struct {
		ranks int
		env   string
		want  string
	}{
		{4, "JACOBI_GRID_NX=1", "start ranks 0-3 on node: 4 slots are wanted, and 3 of 3 are free: none is taken"},
		{1, "LD_PRELOAD=/evil.so", "start rank 0 on node: variable LD_PRELOAD: " +
			"an agent takes the keys of a run file and CUDA_DEVICE_ORDER, CUDA_FORCE_PTX_JIT, " +
			"CUDA_LAUNCH_BLOCKING, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, " +
			"CUDA_VISIBLE_DEVICES, GOGC, GOMAXPROCS, GOMEMLIMIT alone"},
	} {
		if _, err := start(t, host(t, conn), c.ranks, c.env); err == nil || err.Error() != c.want {
			t.Errorf("error %v\nwant %s", err, c.want)
		}
	}
	h := host(t, conn)
	r, err := start(t, h, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := start(t, host(t, conn), 3); err == nil ||
		err.Error() != "start ranks 0-2 on node: 3 slots are wanted, and 1 of 3 are free: run run-2 has 2" {
		t.Errorf("error %v", err)
	}
	// The end of the agent is that of its ranks, and is told.
	if err := end(errors.New("the agent ends: power saving")); err == nil ||
		err.Error() != "the agent ends: power saving" {
		t.Errorf("the agent ended with %v", err)
	}
	for range 2 {
		if e := <-r.exits; e.Lost != "its agent says: the agent ends: power saving" {
			t.Errorf("exit %+v", e)
		}
	}
}

func TestCloseEndsTheRanks(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, ""), `trap "" TERM; echo ready; while :; do sleep 0.1; done`)
	conn := join(t, s, "")
	h := host(t, conn)
	r, err := start(t, h, 3)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-r.lines // the trap is set
	}
	h.Signal(syscall.SIGTERM)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Find(t.Context(), conn, 3, long, quiet); err != nil { // all slots are free again
		t.Error(err)
	}
}

// An agent with a secret and launchers without it, or with another one, do not know each other, and neither does
// anybody learn the run's secrets.
func TestSecretsOfAgents(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, secret), `echo "$JACOBI_NATS_SECRET_FILE"`)
	for _, other := range []string{"", "another secret, of others"} {
		_, err := Find(t.Context(), join(t, s, other), 1, 300*time.Millisecond, quiet)
		want := "1 ranks need as many slots, and after 300ms there are 0, 1 too few: all agents at " + s.URL() +
			" were asked; none answered"
		if err == nil || err.Error() != want {
			t.Errorf("error %v\nwant %s", err, want)
		}
	}
	// A false agent offers many slots to all.
	stranger := s.Dial()
	false100, err := json.Marshal(Offer{ID: "x", Host: "false", Version: version.String(), Slots: 100, Free: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Subscribe(offerSubject, func(m *nats.Msg) { _ = m.Respond(false100) }); err != nil {
		t.Fatal(err)
	}
	_, err = Find(t.Context(), join(t, s, secret), 4, 700*time.Millisecond, quiet)
	if err == nil || !strings.Contains(err.Error(), "there are 3, 1 too few: ") ||
		!strings.Contains(err.Error(), " answers were not sealed with the secret of nats.secret_file") {
		t.Errorf("error %v", err)
	}
}

// Whoever recorded a launch can neither read it nor play it back.
func TestRecordedLaunchIsWorthless(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, ""), `echo "$JACOBI_NATS_SECRET_FILE"`)
	stranger := s.Dial()
	tape, err := stranger.SubscribeSync(prefix + ".>")
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	conn := join(t, s, "")
	h := host(t, conn)
	r, err := start(t, h, 1, "JACOBI_NATS_SECRET_FILE=inline:of the run")
	if err != nil {
		t.Fatal(err)
	}
	if line := <-r.lines; line != "0 stdout inline:of the run" {
		t.Errorf("the rank got %q", line)
	}
	<-r.exits
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	var recorded []*nats.Msg
	for {
		m, err := tape.NextMsg(time.Millisecond)
		if err != nil {
			break
		}
		if bytes.Contains(m.Data, []byte("of the run")) || bytes.Contains(m.Data, []byte("SECRET")) {
			t.Errorf("a stranger reads %q", m.Data)
		}
		recorded = append(recorded, m)
	}
	if len(recorded) < 4 {
		t.Fatalf("%d messages were recorded", len(recorded))
	}
	again, err := stranger.SubscribeSync(prefix + ".*.*.news")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range recorded {
		if strings.HasSuffix(m.Subject, ".orders") {
			if err := stranger.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The agent takes messages in turn: once it answers this, it has taken all of those.
	if _, err := start(t, host(t, conn), 4); err == nil {
		t.Fatal("4 ranks on 3 slots")
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	id := strings.Split(recorded[len(recorded)-1].Subject, ".")[3]
	for {
		m, err := again.NextMsg(time.Millisecond)
		if err != nil {
			break
		}
		if strings.Contains(m.Subject, id) && len(m.Data) > 150 { // more than a goodbye
			t.Errorf("the agent answers %d bytes to what was played back", len(m.Data))
		}
	}
}

// Agents of another version are left out, by name.
func TestOtherVersion(t *testing.T) {
	s := rostertest.Start(t, 0)
	old, err := json.Marshal(Offer{ID: "x", Host: "old-node", Version: "v0.0.1", Slots: 8, Free: 8})
	if err != nil {
		t.Fatal(err)
	}
	other := s.Dial()
	if _, err := other.Subscribe(offerSubject, func(m *nats.Msg) { _ = m.Respond(old) }); err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	_, err = Find(t.Context(), join(t, s, ""), 2, 300*time.Millisecond, quiet)
	want := fmt.Sprintf("2 ranks need as many slots, and after 300ms there are 0, 2 too few: all agents at %s "+
		"were asked; old-node is left out: its version is v0.0.1, the launcher's %s", s.URL(), version.String())
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
}

// A server that does not permit what an agent needs ends it with a word.
func TestAgentWithoutPermission(t *testing.T) {
	own := &server.SubjectPermission{Allow: []string{"other.>", "jacobi.nodes.inbox.>"}}
	s := rostertest.StartWith(t, server.Options{Users: []*server.User{{Username: "u", Password: "p",
		Permissions: &server.Permissions{Publish: own, Subscribe: own}}}})
	conn, err := wire.Connect(t.Context(), wire.Options{Server: configs.NATS{URL: s.URL(), User: "u",
		PasswordFile: configs.Inline("p")}, RunID: Group, Timeout: long})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	err = Run(ctx, Options{Conn: conn, Host: "node", Slots: 1, Log: zaptest.NewLogger(t)})
	if err == nil || !strings.Contains(err.Error(),
		"does not hear what it says itself: its user needs the subjects jacobi.> ") {
		t.Errorf("error %v", err)
	}
}

// A name tells agents on hosts of one name apart by their ids, however much these share.
func TestNamesOfOneHost(t *testing.T) {
	slots := Slots([]Offer{
		{ID: "00112233445566", Host: "a", PID: 1, Free: 2},
		{ID: "11223344556677", Host: "b", PID: 1, Free: 3},
		{ID: "11223344556688", Host: "b", PID: 1, Free: 4},
		{ID: "22", Host: "b", PID: 1, Free: 5},
	})
	if want := "[{a 2} {b/1122334455667 3} {b/1122334455668 4} {b/22 5}]"; fmt.Sprint(slots) != want {
		t.Errorf("slots %v, want %s", slots, want)
	}
}

// Two agents with one host name and one process number, as in containers, each get their share of the ranks.
func TestTwoAgentsThatLookAlike(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, ""), "exit 0")
	startAgent(t, join(t, s, ""), "exit 0")
	conn := join(t, s, "")
	offers, err := Find(t.Context(), conn, 6, long, quiet)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := Hosts(conn, offers, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range hosts {
		t.Cleanup(func() { _ = h.Close() })
		r, err := start(t, h, 3)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for range 3 {
			if e := <-r.exits; e.Code != 0 || e.Lost != "" {
				t.Errorf("%s: exit %+v", name, e)
			}
		}
	}
	if len(hosts) != 2 {
		t.Errorf("%d hosts, want 2", len(hosts))
	}
}

// A launcher that waits for slots says what there is, at every change, and goes on as soon as a known agent has enough.
func TestFindNoticesSlotsThatGetFree(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, ""), "exec sleep 600")
	conn := join(t, s, "")
	var hosts []launch.Host
	for range 2 {
		hosts = append(hosts, host(t, conn))
		if _, err := start(t, hosts[len(hosts)-1], 1); err != nil {
			t.Fatal(err)
		}
	}
	said := make(chan string, 100)
	found := make(chan error, 1)
	begin := time.Now()
	go func() {
		_, err := Find(t.Context(), conn, 3, long, func(text string) { said <- text })
		found <- err
	}()
	for i, want := range []string{"node has 1 of 3 slots free", "node has 2 of 3 slots free"} {
		hear(t, said, want)
		if err := hosts[i].Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-found; err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > long/2 || len(said) > 0 {
		t.Errorf("found after %v, and %d more words; want the moment that there were enough, and none", took, len(said))
	}
}

// hear waits until want is said. On a busy machine, that nobody has answered may be said before.
func hear(t *testing.T, said <-chan string, want string) {
	t.Helper()
	late := time.After(long)
	for {
		select {
		case got := <-said:
			if got == want {
				return
			}
			if got != "none answered" {
				t.Errorf("said %q, want %q", got, want)
			}
		case <-late:
			t.Fatalf("%q was not said within %v", want, long)
		}
	}
}

// An agent that does not answer any more offers nothing.
func TestFindForgetsAnAgentThatIsGone(t *testing.T) {
	s := rostertest.Start(t, 0)
	end := startAgent(t, join(t, s, ""), "exit 0")
	said := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	found := make(chan error, 1)
	conn := join(t, s, "")
	go func() {
		_, err := Find(ctx, conn, 4, long, func(text string) { said <- text })
		found <- err
	}()
	hear(t, said, "node has 3 of 3 slots free")
	_ = end(errors.New("over"))
	hear(t, said, "none answered")
	cancel()
	if err := <-found; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
