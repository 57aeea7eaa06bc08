// The levels of sets of unknowns, package aggregation in Go, which defines every operation and their order: the way
// from points of the finest level to level 1 and back, and the cycles of the levels. Levels with few unknowns are left
// to one block, which does all their cycles.
#pragma once
#include "update.cuh"
#include "weighted_level.cuh"

constexpr int kTilePoints = 4;  // of the finest level

// PointSets is the argument of the kernels between points and level 1.
struct PointSets {
  Grid fine;
  double* v;
  const double *b, *centre, *east, *south;
  const int* sets;    // by point, rows from setsLo on: its unknown, or -1
  double* unknowns;   // of level 1: the right-hand side, or the solution
  double scale;       // 2^-E or 2^E
  int setsLo;
  int lo, hi, strips;             // rows of tiles, or of points, and strips of kPointColumns columns of these
  int rows, columns;              // of a tile
  int firstRow, firstColumn;      // of the first tile
  int interiorLo, interiorHi;     // rows of the mesh
};

// residual_of_point returns that of a point of v.
__device__ __forceinline__ double residual_of_point(const PointSets& a, int y, int x) {
  const Grid& g = a.fine;
  const ptrdiff_t i = (ptrdiff_t)y * g.pitch + x;
  const bool west = g.held(y, x - 1), east = g.held(y, x + 1), north = g.held(y - 1, x), south = g.held(y + 1, x);
  return residual_by_differences(a.b[i], a.centre[i], a.v[i], west ? a.east[i - 1] : 0, a.east[i],
                                 north ? a.south[i - g.pitch] : 0, a.south[i], west ? a.v[i - 1] : 0,
                                 east ? a.v[i + 1] : 0, north ? a.v[i - g.pitch] : 0, south ? a.v[i + g.pitch] : 0);
}

__device__ __forceinline__ int set_of(const PointSets& a, int y, int x) {
  return a.sets[(ptrdiff_t)(y - a.setsLo) * a.fine.nx + x];
}

// restrict_points adds the residuals of the points of a tile, one a thread, over its sets.
__device__ __forceinline__ void restrict_points(const PointSets& a) {
  const ThreadPoint at(a);
  int set[kTilePoints];
  double r[kTilePoints];
#pragma unroll
  for (int k = 0; k < kTilePoints; k++) {
    const int y = a.firstRow + at.y * a.rows + k / a.columns, x = a.firstColumn + at.x * a.columns + k % a.columns;
    const bool point = at.ok && y >= a.interiorLo && y < a.interiorHi && x >= a.fine.lo && x < a.fine.hi;
    set[k] = point ? set_of(a, y, x) : -1;
    r[k] = set[k] >= 0 ? residual_of_point(a, y, x) * a.scale : 0;
  }
#pragma unroll
  for (int k = 0; k < kTilePoints; k++) {
    bool first = set[k] >= 0;
    for (int j = 0; j < k; j++) first = first && set[j] != set[k];
    if (!first) continue;
    double sum = 0;
    for (int j = k; j < kTilePoints; j++)
      if (set[j] == set[k]) sum += r[j];
    a.unknowns[set[k]] = sum;
  }
}

// correct_point adds the solution of level 1 to a point.
__device__ __forceinline__ void correct_point(const PointSets& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.fine)) return;
  const int set = set_of(a, at.y, at.x);
  if (set < 0) return;
  const ptrdiff_t i = (ptrdiff_t)at.y * a.fine.pitch + at.x;
  a.fine.store(a.v, a.fine.pitch, at.y, at.x, a.v[i] + a.unknowns[set] * a.scale);
}

constexpr int kSetThreads = 256;                           // of a block; lanes of a chunk
constexpr int kSetChunk = 1024;                            // unknowns
constexpr int kFewThreads = 1024;                          // of the block with the small levels
constexpr int kSetSums = 3;
constexpr double kSetWeight = 2. / 3;

