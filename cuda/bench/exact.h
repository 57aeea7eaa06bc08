// The sum of a sweep's squares, computed on the host with more bits than needed, for comparison with the sums of the
// kernels.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "../kernels/pass.cuh"
#include "../kernels/sum.cuh"

// 256 bits are more than solver.Sum has, so an overflow there shows as a difference.
struct Big {
  unsigned long long w[4] = {};
  void add(unsigned long long n, int shift) {
    unsigned __int128 carry = 0;
    for (int i = shift / 64, b = shift % 64, j = 0; i < 4; i++, j++) {
      const unsigned long long t = j == 0 ? n << b : j == 1 && b ? n >> (64 - b) : 0;
      carry += (unsigned __int128)w[i] + t;
      w[i] = (unsigned long long)carry;
      carry >>= 64;
    }
  }
  void addTerm(double q, int E) {
    if (q == 0) return;
    int e;
    const unsigned long long mant = (unsigned long long)ldexp(frexp(q, &e), 53);
    const int shift = e - 53 + kUnitBits - 2 * E;
    if (shift >= 0) add(mant, shift);
    else if (shift > -64) add(mant >> -shift, 0);
  }
};
inline float fusedHost(float a, float b, float c) { return fmaf(a, b, c); }
inline double fusedHost(double a, double b, double c) { return fma(a, b, c); }

// sameSum compares a kernel's words for the sweep from `before` to `after` with the sum over columns [left, right) of
// rows [lo, hi). Row `base` is the first row of both arrays.
template <class Real> bool sameSum(const unsigned long long* words, const std::vector<Real>& before,
                                   const std::vector<Real>& after, int pitch, int left, int right, int base, int lo,
                                   int hi) {
  Big exact, device;
  for (int g = lo & -kGroupRows; g < hi; g += kGroupRows)
    for (int x = 0; x < right; x += kGroupColumns) {
      Real acc = 0;
      double beyond = 0;
      for (int y = std::max(g, lo); y < std::min(g + kGroupRows, hi); y++) {
        Real d[kGroupColumns];
        for (int j = 0; j < kGroupColumns; j++) {
          const size_t i = (size_t)(y - base) * pitch + x + j;
          d[j] = x + j >= left && x + j < right ? after[i] - before[i] : 0;
        }
        acc = acc + (fusedHost(d[1], d[1], fusedHost(d[0], d[0], kSmallest<Real>)) +
                     fusedHost(d[3], d[3], fusedHost(d[2], d[2], kSmallest<Real>)));
        beyond += 2.0 * kSmallest<Real>;
      }
      exact.addTerm(acc - beyond, 0);
    }
  for (int i = 0; i < kLimbs; i++) {
    const int shift = kLimbBits * (kLimbs - 1 - i);
    device.add(words[2 * i], shift), device.add(words[2 * i + 1], shift + kLowBits);
  }
  return !memcmp(exact.w, device.w, sizeof exact.w) && !words[kBadWord];
}
