// Four sweeps of level 0 of a weighted operator in one pass over memory, with the correction before them on the way up
// and the restriction of the defect behind them on the way down. A block goes down the rows of a strip of columns, a
// thread for each. Sweep k computes row t - k at the step of row t: the thread has its own column in registers, and
// what its neighbours made in the step before is in shared memory. A warp copies the rows of one array for all threads.
#pragma once
#include "multigrid_level.cuh"
#include "row.cuh"
#include "sum.cuh"
#include "weighted_tile.cuh"

constexpr int kPipeThreads = 256, kPipeBlocks = 2;   // of a block, of a multiprocessor
constexpr int kPipeRows = 8;                         // of the rings: rows t + kPipeAhead to t - kSmooth - 1
constexpr int kPipeAhead = 2;                        // rows that are under way from memory
constexpr int kPipeSlots = 4;                        // for the row in use and those under way
constexpr int kPipeWarps = kPipeThreads / kWarp;
constexpr int kPipeMost = kMostGroups * kGroupRows;  // rows of a block
constexpr int kPipeLines = kPipeMost + 2 * kPipeRows + kPipeAhead;
static_assert(kPipeRows == kGroupRows, "a turn ends where a group does");
static_assert(kPipeAhead + kSmooth + 2 <= kPipeRows, "a row is overwritten when no sweep reads it any more");

// Columns at each end of a strip that serve the others alone, in whole groups. A sweep uses up one of them, and so do
// the defect and its restriction.
__host__ __device__ constexpr int pipe_side(bool up) { return up ? 4 : 8; }
__host__ __device__ constexpr int pipe_step(bool up) { return kPipeThreads - 2 * pipe_side(up); }

// PipeTransfers are what goes between a row and the coarse level: rows of three arrays of P' beside one another for a
// coarse row, and for the next one; on the way up, those rows of u, too. On the way down a place for the norm's sums.
struct PipeTransfers {
  float p[6][kPipeThreads];
  union {
    float u[2][kPipeThreads];
    Limbs limbs[kPipeThreads / kGroupColumns];
  };
};

// PipePlaces are where columns of a block are in memory, and the coarse ones that it reads.
struct PipePlaces { int fine[kPipeThreads], coarse[kPipeThreads]; };

// PipeRings is the shared memory of a block. Neighbours beyond its columns are never set: what they reach is not used.
struct PipeRings {
  enum { kCentre, kB, kLong, kU = kLong, kEast, kSouth, kArrays };
  static constexpr int kShort = 4;  // rows of the arrays from kLong on, of which no sweep reads rows before t - 1
  double rows[kLong * kPipeRows + (kArrays - kLong) * kShort][kPipeThreads];
  PipeTransfers transfers[kPipeSlots];
  PipePlaces places;
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
  // the sum of the former or ends it. Besides, it may be one that the block writes, or that counts for the norm.
  enum { kFirst = 1, kSecond = 2, kBegins = 4, kEnds = 8, kBetween = 16, kWrites = 32, kCounts = 64 };
  const WeightedArg<Real>& a;
  int column;  // kNone: the thread has none
  int at;      // the thread that has the fine column on it
  float sum;

