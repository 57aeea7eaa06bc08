// The operators: how one sweep makes the new value of a point from the values of the sweep before.
//
// The kernels of sweeps and of multigrid with constant coefficients, the harness (../bench) and the emulation
// (../emulate) call update or defect. The levels of a weighted operator have defects of their own (weighted_pipe.cuh,
// weighted_nine.cuh, weighted_tile.cuh). The order of the operations is part of the results: docs/numerics.md. Each
// operation rounds on its own, so the kernels are compiled with -fmad=false.
#pragma once
#include "primitives.cuh"

template <class Real>
__host__ __device__ __forceinline__ Real update(Real /*centre*/, Real west, Real east, Real north, Real south) {
  return Real(0.25) * ((west + east) + (north + south));
}

__device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

// The general operator, with h, q and b of solver.Operator.
template <class Real>
__device__ __forceinline__ Real update(Real h, Real q, Real b, Real west, Real east, Real north, Real south) {
  const Real s = west + east, t = north + south;
  return fused(h, fused(q, t - s, s), b);
}

// The weighted operator, with the values of the point in the order of solver.Value.
template <class Real>
__device__ __forceinline__ Real update(Real b, Real w, Real e, Real n, Real s, Real west, Real east, Real north,
                                       Real south) {
  return fused(w, west, fused(e, east, fused(n, north, fused(s, south, b))));
}

// defect returns the update of a point by the general operator: its new value less its value.
template <class Real>
__device__ __forceinline__ Real defect(Real h, Real q, Real b, Real centre, Real west, Real east, Real north,
                                       Real south) {
  return update(h, q, b, west, east, north, south) - centre;
}

// screening is aggregation.Screening.
__device__ __forceinline__ double screening(double diagonal, double w, double e, double n, double s) {
  const double k = diagonal - ((w + e) + (n + s));
  return k > 0x1p-49 * diagonal ? k : 0;
}

// residual_by_differences is the residual of a point with the value v, whose diagonal is c.
__device__ __forceinline__ double residual_by_differences(double b, double c, double v, double w, double e, double n,
                                                          double s, double west, double east, double north,
                                                          double south) {
  const double row = w * (west - v) + e * (east - v), column = n * (north - v) + s * (south - v);
  return (b + (row + column)) - screening(c, w, e, n, s) * v;
}
