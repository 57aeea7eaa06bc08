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

// PipeRings is the shared memory of a block. Neighbours beyond its columns are never set: what they reach is not used.
struct PipeRings {
  enum { kU, kCentre, kB, kEast, kSouth, kArrays };
  double of[kArrays][kPipeRows][kPipeThreads];
  double swept[2][kSmooth][kPipeThreads + 2];  // of this step and the one before: what the sweeps made
  float defects[2][kPipeThreads + 2];
  Line before[kPipeRows], lines[kPipeLines];  // of the rows; `next` is what the restriction does there
  unsigned long long words[kPipeWarps][kSumWords];
};

// PipeRestriction adds the defects of rows to the right-hand side of a coarse column.
struct PipeRestriction {
  // What a row does: it adds to the coarse row on which it lies or the one before it, and to the next one; it begins
  // the sum of the former or ends it.
  enum { kFirst = 1, kSecond = 2, kBegins = 4, kEnds = 8, kBetween = 16 };
  const WeightedArg<double>& a;
  int column;  // kNone: the thread has none
  int at;      // the thread that has the fine column on it
  float sum, p[6];

  __device__ __forceinline__ PipeRestriction(const WeightedArg<double>& a, int left) : a(a), sum(0) {
    column = (a.x.coarse == a.x.fine ? left : left / 2) + (int)threadIdx.x;
    const int x = a.x.on(column);
    at = x - left + pipe_side(false);
    const bool own = x >= left && x < left + pipe_step(false) && column >= a.coarse.lo && column < a.coarse.hi;
    if (!own) column = kNone;
  }
  // line returns the coarse row of row y of a block with rows lo to hi, and what the row does.
  __device__ __forceinline__ static int line(const WeightedArg<double>& a, int y, int lo, int hi, int& does) {
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
  __device__ __forceinline__ void take(float* to, int row, int first) const {
    const float* const from = a.transfer.of(first) + (ptrdiff_t)row * a.coarse.pitch + column;
#pragma unroll
    for (int k = 0; k < 3; k++) to[k] = from[k * a.transfer.stride];
  }
  // begin loads what a row needs.
  __device__ __forceinline__ void begin(Line y) {
    if (column == kNone) return;
    if (y.next & kFirst) take(p, y.coarse, y.next & kBetween ? 6 : 3);
    if (y.next & kSecond) take(p + 3, y.coarse + 1, 0);
  }
  // end adds the defects of the row.
  __device__ __forceinline__ void end(Line y, const float* defects) {
    if (!(y.next & (kFirst | kSecond)) || column == kNone) return;
    const float d[3] = {defects[at], defects[at + 1], defects[at + 2]};
    const auto add = [&](const float* p) { sum = fused(p[2], d[2], fused(p[1], d[1], fused(p[0], d[0], sum))); };
    if (y.next & kFirst) {
      if (y.next & kBegins) sum = 0;
      add(p);
      if (y.next & kEnds) a.coarse.store(a.coarseB, a.coarse.pitch, y.coarse, column, sum);
    }
    if (!(y.next & kSecond)) return;
    sum = 0;
    add(p + 3);
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

  __device__ __forceinline__ void load(const WeightedArg<double>& a, Line y, Line x) {
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

// sweep_rows does the sweeps of one way.
template <bool kUp> __device__ __forceinline__ void sweep_rows(const WeightedArg<double>& a) {
  DYNAMIC_SHARED(shared);
  PipeRings& rings = *(PipeRings*)shared;
  constexpr int kSide = pipe_side(kUp), kMask = kPipeRows - 1;
  const Grid& g = a.fine;
  const int thread = threadIdx.x, lane = thread % kWarp;
  const int left = blockIdx.x % a.strips * pipe_step(kUp), x = left - kSide + thread;
  const int top = (a.lo & -kGroupRows) + (int)(blockIdx.x / a.strips) * a.blockRows;
  const int lo = max(top, a.lo), hi = min(top + a.blockRows, a.hi);  // rows that the block writes
  const bool inside = thread >= kSide && thread < kPipeThreads - kSide, own = inside && x >= g.lo && x < g.hi;
  Line column;
  column.find(x, g.lo, g.hi, 0, g.nx, g.turnX, a.x, a.coarse.lo, a.coarse.hi, a.coarse.turnX);
  if (thread < kPipeRows) rings.before[thread] = {kNone, kNone, 0};
  for (int i = thread; i < kPipeLines; i += kPipeThreads) {
    const int y = top - kPipeRows + i, reach = kSmooth + (kUp ? 0 : 2);
    Line row;
    row.find(y, g.top, g.bottom, g.rowLo, g.rowHi, g.turnY, a.y, a.coarse.top, a.coarse.bottom, a.coarse.turnY);
    if (y < lo - reach || y >= hi + reach) row.at = kNone;
    if (!kUp) row.coarse = PipeRestriction::line(a, y, lo, hi, row.next);
    rings.lines[i] = row;
  }
  const Line* lines = rings.lines;  // of the rows of a turn
  // fetch begins to load row i of a turn into the rings.
  const auto fetch = [&](int i) {
    const int row = lines[i].at, slot = i & kMask;
    const double* const from[PipeRings::kArrays] = {a.from, a.centre, a.b, a.east, a.south};
    const ptrdiff_t at = (ptrdiff_t)row * g.pitch + column.at;
    if (row == kNone || column.at == kNone) {
#pragma unroll
      for (int k = 0; k < PipeRings::kArrays; k++) rings.of[k][slot][thread] = 0;
    } else {
#pragma unroll
      for (int k = 0; k < PipeRings::kArrays; k++) copy_async<8>(&rings.of[k][slot][thread], from[k] + at);
    }
    copies_commit();
  };
  if (lane < kSumWords) rings.words[thread / kWarp][lane] = 0;
  PipeRestriction restriction(a, left);
  PipeSquares squares(a, lo, hi, inside && x < g.nx);
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
      else restriction.begin(lines[i - kSmooth - 2]);
      const double c = rings.of[PipeRings::kCentre][i][thread];
      r[i] = c > 0 ? 1 / c : 0;
      e[i] = rings.of[PipeRings::kEast][i][thread], s[i] = rings.of[PipeRings::kSouth][i][thread];
      w[i] = rings.of[PipeRings::kEast][i][max(thread - 1, 0)];
      u[0][i] = rings.of[PipeRings::kU][i][thread];
      if (kUp && c > 0) rings.of[PipeRings::kU][i][thread] = u[0][i] = fused(a.scale, (double)correction, u[0][i]);
      const auto defect = [&](int k) {  // of row t - k, for what sweep k reads; the sweep after the last one is k = 5
        const int at = (i - k) & kMask, above = (at - 1) & kMask, below = (at + 1) & kMask;
        const double* const row = k == 1 ? &rings.of[PipeRings::kU][at][thread]
                                         : &rings.swept[(i - 1) & 1][k - 2][1 + thread];
        const double west = k == 1 ? row[thread ? -1 : 0] : row[-1];
        const double east = k == 1 ? row[thread + 1 < kPipeThreads ? 1 : 0] : row[1];
        const double b = rings.of[PipeRings::kB][at][thread];
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
      const int y = t - kSmooth;
      if (own && y >= lo && y < hi) {
        const double v = u[kSmooth][(i - kSmooth) & kMask];
        a.to[(ptrdiff_t)y * g.pitch + x] = v;
        if (g.turnX || g.copies) g.store(a.to, g.pitch, y, x, v);
      }
      if (!kUp) {
        if (i == 0) squares.end(rings.words[thread / kWarp], lane);
        const double d = defect(kSmooth + 1);
        const double c = rings.of[PipeRings::kCentre][(i - kSmooth - 1) & kMask][thread];
        rings.defects[i & 1][1 + thread] = (float)(c * d * a.scale);
        restriction.end(lines[i - kSmooth - 2], rings.defects[(i - 1) & 1]);
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
