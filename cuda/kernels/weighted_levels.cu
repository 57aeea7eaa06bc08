// The kernels of a weighted operator's levels: a module of its own, which only runs that need it load.
#include "pass.cuh"
#include "weighted_coarsest.cuh"
#include "weighted_products.cuh"
#include "weighted_setup.cuh"
#include "weighted_sweeps.cuh"

#define POINTS(name, type) KERNEL(kPointThreads, 1) name(const __grid_constant__ WeightedArg<type> a)

POINTS(weighted_load, double) { load_point(a); }
POINTS(weighted_interpolate_f64, double) { interpolate_point<true>(a); }
POINTS(weighted_interpolate_f32, float) { interpolate_point<false>(a); }
POINTS(weighted_coarsen_f64, double) { coarsen_point<true>(a); }
POINTS(weighted_coarsen_f32, float) { coarsen_point<false>(a); }
POINTS(weighted_scale_f32, float) { scale_point(a); }
POINTS(weighted_complete_f32, float) { complete_point(a); }
POINTS(weighted_transfer_f64, double) { transfer_point<true>(a); }
POINTS(weighted_transfer_f32, float) { transfer_point<false>(a); }

POINTS(weighted_sweep_f64, double) { sweep_point(a); }
POINTS(weighted_sweep_f32, float) { sweep_point(a); }
POINTS(weighted_restrict_f64, double) { restrict_point(a); }
POINTS(weighted_restrict_f32, float) { restrict_point(a); }
POINTS(weighted_correct_f64, double) { correct_point(a); }
POINTS(weighted_correct_f32, float) { correct_point(a); }
KERNEL(kNormThreads, 1) weighted_norm(const __grid_constant__ WeightedArg<double> a) { add_squares(a); }

KERNEL(kWarp, 1) weighted_coarsest(const __grid_constant__ Factors f) { FactorWarp(f, threadIdx.x).solve(); }
KERNEL(kProductThreads, 1) weighted_products(const __grid_constant__ ProductArg a) { add_products(a); }
