// The ways between a mesh and the next coarser one in full multigrid: the interpolation of the field, and the
// restriction of the source. solver/multigrid/device.go defines both. The structs have twins in ../fulllevels.go.
#pragma once
#include <climits>

#include "multigrid_level.cuh"

constexpr int kFullThreads = 256;  // of a block: columns next to each other

// Interpolation is the argument of the kernel interpolate: 8 bytes written and 2 read a point.
struct Interpolation {
  const double* from;  // the field of the coarser mesh; both begin where row 0 is or would be
  double* to;
  const Between* betweenRows;     // by fine row, from row -kBeyond on
  const Between* betweenColumns;  // by fine column, from column -kBeyond on
  const unsigned* fixed;          // a bit for each point, set where it is fixed; null: none inside
  int pitch, fromPitch, fixedPitch;  // values, words
  int nx, lo, hi;                 // rows to write
  int strips, segment;            // blocks next to each other; rows of a block
  Span columns, fromRows, fromColumns;
};

__device__ __forceinline__ void interpolate_columns(const Interpolation& a) {
  const int x = blockIdx.x % a.strips * kFullThreads + threadIdx.x;
  if (x >= a.nx || a.columns.keeps(x)) return;
  const int begin = a.lo + blockIdx.x / a.strips * a.segment, end = min(begin + a.segment, a.hi);
  const Between column = a.betweenColumns[x + kBeyond];
  const double* const west = a.from + a.fromColumns.held(column.coarse);
  const double* const east = a.from + a.fromColumns.held(column.coarse + 1);
  double w[2] = {0, 0}, e[2] = {0, 0};  // of two coarse rows
  int coarse = INT_MIN;
  for (int y = begin; y < end; y++) {
    const Between row = a.betweenRows[y + kBeyond];
    if (row.coarse != coarse) {
      for (int k = row.coarse == coarse + 1 ? 1 : 0; k < 2; k++) {
        const ptrdiff_t at = (ptrdiff_t)a.fromRows.held(row.coarse + k) * a.fromPitch;
        w[0] = w[1], e[0] = e[1];
        w[1] = west[at], e[1] = east[at];
      }
      coarse = row.coarse;
    }
    if (a.fixed && (a.fixed[(ptrdiff_t)y * a.fixedPitch + x / 32] >> x % 32 & 1)) continue;
    const double t = fused((double)row.weight, w[1] - w[0], w[0]), s = fused((double)row.weight, e[1] - e[0], e[0]);
    a.to[(ptrdiff_t)y * a.pitch + x] = fused((double)column.weight, s - t, t);
  }
}

// SourceRestriction is the argument of the kernel restrict_source, a thread of which does a point.
struct SourceRestriction {
  const double* from;  // the source; both begin where row 0 is or would be
  double* to;
  const Restricted* restricted;  // by fine row, from row -kBeyond on
  const Taps* taps;              // by coarse column
  const unsigned* fixed;         // as in Interpolation
  double gain;
  int pitch, toPitch, fixedPitch;
  int nx, lo, hi;                // of the coarser mesh
  int strips;
  int fineY, coarseY;            // intervals
  Span rows, columns, toColumns;
};

__device__ __forceinline__ void restrict_point(const SourceRestriction& a) {
  const int x = blockIdx.x % a.strips * kFullThreads + threadIdx.x, y = a.lo + blockIdx.x / a.strips;
  if (x >= a.nx || x < a.toColumns.lo || x >= a.toColumns.hi || a.toColumns.keeps(x)) return;
  const int first = floor_div((y - 1LL) * a.fineY, a.coarseY) + 1;
  const int n = ceil_div((y + 1LL) * a.fineY, a.coarseY) - first;
  const Taps taps = a.taps[x];
  double r = 0;
  for (int k = 0; k < kTaps; k++) {
    const int column = a.columns.held(taps.first + k);
    double sum = 0;
    for (int i = 0; i < n; i++) {
      const Restricted rows = a.restricted[first + i + kBeyond];
      const ptrdiff_t row = a.rows.held(first + i);
      const bool fixed = a.fixed && (a.fixed[row * a.fixedPitch + column / 32] >> column % 32 & 1);
      const double b = fixed ? 0 : a.from[row * a.pitch + column];
      sum = fused((double)(rows.coarse == y ? rows.near : rows.next), b, sum);
    }
    r = fused((double)taps.w[k], sum, r);
  }
  a.to[(ptrdiff_t)y * a.toPitch + x] = fused(a.gain, r, 0.0);
}
