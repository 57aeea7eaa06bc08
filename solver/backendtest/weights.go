package backendtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"jacobi/solver"
)

// WeightCases returns those OperatorCases that may have weights, in which a plain sweep comes before every five
// weighted ones.
func WeightCases() []Case {
	var cases []Case
	for _, c := range OperatorCases() {
		if c.Mesh.DType == solver.Float64 && (c.General || c.Source) {
			c.Weights = solver.Weights{0, 0.625, 3.7, 0.515, 1.25, 8.1}
			cases = append(cases, c)
		}
	}
	return cases
}

// runMixed checks that a pass of both kinds of sweeps, one of the wrong kind, and the sums of a weighted pass are
// refused.
func runMixed(t *testing.T, factory Factory) {
	c := Case{Mesh: solver.Mesh{NX: 20, NY: 20, DType: solver.Float64}, Update: Update{General: true}, Ranks: 1,
		Depth: 2, Weights: solver.Weights{0, 2, 3, 4}}
	f := newField(c.Mesh, 1)
	r, err := open(c, f, newOperator(c, 1), factory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, b := context.Background(), r.backends[0]
	for _, p := range []solver.Pass{
		{First: 0, Sweeps: 2}, {First: 0, Sweeps: 1, Weighted: true}, {First: 1, Sweeps: 1},
		{First: 3, Sweeps: 2, Weighted: true},
	} {
		if err := b.Interior(ctx, p); err == nil || !strings.Contains(err.Error(), "cannot be mixed") {
			t.Errorf("%+v: error %v", p, err)
		}
	}
	p := solver.Pass{First: 1, Sweeps: 2, Weighted: true}
	if err := b.Interior(ctx, p); err != nil {
		t.Fatal(err)
	}
	_, err = b.Sums(ctx, p)
	if _, ok := errors.AsType[*solver.OrderError](err); !ok {
		t.Errorf("Sums of a weighted pass: %v", err)
	}
}
