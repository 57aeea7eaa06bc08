package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/proctest"
)

// live is a launcher that is still running.
type live struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  chan string   // of stdout and stderr
	quiet  chan struct{} // closed when no more lines come: all processes have ended
	seen   strings.Builder
	before map[string]bool // what lay in /dev/shm
}

// endless is a run that would last for minutes: in float32, or on a smaller mesh, it stalls before long.
var endless = []string{
	"grid.nx=512", "grid.ny=512", "grid.dtype=float64", "solver.max_iterations=1000000000", "solver.tolerance=0",
}

// begin starts a run that would last for minutes and waits until it sweeps.
func begin(t *testing.T, dir string, args ...string) *live {
	t.Helper()
	l := startLive(t, dir, append(args, set(endless...)...)...)
	l.waitFor(`sweep`)
	return l
}

// startLive starts a launcher.
func startLive(t *testing.T, dir string, args ...string) *live {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return startCommand(t, command(ctx, dir, "launcher", args...))
}

// startCommand starts a command that is, or becomes, a launcher.
func startCommand(t *testing.T, cmd *exec.Cmd) *live {
	t.Helper()
	l := &live{t: t, cmd: cmd, lines: make(chan string, 1000), quiet: make(chan struct{}), before: sharedFiles(t)}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.cmd.Stdout, l.cmd.Stderr = w, w
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		defer close(l.lines)
		defer close(l.quiet)
		for s := bufio.NewScanner(r); s.Scan(); {
			l.lines <- s.Text()
		}
	}()
	return l
}

// waitFor reads output until a line matches.
func (l *live) waitFor(pattern string) string {
	l.t.Helper()
	re := regexp.MustCompile(pattern)
	for line := range l.lines {
		l.seen.WriteString(line + "\n")
		if re.MatchString(line) {
			return line
		}
	}
	l.t.Fatalf("no line matches %q in\n%s", pattern, l.seen.String())
	return ""
}

// end waits for the launcher's end and returns its exit code and all its output.
func (l *live) end() (int, string) {
	l.t.Helper()
	for line := range l.lines {
		l.seen.WriteString(line + "\n")
	}
	err := l.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatal(err)
	}
	return l.cmd.ProcessState.ExitCode(), l.seen.String()
}

// ranks returns the process ids of the ranks of this test's launcher, by the marker in their environment.
func (l *live) ranks() []int {
	l.t.Helper()
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || exe != filepath.Join(bin, "jacobi-rank") {
			continue
		}
		if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && cwd == l.cmd.Dir {
			pids = append(pids, pid)
		}
	}
	return pids
}

// allRanks returns the process ids of the ranks, of which there must be n.
func (l *live) allRanks(n int) []int {
	l.t.Helper()
	pids := l.ranks()
	if len(pids) != n {
		l.t.Fatalf("%d ranks run, want %d", len(pids), n)
	}
	return pids
}

// leavesNothing checks that no process, no shared memory file and no partial output is left.
func (l *live) leavesNothing() {
	l.t.Helper()
	if pids := l.ranks(); len(pids) > 0 {
		l.t.Errorf("ranks still run: %v", pids)
	}
	for name := range sharedFiles(l.t) {
		if !l.before[name] && strings.Contains(name, "jacobi") {
			l.t.Errorf("/dev/shm/%s was left", name)
		}
	}
	err := filepath.WalkDir(l.cmd.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), "partial") {
			l.t.Errorf("%s was left", path)
		}
		return err
	})
	if err != nil {
		l.t.Error(err)
	}
}

func sharedFiles(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir("/dev/shm")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}

// A rank that is killed ends the run within five seconds, and the launcher names it, not those that missed it.
func TestKilledRankEndsTheRun(t *testing.T) {
	for _, transport := range []string{"p2p", "nats"} {
		t.Run(transport, func(t *testing.T) { killRank(t, 8, "halo.transport="+transport) })
	}
}

// killRank kills one of np ranks while they sweep.
func killRank(t *testing.T, np int, settings ...string) {
	l := begin(t, t.TempDir(), append(set(settings...), "-np", strconv.Itoa(np))...)
	pids := l.allRanks(np)
	killed := time.Now()
	if err := syscall.Kill(pids[np/2], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(killed); took > 5*time.Second {
		t.Errorf("the run ended %v after the kill, want at most 5s", took)
	}
	if code != 1 || !regexp.MustCompile(`rank \d .*killed`).MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and the killed rank named", code, output)
	}
	l.leavesNothing()
}

// The cause of a crash is the line that tells it, and is told once.
func TestCrashedRankIsNamed(t *testing.T) {
	l := begin(t, t.TempDir(), "-np", "3")
	if err := syscall.Kill(l.allRanks(3)[1], syscall.SIGABRT); err != nil { // prints stacks, then registers
		t.Fatal(err)
	}
	code, output := l.end()
	want := regexp.MustCompile(`(?m)^launcher: rank \d on \S+ failed: SIGABRT: abort \(last known sweep: \d+\)$`)
	if code != 1 || len(want.FindAllString(output, -1)) != 1 || strings.Count(output, "launcher: rank") != 1 {
		t.Errorf("exit code %d, output\n%s\nwant 1 and one line %s", code, output, want)
	}
	l.leavesNothing()
}

