// probe_sum_once, step 7: one launch. The block that ends last adds the partial sums of all blocks. A count of the
// blocks that have ended tells which one that is; the last one sets it back to 0. partial holds the sum first, then the
// partial sum of each block.
#include "probe_sum.cuh"

template <class T>
__device__ __forceinline__ void probe_sum_once(const T* v, unsigned long long n, T* partial, unsigned* ended) {
  __shared__ bool last;
  T sum = sumBlock(sumMany(v, n));
  if (threadIdx.x == 0) {
    partial[1 + blockIdx.x] = sum;
    __threadfence();  // the partial sum is seen before the count
    last = atomicAdd(ended, 1u) == gridDim.x - 1;
    __threadfence();  // the count is read before the partial sums
  }
  __syncthreads();
  if (!last) return;
  sum = 0;
  const volatile T* const parts = partial + 1;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += kSumThreads) sum += parts[b];
  __syncthreads();  // before sumBlock uses its shared memory again
  sum = sumBlock(sum);
  if (threadIdx.x == 0) {
    partial[0] = sum;
    *ended = 0;
  }
}
#define PROBE_SUM_ONCE(name, T) \
  extern "C" __global__ void __launch_bounds__(kSumThreads) \
      name(const T* v, unsigned long long n, T* partial, unsigned* ended) { probe_sum_once(v, n, partial, ended); }
PROBE_SUM_ONCE(probe_sum_once_i32, unsigned)
PROBE_SUM_ONCE(probe_sum_once_i64, unsigned long long)
PROBE_SUM_ONCE(probe_sum_once_f32, float)
PROBE_SUM_ONCE(probe_sum_once_f64, double)
