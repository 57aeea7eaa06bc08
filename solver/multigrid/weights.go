package multigrid

// Sweeps is the number of weighted sweeps before, and again after, the correction from the coarser level.
const Sweeps = 4

// Weights returns the weights of the sweeps before the correction; those after it are the same, reversed. They are the
// roots of the Chebyshev polynomial of the fourth kind, w_j = 1/(1 - cos(2 pi j/(2k+1))), j = 1..k, for k = Sweeps and
// eigenvalues up to 2 (J. Lottes, "Optimal polynomial smoothers for multigrid V-cycles", Numerical Linear Algebra with
// Applications 30, 2023).
func Weights() [Sweeps]float64 {
	return [Sweeps]float64{4.2743160852065145, 1.2101383127306031, 0.6666666666666667, 0.5155456020628817}
}
