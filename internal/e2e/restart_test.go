package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/nats-io/nats-server/v2/server"

	"jacobi/internal/net/roster/rostertest"
)

// awaitName waits until dir, which must exist, has an entry that match accepts, or l has ended.
func awaitName(t *testing.T, dir string, match func(name string) bool, l *live) {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	late := time.After(limit)
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return match(e.Name()) }) {
			return
		}
		select {
		case <-w.Events:
		case <-l.quiet:
			return
		case err := <-w.Errors:
			t.Fatal(err)
		case <-late:
			t.Fatalf("no matching entry appears in %s", dir)
		}
	}
}

// isCheckpoint reports whether name is the name of a sealed checkpoint.
func isCheckpoint(name string) bool { return strings.HasPrefix(name, "sweep-") }

// lasting is the problem of a run that lasts a few seconds with eight ranks, since rows travel after each sweep.
var lasting = []string{"grid.nx=130", "grid.ny=270", "solver.tolerance=0", "solver.max_iterations=8000",
	"output.field=", "output.picture=", "halo.depth=1"}

// With --max-restarts a run survives a killed rank. It has the same bits and repeats at most the sweeps since the
// checkpoint.
func TestKilledRankIsRestarted(t *testing.T) {
	t.Parallel()
	want, _ := solve(t, append(set(lasting...), "-np", "1")...)
	for transport, np := range map[string]int{"p2p": 8, "nats": 3} { // eight ranks over NATS are slow on few cores
		t.Run(transport, func(t *testing.T) {
			dir := t.TempDir()
			checkpoints := filepath.Join(dir, "checkpoints")
			if err := os.Mkdir(checkpoints, 0o777); err != nil {
				t.Fatal(err)
			}
			l := startLive(t, dir, append(set(append(lasting, "checkpoint.every=200", "checkpoint.dir=checkpoints",
				"halo.transport="+transport)...),
				"-np", strconv.Itoa(np), "--max-restarts", "1")...)
			awaitName(t, checkpoints, isCheckpoint, l)
			pids := l.allRanks(np)
			if err := syscall.Kill(pids[2], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			code, output := l.end()
			m := regexp.MustCompile(`launcher: rank \d on \S+ was killed by SIGKILL .*\nlauncher: restart 1 of 1: on ` +
				`after sweep (\d+), from checkpoints\n`).FindStringSubmatch(output)
			if code != 0 || m == nil {
				t.Fatalf("exit code %d\n%s\nwant 0 and a restart", code, output)
			}
			l.leavesNothing()
			r := readReport(t, filepath.Join(dir, "out"))
			history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
			if err != nil {
				t.Fatal(err)
			}
			sweep, _ := strconv.Atoi(m[1]) // digits
			if got := (answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}); got != want ||
				r.ResumedAfter != sweep+1 {
				t.Errorf("field %s, want %s; histories equal: %v; resumed after %d sweeps, want %d", got.sha, want.sha,
					got.history == want.history, r.ResumedAfter, sweep+1)
			}
		})
	}
}

// Before the first checkpoint a restart begins at the first sweep. When no restart is left, the run ends with the
// error.
func TestRestartsAreCounted(t *testing.T) {
	dir := t.TempDir()
	l := startLive(t, dir, append(set(endless...), "-np", "3", "--max-restarts", "2")...)
	kill := func() {
		t.Helper()
		l.waitFor(`\d of [a-z ]*\d+ sweeps`)
		if err := syscall.Kill(l.ranks()[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		kill()
		l.waitFor(fmt.Sprintf(`launcher: restart %d of 2: from the start, there is no checkpoint yet`, i+1))
	}
	kill()
	if code, output := l.end(); code != 1 || !regexp.MustCompile(
		`launcher: rank \d on \S+ was killed by SIGKILL[^\n]*\n$`).MatchString(output) {
		t.Errorf("exit code %d\n%s\nwant 1 and the killed rank last", code, output)
	}
	l.leavesNothing()
}

// A lost host gets no more ranks: the run continues on the slots of the others.
func TestLostHostIsReplaced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	want, _ := solve(t, append(set(lasting...), "-np", "1")...)
	dir := t.TempDir()
	checkpoints := filepath.Join(dir, "checkpoints")
	if err := os.Mkdir(checkpoints, 0o777); err != nil {
		t.Fatal(err)
	}
	args := append(append(c.ssh("user"), set(append(lasting, "checkpoint.every=200",
		"checkpoint.dir=checkpoints")...)...),
		"--host", "a:2,b:2,c:2", "--map-by", "node", "-np", "3", "--max-restarts", "1")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	l := startCommand(t, c.on(command(ctx, dir, "launcher", args...)))
	awaitName(t, checkpoints, isCheckpoint, l)
	c.sh("ip", "-n", c.ns("net"), "link", "set", "dev", "c", "down")
	code, output := l.end()
	if code != 0 || !regexp.MustCompile(`launcher: restart 1 of 1: on after sweep \d+, from checkpoints\nlauncher: 3 `+
		`ranks on a, b: `).MatchString(output) {
		t.Fatalf("exit code %d\n%s\nwant 0 and a restart on a and b", code, output)
	}
	r := readReport(t, filepath.Join(dir, "out"))
	history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got := (answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}); got != want || r.ResumedAfter == 0 {
		t.Errorf("field %s, want %s; histories equal: %v; resumed after %d sweeps", got.sha, want.sha,
			got.history == want.history, r.ResumedAfter)
	}
	c.leavesNothing(30 * time.Second)
}

// Nodes without a shared file system keep checkpoints in a JetStream bucket.
func TestRestartFromABucket(t *testing.T) {
	t.Parallel()
	want, _ := solve(t, append(set(lasting...), "-np", "1")...)
	srv := rostertest.StartWith(t, server.Options{JetStream: true, StoreDir: t.TempDir()})
	place := []string{"nats.url=" + srv.URL(), "halo.transport=nats", "checkpoint.every=200", "checkpoint.nats=jacobi"}
	stored, err := srv.Dial().SubscribeSync("$O.jacobi.M.>") // a message for each object that is complete
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l := startLive(t, dir, append(set(append(lasting, place...)...), "-np", "3", "--max-restarts", "1")...)
	for sealed := false; !sealed; {
		m, err := stored.NextMsg(limit)
		if err != nil {
			t.Fatal(err)
		}
		var object struct{ Name string }
		if err := json.Unmarshal(m.Data, &object); err != nil {
			t.Fatal(err)
		}
		sealed = strings.HasSuffix(object.Name, "/manifest.json")
	}
	if err := syscall.Kill(l.ranks()[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if code != 0 || !regexp.MustCompile(`launcher: restart 1 of 1: on after sweep \d+, from nats:jacobi\n`).MatchString(
		output) {
		t.Fatalf("exit code %d\n%s\nwant 0 and a restart", code, output)
	}
	if r := readReport(t, filepath.Join(dir, "out")); r.FieldSHA256 != want.sha || r.ResumedAfter == 0 {
		t.Errorf("field %s, want %s; resumed after %d sweeps", r.FieldSHA256, want.sha, r.ResumedAfter)
	}
	got, r := solve(t, append(set(append(lasting, place...)...), "-np", "2", "--restart")...)
	if got != want || r.ResumedAfter == 0 {
		t.Errorf("--restart: field %s, want %s; resumed after %d sweeps", got.sha, want.sha, r.ResumedAfter)
	}
}
