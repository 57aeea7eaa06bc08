package multigrid

import (
	"math"

	"jacobi/internal/elementary"
	"jacobi/solver/chebyshev"
)

// Sweeps is the number of weighted sweeps before, and again after, the correction from the coarser level.
const Sweeps = 4

// Weights returns the weights of the sweeps before the correction; those after it are the same, reversed. They are the
// roots of the Chebyshev polynomial of the fourth kind, w_j = 1/(1 - cos(2 pi j/(2k+1))), j = 1..k, for k = Sweeps and
// eigenvalues up to 2 (J. Lottes, "Optimal polynomial smoothers for multigrid V-cycles", Numerical Linear Algebra with
// Applications 30, 2023).
func Weights() [Sweeps]float64 {
	return [Sweeps]float64{4.2743160852065145, 1.2101383127306031, 0.6666666666666667, 0.5155456020628817}
}

// damping is what the sweeps on the coarsest level leave of an error, at most: one part in 100.
const damping = 200 // 2/eps

// coarsest returns Plan.Coarsest for the coarsest level: the weights of Chebyshev's iteration for the eigenvalues of
// that level, K = 2^m >= sqrt(kappa)/2 ln(2/eps) of them.
func (e equation) coarsest(x, y count) []float64 {
	rho, d := e.at(x, y)
	h, q := (1+rho)/d, rho/(1+rho)
	least := chebyshev.Least(h, q, chebyshev.Slowest(x.n, e.walls.Left, e.walls.Right),
		chebyshev.Slowest(y.n, e.walls.Top, e.walls.Bottom))
	if least <= 0 { // points inside the mesh are fixed, and no walls
		least = 1 / float64(4*x.n*y.n)
	}
	largest := 1 + float64(2*h)
	k := 1
	for float64(k) < math.Sqrt(largest/least)/2*elementary.Log(damping) && k < maxCoarsest {
		k *= 2
	}
	weights := chebyshev.Weights(least, largest, k)
	for i, w := range weights {
		weights[i] = float64(float32(w))
	}
	return weights
}

// maxCoarsest bounds the sweeps on the coarsest level.
const maxCoarsest = 1 << 16
