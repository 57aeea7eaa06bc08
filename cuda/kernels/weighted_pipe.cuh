// Four sweeps of level 0 of a weighted operator in one pass over memory, with the correction before them on the way up
// and the restriction of the defect behind them on the way down. A block goes down the rows of a strip of columns, a
// thread for each. Sweep k computes row t - k at the step of row t: the thread has its own column in registers, and
// what its neighbours made in the step before is in shared memory.
#pragma once
#include "multigrid_level.cuh"
#include "sum.cuh"
#include "weighted_tile.cuh"

constexpr int kPipeThreads = 256, kPipeBlocks = 2;  // of a block, of a multiprocessor
constexpr int kPipeRows = 8;                        // of the rings: rows t + kPipeAhead to t - kSmooth - 1
constexpr int kPipeAhead = 2;                       // rows that are under way from memory
constexpr int kPipeWarps = kPipeThreads / kWarp;
constexpr int kPipeMost = 32 * kGroupRows;          // rows of a block, see kMostGroups
constexpr int kPipeLines = kPipeMost + 2 * kPipeRows + kPipeAhead;
static_assert(kPipeRows == kGroupRows, "a turn ends where a group does");
static_assert(kPipeAhead + kSmooth + 2 <= kPipeRows, "a row is overwritten when no sweep reads it any more");

// Columns at each end of a strip that serve the others alone, in whole groups. A sweep uses up one of them, and so do
// the defect and its restriction.
__host__ __device__ constexpr int pipe_side(bool up) { return up ? 4 : 8; }
__host__ __device__ constexpr int pipe_step(bool up) { return kPipeThreads - 2 * pipe_side(up); }

// PipeTransfers are the values of P' with which rows are restricted, of the coarse column of each thread.
constexpr int kPipeTransfers = 4;  // rows: that which is restricted, and kPipeAhead ones under way from memory
using PipeTransfers = float[kPipeTransfers][6][kPipeThreads];

// PipeRings is the shared memory of a block. Neighbours beyond its columns are never set: what they reach is not used.
struct PipeRings {
  enum { kCentre, kB, kLong, kU = kLong, kEast, kSouth, kArrays };
  static constexpr int kShort = 4;  // rows of the arrays from kLong on, of which no sweep reads rows before t - 1
  double rows[kLong * kPipeRows + (kArrays - kLong) * kShort][kPipeThreads];
  PipeTransfers transfers;
  __device__ __forceinline__ double* of(int array, int row) {
    return array < kLong ? rows[array * kPipeRows + row % kPipeRows]
                         : rows[kLong * kPipeRows + (array - kLong) * kShort + row % kShort];
  }
  double swept[2][kSmooth][kPipeThreads + 2];  // of this step and the one before: what the sweeps made
  float defects[2][kPipeThreads + 2];
  Line before[kPipeRows], lines[kPipeLines];  // of the rows; `next` is what the restriction does there
  unsigned long long words[kPipeWarps][kSumWords];
};

