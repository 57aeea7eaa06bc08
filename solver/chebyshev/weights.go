package chebyshev

import (
	"math"

	"jacobi/internal/elementary"
	"jacobi/solver"
)

// Weights returns the weights of a cycle of k sweeps, a power of two, for eigenvalues of 1-J from least to largest: the
// inverse roots of the Chebyshev polynomial of degree k on that interval,
//
//	1/w = (largest+least)/2 - (largest-least)/2 cos(pi o/(2k))    o = 1, 3, .. 2k-1
//
// in the order of Lebedev and Finogenov, in which the partial products of the iteration stay small (V. I. Lebedev and
// S. A. Finogenov, "The order of choice of the iteration parameters in the cyclic Chebyshev iteration method", 1971).
// They are the same on every processor.
func Weights(least, largest float64, k int) []float64 {
	weights := make([]float64, k)
	for i, o := range order(k) {
		c := elementary.Cos(float64(math.Pi*float64(o)) / float64(2*k))
		weights[i] = 1 / (float64((largest+least)/2) - float64((largest-least)/2*c))
	}
	return weights
}

// order returns the odd numbers below 2k in the order of Lebedev and Finogenov.
func order(k int) []int {
	o := []int{1}
	for m := 1; m < k; m *= 2 {
		next := make([]int, 0, 2*m)
		for _, v := range o {
			next = append(next, v, 4*m-v)
		}
		o = next
	}
	return o
}

// Least returns the least eigenvalue of 1-J for the general operator with weights h and q on a mesh whose slowest modes
// along a row and a column have 1 - cos(theta) of sx and sy (see Slowest). It is at most 0 only if nothing determines a
// constant.
func Least(h, q, sx, sy float64) float64 {
	return 1 - float64(2*h) + float64(2*h*float64(float64((1-q)*sx)+float64(q*sy)))
}

// Slowest returns 1 - cos(theta) of the slowest mode between two walls that are n intervals apart.
func Slowest(n int, low, high solver.Wall) float64 {
	theta := math.Pi / float64(n)
	switch {
	case low == solver.Periodic, low == solver.Neumann && high == solver.Neumann:
		return 0
	case low == solver.Neumann || high == solver.Neumann:
		theta /= 2
	}
	s := elementary.Sin(theta / 2)
	return float64(2 * float64(s*s))
}
