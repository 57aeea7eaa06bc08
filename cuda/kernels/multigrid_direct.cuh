// The solution on the coarsest level, by one warp: multigrid.Direct in Go. Lane j has slot j of a block, and row j of
// the block's matrix. Lanes without a slot have the last row of the matrix and 0, and store nothing.
#pragma once
#include "multigrid_level.cuh"

constexpr int kSlots = 9;

// Direct is the matrices, row by row, and the vectors of the blocks one after the other.
struct Direct {
  const double *inverse, *ring;  // by block; ring by block of the chain, nullptr without a border
  const int* slot;               // by point of the level: its place in x
  double* x;                     // the right-hand side, then the solution
  double along, high, low;       // couplings between blocks, of the first to the second, of the last to the one before
  int slots, blocks, chain;
  int held;                      // not 0: slot 0 of block 0 is not free, and x is 0 there

  __device__ __forceinline__ int inverses() const { return blocks * slots * slots; }
  __device__ __forceinline__ int matrices() const { return inverses() + (ring ? chain * slots * slots : 0); }
  __device__ __forceinline__ int values() const { return matrices() + blocks * slots; }
};

struct DirectWarp {
  const Direct& d;
  const int lane, slots;
  double row[kSlots], x = 0;  // of the matrix and of the vector, for the next product
  bool free;

  __device__ __forceinline__ DirectWarp(const Direct& d, int lane)
      : d(d), lane(min(lane, d.slots - 1)), slots(d.slots) {}

  __device__ __forceinline__ const double* matrix(const double* of, int block) const {
    return of + ((ptrdiff_t)block * slots + lane) * slots;
  }
  __device__ __forceinline__ void vector(int block) {
    if (threadIdx.x < slots) x = d.x[block * slots + lane];
    free = !d.held || block > 0 || lane > 0;
  }
  __device__ __forceinline__ void begin(const double* of, int block) {
    const double* const m = matrix(of, block);
#pragma unroll
    for (int k = 0; k < kSlots; k++)
      if (k < slots) row[k] = m[k];
    vector(block);
  }
  __device__ __forceinline__ void store(int block, double v) const {
    if (threadIdx.x < slots) d.x[block * slots + lane] = v;
  }
  // product adds the product of the matrix and v to sum, and loads the matrix and the vector of the next product.
  __device__ __forceinline__ double product(double v, double sum, const double* of, int next) {
    const double* const m = matrix(of, next);
#pragma unroll
    for (int k = 0; k < kSlots; k++) {
      const double f = __shfl_sync(kAll, v, k);
      if (k < slots) sum = fused(row[k], f, sum), row[k] = m[k];
    }
    vector(next);
    return sum;
  }
  // chain solves the blocks of the chain. It returns x of block 0.
  __device__ __forceinline__ double chain() {
    const int n = d.chain;
    double z = 0;
    begin(d.inverse, 0);
#pragma unroll 1
    for (int i = 0; i < n; i++) {
      double y = x;
      if (i > 0 && free) y = fused(i == d.blocks - 1 ? d.low : d.along, z, y);
      z = product(y, 0., d.inverse, i + 1 < n ? i + 1 : max(n - 2, 0));
      store(i, i == n - 1 ? z : y);
    }
#pragma unroll 1
    for (int i = n - 2; i >= 0; i--) {
      double y = x;
      if (free) y = fused(i == 0 ? d.high : d.along, z, y);
      z = product(y, 0., d.inverse, max(i - 1, 0));
      store(i, z);
    }
    return z;
  }
  __device__ __forceinline__ void solve() {
    const int n = d.chain;
    const double first = chain();
    if (n == d.blocks) return;
    begin(d.inverse, n);
    double y = x;
    if (n > 0 && free && threadIdx.x < slots)
      y = fused(d.along, first, fused(d.along, d.x[(n - 1) * slots + lane], y));
    const double border = product(y, 0., n > 0 ? d.ring : d.inverse, 0);
    store(n, border);
#pragma unroll 1
    for (int i = 0; i < n; i++) store(i, product(border, x, d.ring, min(i + 1, n - 1)));
  }
};