// PipeRestriction adds the defects of rows to the right-hand side of a coarse column.
template <class Real> struct PipeRestriction {
  // What a row does: it adds to the coarse row on which it lies or the one before it, and to the next one; it begins
  // the sum of the former or ends it.
  enum { kFirst = 1, kSecond = 2, kBegins = 4, kEnds = 8, kBetween = 16 };
  const WeightedArg<Real>& a;
  PipeTransfers& transfers;
  int column;  // kNone: the thread has none
  int at;      // the thread that has the fine column on it
  float sum;

  __device__ __forceinline__ PipeRestriction(const WeightedArg<Real>& a, PipeTransfers& transfers, int left)
      : a(a), transfers(transfers), sum(0) {
    column = (a.x.coarse == a.x.fine ? left : left / 2) + (int)threadIdx.x;
    const int x = a.x.on(column);
    at = x - left + pipe_side(false);
    const bool own = x >= left && x < left + pipe_step(false) && column >= a.coarse.lo && column < a.coarse.hi;
    if (!own) column = kNone;
  }
  // line returns the coarse row of row y of a block with rows lo to hi, and what the row does.
  __device__ __forceinline__ static int line(const WeightedArg<Real>& a, int y, int lo, int hi, int& does) {
    bool between, before, behind;
    const int row = a.y.at(y, between);
    a.y.at(y - 1, before), a.y.at(y + 1, behind);
    const auto owns = [&](int row, int on) {  // which lies on fine row `on`, if that row exists
      return row >= a.coarseLo && row < a.coarseHi && on >= lo && on < hi && on == a.y.on(row);
    };
    does = between ? kBetween : 0;
    if (owns(row, y - between)) does |= kFirst | (!between && !before ? kBegins : 0) | (between || !behind ? kEnds : 0);
    if (between && owns(row + 1, y + 1)) does |= kSecond;
    return row;
  }
  __device__ __forceinline__ void take(int slot, int to, int row, int first) const {
    const float* const from = a.transfer.of(first) + (ptrdiff_t)row * a.coarse.pitch + column;
#pragma unroll
    for (int k = 0; k < 3; k++) copy_async<4>(&transfers[slot][to + k][threadIdx.x], from + k * a.transfer.stride);
  }
  // begin begins to load what a row needs.
  __device__ __forceinline__ void begin(Line y, int slot) const {
    if (column == kNone) return;
    if (y.next & kFirst) take(slot, 0, y.coarse, y.next & kBetween ? 6 : 3);
    if (y.next & kSecond) take(slot, 3, y.coarse + 1, 0);
  }
  // end adds the defects of the row.
  __device__ __forceinline__ void end(Line y, int slot, const float* defects) {
    if (!(y.next & (kFirst | kSecond)) || column == kNone) return;
    const float d[3] = {defects[at], defects[at + 1], defects[at + 2]};
    const auto add = [&](int from) {
      const auto p = [&](int k) { return transfers[slot][from + k][threadIdx.x]; };
      sum = fused(p(2), d[2], fused(p(1), d[1], fused(p(0), d[0], sum)));
    };
    if (y.next & kFirst) {
      if (y.next & kBegins) sum = 0;
      add(0);
      if (y.next & kEnds) a.coarse.store(a.coarseB, a.coarse.pitch, y.coarse, column, sum);
    }
    if (!(y.next & kSecond)) return;
    sum = 0;
    add(3);
  }
};

// PipeSquares adds the squares of d of the groups of a thread's columns. The first of four threads has the group.
struct PipeSquares {
  const WeightedArg<double>& a;
  const int lo, hi;  // rows that count
  const bool own;
  Limbs limbs;
  double sum = 0;
  int rows = 0, groups = 0;

  __device__ __forceinline__ PipeSquares(const WeightedArg<double>& a, int lo, int hi, bool own)
      : a(a), lo(max(lo, a.countLo)), hi(min(hi, a.countHi)), own(own && threadIdx.x % kGroupColumns == 0) {
    limbs.clear(a.bias);
  }
  __device__ __forceinline__ void add(int y, double d) {
    const double d1 = __shfl_down_sync(kAll, d, 1);
    const double pair = fused(d1, d1, fused(d, d, kSmallest<double>));
    const double all = pair + __shfl_down_sync(kAll, pair, 2);
    if (y >= lo && y < hi) sum += all, rows++;
  }
  // end ends a group.
  __device__ __forceinline__ void end(unsigned long long* words, int lane) {
    if (rows && own) limbs.add(sum - surplus<double>(rows));
    sum = 0, rows = 0;
    if (++groups % kMostGroups == 0) drain(words, lane);
  }
  __device__ __forceinline__ void drain(unsigned long long* words, int lane) {
    limbs.drain(a.bias, words, own, lane);
    limbs.clear(a.bias);
  }
};

// CoarseTerms are what the correction of a point adds up.
struct CoarseTerms {
  float p[4], u[4];
  bool counts[4];

