package halo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	. "jacobi/halo"
	"jacobi/solver"
)

func TestConnect(t *testing.T) {
	s := serve(t, server.Options{})
	for _, c := range []struct {
		mode     Mode
		ranks    int
		periodic bool
		want     string
		why      string
	}{
		{ModeAuto, 1, false, "", ""},
		{ModeAuto, 1, true, TransportMemory, "own neighbour"},
		{ModeP2P, 1, true, TransportMemory, "own neighbour"},
		{ModeNATS, 1, true, TransportNATS, "halo.transport is nats"},
		{ModeAuto, 2, false, TransportShared, "same node, segment mapped"},
		{ModeAuto, 2, true, TransportShared, "segment mapped"},
		{ModeNATS, 2, true, TransportNATS, "halo.transport is nats"},
		{ModeP2P, 3, true, TransportShared, "same node, segment mapped"},
		{ModeAuto, 8, true, TransportShared, "same node, segment mapped"},
		{ModeNATS, 8, false, TransportNATS, "halo.transport is nats"},
	} {
		t.Run(fmt.Sprintf("%s, %d ranks, periodic %v", c.mode, c.ranks, c.periodic), func(t *testing.T) {
			w := newWorld(t, s, c.mode, c.ranks, c.periodic)
			links := w.connected(t)
			for r, l := range links {
				for side, info := range l.Info {
					if w.opts[r].Ends[side] == nil {
						continue
					}
					if info.Transport != c.want || !strings.Contains(info.Why, c.why) {
						t.Errorf("rank %d, %v: %+v, want %s: %s", r, solver.Side(side), info, c.want, c.why)
					}
				}
			}
			w.exchange(t, links)
		})
	}
}

func TestConnectMixed(t *testing.T) {
	s := serve(t, server.Options{})
	w := newWorld(t, s, ModeAuto, 4, true)
	w.separate(1, 2, "different nodes") // ranks 0 and 1 share a node, so do 2 and 3
	w.separate(3, 0, "different nodes")
	links := w.connected(t)
	for r, want := range [][2]string{{TransportNATS, TransportShared}, {TransportShared, TransportNATS},
		{TransportNATS, TransportShared}, {TransportShared, TransportNATS}} {
		for side := range want {
			if got := links[r].Info[side]; got.Transport != want[side] {
				t.Errorf("rank %d, %v: %+v, want %s", r, solver.Side(side), got, want[side])
			}
		}
	}
	if got, want := links[1].Info[solver.Bottom].Why,
		"different nodes"; got != want || links[2].Info[solver.Top].Why != want {
		t.Errorf("reasons %q and %q, want %q", got, links[2].Info[solver.Top].Why, want)
	}
	w.exchange(t, links)
}

func TestConnectDisagreement(t *testing.T) {
	s := serve(t, server.Options{})
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"columns": {func(o *Options) { o.Ends[solver.Top].NX = 19 }, "the ranks disagree: columns 20, want 19"},
		"rows": {func(o *Options) { o.Ends[solver.Top].Recv.Lo-- },
			"the ranks disagree: rows [62, 64), want [61, 64)"},
		"mode": {func(o *Options) { o.Mode = ModeNATS }, "the ranks disagree: halo.transport auto, want nats"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, s, ModeAuto, 2, false)
			c.change(&w.opts[1])
			_, errs := w.connect(t)
			for r, err := range errs {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("rank %d: got %v, want %s", r, err, c.want)
				}
			}
		})
	}
}

