// The scalar products of conjugate gradients for a weighted operator. A thread has a group of the norm.
#pragma once
#include "dot.cuh"
#include "weighted_sweeps.cuh"

constexpr int kWeightedProducts = 5;
constexpr int kProductThreads = 128;  // of a block

// ProductArg is the argument of weighted_products. `level` is that of level 0.
struct ProductArg {
  WeightedArg<double> level;
  const double *u, *x, *p;   // the fields after and before the cycle, the direction
  unsigned long long* sums;  // kDotWords for each of zz, zp, pp, zx, px; the kernel adds to them
  DotUnit unit;
};

// weighted_product returns what a row adds to the sum of a group.
__device__ __forceinline__ double weighted_product(const double* v, const double* d) {
  return fused(d[1], v[1], d[0] * v[0]) + fused(d[3], v[3], d[2] * v[2]);
}

__device__ __forceinline__ void add_products(const ProductArg& a) {
  DYNAMIC_SHARED(shared);
  using Sums = Dots<kWeightedProducts>;
  const int lane = threadIdx.x % kWarp;
  Sums dots;
  dots.begin(shared + threadIdx.x / kWarp * Sums::kBytes, lane);
  const WeightedArg<double>& l = a.level;
  const Grid& g = l.fine;
  const NormGroup at(l, g);
  if (at.ok) {
    double sums[kWeightedProducts] = {};
    const auto fieldZ = [&](int y, int x) { return value(g, a.u, y, x) - value(g, a.x, y, x); };
    const auto fieldP = [&](int y, int x) { return value(g, a.p, y, x); };
    const auto fieldX = [&](int y, int x) { return value(g, a.x, y, x); };
    for (int y = at.top; y < at.bottom; y++) {
      double z[kGroupColumns], p[kGroupColumns], dz[kGroupColumns], dp[kGroupColumns], dx[kGroupColumns];
      for (int j = 0; j < kGroupColumns; j++) {
        const int x = at.x + j;
        const bool swept = x >= g.lo && x < g.hi;
        const double c = swept ? value(g, l.centre, y, x) : 0;
        z[j] = fieldZ(y, x), p[j] = fieldP(y, x);
        dz[j] = c * defect_of(l, y, x, c, 0, fieldZ);
        dp[j] = c * defect_of(l, y, x, c, 0, fieldP);
        dx[j] = c * defect_of(l, y, x, c, value(g, l.b, y, x), fieldX);
      }
      sums[0] += weighted_product(z, dz), sums[1] += weighted_product(z, dp), sums[2] += weighted_product(p, dp);
      sums[3] += weighted_product(z, dx), sums[4] += weighted_product(p, dx);
    }
    for (int k = 0; k < kWeightedProducts; k++) dots.add(k, sums[k], a.unit);
  }
  dots.flush(a.sums, lane);
}
