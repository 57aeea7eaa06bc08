// The kernels for sweeps with weights, as a module of their own. Plain sweeps of such a run are those with terms.
#define TERMS
#include "sweep_deep.cu"
#include "sweep_once.cu"

using Weighted = WeightedPass<double, false>;
using WeightedSource = WeightedPass<double, true>;

SWEEP(sweep_weighted_f64, Weighted, kFixedF64)
SWEEP(sweep_weighted_source_f64, WeightedSource, kSourceF64)

ONCE(once_weighted_f64, Weighted, 3)
ONCE(once_weighted_source_f64, WeightedSource, 2)
