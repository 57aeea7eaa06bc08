// The kernels with terms, as a module of their own: a run that needs none of them neither loads nor compiles them.
#define TERMS
#include "exchange.cu"
#include "sweep_deep.cu"
#include "sweep_once.cu"

SWEEP(sweep_fixed_f32, FixedPass<float>, kFixedF32)
SWEEP(sweep_fixed_f64, FixedPass<double>, kFixedF64)
SWEEP(sweep_source_f32, SourcePass<float>, kSourceF32)
SWEEP(sweep_source_f64, SourcePass<double>, kSourceF64)

ONCE(once_fixed_f32, FixedPass<float>, 4)
ONCE(once_fixed_f64, FixedPass<double>, 3)
ONCE(once_source_f32, SourcePass<float>, 3)
ONCE(once_source_f64, SourcePass<double>, 2)
