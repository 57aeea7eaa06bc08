// The sweeps that one warp of a pipeline does, as rows stream through it.
#pragma once
#include "deep_source.cuh"
#include "sum.cuh"

// Tag makes a Care a type, by which lambdas are compiled for each.
template <Care kCare> struct Tag { static constexpr Care value = kCare; };

// Counted is the rows [lo, hi) of a part that count for the norm.
struct Counted {
  int lo, hi;
};

// Squares says which sweeps of a warp add the squares of their updates to sums.
enum class Squares { all, last, none };

// Sources is the source of the row that each level makes.
template <class Arg, int W, int N, int = Arg::kValues> struct Sources {
  Row<typename Arg::Real, W> row[N];
  // take takes the source of the row that level 0 makes next.
  __device__ __forceinline__ void take(const Beside<Arg, W>& beside, int k, int lane) {
#pragma unroll
    for (int s = N - 1; s > 0; s--) row[s] = row[s - 1];
    row[0] = beside.source(k - 1, lane);
  }
  // of returns that of the row that level s makes next.
  __device__ __forceinline__ const Row<typename Arg::Real, W>& of(int s) const { return row[s]; }
};
template <class Arg, int W, int N> struct Sources<Arg, W, N, 0> {
  __device__ __forceinline__ void take(const Beside<Arg, W>&, int, int) {}
  __device__ __forceinline__ Nothing of(int) const { return {}; }
};
template <class Arg, int W, int N> struct Sources<Arg, W, N, kWeightedValues> {
  Values<typename Arg::Real, W> row[N];
  __device__ __forceinline__ void take(const Beside<Arg, W>& beside, int k, int lane) {
#pragma unroll
    for (int s = N - 1; s > 0; s--) row[s] = row[s - 1];
#pragma unroll
    for (int v = 0; v < kWeightedValues; v++) row[0].of[v] = beside.value(k - 1, v, lane);
  }
  __device__ __forceinline__ const Values<typename Arg::Real, W>& of(int s) const { return row[s]; }
};

// Levels is N sweeps in registers. Level s keeps the two newest rows of sweep s, centre[s] and above it north[s]. When
// row r of sweep s comes in, it makes row r-1 of sweep s+1, which goes to level s+1 at once:
//
//   sweep 0   r-3  r-2  r-1  r       <- comes in
//   sweep 1        r-2  r-1          <- made of r-2, r-1, r of sweep 0
//   sweep 2        r-2               <- made of r-3, r-2, r-1 of sweep 1; goes out for N = 2
//
// So row q of any level is made while one of the rows q+1 .. q+N comes in.
template <class Arg, int W, int N, Squares kSquares> struct Levels : Sources<Arg, W, N> {
  using Real = typename Arg::Real;
  static constexpr int kGroups = W / kGroupColumns;  // side by side in a lane
  Row<Real, W> north[N], centre[N];
  Real acc[N][kGroups];  // sums of the group that the newest row belongs to
  Limbs sum[N];          // sums of the groups before

  // counts says whether level s adds squares; the sums of the others are never used and take no registers.
  static constexpr __host__ __device__ bool counts(int s) {
    return kSquares == Squares::all || (kSquares == Squares::last && s == N - 1);
  }

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
    for (int s = 0; s < N; s++)
      if (counts(s)) sum[s].drain(bias, words[s], ok, lane), sum[s].clear(bias);
  }

  // advance takes row y+k of the sweep before as v, and returns row y+k-N of the last sweep. y is the first row of a
  // group, x the lane's first column. whole says whether the group that ends with row y-1 counts.
  template <Care kCare> __device__ __forceinline__ Row<Real, W> advance(const Arg& a, Row<Real, W> v, int x, int y,
                                                                        int k, bool whole, Counted rows,
                                                                        const Beside<Arg, W>& beside, int lane) {
    this->take(beside, k, lane);
#pragma unroll
    for (int s = 0; s < N; s++) {
      const Row<Real, W> c = centre[s];
      const Real west = __shfl_up_sync(kAll, c.v[W - 1], 1), east = __shfl_down_sync(kAll, c.v[0], 1);
      Row<Real, W> o = sweep_row<kCare>(a, north[s], c, v, west, east, this->of(s), x, y + k - s - 1), d;
      const int row = y + k - s - 1;
      const auto keep = beside.template keep<kCare>(a, x, row, k - s - 1);
#pragma unroll
      for (int j = 0; j < W; j++) {
        keep(j, o.v[j], c.v[j]);
        d.v[j] = o.v[j] - c.v[j];
      }
      if (counts(s) && (kCare != Care::ends || (row >= rows.lo && row < rows.hi))) {
#pragma unroll
        for (int g = 0; g < kGroups; g++) acc[s][g] += squares(d.v + kGroupColumns * g, kSmallest<Real>);
      }
      if (counts(s) && k == s) {  // row y-1 ends a group
        const int counted = kCare < Care::sides ? kGroupRows : min(y, rows.hi) - max(y - kGroupRows, rows.lo);
        const double more = surplus<Real>(counted);
#pragma unroll
        for (int g = 0; g < kGroups; g++) {
          sum[s].add(whole ? (double)acc[s][g] - more : 0);
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
