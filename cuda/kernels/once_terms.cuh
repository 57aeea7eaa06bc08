// What a pass of one sweep computes beyond the plain average: a lane's view of source, fixed points and walls.
#pragma once
#include "terms.cuh"

// OnceValues is the values of weighted points in a lane's columns. Eight rows of them would take too many registers, so
// it reads one row ahead.
template <class Arg, int = Arg::kValues> struct OnceValues {
  using Real = typename Arg::Real;
  Values<Real, kOnceColumns> values[2];
  const Real* at;  // of the next row

  __device__ __forceinline__ void aim(const Arg& a, int x, int y) {
    at = a.terms.source + x + (min(max(y, a.rowLo), a.rowHi - 1) - a.rowLo) * (ptrdiff_t)a.terms.sourcePitch;
  }
  // next begins to read row y, which comes k rows after the first of a group.
  __device__ __forceinline__ void next(const Arg& a, int y, int k, bool ok) {
    Values<Real, kOnceColumns>& to = values[k % 2];
    to = {};
    if (ok)
#pragma unroll
      for (int v = 0; v < kWeightedValues; v++)
#pragma unroll
        for (int j = 0; j < kOnceColumns; j += kPer16<Real>) load16(to.of[v].v + j, at + v * (ptrdiff_t)a.pitch + j);
    at += (unsigned)(y - a.rowLo) < (unsigned)(a.rowHi - 1 - a.rowLo) ? a.terms.sourcePitch : 0;
  }
};
template <class Arg> struct OnceValues<Arg, 0> {};
template <class Arg> struct OnceValues<Arg, 1> {};

template <class Arg, bool = Arg::kTerms> struct OnceTerms : OnceValues<Arg> {
  using Real = typename Arg::Real;
  static constexpr int W = kOnceColumns;
  static constexpr bool kSource = Arg::kValues == 1, kWeighted = Arg::kValues > 1;
  using Row = ::Row<Real, W>;
  const FixedPoints<Real, W> points;
  unsigned long long fixed;              // bits of a group of rows
  Row source[kSource ? kGroupRows : 1];  // of these rows
  const Real* from;                      // of the next row

  // The lane's columns begin at x. Rows come from y on; a row outside the field has the source of the nearest inside.
  __device__ __forceinline__ OnceTerms(const Arg& a, int x, int y) : points(a, x) {
    if constexpr (kWeighted) this->aim(a, x, y);
    if (kSource)
      from = a.terms.source + x + (min(max(y, a.rowLo), a.rowHi - 1) - a.rowLo) * (ptrdiff_t)a.terms.sourcePitch;
  }
  // load begins to read what belongs to rows y .. y+7. Lanes without ok have no columns in the mesh.
  __device__ __forceinline__ void load(const Arg& a, int y, bool ok) {
    fixed = points.at(y);
    if constexpr (kWeighted) this->next(a, y, 0, ok);
#pragma unroll
    for (int k = 0; k < (kSource ? kGroupRows : 0); k++) {
      source[kSource ? k : 0] = {};
      if (ok)
#pragma unroll
        for (int j = 0; j < W; j += kPer16<Real>) load16(source[kSource ? k : 0].v + j, from + j);
      from += (unsigned)(y + k - a.rowLo) < (unsigned)(a.rowHi - 1 - a.rowLo) ? a.terms.sourcePitch : 0;
    }
  }
  // update returns row y, the k-th of these, before fixed points get their old values; keeps says which do.
  __device__ __forceinline__ Row update(const Arg& a, Row north, const Row& row, Row south, Real west, Real east, int x,
                                        int y, int k) {
    if constexpr (kWeighted)
      if (k + 1 < kGroupRows) this->next(a, y + 1, k + 1, x < a.nx);
    const Row up = north;
#pragma unroll
    for (int j = 0; j < W; j++) {
      if (y == a.terms.top) north.v[j] = south.v[j];
      if (y == a.terms.bottom) south.v[j] = up.v[j];
    }
    if constexpr (kWeighted) return update_row<true>(a, north, row, south, west, east, this->values[k % 2], x);
    else return update_row<true>(a, north, row, south, west, east, source[kSource ? k : 0], x);
  }
  __device__ __forceinline__ bool keeps(const Arg&, int, int k, int j) const { return fixed >> (8 * k + j) & 1; }

  // store writes a row to `to`. Copies of columns are written by the lanes that have the columns, and by no others.
  __device__ __forceinline__ void store(const Arg& a, Real* to, const Row& row, int x) const {
    if (!a.terms.copies || (x > 0 && x + W < a.nx - 1)) return store_row(to, row);
#pragma unroll
    for (int j = 0; j < W; j++) {
      if (x + j == 1) to[a.nx - 1 - x] = row.v[j];
      if (x + j == a.nx - 2) to[-x] = row.v[j];
      if (x + j > 0 && x + j < a.nx - 1) to[j] = row.v[j];
    }
  }
};

template <class Arg> struct OnceTerms<Arg, false> {
  using Real = typename Arg::Real;
  using Row = ::Row<Real, kOnceColumns>;
  __device__ __forceinline__ OnceTerms(const Arg&, int, int) {}
  __device__ __forceinline__ void load(const Arg&, int, bool) {}
  __device__ __forceinline__ Row update(const Arg&, const Row& north, const Row& row, const Row& south, Real west,
                                        Real east, int, int, int) const {
    return update_row(north, row, south, west, east);
  }
  __device__ __forceinline__ bool keeps(const Arg& a, int x, int, int j) const {
    return x + j == 0 || x + j >= a.nx - 1;
  }
  __device__ __forceinline__ void store(const Arg&, Real* to, const Row& row, int) const { store_row(to, row); }
};
