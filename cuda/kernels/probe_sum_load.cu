// probe_sum_load, step 4: the first addition during the load. Every thread loads two values and adds them, so all
// threads do some work, and there are half as many blocks. A block adds 512 values.
#include "probe_sum.cuh"

template <class T> __device__ __forceinline__ void probe_sum_load(const T* v, unsigned long long n, T* partial) {
  __shared__ T part[kSumThreads];
  const int t = threadIdx.x;
  const unsigned long long i = (unsigned long long)blockIdx.x * 2 * kSumThreads + t, j = i + kSumThreads;
  part[t] = (i < n ? v[i] : T(0)) + (j < n ? v[j] : T(0));
  __syncthreads();
  for (int s = kSumThreads / 2; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) partial[blockIdx.x] = part[0];
}
PROBE_SUM(probe_sum_load)
