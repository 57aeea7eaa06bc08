// The exact sum of a sweep's groups (see solver.Sum), as a lane collects it.
//
// A group's sum q, at most 2^(2E+7), is cut into three limbs of units a, b, c: c = 2^(2E-134), the unit of solver.Sum,
// b = 2^47 c, a = 2^47 b. Each limb is a double that begins at bias = 2^52 units and never rounds up: adding toward
// minus infinity cuts what is added to a multiple of the unit, exactly, and the difference tells what is left for the
// next limb. A limb holds up to 2^52 units, so a lane adds at most kMostGroups groups, then drains.
#pragma once
#include "pass.cuh"

constexpr int kMostGroups = 32;

struct Limbs {
  double limb[3];

  // In memory, 32 lanes' limbs lie side by side.
  __device__ __forceinline__ void load(const double* from) {
#pragma unroll
    for (int i = 0; i < 3; i++) limb[i] = from[32 * i];
  }
  __device__ __forceinline__ void save(double* to) const {
#pragma unroll
    for (int i = 0; i < 3; i++) to[32 * i] = limb[i];
  }

  __device__ __forceinline__ void clear(const double* bias) {
#pragma unroll
    for (int i = 0; i < 3; i++) limb[i] = bias[i];
  }

  __device__ __forceinline__ void add(double q) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const double sum = __dadd_rd(limb[i], q);
      q -= sum - limb[i];
      limb[i] = sum;
    }
    limb[2] = __dadd_rd(limb[2], q);
  }
};

// add_lanes returns the sum over the warp of n <= 2^52 of each lane.
__device__ __forceinline__ unsigned long long add_lanes(unsigned long long n) {
#if __CUDA_ARCH__ >= 800
  const unsigned low = __reduce_add_sync(kAll, (unsigned)n & 0x7ffffffu);  // 32 times 27 bits
  const unsigned high = __reduce_add_sync(kAll, (unsigned)(n >> 27));
  return ((unsigned long long)high << 27) + low;
#else
  for (int d = 16; d; d >>= 1) n += __shfl_xor_sync(kAll, n, d);
  return n;
#endif
}

// drain adds what the lanes with ok set have collected to the words of a sweep's sum, and clears. Words 2i and 2i+1
// are limb i's units modulo 2^31 and above; word 6 counts warps with a limb that overflowed or is not a number.
__device__ __forceinline__ void drain(Limbs& l, const double* bias, unsigned long long* words, bool ok, int lane) {
#pragma unroll
  for (int i = 0; i < 3; i++) {
    const unsigned long long n = ok ? __double_as_longlong(l.limb[i]) - __double_as_longlong(bias[i]) : 0;
    const bool bad = n > 1ull << 52;
    const unsigned long long sum = add_lanes(bad ? 0 : n);
    const bool anyBad = __any_sync(kAll, bad);
    if (lane == 0) {
      if (sum & 0x7fffffff) atomicAdd(words + 2 * i, sum & 0x7fffffff);
      if (sum >> 31) atomicAdd(words + 2 * i + 1, sum >> 31);
      if (anyBad) atomicAdd(words + 6, 1ull);
    }
  }
  l.clear(bias);
}
