// How the warps of a pipeline hand rows to each other: rings of rows in shared memory, and the barriers between
// neighbours.
#pragma once
#include "row.cuh"

// Slot holds a row of a strip in shared memory. Part p of a lane's columns, 16 bytes, is the (32*p + lane)-th part of
// the slot, so that the lanes of a warp use all banks.
template <class Real, int W> struct Slot {
  static constexpr int kParts = W / kPer16<Real>;
  static constexpr int kBytes = kParts * kWarp * 16;
  static __device__ __forceinline__ char* part(char* slot, int p, int lane) { return slot + (kWarp * p + lane) * 16; }
  static __device__ __forceinline__ Row<Real, W> take(char* slot, int lane) {
    Row<Real, W> r;
#pragma unroll
    for (int p = 0; p < kParts; p++) load16(r.v + p * kPer16<Real>, (const Real*)part(slot, p, lane));
    return r;
  }
  static __device__ __forceinline__ void give(char* slot, int lane, const Row<Real, W>& r) {
#pragma unroll
    for (int p = 0; p < kParts; p++) store16((Real*)part(slot, p, lane), r.v + p * kPer16<Real>);
  }
};

// Place is the place of a thread: its lane, its warp among those of a pipeline, and its pipeline among those of a
// block.
struct Place {
  int lane, warp, warps, pipe, pipes;
  __device__ __forceinline__ bool first() const { return warp == 0; }
  __device__ __forceinline__ bool last() const { return warp == warps - 1; }
};

// Neighbours are the barriers at which a warp of a pipeline meets the warps before and behind it.
//
// A block has 16 barriers, too few for one between every two warps. So each warp of an even number shares one with the
// two warps behind it. PAIRS compiles one for every two warps, for one pipeline a block: that orders less, and
// racecheck can check it, whereas it reports hazards wherever three warps meet at a barrier (../bench/sanitize.sh).
struct Neighbours {
#ifdef PAIRS
  static constexpr int kBefore = 2 * kWarp;
#else
  static constexpr int kBefore = 3 * kWarp;
#endif
  int behind, before;  // barriers; 0: none
  bool pair;           // two warps meet at the barrier behind, not three

  __device__ __forceinline__ explicit Neighbours(const Place& at) {
#ifdef PAIRS
    before = at.warp;
    behind = at.last() ? 0 : at.warp + 1;
    pair = true;
#else
    const int base = 1 + at.pipe * (at.warps / 2);
    before = at.warp & 1 || at.first() ? 0 : base + at.warp / 2 - 1;
    behind = !at.last() || at.warp & 1 ? base + at.warp / 2 : 0;
    pair = at.warps - (at.warp & ~1) == 2;
#endif
  }
  __device__ __forceinline__ void meet() const {
    if (before) ::meet<kBefore>(before);
    if (behind && pair) ::meet<2 * kWarp>(behind);
    if (behind && !pair) ::meet<3 * kWarp>(behind);
  }
};