  __device__ __forceinline__ PipeRestriction(const WeightedArg<Real>& a, int left) : a(a), sum(0) {
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
  // end adds the defects of the row.
  __device__ __forceinline__ void end(Line y, const PipeTransfers& transfers, const float* defects) {
    if (!(y.next & (kFirst | kSecond)) || column == kNone) return;
    const float d[3] = {defects[at], defects[at + 1], defects[at + 2]};
    const auto add = [&](int from) {
      const auto p = [&](int k) { return transfers.p[from + k][threadIdx.x]; };
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
template <bool kUp> struct PipeSquares {
  const WeightedArg<double>& a;
  const bool own;
  Limbs* const limbs;  // in shared memory, as registers are short
  double sum = 0;

  __device__ __forceinline__ PipeSquares(const WeightedArg<double>& a, Limbs (&all)[kPipeThreads / kGroupColumns],
                                         bool own)
      : a(a), own(own && threadIdx.x % kGroupColumns == 0), limbs(all + threadIdx.x / kGroupColumns) {
    if (!kUp && this->own) limbs->clear(a.bias);
  }
  __device__ __forceinline__ void add(bool counts, double d) {
    const double d1 = __shfl_down_sync(kAll, d, 1);
    const double pair = fused(d1, d1, fused(d, d, kSmallest<double>));
    const double all = pair + __shfl_down_sync(kAll, pair, 2);
    if (counts) sum += all;
  }
  // end ends a group, of which some rows counted.
  __device__ __forceinline__ void end(int rows) {
    if (rows > 0 && own) limbs->add(sum - surplus<double>(rows));
    sum = 0;
  }
  __device__ __forceinline__ void flush(unsigned long long* words, int lane) const {
    Limbs mine;
    mine.clear(a.bias);
    if (own) mine = *limbs;
    mine.drain(a.bias, words, own, lane);
    ::flush(words, a.sums, lane);
  }
};

// PipeCorrection is what corrects a column: the coarse one on which it lies or that before it and, if it lies between
// two, the next one.
struct PipeCorrection {
  int at;  // the place of the coarse column in the rows of a block
  bool between;

  template <class Real>
  __device__ __forceinline__ PipeCorrection(const WeightedArg<Real>& a, int x, int coarseLeft) {
    at = min(a.x.at(x, between) - coarseLeft, kPipeThreads - 2);
  }
  // in returns the correction of the column in row y.
  __device__ __forceinline__ float in(Line y, const PipeTransfers& t) const {
    const float* const own = t.p[between ? 2 : 1] + at;
    float e = own[0] * t.u[0][at];
    if (between) e = fused(t.p[0][at + 1], t.u[0][at + 1], e);
    if (y.next == kNone) return e;
    e = fused(own[3 * kPipeThreads], t.u[1][at], e);
    if (between) e = fused(t.p[3][at + 1], t.u[1][at + 1], e);
    return e;
  }
};

// PipeBlock is the place of a thread and its block in a level.
template <class Real, bool kUp> struct PipeBlock {
  const WeightedArg<Real>& a;
  int left, x, top, lo, hi;  // the first column that the block writes; the thread's; the rows that the block writes
  int coarseLeft, coarseEnd;  // coarse columns that it reads
  bool inside, own;          // the thread serves no other; and is swept
  bool wraps;                // columns are copies of those at the other end
  const PipePlaces& places;

  __device__ __forceinline__ PipeBlock(const WeightedArg<Real>& a, PipePlaces& places) : a(a), places(places) {
    constexpr int kSide = pipe_side(kUp);
    const Grid& g = a.fine;
    const int thread = threadIdx.x;
    left = blockIdx.x % a.strips * pipe_step(kUp), x = left - kSide + thread;
    top = (a.lo & -kGroupRows) + (int)(blockIdx.x / a.strips) * a.blockRows;
    lo = max(top, a.lo), hi = min(top + a.blockRows, a.hi);
    inside = thread >= kSide && thread < kPipeThreads - kSide, own = inside && x >= g.lo && x < g.hi;
    const bool halved = a.x.coarse != a.x.fine;
    coarseLeft = (halved ? left / 2 : left) - (kUp ? 4 : 0);  // so that copies of 16 bytes are possible
    coarseEnd = min(coarseLeft + (halved ? kPipeThreads / 2 + 4 : kPipeThreads), a.coarse.nx);
    wraps = g.turnX && (left - kSide <= g.lo || left - kSide + kPipeThreads > g.hi);
    const int place = around(x, g.lo, g.hi, g.turnX);
    places.fine[thread] = place >= 0 && place < g.nx ? place : kNone;
    places.coarse[thread] = around(coarseLeft + thread, a.coarse.lo, a.coarse.hi, a.coarse.turnX);
  }
  template <class T>
  __device__ __forceinline__ static void copy_places(T* to, const T* from, const int* places, int row, int lane) {
#pragma unroll 1
    for (int i = lane; i < kPipeThreads; i += kWarp) {
      const int place = row == kNone ? kNone : places[i];
      if (place == kNone) to[i] = 0;
      else copy_async<sizeof(T)>(to + i, from + place);
    }
  }
  // copy begins to load the block's columns of a row, with zeros where there are none. A warp does it together.
  __device__ __forceinline__ void copy(Real* to, const Real* from, int row, int lane) const {
    constexpr int kPer = kPer16<Real>;
    const Real* const first = from + (ptrdiff_t)row * a.fine.pitch;
    if (wraps) return copy_places(to, first, places.fine, row, lane);
    const int begin = left - pipe_side(kUp) + lane * kPer;
#pragma unroll
    for (int i = 0; i < kPipeThreads; i += kWarp * kPer)
      copy16_or_zero_async(to + lane * kPer + i, first + begin + i,
                           row != kNone && (unsigned)(begin + i) < (unsigned)a.fine.nx);
  }
  // copy_coarse begins to load the block's columns of a coarse row.
  __device__ __forceinline__ void copy_coarse(float* to, const float* from, int row, int lane) const {
    const float* const first = from + (ptrdiff_t)row * a.coarse.pitch;
    if (kUp && wraps) return copy_places(to, first, places.coarse, row, lane);
    const int begin = coarseLeft + lane * 4;
#pragma unroll
    for (int i = 0; i < kPipeThreads; i += kWarp * 4)
      copy16_or_zero_async(to + lane * 4 + i, first + begin + i, (unsigned)(begin + i) < (unsigned)coarseEnd);
  }
  // copy_transfers begins to load the k-th arrays of what a row needs on the way to the coarse level or back.
  __device__ __forceinline__ void copy_transfers(PipeTransfers& to, Line y, int k, int lane) const {
    using Restriction = PipeRestriction<Real>;
    const bool between = kUp ? y.next != kNone : y.next & Restriction::kBetween;
    const bool first = kUp ? a.coarseU && y.at != kNone : y.next & Restriction::kFirst;
    const bool second = kUp ? first && between : y.next & Restriction::kSecond;
    const int next = kUp ? y.next : y.coarse + 1;
    if (first) copy_coarse(to.p[k], a.transfer.of(k + (between ? 6 : 3)), y.coarse, lane);
    if (second) copy_coarse(to.p[3 + k], a.transfer.of(k), next, lane);
    if (kUp && k == 0 && first) copy_coarse(to.u[0], a.coarseU, y.coarse, lane);
    if (kUp && k == 1 && second) copy_coarse(to.u[1], a.coarseU, next, lane);
  }
  // find_lines sets the rows from top - kPipeRows on, and those before them.
  template <int kBefore, int kLines>
  __device__ __forceinline__ void find_lines(Line (&before)[kBefore], Line (&lines)[kLines]) const {
    const Grid& g = a.fine;
    if (threadIdx.x < kBefore) before[threadIdx.x] = {kNone, kNone, 0};
    for (int i = threadIdx.x; i < kLines; i += kPipeThreads) {
      const int y = top - kPipeRows + i, reach = kSmooth + (kUp ? 0 : 2);
      Line row;
      row.find(y, g.top, g.bottom, g.rowLo, g.rowHi, g.turnY, a.y, a.coarse.top, a.coarse.bottom, a.coarse.turnY);
      if (y < lo - reach || y >= hi + reach) row.at = kNone;
      if (!kUp) {
        using Restriction = PipeRestriction<Real>;
        row.coarse = Restriction::line(a, y, lo, hi, row.next);
        if (y >= lo && y < hi) row.next |= Restriction::kWrites;
        if (y >= max(lo, a.countLo) && y < min(hi, a.countHi)) row.next |= Restriction::kCounts;
      }
      lines[i] = row;
    }
  }
  // store sets the value of the thread's column in row y of the field, if the block writes it.
  __device__ __forceinline__ void store(int y, Line row, Real v) const {
    const Grid& g = a.fine;
    if (!own || !(kUp ? y >= lo && y < hi : row.next & PipeRestriction<Real>::kWrites)) return;
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
  static_assert(kPipeWarps == R::kArrays + 3, "a warp for each array, and for each column of P'");
  const Grid& g = a.fine;
  const int thread = threadIdx.x, lane = thread % kWarp, warp = thread / kWarp;
  const PipeBlock<double, kUp> block(a, rings.places);
  const int x = block.x, top = block.top, hi = block.hi;
  block.find_lines(rings.before, rings.lines);
  const Line* lines = rings.lines;  // of the rows of a turn
  using Restriction = PipeRestriction<double>;
  Restriction restriction(a, block.left);
  const double* const array = warp == R::kCentre ? a.centre : warp == R::kB ? a.b : warp == R::kU ? a.from
                              : warp == R::kEast ? a.east : a.south;
  // fetch begins to load row i of a turn into the rings.
  const auto fetch = [&](int i) {
    const int own = opaque(lane);  // lest addresses of all rows take registers
    if (warp < R::kArrays) {
      const int slot = opaque(warp < R::kLong ? i % kPipeRows : i % R::kShort);
      block.copy(rings.of(warp, 0) + slot * kPipeThreads, array, lines[i].at, own);
    } else {
      block.copy_transfers(rings.transfers[i % kPipeSlots], lines[kUp ? i : i - kSmooth - 2], warp - R::kArrays, own);
    }
    copies_commit();
  };
  if (lane < kSumWords) rings.words[thread / kWarp][lane] = 0;
  PipeSquares<kUp> squares(a, rings.transfers[0].limbs, block.inside && x < g.nx);
  const PipeCorrection correction(a, x, block.coarseLeft);
  // By row mod kPipeRows: R, the couplings of the thread's column to all but the northern neighbour, and what sweep k
  // reads.
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
      const double c = rings.of(R::kCentre, i)[thread];
      r[i] = c > 0 ? 1 / c : 0;
      e[i] = rings.of(R::kEast, i)[thread], s[i] = rings.of(R::kSouth, i)[thread];
      w[i] = rings.of(R::kEast, i)[max(thread - 1, 0)];
      u[0][i] = rings.of(R::kU, i)[thread];
      if (kUp && c > 0) {
        const float by = a.coarseU ? correction.in(lines[i], rings.transfers[i % kPipeSlots]) : 0;
        rings.of(R::kU, i)[thread] = u[0][i] = fused(a.scale, (double)by, u[0][i]);
      }
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
        if (!kUp && k == 1) squares.add(lines[i - 1].next & Restriction::kCounts, x >= g.lo && x < g.hi ? d : 0);
        u[k][at] = r[at] > 0 ? fused(a.weights[k - 1], d, u[k - 1][at]) : u[k - 1][at];
        if (!kUp || k < kSmooth) rings.swept[i & 1][k - 1][1 + thread] = u[k][at];
      }
      block.store(t - kSmooth, lines[i - kSmooth], u[kSmooth][(i - kSmooth) & kMask]);
      if (!kUp) {
        if (i == 0) squares.end(min(t, min(hi, a.countHi)) - max(t - kGroupRows, max(block.lo, a.countLo)));
        const double d = defect(kSmooth + 1);
        const double c = rings.of(R::kCentre, (i - kSmooth - 1) & kMask)[thread];
        rings.defects[i & 1][1 + thread] = (float)(c * d * a.scale);
        restriction.end(lines[i - kSmooth - 2], rings.transfers[i % kPipeSlots], rings.defects[(i - 1) & 1]);
      }
      copies_wait<kPipeAhead - 1>();
      __syncthreads();
    }
  }
  if (kUp) return;
  squares.flush(rings.words[warp], lane);
}
