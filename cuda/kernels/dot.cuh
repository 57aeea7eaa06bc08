// The exact sums of signed products (multigrid.Dot in Go), as a warp collects them.
//
// A term is an integer of up to 53 bits times a power of two. It is added, in pieces of 32 bits, to three of kDotBins
// bins of 32 bits each. Bins are 64 bits wide and hold signed numbers, so 2^31 terms fit. Each lane has bins of its own
// in shared memory.
#pragma once
#include "primitives.cuh"

constexpr int kDotBins = 12;
constexpr int kDotWords = kDotBins + 1;  // 64-bit words of a sum on the device; the last one counts bad terms' lanes

// DotUnit is the unit of the sums, 2^(-1075 - shift), and how many bits a term may have.
struct DotUnit {
  int shift, bits;
};

// Dots are kSums sums of a warp.
template <int kSums> struct Dots {
  static constexpr int kBytes = kSums * kDotBins * kWarp * 8;  // of shared memory
  unsigned long long* bins;  // bin i of sum k of this lane is bins[(k * kDotBins + i) * kWarp]
  unsigned bad = 0;          // bit k: a term of sum k was not a number, infinite or too large

  __device__ __forceinline__ void begin(char* shared, int lane) {
    bins = (unsigned long long*)shared + lane;
    for (int i = 0; i < kSums * kDotBins; i++) bins[i * kWarp] = 0;
  }

  // add adds a term to sum k, cut to a multiple of the unit toward zero.
  __device__ __forceinline__ void add(int k, double term, DotUnit unit) {
    const unsigned long long bits = __double_as_longlong(term);
    const int exponent = bits >> 52 & 0x7ff;
    unsigned long long n = (bits & ((1ull << 52) - 1)) | (exponent ? 1ull << 52 : 0);
    int shift = max(exponent, 1) + unit.shift;  // |term| is n * 2^shift units
    if (shift < 0) {
      n = shift > -64 ? n >> -shift : 0;
      shift = 0;
    }
    const int room = unit.bits - shift;
    if (exponent == 0x7ff || (n && (room <= 0 || (room < 64 && n >> room)))) bad |= 1u << k;
    else if (n) spread(bins + (k * kDotBins + shift / 32) * kWarp, n, shift % 32, kDotBins - shift / 32, bits >> 63);
  }

  // spread adds n * 2^bit, or subtracts it, to at most `room` bins from `at` on. The rest of n is 0.
  __device__ __forceinline__ static void spread(unsigned long long* at, unsigned long long n, int bit, int room,
                                                bool subtract) {
    const unsigned long long low = n << bit, sign = subtract ? ~0ull : 0;
    const unsigned long long pieces[3] = {(unsigned)low, low >> 32, n >> 1 >> (63 - bit)};
#pragma unroll
    for (int i = 0; i < 3; i++)
      if (i < room) at[i * kWarp] += (pieces[i] ^ sign) - sign;
  }

  // flush adds what the lanes have collected to the words on the device.
  __device__ __forceinline__ void flush(unsigned long long* words, int lane) const {
    __syncwarp();
    const unsigned long long* const all = bins - lane;
    for (int i = lane; i < kSums * kDotBins; i += kWarp) {
      unsigned long long n = 0;
#pragma unroll 8
      for (int j = 0; j < kWarp; j++) n += all[i * kWarp + (j + lane) % kWarp];  // lanes read different banks
      if (n) atomicAdd(words + i / kDotBins * kDotWords + i % kDotBins, n);
    }
    for (int k = 0; k < kSums; k++)
      if (bad >> k & 1) atomicAdd(words + k * kDotWords + kDotBins, 1ull);
  }
};
