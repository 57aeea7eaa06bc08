// The operator: how one sweep makes the new value of a point from the values of the sweep before.
//
// All kernels, the harness (../bench) and the emulation (../emulate) call update; nothing else in CUDA knows the
// operator. The order of the operations is part of the results: docs/numerics.md. Each operation rounds on its own, so
// the kernels are compiled with -fmad=false.
#pragma once
#include "primitives.cuh"

template <class Real>
__host__ __device__ __forceinline__ Real update(Real /*centre*/, Real west, Real east, Real north, Real south) {
  return Real(0.25) * ((west + east) + (north + south));
}
