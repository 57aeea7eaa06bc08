package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap/zaptest"

	"jacobi/configs"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/launch"
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

// startAgent runs an agent whose ranks run the shell script. end ends the agent and returns the error of Run.
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

// ranks receives the output and the exits of ranks.
type ranks struct {
	lines chan string
	exits chan launch.Exit
}

func start(t *testing.T, h launch.Host, n int, env ...string) (*ranks, error) {
	t.Helper()
	spec := launch.Spec{Path: "/bin/false", Env: append([]string{jobOf("nats://theirs")}, env...)}
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

// jobOf returns a job with the secret of its run, as the launcher or the agent passes it on with its own server.
func jobOf(server string) string {
	return configs.EnvJob + `={"keys":{"nats.secret_file":"inline:of the run","nats.url":"` + server +
		`"},"contents":null,"task":{}}`
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
		startAgent(t, join(t, s, shared), `echo "rank $JACOBI_RANK of $JACOBI_SIZE with $JACOBI_JOB"; `+
			`exit $((JACOBI_RANK * 7))`)
		conn := join(t, s, shared)
		h := host(t, conn)
		r, err := start(t, h, 2)
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
			_, own, _ := strings.Cut(jobOf("nats://own"), "=")
			if want := fmt.Sprintf("%d stdout rank %d of 2 with %s", rank, rank, own); !got[want] {
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
		{4, "GOGC=1", "start ranks 0-3 on node: they need 4 slots, and 3 of 3 are free: none is taken"},
		{1, "LD_PRELOAD=/evil.so", "start rank 0 on node: variable LD_PRELOAD: " +
			"an agent takes keys from run files and flags, and of variables only CUDA_DEVICE_MAX_CONNECTIONS, " +
			"CUDA_DEVICE_ORDER, CUDA_FORCE_PTX_JIT, " +
			"CUDA_LAUNCH_BLOCKING, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, " +
			"CUDA_VISIBLE_DEVICES, GOGC, GOMAXPROCS, GOMEMLIMIT"},
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
		err.Error() != "start ranks 0-2 on node: they need 3 slots, and 1 of 3 are free: run run-2 has 2" {
		t.Errorf("error %v", err)
	}
	// The end of the agent ends its ranks, and the launcher gets the reason.
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

// An agent ends with a clear error if the server does not permit the subjects that it needs.
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
		"does not receive its own messages: its user needs the subjects jacobi.> ") {
		t.Errorf("error %v", err)
	}
}

// Variables that make a rank load or run something else are refused.
func TestEnviron(t *testing.T) {
	own := configs.NATS{URL: "nats://own", SecretFile: "own"}
	for _, v := range []string{
		"CUDA_INJECTION64_PATH=/evil.so", "CUDA_CACHE_PATH=/evil", "CUDA_MPS_PIPE_DIRECTORY=/evil", "CUDA_VISIBLE=0",
		"NVIDIA_TF32_OVERRIDE=1", "GODEBUG=x", "GOTRACEBACK=crash", "LD_PRELOAD=/evil.so", "LD_LIBRARY_PATH=/evil",
		"JACOBI_RANK=7", "JACOBI_GRID_NX=5",
		"JACOBI_RUN_ID=other", "JACOBI_LAUNCHED_BY=slurm", "JACOBI_GRID=1", "PATH=/evil", "=", "",
	} {
		name, _, _ := strings.Cut(v, "=")
		_, err := environ([]string{configs.EnvJob + "={}", v}, own)
		want := "variable " + name + ": an agent takes keys from run files and flags, and of variables only "
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v", v, err)
		}
	}
	theirs := configs.Start{Planned: configs.Planned{Config: configs.Default()}, Task: configs.Task{Examine: true}}
	theirs.NATS = configs.NATS{URL: "nats://launcher", CA: "ca", Creds: "/etc/shadow", SecretFile: "inline:run"}
	theirs.Grid.NX = 99
	job, err := theirs.Variable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := environ([]string{job, "CUDA_VISIBLE_DEVICES=1"}, own)
	if err != nil || len(env) != 2 || env[0] != "CUDA_VISIBLE_DEVICES=1" {
		t.Fatalf("%q, %v", env, err)
	}
	s, err := configs.FromLauncher(env)
	want := configs.NATS{URL: "nats://own", SecretFile: "inline:run"}
	if err != nil || s.NATS != want || !s.Examine || s.Grid.NX != 99 {
		t.Errorf("%+v, %v, want the server %+v", s, err, want)
	}
}

// docs/security.md lists exactly the variables in passed.
func TestDocumentedVariables(t *testing.T) {
	text, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "these variables and no others:\n")
	list, _, _ = strings.Cut(strings.TrimSpace(list), "\n\n")
	var listed []string
	for _, m := range regexp.MustCompile("`([A-Z0-9_]+)`").FindAllStringSubmatch(list, -1) {
		listed = append(listed, m[1])
	}
	if !slices.Equal(listed, passed) {
		t.Errorf("docs/security.md lists %q, and an agent passes %q", listed, passed)
	}
}

// An agent warns only if every user of a server that other machines reach may use it.
func TestOpenTo(t *testing.T) {
	others, err := natsserver.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	if len(others) == 0 {
		t.Skipf("NOT RUN: %s: this machine has no address but loopback", t.Name())
	}
	s, err := server.NewServer(&server.Options{Host: "::", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(long) {
		t.Fatal("the server does not start")
	}
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const warning = `^whoever may publish on jacobi\.nodes\.> at nats://\S+ can start ranks here, which read and ` +
		`write files as (user \S+|the user of this agent); nats\.secret_file limits that to those who have the secret$`
	for _, c := range []struct{ host, secret, want string }{
		{"127.0.0.1", "", "^$"},
		{others[0], "", warning},
		{others[0], configs.Inline("sixteen bytes of it"), "^$"},
	} {
		conn, err := wire.Connect(t.Context(), wire.Options{
			Server: configs.NATS{URL: "nats://" + net.JoinHostPort(c.host, port), SecretFile: c.secret},
			RunID:  Group, Timeout: long,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := openTo(conn); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("at %s: %q, want %s", c.host, got, c.want)
		}
		conn.Close()
	}
}
