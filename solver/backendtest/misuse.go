package backendtest

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"jacobi/internal/reference"
	"jacobi/solver"
)

// runNotFinite checks that a value that is not finite, or too large, makes the sums bad in every column.
func runNotFinite(t *testing.T, factory Factory) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), 1e30} {
		for _, d := range []solver.DType{solver.Float32, solver.Float64} {
			for _, column := range []int{1, 40, 97} {
				c := Case{Mesh: solver.Mesh{NX: 99, NY: 20, DType: d}, Ranks: 1, Depth: 2}
				f := newField(c.Mesh, 1)
				if d == solver.Float32 {
					binary.LittleEndian.PutUint32(f.rows[9][4*column:], math.Float32bits(float32(bad)))
				} else {
					binary.LittleEndian.PutUint64(f.rows[9][8*column:], math.Float64bits(bad))
				}
				r, err := open(c, f, solver.Operator{}, factory)
				if err != nil {
					t.Fatal(err)
				}
				sums, err := r.pass(solver.Pass{Sweeps: 2}, false)
				if err != nil {
					t.Fatal(err)
				}
				if !sums[0].Bad || !sums[1].Bad {
					t.Errorf("%v with %v in column %d: sums %v, want bad ones", d, bad, column, sums)
				}
				if err := r.close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// runMisuse checks that a backend refuses arguments that are out of range, and that a cancelled context ends a pass,
// after which a Load makes the backend usable again.
func runMisuse(t *testing.T, factory Factory) {
	r, _ := openAlone(t, factory)
	ctx, cancel := context.WithCancelCause(t.Context())
	b := r.backends[0]
	rows := make([]byte, 3*r.mesh.RowBytes())
	refused := func(what string, err error) {
		t.Helper()
		var order *solver.OrderError
		if err == nil || errors.As(err, &order) {
			t.Errorf("%s: error %v, want one that is no error of the order", what, err)
		}
	}
	pass := solver.Pass{Sweeps: 1}
	refused("a pass deeper than the halo", b.Interior(ctx, solver.Pass{Sweeps: 4}))
	refused("a pass that reads beyond the halo", b.Interior(ctx, solver.Pass{Sweeps: 2, Margin: 2}))
	refused("a pass of no sweeps", b.Interior(ctx, solver.Pass{}))
	refused("edges with a margin", b.Edges(ctx, solver.Pass{Sweeps: 1, Margin: 1}))
	refused("rows beyond the stripe", b.CopyRows(ctx, solver.Stripe{Lo: 0, Hi: 3}, rows))
	refused("too little room for rows", b.CopyRows(ctx, solver.Stripe{Lo: 1, Hi: 4}, rows[1:]))
	if err := b.Edges(ctx, pass); err != nil {
		t.Fatal(err)
	}
	refused("a short edge", b.CopyEdge(ctx, solver.Top, rows[1:]))
	if err := b.Interior(ctx, pass); err != nil {
		t.Fatal(err)
	}
	refused("a short halo", b.SetHalo(ctx, solver.Top, rows[1:]))
	cause := errors.New("enough")
	cancel(cause)
	if err := b.Interior(ctx, pass); !errors.Is(err, cause) {
		t.Errorf("a cancelled pass: %v, want %v", err, cause)
	}
	if err := b.Load(t.Context(), r.field); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pass(pass, false); err != nil {
		t.Errorf("a pass after the cancelled one and a load: %v", err)
	}
}

// openAlone opens a backend that is its own neighbour, with halos of three rows, and the oracle for its field.
func openAlone(t *testing.T, factory Factory) (*ranks, *reference.Jacobi) {
	t.Helper()
	mesh := solver.Mesh{NX: 40, NY: 42, DType: solver.Float32, Walls: solver.WrapRows(true)}
	c := Case{Mesh: mesh, Ranks: 1, Depth: 3}
	f := newField(c.Mesh, 1)
	ref, err := reference.New(c.Mesh, solver.Operator{}, f, magnitude(solver.Operator{}, f.largest))
	if err != nil {
		t.Fatal(err)
	}
	r, err := open(c, f, solver.Operator{}, factory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r, ref
}

// runOrder checks that a backend refuses each call in each state that does not allow it, with an error that names the
// call, the state and the passes, and that refused calls change nothing.
func runOrder(t *testing.T, factory Factory) {
	r, ref := openAlone(t, factory)
	ctx, b, lag := t.Context(), r.backends[0], r.backends[0].Limits().Lag
	rows := make([]byte, 3*r.mesh.RowBytes())
	var newest solver.Pass
	// refused makes the calls, each of which the state reached by the call after must refuse.
	refused := func(after solver.Call, calls ...solver.Call) {
		t.Helper()
		for _, call := range calls {
			want := &solver.OrderError{Call: call, After: after, Pass: newest}
			var err error
			switch call {
			case solver.CallEdges:
				want.Of = solver.Pass{Index: 9, First: 7, Sweeps: 1}
				err = b.Edges(ctx, want.Of)
			case solver.CallInterior:
				want.Of = solver.Pass{Index: 9, First: 7, Sweeps: 1}
				err = b.Interior(ctx, want.Of)
			case solver.CallSums:
				want.Of = solver.Pass{Index: 9, First: 7, Sweeps: 1}
				_, err = b.Sums(ctx, want.Of)
			case solver.CallCopyEdge:
				err = b.CopyEdge(ctx, solver.Top, rows)
			case solver.CallSetHalo:
				err = b.SetHalo(ctx, solver.Bottom, rows)
			case solver.CallCopyRows:
				err = b.CopyRows(ctx, solver.Stripe{Lo: 1, Hi: 4}, rows)
			case solver.CallUndo:
				err = b.Undo()
			}
			var got *solver.OrderError
			if !errors.As(err, &got) || *got != *want {
				t.Errorf("%v after %v: error %v, want %v", call, after, err, want)
			}
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(solver.CallLoad, solver.CallCopyEdge, solver.CallSetHalo, solver.CallSums, solver.CallUndo)
	first := solver.Pass{Sweeps: 2, Margin: 1}
	ok(b.Interior(ctx, first))
	newest = first
	refused(solver.CallInterior, solver.CallCopyEdge, solver.CallSums)
	ref.Sweep()
	ref.Sweep()
	ok(r.equal(ref.Rows))

	second := solver.Pass{Index: 1, First: 2, Sweeps: 1}
	ok(b.Edges(ctx, second))
	newest = second
	refused(solver.CallEdges, solver.CallEdges, solver.CallInterior, solver.CallSums, solver.CallSetHalo,
		solver.CallUndo)
	ok(b.Interior(ctx, second))
	if _, err := b.Sums(ctx, first); (err == nil) != (lag > 0) {
		t.Errorf("the sums of the pass before the newest, with a lag of %d: %v", lag, err)
	}
	ref.Sweep()
	ok(r.equal(ref.Rows))

	ok(b.Undo())
	newest = solver.Pass{}
	refused(solver.CallUndo, solver.CallUndo, solver.CallSums, solver.CallCopyEdge, solver.CallSetHalo)
	ok(b.Interior(ctx, second))
	ok(r.equal(ref.Rows))
	ok(b.Load(ctx, r.field))
	refused(solver.CallLoad, solver.CallUndo, solver.CallSums)
}

// runNotLoaded checks that a backend refuses everything before the first Load.
func runNotLoaded(t *testing.T, factory Factory) {
	l := solver.Layout{Mesh: solver.Mesh{NX: 9, NY: 10, DType: solver.Float64}, Stripe: solver.Stripe{Lo: 1, Hi: 9},
		Depth: 1}
	b, err := factory(l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, p := t.Context(), solver.Pass{Sweeps: 1}
	for call, err := range map[solver.Call]error{
		solver.CallEdges: b.Edges(ctx, p), solver.CallInterior: b.Interior(ctx, p), solver.CallUndo: b.Undo(),
		solver.CallCopyRows: b.CopyRows(ctx, l.Stripe, make([]byte, 8*l.Mesh.RowBytes())),
	} {
		var got *solver.OrderError
		if !errors.As(err, &got) || got.Call != call || got.After != solver.CallNew {
			t.Errorf("%v before Load: error %v", call, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
