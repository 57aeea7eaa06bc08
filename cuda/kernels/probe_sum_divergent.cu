// probe_sum_divergent, step 1: interleaved addressing with divergent branches. In step s, every 2s-th thread adds the
// value s further on. The threads that work are spread over all warps, so every warp takes part in every step, with
// ever fewer threads at work. A block adds 256 values.
#include "probe_sum.cuh"

template <class T>
__device__ __forceinline__ void probe_sum_divergent(const T* v, unsigned long long n, T* partial) {
  __shared__ T part[kSumThreads];
  const int t = threadIdx.x;
  const unsigned long long i = (unsigned long long)blockIdx.x * kSumThreads + t;
  part[t] = i < n ? v[i] : T(0);
  __syncthreads();
  for (int s = 1; s < kSumThreads; s *= 2) {
    if (t % (2 * s) == 0) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) partial[blockIdx.x] = part[0];
}
PROBE_SUM(probe_sum_divergent)
