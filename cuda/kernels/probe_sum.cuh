// The sum of n values, by the steps in which reductions are taught. Each kernel adds the values of a block of
// kSumThreads threads and writes one partial sum a block; launched again on the partial sums, it leaves one value.
//
//   traffic   n values read once; the partial sums are few
//
// Integers are added modulo 2^32 and 2^64, so any order gives the same sum. Sums of floating-point numbers depend on
// the order, except for probe_sum_exact.
#pragma once
#include "primitives.cuh"

constexpr int kSumThreads = 256;

// A kernel for all types.
#define PROBE_SUM(name) \
  extern "C" __global__ void __launch_bounds__(kSumThreads) \
      name##_i32(const unsigned* v, unsigned long long n, unsigned* partial) { name(v, n, partial); } \
  extern "C" __global__ void __launch_bounds__(kSumThreads) \
      name##_i64(const unsigned long long* v, unsigned long long n, unsigned long long* partial) { \
    name(v, n, partial); \
  } \
  extern "C" __global__ void __launch_bounds__(kSumThreads) \
      name##_f32(const float* v, unsigned long long n, float* partial) { name(v, n, partial); } \
  extern "C" __global__ void __launch_bounds__(kSumThreads) \
      name##_f64(const double* v, unsigned long long n, double* partial) { name(v, n, partial); }

// sumBlock returns the sum of the values of a block's threads to thread 0: by shuffles within each warp, then of the
// warps. All threads call it. The first thread may use the result before the others have left.
template <class T> __device__ __forceinline__ T sumBlock(T sum) {
  __shared__ T warps[kSumThreads / 32];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < kSumThreads / 32 ? warps[threadIdx.x] : T(0);
    for (int by = kSumThreads / 64; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
  }
  return sum;
}

// Four values of 4 bytes, or two of 8, which one instruction loads from an address that is a multiple of 16.
template <class T> struct __align__(16) Pack {
  T v[16 / sizeof(T)];
};

// sumMany returns what a thread adds of the values in a grid of blocks: packs of 16 bytes, as many packs apart as the
// grid has threads, so that a warp's loads touch one piece of memory, and four packs at a time, so that many loads are
// under way. v is a multiple of 16; n is any number.
template <class T> __device__ __forceinline__ T sumMany(const T* v, unsigned long long n) {
  constexpr int kPack = 16 / sizeof(T), kLoads = 4;
  const Pack<T>* const packs = (const Pack<T>*)v;
  const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x, count = n / kPack;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  T sums[kPack] = {};
  for (; i + (kLoads - 1) * threads < count; i += kLoads * threads) {
    Pack<T> p[kLoads];
#pragma unroll
    for (int l = 0; l < kLoads; l++) p[l] = packs[i + l * threads];
#pragma unroll
    for (int l = 0; l < kLoads; l++)
#pragma unroll
      for (int k = 0; k < kPack; k++) sums[k] += p[l].v[k];
  }
  for (; i < count; i += threads) {
    const Pack<T> p = packs[i];
#pragma unroll
    for (int k = 0; k < kPack; k++) sums[k] += p.v[k];
  }
  const unsigned long long rest = kPack * count + threadIdx.x;  // values after the last pack
  if (blockIdx.x == 0 && rest < n) sums[0] += v[rest];
#pragma unroll
  for (int k = 1; k < kPack; k++) sums[0] += sums[k];
  return sums[0];
}
