package backendtest

import (
	"errors"
	"testing"

	"jacobi/solver"
)

// failing is a source and a set of fixed points that cannot be read.
type failing struct{}

var errFailing = errors.New("the file is gone")

func (failing) SourceRow(int, []byte) error { return errFailing }
func (failing) FixedRow(int, []bool) error  { return errFailing }

// runUnreadable checks that Load returns the error of a source and of fixed points.
func runUnreadable(t *testing.T, factory Factory) {
	for _, op := range []solver.Operator{{Scale: 0.5, Blend: 0.5, Source: failing{}}, {Fixed: failing{}}} {
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
