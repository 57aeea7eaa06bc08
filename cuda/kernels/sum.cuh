// The exact sum of a sweep's groups (solver.Sum in Go), as a warp collects it.
//
// A group's sum q is at most 2^(2E+7), E being the magnitude of the problem. It is cut into three limbs with units a, b
// and c: c = 2^(2E-kUnitBits), b = 2^kLimbBits c, a = 2^kLimbBits b. Each limb is a double that starts at bias = 2^52
// units. Adding toward minus infinity cuts the addend to a multiple of the unit, exactly; the difference of the limb
// before and after is the part that was added, and the rest goes to the next limb. A limb holds up to 2^52 units, so a
// lane adds at most kMostGroups groups before the warp drains its lanes.
#pragma once
#include "group.cuh"

constexpr int kLimbs = 3;
constexpr int kLimbBits = 47;
constexpr int kUnitBits = 134;
constexpr int kSumWords = 8;          // 64-bit words of a sweep's sum on the device, see Limbs::drain
constexpr int kLowBits = 31;          // bits of a limb's count in the first of its two words
constexpr int kBadWord = 2 * kLimbs;  // the word that counts faults
constexpr int kMostGroups = 32;

struct Limbs {
  double limb[kLimbs];

  __device__ __forceinline__ void clear(const double* bias) {
#pragma unroll
    for (int i = 0; i < kLimbs; i++) limb[i] = bias[i];
  }

  // add adds the sum of a group.
  __device__ __forceinline__ void add(double q) {
#pragma unroll
    for (int i = 0; i < kLimbs - 1; i++) {
      const double sum = __dadd_rd(limb[i], q);
      q -= sum - limb[i];
      limb[i] = sum;
    }
    limb[kLimbs - 1] = __dadd_rd(limb[kLimbs - 1], q);
  }

  // drain adds what the lanes with ok set have collected to a sweep's words in shared memory, which belong to this
  // warp. Words 2i and 2i+1 hold the units of limb i modulo 2^kLowBits and above. kBadWord counts warps with a limb
  // that overflowed or is not a number. Counts are below 2^53, so they are added across the warp in a part of 27 bits
  // and a part of 26.
  __device__ __forceinline__ void drain(const double* bias, unsigned long long* words, bool ok, int lane) const {
    constexpr int kPart = 27;
#pragma unroll
    for (int i = 0; i < kLimbs; i++) {
      unsigned long long n = ok ? __double_as_longlong(limb[i]) - __double_as_longlong(bias[i]) : 0;
      const bool bad = __any_sync(kAll, n > 1ull << 52);
      n = __reduce_add_sync(kAll, (unsigned)n & ((1u << kPart) - 1)) +
          ((unsigned long long)__reduce_add_sync(kAll, (unsigned)(n >> kPart)) << kPart);
      if (lane == 0) {
        words[2 * i] += n & ((1u << kLowBits) - 1);
        words[2 * i + 1] += n >> kLowBits;
        if (bad) words[kBadWord]++;
      }
    }
  }
};

// flush adds a warp's words of a sweep to those of the device.
__device__ __forceinline__ void flush(const unsigned long long* words, unsigned long long* device, int lane) {
  __syncwarp();
  if (lane < kSumWords && words[lane]) atomicAdd(device + lane, words[lane]);
}
