package backendtest

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

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
	r := openAlone(t, factory)
	ctx, cancel := context.WithCancelCause(t.Context())
	b := r.backends[0]
	rows := make([]byte, 3*r.mesh.RowBytes())
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s is not refused", what)
		}
	}
	pass := solver.Pass{Sweeps: 1}
	refused("a pass deeper than the halo", b.Interior(ctx, solver.Pass{Sweeps: 4}))
	refused("a pass that reads beyond the halo", b.Interior(ctx, solver.Pass{Sweeps: 2, Margin: 2}))
	refused("a pass of no sweeps", b.Interior(ctx, solver.Pass{}))
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

// openAlone opens a backend that is its own neighbour, with halos of three rows.
func openAlone(t *testing.T, factory Factory) *ranks {
	t.Helper()
	mesh := solver.Mesh{NX: 40, NY: 42, DType: solver.Float32, Walls: solver.WrapRows(true)}
	c := Case{Mesh: mesh, Ranks: 1, Depth: 3}
	f := newField(c.Mesh, 1)
	r, err := open(c, f, solver.Operator{}, factory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}
