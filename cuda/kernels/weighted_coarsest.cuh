// The solution on the coarsest level of a weighted operator, by one warp: multigrid.Factors in Go. Lane j has slot j of
// a block and row j of its matrices; it alone reads and writes the slot in memory.
#pragma once
#include "primitives.cuh"
#include "update.cuh"

constexpr int kFactorSlots = 9;

// Factors is the matrices, row by row, and what is known of the points by block and slot.
struct Factors {
  const double *inverse, *carry;       // by block
  const double *ring, *last, *first;   // of a ring; null without one
  const double* scaling;               // h; 0 at points that are not unknowns
  const int* place;                    // of a point in b and u
  const int2* copies;                  // places in u: from, to
  double *y, *x;                       // vectors
  const float* b;
  float* u;
  int slots, blocks, chain, copied;
};

struct FactorWarp {
  const Factors& f;
  const int lane, m;
  const bool has;  // a slot

  __device__ __forceinline__ FactorWarp(const Factors& f, int lane)
      : f(f), lane(lane), m(f.slots), has(lane < f.slots) {}

  // multiply returns sum plus the product of a matrix, or with kTransposed that of the transposed one, and v.
  template <bool kTransposed>
  __device__ __forceinline__ double multiply(const double* matrix, double v, double sum) const {
    const int j = min(lane, m - 1);
    double row[kFactorSlots];
#pragma unroll
    for (int k = 0; k < kFactorSlots; k++) row[k] = k < m ? matrix[kTransposed ? k * m + j : j * m + k] : 0;
#pragma unroll
    for (int k = 0; k < kFactorSlots; k++) {
      const double other = __shfl_sync(kAll, v, k);
      if (k < m) sum = fused(row[k], other, sum);
    }
    return sum;
  }
  __device__ __forceinline__ const double* of(const double* matrices, int block) const {
    return matrices + (ptrdiff_t)block * m * m;
  }
  __device__ __forceinline__ double right_side(int block) const {
    const int i = block * m + min(lane, m - 1);
    return f.scaling[i] > 0 ? (double)f.b[f.place[i]] * f.scaling[i] : 0;
  }
  __device__ __forceinline__ void keep(double* vector, int block, double v) const {
    if (has) vector[block * m + lane] = v;
  }
  __device__ __forceinline__ double kept(const double* vector, int block) const {
    return has ? vector[block * m + lane] : 0;
  }
  // set stores the solution of a block.
  __device__ __forceinline__ void set(int block, double x) const {
    const int i = block * m + lane;
    if (has && f.scaling[i] > 0) f.u[f.place[i]] = (float)(x * f.scaling[i]);
  }

  __device__ __forceinline__ void solve() const {
    const int n = f.chain;
    double y = 0, p = 0, end = 0;
    for (int i = 0; i < n; i++) {
      const double b = right_side(i);
      y = i ? multiply<false>(of(f.carry, i), y, b) : b;
      keep(f.y, i, y);
    }
    for (int i = n - 1; i >= 0; i--) {
      const double before = p;
      p = multiply<false>(of(f.inverse, i), kept(f.y, i), 0);
      if (i < n - 1) p = multiply<true>(of(f.carry, i + 1), before, p);
      else end = p;
      keep(f.x, i, p);
    }
    if (n < f.blocks) {
      y = right_side(n);
      if (n > 0) y = multiply<false>(f.first, p, multiply<false>(f.last, end, y));
      const double border = multiply<false>(of(f.inverse, n), y, 0);
      set(n, border);
      for (int i = 0; i < n; i++) set(i, multiply<false>(of(f.ring, i), border, kept(f.x, i)));
    } else {
      for (int i = 0; i < n; i++) set(i, kept(f.x, i));
    }
    __syncwarp();
    for (int i = lane; i < f.copied; i += kWarp) f.u[f.copies[i].y] = f.u[f.copies[i].x];
  }
};
