package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/proctest"
	"jacobi/internal/base/version"
	"jacobi/internal/net/roster"
)

// pipe is a Wire to a Serve in the same process.
type pipe struct {
	orders chan Order
	news   chan News
	done   chan struct{}
	once   sync.Once
	ended  chan error // what Serve returned
}

func newPipe(ctx context.Context, prepare Prepare) *pipe {
	p := &pipe{orders: make(chan Order), news: make(chan News), done: make(chan struct{}), ended: make(chan error, 1)}
	far := make(chan Order)
	go func() {
		defer close(far)
		for {
			select {
			case o := <-p.orders:
				far <- o
			case <-p.done:
				return
			}
		}
	}()
	tell := func(n News) error {
		select {
		case p.news <- n:
			return nil
		case <-p.done:
			return errors.New("closed")
		}
	}
	go func() {
		p.ended <- Serve(ctx, far, tell, prepare)
		close(p.news)
	}()
	return p
}

func (p *pipe) Send(o Order) error {
	select {
	case p.orders <- o:
		return nil
	case <-p.done:
		return errors.New("closed")
	}
}

func (p *pipe) News() <-chan News { return p.news }
func (p *pipe) Reason() string    { return "the pipe broke" }
func (p *pipe) Close() error      { p.once.Do(func() { close(p.done) }); return nil }

// overPipes moves the ranks of tr to two hosts behind pipes, in turn.
func (tr *trial) overPipes(ctx context.Context) (a, b *pipe) {
	a, b = newPipe(ctx, nil), newPipe(ctx, nil)
	tr.job.Ranks, _ = Place([]Slots{{"a", 9}, {"b", 9}}, len(tr.job.Ranks), true)
	tr.job.Hosts = map[string]Host{"a": NewRemote("a", a), "b": NewRemote("b", b)}
	tr.job.HostEnv["a"], tr.job.HostEnv["b"] = tr.job.HostEnv["here"], tr.job.HostEnv["here"]
	return a, b
}

func TestRemoteRanksLiveAndEndAsLocalOnes(t *testing.T) {
	t.Run("identity", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("identity", "identity", "identity")
		tr.report()
		a, b := tr.overPipes(t.Context())
		wantOutcome(t, tr.run(t, nil), ExitOK, "")
		lines := strings.Join(tr.lines, "\n")
		for _, want := range []string{"JACOBI_RANK=2 JACOBI_SIZE=3 JACOBI_LOCAL_RANK=1 JACOBI_LOCAL_SIZE=2 extra",
			"JACOBI_RANK=1 JACOBI_SIZE=3 JACOBI_LOCAL_RANK=0 JACOBI_LOCAL_SIZE=1 extra"} {
			if len(tr.lines) != 3 || !strings.Contains(lines, want) {
				t.Errorf("no %q in\n%s", want, lines)
			}
		}
		<-a.ended
		<-b.ended
	})
	t.Run("failure", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("follows", "failsWhenTold:disk full", "follows")
		tr.overPipes(t.Context())
		out := tr.run(t, func(pids map[int]int) { _ = syscall.Kill(pids[1], syscall.SIGTERM) })
		wantOutcome(t, out, ExitFailed, "rank 1 on b failed: disk full (last known sweep: none)")
		for _, l := range tr.lines {
			if strings.Contains(l, "run aborted by another rank") {
				t.Errorf("a consequence is shown: %s", l)
			}
		}
	})
	t.Run("kill", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("obeys", "obeys")
		tr.overPipes(t.Context())
		out := tr.run(t, func(pids map[int]int) { _ = syscall.Kill(pids[0], syscall.SIGKILL) })
		wantOutcome(t, out, ExitFailed, "rank 0 on a was killed by SIGKILL (killed); if nobody did that, memory ran "+
			"out: see dmesg (last known sweep: none)")
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		tr := newTrial("obeys", "obeys", "obeys", "obeys")
		tr.report()
		tr.overPipes(t.Context())
		wantOutcome(t, tr.run(t, func(map[int]int) { tr.signals <- syscall.SIGINT }), 130, "")
	})
}