// A failure is told once, by the launcher, and not by the rank as well.
func TestFailureIsToldOnce(t *testing.T) {
	l := begin(t, t.TempDir(), append(set("halo.timeout=1h", "run.liveness=2s"), "-np", "3")...)
	if err := syscall.Kill(l.allRanks(3)[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 1 || strings.Count(output, " was not heard of for 2s") != 1 {
		t.Errorf("exit code %d, want 1, and the silence told once\n%s", code, output)
	}
}

// A rank that hangs is a clear error in bounded time; those that waited for it are its consequence.
func TestHangingRankEndsTheRun(t *testing.T) {
	l := begin(t, t.TempDir(), append(set("halo.timeout=2s"), "-np", "3")...)
	pids := l.allRanks(3)
	stopped := time.Now()
	if err := syscall.Kill(pids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(stopped); took > 8*time.Second {
		t.Errorf("the run ended %v after the stop, want at most 2s for the timeout, 5s for the end", took)
	}
	if code != 1 || !regexp.MustCompile(`(waited 2s|within 2s)`).MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and the timeout", code, output)
	}
	l.leavesNothing()
}

// A rank that falls silent for run.liveness is named with its node, what it had done and since when, long before
// halo.timeout.
func TestSilentRankIsNamed(t *testing.T) {
	l := begin(t, t.TempDir(), append(set("halo.timeout=1h", "run.liveness=2s"), "-np", "3")...)
	pids := l.allRanks(3)
	stopped := time.Now()
	if err := syscall.Kill(pids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code, output := l.end()
	if took := time.Since(stopped); took > 10*time.Second {
		t.Errorf("the run ended %v after the stop, want at most 2s for the silence, 5s for the end", took)
	}
	want := regexp.MustCompile(`launcher: rank \d on \S+ failed: .*rank \d on \S+ was not heard of for 2s, since ` +
		`\d\d:\d\d:\d\d, when it had done \d+ sweeps: it is dead, stopped or cut off`)
	if code != 1 || !want.MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and %s", code, output, want)
	}
	l.leavesNothing()
}

// A rank that is stopped for less than run.liveness costs time alone.
func TestStoppedRankCostsOnlyTime(t *testing.T) {
	l := begin(t, t.TempDir(), append(set("run.liveness=10s"), "-np", "3")...)
	pids := l.allRanks(3)
	for _, pid := range pids { // rank 0, to which all others listen, is among them
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the fault itself, not a wait for something
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		l.waitFor(`sweeps`) // it goes on
	}
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, output := l.end(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, output)
	}
}

// SIGINT stops all ranks at one sweep; what they have is written and marked.
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
	// The same number of sweeps, asked for, gives the same field.
	same := append(slices.Clone(endless), fmt.Sprintf("solver.max_iterations=%d", r.Sweeps))
	again, _ := solve(t, append(set(same...), "-np", "1")...)
	if again.sha != r.FieldSHA256 || again.history != string(history) {
		t.Errorf("interrupted after %d sweeps: field %s; that many sweeps give %s", r.Sweeps, r.FieldSHA256, again.sha)
	}
}

// A second signal kills.
func TestSecondInterruptKills(t *testing.T) {
	l := begin(t, t.TempDir(), "-np", "2")
	pids := l.ranks()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // so that the first signal cannot end them
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

// A launcher whose output nobody reads any more, as in `launcher | head -1`, stops the run as for a signal: the ranks
// write what they have.
func TestNobodyReads(t *testing.T) {
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
	for s.Scan() && !strings.Contains(s.Text(), " sweeps (") { // before, there is nothing to write
	}
	if s.Text() == "" {
		t.Error("no line tells of sweeps")
	}
	r.Close()
	// by its last line
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Errorf("%v; want the end that a shell calls 141", err)
	}
	if pids := (&live{t: t, cmd: cmd}).ranks(); len(pids) > 0 {
		t.Errorf("ranks still run: %v", pids)
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "report.json")); err != nil {
		t.Error(err)
	}
}

// The kernel ends the ranks of a launcher that was killed.
func TestKilledLauncherLeavesNoOrphan(t *testing.T) {
	l := begin(t, t.TempDir(), "-np", "3")
	pids := l.allRanks(3)
	var ranks []*proctest.Process
	for _, pid := range pids {
		p, err := proctest.Watch(t, pid)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, p)
	}
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range l.lines { // the pipe ends with the launcher
	}
	_ = l.cmd.Wait() // killed: an error by design
	for _, p := range ranks {
		if err := p.AwaitEnd(5 * time.Second); err != nil {
			t.Errorf("a rank outlives its launcher: %v", err)
		}
	}
}

// --timeout stops a run like a signal.
func TestTimeoutStopsTheRun(t *testing.T) {
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(set(endless...), "-np", "2", "--timeout", "1s")...)
	if out.code != 124 {
		t.Errorf("exit code %d, want 124\n%s%s", out.code, out.stdout, out.stderr)
	}
	if r := readReport(t, filepath.Join(dir, "out")); r.StopReason != "interrupted" {
		t.Errorf("stop reason %s, want interrupted", r.StopReason)
	}
}

// slowStart is a problem whose initial field takes minutes to work out.
func slowStart() []string {
	deep := strings.Repeat("sin(", 300) + "x*y" + strings.Repeat(")", 300)
	return append(set("grid.nx=20000", "grid.ny=4000", "problem.initial="+deep), "-np", "2")
}

// A run that is still working out its initial field ends at its time limit and at a signal, as it does later.
func TestSetupIsInterrupted(t *testing.T) {
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

// A rank that waits for others heeds a signal as well, and takes its rendezvous file with it.
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
	_ = cmd.Wait() // its state is looked at
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM || ctx.Err() != nil {
		t.Errorf("ended with %v, want SIGTERM", cmd.ProcessState)
	}
	if _, err := os.Stat(file); err == nil {
		t.Errorf("%s was left", file)
	}
}
