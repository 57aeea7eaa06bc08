package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/observe/events"
)

// killRank kills one of np ranks while they sweep. That ends the run within ten seconds; the launcher names that rank
// and not those that lost their neighbour.
func killRank(t *testing.T, np int, settings ...string) {
	l := begin(t, t.TempDir(), onRanks(np, settings...)...)
	pids := l.allRanks(np)
	killed := time.Now()
	kill(t, pids[np/2])
	l.ends(1, `rank \d .*killed`)
	if took := time.Since(killed); took > 10*time.Second {
		t.Errorf("the run ended %v after the kill, want at most 10s", took)
	}
	l.leavesNothing()
}

// A rank that hangs ends the run in bounded time with an error that names the timeout, of halo.timeout or run.liveness.
// The second one comes long before the first. It has the rank, its node, its number of sweeps and the time of its last
// sign, and is told once, by the launcher and not also by the rank.
func TestHangingRankEndsTheRun(t *testing.T) {
	t.Parallel()
	for want, settings := range map[string][]string{
		`(waited 2s|within 2s)`: {"halo.timeout=2s"},
		`launcher: rank \d on \S+ failed: .*rank \d on \S+ was silent for 2s, since \d\d:\d\d:\d\d, when it had ` +
			`done \d+ iterations: it is dead, stopped or cut off`: {"halo.timeout=1h", "run.liveness=2s"},
	} {
		t.Run(settings[0], func(t *testing.T) {
			t.Parallel()
			l := begin(t, t.TempDir(), onRanks(3, settings...)...)
			stopped := time.Now()
			if err := syscall.Kill(l.allRanks(3)[1], syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			output := l.ends(1, want)
			if took := time.Since(stopped); took > 20*time.Second {
				t.Errorf("the run ended %v after the stop, want 7s, or 20s on a busy machine", took)
			}
			if len(settings) > 1 && strings.Count(output, " was silent for 2s") != 1 {
				t.Errorf("want the silence told once\n%s", output)
			}
			l.leavesNothing()
		})
	}
}

// A run whose ranks are all stopped ends with the silence of rank 0, also where it has one rank and where it was asked
// to stop meanwhile, in which case it does not start again.
func TestSilenceOfAllRanksIsNoticed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ranks int
		stop  bool
	}{{1, true}, {3, false}} {
		t.Run(fmt.Sprintf("%d ranks, asked to stop %v", c.ranks, c.stop), func(t *testing.T) {
			t.Parallel()
			args := onRanks(c.ranks, "halo.timeout=1h", "run.liveness=2s")
			if c.stop {
				args = append(args, "--max-restarts", "1")
			}
			l := begin(t, t.TempDir(), args...)
			for _, pid := range l.allRanks(c.ranks) {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			if c.stop {
				l.signal(syscall.SIGTERM)
			}
			if output := l.ends(1, `launcher: rank 0 on \S+ was silent for 2s, since `); strings.Contains(output,
				"restart 1 of 1") {
				t.Errorf("the run starts again\n%s", output)
			}
			l.leavesNothing()
		})
	}
}

// SIGINT stops all ranks after the same sweep. They write their files and a checkpoint, and the report is marked as
// interrupted. The run goes on from there as if it had not stopped.
func TestInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := begin(t, dir, onRanks(3, "checkpoint.every=1h", "checkpoint.dir=checkpoints")...)
	l.signal(os.Interrupt)
	l.ends(130, `\b1 in checkpoints, the last after \d+ sweeps`)
	l.leavesNothing()
	first, r := answerIn(t, filepath.Join(dir, "out"))
	if norms := normsOf(t, first.history); first.reason != "interrupted" || len(norms) != first.sweeps ||
		first.sweeps == 0 {
		t.Errorf("%s after %d sweeps with %d norms; want interrupted, as many norms as sweeps", first.reason,
			first.sweeps, len(norms))
	}
	// A run with max_iterations at that number of sweeps has the same field.
	until := func(sweeps int) []string { return with(endless, fmt.Sprintf("solver.max_iterations=%d", sweeps)) }
	again, _ := solve(t, onRanks(1, until(first.sweeps)...)...)
	again.reason = first.reason
	same(t, again, first, "as many sweeps")
	got, r := solve(t, append(onRanks(2, until(first.sweeps+50)...), "--resume", filepath.Join(dir, "checkpoints"))...)
	if r.ResumedAfter != first.sweeps {
		t.Errorf("resumed after %d sweeps, want %d", r.ResumedAfter, first.sweeps)
	}
	want, _ := solve(t, onRanks(1, until(first.sweeps+50)...)...)
	same(t, got, want, "resumed")
}

// If the reader of its output has gone, as in `launcher | head -1`, a launcher stops the run as it does for a signal:
// the ranks write their files, and it dies of SIGPIPE at its last line.
func TestReaderOfTheOutputIsGone(t *testing.T) {
	t.Parallel()
	for last, args := range map[string][]string{" sweeps (": {"2>&1", "-np=2"}, `"progress"`: {"", "--json", "-np=2"}} {
		dir := t.TempDir()
		script := `{ "$@"; echo "code $?" >code; } ` + args[0] + ` | sed -n '/` + last + `/q'`
		out := run(t, dir, "/bin/sh", slices.Concat([]string{"-c", script, "sh", bin + "/launcher"}, args[1:],
			set(endless...))...)
		if code := readText(t, dir, "code"); code != "code 141\n" ||
			args[0] == "" && !strings.Contains(out.stderr, "launcher: SIGPIPE: the ranks stop") {
			t.Errorf("%s: %s, want code 141\n%s", last, code, out.stderr)
		}
		if pids := (&live{t: t, cmd: &exec.Cmd{Dir: dir}}).ranks(); len(pids) > 0 {
			t.Errorf("ranks still run: %v", pids)
		}
		if r := readReport(t, filepath.Join(dir, "out")); r.StopReason != "interrupted" || r.Sweeps == 0 {
			t.Errorf("%s: %d sweeps, ended as %s", last, r.Sweeps, r.StopReason)
		}
	}
}

// --timeout stops a run as a signal does. The run has not missed a tolerance then.
func TestTimeoutStopsTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(set(endless...), "--json", "-np", "1", "--timeout", "5s")...)
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
	if out.fails(t, 124, "time limit of 2s reached"); out.took > 12*time.Second {
		t.Errorf("took %v, want 2s", out.took)
	}
	l := startLive(t, dir, slowStart()...)
	l.waitFor(`2 ranks on `)
	(&cluster{t: t}).await("two ranks", func() bool { return len(l.ranks()) == 2 })
	interrupted := time.Now()
	l.signal(os.Interrupt)
	if l.ends(130); time.Since(interrupted) > 10*time.Second {
		t.Errorf("took %v, want the end at once", time.Since(interrupted))
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