func TestLostHostFailsTheRunAndItsRanksEnd(t *testing.T) {
	t.Parallel()
	tr := newTrial("follows", "deaf", "follows", "deaf")
	ctx, cut := context.WithCancelCause(t.Context())
	_, b := tr.overPipes(t.Context())
	b.Close()
	lost := newPipe(ctx, nil)
	tr.job.Hosts["b"] = NewRemote("b", lost)
	var ranks []*proctest.Process
	out := tr.run(t, func(pids map[int]int) {
		for _, r := range []int{1, 3} {
			p, err := proctest.Watch(t, pids[r])
			if err != nil {
				t.Error(err)
				continue
			}
			ranks = append(ranks, p)
		}
		cut(errors.New("cut"))
	})
	if out.Err == nil || !strings.HasSuffix(out.Err.Error(),
		" on b was lost with its host: the pipe broke (last known sweep: none)") || out.ExitCode() != ExitFailed {
		t.Errorf("error %v, exit code %d", out.Err, out.ExitCode())
	}
	if err := <-lost.ended; err == nil || err.Error() != "cut" {
		t.Errorf("Serve: %v", err)
	}
	for _, p := range ranks {
		if err := p.AwaitEnd(10 * time.Second); err != nil {
			t.Errorf("a rank outlives its wire: %v", err)
		}
	}
}

func TestRanksAreKilledWhenTheWireEnds(t *testing.T) {
	t.Parallel()
	p := newPipe(t.Context(), nil)
	r := NewRemote("there", p)
	ready := make(chan string, 1)
	spec := Spec{Path: testBinary, Env: []string{envFake + "=deaf"}, Ranks: identities(1)}
	sink := Sink{Line: func(_ int, _ Stream, line []byte) { ready <- string(line) }, Exit: func(Exit) {}}
	if err := r.Start(t.Context(), spec, sink); err != nil {
		t.Fatal(err)
	}
	<-ready
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.ended: // after the ranks
		if err == nil || (err.Error() != "the launcher is gone" && err.Error() != "tell the launcher: closed") {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Serve does not end")
	}
}

func TestRefusedStartNamesHostAndReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path    string
		prepare Prepare
		want    string
	}{
		{"/nowhere/rank", nil, "start ranks 0, 1 on there: start rank 0: fork/exec /nowhere/rank: no such file or " +
			"directory"},
		{testBinary, func(context.Context, *Spec) (func(), error) { return nil, errors.New("no memory") },
			"start ranks 0, 1 on there: no memory"},
	} {
		p := newPipe(t.Context(), c.prepare)
		r := NewRemote("there", p)
		err := r.Start(t.Context(), Spec{Path: c.path, Ranks: identities(2)}, Sink{})
		if err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
		if err := <-p.ended; err == nil {
			t.Error("Serve returned nil")
		}
	}
}

