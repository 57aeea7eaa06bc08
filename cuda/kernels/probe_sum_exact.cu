// probe_sum_exact adds the values exactly, as the norm of a run does (sum.cuh, docs/numerics.md): every order and any
// number of GPUs gives the same words. Values are at least 0 and at most 2^7; bits below 2^-134 are cut off. A lane
// adds kMostGroups values to three limbs, then the warp drains its lanes. words must be 0 before the launch, and hold
// the sum afterwards. Any grid adds all values.
//
//   arithmetic   8 operations in double precision for each value
#include "probe_sum.cuh"
#include "sum.cuh"

// Bias is what the limbs begin with.
struct Bias {
  double limb[kLimbs];
};

template <class T>
__device__ __forceinline__ void probe_sum_exact(const T* v, unsigned long long n, const Bias& bias,
                                                unsigned long long* words) {
  constexpr int kPack = 16 / sizeof(T), kLoads = kMostGroups / kPack, kChunk = 32 * kMostGroups;
  __shared__ unsigned long long sums[kSumThreads / 32][kSumWords];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned long long* const sum = sums[warp];
  if (lane < kSumWords) sum[lane] = 0;
  __syncwarp();
  const unsigned long long step = (unsigned long long)gridDim.x * (kSumThreads / 32) * kChunk;
  unsigned long long at = ((unsigned long long)blockIdx.x * (kSumThreads / 32) + warp) * kChunk;
  for (; at < n; at += step) {
    Limbs limbs;
    limbs.clear(bias.limb);
    if (at + kChunk <= n) {
      const Pack<T>* const packs = (const Pack<T>*)(v + at);
      constexpr int kBatch = 4;
      for (int l = 0; l < kLoads; l += kBatch) {
        Pack<T> p[kBatch];
#pragma unroll
        for (int b = 0; b < kBatch; b++) p[b] = packs[(l + b) * 32 + lane];
#pragma unroll
        for (int b = 0; b < kBatch; b++)
#pragma unroll
          for (int k = 0; k < kPack; k++) limbs.add((double)p[b].v[k]);
      }
    } else {
      for (int k = 0; k < kMostGroups; k++) {
        const unsigned long long i = at + k * 32 + lane;
        if (i < n) limbs.add((double)v[i]);
      }
    }
    limbs.drain(bias.limb, sum, true, lane);
  }
  flush(sum, words, lane);
}
extern "C" __global__ void __launch_bounds__(kSumThreads)
    probe_sum_exact_f32(const float* v, unsigned long long n, Bias bias, unsigned long long* words) {
  probe_sum_exact(v, n, bias, words);
}
extern "C" __global__ void __launch_bounds__(kSumThreads)
    probe_sum_exact_f64(const double* v, unsigned long long n, Bias bias, unsigned long long* words) {
  probe_sum_exact(v, n, bias, words);
}
