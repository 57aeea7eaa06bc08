// Rows in registers: W neighbouring columns of one row, which a thread loads, sweeps and stores together.
#pragma once
#include "update.cuh"

template <class Real, int W> struct Row { Real v[W]; };

// Every access to memory is one of 16 bytes. kPer16 is how many values that is.
template <class Real> constexpr int kPer16 = 16 / sizeof(Real);

__device__ __forceinline__ void load16(float* to, const float* from) {
  const float4 t = *(const float4*)from;
  to[0] = t.x, to[1] = t.y, to[2] = t.z, to[3] = t.w;
}
__device__ __forceinline__ void load16(double* to, const double* from) {
  const double2 t = *(const double2*)from;
  to[0] = t.x, to[1] = t.y;
}
__device__ __forceinline__ void store16(float* to, const float* from) {
  *(float4*)to = make_float4(from[0], from[1], from[2], from[3]);
}
__device__ __forceinline__ void store16(double* to, const double* from) {
  *(double2*)to = make_double2(from[0], from[1]);
}

template <class Real, int W> __device__ __forceinline__ void store_row(Real* to, const Row<Real, W>& r) {
#pragma unroll
  for (int j = 0; j < W; j += kPer16<Real>) store16(to + j, r.v + j);
}

// update_row returns the row that one sweep makes of `row`. north and south are the rows above and below it, west and
// east the values beside it.
template <class Real, int W>
__device__ __forceinline__ Row<Real, W> update_row(const Row<Real, W>& north, const Row<Real, W>& row,
                                                   const Row<Real, W>& south, Real west, Real east) {
  Row<Real, W> o;
#pragma unroll
  for (int j = 0; j < W; j++)
    o.v[j] = update(row.v[j], j ? row.v[j - 1] : west, j < W - 1 ? row.v[j + 1] : east, north.v[j], south.v[j]);
  return o;
}
