package halo_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	. "jacobi/halo"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

// world holds the ranks of a negotiation, each with a connection of its own.
type world struct {
	opts []Options
}

func newWorld(t testing.TB, s testServer, mode Mode, ranks int, periodic bool) *world {
	t.Helper()
	mesh := solver.Mesh{NX: 20, NY: 130, DType: solver.Float64, Walls: solver.WrapRows(periodic)}
	stripes, err := solver.Partition(mesh.Interior(), ranks, 2)
	if err != nil {
		t.Fatal(err)
	}
	w, run := &world{}, freshRun()
	for r := range ranks {
		ends, members := Ends(run, mesh, stripes, 2, r), [2]Member{}
		for side, end := range ends {
			if end != nil {
				members[side] = Member{Host: fmt.Sprintf("host%d", end.Neighbour), SharesMemory: true, Why: "same node"}
			}
		}
		w.opts = append(w.opts, Options{Rank: r, Members: members, Mode: mode,
			Ends:  ends,
			Peers: []Peer{SharedMemory{SharedOptions{Timeout: long}}},
			NATS:  NATSOptions{Conn: s.connect(t), Timeout: long}})
	}
	w.join(t, run)
	return w
}

// join gives the ranks the comm of their run.
func (w *world) join(t testing.TB, run RunID) {
	t.Helper()
	errs := make([]error, len(w.opts))
	var wg sync.WaitGroup
	for r := range w.opts {
		wg.Go(func() {
			id := roster.Identity{RunID: run.String(), Rank: r, Size: len(w.opts), LocalSize: 1}
			comm, err := roster.Join(t.Context(), w.opts[r].NATS.Conn, roster.Member{Identity: id}, long)
			if err == nil {
				w.opts[r].Comm = comm
				t.Cleanup(comm.Close)
			}
			errs[r] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// separate takes away the memory that ranks a and b share.
func (w *world) separate(a, b int, why string) {
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		o := &w.opts[pair[0]]
		for side, end := range o.Ends {
			if end != nil && end.Neighbour == pair[1] {
				o.Members[side].SharesMemory, o.Members[side].Why = false, why
			}
		}
	}
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

// connected is connect where all ranks must succeed.
func (w *world) connected(t testing.TB) []*Links {
	t.Helper()
	links, errs := w.connect(t)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return links
}

// exchange sends and receives rows over all links at once.
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

// testServer is a NATS server whose connections end with the test that asked for them.
type testServer struct{ *rostertest.Server }

func serve(t testing.TB, o server.Options) testServer {
	t.Helper()
	return testServer{rostertest.StartWith(t, o)}
}

func (s testServer) connect(t testing.TB) *wire.Conn { return wire.Over(s.dial(t)) }

func (s testServer) dial(t testing.TB) *nats.Conn {
	t.Helper()
	nc := s.Dial()
	t.Cleanup(nc.Close)
	return nc
}
