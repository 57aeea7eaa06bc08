// The strip of columns that a warp takes of a level, and the rows that it makes.
#pragma once
#include "multigrid_rows.cuh"

// Strip has kWarp * W columns, of which kSide at both ends belong to its neighbours.
template <class Real, int W, int kSide> struct Strip {
  static constexpr int kWidth = kWarp * W, kStep = kWidth - 2 * kSide;
  int lane, x0, x;  // first column of the strip, and of the lane
  bool outer;       // the strip has columns of walls or beyond the mesh
  bool each;        // the lane reads columns that lie elsewhere
  int load;         // otherwise it reads W columns from here on
  bool stores;
  unsigned keeps;   // bit j: no sweep changes column x+j

  __device__ __forceinline__ void take_strip(const Smooth<Real>& a, int strip) {
    lane = threadIdx.x % kWarp;
    x0 = strip * kStep - kSide, x = x0 + W * lane;
    stores = x >= x0 + kSide && x < x0 + kSide + kStep && x < a.nx;
    outer = x0 < a.columns.lo + 1 || x0 + kWidth >= a.columns.hi;
    // Beyond a fixed wall any numbers will do: no sweep changes the wall.
    each = (x < a.columns.lo && a.columns.low != kNearest) || (x + W > a.columns.hi && a.columns.high != kNearest);
    load = min(max(x, 0), (a.nx - 1) / W * W);
    keeps = 0;
    if (outer)
      for (int j = 0; j < W; j++) keeps |= a.columns.keeps(x + j) ? 1u << j : 0;
  }

  // counted returns a bit for each column whose d counts for the norm.
  __device__ __forceinline__ unsigned counted(const Smooth<Real>& a) const {
    unsigned bits = 0;
    for (int j = 0; j < W; j++)
      if (stores && x + j >= a.columns.lo && x + j < a.columns.hi && !(keeps >> j & 1)) bits |= 1u << j;
    return bits;
  }

  // coarse_columns returns the coarse columns that are restricted from this strip.
  __device__ __forceinline__ int2 coarse_columns(const Smooth<Real>& a) const {
    const Span& c = a.coarseColumns;
    const int left = max(c.lo, coarse_from(x0 + kSide, a.coarseX, a.fineX));
    const int right = min(c.hi, coarse_from(x0 + kSide + kStep, a.coarseX, a.fineX));
    return make_int2(max(left, c.fixedLow + 1), min(right, c.fixedHigh));
  }
};

// Part is the rows [lo, hi) of one of several parts of a level. They begin at `first`, a multiple of the alignment,
// except where the level begins later.
struct Part {
  int first, lo, hi;

  // top returns where the first part would begin.
  template <class Real> __device__ __forceinline__ static int top(const Smooth<Real>& a) {
    return a.outLo / a.align * a.align - (a.outLo < 0 ? a.align : 0);
  }
  // The parts of tiles have tileRows rows.
  template <class Real> __device__ __forceinline__ Part(const Smooth<Real>& a, int part) {
    first = top(a) + part * a.tileRows;
    lo = max(a.outLo, first), hi = min(a.outHi, first + a.tileRows);
  }
  // Those of pipes are as equal as can be.
  template <class Real> __device__ __forceinline__ Part(const Smooth<Real>& a, int part, int parts) {
    const int top = Part::top(a);
    const int pieces = (a.outHi - top + a.align - 1) / a.align;
    first = top + (int)((long long)pieces * part / parts) * a.align;
    lo = max(a.outLo, first);
    hi = min(a.outHi, top + (int)((long long)pieces * (part + 1) / parts) * a.align);
  }
  // coarse_rows returns the coarse rows that are restricted from this part.
  template <class Real> __device__ __forceinline__ int2 coarse_rows(const Smooth<Real>& a) const {
    return make_int2(max(a.coarseLo, coarse_from(lo, a.coarseY, a.fineY)),
                     min(a.coarseHi, coarse_from(hi, a.coarseY, a.fineY)));
  }
};
