package cuda

import (
	"testing"

	"jacobi/solver"
	"jacobi/solver/backendtest"
)

// The backend, with its kernels on the CPU, passes some cases of the conformance suite, with all parts of an operator
// and all walls among them. So what Go tells the kernels is compared with the oracle without a GPU.
func TestSweepsOnFibers(t *testing.T) {
	d := emulatedAlone(t)
	kind := backendtest.Kind{Name: "fibers", Open: func(l solver.Layout) (solver.Backend, error) {
		return New(d, l, Options{})
	}}
	for _, cases := range [][]backendtest.Case{
		every(17, backendtest.Cases()), every(29, backendtest.OperatorCases()), every(11, backendtest.WeightedCases()),
		every(7, backendtest.NormCases()),
	} {
		for _, c := range cases {
			t.Run(c.String(), func(t *testing.T) { backendtest.RunCase(t, c, kind) })
		}
	}
}

// every returns every n-th case.
func every(n int, cases []backendtest.Case) (some []backendtest.Case) {
	for i := 0; i < len(cases); i += n {
		some = append(some, cases[i])
	}
	return some
}
