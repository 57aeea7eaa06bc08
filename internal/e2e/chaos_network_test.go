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
