// The scalar products of conjugate gradients for a weighted operator. A lane has a column.
#pragma once
#include "dot.cuh"
#include "weighted_level.cuh"

constexpr int kWeightedProducts = 5;
constexpr int kProductThreads = 128;      // of a block
constexpr int kProductRows = 4 * kGroupRows;  // of a block

// ProductArg is the argument of weighted_products. `level` is that of level 0.
struct ProductArg {
  WeightedArg<double> level;
  const double *u, *x, *p;   // the fields after and before the cycle, the direction
  unsigned long long* sums;  // kDotWords for each of zz, zp, pp, zx, px; the kernel adds to them
  DotUnit unit;
};

// Fields are z, p and x at a point.
struct Fields { double z, p, x; };

// LaneRow is a row of a lane.
struct LaneRow {
  Fields west, own, east;
  double s;  // the coupling to the south
};

__device__ __forceinline__ double down_by(double v, int lanes) { return __shfl_down_sync(kAll, v, lanes); }

// add_products adds the products of the groups of a block.
__device__ __forceinline__ void add_products(const ProductArg& a) {
  DYNAMIC_SHARED(shared);
  using Sums = Dots<kWeightedProducts>;
  const int lane = threadIdx.x % kWarp;
  Sums dots;
  dots.begin(shared + threadIdx.x / kWarp * Sums::kBytes, lane);
  const WeightedArg<double>& l = a.level;
  const Grid& g = l.fine;
  const int x = blockIdx.x % l.strips * kProductThreads + threadIdx.x;
  const int first = (l.lo & -kGroupRows) + (int)(blockIdx.x / l.strips) * kProductRows;
  const int lo = max(first, l.lo), hi = min(first + kProductRows, l.hi);
  const bool swept = x >= g.lo && x < g.hi;
  const auto value = [&](const double* from, int row, int column) {
    return g.held(row, column) ? from[(ptrdiff_t)row * g.pitch + column] : 0;
  };
  const auto fields = [&](int row, int column) {
    const double before = value(a.x, row, column);
    return Fields{value(a.u, row, column) - before, value(a.p, row, column), before};
  };
  const auto row = [&](int y) {
    return LaneRow{fields(y, x - 1), fields(y, x), fields(y, x + 1), value(l.south, y, x)};
  };
  double sums[kWeightedProducts] = {};
  LaneRow north = row(lo - 1), middle = row(lo);
  for (int y = lo; y < hi; y++) {
    const LaneRow south = row(y + 1);
    const double c = swept ? value(l.centre, y, x) : 0, w = value(l.east, y, x - 1), e = value(l.east, y, x);
    const double inverse = c > 0 ? 1 / c : 0, b = value(l.b, y, x);
    const auto product = [&](double Fields::*f, double source) {
      double t = fused(north.s, north.own.*f, fused(middle.s, south.own.*f, source));
      t = fused(w, middle.west.*f, fused(e, middle.east.*f, t));
      return c > 0 ? c * fused(inverse, t, -(middle.own.*f)) : 0;
    };
    const double dz = product(&Fields::z, 0), dp = product(&Fields::p, 0), dx = product(&Fields::x, b);
    const double z = middle.own.z, p = middle.own.p;
    const double z1 = down_by(z, 1), p1 = down_by(p, 1), dz1 = down_by(dz, 1), dp1 = down_by(dp, 1),
                 dx1 = down_by(dx, 1);
    const double pairs[kWeightedProducts] = {fused(dz1, z1, dz * z), fused(dp1, z1, dp * z), fused(dp1, p1, dp * p),
                                             fused(dx1, z1, dx * z), fused(dx1, p1, dx * p)};
    for (int k = 0; k < kWeightedProducts; k++) sums[k] += pairs[k] + down_by(pairs[k], 2);
    north = middle, middle = south;
    if ((y + 1) % kGroupRows && y + 1 < hi) continue;
    for (int k = 0; k < kWeightedProducts; k++) {
      if (lane % kGroupColumns == 0) dots.add(k, sums[k], a.unit);
      sums[k] = 0;
    }
  }
  dots.flush(a.sums, lane);
}
