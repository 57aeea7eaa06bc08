package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

var mesh = solver.Mesh{NX: 9, NY: 100, DType: solver.Float32}

var same = Problem{Fields: map[string]string{"grid.nx": "9"}}

// value returns the bits of the field at (y, x) after some sweeps.
func value(sweeps, y, x int) uint32 { return uint32(sweeps*1_000_000 + y*100 + x) }

// rowsAfter is the field after some sweeps.
type rowsAfter struct{ sweeps int }

func (r *rowsAfter) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	for y := s.Lo; y < s.Hi; y++ {
		for x := range mesh.NX {
			binary.LittleEndian.PutUint32(dst[4*((y-s.Lo)*mesh.NX+x):], value(r.sweeps, y, x))
		}
	}
	return nil
}

// boundary is an initial field that has boundary rows only: a resumed run must not read its interior.
type boundary struct{}

func (boundary) Row(iy int, dst []byte) error {
	if iy != 0 && iy != mesh.NY-1 {
		return fmt.Errorf("row %d of the initial field was asked for", iy)
	}
	return (&rowsAfter{}).CopyRows(context.Background(), solver.Stripe{Lo: iy, Hi: iy + 1}, dst)
}

// crew is all ranks of a run in this process.
type crew struct {
	t       *testing.T
	comms   []*roster.Comm
	layouts []solver.Layout
	stripes []solver.Stripe
	logs    *observer.ObservedLogs // of all ranks
	bucket  *nats.Conn             // to the server of the bucket; nil if the test uses none
	log     *zap.Logger
	// aggregates is that of the states to be saved.
	aggregates int
}

func newCrew(t *testing.T, ranks, depth int, periodic bool) *crew {
	t.Helper()
	c := &crew{t: t, comms: make([]*roster.Comm, ranks)}
	core, logs := observer.New(zapcore.WarnLevel)
	c.log, c.logs = zap.New(core), logs
	var err error
	if c.stripes, err = solver.Partition(mesh.Interior(), ranks, depth); err != nil {
		t.Fatal(err)
	}
	srv := rostertest.Start(t, 0)
	m := mesh
	m.Walls = solver.WrapRows(periodic)
	for r := range ranks {
		c.layouts = append(c.layouts, solver.Layout{Mesh: m, Stripe: c.stripes[r], Depth: depth,
			Neighbour: [2]bool{r > 0 || periodic, r < ranks-1 || periodic}})
	}
	c.each(func(r int) (err error) {
		id := roster.Identity{RunID: strings.ReplaceAll(t.Name(), "/", "-"), Rank: r, Size: ranks, LocalRank: r,
			LocalSize: ranks}
		c.comms[r], err = roster.Join(t.Context(), wire.Over(srv.Dial()), roster.Member{Identity: id, Host: "h"}, limit)
		return err
	})
	t.Cleanup(func() {
		for _, comm := range c.comms {
			comm.Close()
		}
	})
	return c
}

// each runs f for all ranks concurrently.
func (c *crew) each(f func(rank int) error) {
	c.t.Helper()
	if err := c.try(f); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) try(f func(rank int) error) error {
	errs := make([]error, len(c.comms))
	var wg sync.WaitGroup
	for r := range c.comms {
		wg.Go(func() { errs[r] = f(r) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// saver opens the Saver of a rank with these rows.
func (c *crew) saver(r int, store Store, rows solver.Rows, keep int) (*Saver, error) {
	return NewSaver(c.t.Context(), SaverOptions{Comm: c.comms[r], Store: store, Layout: c.layouts[r],
		Stripes: c.stripes, Rows: rows, Keep: keep, RunID: c.t.Name(), Program: "test", Problem: same, Log: c.log,
		Aggregates: func() int { return c.aggregates }})
}

func (c *crew) savers(store Store, keep int) []*Saver {
	c.t.Helper()
	savers := make([]*Saver, len(c.comms))
	c.each(func(r int) (err error) {
		savers[r], err = c.saver(r, store, &rowsAfter{}, keep)
		return err
	})
	c.t.Cleanup(func() {
		for _, s := range savers {
			if err := s.Close(); err != nil {
				c.t.Error(err)
			}
		}
	})
	return savers
}

// save has all ranks save the states after the given sweeps, one after another.
func (c *crew) save(savers []*Saver, sweeps ...int) {
	c.t.Helper()
	for _, n := range sweeps {
		savers[0].AddNorms(normsTo(n)[len(savers[0].norms):])
		c.each(func(r int) error {
			savers[r].o.Rows.(*rowsAfter).sweeps = n
			if err := savers[r].Save(c.t.Context(), n); err != nil {
				return err
			}
			if !savers[r].wait(c.t.Context()) {
				return errors.New("not complete")
			}
			return nil
		})
	}
}

func normsTo(sweeps int) []float64 {
	norms := make([]float64, sweeps)
	for i := range norms {
		norms[i] = 1 / float64(i+1)
	}
	return norms
}

// resume has all ranks resume, checks their states, and returns the state of rank 0.
func (c *crew) resume(place string, s configs.Solver) (*State, error) {
	c.t.Helper()
	states := make([]*State, len(c.comms))
	err := c.try(func(r int) (err error) {
		states[r], err = Resume(c.t.Context(), ResumeOptions{Comm: c.comms[r], Place: place, Conn: c.bucket,
			Problem: same, Solver: s, Layout: c.layouts[r], Boundary: boundary{}, Log: c.log})
		if err != nil {
			_ = c.comms[r].Abort(err) // ends the other ranks, as a failing rank does
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for r, state := range states {
		c.check(r, state)
		if err := state.Field.Close(); err != nil {
			c.t.Error(err)
		}
		if r > 0 && (state.Set != states[0].Set || !slices.Equal(state.Start.Norms, states[0].Start.Norms) ||
			state.Aggregates != states[0].Aggregates) {
			c.t.Errorf("rank %d goes on from %+v, rank 0 from %+v", r, state, states[0])
		}
	}
	return states[0], nil
}

// check checks all rows that a rank holds.
func (c *crew) check(r int, state *State) {
	c.t.Helper()
	got, want := make([]byte, mesh.RowBytes()), make([]byte, mesh.RowBytes())
	held := c.layouts[r].Held()
	for y := held.Lo; y < held.Hi; y++ {
		row, ok := c.layouts[r].Mesh.Canonical(y)
		if !ok {
			c.t.Fatalf("row %d", y)
		}
		sweeps := state.Start.Iterations
		if row == 0 || row == mesh.NY-1 {
			sweeps = 0
		}
		_ = (&rowsAfter{sweeps}).CopyRows(c.t.Context(), solver.Stripe{Lo: row, Hi: row + 1}, want) // never fails
		if err := state.Field.Row(row, got); err != nil || !slices.Equal(got, want) {
			c.t.Fatalf("rank %d, row %d: %v, %v; want %v", r, row, err, got, want)
		}
	}
}

// limit is a timeout, in nanoseconds, far above the time that a join takes.
const limit = 60_000_000_000

var endless = configs.Solver{MaxIterations: 1 << 30}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
