package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/observe/events"
)

// SIGINT stops all ranks after the same sweep. They write their files, and the report is marked as interrupted.
func TestInterruptWritesWhatThereIs(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, dir, "-np", "3")
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, output)
	}
	l.leavesNothing()
	r := readReport(t, filepath.Join(dir, "out"))
	history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if norms := normsOf(t, string(history)); r.StopReason != "interrupted" || len(norms) != r.Sweeps || r.Sweeps == 0 {
		t.Errorf("%s after %d sweeps with %d norms; want interrupted, as many norms as sweeps", r.StopReason, r.Sweeps,
			len(norms))
	}
	// A run with max_iterations at that number of sweeps has the same field.
	same := append(slices.Clone(endless), fmt.Sprintf("solver.max_iterations=%d", r.Sweeps))
	again, _ := solve(t, append(set(same...), "-np", "1")...)
	if again.sha != r.FieldSHA256 || again.history != string(history) {
		t.Errorf("interrupted after %d sweeps: field %s; that many sweeps give %s", r.Sweeps, r.FieldSHA256, again.sha)
	}
}

// A second signal kills the ranks.
func TestSecondInterruptKills(t *testing.T) {
	l := begin(t, t.TempDir(), "-np", "2")
	pids := l.ranks()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // a stopped rank does not end at the first signal
			t.Fatal(err)
		}
	}
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	l.waitFor(`once more kills`)
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, output)
	}
	l.leavesNothing()
}

// If the reader of its output has gone, as in `launcher | head -1`, a launcher stops the run as it does for a signal:
// the ranks write their files.
func TestReaderOfTheOutputIsGone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := command(ctx, dir, "launcher", append(set(endless...), "-np", "2")...)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	s := bufio.NewScanner(r)
	for s.Scan() && !strings.Contains(s.Text(), " sweeps (") { // before the first sweep there is nothing to write
	}
	if s.Text() == "" {
		t.Error("no line tells of sweeps")
	}
	r.Close()
	// The launcher dies of SIGPIPE at its last line.
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Errorf("%v; want the end by SIGPIPE", err)
	}
	if pids := (&live{t: t, cmd: cmd}).ranks(); len(pids) > 0 {
		t.Errorf("ranks still run: %v", pids)
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "report.json")); err != nil {
		t.Error(err)
	}
}

// --timeout stops a run as a signal does. The run has not missed a tolerance then.
func TestTimeoutStopsTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(set(endless...), "--json", "-np", "1", "--timeout", "10s")...)
	all, _ := eventsOf(t, out.stdout)
	want := events.End{ExitCode: 124, Verdict: "interrupted"}
	if end := *all[len(all)-1].End; out.code != want.ExitCode || end != want {
		t.Errorf("exit code %d, end %+v, want %+v\n%s", out.code, end, want, out.stderr)
	}
	if r := readReport(t, filepath.Join(dir, "out")); r.StopReason != "interrupted" || r.Verdict != want.Verdict {
		t.Errorf("%s, stop reason %s, want interrupted", r.Verdict, r.StopReason)
	}
}

// slowStart returns the arguments of a run whose initial field takes minutes to compute.
func slowStart() []string {
	deep := strings.Repeat("sin(", 300) + "x*y" + strings.Repeat(")", 300)
	return append(set("grid.nx=20000", "grid.ny=4000", "problem.initial="+deep), "-np", "2")
}

// The time limit and a signal end a run that is still computing its initial field, as they end one that sweeps.
func TestSetupIsInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(slowStart(), "--timeout", "2s")...)
	if out.code != 124 || !strings.Contains(out.stderr, "time limit of 2s reached") || out.took > 12*time.Second {
		t.Errorf("exit code %d after %v, want 124 soon after 2s\n%s", out.code, out.took, out.stderr)
	}
	l := startLive(t, dir, slowStart()...)
	l.waitFor(`2 ranks on `)
	(&cluster{t: t}).await("two ranks", func() bool { return len(l.ranks()) == 2 })
	interrupted := time.Now()
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(interrupted); code != 130 || took > 10*time.Second {
		t.Errorf("exit code %d after %v, want 130 at once\n%s", code, took, output)
	}
	l.leavesNothing()
}

// A signal also ends a rank that waits for others. The rank removes its rendezvous file.
func TestWaitingRankIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	file := filepath.Join(dir, "out", ".jacobi-rendezvous")
	cmd := command(ctx, dir, "jacobi-rank", append(scheduled, set("halo.timeout=1h")...)...)
	cmd.Env = append(cmd.Env, pmi(2)[0]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	(&cluster{t: t}).await("rendezvous file", func() bool { _, err := os.Stat(file); return err == nil })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // ProcessState is checked below
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM || ctx.Err() != nil {
		t.Errorf("ended with %v, want SIGTERM", cmd.ProcessState)
	}
	if _, err := os.Stat(file); err == nil {
		t.Errorf("%s was left", file)
	}
}
