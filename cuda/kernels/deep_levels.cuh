// The sweeps that one warp of a pipeline does, as rows stream through it.
#pragma once
#include "pass.cuh"
#include "sum.cuh"

// Care is what a row needs beyond the plain update.
enum class Care {
  plain,  // nothing
  sides,  // fixed columns, handing on, and the end of a group that counts in part
  ends,   // the same, fixed rows, and rows that do not count in a group that does
};

// Tag makes a Care a type, by which lambdas are compiled for each.
template <Care kCare> struct Tag { static constexpr Care value = kCare; };

// Counted is the rows [lo, hi) of a part that count for the norm.
struct Counted {
  int lo, hi;
};

// Levels is N sweeps in registers. Level s keeps the two newest rows of sweep s, centre[s] and above it north[s]. When
// row r of sweep s comes in, it makes row r-1 of sweep s+1, which goes to level s+1 at once:
//
//   sweep 0   r-3  r-2  r-1  r       <- comes in
//   sweep 1        r-2  r-1          <- made of r-2, r-1, r of sweep 0
//   sweep 2        r-2               <- made of r-3, r-2, r-1 of sweep 1; goes out for N = 2
//
// So row q of any level is made while one of the rows q+1 .. q+N comes in.
template <class Real, int W, int N> struct Levels {
  static constexpr int kGroups = W / kGroupColumns;  // side by side in a lane
  Row<Real, W> north[N], centre[N];
  Real acc[N][kGroups];  // sums of the group that the newest row belongs to
  Limbs sum[N];          // sums of the groups before

  __device__ __forceinline__ void clear(const double* bias) {
#pragma unroll
    for (int s = 0; s < N; s++) {
      north[s] = centre[s] = {};
      sum[s].clear(bias);
#pragma unroll
      for (int g = 0; g < kGroups; g++) acc[s][g] = 0;
    }
  }

  // drain moves the sums to the words of this warp's sweeps in shared memory. Lanes without ok do not count.
  __device__ __forceinline__ void drain(const double* bias, unsigned long long (*words)[kSumWords], bool ok, int lane) {
#pragma unroll
    for (int s = 0; s < N; s++) sum[s].drain(bias, words[s], ok, lane), sum[s].clear(bias);
  }

  // advance takes row y+k of the sweep before as v, and returns row y+k-N of the last sweep. y is the first row of a
  // group, x the lane's first column. counts says whether the group that ends with row y-1 counts.
  template <Care kCare> __device__ __forceinline__ Row<Real, W> advance(const Pass<Real>& a, Row<Real, W> v, int x,
                                                                        int y, int k, bool counts, Counted rows) {
#pragma unroll
    for (int s = 0; s < N; s++) {
      const Row<Real, W> c = centre[s];
      const Real west = __shfl_up_sync(kAll, c.v[W - 1], 1), east = __shfl_down_sync(kAll, c.v[0], 1);
      Row<Real, W> o = update_row(north[s], c, v, west, east), d;
      const int row = y + k - s - 1;
      const bool fixed = kCare == Care::ends && (row == a.fixTop || row == a.fixBottom);
#pragma unroll
      for (int j = 0; j < W; j++) {
        if (kCare != Care::plain && (fixed || x + j <= 0 || x + j >= a.nx - 1)) o.v[j] = c.v[j];
        d.v[j] = o.v[j] - c.v[j];
      }
      if (kCare != Care::ends || (row >= rows.lo && row < rows.hi)) {
#pragma unroll
        for (int g = 0; g < kGroups; g++) acc[s][g] += squares(d.v + kGroupColumns * g, kSmallest<Real>);
      }
      if (k == s) {  // row y-1 ends a group
        const int counted = kCare == Care::plain ? kGroupRows : min(y, rows.hi) - max(y - kGroupRows, rows.lo);
        const double more = surplus<Real>(counted);
#pragma unroll
        for (int g = 0; g < kGroups; g++) {
          sum[s].add(counts ? (double)acc[s][g] - more : 0);
          acc[s][g] = 0;
        }
      }
      north[s] = c;
      centre[s] = v;
      v = o;
    }
    return v;
  }
};