// SetLevel is a level: the arrays of aggregation.Level, and vectors by unknown.
struct SetLevel {
  const float* excess;
  const double* inverse;
  const int *begin, *neighbour;
  const float* face;
  const int *set, *first, *members;  // null on the coarsest level
  double *b, *x, *y;
  double *v, *r, *second;  // null without steps of conjugate gradients
  double* sums;            // by chunk, kSetSums arrays one after the other
  int n, chunks;

  __device__ __forceinline__ double residual(int i, double b, const double* x) const {
    const double own = x[i];
    double r = b - (double)excess[i] * own;
    for (int k = begin[i]; k < begin[i + 1]; k++) r += (double)face[k] * (x[neighbour[k]] - own);
    return r;
  }
  __device__ __forceinline__ void sweep(int i, const double* from, const double* b, double* to) const {
    to[i] = from[i] + kSetWeight * (inverse[i] * residual(i, b[i], from));
  }
  // first_sweep is the one from 0.
  __device__ __forceinline__ void first_sweep(int i, double b) const { y[i] = kSetWeight * (inverse[i] * b); }
  // restrict_to sums the residuals of y for unknown i of the next level.
  __device__ __forceinline__ void restrict_to(const SetLevel& next, int i, const double* b) const {
    double sum = 0;
    for (int k = first[i]; k < first[i + 1]; k++) sum += residual(members[k], b[members[k]], y);
    next.b[i] = sum;
    next.first_sweep(i, sum);
  }
  __device__ __forceinline__ void correct(int i, const double* from) const {
    if (set[i] >= 0) y[i] += from[set[i]];
  }
};

// halve returns, to the first of kSetThreads lanes, the sum of their numbers: the first half plus the second one, until
// one is left. All threads of the block call it; part is of these lanes.
__device__ __forceinline__ double halve(double* part, int lane, double v) {
  part[lane] = v;
  __syncthreads();
  for (int n = kSetThreads / 2; n >= kWarp; n /= 2) {
    if (lane < n) part[lane] += part[lane + n];
    __syncthreads();
  }
  v = part[lane % kWarp];
  for (int n = kWarp / 2; n > 0; n /= 2) v += __shfl_down_sync(kAll, v, n);
  __syncthreads();
  return v;
}

// SetDots adds up to three scalar products of a chunk.
struct SetDots {
  double sums[kSetSums] = {};
  template <class Terms> __device__ __forceinline__ void add(int chunk, int lane, int n, const Terms& terms) {
    for (int i = chunk * kSetChunk + lane; i < min((chunk + 1) * kSetChunk, n); i += kSetThreads) terms(i, sums);
  }
};

// total returns, to the first lane, the sum of the sums of chunks.
__device__ __forceinline__ double total(const double* sums, int chunks, double* part, int lane) {
  double v = 0;
  for (int i = lane; i < chunks; i += kSetThreads) v += sums[i];
  return halve(part, lane, v);
}

// SetStep is the numbers of a step of conjugate gradients, on the device.
struct SetStep {
  enum { kDone = 1, kScale = 2, kBoth = 3, kMore = 4 };  // what happens to x: nothing, p x, p x + q second; not known
  double rho, alpha, bb, t, p, q;
  long long way;

  __device__ __forceinline__ void first(double c, double cb, double square) {
    rho = c, alpha = cb, bb = square;
    way = rho > 0 ? kMore : kDone;
    t = rho > 0 ? alpha / rho : 0;
    p = t;
  }
  __device__ __forceinline__ void residual(double square) {
    if (way == kMore && square <= bb / 16) way = kScale;
  }
  __device__ __forceinline__ void second(double beta, double gamma, double alpha2) {
    const double rest = beta - gamma * gamma / rho;
    way = rest > 1e-14 * beta ? kBoth : kScale;
    if (way == kBoth) p = t - gamma * alpha2 / (rho * rest), q = alpha2 / rest;
  }
};

// Sets is the argument of the kernels of a level.
struct Sets {
  SetLevel level, next;
  const double* b;
  double* to;
  SetStep* step;
};

__device__ __forceinline__ int set_thread() { return blockIdx.x * kSetThreads + threadIdx.x; }

