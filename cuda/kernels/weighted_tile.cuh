// Four sweeps of a coarser level of a weighted operator in one pass over memory. A block has a tile of points, kSmooth
// of which at each end serve the others alone. A thread has kTileRun rows of a column, with their couplings in
// registers; the values beside them lie in shared memory.
#pragma once
#include "multigrid_level.cuh"
#include "weighted_level.cuh"

constexpr int kTileRun = 8, kTileRuns = 4;  // rows of a thread, threads of a column
constexpr int kTileBlocks = 2;              // of a multiprocessor at once
constexpr int kTileColumns = 64, kTileRows = kTileRun * kTileRuns;
constexpr int kTileThreads = kTileColumns * kTileRuns;
constexpr int kTileStepX = kTileColumns - 2 * kSmooth, kTileStepY = kTileRows - 2 * kSmooth;
static_assert(kTileStepX % kGroupColumns == 0 && kTileStepY % kGroupRows == 0, "a tile has whole groups");

// Couplings are those of a thread's points: q, to both neighbours in the row, to the south from the row above on, and
// to diagonal neighbours.
struct Couplings {
  float r[kTileRun], b[kTileRun], w[kTileRun], e[kTileRun], s[kTileRun + 1];
  float sw[kTileRun], se[kTileRun], nw[kTileRun], ne[kTileRun];

  template <class Load> __device__ __forceinline__ void load(const WeightedArg<float>& a, Load&& at) {
#pragma unroll
    for (int k = 0; k < kTileRun; k++) {
      r[k] = at(a.centre, k, 0), b[k] = at(a.b, k, 0), w[k] = at(a.east, k, -1), e[k] = at(a.east, k, 0);
      sw[k] = at(a.southWest, k, 0), se[k] = at(a.southEast, k, 0);
      nw[k] = at(a.southEast, k - 1, -1), ne[k] = at(a.southWest, k - 1, 1);
    }
#pragma unroll
    for (int k = -1; k < kTileRun; k++) s[k + 1] = at(a.south, k, 0);
  }
};

// RowEnds are the values of a row beside a thread's column.
struct RowEnds { float west, east; };

// defect_in returns d of point k of a thread.
__device__ __forceinline__ float defect_in(const Couplings& c, int k, float u, float north, float south,
                                           const RowEnds& above, const RowEnds& row, const RowEnds& below) {
  float t = fused(c.sw[k], below.west, fused(c.se[k], below.east, c.b[k]));
  t = fused(c.nw[k], above.west, fused(c.ne[k], above.east, t));
  t = fused(c.s[k], north, fused(c.s[k + 1], south, t));
  return fused(-c.r[k], u, fused(c.w[k], row.west, fused(c.e[k], row.east, t)));
}

constexpr int kNone = -(1 << 30);  // no row or column

// Line is a row or a column of a tile: where its values are found; the coarse one on which it lies or the one before
// it; and the next coarse one if it lies between two. kNone stands for none.
struct Line {
  int at, coarse, next;

  // find sets that of row or column i of a level: lo to hi are swept, heldLo to heldHi are held.
  __device__ __forceinline__ void find(int i, int lo, int hi, int heldLo, int heldHi, int turn, const Halving& h,
                                       int coarseLo, int coarseHi, int coarseTurn) {
    i = around(i, lo, hi, turn);
    at = i >= heldLo && i < heldHi ? i : kNone;
    bool between;
    coarse = h.at(i, between);
    next = between ? around(coarse + 1, coarseLo, coarseHi, coarseTurn) : kNone;
    coarse = around(coarse, coarseLo, coarseHi, coarseTurn);
  }
};

struct WeightedTile {
  float values[2][kTileRows + 2][kTileColumns + 2];  // a stage and the next one, with zeros around them
  Line rows[kTileRows + 2], columns[kTileColumns + 2];
};

// correction returns what is added to a point of the field.
__device__ __forceinline__ float correction(const WeightedArg<float>& a, Line y, Line x) {
  float e = 0;
#pragma unroll
  for (int down = 0; down < 2; down++)
#pragma unroll
    for (int right = 0; right < 2; right++) {
      const int row = down ? y.next : y.coarse, column = right ? x.next : x.coarse;
      const int dy = y.next == kNone ? 0 : 1 - 2 * down, dx = x.next == kNone ? 0 : 1 - 2 * right;
      const bool counts = y.at != kNone && x.at != kNone && row != kNone && column != kNone;
      const ptrdiff_t i = (ptrdiff_t)row * a.coarse.pitch + column;
      const float p = counts ? a.transfer.of(4 + 3 * dy + dx)[i] : 0, u = counts ? a.coarseU[i] : 0;
      if (counts) e = down || right ? fused(p, u, e) : p * u;
    }
  return e;
}

