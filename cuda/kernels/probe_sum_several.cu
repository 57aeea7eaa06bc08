// probe_sum_several, step 6: several values a thread. As many blocks as fit on the GPU at once go through all values,
// 16 bytes an instruction and four of them under way, so there are few blocks to start and few partial sums. Any grid
// adds all values.
#include "probe_sum.cuh"

template <class T> __device__ __forceinline__ void probe_sum_several(const T* v, unsigned long long n, T* partial) {
  const T sum = sumBlock(sumMany(v, n));
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
PROBE_SUM(probe_sum_several)
