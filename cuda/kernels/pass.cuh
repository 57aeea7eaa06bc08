// What all sweep kernels share: the arguments of a pass, rows in registers, the update, the group sum.
//
// Compiled with -fmad=false and without flush-to-zero: each operation rounds on its own, as on the CPU, except the
// fused multiply-adds written as such.
#pragma once
#include "primitives.cuh"

constexpr int kGroup = 8;       // rows of a group of the norm; its columns are 4
constexpr int kSumWords = 8;    // 64-bit words of one sweep's sum, see sum.cuh
constexpr unsigned kAll = ~0u;  // all lanes of a warp

// Side is what becomes of the rows at one end of a stripe as a pass of several sweeps goes over them.
template <class Real> struct Side {
  const unsigned* came;  // this rank's word: the halo is there once it is at least Pass.awaited; 0: it is there
  Real* to;              // the halo that the stripe's outer rows are handed to, with the same pitch; 0: none
  unsigned* theirs;      // the neighbour's word, set to Pass.posted then; 0: nobody looks before the kernel ends
  unsigned* rows;        // how many rows, counted in each strip, are handed on, 0 before and after
};

// Pass is the argument of every sweep kernel; pass in ../kernel.go has the same layout. Rows are global row numbers.
// Row r of a field begins at field + (r - rowLo) * pitch, and rows [rowLo, rowHi) exist. pitch is a multiple of 8; columns
// [nx, pitch) of now hold finite numbers, those of next get the same.
template <class Real> struct Pass {
  const Real* now;
  Real* next;
  unsigned long long* sums;  // kSumWords for each sweep; the kernel adds to them
  double bias[3];            // where the limbs of the sum begin, see sum.cuh
  int pitch, nx;
  int rowLo, rowHi;
  int outLo, outHi;        // rows of next to write; none of them is fixed
  int countLo, countHi;    // rows whose updates count for the norm
  int fixTop, fixBottom;   // rows that keep their values; far away if there are none
  int tileRows;            // height of a tile, of held*: in an inner column of tiles; a multiple of kGroup, and tiles begin at multiples of kGroup
  int sweeps;
  Side<Real> sides[2];  // above and below; once_* leave them alone
  unsigned awaited, posted;
  int depth;            // rows to hand on, at least `sweeps`; 0: none
  int seam, edge;       // what strips cost besides their rows, see shares.cuh; of held*, edge is the height of a tile in the outer columns
};

// W neighbouring columns of one row.
template <class Real, int W> struct Row { Real v[W]; };

__device__ __forceinline__ void load16(float* to, const float* from) {
  const float4 t = *(const float4*)from;
  to[0] = t.x, to[1] = t.y, to[2] = t.z, to[3] = t.w;
}
__device__ __forceinline__ void load16(double* to, const double* from) {
  const double2 t = *(const double2*)from;
  to[0] = t.x, to[1] = t.y;
}
__device__ __forceinline__ void store16(float* to, const float* from) { *(float4*)to = make_float4(from[0], from[1], from[2], from[3]); }
__device__ __forceinline__ void store16(double* to, const double* from) { *(double2*)to = make_double2(from[0], from[1]); }

// Values in 16 bytes, the unit of every access to memory.
template <class Real> constexpr int kPer16 = 16 / sizeof(Real);

template <class Real, int W> __device__ __forceinline__ void store_row(Real* to, const Row<Real, W>& r) {
#pragma unroll
  for (int j = 0; j < W; j += kPer16<Real>) store16(to + j, r.v + j);
}

// around returns the sums of the four values around each of a row, which lies between north and south; west and east are the
// columns beside it. A sweep takes a quarter of them.
template <class Real, int W>
__device__ __forceinline__ Row<Real, W> around(const Row<Real, W>& north, const Row<Real, W>& row, const Row<Real, W>& south, Real west, Real east) {
  Row<Real, W> o;
#pragma unroll
  for (int j = 0; j < W; j++) o.v[j] = ((j ? row.v[j - 1] : west) + (j < W - 1 ? row.v[j + 1] : east)) + (north.v[j] + south.v[j]);
  return o;
}

__device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

// The smallest normal number. Squares are added to it, so that no product is denormal, which costs CPUs dear; the sum of a
// group is less by surplus.
template <class Real> constexpr Real kSmallest = Real(0x1p-126);
template <> constexpr double kSmallest<double> = 0x1p-1022;

// surplus returns what the squares of so many rows of a group are too large by.
template <class Real> __device__ __forceinline__ Real surplus(int rows) { return 2 * max(rows, 0) * kSmallest<Real>; }

// squares returns one row's share of a group: the sum of squares of four updates, each added to `smallest`, in the order that
// all backends keep.
template <class Real> __device__ __forceinline__ Real squares(const Real* d, Real smallest) {
  return fused(d[1], d[1], fused(d[0], d[0], smallest)) + fused(d[3], d[3], fused(d[2], d[2], smallest));
}
