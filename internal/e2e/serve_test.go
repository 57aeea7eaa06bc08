package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/internal/observe/events"
)

// client is a program that uses launcher serve.
type client struct {
	t     *testing.T
	in    io.WriteCloser
	out   io.Closer // of lines
	lines *bufio.Scanner
	cmd   *exec.Cmd
}

// served is a line of launcher serve.
type served struct {
	ID json.RawMessage `json:"id"`
	events.Event
}

// serve starts launcher serve, which takes requests from its standard input.
func serve(t *testing.T, dir string, args ...string) *client {
	t.Helper()
	return serveBy(t, serving(t, dir, args...))
}

// serving prepares launcher serve.
func serving(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	return command(limited(t), dir, "launcher", append([]string{"serve"}, args...)...)
}

// serveBy is serve by a prepared command.
func serveBy(t *testing.T, cmd *exec.Cmd) *client {
	t.Helper()
	return serveWith(t, cmd, t.Output())
}

func serveWith(t *testing.T, cmd *exec.Cmd, stderr io.Writer) *client {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return &client{t: t, in: in, out: out, lines: lines, cmd: cmd}
}

// ask writes a line.
func (c *client) ask(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// until reads lines up to one with that event, and returns it and the report before it.
func (c *client) until(event string) (line served, r report) {
	c.t.Helper()
	for c.lines.Scan() {
		line = served{}
		if err := json.Unmarshal(c.lines.Bytes(), &line); err != nil {
			c.t.Fatalf("%v: %s", err, c.lines.Bytes())
		}
		if line.Report != nil {
			if err := json.Unmarshal(line.Report, &r); err != nil {
				c.t.Fatal(err)
			}
		}
		if line.Event.Event == event {
			return line, r
		}
	}
	c.t.Fatalf("no event %q: %v", event, c.lines.Err())
	return line, r
}

// exits waits until launcher serve has ended, and checks its exit code.
func (c *client) exits(want int) {
	c.t.Helper()
	_ = c.cmd.Wait() // an error for the exit code, which is checked
	if code := c.cmd.ProcessState.ExitCode(); code != want {
		c.t.Errorf("exit code %d, want %d", code, want)
	}
}

// Requests are answered in their order: those that are none or that a run would refuse with an error, all others with
// the bits of a run alone.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := cycling("grid.nx=65", "grid.ny=65", "problem.preset=dirichlet", "problem.source=x*y")
	want, _ := solve(t, onRanks(1, keys...)...)
	c := serve(t, dir, onRanks(2, "solver.method=multigrid", "grid.dtype=float64")...)
	good := `"grid.nx": 65, "grid.ny": 65, "problem.preset": "dirichlet", "problem.source": "x*y"`
	c.ask(`{"id": "first", "hash": true, "keys": {%s}}`, good)
	c.ask(`not JSON`)
	c.ask(`{"keys": {}}`)
	c.ask(`{"id": 3, "keys": {"grid.nx": 1}}`)
	c.ask(`{"id": 4, "keys": {"run.ranks": 3}}`)
	c.ask(`{"id": 5, "keys": {"problem.source": "../f.npy"}}`)
	c.ask(`{"id": "5a", "keys": {"problem.fixed": "../f.TIF"}}`)
	c.ask(`{"id": 6, "keys": {"output.field": "../f.npy"}}`)
	c.ask(`{"id": 7, "keys": {"problem.source": "%s"}}`, strings.Repeat("x", 1<<20))
	c.ask(`{"id": 8, "hash": true, "keys": {%s, "output.field": "f.npy"}}`, good)
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct{ id, fault string }{
		{`"first"`, ""},
		{"null", "no request: column 2: "},
		{"null", "no request: id: must be a number, or text of at most 200 bytes"},
		{"3", "grid.nx 1: "},
		{"4", "run.ranks (request): "},
		{"5", `problem.source "../f.npy": a request may name files of the directory in which serve was started`},
		{`"5a"`, `problem.fixed "../f.TIF": a request may name files of the directory`},
		{"6", `output.field "../f.npy": `},
		{"null", "no request: more than 1048576 bytes"},
		{"8", ""},
	} {
		end, r := c.until("end")
		if string(end.ID) != w.id || !strings.HasPrefix(end.End.Error, w.fault) ||
			(end.End.ExitCode == 0) != (w.fault == "") {
			t.Errorf("id %s: %+v; want id %s, error %q", end.ID, end.End, w.id, w.fault)
		}
		if w.fault == "" && (end.End.Error != "" || r.FieldHash != want.sha || r.Idle != "") {
			t.Errorf("id %s: %+v, field %s, want %s; idle %q", end.ID, end.End, r.FieldHash, want.sha, r.Idle)
		}
	}
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "out", "*"))
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], ".npy") {
		t.Errorf("files %v, %v; want one field", files, err)
	}
}

