// A step of conjugate gradients on level 0: the scalar products, and the change of direction and field.
// solver/multigrid/cg.go defines both. For the products a block goes down the rows of a strip of columns, a thread for
// each. Arrays begin where row 0 of the mesh is or would be.
#pragma once
#include "dot.cuh"
#include "weighted_sets.cuh"

constexpr int kWeightedProducts = 5;
constexpr int kProductThreads = 256;                       // of a block
constexpr int kProductSide = kGroupColumns;                // columns at each end that serve the others alone
constexpr int kProductStep = kProductThreads - 2 * kProductSide;
constexpr int kProductRing = 4, kProductAhead = 2;         // rows in shared memory, and of those under way from memory
constexpr int kStepThreads = 256;                          // of a block, each with two columns

// ProductArg is the argument of weighted_products. `level` is that of level 0.
struct ProductArg {
  WeightedArg<double> level;
  const double *u, *x, *p;   // the fields after and before the cycle, the direction
  unsigned long long* sums;  // kDotWords for each of zz, zp, pp, zx, px; the kernel adds to them
  DotUnit unit;
  int differences;           // not 0: residuals are those by differences
};

__device__ __forceinline__ double down_by(double v, int lanes) { return __shfl_down_sync(kAll, v, lanes); }

// SharedDots are the sums of a warp. Of the four lanes that have a group each adds one sum, and the first one two, so
// that they add them at once.
struct SharedDots {
  static constexpr int kLanes = 4, kBytes = Dots<2>::kBytes;
  Dots<2> dots;

  __device__ __forceinline__ void add(const double (&sums)[kWeightedProducts], DotUnit unit, int lane, bool own) {
    double mine = 0;
#pragma unroll
    for (int k = 0; k < kLanes; k++) {
      const double v = __shfl_sync(kAll, sums[k], lane & -kLanes);
      if (lane % kLanes == k) mine = v;
    }
    if (own) dots.add(0, mine, unit);
    if (own && lane % kLanes == 0) dots.add(1, sums[kLanes], unit);
  }
  // flush adds what the lanes have collected to the words on the device.
  __device__ __forceinline__ void flush(unsigned long long* words, int lane) const {
    __syncwarp();
    const unsigned long long* const all = dots.bins - lane;
    for (int i = lane; i < kWeightedProducts * kDotBins; i += kWarp) {
      const int k = i / kDotBins, bin = k / kLanes * kDotBins + i % kDotBins;
      unsigned long long n = 0;
      for (int j = k % kLanes; j < kWarp; j += kLanes) n += all[bin * kWarp + j];
      if (n) atomicAdd(words + k * kDotWords + i % kDotBins, n);
    }
    for (int slot = 0; slot < 2; slot++)
      if (dots.bad >> slot & 1) atomicAdd(words + (slot ? kLanes : lane % kLanes) * kDotWords + kDotBins, 1ull);
  }
};

// ProductRings is the shared memory of a block.
struct ProductRings {
  enum { kU, kX, kP, kCentre, kB, kEast, kSouth, kArrays };
  double of[kArrays][kProductRing][kProductThreads];
  char dots[kProductThreads / kWarp][SharedDots::kBytes];
};

