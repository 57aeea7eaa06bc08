// Four sweeps of a large coarser level of a weighted operator in one pass over memory, as weighted_pipe.cuh has them
// for level 0. Stencils have nine points here, so sweep k computes row t - 2k at the step of row t: what it reads of
// the row below was made in the step before.
#pragma once
#include "weighted_pipe.cuh"

constexpr int kNineTurn = 12;                        // rows that the loop is unrolled over, and of the long rings
constexpr int kNineLag = 2 * kSmooth + 3;            // a row is restricted that many steps after its own
constexpr int kNineLines = kPipeMost + kPipeRows + 2 * kNineTurn + kPipeAhead;
static_assert(kNineLag < kNineTurn, "a row is overwritten when nothing reads it any more");

// NineRings is the shared memory of a block. Neighbours beyond its columns are never set: what they reach is not used.
// Row t + kPipeAhead of u and q comes at the step of row t, of the other arrays row t.
struct NineRings {
  enum { kB, kEast, kSouth, kSouthEast, kSouthWest, kLong };
  static constexpr int kShort = 4;
  float of[kLong][kNineTurn][kPipeThreads], u[kShort][kPipeThreads], q[kShort][kPipeThreads];
  static constexpr int kSlots = 3;  // for the row in use and those under way
  PipeTransfers transfers[kSlots];
  PipePlaces places;
  float swept[2][kSmooth][kPipeThreads + 2];  // of this step and the one before: what the sweeps made
  float defects[2][kPipeThreads + 2];
  Line before[kNineTurn], lines[kNineLines];  // of the rows; `next` is what the restriction does there
};

// sweep_nine does the sweeps of one way.
template <bool kUp> __device__ __forceinline__ void sweep_nine(const WeightedArg<float>& a) {
  DYNAMIC_SHARED(shared);
  using R = NineRings;
  R& rings = *(R*)shared;
  constexpr int kShort = R::kShort;
  static_assert(kPipeWarps == R::kLong + 3, "a warp for each array, and for each column of P'");
  const int thread = threadIdx.x, lane = thread % kWarp, warp = thread / kWarp;
  const PipeBlock<float, kUp> block(a, rings.places);
  const int begins = block.top - kPipeRows, ends = block.hi + (kUp ? 2 * kSmooth : kNineLag + 1);
  const int west = thread ? -1 : 0, east = thread + 1 < kPipeThreads ? 1 : 0;
  block.find_lines(rings.before, rings.lines);
  const Line* lines = rings.lines;  // of the rows of a turn
  PipeRestriction<float> restriction(a, block.left);
  const float* const array = warp == R::kB ? a.b : warp == R::kEast ? a.east : warp == R::kSouth ? a.south
                             : warp == R::kSouthEast ? a.southEast : a.southWest;
  // fetch begins to load row i of a turn, and what comes later row i - kPipeAhead, into the rings.
  const auto fetch = [&](int i) {
    const int row = lines[i].at, at = (i - kPipeAhead + kNineTurn) % kNineTurn;
    const int own = opaque(lane);  // lest addresses of all rows take registers
    if (warp < R::kLong) block.copy(rings.of[warp][at], array, lines[i - kPipeAhead].at, own);
    else block.copy_transfers(rings.transfers[i % R::kSlots], lines[kUp ? i : i - kNineLag], warp - R::kLong, own);
    if (warp == 0) block.copy(rings.q[i % kShort], a.centre, row, own);
    if (warp == 1) block.copy(rings.u[i % kShort], a.from, a.from ? row : kNone, own);
    copies_commit();
  };
  const PipeCorrection correction(a, block.x, block.coarseLeft);
  // By row mod kNineTurn: q, and what sweep k reads in the thread's column and beside it.
  float q[kNineTurn] = {}, u[kSmooth + 1][kNineTurn] = {};
  RowEnds beside[kSmooth + 1][kNineTurn] = {};
  __syncthreads();
  for (int i = 0; i < kPipeAhead; i++) fetch(i);
  copies_wait<kPipeAhead - 1>();
  __syncthreads();
#pragma unroll 1
  for (int begin = begins; begin < ends; begin += kNineTurn, lines += kNineTurn) {
#pragma unroll
    for (int i = 0; i < kNineTurn; i++) {
      const auto at = [&](int rows) { return (i - rows + kNineTurn) % kNineTurn; };  // row t - rows
      fetch(i + kPipeAhead);
      q[i] = rings.q[i % kShort][thread], u[0][i] = rings.u[i % kShort][thread];
      if (kUp && q[i] > 0)
        rings.u[i % kShort][thread] = u[0][i] = u[0][i] + correction.in(lines[i], rings.transfers[i % R::kSlots]);
      const auto defect = [&](int k) {  // of row t - 2k, for what sweep k reads; the sweep after the last one is k = 5
        const int row = at(2 * k), above = at(2 * k + 1), below = at(2 * k - 1);
        const auto c = [&](int array, int row, int by) { return rings.of[array][row][thread + by]; };
        const float* const next = k == 1 ? rings.u[(i + kShort - 1) % kShort] + thread
                                         : &rings.swept[(i + 1) % 2][k - 2][1 + thread];
        const auto& v = u[k - 1];
        auto& ends = beside[k - 1];
        ends[below] = {next[k == 1 ? west : -1], next[k == 1 ? east : 1]};
        float t = fused(c(R::kSouthWest, row, 0), ends[below].west,
                        fused(c(R::kSouthEast, row, 0), ends[below].east, c(R::kB, row, 0)));
        t = fused(c(R::kSouthEast, above, west), ends[above].west,
                  fused(c(R::kSouthWest, above, east), ends[above].east, t));
        t = fused(c(R::kSouth, above, 0), v[above], fused(c(R::kSouth, row, 0), v[below], t));
        t = fused(c(R::kEast, row, west), ends[row].west, fused(c(R::kEast, row, 0), ends[row].east, t));
        return q[row] > 0 ? fused(-q[row], v[row], t) : 0;
      };
#pragma unroll
      for (int k = 1; k <= kSmooth; k++) {
        const int row = at(2 * k);
        const float d = defect(k);
        u[k][row] = q[row] > 0 ? fused(a.weights[k - 1], d, u[k - 1][row]) : u[k - 1][row];
        if (!kUp || k < kSmooth) rings.swept[i % 2][k - 1][1 + thread] = u[k][row];
      }
      block.store(begin + i - 2 * kSmooth, lines[i - 2 * kSmooth], u[kSmooth][at(2 * kSmooth)]);
      if (!kUp) {
        rings.defects[i % 2][1 + thread] = defect(kSmooth + 1);
        restriction.end(lines[i - kNineLag], rings.transfers[i % R::kSlots], rings.defects[(i + 1) % 2]);
      }
      copies_wait<kPipeAhead - 1>();
      __syncthreads();
    }
  }
}
