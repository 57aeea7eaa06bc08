// probe_sum_shuffle, step 5: warp shuffles. The threads of a warp read each other's registers, so there is one barrier
// and 1/32 of the shared memory. A block adds 512 values.
#include "probe_sum.cuh"

template <class T> __device__ __forceinline__ void probe_sum_shuffle(const T* v, unsigned long long n, T* partial) {
  const unsigned long long i = (unsigned long long)blockIdx.x * 2 * kSumThreads + threadIdx.x, j = i + kSumThreads;
  const T sum = sumBlock((i < n ? v[i] : T(0)) + (j < n ? v[j] : T(0)));
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
PROBE_SUM(probe_sum_shuffle)
