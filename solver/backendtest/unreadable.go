package backendtest

import (
	"errors"
	"testing"

	"jacobi/solver"
)

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
