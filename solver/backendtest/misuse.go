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

// failing is values of points and a set of fixed points that cannot be read.
type failing struct{}

var errFailing = errors.New("the file is gone")

func (failing) ValueRow(int, solver.Value, []byte) error { return errFailing }
func (failing) FixedRow(int, []bool) error               { return errFailing }

// runUnreadable checks that Load returns the error of a source and of fixed points.
func runUnreadable(t *testing.T, factory Factory) {
	checkUnreadable(t, factory, solver.Operator{Scale: 0.5, Blend: 0.5, Values: failing{}},
		solver.Operator{Fixed: failing{}})
}

// runUnreadableWeights checks that Load returns the error of weights.
func runUnreadableWeights(t *testing.T, factory Factory) {
	checkUnreadable(t, factory, solver.Operator{Weighted: true, Values: failing{}})
}

// checkUnreadable checks that Load returns the error of each operator.
func checkUnreadable(t *testing.T, factory Factory, operators ...solver.Operator) {
	for _, op := range operators {
		c := Case{Mesh: solver.Mesh{NX: 40, NY: 40, DType: solver.Float32}, Ranks: 1, Depth: 3}
		r, err := open(c, newField(c.Mesh, 1), op, factory)
		if !errors.Is(err, errFailing) {
			t.Errorf("%+v: error %v, want that of the operator", op, err)
		}
		if r != nil {
			if err := r.close(); err != nil {
				t.Error(err)
			}
		}
	}
}
