package solver_test

import (
	"errors"
	"testing"

	"jacobi/solver"
)

// The error of a call in the wrong order names the call, the state, and the passes of both.
func TestOrderError(t *testing.T) {
	l := solver.Layout{Mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, Stripe: solver.Stripe{Lo: 1, Hi: 16},
		Depth: 4, Neighbour: [2]bool{false, true}}
	c := solver.NewCalls("test backend", l, solver.Limits{MaxSweeps: 4})
	is := func(err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	is(c.Edges(solver.Pass{Sweeps: 1}), "test backend: Edges of pass 0 (sweeps 0 to 0) is not allowed after New")
	c.Load()
	is(c.CopyRows(l.Stripe, 15*72), "test backend: CopyRows is not allowed after a failed Load")
	c.Load()
	c.Done()
	p := solver.Pass{Index: 3, First: 10, Sweeps: 4}
	if err := c.Edges(p); err != nil {
		t.Fatal(err)
	}
	c.Done()
	is(c.Undo(), "test backend: Undo is not allowed after Edges of pass 3 (sweeps 10 to 13)")
	_, err := c.Interior(solver.Pass{Index: 3, First: 10, Sweeps: 3})
	is(err, "test backend: Interior of pass 3 (sweeps 10 to 12) is not allowed after Edges of pass 3 (sweeps 10 to 13)")
	is(c.Wait(), "test backend: Wait is not allowed after Edges of pass 3 (sweeps 10 to 13)")
	is(c.CopyEdge(solver.Top, 4*72), "test backend: CopyEdge at the top: there is no neighbour")
	is(c.CopyEdge(solver.Bottom, 72), "test backend: CopyEdge with 72 bytes: 4 rows have 288")
	if err := errors.Join(c.CopyEdge(solver.Bottom, 4*72), c.Post()); err != nil {
		t.Error(err)
	}
	if edged, err := c.Interior(p); err != nil || !edged {
		t.Fatal(edged, err)
	}
	is(c.Post(), "test backend: Post is not allowed after a failed Interior of pass 3 (sweeps 10 to 13)")
	is(c.CopyRows(l.Stripe, 15*72),
		"test backend: CopyRows is not allowed after a failed Interior of pass 3 (sweeps 10 to 13)")
}

// With a lag, the sums of the newest pass and of the one before it may be asked for, and no others.
func TestCallsOfSums(t *testing.T) {
	l := solver.Layout{Mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, Stripe: solver.Stripe{Lo: 1, Hi: 39},
		Depth: 1}
	for lag := range 2 {
		c := solver.NewCalls("test backend", l, solver.Limits{MaxSweeps: 1, Lag: lag})
		c.Load()
		c.Done()
		var passes []solver.Pass
		for i := range 3 {
			p := solver.Pass{Index: uint64(i), First: i, Sweeps: 1}
			passes = append(passes, p)
			if _, err := c.Interior(p); err != nil {
				t.Fatal(err)
			}
			c.Done()
		}
		for i, want := range []bool{false, lag == 1, true} {
			if err := c.Sums(passes[i]); (err == nil) != want {
				t.Errorf("lag %d, sums of pass %d of 3: error %v, allowed %v", lag, i, err, want)
			}
		}
		if err := c.Undo(); err != nil {
			t.Fatal(err)
		}
		c.Done()
		if err := c.Sums(passes[1]); err == nil {
			t.Errorf("lag %d: the sums of a pass before an undone one were allowed", lag)
		}
	}
}

// A whole pass is checked without an allocation.
func TestCallsAllocateNothing(t *testing.T) {
	l := solver.Layout{Mesh: solver.Mesh{NX: 9, NY: 40, DType: solver.Float64}, Stripe: solver.Stripe{Lo: 1, Hi: 16},
		Depth: 4, Neighbour: [2]bool{false, true}}
	c := solver.NewCalls("test backend", l, solver.Limits{MaxSweeps: 4})
	c.Load()
	c.Done()
	p := solver.Pass{Sweeps: 4}
	if n := testing.AllocsPerRun(100, func() {
		err := c.Edges(p)
		c.Done()
		err = errors.Join(err, c.Post())
		_, failed := c.Interior(p)
		c.Done()
		if err := errors.Join(err, failed, c.Sums(p), c.Wait()); err != nil {
			t.Fatal(err)
		}
		p.Index++
		p.First += 4
	}); n != 0 {
		t.Errorf("%v allocations a pass, want 0", n)
	}
}
