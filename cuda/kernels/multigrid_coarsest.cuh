// The solution on the coarsest level, by a block: multigrid.Factors in Go.
#pragma once
#include "pass.cuh"
#include "primitives.cuh"
#include "update.cuh"

constexpr int kSlots = 9;

// Factors is the values of multigrid.Factors, in their order, and behind them two vectors.
struct Factors {
  double* values;
  long long count;  // of all of them
  int slots, blocks, chain;
  int near;         // not 0: they fit into the shared memory of a block

  __device__ __forceinline__ double* inverse(ptrdiff_t block) const { return values + block * slots * slots; }
  __device__ __forceinline__ double* carry(int block) const { return inverse((ptrdiff_t)blocks + block); }
  __device__ __forceinline__ double* ring(int block) const { return inverse(2 * (ptrdiff_t)blocks + block); }
  __device__ __forceinline__ double* last() const { return ring(chain); }
  __device__ __forceinline__ double* first() const { return ring(chain + 1); }
  // By block and slot: the factors of the right-hand side and of the solution, which are 0 at points that are not
  // unknowns; y, first the right-hand side; the solution.
  __device__ __forceinline__ int points() const { return blocks * slots; }
  __device__ __forceinline__ double* in() const { return values + count - 4 * (ptrdiff_t)points(); }
  __device__ __forceinline__ double* out() const { return values + count - 3 * (ptrdiff_t)points(); }
  __device__ __forceinline__ double* y() const { return values + count - 2 * (ptrdiff_t)points(); }
  __device__ __forceinline__ double* x() const { return values + count - points(); }

  // brought copies the values into shared memory, by all threads, if they fit.
  __device__ __forceinline__ Factors brought(double* shared) const {
    Factors f = *this;
    if (near) {
      f.values = shared;
#pragma unroll 1
      for (int i = threadIdx.x; i < count - 2 * points(); i += blockDim.x) shared[i] = values[i];
    }
    return f;
  }
  // set sets the right-hand side at a point.
  __device__ __forceinline__ void set(int i, double b) const { y()[i] = in()[i] > 0 ? b * in()[i] : 0; }
  __device__ __forceinline__ float solution(int i) const { return (float)(x()[i] * out()[i]); }
};

// FactorWarp does what goes from block to block. Lane j has slot j and row j of a matrix; others have nothing to store.
struct FactorWarp {
  const Factors& f;
  const int lane, m;
  double row[kSlots];  // of the matrix of the next product

  __device__ __forceinline__ FactorWarp(const Factors& f) : f(f), lane(threadIdx.x), m(f.slots) {}

  __device__ __forceinline__ double value(const double* matrix, bool transposed, int k) const {
    const int j = min(lane, m - 1);
    return matrix[transposed ? k * m + j : j * m + k];
  }
  template <bool kTransposed> __device__ __forceinline__ void load(const double* matrix) {
#pragma unroll
    for (int k = 0; k < kSlots; k++) row[k] = k < m ? value(matrix, kTransposed, k) : 0;
  }
  // product adds the product of a matrix, or of the transposed one, and v to sum, and loads the next matrix.
  template <bool kTransposed>
  __device__ __forceinline__ double product(double v, double sum, const double* next) {
#pragma unroll
    for (int k = 0; k < kSlots; k++) {
      const double other = __shfl_sync(kAll, v, k);
      if (k < m) sum = fused(row[k], other, sum), row[k] = value(next, kTransposed, k);
    }
    return sum;
  }
  __device__ __forceinline__ void keep(double* vector, int block, double v) const {
    if (lane < m) vector[block * m + lane] = v;
  }
  __device__ __forceinline__ double kept(const double* vector, int block) const {
    return lane < m ? vector[block * m + lane] : 0;
  }

  // forward computes y.
  __device__ __forceinline__ void forward() {
    double v = kept(f.y(), 0);
    load<false>(f.carry(min(1, f.blocks - 1)));
#pragma unroll 1
    for (int i = 1; i < f.chain; i++) {
      v = product<false>(v, kept(f.y(), i), f.carry(min(i + 1, f.blocks - 1)));
      keep(f.y(), i, v);
    }
  }
  // backward makes x, which is S^-1 y, the solution p of the chain, and solves the border.
  __device__ __forceinline__ void backward() {
    const int n = f.chain;
    const double end = kept(f.x(), max(n - 1, 0));
    double v = end;
    load<true>(f.carry(max(n - 1, 0)));
#pragma unroll 1
    for (int i = n - 2; i >= 0; i--) {
      v = product<true>(v, kept(f.x(), i), f.carry(i));
      keep(f.x(), i, v);
    }
    if (n == f.blocks) return;
    double y = kept(f.y(), n);
    if (n > 0) {
      load<false>(f.last());
      y = product<false>(end, y, f.first());
      y = product<false>(v, y, f.inverse(n));
    } else {
      load<false>(f.inverse(n));
    }
    keep(f.x(), n, product<false>(y, 0, f.inverse(n)));
  }
};

// multiply_chain sets x to the products of matrices and vectors that lie `step` values apart, or adds them to it, for
// all blocks of the chain at once.
__device__ __forceinline__ void multiply_chain(const Factors& f, const double* matrices, const double* v, int step,
                                               bool add) {
  const int m = f.slots;
#pragma unroll 1
  for (int i = threadIdx.x; i < f.chain * m; i += blockDim.x) {
    const double* const of = v + (ptrdiff_t)(i / m) * step;
    double sum = add ? f.x()[i] : 0;
#pragma unroll
    for (int k = 0; k < kSlots; k++)
      if (k < m) sum = fused(matrices[(ptrdiff_t)i * m + k], of[k], sum);
    f.x()[i] = sum;
  }
}

// solve sets x to the solution for y, by all threads.
__device__ __forceinline__ void solve(const Factors& f) {
  __syncthreads();
  if (threadIdx.x < kWarp) FactorWarp(f).forward();
  __syncthreads();
  multiply_chain(f, f.inverse(0), f.y(), f.slots, false);
  __syncthreads();
  if (threadIdx.x < kWarp) FactorWarp(f).backward();
  __syncthreads();
  if (f.chain == f.blocks) return;
  multiply_chain(f, f.ring(0), f.x() + f.chain * f.slots, 0, true);
  __syncthreads();
}

constexpr int kCoarsestThreads = 256;

// Coarsest is the argument of the kernel coarsest.
struct Coarsest {
  Factors factors;
  const int* place;    // of a point in b and u, by block and slot
  const int2* copies;  // places in u: from, to
  const float* b;
  float* u;
  int copied;
};

__device__ __forceinline__ void solve_coarsest(const Coarsest& a) {
  DYNAMIC_SHARED(shared);
  const Factors f = a.factors.brought((double*)shared);
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < f.points(); i += blockDim.x) f.set(i, a.b[a.place[i]]);
  solve(f);
#pragma unroll 1
  for (int i = threadIdx.x; i < f.points(); i += blockDim.x) a.u[a.place[i]] = f.solution(i);
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < a.copied; i += blockDim.x) a.u[a.copies[i].y] = a.u[a.copies[i].x];
}

KERNEL(kCoarsestThreads, 1) coarsest(const __grid_constant__ Coarsest a) { solve_coarsest(a); }
