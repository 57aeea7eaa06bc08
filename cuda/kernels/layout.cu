// The numbers that the kernels share with Go, as variables. ../layout_test.go reads them from the PTX of this file and
// compares them with Go's. They are no part of the module that a run loads.
#include <cstddef>

#include "exchange.cu"
#include "sum.cuh"
#include "terms.cuh"

// clang-format off
#define NUMBER(name, value) extern "C" __device__ int name = value;
#define FIELD(type, name, field) NUMBER(type##_##name, offsetof(type##Layout, field))

using PassLayout = Pass<float>;
static_assert(sizeof(Pass<float>) == sizeof(Pass<double>), "both types have one layout");
FIELD(Pass, now, now) FIELD(Pass, next, next) FIELD(Pass, sums, sums) FIELD(Pass, bias_0, bias[0])
FIELD(Pass, bias_1, bias[1]) FIELD(Pass, bias_2, bias[2]) FIELD(Pass, pitch, pitch) FIELD(Pass, nx, nx)
FIELD(Pass, rowLo, rowLo) FIELD(Pass, rowHi, rowHi) FIELD(Pass, outLo, outLo) FIELD(Pass, outHi, outHi)
FIELD(Pass, countLo, countLo) FIELD(Pass, countHi, countHi) FIELD(Pass, fixTop, fixTop)
FIELD(Pass, fixBottom, fixBottom) FIELD(Pass, sweeps, sweeps) FIELD(Pass, depth, depth) FIELD(Pass, awaited, awaited)
FIELD(Pass, posted, posted) FIELD(Pass, sides_0_came, sides[0].came) FIELD(Pass, sides_0_to, sides[0].to)
FIELD(Pass, sides_0_theirs, sides[0].theirs) FIELD(Pass, sides_0_rows, sides[0].rows)
FIELD(Pass, sides_1_came, sides[1].came) FIELD(Pass, sides_1_to, sides[1].to)
FIELD(Pass, sides_1_theirs, sides[1].theirs) FIELD(Pass, sides_1_rows, sides[1].rows)
FIELD(Pass, cut_tileRows, cut.tileRows) FIELD(Pass, cut_seam, cut.seam) FIELD(Pass, cut_edge, cut.edge)
FIELD(Pass, cut_innerRows, cut.innerRows) FIELD(Pass, cut_outerRows, cut.outerRows)
NUMBER(Pass_size, sizeof(PassLayout))

using TermsLayout = Terms<float>;
static_assert(sizeof(Terms<float>) == sizeof(Terms<double>) && offsetof(Terms<float>, blend) ==
              offsetof(Terms<double>, blend), "both types have one layout");
FIELD(Terms, fixed, fixed) FIELD(Terms, busy, busy) FIELD(Terms, words, words) FIELD(Terms, groups, groups)
FIELD(Terms, left, left) FIELD(Terms, right, right) FIELD(Terms, top, top) FIELD(Terms, bottom, bottom)
FIELD(Terms, copies, copies) FIELD(Terms, sourcePitch, sourcePitch) FIELD(Terms, source, source)
FIELD(Terms, scale, scale) FIELD(Terms, blend, blend)
NUMBER(Terms_size, sizeof(TermsLayout))
static_assert(sizeof(FixedPass<float>) == sizeof(PassLayout) + sizeof(TermsLayout), "terms follow the pass");
static_assert(sizeof(SourcePass<double>) == sizeof(Pass<double>) + sizeof(Terms<double>), "terms follow the pass");
static_assert(sizeof(WeightedPass<float>) == sizeof(SourcePass<float>), "both have the same terms");

using PushLayout = Push;
FIELD(Push, sides_0_from, sides[0].from) FIELD(Push, sides_0_to, sides[0].to) FIELD(Push, sides_0_came, sides[0].came)
FIELD(Push, sides_0_room, sides[0].room) FIELD(Push, sides_0_blocks, sides[0].blocks)
FIELD(Push, sides_1_from, sides[1].from) FIELD(Push, sides_1_to, sides[1].to) FIELD(Push, sides_1_came, sides[1].came)
FIELD(Push, sides_1_room, sides[1].room) FIELD(Push, sides_1_blocks, sides[1].blocks) FIELD(Push, units, units)
FIELD(Push, number, number)
NUMBER(Push_size, sizeof(Push))

using AwaitLayout = Await;
FIELD(Await, came_0, came[0]) FIELD(Await, came_1, came[1]) FIELD(Await, number, number)
NUMBER(Await_size, sizeof(Await))

NUMBER(const_GroupRows, kGroupRows)
NUMBER(const_GroupColumns, kGroupColumns)
NUMBER(const_Limbs, kLimbs)
NUMBER(const_LimbBits, kLimbBits)
NUMBER(const_UnitBits, kUnitBits)
NUMBER(const_SumWords, kSumWords)
NUMBER(const_LowBits, kLowBits)
NUMBER(const_BadWord, kBadWord)
NUMBER(const_WeightedValues, kWeightedValues)

#define DEEP(name, shape) \
  NUMBER(name##_columns, shape.columns) NUMBER(name##_levels, shape.levels) NUMBER(name##_step, shape.step) \
  NUMBER(name##_warps, shape.warps)
DEEP(sweep_f32, kSweepF32) DEEP(sweep_f64, kSweepF64) DEEP(deep_f64, kDeepF64)
DEEP(bare_f32, kBareF32) DEEP(bare_f64, kBareF64)
DEEP(sweep_fixed_f32, kFixedF32) DEEP(sweep_fixed_f64, kFixedF64)
DEEP(sweep_source_f32, kSourceF32) DEEP(sweep_source_f64, kSourceF64)
DEEP(sweep_weighted_f32, kWeightedF32) DEEP(sweep_weighted_f64, kWeightedF64)

#define HELD(name, shape) NUMBER(name##_rows, shape.rows) NUMBER(name##_warps, shape.warps)
HELD(held24_f32, kHeld24F32) HELD(held16_f32, kHeld16F32) HELD(held8_f64, kHeld8F64)

NUMBER(once_threads, kOnceThreads) NUMBER(once_columns, kOnceColumns)
