// Defects of a weighted operator, and their restriction. A thread has a coarse point.
#pragma once
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
