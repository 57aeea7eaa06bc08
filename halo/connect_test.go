package halo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/internal/shm"
	"jacobi/solver"
)

// world is the ranks of a negotiation, each with a connection of its own.
type world struct {
	opts []Options
}

func newWorld(t testing.TB, s *testServer, mode Mode, ranks int, periodic bool) *world {
	t.Helper()
	node, err := shm.LocalNode()
	if err != nil {
		t.Fatal(err)
	}
	mesh := solver.Mesh{NX: 20, NY: 130, DType: solver.Float64, Periodic: periodic}
	stripes, err := solver.Partition(mesh.NY, ranks, 2)
	if err != nil {
		t.Fatal(err)
	}
	members := make([]Member, ranks)
	for r := range members {
		members[r] = Member{Rank: r, Host: fmt.Sprintf("host%d", r), Node: node}
	}
	w, run := &world{}, RunIDOf(fmt.Sprint("world ", runs.Add(1)))
	for r := range ranks {
		w.opts = append(w.opts, Options{Rank: r, Members: members, Mode: mode,
			Ends:  Ends(run, mesh, stripes, 2, r),
			Peers: []Peer{SharedMemory{SharedOptions{Timeout: long}}},
			NATS:  NATSOptions{Conn: s.connect(t), Timeout: long}})
	}
	return w
}

