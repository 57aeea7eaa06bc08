// What a pass takes besides the plain average and fixed walls: fixed points, mirrors at walls, copied columns, and a
// source or all values of weighted points.
#pragma once
#include "pass.cuh"

// Terms is that in memory. type terms in ../terms.go has the same layout; TestLayout compares them.
//
// A word of `fixed` stands for 8 columns of a group of rows: bit 8*r + j is set if the point in row r and column j
// keeps its value. Those of fixed walls and beyond the mesh are set, and those of columns that are copies.
template <class Real> struct Terms {
  const unsigned long long* fixed;  // of the group that holds row rowLo, from column 0 on
  const int* busy;    // for each word the first group from its own on, counted from that of rowLo, whose word has bits
  int words, groups;  // in a row of words; rows of words
  int left, right, top, bottom;  // columns and rows beyond which lies their mirror; beyond all others if there are none
  int copies;             // not 0: column 0 is the copy of column nx-2, and column nx-1 of column 1 (once_* only)
  unsigned sourcePitch;   // from a row to the next, in values; 0 if all rows of the source are one
  const Real* source;     // row rowLo; unused without a source. Weighted points: value k begins k * Pass.pitch later
  alignas(8) Real scale;  // h, see update.cuh
  alignas(8) Real blend;  // q
};

constexpr int kWeightedValues = 5;  // Operator.ValuesPerPoint in Go

// TermsPass is the argument of the kernels with terms: without a source, they compute the plain average.
template <class Real, bool source> struct TermsPass : Pass<Real> {
  static constexpr bool kTerms = true;
  static constexpr int kValues = source;
  Terms<Real> terms;
};

template <class Real> using FixedPass = TermsPass<Real, false>;
template <class Real> using SourcePass = TermsPass<Real, true>;

// WeightedPass is the argument of the kernels of weighted points. It is a SourcePass.
template <class Value> struct WeightedPass : SourcePass<Value> {
  static constexpr int kValues = kWeightedValues;
};

// Values is those of a row of weighted points, by solver.Value.
template <class Real, int W> struct Values { Row<Real, W> of[kWeightedValues]; };

// FixedPoints finds the fixed points among the W columns of a lane, from column x on.
template <class Real, int W> struct FixedPoints {
  static_assert(W == 4 || W == 8, "a word has 8 columns");
  const Terms<Real>& t;
  int first, word, shift;  // the group of row rowLo; the column of words; where the lane's columns begin in a word

  template <class Arg> __device__ __forceinline__ FixedPoints(const Arg& a, int x)
      : t(a.terms), first(a.rowLo >> 3), word(min(max(x >> 3, 0), t.words - 1)), shift(W == 4 ? x & 4 : 0) {}

  // at returns the word of the group that holds row y, or of the nearest group that is held: row r begins at bit 8*r.
  __device__ __forceinline__ unsigned long long at(int y) const { return t.fixed[index(y)] >> shift; }
  // busy returns the first row of the first group, at or below that of row y, with fixed points in a warp's columns.
  __device__ __forceinline__ int busy(int y) const {
    const int group = first + (int)__reduce_min_sync(kAll, (unsigned)t.busy[index(y)]);
    return __shfl_sync(kAll, group, 0) * kGroupRows;  // the shuffle tells the compiler that a warp agrees on it
  }

 private:
  __device__ __forceinline__ ptrdiff_t index(int y) const {
    return min(max((y >> 3) - first, 0), t.groups - 1) * (ptrdiff_t)t.words + word;
  }
};

// update_row does what the other update_row does, with the terms of a. x is the column of row.v[0]. Without kMirrors no
// mirror lies beyond these columns. `source` is a row, or Values for weighted points, or without values of any type.
template <bool kMirrors, class Arg, class Real, int W, class Source>
__device__ __forceinline__ Row<Real, W> update_row(const Arg& a, const Row<Real, W>& north, const Row<Real, W>& row,
                                                   const Row<Real, W>& south, Real west, Real east,
                                                   const Source& source, int x) {
  const Terms<Real>& t = a.terms;
  Row<Real, W> o;
#pragma unroll
  for (int j = 0; j < W; j++) {
    Real w = j ? row.v[j ? j - 1 : 0] : west, e = j < W - 1 ? row.v[j < W - 1 ? j + 1 : 0] : east;
    if (kMirrors && j == 0 && x == t.left) w = e;
    if (kMirrors && x + j == t.right) e = w;
    if constexpr (Arg::kValues == 0) o.v[j] = update(row.v[j], w, e, north.v[j], south.v[j]);
    else if constexpr (Arg::kValues == 1) o.v[j] = update(t.scale, t.blend, source.v[j], w, e, north.v[j], south.v[j]);
    else
      o.v[j] = update(source.of[0].v[j], source.of[1].v[j], source.of[2].v[j], source.of[3].v[j], source.of[4].v[j], w,
                      e, north.v[j], south.v[j]);
  }
  return o;
}