__device__ __forceinline__ void begin_sets(const Sets& a) {
  const int i = set_thread();
  if (i < a.level.n) a.level.first_sweep(i, a.b[i]);
}
__device__ __forceinline__ void restrict_sets(const Sets& a) {
  const int i = set_thread();
  if (i < a.next.n) a.level.restrict_to(a.next, i, a.b);
}
__device__ __forceinline__ void correct_sets(const Sets& a) {
  const int i = set_thread();
  if (i < a.level.n) a.level.correct(i, a.next.x);
}
__device__ __forceinline__ void sweep_sets(const Sets& a) {
  const int i = set_thread();
  if (i < a.level.n) a.level.sweep(i, a.level.y, a.b, a.to);
}

// The terms of the sums of unknown i, with what else is done there.
struct FirstTerms {
  const SetLevel& l;
  __device__ __forceinline__ void operator()(int i, double (&sums)[kSetSums]) const {
    const double c = l.x[i], b = l.b[i], v = 0 - l.residual(i, 0, l.x);
    l.v[i] = v;
    sums[0] += c * v, sums[1] += c * b, sums[2] += b * b;
  }
};
struct ReduceTerms {
  const SetLevel& l;
  double t;
  __device__ __forceinline__ void operator()(int i, double (&sums)[kSetSums]) const {
    const double r = l.b[i] - t * l.v[i];
    l.r[i] = r;
    l.first_sweep(i, r);
    sums[0] += r * r;
  }
};
struct SecondTerms {
  const SetLevel& l;
  __device__ __forceinline__ void operator()(int i, double (&sums)[kSetSums]) const {
    const double c = l.second[i], v = 0 - l.residual(i, 0, l.second);
    sums[0] += c * v, sums[1] += c * l.v[i], sums[2] += c * l.r[i];
  }
};

// sum_chunk adds the terms of a chunk, one a block.
template <class Terms> __device__ __forceinline__ void sum_chunk(const SetLevel& l, const Terms& terms, int count) {
  __shared__ double part[kSetThreads];
  SetDots dots;
  dots.add(blockIdx.x, threadIdx.x, l.n, terms);
  for (int k = 0; k < count; k++) {
    const double v = halve(part, threadIdx.x, dots.sums[k]);
    if (threadIdx.x == 0) l.sums[(ptrdiff_t)k * l.chunks + blockIdx.x] = v;
  }
}

// combine_sets ends a step.
__device__ __forceinline__ void combine_set(const SetLevel& l, const SetStep& s, int i) {
  if (s.way == SetStep::kScale) l.x[i] *= s.p;
  else if (s.way == SetStep::kBoth) l.x[i] = s.p * l.x[i] + s.q * l.second[i];
}
__device__ __forceinline__ void combine_sets(const Sets& a) {
  const int i = set_thread();
  if (i < a.level.n) combine_set(a.level, *a.step, i);
}

// total_sets adds the sums of all chunks after the first product, the residual or the second product.
template <int kStage> __device__ __forceinline__ void total_sets(const Sets& a) {
  __shared__ double part[kSetThreads];
  const SetLevel& l = a.level;
  double v[kSetSums];
  for (int k = 0; k < (kStage == 1 ? 1 : kSetSums); k++)
    v[k] = total(l.sums + (ptrdiff_t)k * l.chunks, l.chunks, part, threadIdx.x);
  if (threadIdx.x) return;
  if (kStage == 0) a.step->first(v[0], v[1], v[2]);
  else if (kStage == 1) a.step->residual(v[0]);
  else a.step->second(v[0], v[1], v[2]);
}

// FewSets is the argument of the kernel of the small levels: all from `first` on, of `levels`.
struct FewSets {
  const SetLevel* levels;
  const double* inverse;  // of the coarsest level; null: it has its sweeps alone
  int first, count;
};

// FewBlock does the cycles of the small levels.
struct FewBlock {
  enum { kMostLevels = 64 };
  const FewSets& a;
  double (&part)[kFewThreads];
  SetStep* const steps;  // by level
  char* const stages;

