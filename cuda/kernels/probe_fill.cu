// probe_fill fills n values with numbers that follow from their index, which begins at `first`, so that a CPU knows
// their sum without a copy of them: integers from the upper half of a 64-bit hash of the index, and floating-point
// numbers from 0 to below 1 with all bits of the mantissa.
#include "probe_sum.cuh"

__device__ __forceinline__ unsigned long long hashOf(unsigned long long i) {
  i = (i + 1) * 0x9E3779B97F4A7C15ull;
  i = (i ^ i >> 32) * 0xD6E8FEB86659FD93ull;
  return i ^ i >> 32;
}
__device__ __forceinline__ void valueOf(unsigned long long hash, unsigned* v) { *v = hash >> 32; }
__device__ __forceinline__ void valueOf(unsigned long long hash, unsigned long long* v) { *v = hash; }
__device__ __forceinline__ void valueOf(unsigned long long hash, float* v) { *v = (float)(hash >> 40) * 0x1p-24f; }
__device__ __forceinline__ void valueOf(unsigned long long hash, double* v) { *v = (double)(hash >> 11) * 0x1p-53; }

template <class T> __device__ __forceinline__ void probe_fill(T* v, unsigned long long n, unsigned long long first) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) valueOf(hashOf(first + i), v + i);
}
#define PROBE_FILL(name, T) \
  extern "C" __global__ void __launch_bounds__(kSumThreads) \
      name(T* v, unsigned long long n, unsigned long long first) { probe_fill(v, n, first); }
PROBE_FILL(probe_fill_i32, unsigned)
PROBE_FILL(probe_fill_i64, unsigned long long)
PROBE_FILL(probe_fill_f32, float)
PROBE_FILL(probe_fill_f64, double)
