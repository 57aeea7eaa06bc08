// Defects of a coarser level of a weighted operator, and their restriction. A thread has a coarse point.
#pragma once
#include "weighted_level.cuh"

// value returns that of a point, which is 0 beyond the rows and columns that are held.
template <class T> __device__ __forceinline__ T value(const Grid& g, const T* a, int y, int x) {
  return g.held(y, x) ? a[(ptrdiff_t)y * g.pitch + x] : T(0);
}

// defect_at returns d of a point of the field `from`.
__device__ __forceinline__ float defect_at(const WeightedArg<float>& a, int y, int x) {
  const Grid& g = a.fine;
  const ptrdiff_t i = (ptrdiff_t)y * g.pitch + x;
  const auto v = [&](int row, int column) { return value(g, a.from, row, column); };
  float t = fused(a.southEast[i], v(y + 1, x + 1), a.b[i]);
  t = fused(a.southWest[i], v(y + 1, x - 1), t);
  t = fused(value(g, a.southWest, y - 1, x + 1), v(y - 1, x + 1), t);
  t = fused(value(g, a.southEast, y - 1, x - 1), v(y - 1, x - 1), t);
  t = fused(a.south[i], v(y + 1, x), t);
  t = fused(value(g, a.south, y - 1, x), v(y - 1, x), t);
  t = fused(a.east[i], v(y, x + 1), t);
  t = fused(value(g, a.east, y, x - 1), v(y, x - 1), t);
  return fused(-a.centre[i], v(y, x), t);
}

// restrict_point computes the right-hand side of a coarse point.
__device__ __forceinline__ void restrict_point(const WeightedArg<float>& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.coarse)) return;
  const ptrdiff_t i = (ptrdiff_t)at.y * a.coarse.pitch + at.x;
  float sum = 0;
  for (int k = 0; k < 9; k++) {
    const int dy = k / 3 - 1, dx = k % 3 - 1;
    if (!a.y.beside(at.y, dy) || !a.x.beside(at.x, dx)) continue;
    int y = a.y.on(at.y) + dy, x = a.x.on(at.x) + dx;
    if (a.fine.find(y, x)) sum = fused(a.transfer.of(k)[i], defect_at(a, y, x), sum);
  }
  a.coarse.store(a.coarseB, a.coarse.pitch, at.y, at.x, sum);
}
