package backendtest

import (
	"context"
	"encoding/binary"
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
				r, err := open(c, f, factory)
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

// runMisuse checks that a backend refuses calls out of order or out of range, and that a cancelled context ends a pass.
func runMisuse(t *testing.T, factory Factory) {
	c := Case{Mesh: solver.Mesh{NX: 40, NY: 40, DType: solver.Float32, Walls: solver.Walls{Top: solver.Periodic,
		Bottom: solver.Periodic}}, Ranks: 1, Depth: 3}
	f := newField(c.Mesh, 1)
	r, err := open(c, f, factory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	b := r.backends[0]
	rows := make([]byte, 3*c.Mesh.RowBytes())
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s was not refused", what)
		}
	}
	refused("Undo before a pass", b.Undo())
	refused("CopyEdge before Edges", b.CopyEdge(ctx, solver.Top, rows))
	refused("a pass deeper than the halo", b.Interior(ctx, solver.Pass{Sweeps: 4}))
	refused("a pass that reads beyond the halo", b.Interior(ctx, solver.Pass{Sweeps: 2, Margin: 2}))
	refused("a pass of no sweeps", b.Interior(ctx, solver.Pass{}))
	refused("edges with a margin", b.Edges(ctx, solver.Pass{Sweeps: 1, Margin: 1}))
	refused("a short halo", b.SetHalo(ctx, solver.Top, rows[1:]))
	refused("rows beyond the stripe", b.CopyRows(ctx, solver.Stripe{Lo: 0, Hi: 3}, rows))
	if err := b.Interior(ctx, solver.Pass{Sweeps: 1}); err != nil {
		t.Error(err)
	}
	if err := b.Undo(); err != nil {
		t.Error(err)
	}
	refused("a second Undo", b.Undo())
	cancel()
	refused("a cancelled pass", b.Interior(ctx, solver.Pass{Sweeps: 1}))
}
