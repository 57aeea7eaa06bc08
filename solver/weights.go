package solver

import (
	"errors"
	"fmt"
	"math"
)

// Weights are the weights of the sweeps of a run, which repeat: that of sweep s is Weights[s%len(Weights)]. A sweep
// with weight w replaces u by
//
//	d = J(u) - u    u = fma(w, d, u)
//
// where J is the general update (see Operator) and each operation is rounded once. It has no norm. The weight 0 marks a
// plain sweep, which has one. Weights without elements stand for plain sweeps alone.
type Weights []float64

// At returns the weight of a sweep.
func (w Weights) At(sweep int) float64 {
	if len(w) == 0 {
		return 0
	}
	return w[sweep%len(w)]
}

// Alike returns how many sweeps from the given one on are all plain or all weighted, at most n.
func (w Weights) Alike(sweep, n int) int {
	if len(w) == 0 {
		return n
	}
	for i := 1; i < n; i++ {
		if (w.At(sweep+i) != 0) != (w.At(sweep) != 0) {
			return i
		}
	}
	return n
}

// check returns an error for weights that no run with the operator o on values of type t can have.
func (w Weights) check(o Operator, t DType) error {
	switch {
	case len(w) == 0:
		return nil
	case o.Plain():
		return errors.New("weights: the general operator is needed")
	case t != Float64:
		return fmt.Errorf("weights: float64 is needed, not %v", t)
	}
	for i, v := range w {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("weights: weight %d is %v", i, v)
		}
	}
	return nil
}
