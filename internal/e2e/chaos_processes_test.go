package e2e

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"jacobi/internal/net/roster/rostertest"
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
	w := s.watchOutputs()
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

// changeServer restarts the server with another password.
func (s *chaosRun) changeServer() string {
	srv := rostertest.StartWith(s, server.Options{Username: "jacobi", Password: "right"})
	url := strings.Replace(srv.URL(), "nats://", "nats://jacobi:right@", 1)
	l := s.start(s.args(append(overNATS(url), "run.liveness=2s"))...)
	srv.Stop()
	srv.RunChanged(func(o *server.Options) { o.Password = "changed" })
	s.hit = len(l.ranks()) > 0
	code, output := l.end()
	if code == 0 {
		return s.checkAnswer(code, output)
	}
	if code != 1 || !strings.Contains(output, "could not be made again: nats: Authorization Violation: ") {
		s.Fatalf("exit code %d\n%s\nwant 1 and the refusal", code, output)
	}
	return "right error"
}

// overNATS returns the settings of a run whose frames all go through the server at url.
func overNATS(url string) []string { return []string{"halo.transport=nats", "nats.url=" + url} }

func (s *chaosRun) restartServer() string {
	srv := rostertest.Start(s, 0)
	l := s.start(s.args(overNATS(srv.URL()))...)
	srv.Stop()
	s.hit = len(l.ranks()) > 0
	away := time.Duration(s.rand.IntN(1000)) * time.Millisecond
	s.fault += fmt.Sprintf(", away for %v", away)
	time.Sleep(away) // the fault itself
	srv.Run()
	return s.checkAnswer(l.end())
}

// replayBeats stops a rank at a server at which another client, without the secret of the run, repeats the last message
// of each subject.
func (s *chaosRun) replayBeats() string {
	srv := rostertest.Start(s, 0)
	stop := s.replay(srv.URL())
	l := s.start(s.args(append(overNATS(srv.URL()), "run.liveness=2s", "halo.timeout=1m"))...)
	stopped := time.Now()
	s.signalRank(l, syscall.SIGSTOP)
	code, output := l.end()
	stop()
	l.leavesNothing()
	if code == 0 { // it had swept its last sweep
		s.hit = false
		return s.checkAnswer(code, output)
	}
	if took := time.Since(stopped); took > 30*time.Second {
		s.Errorf("the stopped rank was noticed after %v, want about 2s", took)
	}
	if code != 1 || !regexp.MustCompile(`rank \d on \S+ was silent for 2s`).MatchString(output) {
		s.Fatalf("exit code %d\n%s\nwant 1 and the silent rank", code, output)
	}
	return "right error"
}

// replay repeats the last message of each subject at the server at url, 20 times a second, until stop is called.
func (s *chaosRun) replay(url string) (stop func()) {
	s.Helper()
	nc, err := nats.Connect(url, nats.NoEcho())
	if err != nil {
		s.Fatal(err)
	}
	last := map[string]*nats.Msg{}
	heard, done, ended := make(chan *nats.Msg, 1<<16), make(chan struct{}), make(chan struct{})
	if _, err = nc.ChanSubscribe("jacobi.>", heard); err != nil {
		s.Fatal(err)
	}
	go func() {
		defer close(ended)
		for again := time.Tick(50 * time.Millisecond); ; {
			select {
			case m := <-heard:
				last[m.Subject] = m
			case <-again:
				for subject, m := range last {
					_ = nc.PublishMsg(&nats.Msg{Subject: subject, Reply: m.Reply, Data: m.Data}) // the run decides
				}
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended; nc.Close() }
}

// failOver stops one of two servers. Ranks are likely to be connected to each of them.
func (s *chaosRun) failOver() string {
	cluster := server.ClusterOpts{Name: "pair", Host: "127.0.0.1", Port: server.RANDOM_PORT}
	first := rostertest.StartWith(s, server.Options{ServerName: "first", Cluster: cluster})
	second := rostertest.StartWith(s, server.Options{ServerName: "second", Cluster: cluster,
		Routes: server.RoutesFromStr(first.Route())})
	l := s.start(s.args(overNATS(first.URL() + "," + second.URL()))...)
	s.hit = len(l.ranks()) > 0
	first.Stop()
	return s.checkAnswer(l.end())
}

// behindProxy starts a server and returns a proxy in front of it.
func (s *chaosRun) behindProxy(m frameFaults) *proxy {
	u, err := url.Parse(rostertest.Start(s, 0).URL())
	if err != nil {
		s.Fatal(err)
	}
	return newProxy(s.T, u.Host, s.rand.Uint64(), m)
}

func (s *chaosRun) cutConnection() string {
	p := s.behindProxy(frameFaults{})
	l := s.start(s.args(overNATS(p.url()))...)
	rank := s.rand.IntN(s.np)
	s.fault += fmt.Sprintf(", of rank %d", rank)
	s.hit = p.cut(rank) == nil && len(l.ranks()) > 0
	return s.checkAnswer(l.end())
}

func (s *chaosRun) damageFrames(m frameFaults) string {
	p := s.behindProxy(m)
	l := startLive(s.T, s.dir, s.args(overNATS(p.url()))...)
	code, output := l.end()
	s.fault = fmt.Sprintf("%d frames", p.harmed())
	s.hit = p.harmed() > 0
	return s.checkAnswer(code, output)
}
