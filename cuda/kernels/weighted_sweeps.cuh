// The cycles of a weighted operator: sweeps, transfers and the norm. A thread has a point, or a group of the norm.
#pragma once
#include "sum.cuh"
#include "weighted_level.cuh"

// value returns that of a point, which is 0 beyond the rows and columns that are held.
template <class T> __device__ __forceinline__ T value(const Grid& g, const T* a, int y, int x) {
  return g.held(y, x) ? a[(ptrdiff_t)y * g.pitch + x] : T(0);
}

// defect_of returns d of a point for the field v(y, x). On level 0 c is C and b may be 0.
template <class V>
__device__ __forceinline__ double defect_of(const WeightedArg<double>& a, int y, int x, double c, double b, V&& v) {
  if (!(c > 0)) return 0;
  const Grid& g = a.fine;
  double t = fused(value(g, a.south, y, x), v(y + 1, x), b);
  t = fused(value(g, a.south, y - 1, x), v(y - 1, x), t);
  t = fused(value(g, a.east, y, x), v(y, x + 1), t);
  t = fused(value(g, a.east, y, x - 1), v(y, x - 1), t);
  return fused(1 / c, t, -v(y, x));
}
template <class V>
__device__ __forceinline__ float defect_of(const WeightedArg<float>& a, int y, int x, float q, float b, V&& v) {
  const Grid& g = a.fine;
  float t = fused(value(g, a.southEast, y, x), v(y + 1, x + 1), b);
  t = fused(value(g, a.southWest, y, x), v(y + 1, x - 1), t);
  t = fused(value(g, a.southWest, y - 1, x + 1), v(y - 1, x + 1), t);
  t = fused(value(g, a.southEast, y - 1, x - 1), v(y - 1, x - 1), t);
  t = fused(value(g, a.south, y, x), v(y + 1, x), t);
  t = fused(value(g, a.south, y - 1, x), v(y - 1, x), t);
  t = fused(value(g, a.east, y, x), v(y, x + 1), t);
  t = fused(value(g, a.east, y, x - 1), v(y, x - 1), t);
  return fused(-q, v(y, x), t);
}

// defect_at returns d of a point of the field `from`.
template <class Real>
__device__ __forceinline__ Real defect_at(const WeightedArg<Real>& a, int y, int x, const Real* from) {
  const ptrdiff_t i = (ptrdiff_t)y * a.fine.pitch + x;
  return defect_of(a, y, x, a.centre[i], a.b[i], [&](int row, int column) { return value(a.fine, from, row, column); });
}

template <class Real> __device__ __forceinline__ void sweep_point(const WeightedArg<Real>& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.fine)) return;
  const ptrdiff_t i = (ptrdiff_t)at.y * a.fine.pitch + at.x;
  Real u = a.from[i];
  if (a.centre[i] > 0) u = fused(a.weight, defect_at(a, at.y, at.x, a.from), u);
  a.fine.store(a.to, a.fine.pitch, at.y, at.x, u);
}

// narrow returns what is restricted of d.
__device__ __forceinline__ float narrow(const WeightedArg<double>& a, int y, int x, double d) {
  return (float)(a.centre[(ptrdiff_t)y * a.fine.pitch + x] * d * a.scale);
}
__device__ __forceinline__ float narrow(const WeightedArg<float>&, int, int, float d) { return d; }

// restrict_point computes the right-hand side of a coarse point.
template <class Real> __device__ __forceinline__ void restrict_point(const WeightedArg<Real>& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.coarse)) return;
  const ptrdiff_t i = (ptrdiff_t)at.y * a.coarse.pitch + at.x;
  float sum = 0;
  for (int k = 0; k < 9; k++) {
    const int dy = k / 3 - 1, dx = k % 3 - 1;
    if (!a.y.beside(at.y, dy) || !a.x.beside(at.x, dx)) continue;
    int y = a.y.on(at.y) + dy, x = a.x.on(at.x) + dx;
    if (a.fine.find(y, x)) sum = fused(a.transfer.of(k)[i], narrow(a, y, x, defect_at(a, y, x, a.from)), sum);
  }
  a.coarse.store(a.coarseB, a.coarse.pitch, at.y, at.x, sum);
}

__device__ __forceinline__ double corrected(double scale, float e, double u) { return fused(scale, (double)e, u); }
__device__ __forceinline__ float corrected(double, float e, float u) { return u + e; }

// correct_point adds the correction from the next level.
template <class Real> __device__ __forceinline__ void correct_point(const WeightedArg<Real>& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.fine)) return;
  bool betweenY, betweenX;
  const int northWestY = a.y.at(at.y, betweenY), northWestX = a.x.at(at.x, betweenX);
  float e = 0;
  for (int down = 0; down <= betweenY; down++)
    for (int right = 0; right <= betweenX; right++) {
      const int dy = betweenY ? 1 - 2 * down : 0, dx = betweenX ? 1 - 2 * right : 0;  // seen from the coarse point
      int row = northWestY + down, column = northWestX + right;
      a.coarse.find(row, column);  // it may be one of a wall
      const ptrdiff_t i = (ptrdiff_t)row * a.coarse.pitch + column;
      const float p = a.transfer.of(4 + 3 * dy + dx)[i], u = a.coarseU[i];
      e = down || right ? fused(p, u, e) : p * u;
    }
  const ptrdiff_t i = (ptrdiff_t)at.y * a.fine.pitch + at.x;
  a.fine.store(a.to, a.fine.pitch, at.y, at.x, a.centre[i] > 0 ? corrected(a.scale, e, a.from[i]) : a.from[i]);
}

constexpr int kNormThreads = 128;  // of a block, each with a group of the norm

// NormGroup is the group of a thread: columns [x, x + kGroupColumns) of rows [top, bottom) of the stripe.
struct NormGroup {
  int x, top, bottom;
  bool ok;
  template <class Arg> __device__ __forceinline__ NormGroup(const Arg& a, const Grid& g) {
    const int first = a.lo / kGroupRows;  // a.lo is not negative
    x = (blockIdx.x % a.strips * blockDim.x + threadIdx.x) * kGroupColumns;
    top = max(a.lo, (first + (int)(blockIdx.x / a.strips)) * kGroupRows);
    bottom = min(a.hi, (first + (int)(blockIdx.x / a.strips) + 1) * kGroupRows);
    ok = x < g.nx && top < bottom;
  }
};

// add_squares adds the squares of d of a group to the sum.
__device__ __forceinline__ void add_squares(const WeightedArg<double>& a) {
  __shared__ unsigned long long all[kNormThreads / kWarp][kSumWords];
  const int lane = threadIdx.x % kWarp;
  unsigned long long* const words = all[threadIdx.x / kWarp];
  if (lane < kSumWords) words[lane] = 0;
  __syncwarp();
  const NormGroup at(a, a.fine);
  Limbs limbs;
  limbs.clear(a.bias);
  if (at.ok) {
    double sum = 0;
    for (int y = at.top; y < at.bottom; y++) {
      double d[kGroupColumns];
      for (int j = 0; j < kGroupColumns; j++) {
        const int x = at.x + j;
        d[j] = x >= a.fine.lo && x < a.fine.hi ? defect_at(a, y, x, a.from) : 0;
      }
      sum += squares(d, kSmallest<double>);
    }
    limbs.add(sum - surplus<double>(at.bottom - at.top));
  }
  limbs.drain(a.bias, words, at.ok, lane);
  flush(words, a.sums, lane);
}
