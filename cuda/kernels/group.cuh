// Groups of the norm: 8 rows by 4 columns, aligned in the mesh, whose squares are added in one fixed order
// (docs/numerics.md).
#pragma once
#include "update.cuh"

constexpr int kGroupRows = 8, kGroupColumns = 4;

// The smallest normal number. Sums of squares start from it, because denormal results slow CPUs down and all backends
// compute the same. surplus is the excess.
template <class Real> constexpr Real kSmallest = Real(0x1p-126);
template <> constexpr double kSmallest<double> = 0x1p-1022;

// surplus returns the excess of a group's sum over `rows` of its rows.
template <class Real> __device__ __forceinline__ Real surplus(int rows) { return 2 * max(rows, 0) * kSmallest<Real>; }

// squares returns what one row adds to its group: the squares of its four updates d, each pair on top of `smallest`.
template <class Real> __device__ __forceinline__ Real squares(const Real* d, Real smallest) {
  return fused(d[1], d[1], fused(d[0], d[0], smallest)) + fused(d[3], d[3], fused(d[2], d[2], smallest));
}
