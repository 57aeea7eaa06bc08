// Kernels that measure a field in the device's memory: the sum of its squares, and its largest absolute value. See
// ../measure.go.
#include "pass.cuh"
#include "sum.cuh"

constexpr int kMeasureThreads = 256;  // of a block, each with the columns of a group
constexpr int kMeasureRows = 64;      // of a block, whole groups

// Measure is the argument of the kernels. The array begins where row 0 of the mesh is or would be.
struct Measure {
  const void* from;
  unsigned long long* words;  // kSumWords of the sum, or one: the bits of the largest absolute value
  double bias[kLimbs];
  int pitch;                  // values
  int lo, hi, rowLo, rowHi;   // columns and rows that count
  int strips;                 // blocks next to each other
};
static_assert(kMeasureRows <= kGroupRows * kMostGroups && sizeof(Measure) == 64, "as in ../measure.go");

// each_group calls take with the values of a group's columns in each of its rows, 0 where they do not count, and end
// after each group.
template <class Real, class Take, class End>
__device__ __forceinline__ void each_group(const Measure& a, Take take, End end) {
  const int x = (blockIdx.x % a.strips * kMeasureThreads + threadIdx.x) * kGroupColumns;
  const int top = (a.rowLo & -kGroupRows) + (int)(blockIdx.x / a.strips) * kMeasureRows;
  const int bottom = min(top + kMeasureRows, a.rowHi);
  for (int group = top; group < bottom; group += kGroupRows) {
#pragma unroll
    for (int i = 0; i < kGroupRows; i++) {
      const int y = group + i;
      const bool counts = y >= a.rowLo && y < bottom;
      const Real* const row = (const Real*)a.from + (ptrdiff_t)y * a.pitch + x;
      double v[kGroupColumns];
#pragma unroll
      for (int j = 0; j < kGroupColumns; j++) v[j] = counts && x + j >= a.lo && x + j < a.hi ? row[j] : 0;
      take(v);
    }
    end();
  }
}

KERNEL(kMeasureThreads, 4) squares_f64(const __grid_constant__ Measure a) {
  DYNAMIC_SHARED(shared);
  const int lane = threadIdx.x % kWarp;
  unsigned long long* const words = (unsigned long long*)shared + threadIdx.x / kWarp * kSumWords;
  if (lane < kSumWords) words[lane] = 0;
  __syncwarp();
  Limbs sum;
  sum.clear(a.bias);
  double group = 0;
  each_group<double>(
      a, [&](const double* v) { group += fused(v[1], v[1], v[0] * v[0]) + fused(v[3], v[3], v[2] * v[2]); },
      [&] { sum.add(group), group = 0; });
  sum.drain(a.bias, words, true, lane);
  flush(words, a.words, lane);
}

// largest finds the largest absolute value by its bits, above which those of NaN are.
template <class Real> __device__ __forceinline__ void largest(const Measure& a) {
  unsigned long long most = 0;
  const auto take = [&](unsigned long long bits) { most = bits > most ? bits : most; };
  each_group<Real>(
      a,
      [&](const double* v) {
#pragma unroll
        for (int j = 0; j < kGroupColumns; j++) take(__double_as_longlong(v[j]) & ~(1ull << 63));
      },
      [] {});
#pragma unroll
  for (int by = kWarp / 2; by > 0; by /= 2) take(__shfl_xor_sync(kAll, most, by));
  if (threadIdx.x % kWarp == 0) atomicMax(a.words, most);
}

KERNEL(kMeasureThreads, 4) largest_f64(const __grid_constant__ Measure a) { largest<double>(a); }
KERNEL(kMeasureThreads, 4) largest_f32(const __grid_constant__ Measure a) { largest<float>(a); }
