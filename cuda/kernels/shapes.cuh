// The shapes of the sweep kernels. Go has the same numbers in ../kernel.go; TestLayout compares them.
#pragma once

constexpr int kWarp = 32;       // threads of a warp
constexpr unsigned kAll = ~0u;  // all lanes of a warp

// DeepShape is the shape of a kernel in sweep_deep.cu.
struct DeepShape {
  int columns;  // a lane
  int levels;   // sweeps a warp
  int step;     // rows between two barriers
  int loop;     // rows that the loop is unrolled over
  int warps;    // most warps of a block
  constexpr int threads() const { return warps * kWarp; }
};

// HeldShape is the shape of a kernel in sweep_held.cu.
struct HeldShape {
  int rows;   // a warp
  int warps;  // most warps of a block: more would not find room for their rows in registers
  constexpr int threads() const { return warps * kWarp; }
};

#ifndef SHAPE_F32  // ../../bench/gpu/variants.sh compiles others
#define SHAPE_F32 8, 2, 2, 8, 24
#define SHAPE_F64 4, 2, 2, 8, 20
#endif
#ifndef SHAPE_BARE_F32
#define SHAPE_BARE_F32 8, 2, 2, 8, 24
#define SHAPE_BARE_F64 4, 4, 4, 8, 16
#endif
#ifndef SHAPE_FIXED_F32
#define SHAPE_FIXED_F32 8, 2, 2, 8, 24
#define SHAPE_FIXED_F64 4, 4, 4, 8, 12
#endif
#ifndef SHAPE_SOURCE_F32
#define SHAPE_SOURCE_F32 8, 2, 2, 8, 16
#define SHAPE_SOURCE_F64 4, 4, 4, 8, 12
#endif
#ifndef SHAPE_WEIGHTED_F32
#define SHAPE_WEIGHTED_F32 4, 4, 2, 4, 8
#define SHAPE_WEIGHTED_F64 4, 2, 1, 4, 8
#endif
constexpr DeepShape kSweepF32 = {SHAPE_F32};
constexpr DeepShape kSweepF64 = {SHAPE_F64};
constexpr DeepShape kDeepF64 = {4, 4, 4, 8, 12};  // for more than 8 sweeps
// Without norms, or with that of the last sweep alone.
constexpr DeepShape kBareF32 = {SHAPE_BARE_F32};
constexpr DeepShape kBareF64 = {SHAPE_BARE_F64};
// With terms (terms.cuh). The source takes room in shared memory, so fewer warps of more registers.
constexpr DeepShape kFixedF32 = {SHAPE_FIXED_F32};
constexpr DeepShape kFixedF64 = {SHAPE_FIXED_F64};
constexpr DeepShape kSourceF32 = {SHAPE_SOURCE_F32};
constexpr DeepShape kSourceF64 = {SHAPE_SOURCE_F64};
// Weighted points. Loops over fewer rows: with eight, instructions come too slowly for so few warps.
constexpr DeepShape kWeightedF32 = {SHAPE_WEIGHTED_F32};
constexpr DeepShape kWeightedF64 = {SHAPE_WEIGHTED_F64};

constexpr HeldShape kHeld24F32 = {24, 16};
constexpr HeldShape kHeld16F32 = {16, 20};  // fewer rows a warp suit lower meshes
constexpr HeldShape kHeld8F64 = {8, 16};

constexpr int kOnceThreads = 128, kOnceColumns = 4;  // of a block; a lane