  template <class Do> __device__ __forceinline__ void each(int n, const Do& act) const {
    for (int i = threadIdx.x; i < n; i += kFewThreads) act(i);
    __syncthreads();
  }
  // sum adds the terms of all unknowns and gives the first thread the totals.
  template <class Terms, class Take>
  __device__ __forceinline__ void sum(const SetLevel& l, int count, const Terms& terms, const Take& take) const {
    const int group = threadIdx.x / kSetThreads, lane = threadIdx.x % kSetThreads;
    double* const own = part + group * kSetThreads;
    for (int base = 0; base < l.chunks; base += kFewThreads / kSetThreads) {
      const int chunk = base + group;
      SetDots dots;
      if (chunk < l.chunks) dots.add(chunk, lane, l.n, terms);
      for (int k = 0; k < count; k++) {
        const double v = halve(own, lane, dots.sums[k]);
        if (lane == 0 && chunk < l.chunks) l.sums[k * l.chunks + chunk] = v;
      }
    }
    __syncthreads();
    double v[kSetSums] = {};
    for (int k = 0; k < count; k++) v[k] = total(l.sums + k * l.chunks, group ? 0 : l.chunks, own, lane);
    if (threadIdx.x == 0) take(v);
    __syncthreads();
  }
  __device__ __forceinline__ void go_down(const SetLevel& l, const SetLevel& next, const double* b) const {
    each(next.n, [&](int i) { l.restrict_to(next, i, b); });
  }
  __device__ __forceinline__ void go_up(const SetLevel& l, const SetLevel& next, const double* b, double* to) const {
    each(l.n, [&](int i) { l.correct(i, next.x); });
    each(l.n, [&](int i) { l.sweep(i, l.y, b, to); });
  }
  __device__ __forceinline__ void solve_coarsest(const SetLevel& l) const {
    if (!a.inverse) return each(l.n, [&](int i) { l.sweep(i, l.y, l.b, l.x); });
    each(l.n, [&](int i) {
      double sum = 0;
      for (int j = 0; j < l.n; j++) sum += a.inverse[(ptrdiff_t)i * l.n + j] * l.b[j];
      l.x[i] = sum;
    });
  }
  // solve solves on the first of the levels: stage 0 of a level goes down, 1 comes up, and 2 does so the second time.
  __device__ __forceinline__ void solve() const {
    for (int i = a.first;;) {
      const SetLevel& l = a.levels[i];
      bool done = true;
      if (i + 1 == a.count) {
        solve_coarsest(l);
      } else {
        const SetLevel& next = a.levels[i + 1];
        SetStep& step = steps[i];
        const int stage = stages[i];
        __syncthreads();
        if (stage == 0) {
          go_down(l, next, l.b);
          done = false;
        } else if (stage == 1) {
          go_up(l, next, l.b, l.x);
          if (i % 2 == 0) {
            sum(l, kSetSums, FirstTerms{l}, [&](double* v) { step.first(v[0], v[1], v[2]); });
            if (step.way == SetStep::kMore) {
              sum(l, 1, ReduceTerms{l, step.t}, [&](double* v) { step.residual(v[0]); });
              if (step.way == SetStep::kMore) {
                go_down(l, next, l.r);
                done = false;
              }
            }
            if (done) each(l.n, [&](int k) { combine_set(l, step, k); });
          }
        } else {
          go_up(l, next, l.r, l.second);
          sum(l, kSetSums, SecondTerms{l}, [&](double* v) { step.second(v[0], v[1], v[2]); });
          each(l.n, [&](int k) { combine_set(l, step, k); });
        }
        if (threadIdx.x == 0) stages[i] = done ? 0 : stage + 1;
        __syncthreads();
      }
      if (!done) i++;
      else if (i-- == a.first) return;
    }
  }
};

__device__ __forceinline__ void solve_few(const FewSets& a) {
  __shared__ double part[kFewThreads];
  __shared__ SetStep steps[FewBlock::kMostLevels];
  __shared__ char stages[FewBlock::kMostLevels];
  if (threadIdx.x < FewBlock::kMostLevels) stages[threadIdx.x] = 0;
  __syncthreads();
  FewBlock{a, part, steps, stages}.solve();
}