// add_products adds the products of the groups of a block.
__device__ __forceinline__ void add_products(const ProductArg& a) {
  DYNAMIC_SHARED(shared);
  ProductRings& rings = *(ProductRings*)shared;
  using R = ProductRings;
  constexpr int kMask = kProductRing - 1;
  const WeightedArg<double>& l = a.level;
  const Grid& g = l.fine;
  const int thread = threadIdx.x, lane = thread % kWarp;
  const int x = blockIdx.x % l.strips * kProductStep - kProductSide + thread;
  const int top = (l.lo & -kGroupRows) + (int)(blockIdx.x / l.strips) * l.blockRows;
  const int lo = max(top, l.lo), hi = min(top + l.blockRows, l.hi);
  const bool swept = x >= g.lo && x < g.hi;
  const bool own = thread >= kProductSide && thread < kProductThreads - kProductSide && (x & -kGroupColumns) < g.nx;
  const int west = thread ? -1 : 0, east = thread + 1 < kProductThreads ? 1 : 0;
  SharedDots all;
  all.dots.begin(rings.dots[thread / kWarp], lane);
  // fetch begins to load row y into the rings.
  const auto fetch = [&](int y, int slot) {
    const double* const from[R::kArrays] = {a.u, a.x, a.p, l.centre, l.b, l.east, l.south};
    const ptrdiff_t i = (ptrdiff_t)y * g.pitch + x;
    const bool held = g.held(y, x) && y >= lo - 1 && y <= hi;
#pragma unroll
    for (int k = 0; k < R::kArrays; k++) {
      if (held) copy_async<8>(&rings.of[k][slot][thread], from[k] + i);
      else rings.of[k][slot][thread] = 0;
    }
    copies_commit();
  };
  double z[kProductRing] = {}, p[kProductRing] = {}, before[kProductRing] = {}, s[kProductRing] = {};
  double sums[kWeightedProducts] = {};
  for (int i = 0; i < kProductAhead; i++) fetch(top - kProductRing + i, i);
  copies_wait<kProductAhead - 1>();
  __syncthreads();
#pragma unroll 1
  for (int begin = top - kProductRing; begin <= hi; begin += kProductRing) {
#pragma unroll
    for (int i = 0; i < kProductRing; i++) {
      const int y = begin + i - 1, at = (i - 1) & kMask, above = (i - 2) & kMask;  // row y is summed
      fetch(begin + i + kProductAhead, (i + kProductAhead) & kMask);
      const auto value = [&](int array, int row, int dx) { return rings.of[array][row][thread + dx]; };
      const auto change = [&](int row, int dx) { return value(R::kU, row, dx) - value(R::kX, row, dx); };
      z[i] = change(i, 0), p[i] = value(R::kP, i, 0), before[i] = value(R::kX, i, 0), s[i] = value(R::kSouth, i, 0);
      const double c = swept ? value(R::kCentre, at, 0) : 0, inverse = c > 0 ? 1 / c : 0;
      const double w = value(R::kEast, at, west), e = value(R::kEast, at, 0);
      const auto product = [&](const double* v, double before, double behind, double source) -> double {
        if (a.differences) {
          if (!(c > 0)) return 0;
          return residual_by_differences(source, c, v[at], w, e, s[above], s[at], before, behind, v[above], v[i]);
        }
        double t = fused(s[above], v[above], fused(s[at], v[i], source));
        t = fused(w, before, fused(e, behind, t));
        return c > 0 ? c * fused(inverse, t, -v[at]) : 0;
      };
      const double dz = product(z, change(at, west), change(at, east), 0);
      const double dp = product(p, value(R::kP, at, west), value(R::kP, at, east), 0);
      const double dx = product(before, value(R::kX, at, west), value(R::kX, at, east), value(R::kB, at, 0));
      const double z0 = z[at], p0 = p[at], z1 = down_by(z0, 1), p1 = down_by(p0, 1);
      const double dz1 = down_by(dz, 1), dp1 = down_by(dp, 1), dx1 = down_by(dx, 1);
      const double pairs[kWeightedProducts] = {fused(dz1, z1, dz * z0), fused(dp1, z1, dp * z0),
                                               fused(dp1, p1, dp * p0), fused(dx1, z1, dx * z0),
                                               fused(dx1, p1, dx * p0)};
      const bool counts = y >= lo && y < hi;
#pragma unroll
      for (int k = 0; k < kWeightedProducts; k++) {
        const double v = pairs[k] + down_by(pairs[k], 2);
        if (counts) sums[k] += v;
      }
      if (counts && ((y + 1) % kGroupRows == 0 || y + 1 == hi)) {
        all.add(sums, a.unit, lane, own);
#pragma unroll
        for (int k = 0; k < kWeightedProducts; k++) sums[k] = 0;
      }
      copies_wait<kProductAhead - 1>();
      __syncthreads();
    }
  }
  all.flush(a.sums, lane);
}

// Step is the argument of the kernel weighted_step: 24 bytes read and 24 written a point.
struct Step {
  double *u, *x, *p;
  double a, b;
  int pitch, nx;
  int lo, hi;           // rows
  int strips, segment;  // blocks next to each other; rows of a block
};

// step_columns sets p = fma(a, u - x, b p), and u and x to x + p.
__device__ __forceinline__ void step_columns(const Step& s) {
  const int column = (blockIdx.x % s.strips * kStepThreads + threadIdx.x) * 2;
  if (column >= s.nx) return;
  const int lo = s.lo + blockIdx.x / s.strips * s.segment, hi = min(lo + s.segment, s.hi);
#pragma unroll 4
  for (int y = lo; y < hi; y++) {
    const ptrdiff_t at = (ptrdiff_t)y * s.pitch + column;
    double u[2], x[2], p[2];
    load16(u, s.u + at), load16(x, s.x + at), load16(p, s.p + at);
#pragma unroll
    for (int j = 0; j < 2; j++) p[j] = fused(s.a, u[j] - x[j], s.b * p[j]), u[j] = x[j] + p[j];
    if (column + 1 == s.nx) p[1] = u[1] = 0;  // behind the row
    store16(s.p + at, p), store16(s.u + at, u), store16(s.x + at, u);
  }
}