// sweeper are the arguments of a serve whose requests sweep on two ranks; longKeys and briefKeys are keys of such
// requests.
var sweeper = onRanks(2, "solver.method=jacobi", "grid.dtype=float64", "problem.preset=dirichlet", "problem.top=1")

const (
	longKeys  = `"grid.nx": 513, "grid.ny": 513, "solver.max_iterations": 1000000000`
	briefKeys = `"grid.nx": 33, "grid.ny": 33, "solver.max_iterations": 10`
)

// A request that is cancelled ends early, whether the ranks are at it or it waits; the next one is done. The ranks may
// have had the second one, or not. After a signal serve has its exit code, although nothing is left that was requested.
func TestServeCancels(t *testing.T) {
	t.Parallel()
	c := serve(t, t.TempDir(), sweeper...)
	c.ask(`{"id": 1, "progress": true, "keys": {%s}}`, longKeys)
	c.ask(`{"id": 2, "keys": {%s}}`, longKeys)
	c.ask(`{"id": 3, "keys": {%s}}`, longKeys)
	c.ask(`{"id": 4, "keys": {%s}}`, briefKeys)
	c.until("progress")
	for _, id := range []string{"3", "1", "2", "77"} {
		c.ask(`{"cancel": %s}`, id)
	}
	for _, w := range []struct{ id, verdict, fault string }{
		{"1", "interrupted", ""}, {"2", "interrupted", ""}, {"3", "", "the request was cancelled"}, {"4", "missed", ""},
	} {
		end, _ := c.until("end")
		if w.id == "2" && end.End.Verdict == "" {
			w.verdict, w.fault = "", "the request was cancelled"
		}
		if string(end.ID) != w.id || end.End.Verdict != w.verdict || end.End.Error != w.fault {
			t.Errorf("id %s: %+v; want id %s, verdict %q, error %q", end.ID, end.End, w.id, w.verdict, w.fault)
		}
	}
	c.ask(`{"id": 5, "progress": true, "keys": {%s}}`, longKeys)
	c.until("progress")
	if err := errors.Join(c.in.Close(), c.cmd.Process.Signal(os.Interrupt)); err != nil {
		t.Fatal(err)
	}
	if end, _ := c.until("end"); end.End.ExitCode != 130 || end.End.Verdict != "interrupted" {
		t.Errorf("%+v, want 130 and interrupted", end.End)
	}
	c.exits(130)
}

// Where a rank dies and may not start again, the requests that wait end too.
func TestServeEndsRequestsThatWait(t *testing.T) {
	t.Parallel()
	c := serve(t, t.TempDir(), sweeper...)
	for id := range 4 {
		c.ask(`{"id": %d, "progress": true, "keys": {%s}}`, id, longKeys)
	}
	c.until("progress")
	kill(t, (&live{t: t, cmd: c.cmd}).allRanks(2)[1])
	for id := range 4 {
		line, _ := c.until("end")
		verdict, before := "not_done", "the ranks have ended: "
		if id == 0 {
			verdict, before = "", ""
		}
		e := line.End
		if string(line.ID) != strconv.Itoa(id) || e.ExitCode != 1 || e.Verdict != verdict ||
			!strings.HasPrefix(e.Error, before+"rank 1 ") || !strings.Contains(e.Error, "was killed by SIGKILL") {
			t.Errorf("request %d: end of %s: %+v", id, line.ID, e)
		}
	}
	c.exits(1)
}

// Two signals end serve although a rank is stopped, and although the program that has asked does not read its answers.
func TestServeEndsAlthoughNobodyReads(t *testing.T) {
	t.Parallel()
	cmd := serving(t, t.TempDir(), sweeper...)
	stderr, own, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	c := serveWith(t, cmd, own)
	own.Close()
	c.ask(`{"id": 0, "keys": {%s}}`, briefKeys)
	c.until("end")
	// An answer repeats the names, and six answers fill a page of the pipe.
	keys := fmt.Sprintf(`"%[1]sa": 1, "%[1]sb": 1, "%[1]sc": 1`, strings.Repeat("z", 118))
	for id := range 120 { // more than a pipe holds, and fewer than there is room for
		c.ask(`{"id": %d, "keys": {%s}}`, id, keys)
	}
	c.ask(`{"id": "long", "keys": {%s}}`, longKeys)
	for full := 0; full < 60_000; { // the pipe has no room for another answer
		var err error
		if full, err = unix.IoctlGetInt(int(c.out.(*os.File).Fd()), unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	ranks := (&live{t: t, cmd: c.cmd}).allRanks(2)
	if err := syscall.Kill(ranks[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"once more kills them", "killing the ranks"} {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for said := bufio.NewScanner(stderr); said.Scan() && !strings.Contains(said.Text(), want); {
		}
	}
	c.exits(143)
}
