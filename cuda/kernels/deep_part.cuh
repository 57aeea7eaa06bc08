// What a warp of a pipeline goes over, and which of its rows need care.
#pragma once
#include "deep_levels.cuh"
#include "shares.cuh"

// Strips is how a pass is cut into strips of 32*W columns. After T sweeps, T columns beside a cut are stale: strips
// overlap by twice as much, and the outer `pad` lanes at a cut only feed the others. Nothing goes stale at the ends of
// a row, so the first strip begins with column 0, and the last one reaches the last column. No other has fixed columns.
template <int W> struct Strips {
  int pad, lane;
  __device__ __forceinline__ Strips(int sweeps, int lane) : pad((sweeps + W - 1) / W), lane(lane) {}
  __device__ __forceinline__ int width() const { return (kWarp - 2 * pad) * W; }
  __device__ __forceinline__ int count(int nx) const { return max((nx - 2 * pad * W + width() - 1) / width(), 1); }
  // x returns the first column of this lane.
  __device__ __forceinline__ int x(int strip) const { return (strip * (kWarp - 2 * pad) + lane) * W; }
  // right says whether this lane's columns, of which x is the first, are in the mesh and come out right.
  __device__ __forceinline__ bool right(int x, int nx) const {
    const int first = x - lane * W;
    return (lane >= pad || first == 0) && (lane < kWarp - pad || first + kWarp * W >= nx) && x < nx;
  }
};

// Part is rows [top, bottom) of a strip, which a pipeline makes in one go, as one of its warps sees it.
struct Part {
  int strip, top, bottom;
  int end;             // position at which the pipeline's share ends
  int stop;            // the warp takes rows below this, in whole groups
  int needLo, needHi;  // the rows that it needs; it takes others only to keep step
  int drainAt;         // row before which the sums must be drained
};

// Group says how to take the group of rows from y on, and for how long that holds.
struct Group {
  bool counts;  // the group that ends with row y-1 counts for the norm
  bool partly;  // it has rows that do not count before those that do
  bool hands;   // rows that go out may have to be handed on
  int until;    // the last group to which this applies; before y if this group needs Care::ends

  // A warp takes rows y .. y+7; with N levels it makes rows y-N .. y+6, and rows y-N .. y+7-N go out.
  template <int N, class Arg>
  static __device__ __forceinline__ Group at(const Arg& a, const Part& p, Counted rows, int y, bool last) {
    Group g;
    g.counts = y > rows.lo && y < rows.hi + kGroupRows;
    g.partly = rows.lo % kGroupRows && y == (rows.lo & -kGroupRows) + kGroupRows;
    g.hands = last && (y - N < a.outLo + a.depth || y + kGroupRows - N > a.outHi - a.depth);
    g.until = min(p.drainAt - kGroupRows, p.needHi - 1);
    if (y < rows.hi + kGroupRows) g.until = min(g.until, g.counts ? rows.hi + kGroupRows - 1 : rows.lo);
    if (last) g.until = min(g.until, g.hands ? y : a.outHi - a.depth + N - kGroupRows);
    if (g.partly) g.until = min(g.until, y);
    // Rows lo .. hi, made by any level, need Care::ends: they are made while rows lo+1 .. hi+N come in.
    auto heed = [&](int lo, int hi) {
      if (hi + N >= y) g.until = min(g.until, lo + 1 - kGroupRows);
    };
    if constexpr (Arg::kTerms) heed(a.terms.top, a.terms.top), heed(a.terms.bottom, a.terms.bottom);
    else heed(a.fixTop, a.fixTop), heed(a.fixBottom, a.fixBottom);
    if (rows.lo % kGroupRows) heed(rows.lo & -kGroupRows, rows.lo - 1);
    if (rows.hi % kGroupRows) heed(rows.hi, (rows.hi & -kGroupRows) + kGroupRows - 1);
    return g;
  }
};
