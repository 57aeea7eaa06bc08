// The kernels of a weighted operator's levels: a module of its own, which only runs that need it load.
#include "multigrid_coarsest.cuh"
#include "pass.cuh"
#include "weighted_down.cuh"
#include "weighted_nine.cuh"
#include "weighted_products.cuh"
#include "weighted_sets.cuh"
#include "weighted_setup.cuh"
#include "weighted_tile.cuh"

#define POINTS(name, type) KERNEL(kPointThreads, 1) name(const __grid_constant__ WeightedArg<type> a)

KERNEL(kPointThreads, 1) weighted_assemble(const __grid_constant__ Assembly a) { assemble_point(a); }
POINTS(weighted_load, double) { load_point(a); }
KERNEL(kPointThreads, 2) weighted_coarsen_f64(const __grid_constant__ WeightedArg<double> a) { coarsen_point<true>(a); }
KERNEL(kPointThreads, 2) weighted_coarsen_f32(const __grid_constant__ WeightedArg<float> a) { coarsen_point<false>(a); }
POINTS(weighted_scale_f32, float) { scale_point(a); }
POINTS(weighted_complete_f32, float) { complete_point(a); }
POINTS(weighted_transfer_f64, double) { transfer_point<true>(a); }
POINTS(weighted_transfer_f32, float) { transfer_point<false>(a); }

POINTS(weighted_restrict_f32, float) { restrict_point(a); }

KERNEL(kPipeThreads, kPipeBlocks) weighted_down_f64(const __grid_constant__ WeightedArg<double> a) {
  sweep_rows<false>(a);
}
KERNEL(kPipeThreads, kPipeBlocks) weighted_up_f64(const __grid_constant__ WeightedArg<double> a) {
  sweep_rows<true>(a);
}
KERNEL(kPipeThreads, kPipeBlocks) weighted_down_rows_f32(const __grid_constant__ WeightedArg<float> a) {
  sweep_nine<false>(a);
}
KERNEL(kPipeThreads, kPipeBlocks) weighted_up_rows_f32(const __grid_constant__ WeightedArg<float> a) {
  sweep_nine<true>(a);
}
KERNEL(kTileThreads, kTileBlocks) weighted_down_f32(const __grid_constant__ WeightedArg<float> a) {
  sweep_tile<false>(a);
}
KERNEL(kTileThreads, kTileBlocks) weighted_up_f32(const __grid_constant__ WeightedArg<float> a) { sweep_tile<true>(a); }

KERNEL(kProductThreads, 2) weighted_products(const __grid_constant__ ProductArg a) { add_products(a); }
KERNEL(kStepThreads, 4) weighted_step(const __grid_constant__ Step a) { step_columns(a); }

KERNEL(kPointThreads, 1) sets_restrict_points(const __grid_constant__ PointSets a) { restrict_points(a); }
KERNEL(kPointThreads, 1) sets_correct_points(const __grid_constant__ PointSets a) { correct_point(a); }

#define SETS(name) KERNEL(kSetThreads, 1) name(const __grid_constant__ Sets a)

SETS(sets_begin) { begin_sets(a); }
SETS(sets_restrict) { restrict_sets(a); }
SETS(sets_correct) { correct_sets(a); }
SETS(sets_sweep) { sweep_sets(a); }
SETS(sets_first) { sum_chunk(a.level, FirstTerms{a.level}, kSetSums); }
SETS(sets_reduce) { sum_chunk(a.level, ReduceTerms{a.level, a.step->t}, 1); }
SETS(sets_second) { sum_chunk(a.level, SecondTerms{a.level}, kSetSums); }
SETS(sets_total_first) { total_sets<0>(a); }
SETS(sets_total_reduced) { total_sets<1>(a); }
SETS(sets_total_second) { total_sets<2>(a); }
SETS(sets_combine) { combine_sets(a); }
KERNEL(kFewThreads, 1) sets_few(const __grid_constant__ FewSets a) { solve_few(a); }
