package e2e

import (
	"regexp"
	"syscall"
	"time"
)

// victim chooses one of the ranks that run; 0 if there is none any more.
func (s *storm) victim(l *live) int {
	pids := l.ranks()
	if len(pids) == 0 {
		return 0
	}
	return pids[s.rand.IntN(len(pids))]
}

// strike sends a signal to a rank.
func (s *storm) strike(l *live, sig syscall.Signal) (pid int) {
	pid = s.victim(l)
	s.hit = pid != 0 && syscall.Kill(pid, sig) == nil
	return pid
}

func (s *storm) killRank() string {
	l := s.start(s.args([]string{s.transport()})...)
	s.strike(l, syscall.SIGKILL)
	begin := time.Now()
	code, output := l.end()
	if took := time.Since(begin); took > 10*time.Second {
		s.Errorf("the run ended %v after the kill, want at most 10s", took)
	}
	l.leavesNothing()
	if code == 0 { // it had all but ended
		s.hit = false
		return s.right(code, output)
	}
	if !regexp.MustCompile(`launcher: --restart goes on after sweep \d+, from checkpoints: \S*launcher ` +
		`.*--restart\n$`).MatchString(output) {
		s.Errorf("the user is not told of the checkpoint\n%s", output)
	}
	return s.killed(code, output)
}

func (s *storm) killAndRestart() string {
	l := s.start(s.args([]string{s.transport()}, "--max-restarts", "3")...)
	s.strike(l, syscall.SIGKILL)
	outcome := s.right(l.end())
	l.leavesNothing()
	return outcome
}

// stopRank uses NATS, over which the run lasts long enough.
func (s *storm) stopRank() string {
	l := s.start(s.args([]string{"halo.transport=nats"})...)
	if pid := s.strike(l, syscall.SIGSTOP); s.hit {
		time.Sleep(3 * time.Second) // the fault itself
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return s.right(l.end())
}

// stopLauncher stops the launcher by either signal, for longer than the ranks have patience with each other.
func (s *storm) stopLauncher() string {
	sig := []syscall.Signal{syscall.SIGTSTP, syscall.SIGSTOP}[s.rand.IntN(2)]
	l := s.start(s.args([]string{s.transport(), "run.liveness=1s", "halo.timeout=2s"})...)
	s.fault += ", " + sig.String()
	s.hit = len(l.ranks()) > 0
	if err := l.cmd.Process.Signal(sig); err == nil {
		time.Sleep(3 * time.Second) // the fault itself
		_ = l.cmd.Process.Signal(syscall.SIGCONT)
	}
	return s.right(l.end())
}
