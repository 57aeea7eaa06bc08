package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// victim returns the process id of a random rank, or 0 if none is running.
func (s *chaosRun) victim(l *live) int {
	pids := l.ranks()
	if len(pids) == 0 {
		return 0
	}
	return pids[s.rand.IntN(len(pids))]
}

// signalRank sends a signal to a random rank.
func (s *chaosRun) signalRank(l *live, sig syscall.Signal) (pid int) {
	pid = s.victim(l)
	s.hit = pid != 0 && syscall.Kill(pid, sig) == nil
	return pid
}

func (s *chaosRun) killRank() string {
	l := s.start(s.args([]string{s.transport()})...)
	s.signalRank(l, syscall.SIGKILL)
	begin := time.Now()
	code, output := l.end()
	if took := time.Since(begin); took > 10*time.Second {
		s.Errorf("the run ended %v after the kill, want at most 10s", took)
	}
	l.leavesNothing()
	if code == 0 { // the run had nearly ended before the kill
		s.hit = false
		return s.checkAnswer(code, output)
	}
	if !regexp.MustCompile(`launcher: --restart goes on after sweep \d+, from checkpoints: \S*launcher ` +
		`.*--restart\n$`).MatchString(output) {
		s.Errorf("the user is not told of the checkpoint\n%s", output)
	}
	return s.checkKilled(code, output)
}

func (s *chaosRun) killAndRestart() string {
	l := s.start(s.args([]string{s.transport()}, "--max-restarts", "3")...)
	s.signalRank(l, syscall.SIGKILL)
	outcome := s.checkAnswer(l.end())
	l.leavesNothing()
	return outcome
}

// stopRank stops a rank for three seconds. It uses NATS, because the run is then slow enough to be hit.
func (s *chaosRun) stopRank() string {
	l := s.start(s.args([]string{"halo.transport=nats"})...)
	if pid := s.signalRank(l, syscall.SIGSTOP); s.hit {
		time.Sleep(3 * time.Second) // the fault itself
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return s.checkAnswer(l.end())
}

// stopLauncher stops the launcher by SIGTSTP or SIGSTOP for longer than run.liveness and halo.timeout.
func (s *chaosRun) stopLauncher() string {
	sig := []syscall.Signal{syscall.SIGTSTP, syscall.SIGSTOP}[s.rand.IntN(2)]
	l := s.start(s.args([]string{s.transport(), "run.liveness=1s", "halo.timeout=2s"})...)
	s.fault += ", " + sig.String()
	s.hit = len(l.ranks()) > 0
	if err := l.cmd.Process.Signal(sig); err == nil {
		time.Sleep(3 * time.Second) // the fault itself
		_ = l.cmd.Process.Signal(syscall.SIGCONT)
	}
	return s.checkAnswer(l.end())
}

// stopAtExit stops a rank for good while the ranks end, when the outputs come into place. Once rank 0 has sent the
// report, that costs the run nothing. Before, the others miss its signs of life.
func (s *chaosRun) stopAtExit() string {
	out := filepath.Join(s.dir, "out")
	if err := os.Mkdir(out, 0o777); err != nil {
		s.Fatal(err)
	}
	w := watched(s.T, out)
	l := s.start(s.args([]string{s.transport(), "run.liveness=2s"})...)
	pid := s.victim(l)
	awaitMade(s.T, w, "report.json", l)
	time.Sleep(time.Duration(s.rand.IntN(4)) * time.Millisecond) // the moment of the fault
	stopped := pid != 0 && syscall.Kill(pid, syscall.SIGSTOP) == nil
	code, output := l.end()
	l.leavesNothing()
	outlived := regexp.MustCompile(` did not end (within \S+ of the (report|other ranks)|in time): killed; ` +
		`the run was complete`).MatchString(output)
	s.hit = stopped && (outlived || code != 0)
	// The first to miss a rank is another rank or, if it is rank 0, the launcher.
	if code == 1 && regexp.MustCompile(`launcher: (rank \d on \S+ failed: )?rank \d on \S+ was silent for 2s`).
		MatchString(output) && strings.Contains(output, "the outputs of this run are in place") {
		return "right error, " + s.checkAnswer(0, output)
	}
	if outlived {
		return "killed at its end, " + s.checkAnswer(code, output)
	}
	return s.checkAnswer(code, output)
}