  template <class Real> __device__ __forceinline__ void load(const WeightedArg<Real>& a, Line y, Line x) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int row = k / 2 ? y.next : y.coarse, column = k % 2 ? x.next : x.coarse;
      const int dy = y.next == kNone ? 0 : 1 - k / 2 * 2, dx = x.next == kNone ? 0 : 1 - k % 2 * 2;
      const ptrdiff_t i = (ptrdiff_t)row * a.coarse.pitch + column;
      counts[k] = a.coarseU && y.at != kNone && x.at != kNone && row != kNone && column != kNone;
      p[k] = counts[k] ? a.transfer.of(4 + 3 * dy + dx)[i] : 0;
      u[k] = counts[k] ? a.coarseU[i] : 0;
    }
  }
  __device__ __forceinline__ float correction() const {
    float e = 0;
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (counts[k]) e = k ? fused(p[k], u[k], e) : p[k] * u[k];
    return e;
  }
};

// PipeBlock is the place of a thread and its block in a level.
template <class Real, bool kUp> struct PipeBlock {
  int left, x, top, lo, hi;  // the first column that the block writes; the thread's; the rows that the block writes
  bool inside, own;          // the thread serves no other; and is swept
  Line column;

  __device__ __forceinline__ explicit PipeBlock(const WeightedArg<Real>& a) {
    constexpr int kSide = pipe_side(kUp);
    const Grid& g = a.fine;
    const int thread = threadIdx.x;
    left = blockIdx.x % a.strips * pipe_step(kUp), x = left - kSide + thread;
    top = (a.lo & -kGroupRows) + (int)(blockIdx.x / a.strips) * a.blockRows;
    lo = max(top, a.lo), hi = min(top + a.blockRows, a.hi);
    inside = thread >= kSide && thread < kPipeThreads - kSide, own = inside && x >= g.lo && x < g.hi;
    column.find(x, g.lo, g.hi, 0, g.nx, g.turnX, a.x, a.coarse.lo, a.coarse.hi, a.coarse.turnX);
  }
  // find_lines sets the rows from top - kPipeRows on, and those before them.
  template <int kBefore, int kLines>
  __device__ __forceinline__ void find_lines(const WeightedArg<Real>& a, Line (&before)[kBefore],
                                             Line (&lines)[kLines]) const {
    const Grid& g = a.fine;
    if (threadIdx.x < kBefore) before[threadIdx.x] = {kNone, kNone, 0};
    for (int i = threadIdx.x; i < kLines; i += kPipeThreads) {
      const int y = top - kPipeRows + i, reach = kSmooth + (kUp ? 0 : 2);
      Line row;
      row.find(y, g.top, g.bottom, g.rowLo, g.rowHi, g.turnY, a.y, a.coarse.top, a.coarse.bottom, a.coarse.turnY);
      if (y < lo - reach || y >= hi + reach) row.at = kNone;
      if (!kUp) row.coarse = PipeRestriction<Real>::line(a, y, lo, hi, row.next);
      lines[i] = row;
    }
  }
  // store sets the value of the thread's column in row y of the field, if the block writes it.
  __device__ __forceinline__ void store(const WeightedArg<Real>& a, int y, Real v) const {
    const Grid& g = a.fine;
    if (!own || y < lo || y >= hi) return;
    a.to[(ptrdiff_t)y * g.pitch + x] = v;
    if (g.turnX || g.copies) g.store(a.to, g.pitch, y, x, v);
  }
};

