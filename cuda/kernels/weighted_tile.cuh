// Four sweeps of a level of a weighted operator in one pass over memory. A block has a tile of points, kSmooth of which
// at each end serve the others alone. A thread has kTileRun rows of a column, with their couplings in registers; the
// values beside them lie in shared memory.
#pragma once
#include "multigrid_level.cuh"
#include "sum.cuh"
#include "weighted_level.cuh"

constexpr int kTileRun = 8, kTileRuns = 4;  // rows of a thread, threads of a column
constexpr int kTileBlocks = 2;              // of a multiprocessor at once
constexpr int kTileColumns = 64, kTileRows = kTileRun * kTileRuns;
constexpr int kTileThreads = kTileColumns * kTileRuns;
constexpr int kTileStepX = kTileColumns - 2 * kSmooth, kTileStepY = kTileRows - 2 * kSmooth;
static_assert(kTileStepX % kGroupColumns == 0 && kTileStepY % kGroupRows == 0, "a tile has whole groups");

// Couplings are those of a thread's points: 1/C, or q, to both neighbours in the row, and to the south from the row
// above on.
template <class Real> struct Couplings;
template <> struct Couplings<double> {
  double r[kTileRun], b[kTileRun], w[kTileRun], e[kTileRun], s[kTileRun + 1];

  template <class Load> __device__ __forceinline__ void load(const WeightedArg<double>& a, Load&& at) {
#pragma unroll
    for (int k = 0; k < kTileRun; k++) {
      r[k] = at(a.centre, k, 0), b[k] = at(a.b, k, 0), w[k] = at(a.east, k, -1), e[k] = at(a.east, k, 0);
    }
#pragma unroll
    for (int k = -1; k < kTileRun; k++) s[k + 1] = at(a.south, k, 0);
#pragma unroll
    for (int k = 0; k < kTileRun; k++) r[k] = r[k] > 0 ? 1 / r[k] : 0;  // when all loads are under way
  }
};
template <> struct Couplings<float> {
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
template <class Real> struct RowEnds { Real west, east; };

// defect_in returns d of point k of a thread.
__device__ __forceinline__ double defect_in(const Couplings<double>& c, int k, double u, double north, double south,
                                            const RowEnds<double>&, const RowEnds<double>& row,
                                            const RowEnds<double>&) {
  const double t = fused(c.s[k], north, fused(c.s[k + 1], south, c.b[k]));
  return fused(c.r[k], fused(c.w[k], row.west, fused(c.e[k], row.east, t)), -u);
}
__device__ __forceinline__ float defect_in(const Couplings<float>& c, int k, float u, float north, float south,
                                           const RowEnds<float>& above, const RowEnds<float>& row,
                                           const RowEnds<float>& below) {
  float t = fused(c.sw[k], below.west, fused(c.se[k], below.east, c.b[k]));
  t = fused(c.nw[k], above.west, fused(c.ne[k], above.east, t));
  t = fused(c.s[k], north, fused(c.s[k + 1], south, t));
  return fused(-c.r[k], u, fused(c.w[k], row.west, fused(c.e[k], row.east, t)));
}

__device__ __forceinline__ double corrected(double scale, float e, double u) { return fused(scale, (double)e, u); }
__device__ __forceinline__ float corrected(double, float e, float u) { return u + e; }

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

template <class Real> struct WeightedTile {
  Real values[2][kTileRows + 2][kTileColumns + 2];  // a stage and the next one, with zeros around them
  unsigned long long words[2][kSumWords];
  Line rows[kTileRows + 2], columns[kTileColumns + 2];
};

// correction returns what is added to a point of the field.
template <class Real> __device__ __forceinline__ float correction(const WeightedArg<Real>& a, Line y, Line x) {
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

// add_squares adds the squares of d, which has the tile at (top, left), to the sum. d is overwritten.
template <class Row>
__device__ __forceinline__ void add_squares(const WeightedArg<double>& a, Row* d,
                                            unsigned long long (*words)[kSumWords], int top, int left) {
  constexpr int kAcross = kTileStepX / kGroupColumns, kGroups = kAcross * (kTileStepY / kGroupRows);
  static_assert(kGroups <= 2 * kWarp, "two warps have all groups");
  for (int i = threadIdx.x; i < kAcross * kTileStepY; i += kTileThreads) {
    double* const of = &d[1 + kSmooth + i / kAcross][1 + kSmooth + i % kAcross * kGroupColumns];
    *of = squares(of, kSmallest<double>);
  }
  __syncthreads();
  if (threadIdx.x < 2 * kWarp) {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    const int column = threadIdx.x % kAcross * kGroupColumns, row = threadIdx.x / kAcross * kGroupRows;
    const int lo = max(top + row, a.countLo), hi = min(top + row + kGroupRows, a.countHi);
    const bool ok = (int)threadIdx.x < kGroups && left + column < a.fine.nx && lo < hi;
    Limbs limbs;
    limbs.clear(a.bias);
    if (ok) {
      double sum = 0;
      for (int y = lo; y < hi; y++) sum += d[1 + kSmooth + y - top][1 + kSmooth + column];
      limbs.add(sum - surplus<double>(hi - lo));
    }
    if (lane < kSumWords) words[warp][lane] = 0;
    __syncwarp();
    limbs.drain(a.bias, words[warp], ok, lane);
    flush(words[warp], a.sums, lane);
  }
  __syncthreads();
}
template <class Row>
__device__ __forceinline__ void add_squares(const WeightedArg<float>&, Row*, unsigned long long (*)[kSumWords], int,
                                            int) {}

// sweep_tile does the sweeps of one way. On the way up the field gets the correction first.
template <class Real, bool kUp> __device__ __forceinline__ void sweep_tile(const WeightedArg<Real>& a) {
  DYNAMIC_SHARED(shared);
  WeightedTile<Real>& tile = *(WeightedTile<Real>*)shared;
  const Grid& g = a.fine;
  const int column = threadIdx.x % kTileColumns, first = threadIdx.x / kTileColumns * kTileRun;
  const int left = blockIdx.x % a.strips * kTileStepX;
  const int top = (a.lo & -kGroupRows) + (int)(blockIdx.x / a.strips) * kTileStepY;
  const int x = left - kSmooth + column, y = top - kSmooth + first;
  // A field has zeros around it.
  Real* const all = &tile.values[0][0][0];
  for (int i = threadIdx.x; i < 2 * (kTileRows + 2) * (kTileColumns + 2); i += kTileThreads) all[i] = 0;
  for (int i = threadIdx.x; i < kTileColumns + 2; i += kTileThreads)
    tile.columns[i].find(left - kSmooth - 1 + i, g.lo, g.hi, 0, g.nx, g.turnX, a.x, a.coarse.lo, a.coarse.hi,
                         a.coarse.turnX);
  for (int i = threadIdx.x; i < kTileRows + 2; i += kTileThreads)
    tile.rows[i].find(top - kSmooth - 1 + i, g.top, g.bottom, g.rowLo, g.rowHi, g.turnY, a.y, a.coarse.top,
                      a.coarse.bottom, a.coarse.turnY);
  __syncthreads();
  const int columns[3] = {tile.columns[column].at, tile.columns[column + 1].at, tile.columns[column + 2].at};
  const auto at = [&](const Real* from, int k, int dx) {
    const int row = tile.rows[1 + first + k].at;
    return row == kNone || columns[1 + dx] == kNone ? Real(0) : from[(ptrdiff_t)row * g.pitch + columns[1 + dx]];
  };
  float e[kTileRun];  // before couplings take the registers
  if (kUp)
#pragma unroll
    for (int k = 0; k < kTileRun; k++) e[k] = correction(a, tile.rows[1 + first + k], tile.columns[1 + column]);
  Couplings<Real> c;
  c.load(a, at);
  Real u[kTileRun];
#pragma unroll
  for (int k = 0; k < kTileRun; k++) u[k] = !kUp && !a.from ? Real(0) : at(a.from, k, 0);
  if (kUp)
#pragma unroll
    for (int k = 0; k < kTileRun; k++)
      if (c.r[k] > 0) u[k] = corrected(a.scale, e[k], u[k]);
#pragma unroll 1
  for (int n = 0; n < kSmooth; n++) {
    auto* const own = &tile.values[n % 2][1 + first];
    auto* const next = &tile.values[1 - n % 2][1 + first];
    const int j = 1 + column;
#pragma unroll
    for (int k = 0; k < kTileRun; k++) own[k][j] = u[k];
    __syncthreads();
    const auto beside = [&](int k) { return RowEnds<Real>{own[k][j - 1], own[k][j + 1]}; };
    RowEnds<Real> above = beside(-1), row = beside(0);
    Real north = own[-1][j];
    const Real weight = a.weights[n];
#pragma unroll
    for (int k = 0; k < kTileRun; k++) {
      const RowEnds<Real> below = beside(k + 1);
      const Real south = k + 1 < kTileRun ? u[k + 1 < kTileRun ? k + 1 : k] : own[kTileRun][j], v = u[k];
      Real d = defect_in(c, k, v, north, south, above, row, below);
      if (!(c.r[k] > 0)) d = 0;
      if (!kUp && n == 0 && sizeof(Real) == 8) next[k][j] = x >= g.lo && x < g.hi ? d : 0;
      if (c.r[k] > 0) u[k] = fused(weight, d, v);
      north = v, above = row, row = below;
    }
    if (!kUp && n == 0 && sizeof(Real) == 8) {
      __syncthreads();
      add_squares(a, tile.values[1], tile.words, top, left);
    }
  }
  if (column < kSmooth || column >= kTileColumns - kSmooth || x < g.lo || x >= g.hi) return;
#pragma unroll
  for (int k = 0; k < kTileRun; k++)
    if (first + k >= kSmooth && first + k < kTileRows - kSmooth && y + k >= a.lo && y + k < a.hi)
      g.store(a.to, g.pitch, y + k, x, u[k]);
}
