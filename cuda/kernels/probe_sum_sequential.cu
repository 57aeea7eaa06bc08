// probe_sum_sequential, step 3: sequential addressing. The first s threads add the value s further on, so neighbouring
// threads use neighbouring banks. A block adds 256 values; half of its threads never add any.
#include "probe_sum.cuh"

template <class T>
__device__ __forceinline__ void probe_sum_sequential(const T* v, unsigned long long n, T* partial) {
  __shared__ T part[kSumThreads];
  const int t = threadIdx.x;
  const unsigned long long i = (unsigned long long)blockIdx.x * kSumThreads + t;
  part[t] = i < n ? v[i] : T(0);
  __syncthreads();
  for (int s = kSumThreads / 2; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) partial[blockIdx.x] = part[0];
}
PROBE_SUM(probe_sum_sequential)
