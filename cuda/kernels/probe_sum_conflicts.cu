// probe_sum_conflicts, step 2: interleaved addressing by neighbouring threads. The first threads do the work, so whole
// warps rest. But thread t adds values 2s apart from those of thread t+1, and with 2s = 32 all of a warp lie in one
// bank of shared memory. A block adds 256 values.
#include "probe_sum.cuh"

template <class T>
__device__ __forceinline__ void probe_sum_conflicts(const T* v, unsigned long long n, T* partial) {
  __shared__ T part[kSumThreads];
  const int t = threadIdx.x;
  const unsigned long long i = (unsigned long long)blockIdx.x * kSumThreads + t;
  part[t] = i < n ? v[i] : T(0);
  __syncthreads();
  for (int s = 1; s < kSumThreads; s *= 2) {
    const int at = 2 * s * t;
    if (at < kSumThreads) part[at] += part[at + s];
    __syncthreads();
  }
  if (t == 0) partial[blockIdx.x] = part[0];
}
PROBE_SUM(probe_sum_conflicts)
