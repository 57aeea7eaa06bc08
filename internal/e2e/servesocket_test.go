package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dial connects a client to the socket of serve.
func dial(t *testing.T, path string) *client {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	return &client{t: t, in: conn, lines: lines}
}

// serveSocketBy starts launcher serve by a prepared command with --socket, and returns once it takes requests.
func serveSocketBy(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := os.Chmod(cmd.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for said := bufio.NewScanner(out); said.Scan() && !strings.Contains(said.Text(), "requests are taken at socket"); {
	}
	go func() { _, _ = bufio.NewReader(out).WriteTo(t.Output()) }()
}

// interrupted checks that serve ends after SIGINT, with its exit code.
func interrupted(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // an error for the exit code, which is checked
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d after SIGINT, want 130", code)
	}
}

// Clients of a socket have ids of their own. One that goes away cancels its own requests only.
func TestServeSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "socket")
	cmd := serving(t, dir, append(set("solver.method=jacobi", "grid.dtype=float64", "problem.preset=dirichlet"), "-np",
		"2", "--socket", "socket")...)
	serveSocketBy(t, cmd)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the socket: %v, %v; want the mode 0600", info, err)
	}
	again := run(t, dir, "launcher", "serve", "--socket", "socket", "--set", "output.dir=other")
	held := fmt.Sprintf(`--socket "socket": in use by run serve, process %d on `, cmd.Process.Pid)
	if again.code != 1 || !strings.Contains(again.stderr, held) {
		t.Errorf("a second server: exit code %d\n%s", again.code, again.stderr)
	}
	again = run(t, dir, "launcher", "serve")
	if again.code != 1 || !strings.HasPrefix(again.stderr, `launcher: output.dir "out": in use by run `) {
		t.Errorf("a server in the same directory: exit code %d\n%s", again.code, again.stderr)
	}

	long := `"grid.nx": 513, "grid.ny": 513, "problem.top": 1, "solver.max_iterations": 1000000000`
	short := `"grid.nx": 33, "grid.ny": 33, "solver.max_iterations": 10, "problem.top": 1`
	first, second := dial(t, path), dial(t, path)
	first.ask(`{"id": 1, "progress": true, "keys": {%s}}`, long)
	first.until("progress")
	first.ask(`{"id": 2, "keys": {%s}}`, long)
	second.ask(`{"id": 1, "keys": {%s}}`, short)
	second.ask(`no JSON`)
	if err := first.in.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1", "null"} {
		if end, _ := second.until("end"); string(end.ID) != want || (end.End.Error == "") != (want == "1") {
			t.Errorf("id %s: %+v, want id %s", end.ID, end.End, want)
		}
	}
	second.ask(`{"id": 7, "keys": {%s}}`, short)
	if end, _ := second.until("end"); string(end.ID) != "7" || end.End.Verdict != "missed" {
		t.Errorf("id %s: %+v, want 7", end.ID, end.End)
	}
	interrupted(t, cmd)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

// A directory into which others may look is refused before anything starts.
func TestServeSocketNeedsAPrivateDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out := run(t, dir, "launcher", "serve", "--socket", filepath.Join(dir, "s"))
	if out.code != 1 || !strings.Contains(out.stderr, "its directory has the mode 0755 and the owner ") {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
}