// proposals returns a function that waits for the next message to rank 1, which is or repeats a proposal.
func proposals(t *testing.T, s testServer) (next func()) {
	t.Helper()
	nc := s.dial(t)
	sub, err := nc.SubscribeSync("jacobi.*.post.1")
	if err := errors.Join(err, nc.Flush()); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := sub.NextMsg(long); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConnectLate starts the two ranks one after the other. Where rank 0 is first, rank 1 starts after three proposals.
func TestConnectLate(t *testing.T) {
	s := serve(t, server.Options{})
	for first := range 2 {
		t.Run(fmt.Sprintf("rank %d first", first), func(t *testing.T) {
			w := newWorld(t, s, ModeAuto, 2, true)
			asked := proposals(t, s)
			links, errs := make([]*Links, 2), make([]error, 2)
			var wg sync.WaitGroup
			wg.Go(func() { links[first], errs[first] = Connect(t.Context(), w.opts[first]) })
			if first == 0 {
				for range 3 {
					asked()
				}
			}
			wg.Go(func() { links[1-first], errs[1-first] = Connect(t.Context(), w.opts[1-first]) })
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for _, l := range links {
				defer l.Close()
			}
			w.exchange(t, links)
		})
	}
}

// TestConnectRestart restarts the server while rank 0 asks.
func TestConnectRestart(t *testing.T) {
	for _, mode := range []Mode{ModeP2P, ModeNATS} {
		s := serve(t, server.Options{})
		w := newWorld(t, s, mode, 2, true)
		asked := proposals(t, s)
		links, errs := make([]*Links, 2), make([]error, 2)
		var wg sync.WaitGroup
		wg.Go(func() { links[0], errs[0] = Connect(t.Context(), w.opts[0]) })
		asked()
		s.Stop()
		wg.Go(func() { links[1], errs[1] = Connect(t.Context(), w.opts[1]) })
		s.Run()
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		w.exchange(t, links)
		if err := errors.Join(links[0].Close(), links[1].Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestConnectAlone(t *testing.T) {
	s := serve(t, server.Options{})
	for rank, want := range []string{
		"halo: rank 0, bottom side: link with rank 1 on host1: no answer within 50ms",
		"halo: rank 1, top side: link with rank 0 on host0: waiting for its proposal: no answer within 50ms",
	} {
		w := newWorld(t, s, ModeAuto, 2, false)
		w.opts[rank].NATS.Timeout = 50 * time.Millisecond
		if _, err := Connect(t.Context(), w.opts[rank]); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestConnectCancelled(t *testing.T) {
	w := newWorld(t, serve(t, server.Options{}), ModeAuto, 3, true)
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := Connect(ctx, w.opts[1]); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestConnectWithoutNATS(t *testing.T) {
	s := serve(t, server.Options{})
	w := newWorld(t, s, ModeAuto, 1, true)
	w.opts[0].NATS.Conn = nil
	l, err := Connect(t.Context(), w.opts[0])
	if err != nil {
		t.Fatal(err)
	}
	w.exchange(t, []*Links{l})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	w = newWorld(t, s, ModeAuto, 2, true)
	w.opts[0].Comm = nil
	if _, err := Connect(t.Context(), w.opts[0]); err == nil {
		t.Error("two ranks connected without a comm")
	}
}

// TestConnectLeavesNothing checks by this process's open files that segments are closed with the links.
func TestConnectLeavesNothing(t *testing.T) {
	s := serve(t, server.Options{})
	w := newWorld(t, s, ModeP2P, 3, true)
	before := segments(t)
	links := w.connected(t)
	if got, want := segments(t), before+3; got != want {
		t.Errorf("%d segments with 3 links, want %d", got, want)
	}
	for _, l := range links {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := segments(t); got != before {
		t.Errorf("%d segments after Close, want %d", got, before)
	}
}

func segments(t *testing.T) (n int) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if target, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil &&
			strings.HasPrefix(target, "/memfd:jacobi") {
			n++
		}
	}
	return n
}

// Shared memory goes by what the caller has decided, in its words.
func TestReachable(t *testing.T) {
	for _, c := range []struct {
		theirs Member
		why    string
	}{
		{Member{"two", true, "same node (7)"}, "same node (7), segment mapped"},
		{Member{"two", false, "same node, but users 1 and 2"}, "same node, but users 1 and 2"},
	} {
		if ok, why := (SharedMemory{}).Reachable(c.theirs); ok != c.theirs.SharesMemory || why != c.why {
			t.Errorf("%+v: %v, %s; want %v, %s", c.theirs, ok, why, c.theirs.SharesMemory, c.why)
		}
	}
}