// sweep_tile does the sweeps of one way. On the way up the field gets the correction first.
template <bool kUp> __device__ __forceinline__ void sweep_tile(const WeightedArg<float>& a) {
  DYNAMIC_SHARED(shared);
  WeightedTile& tile = *(WeightedTile*)shared;
  const Grid& g = a.fine;
  const int column = threadIdx.x % kTileColumns, first = threadIdx.x / kTileColumns * kTileRun;
  const int left = blockIdx.x % a.strips * kTileStepX;
  const int top = (a.lo & -kGroupRows) + (int)(blockIdx.x / a.strips) * kTileStepY;
  const int x = left - kSmooth + column, y = top - kSmooth + first;
  // A field has zeros around it.
  float* const all = &tile.values[0][0][0];
  for (int i = threadIdx.x; i < 2 * (kTileRows + 2) * (kTileColumns + 2); i += kTileThreads) all[i] = 0;
  for (int i = threadIdx.x; i < kTileColumns + 2; i += kTileThreads)
    tile.columns[i].find(left - kSmooth - 1 + i, g.lo, g.hi, 0, g.nx, g.turnX, a.x, a.coarse.lo, a.coarse.hi,
                         a.coarse.turnX);
  for (int i = threadIdx.x; i < kTileRows + 2; i += kTileThreads)
    tile.rows[i].find(top - kSmooth - 1 + i, g.top, g.bottom, g.rowLo, g.rowHi, g.turnY, a.y, a.coarse.top,
                      a.coarse.bottom, a.coarse.turnY);
  __syncthreads();
  const int columns[3] = {tile.columns[column].at, tile.columns[column + 1].at, tile.columns[column + 2].at};
  const auto at = [&](const float* from, int k, int dx) {
    const int row = tile.rows[1 + first + k].at;
    return row == kNone || columns[1 + dx] == kNone ? float(0) : from[(ptrdiff_t)row * g.pitch + columns[1 + dx]];
  };
  float e[kTileRun];  // before couplings take the registers
  if (kUp)
#pragma unroll
    for (int k = 0; k < kTileRun; k++) e[k] = correction(a, tile.rows[1 + first + k], tile.columns[1 + column]);
  Couplings c;
  c.load(a, at);
  float u[kTileRun];
#pragma unroll
  for (int k = 0; k < kTileRun; k++) u[k] = !kUp && !a.from ? float(0) : at(a.from, k, 0);
  if (kUp)
#pragma unroll
    for (int k = 0; k < kTileRun; k++)
      if (c.r[k] > 0) u[k] = u[k] + e[k];
#pragma unroll 1
  for (int n = 0; n < kSmooth; n++) {
    auto* const own = &tile.values[n % 2][1 + first];
    const int j = 1 + column;
#pragma unroll
    for (int k = 0; k < kTileRun; k++) own[k][j] = u[k];
    __syncthreads();
    const auto beside = [&](int k) { return RowEnds{own[k][j - 1], own[k][j + 1]}; };
    RowEnds above = beside(-1), row = beside(0);
    float north = own[-1][j];
    const float weight = a.weights[n];
#pragma unroll
    for (int k = 0; k < kTileRun; k++) {
      const RowEnds below = beside(k + 1);
      const float south = k + 1 < kTileRun ? u[k + 1 < kTileRun ? k + 1 : k] : own[kTileRun][j], v = u[k];
      float d = defect_in(c, k, v, north, south, above, row, below);
      if (!(c.r[k] > 0)) d = 0;
      if (c.r[k] > 0) u[k] = fused(weight, d, v);
      north = v, above = row, row = below;
    }
  }
  if (column < kSmooth || column >= kTileColumns - kSmooth || x < g.lo || x >= g.hi) return;
#pragma unroll
  for (int k = 0; k < kTileRun; k++)
    if (first + k >= kSmooth && first + k < kTileRows - kSmooth && y + k >= a.lo && y + k < a.hi)
      g.store(a.to, g.pitch, y + k, x, u[k]);
}
