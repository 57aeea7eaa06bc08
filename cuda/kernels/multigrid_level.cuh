// What the multigrid kernels know of a level and of the way to the next coarser one. solver/multigrid/device.go defines
// what they compute, docs/numerics.md the reasons. The structs have twins in ../levelkernel.go and ../level.go.
// TestLevelsOnFibers hands Go's structs to these kernels, so none of its cases passes if they differ.
#pragma once
#include "primitives.cuh"

constexpr int kSmooth = 4;   // sweeps before, and again after, the correction
constexpr int kTaps = 4;     // fine points that the restriction to a coarse point reads in one direction, at most
constexpr int kBeyond = 64;  // rows or columns beyond both ends of a mesh that tables by fine row or column have

// What a read beyond an end of a Span finds.
enum Beyond { kNearest, kMirror, kWrap };

// Span is the rows or the columns of an array. Those in [lo, hi) are held. The others follow from them: with kNearest
// as the nearest one, with kMirror as that as far on the other side of the last one (derivative 0), with kWrap as that
// `turn` before or after.
struct Span {
  int lo, hi;
  int low, high;              // Beyond of both ends
  int turn;                   // kWrap: number of intervals
  int fixedLow, fixedHigh;    // no sweep changes i <= fixedLow and i >= fixedHigh

  __device__ __forceinline__ int held(int i) const {
    while (i < lo || i >= hi) {
      const int end = i < lo ? low : high;
      if (end == kNearest) return i < lo ? lo : hi - 1;
      if (end == kMirror) i = i < lo ? 2 * lo - i : 2 * (hi - 1) - i;
      else i += i < lo ? turn : -turn;
    }
    return i;
  }
  __device__ __forceinline__ bool keeps(int i) const {
    const int at = held(i);
    return at <= fixedLow || at >= fixedHigh;
  }
};

// Restricted says what a fine row adds to coarse rows `coarse` and coarse + 1. Both weights are 0 for a row that no
// sweep updates. `coarse` grows by 0 or 1 from a row to the next.
struct __align__(16) Restricted {
  float near, next;
  int coarse, unused;
};

// Taps are the weights of fine points first, first + 1, .. in the restriction to a coarse point.
struct __align__(16) Taps {
  float w[kTaps];
  int first, unused[3];
};

// Between says where a fine row or column lies: at coarse points `coarse` and, with `weight`, coarse + 1.
struct __align__(8) Between {
  int coarse;
  float weight;
};

// Smooth is the argument of the kernels down_* and up_*, and of those in tiles. Arrays begin where row 0 of the mesh is
// or would be.
template <class Real> struct Smooth {
  const Real* from;  // u before; null: 0
  Real* to;          // u after, another array
  const Real* b;
  unsigned long long* sums;  // down on level 0: the sum of squares of the first d, see sum.cuh
  double bias[3];            // initial values of its limbs
  double scale;              // down: 2^-E, up: 2^E on level 0
  const Restricted* restricted;  // down: by fine row, from row -kBeyond on
  const Taps* taps;              // down: by coarse column
  const Taps* rowTaps;           // down in tiles: by coarse row
  const Between* betweenRows;    // up: by fine row, from row -kBeyond on
  const Between* betweenColumns; // up: by fine column, from column -kBeyond on
  float* coarseB;                // down: b of the coarser level
  const float* coarseU;          // up: u of the coarser level
  Real h, q, w[kSmooth];         // weights in the order of the sweeps
  float gain;
  int pitch, coarsePitch;        // values
  int nx;
  Span rows, columns, coarseRows, coarseColumns;
  int outLo, outHi;              // rows of `to` to write
  int countLo, countHi;          // rows of which d counts
  int coarseLo, coarseHi;        // rows of coarseB to write
  int regularLo, regularHi;      // rows that are held and swept
  int fineX, coarseX, fineY, coarseY;  // intervals
  int strips;                    // strips of columns
  int segments, outerSegments;   // parts of rows of an inner strip, and of the first and last
  int tileRows;                  // in tiles: rows of a part
  int align;                     // parts begin at multiples of it
};

__device__ __forceinline__ int floor_div(long long a, int b) {
  const long long q = a / b;
  return (int)(a % b < 0 ? q - 1 : q);
}
__device__ __forceinline__ int ceil_div(long long a, int b) { return -floor_div(-a, b); }

// coarse_from returns the first coarse point at or after fine point i. A division takes long, and below the finest
// level it is by 1 or 2.
__device__ __forceinline__ int coarse_from(int i, int coarse, int fine) {
  if (fine == coarse) return i;
  if (fine == 2 * coarse) return (i + 1) >> 1;
  return ceil_div((long long)i * coarse, fine);
}
