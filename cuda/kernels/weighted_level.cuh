// What the kernels of a weighted operator's levels know of a level and the way to the next coarser one.
// docs/numerics.md ("Levels of a weighted operator") defines what they compute. The structs have twins in
// ../weightedlevels.go. Arrays begin where row 0 of the mesh is or would be.
#pragma once
#include "group.cuh"

constexpr int kPointThreads = 256;                            // of a block
constexpr int kPointColumns = 64;                             // of a block
constexpr int kPointRows = kPointThreads / kPointColumns;     // of a block

// around returns the point whose copy i is, if points repeat after `turn` of them; lo to hi are swept.
__device__ __forceinline__ int around(int i, int lo, int hi, int turn) {
  if (!turn) return i;
  while (i < lo) i += turn;
  while (i >= hi) i -= turn;
  return i;
}

// Grid is the points of a level that a rank holds.
struct Grid {
  int pitch, widePitch;  // values of a row, in arrays of the level's type and in those of float64
  int nx;
  int rowLo, rowHi;      // rows that are held
  int lo, hi;            // columns that are swept
  int top, bottom;       // rows that are held and swept
  int turnX, turnY;      // intervals of periodic columns and rows; 0 if they are not
  int copies;            // not 0: with periodic rows, row 0 is the copy of the last one but one, and that of row 1

  __device__ __forceinline__ bool held(int y, int x) const { return x >= 0 && x < nx && y >= rowLo && y < rowHi; }
  // find replaces a point by the one whose copy it is. It returns whether that is held and swept.
  __device__ __forceinline__ bool find(int& y, int& x) const {
    x = around(x, lo, hi, turnX), y = around(y, top, bottom, turnY);
    return x >= lo && x < hi && y >= top && y < bottom;
  }
  template <class T> __device__ __forceinline__ void storeInRow(T* row, int x, T v) const {
    row[x] = v;
    if (!turnX) return;
    if (x == 1) row[nx - 1] = v;
    if (x == nx - 2) row[0] = v;
  }
  // store sets the value of a point and of its copies.
  template <class T> __device__ __forceinline__ void store(T* to, int pitch, int y, int x, T v) const {
    storeInRow(to + (ptrdiff_t)y * pitch, x, v);
    if (!copies) return;
    if (y == 1) storeInRow(to + (ptrdiff_t)(rowHi - 1) * pitch, x, v);
    if (y == rowHi - 2) storeInRow(to, x, v);
  }
};

// Halving is multigrid.Halving.
struct Halving {
  int fine, coarse, periodic;

  // at returns the coarse point on which fine point i lies or, with `between` set, the one before it.
  __device__ __forceinline__ int at(int i, bool& between) const {
    between = false;
    if (coarse == fine) return i;
    int shift = 0;
    if (periodic) {
      for (; i < 1; i += fine) shift -= coarse;
      for (; i > fine; i -= fine) shift += coarse;
    }
    if (i == fine) return coarse + shift;
    between = i & 1;
    return (i >> 1) + shift;
  }
  // on returns the fine point that lies on a coarse one.
  __device__ __forceinline__ int on(int c) const {
    if (coarse == fine) return c;
    int shift = 0;
    if (periodic) {
      for (; c < 1; c += coarse) shift -= fine;
      for (; c > coarse; c -= coarse) shift += fine;
    }
    return min(2 * c, fine) + shift;
  }
  // beside tells whether the fine point d = -1, 0 or 1 behind that on coarse point c lies on c or next to it.
  __device__ __forceinline__ bool beside(int c, int d) const {
    bool between = true;
    if (d) at(on(c) + d, between);
    return between;
  }
};

// Equations are the stencil of a level, and its scaling.
struct Equations {
  double *c, *e, *s, *se, *sw;  // the finest level has no se and sw
  double *g, *h;
};

// Nine are values of coarse points for the fine points around each of them, by row and column: P'.
template <class T> struct Nine {
  T* first;
  long long stride;  // values from one of them to the next
  __device__ __forceinline__ T* of(int k) const { return first + k * stride; }
};

// WeightedArg is the argument of the kernels. Each uses some of it.
template <class Real> struct WeightedArg {
  const Real* from;  // u before; null: 0
  Real* to;          // u after, another array
  Real* b;
  Real *centre, *east, *south, *southEast, *southWest;  // C, or q, and the couplings of sweeps
  Nine<float> transfer;
  float* coarseB;
  const float* coarseU;  // null: no correction
  Equations own, next;  // while levels are set up
  const unsigned* fixed;     // a bit for each point, from row rowLo on; null: none
  unsigned long long* sums;  // of squares, see sum.cuh
  double bias[3];            // initial values of its limbs
  double scale;              // 2^E, on level 0; 2^-E where defects are restricted
  Grid fine, coarse;
  Halving x, y;
  int lo, hi;      // rows to compute, of the level whose points the threads have
  int strips;      // of the columns of a block, beside one another
  int fixedPitch;  // words
  int countLo, countHi;  // rows of which d counts for the norm
  int coarseLo, coarseHi;  // coarse rows to whose right-hand side defects are restricted
  int blockRows;           // of a block that goes down them
  Real weights[4];       // in the order of the sweeps
};

// ThreadPoint is the point of a thread.
struct ThreadPoint {
  int x, y;
  bool ok;
  template <class Arg> __device__ __forceinline__ explicit ThreadPoint(const Arg& a) {
    x = blockIdx.x % a.strips * kPointColumns + threadIdx.x % kPointColumns;
    y = a.lo + blockIdx.x / a.strips * kPointRows + threadIdx.x / kPointColumns;
    ok = y < a.hi;
  }
  __device__ __forceinline__ bool swept(const Grid& g) const { return ok && x >= g.lo && x < g.hi; }
};
