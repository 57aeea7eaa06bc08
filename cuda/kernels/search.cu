// The kernels of conjugate gradients: a module of their own, which only runs that need it load.
#include "pass.cuh"
#include "search.cuh"

KERNEL(kProductWarps* kWarp, 3) search_products(const __grid_constant__ ProductSums a) { sum_products<false>(a); }
KERNEL(kProductWarps* kWarp, 3) search_products_source(const __grid_constant__ ProductSums a) { sum_products<true>(a); }
KERNEL(kStepThreads, 4) search_step(const __grid_constant__ Step a) { step_columns(a); }
