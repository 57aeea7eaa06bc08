// The parts of CUDA that need no threads: types, arithmetic, and words that compile to nothing.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

using std::max;
using std::min;

struct float4 {
  float x, y, z, w;
};
struct float2 {
  float x, y;
};
struct int2 {
  int x, y;
};
struct double2 {
  double x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline long long __double_as_longlong(double d) {
  long long n;
  memcpy(&n, &d, sizeof n);
  return n;
}
// __dadd_rd rounds toward minus infinity: s is the nearest sum, and the exact remainder tells whether s is too large.
inline double __dadd_rd(double a, double b) {
  const double s = a + b, c = s - a, rest = (a - (s - c)) + (b - c);
  return rest < 0 ? std::nextafter(s, -INFINITY) : s;
}

inline void copies_commit() {}
template <int N> void copies_wait() {}
template <int kBytes> void copy_async(void* to, const void* from) { memcpy(to, from, kBytes); }

inline unsigned opaque(unsigned v) { return v; }
