// The exact sum of a sweep's groups (see solver.Sum), as a warp collects it.
//
// A group's sum q, at most 2^(2E+7), is cut into three limbs of units a, b, c: c = 2^(2E-134), the unit of solver.Sum,
// b = 2^47 c, a = 2^47 b. Each limb is a double that begins at bias = 2^52 units and never rounds up: adding toward
// minus infinity cuts what is added to a multiple of the unit, exactly, and the difference tells what is left for the
// next limb. A limb holds up to 2^52 units, so a lane adds at most kMostGroups groups, then the warp drains its lanes.
#pragma once
#include "pass.cuh"

constexpr int kMostGroups = 32;

struct Limbs {
  double limb[3];

  __device__ __forceinline__ void clear(const double* bias) {
#pragma unroll
    for (int i = 0; i < 3; i++) limb[i] = bias[i];
  }

  // add adds the sum of a group.
  __device__ __forceinline__ void add(double q) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const double sum = __dadd_rd(limb[i], q);
      q -= sum - limb[i];
      limb[i] = sum;
    }
    limb[2] = __dadd_rd(limb[2], q);
  }

  // drain adds what the lanes with ok set have collected to a sweep's words in shared memory, which belong to this warp.
  // Words 2i and 2i+1 are limb i's units modulo 2^31 and above; word 6 counts warps with a limb that overflowed or is not
  // a number.
  __device__ __forceinline__ void drain(const double* bias, unsigned long long* words, bool ok, int lane) const {
#pragma unroll
    for (int i = 0; i < 3; i++) {
      unsigned long long n = ok ? __double_as_longlong(limb[i]) - __double_as_longlong(bias[i]) : 0;
      const bool bad = __any_sync(kAll, n > 1ull << 52);
      n = __reduce_add_sync(kAll, (unsigned)n & 0x7ffffff) + ((unsigned long long)__reduce_add_sync(kAll, (unsigned)(n >> 27)) << 27);
      if (lane == 0) {
        words[2 * i] += n & 0x7fffffff;
        words[2 * i + 1] += n >> 31;
        if (bad) words[6]++;
      }
    }
  }
};

// flush adds a warp's words of a sweep to those of the device.
__device__ __forceinline__ void flush(const unsigned long long* words, unsigned long long* device, int lane) {
  __syncwarp();
  if (lane < kSumWords && words[lane]) atomicAdd(device + lane, words[lane]);
}
