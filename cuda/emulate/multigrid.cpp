// The part of a CUDA driver that runs the kernels of sweeps, of multigrid and of conjugate gradients on fibers. The
// rest is the fake driver of ../driver/drivertest, in which these functions have other names.
#include <cstdio>
#include <cstdlib>

#include "../kernels/measure.cu"
#include "../kernels/multigrid.cu"
#include "../kernels/weighted_levels.cu"
#include "../kernels/zone.cu"
#define Part SweepPart  // ../kernels/multigrid_*.cuh have others of these names
#define Squares SweepSquares
#define Tile SweepTile
#include "../kernels/sweep_deep.cu"
#include "../kernels/sweep_held.cu"
#include "../kernels/sweep_once.cu"
#include "../kernels/terms.cu"
#include "../kernels/weighted.cu"
#undef Part
#undef Squares
#undef Tile
#include "streams.h"

namespace {

struct Kernel {
  const char* name;
  void (*run)(const void* argument);
  size_t size;         // of the argument
  int threads, bytes;  // of a block; 0 threads: any numbers
  int limit = 48 << 10;  // of the bytes, as cuFuncSetAttribute has set it last
};

template <class A, void (*kernel)(A)> void run(const void* argument) {
  A a;
  memcpy(&a, argument, sizeof a);
  kernel(a);
}

// The shapes and shared memory of the kernels, which Go computes too.
#define DOWN_KERNEL(name, type, shape, source, zero) \
  {#name, run<Smooth<type>, name>, sizeof(Smooth<type>), shape.warps* kWarp, \
   shape.warps*(Kind<type, shape.columns, source, zero, false, shape.ahead>::kBytes + kSumWords * 8)}
#define UP_KERNEL(name, type, shape, source) \
  {#name, run<Smooth<type>, name>, sizeof(Smooth<type>), shape.warps* kWarp, \
   shape.warps* Kind<type, shape.columns, source, false, true, shape.ahead>::kBytes}
#define TILE_KERNEL(way, name, type, shape, source, zero, up) \
  {"tile_" #way "_" #name, run<Smooth<type>, tile_##way##_##name>, sizeof(Smooth<type>), shape.warps* kWarp, \
   TileKind<type, shape.columns, shape.rows, shape.warps, source, zero, up>::kBytes}
#define TILE_KERNELS(name, type, shape, source, zero) \
  TILE_KERNEL(down, name, type, shape, source, zero, false), TILE_KERNEL(up, name, type, shape, source, false, true)

Kernel kernels[] = {
    DOWN_KERNEL(down_f64, double, kDownF64, false, false),
    DOWN_KERNEL(down_source_f64, double, kDownSourceF64, true, false),
    DOWN_KERNEL(down_f32, float, kDownF32, true, true),
    UP_KERNEL(up_f64, double, kUpF64, false),
    UP_KERNEL(up_source_f64, double, kUpSourceF64, true),
    UP_KERNEL(up_f32, float, kUpF32, true),
    TILE_KERNELS(f64, double, kTileF64, false, false),
    TILE_KERNELS(source_f64, double, kTileF64, true, false),
    TILE_KERNELS(f32, float, kTileF32, true, true),
    TILE_KERNELS(small_f32, float, kTileSmallF32, true, true),
    {"tail", run<Tail, tail>, sizeof(Tail), kTailThreads, 3 * kTailValues * 4},
    {"squares_f64", run<Measure, squares_f64>, sizeof(Measure), kMeasureThreads,
     kMeasureThreads / kWarp * kSumWords * 8},
    {"largest_f64", run<Measure, largest_f64>, sizeof(Measure), kMeasureThreads, 0},
    {"largest_f32", run<Measure, largest_f32>, sizeof(Measure), kMeasureThreads, 0},
    {"push_zones", run<Moves, push_zones>, sizeof(Moves), kMoveThreads, 0},
    {"take_zone", run<Moves, take_zone>, sizeof(Moves), kMoveThreads, 0},
#define POINT_KERNEL(name, type) \
  {"weighted_" #name, run<WeightedArg<type>, weighted_##name>, sizeof(WeightedArg<type>), kPointThreads, 0}
    {"weighted_assemble", run<Assembly, weighted_assemble>, sizeof(Assembly), kPointThreads, 0},
    POINT_KERNEL(load, double), POINT_KERNEL(scale_f32, float), POINT_KERNEL(complete_f32, float),
    POINT_KERNEL(restrict_f32, float),
#define SETUP_KERNEL(name, type, finest, more) \
  {"weighted_" #name, run<WeightedArg<type>, weighted_##name>, sizeof(WeightedArg<type>), kPointThreads, \
   FineValues<finest>::kBytes + more}
    SETUP_KERNEL(coarsen_f64, double, true, 9 * 8 * kPointThreads),
    SETUP_KERNEL(coarsen_f32, float, false, 9 * 8 * kPointThreads), SETUP_KERNEL(transfer_f64, double, true, 0),
    SETUP_KERNEL(transfer_f32, float, false, 0),
#define WEIGHTED_SWEEPS(name, type, threads, Shared) \
  {"weighted_" #name, run<WeightedArg<type>, weighted_##name>, sizeof(WeightedArg<type>), threads, sizeof(Shared)}
    WEIGHTED_SWEEPS(down_f64, double, kPipeThreads, PipeRings),
    WEIGHTED_SWEEPS(up_f64, double, kPipeThreads, PipeRings),
    WEIGHTED_SWEEPS(down_rows_f32, float, kPipeThreads, NineRings),
    WEIGHTED_SWEEPS(up_rows_f32, float, kPipeThreads, NineRings),
    WEIGHTED_SWEEPS(down_f32, float, kTileThreads, WeightedTile),
    WEIGHTED_SWEEPS(up_f32, float, kTileThreads, WeightedTile),
    {"sets_restrict_points", run<PointSets, sets_restrict_points>, sizeof(PointSets), kPointThreads, 0},
    {"sets_correct_points", run<PointSets, sets_correct_points>, sizeof(PointSets), kPointThreads, 0},
#define SETS_KERNEL(name) {"sets_" #name, run<Sets, sets_##name>, sizeof(Sets), kSetThreads, 0}
    SETS_KERNEL(begin), SETS_KERNEL(restrict), SETS_KERNEL(correct), SETS_KERNEL(sweep), SETS_KERNEL(first),
    SETS_KERNEL(reduce), SETS_KERNEL(second), SETS_KERNEL(total_first), SETS_KERNEL(total_reduced),
    SETS_KERNEL(total_second), SETS_KERNEL(combine),
    {"sets_few", run<FewSets, sets_few>, sizeof(FewSets), kFewThreads, 0},
    {"coarsest", run<Coarsest, coarsest>, sizeof(Coarsest), 0, 0},
    {"weighted_products", run<ProductArg, weighted_products>, sizeof(ProductArg), kProductThreads,
     sizeof(ProductRings)},
    {"weighted_step", run<Step, weighted_step>, sizeof(Step), kStepThreads, 0},
#define SWEEP_KERNEL(name, Pass) {#name, run<Pass, name>, sizeof(Pass), 0, 0}
#define SWEEP_KERNELS(type, Real)                                                                               \
  SWEEP_KERNEL(once_##type, Pass<Real>), SWEEP_KERNEL(sweep_##type, Pass<Real>),                                \
      SWEEP_KERNEL(bare_##type, BarePass<Real>), SWEEP_KERNEL(once_fixed_##type, FixedPass<Real>),              \
      SWEEP_KERNEL(sweep_fixed_##type, FixedPass<Real>), SWEEP_KERNEL(once_source_##type, SourcePass<Real>),    \
      SWEEP_KERNEL(sweep_source_##type, SourcePass<Real>),                                                      \
      SWEEP_KERNEL(once_weighted_##type, WeightedPass<Real>), SWEEP_KERNEL(sweep_weighted_##type, WeightedPass<Real>)
    SWEEP_KERNELS(f32, float), SWEEP_KERNELS(f64, double), SWEEP_KERNEL(deep_f64, Pass<double>),
    SWEEP_KERNEL(held24_f32, Pass<float>), SWEEP_KERNEL(held16_f32, Pass<float>),
    SWEEP_KERNEL(held8_f64, Pass<double>),
};

}  // namespace

extern "C" {

int cuModuleGetFunction(intptr_t* f, intptr_t, const char* name) {
  for (Kernel& k : kernels)
    if (!strcmp(k.name, name)) {
      *f = (intptr_t)&k;
      return 0;
    }
  return 500;
}

int cuFuncSetAttribute(intptr_t f, int, int bytes) {
  ((Kernel*)f)->limit = bytes;
  return bytes > 227 << 10;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, intptr_t, int, size_t) {
  *n = 1;
  return 0;
}

// EMULATED_SMS multiprocessors decide into how many parts a level is cut.
int cuDeviceGetAttribute(int* v, int attribute, int) {
  const char* const sms = getenv("EMULATED_SMS");
  const int h200[2] = {3201000, 6144};  // clock of the memory and width of its bus
  *v = attribute == 16 ? sms ? atoi(sms) : 2 : attribute == 97 ? 227 << 10 : attribute == 75 ? 9
     : attribute == 36 || attribute == 37 ? h200[attribute - 36] : 0;
  return 0;
}

int cuLaunchKernel(intptr_t f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned shared,
                   intptr_t stream, void** args, void**) {
  const Kernel* const k = (const Kernel*)f;
  if (k->threads && ((int)bx != k->threads || (int)shared != k->bytes)) {
    printf("%s: blocks of %u threads with %u bytes, want %d with %d\n", k->name, bx, shared, k->threads, k->bytes);
    return 1;
  }
  if ((int)shared > k->limit) return 1;
  const std::vector<char> argument((const char*)args[0], (const char*)args[0] + k->size);
  emulated::put(stream, [=] {
    static std::mutex one;  // kernel at a time, as all have the same fibers
    std::lock_guard<std::mutex> lock(one);
    fibers.run(gx, bx, shared, [&] { k->run(argument.data()); });
  });
  return 0;
}

}  // extern "C"