// connect connects all ranks at once.
func (w *world) connect(t testing.TB) ([]*Links, []error) {
	links, errs := make([]*Links, len(w.opts)), make([]error, len(w.opts))
	var wg sync.WaitGroup
	for r := range w.opts {
		wg.Go(func() { links[r], errs[r] = Connect(t.Context(), w.opts[r]) })
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, l := range links {
			if l != nil {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return links, errs
}

// exchange plays exchanges over all links at once.
func (w *world) exchange(t *testing.T, links []*Links) {
	t.Helper()
	var wg sync.WaitGroup
	for r, o := range w.opts {
		for side, end := range o.Ends {
			if (end == nil) != (links[r].Link[side] == nil) {
				t.Errorf("rank %d, %v: end %v, link %v", r, solver.Side(side), end, links[r].Link[side])
				continue
			}
			if end != nil {
				wg.Go(func() {
					if err := play(t.Context(), links[r].Link[side], *end, 0, 10, nil); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	wg.Wait()
}

func TestConnect(t *testing.T) {
	s := serve(t, &server.Options{})
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
		{ModeAuto, 2, false, TransportShared, "same node (boot id "},
		{ModeAuto, 2, true, TransportShared, "segment mapped"},
		{ModeNATS, 2, true, TransportNATS, "halo.transport is nats"},
		{ModeP2P, 3, true, TransportShared, "same node (boot id "},
		{ModeAuto, 8, true, TransportShared, "same node (boot id "},
		{ModeNATS, 8, false, TransportNATS, "halo.transport is nats"},
	} {
		t.Run(fmt.Sprintf("%s, %d ranks, periodic %v", c.mode, c.ranks, c.periodic), func(t *testing.T) {
			w := newWorld(t, s, c.mode, c.ranks, c.periodic)
			links, errs := w.connect(t)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
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
	s := serve(t, &server.Options{})
	w := newWorld(t, s, ModeAuto, 4, true)
	for r := 2; r < 4; r++ {
		w.opts[0].Members[r].Node.Boot = "another" // ranks 0 1 and 2 3 share a node; all have one slice of members
	}
	links, errs := w.connect(t)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r, want := range [][2]string{{TransportNATS, TransportShared}, {TransportShared, TransportNATS},
		{TransportNATS, TransportShared}, {TransportShared, TransportNATS}} {
		for side := range want {
			if got := links[r].Info[side]; got.Transport != want[side] {
				t.Errorf("rank %d, %v: %+v, want %s", r, solver.Side(side), got, want[side])
			}
		}
	}
	if got, want := links[1].Info[solver.Bottom].Why,
		"different nodes: rank 1 on host1, rank 2 on host2"; got != want || links[2].Info[solver.Top].Why != want {
		t.Errorf("reasons %q and %q, want %q", got, links[2].Info[solver.Top].Why, want)
	}
	w.exchange(t, links)
}

// brokenPeer fails on one end or the other.
type brokenPeer struct {
	SharedMemory
	offer, accept error
}

func (brokenPeer) Name() string { return "broken memory" }

func (p brokenPeer) Offer(end End) (Link, json.RawMessage, error) {
	if p.offer != nil {
		return nil, nil, p.offer
	}
	return p.SharedMemory.Offer(end)
}

func (p brokenPeer) Accept(end End, offer json.RawMessage) (Link, error) {
	if p.accept != nil {
		return nil, p.accept
	}
	return p.SharedMemory.Accept(end, offer)
}

func TestConnectFallsBack(t *testing.T) {
	s := serve(t, &server.Options{})
	shared := SharedMemory{SharedOptions{Timeout: long}}
	for name, broken := range map[string]brokenPeer{
		"offer":  {shared, errors.New("no memory"), nil},
		"accept": {shared, nil, errors.New("no map")},
	} {
		reason := "no m"
		t.Run(name+", to the next peer", func(t *testing.T) {
			w := newWorld(t, s, ModeP2P, 2, true)
			for r := range w.opts {
				w.opts[r].Peers = []Peer{broken, shared}
			}
			links, errs := w.connect(t)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if got := links[1].Info[solver.Top].Transport; got != TransportShared {
				t.Errorf("transport %s, want %s", got, TransportShared)
			}
			w.exchange(t, links)
		})
		t.Run(name+", to NATS", func(t *testing.T) {
			w := newWorld(t, s, ModeAuto, 3, false)
			for r := range w.opts {
				w.opts[r].Peers = []Peer{broken}
			}
			links, errs := w.connect(t)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for _, info := range []Info{links[0].Info[solver.Bottom], links[1].Info[solver.Top]} {
				if info.Transport != TransportNATS || !strings.Contains(info.Why, "broken memory failed: ") ||
					!strings.Contains(info.Why, reason) {
					t.Errorf("got %+v, want nats because %s", info, reason)
				}
			}
			w.exchange(t, links)
		})
		t.Run(name+", to an error", func(t *testing.T) {
			w := newWorld(t, s, ModeP2P, 2, false)
			for r := range w.opts {
				w.opts[r].Peers = []Peer{broken}
			}
			_, errs := w.connect(t)
			for r, err := range errs {
				if err == nil || !strings.Contains(err.Error(), "halo.transport is p2p: broken memory failed: ") ||
					!strings.Contains(err.Error(), reason) {
					t.Errorf("rank %d: got %v, want why p2p does not work", r, err)
				}
			}
		})
	}
}

func TestConnectP2POnTwoNodes(t *testing.T) {
	w := newWorld(t, serve(t, &server.Options{}), ModeP2P, 2, true)
	w.opts[0].Members[1].Node.PIDNamespace = "7"
	_, errs := w.connect(t)
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "halo.transport is p2p: same node, but PID namespaces ") {
			t.Errorf("rank %d: got %v", r, err)
		}
	}
}

func TestConnectDisagreement(t *testing.T) {
	s := serve(t, &server.Options{})
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

// TestConnectLate starts each rank only when the other one has asked, or has waited, for a while.
func TestConnectLate(t *testing.T) {
	s := serve(t, &server.Options{})
	for first := range 2 {
		t.Run(fmt.Sprintf("rank %d first", first), func(t *testing.T) {
			w := newWorld(t, s, ModeAuto, 2, true)
			observer := s.connect(t)
			asked, err := observer.SubscribeSync("jacobi.*.link.*.*")
			if err != nil {
				t.Fatal(err)
			}
			if err := observer.Flush(); err != nil {
				t.Fatal(err)
			}
			links, errs := make([]*Links, 2), make([]error, 2)
			var wg sync.WaitGroup
			wg.Go(func() { links[first], errs[first] = Connect(t.Context(), w.opts[first]) })
			if first == 0 {
				for range 3 {
					if _, err := asked.NextMsg(long); err != nil {
						t.Fatal(err)
					}
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
		s := serve(t, &server.Options{})
		w := newWorld(t, s, mode, 2, true)
		observer := s.connect(t)
		asked, err := observer.SubscribeSync("jacobi.*.link.*.*")
		if err != nil {
			t.Fatal(err)
		}
		if err := observer.Flush(); err != nil {
			t.Fatal(err)
		}
		links, errs := make([]*Links, 2), make([]error, 2)
		var wg sync.WaitGroup
		wg.Go(func() { links[0], errs[0] = Connect(t.Context(), w.opts[0]) })
		if _, err := asked.NextMsg(long); err != nil {
			t.Fatal(err)
		}
		s.stop()
		wg.Go(func() { links[1], errs[1] = Connect(t.Context(), w.opts[1]) })
		s.start(t)
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
	s := serve(t, &server.Options{})
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
	w := newWorld(t, serve(t, &server.Options{}), ModeAuto, 3, true)
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := Connect(ctx, w.opts[1]); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestConnectWithoutNATS(t *testing.T) {
	s := serve(t, &server.Options{})
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
	w.opts[0].NATS.Conn = nil
	if _, err := Connect(t.Context(), w.opts[0]); err == nil {
		t.Error("two ranks connected without NATS")
	}
}

// TestConnectLeavesNothing counts this process's open files before and after: segments are closed with the links.
func TestConnectLeavesNothing(t *testing.T) {
	s := serve(t, &server.Options{})
	w := newWorld(t, s, ModeP2P, 3, true)
	before := segments(t)
	links, errs := w.connect(t)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
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

func TestReachable(t *testing.T) {
	node, err := shm.LocalNode()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*shm.Node)
		ok     bool
		why    string
	}{
		"same": {func(*shm.Node) {}, true, "same node (" + node.String() + "), segment mapped"},
		"boot": {func(n *shm.Node) { n.Boot = "b" }, false, "different nodes: rank 1 on one, rank 2 on two"},
		"namespace": {func(n *shm.Node) { n.PIDNamespace = "7" }, false,
			"same node, but PID namespaces " + node.PIDNamespace + " and 7"},
		"user": {func(n *shm.Node) { n.User = -7 }, false,
			fmt.Sprintf("same node, but users %d and -7", node.User)},
		"unknown": {func(n *shm.Node) { *n = shm.Node{} }, false, "unknown node: rank 1 on one, rank 2 on two"},
	} {
		a, b := Member{1, "one", node}, Member{2, "two", node}
		c.change(&b.Node)
		for _, pair := range [][2]Member{{a, b}, {b, a}} {
			if ok, why := (SharedMemory{}).Reachable(pair[0], pair[1]); ok != c.ok || why != c.why {
				t.Errorf("%s: %v, %s; want %v, %s", name, ok, why, c.ok, c.why)
			}
		}
	}
	unknown := Member{Rank: 3}
	if ok, _ := (SharedMemory{}).Reachable(unknown, unknown); ok {
		t.Error("two unknown nodes are taken for one")
	}
}

func TestParseMode(t *testing.T) {
	for _, m := range []Mode{ModeAuto, ModeNATS, ModeP2P} {
		if got, err := ParseMode(string(m)); got != m || err != nil {
			t.Errorf("%s: %s, %v", m, got, err)
		}
	}
	if _, err := ParseMode("mpi"); err == nil {
		t.Error("mpi was accepted")
	}
}

func TestEnds(t *testing.T) {
	mesh := solver.Mesh{NX: 4, NY: 34, DType: solver.Float32, Periodic: true}
	for ranks := 1; ranks <= 4; ranks++ {
		stripes, err := solver.Partition(mesh.NY, ranks, 2)
		if err != nil {
			t.Fatal(err)
		}
		for r := range ranks {
			for side, e := range Ends(testRun, mesh, stripes, 2, r) {
				there := Ends(testRun, mesh, stripes, 2, e.Neighbour)[1-side]
				if e.Facing() != *there {
					t.Errorf("%d ranks: rank %d, %v faces %+v, want %+v", ranks, r, solver.Side(side), *there,
						e.Facing())
				}
				// The rows beyond the stripe, as the mesh names them.
				first := stripes[r].Hi
				if solver.Side(side) == solver.Top {
					first = stripes[r].Lo - 2
				}
				for i := range 2 {
					if want, _ := mesh.Canonical(first + i); e.Recv.Lo+i != want {
						t.Errorf("%d ranks: rank %d, %v: halo row %d is row %d, want %d", ranks, r, solver.Side(side),
							i, e.Recv.Lo+i, want)
					}
				}
			}
		}
	}
	mesh.Periodic = false
	stripes, _ := solver.Partition(mesh.NY, 2, 2)
	if e := Ends(testRun, mesh, stripes, 2, 0); e[solver.Top] != nil || e[solver.Bottom] == nil {
		t.Errorf("ends of the first rank: %v", e)
	}
	if e := Ends(testRun, mesh, stripes, 2, 1); e[solver.Bottom] != nil || e[solver.Top] == nil {
		t.Errorf("ends of the last rank: %v", e)
	}
}
