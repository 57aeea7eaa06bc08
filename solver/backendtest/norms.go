package backendtest

import (
	"context"
	"testing"

	"jacobi/solver"
)

// NormCases returns some of Cases and of OperatorCases with norms of some sweeps alone. Their passes have norms of no
// sweep, of the last one, and of others. Deep passes meet enough norms in two exchanges.
func NormCases() []Case {
	var cases []Case
	every := []int{2, 3, 4, 5, 7, 8, 16, 24}
	for i, c := range append(Cases(), OperatorCases()...) {
		if i%3 == 0 || c.Depth >= 12 {
			c.Norms, c.Passes = solver.EveryNth(every[i/3%len(every)]), 4
			if c.Depth >= 12 {
				c.Passes = 2
			}
			cases = append(cases, c)
		}
	}
	for _, t := range []solver.DType{solver.Float32, solver.Float64} {
		for _, n := range []int{8, 16, 32} {
			mesh := solver.Mesh{NX: 333, NY: 70, DType: t, Walls: solver.WrapRows(true)}
			cases = append(cases, Case{Mesh: mesh, Ranks: 2, Depth: 16, Passes: 4, Norms: solver.EveryNth(n)})
		}
		cases = append(cases,
			Case{Mesh: solver.Mesh{NX: 260, NY: 90, DType: t}, Ranks: 3, Depth: 12, Passes: 4,
				Norms: solver.EveryNth(24)},
			Case{Mesh: solver.Mesh{NX: 140, NY: 40, DType: t}, Ranks: 1, Depth: 1, Passes: 6,
				Norms: solver.EveryNth(3)})
	}
	return cases
}

// runNoNorms checks that a pass without norms has no sums.
func runNoNorms(t *testing.T, factory Factory) {
	c := Case{Mesh: solver.Mesh{NX: 20, NY: 20, DType: solver.Float64}, Ranks: 1, Depth: 2, Norms: solver.EveryNth(3)}
	r, err := open(c, newField(c.Mesh, 1), newOperator(c, 1), factory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	p := solver.Pass{Sweeps: 2}
	if err := r.backends[0].Interior(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	if sums, err := r.backends[0].Sums(context.Background(), p); err != nil || len(sums) > 0 {
		t.Errorf("Sums of a pass without norms: %v, %v", sums, err)
	}
}