// sweep_rows does the sweeps of one way.
template <bool kUp> __device__ __forceinline__ void sweep_rows(const WeightedArg<double>& a) {
  DYNAMIC_SHARED(shared);
  using R = PipeRings;
  R& rings = *(R*)shared;
  constexpr int kMask = kPipeRows - 1;
  const Grid& g = a.fine;
  const int thread = threadIdx.x, lane = thread % kWarp;
  const PipeBlock<double, kUp> block(a);
  const int x = block.x, top = block.top, hi = block.hi;
  const Line column = block.column;
  block.find_lines(a, rings.before, rings.lines);
  const Line* lines = rings.lines;  // of the rows of a turn
  PipeRestriction<double> restriction(a, rings.transfers, block.left);
  // fetch begins to load row i of a turn into the rings.
  const auto fetch = [&](int i) {
    const int row = lines[i].at;
    const double* const from[R::kArrays] = {a.centre, a.b, a.from, a.east, a.south};
    const ptrdiff_t at = (ptrdiff_t)row * g.pitch + column.at;
    if (row == kNone || column.at == kNone) {
#pragma unroll
      for (int k = 0; k < R::kArrays; k++) rings.of(k, i)[thread] = 0;
    } else {
#pragma unroll
      for (int k = 0; k < R::kArrays; k++) copy_async<8>(rings.of(k, i) + thread, from[k] + at);
    }
    if (!kUp) restriction.begin(lines[i - kSmooth - 2], i % kPipeTransfers);
    copies_commit();
  };
  if (lane < kSumWords) rings.words[thread / kWarp][lane] = 0;
  PipeSquares squares(a, block.lo, hi, block.inside && x < g.nx);
  CoarseTerms terms;
  float correction = 0;
  // By row mod kPipeRows: what the thread knows of its column, and what sweep k reads.
  double r[kPipeRows] = {}, w[kPipeRows] = {}, e[kPipeRows] = {}, s[kPipeRows] = {};
  double u[kSmooth + 1][kPipeRows] = {};
  __syncthreads();
  for (int i = 0; i < kPipeAhead; i++) fetch(i);
  copies_wait<kPipeAhead - 1>();
  __syncthreads();
#pragma unroll 1
  for (int begin = top - kPipeRows; begin < hi + (kUp ? kSmooth : kPipeRows); begin += kPipeRows, lines += kPipeRows) {
#pragma unroll
    for (int i = 0; i < kPipeRows; i++) {
      const int t = begin + i;
      fetch(i + kPipeAhead);
      if (kUp) terms.load(a, lines[i + 1], column);
      const double c = rings.of(R::kCentre, i)[thread];
      r[i] = c > 0 ? 1 / c : 0;
      e[i] = rings.of(R::kEast, i)[thread], s[i] = rings.of(R::kSouth, i)[thread];
      w[i] = rings.of(R::kEast, i)[max(thread - 1, 0)];
      u[0][i] = rings.of(R::kU, i)[thread];
      if (kUp && c > 0) rings.of(R::kU, i)[thread] = u[0][i] = fused(a.scale, (double)correction, u[0][i]);
      const auto defect = [&](int k) {  // of row t - k, for what sweep k reads; the sweep after the last one is k = 5
        const int at = (i - k) & kMask, above = (at - 1) & kMask, below = (at + 1) & kMask;
        const double* const row = k == 1 ? rings.of(R::kU, at) + thread
                                         : &rings.swept[(i - 1) & 1][k - 2][1 + thread];
        const double west = k == 1 ? row[thread ? -1 : 0] : row[-1];
        const double east = k == 1 ? row[thread + 1 < kPipeThreads ? 1 : 0] : row[1];
        const double b = rings.of(R::kB, at)[thread];
        const double v = fused(s[above], u[k - 1][above], fused(s[at], u[k - 1][below], b));
        return r[at] > 0 ? fused(r[at], fused(w[at], west, fused(e[at], east, v)), -u[k - 1][at]) : 0;
      };
#pragma unroll
      for (int k = 1; k <= kSmooth; k++) {
        const int at = (i - k) & kMask;
        const double d = defect(k);
        if (!kUp && k == 1) squares.add(t - 1, x >= g.lo && x < g.hi ? d : 0);
        u[k][at] = r[at] > 0 ? fused(a.weights[k - 1], d, u[k - 1][at]) : u[k - 1][at];
        if (!kUp || k < kSmooth) rings.swept[i & 1][k - 1][1 + thread] = u[k][at];
      }
      block.store(a, t - kSmooth, u[kSmooth][(i - kSmooth) & kMask]);
      if (!kUp) {
        if (i == 0) squares.end(rings.words[thread / kWarp], lane);
        const double d = defect(kSmooth + 1);
        const double c = rings.of(R::kCentre, (i - kSmooth - 1) & kMask)[thread];
        rings.defects[i & 1][1 + thread] = (float)(c * d * a.scale);
        restriction.end(lines[i - kSmooth - 2], i % kPipeTransfers, rings.defects[(i - 1) & 1]);
      } else {
        correction = terms.correction();
      }
      copies_wait<kPipeAhead - 1>();
      __syncthreads();
    }
  }
  if (kUp) return;
  unsigned long long* const words = rings.words[thread / kWarp];
  squares.drain(words, lane);
  flush(words, a.sums, lane);
}