// Ranks may end before Started is told.
func TestRanksMayEndBeforeStarted(t *testing.T) {
	t.Parallel()
	for range 50 {
		p := newPipe(t.Context(), nil)
		r := NewRemote("there", p)
		exits := make(chan Exit, 2)
		sink := Sink{Line: func(int, Stream, []byte) {}, Exit: func(e Exit) { exits <- e }}
		if err := r.Start(t.Context(), Spec{Path: "/bin/true", Ranks: identities(2)}, sink); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if e := <-exits; e != (Exit{Rank: e.Rank}) {
				t.Errorf("%+v, want an end without fault", e)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A host that is silent for the whole limit is lost. A host whose output is not read for as long is not.
func TestSilenceIsALoss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		slow time.Duration // how long reading a line takes
		want Exit
	}{
		{"silence", 0, Exit{Lost: "nothing was heard of it for 200ms"}},
		{"slow reader", 500 * time.Millisecond, Exit{Code: 5}},
	} {
		w := &pipe{orders: make(chan Order, 1), news: make(chan News, 10), done: make(chan struct{})}
		r := NewRemote("there", w)
		r.patience = 200 * time.Millisecond
		exits := make(chan Exit, 2)
		sink := Sink{Line: func(int, Stream, []byte) { time.Sleep(c.slow) }, Exit: func(e Exit) { exits <- e }}
		w.news <- News{Started: true}
		if c.slow > 0 {
			w.news <- News{Line: &Line{}}
			w.news <- News{Exit: &Exit{Code: 5}}
		}
		if err := r.Start(t.Context(), Spec{Ranks: identities(1)}, sink); err != nil {
			t.Fatal(err)
		}
		if got := <-exits; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// When ssh breaks, the far end ends, too. The cause is ssh's own message, before or after the last one of the far end.
func TestBrokenSSHIsTheCause(t *testing.T) {
	const gone, broken = "echo 'launcher: the launcher is gone' >&2",
		"echo 'client_loop: send disconnect: Broken pipe' >&2"
	for _, end := range []string{broken + "\n" + gone, gone + "\n" + broken} {
		ssh := filepath.Join(t.TempDir(), "ssh")
		script := fmt.Sprintf("#!/bin/sh\necho '%s{\"version\":\"%s\"}'\nread order\n%s\nexit 255\n", greetingPrefix,
			version.String(), end)
		if err := os.WriteFile(ssh, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		var said []string
		way := SSH{Command: []string{ssh}, Program: "launcher", Say: func(text string) { said = append(said, text) }}
		host, _, err := way.Reach(t.Context(), "far")
		if err != nil {
			t.Fatal(err)
		}
		err = host.Start(t.Context(), Spec{Ranks: []roster.Identity{{Rank: 0, Size: 1}}}, Sink{})
		if want := "start rank 0 on far: client_loop: send disconnect: Broken pipe"; err == nil || err.Error() != want {
			t.Errorf("%s:\nerror %v\nwant  %s", end, err, want)
		}
		if len(said) != 1 || said[0] != "client_loop: send disconnect: Broken pipe" {
			t.Errorf("%s: said %q", end, said)
		}
	}
}

// SIGTSTP stops the ranks on all hosts before the launcher stops itself. They continue when the launcher does.
func TestSuspendedRanksGoOn(t *testing.T) {
	for _, far := range []bool{false, true} {
		tr := newTrial("obeys", "obeys", "obeys")
		tr.report()
		if far {
			tr.overPipes(t.Context())
		}
		stopped := make(chan []bool, 1)
		ready := make(chan map[int]int, 1)
		tr.job.StopSelf = func() {
			var all []bool
			for _, pid := range <-ready {
				all = append(all, becomes(pid, true))
			}
			stopped <- all
		}
		out := tr.run(t, func(pids map[int]int) {
			ready <- pids
			tr.signals <- syscall.SIGTSTP
			for rank, is := range <-stopped {
				if !is {
					t.Errorf("far %v: one of three ranks (%d) is not stopped", far, rank)
				}
			}
			for rank, pid := range pids {
				if !becomes(pid, false) {
					t.Errorf("far %v: rank %d does not go on", far, rank)
				}
			}
			tr.signals <- syscall.SIGINT
		})
		wantOutcome(t, out, 130, "")
	}
}

// becomes waits until a process is stopped, or is not. It polls: the kernel notifies the parent alone.
func becomes(pid int, stopped bool) bool {
	state := awake.Watch(pid)
	for range 1000 {
		if state() == stopped {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// The far end tolerates an hour of silence from a launcher that has suspended its ranks, otherwise 12 s.
func TestFarEndOfASuspendedLauncher(t *testing.T) {
	const (
		silent  = "the launcher: nothing was heard of it for 12s"
		stopped = "the launcher: it was stopped for more than 1h0m0s"
	)
	for _, c := range []struct {
		orders []syscall.Signal
		after  time.Duration
		want   string
	}{
		{nil, silenceLimit, silent},
		{[]syscall.Signal{syscall.SIGSTOP}, suspendLimit, stopped},
		{[]syscall.Signal{syscall.SIGSTOP, 0, 0}, suspendLimit, stopped}, // the zero Orders were under way
		{[]syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT}, silenceLimit, silent},
	} {
		synctest.Test(t, func(t *testing.T) {
			orders, ended := make(chan Order), make(chan error, 1)
			stopped := 0
			go func() {
				ended <- Serve(t.Context(), orders, func(n News) error {
					if n.Stopped {
						stopped++
					}
					return nil
				}, nil)
			}()
			for _, sig := range c.orders {
				orders <- Order{Signal: sig}
			}
			begin := time.Now()
			err := <-ended
			if took := time.Since(begin); took != c.after || err == nil || err.Error() != c.want {
				t.Errorf("after %v: %v after %v, want %s after %v", c.orders, err, took, c.want, c.after)
			}
			if want := min(1, len(c.orders)); stopped != want {
				t.Errorf("after %v: told %d times that the ranks are stopped, want %d", c.orders, stopped, want)
			}
		})
	}
}
