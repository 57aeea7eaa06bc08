// The kernels of weighted points, as a module of their own: a run that needs none of them neither loads nor compiles
// them.
#define TERMS
#include "exchange.cu"
#include "sweep_deep.cu"
#include "sweep_once.cu"

SWEEP(sweep_weighted_f32, WeightedPass<float>, kWeightedF32)
SWEEP(sweep_weighted_f64, WeightedPass<double>, kWeightedF64)

ONCE(once_weighted_f32, WeightedPass<float>, 3)
ONCE(once_weighted_f64, WeightedPass<double>, 2)
