// Rows of a level that stream through a warp: from memory into a ring in shared memory, and from there, as they are
// needed, into registers.
#pragma once
#include "group.cuh"
#include "multigrid_level.cuh"
#include "row.cuh"

constexpr int kPhases = 3; // rows of a group: a loop over groups of rows needs no moves between registers

// Ring is the place of groups of rows in the shared memory of a warp: kBack groups before the present one, and kAhead
// after it. A lane reads what it has copied itself, so nothing waits for other lanes.
template <class Real, int W, int kBack, int kAhead> struct Ring {
  static constexpr int kRowBytes = kWarp * W * (int)sizeof(Real), kGroups = kBack + 1 + kAhead;
  static constexpr int kBytes = kRowBytes * kPhases * kGroups;
  char* group[kGroups];

  __device__ __forceinline__ void place(char* shared, int lane) {
#pragma unroll
    for (int i = 0; i < kGroups; i++) group[i] = shared + i * kPhases * kRowBytes + 16 * lane;
  }
  __device__ __forceinline__ void turn() {
    char* const first = group[0];
#pragma unroll
    for (int i = 0; i + 1 < kGroups; i++) group[i] = group[i + 1];
    group[kGroups - 1] = first;
  }
  // at returns this lane's part of the row that is `offset` rows after the first of the present group.
  template <int kOffset> __device__ __forceinline__ char* at() const {
    constexpr int kShifted = kOffset + kBack * kPhases;
    static_assert(kShifted >= 0 && kShifted < kGroups * kPhases, "no such row in the ring");
    return group[kShifted / kPhases] + kShifted % kPhases * kRowBytes;
  }
};

// A lane has W columns. Piece p of 16 bytes lies at byte (32 p + lane) * 16 of a row.
template <class Real, int W> __device__ __forceinline__ void take(Row<Real, W>& r, const char* at) {
#pragma unroll
  for (int p = 0; p < W / kPer16<Real>; p++) load16(r.v + p * kPer16<Real>, (const Real*)(at + 16 * kWarp * p));
}
template <class Real, int W> __device__ __forceinline__ void fetch(char* at, const Real* row, int x) {
#pragma unroll
  for (int p = 0; p < W / kPer16<Real>; p++) copy16_async(at + 16 * kWarp * p, row + x + p * kPer16<Real>);
}
// fetch_each copies columns that may lie beyond the mesh.
template <class Real, int W>
__device__ __forceinline__ void fetch_each(char* at, const Real* row, int x, const Span& columns) {
#pragma unroll
  for (int j = 0; j < W; j++)
    copy_async<sizeof(Real)>(at + 16 * kWarp * (j / kPer16<Real>)+j % kPer16<Real> * sizeof(Real),
                             row + columns.held(x + j));
}

template <class Real, int W> __device__ __forceinline__ Row<Real, W> zeros() {
  Row<Real, W> r;
#pragma unroll
  for (int j = 0; j < W; j++) r.v[j] = 0;
  return r;
}

// defect returns d of a row.
template <class Real, int W>
__device__ __forceinline__ Row<Real, W> defect(const Row<Real, W>& north, const Row<Real, W>& u,
                                               const Row<Real, W>& south, const Row<Real, W>& b, Real h, Real q) {
  const Real west = __shfl_up_sync(kAll, u.v[W - 1], 1), east = __shfl_down_sync(kAll, u.v[0], 1);
  Row<Real, W> d;
#pragma unroll
  for (int j = 0; j < W; j++)
    d.v[j] = defect(h, q, b.v[j], u.v[j], j ? u.v[j - 1] : west, j < W - 1 ? u.v[j + 1] : east, north.v[j], south.v[j]);
  return d;
}
