// The way up: the correction from the coarser level and four sweeps, in one pass over a level. Bytes a point: read u
// and b, write u, and a quarter of a coarse u: 17 on level 0 without source, 25 with one, 13 on other levels.
#pragma once
#include "multigrid_pipe.cuh"

// Prolongation interpolates rows of the coarser level: first between two rows, for the coarse columns of the strip,
// then between columns.
template <class K> struct Prolongation {
  using Real = typename K::Real;
  static constexpr int W = K::W, M = K::kWindow / kWarp;
  float* buffer;    // kPhases rows of kWindow coarse columns from `first` on
  int pieces;       // of kWarp coarse columns
  int place[M];     // the lane's coarse columns
  int coarse;       // the coarse row of `upper`
  float upper[M], lower[M], ahead[M];  // three coarse rows
  int at[W];        // places of the coarse columns before the lane's columns
  float weight[W];  // of the ones after them
  Between next;     // of the next row

  __device__ __forceinline__ void begin(const Pipe<K>& pipe, int y, char* shared) {
    const Smooth<Real>& a = pipe.a;
    buffer = (float*)shared;
    const int first = floor_div((long long)pipe.x0 * a.coarseX, a.fineX);
    pieces = (floor_div((long long)(pipe.x0 + K::kWidth - 1) * a.coarseX, a.fineX) + 1 - first) / kWarp + 1;
    for (int m = 0; m < M; m++) place[m] = a.coarseColumns.held(first + pipe.lane + kWarp * m);
#pragma unroll
    for (int j = 0; j < W; j++) {
      const Between b = a.betweenColumns[min(pipe.x + j, a.nx - 1 + kBeyond) + kBeyond];
      at[j] = min(max(b.coarse - first, 0), K::kWindow - 2), weight[j] = b.weight;
    }
    next = a.betweenRows[y + kBeyond];
    coarse = next.coarse - 2;
  }

  // reach makes `upper` coarse row `row`, usually the next one. Near a mirror rows come back.
  __device__ __forceinline__ void reach(const Pipe<K>& pipe, int row) {
    const Smooth<Real>& a = pipe.a;
#pragma unroll 1
    for (int k = row == coarse + 1 ? 2 : 0; k < 3; k++) {
      const float* const from = a.coarseU + (ptrdiff_t)a.coarseRows.held(row + k) * a.coarsePitch;
#pragma unroll
      for (int m = 0; m < M; m++) {
        upper[m] = lower[m], lower[m] = ahead[m];
        if (m < pieces) ahead[m] = from[place[m]];
      }
    }
    coarse = row;
  }

  // add adds the correction to row y of the strip, where `p` is the phase of the step.
  template <bool kEdge, int p> __device__ __forceinline__ void add(const Pipe<K>& pipe, Row<Real, W>& v, int y) {
    const Smooth<Real>& a = pipe.a;
    const Between row = next;
    next = a.betweenRows[y + 1 + kBeyond];
    if (row.coarse != coarse) reach(pipe, row.coarse);
    float* const t = buffer + p * K::kWindow;
#pragma unroll
    for (int m = 0; m < M; m++)
      if (m < pieces) t[pipe.lane + kWarp * m] = fused(row.weight, lower[m] - upper[m], upper[m]);
    __syncwarp();
    const bool keeps = kEdge && (y < a.regularLo || y >= a.regularHi) && a.rows.keeps(y);
#pragma unroll
    for (int j = 0; j < W; j++) {
      const float left = t[at[j]], e = fused(weight[j], t[at[j] + 1] - left, left);
      const Real sum = sizeof(Real) == 8 ? fused((Real)a.scale, (Real)e, v.v[j]) : v.v[j] + (Real)e;
      v.v[j] = kEdge && (keeps || (pipe.keeps >> j & 1)) ? v.v[j] : sum;
    }
  }
};

template <class K, bool kEdge, int p>
__device__ __forceinline__ void up_step(Pipe<K>& pipe, Prolongation<K>& prolongation, int y) {
  using R = Row<typename K::Real, K::W>;
  copies_wait<kPhases * K::kAhead - 1>();
  R v;
  take(v, pipe.u.template at<p>());
  pipe.template advance<kEdge, p>(y);
  prolongation.template add<kEdge, p>(pipe, v, y);
  pipe.template enter<kEdge, p>(v, y);
  pipe.template sweep<kEdge, p, kSmooth - 1>(y, [](const R&, int) {});
}

template <class K> __device__ __forceinline__ void up(const Smooth<typename K::Real>& a) {
  DYNAMIC_SHARED(shared);
  const int warp = __shfl_sync(kAll, threadIdx.x / kWarp, 0), warps = blockDim.x / kWarp;
  char* const own = shared + warp * K::kBytes;
  Pipe<K> pipe(a);
  if (!pipe.begin(blockIdx.x * warps + warp, own)) return;
  const int begin = pipe.lo - kSmooth, end = pipe.hi + K::kLast;
  Prolongation<K> prolongation;
  prolongation.begin(pipe, begin, own + K::kUBytes + K::kBBytes);
  pipe.fill(begin);
#pragma unroll 1
  for (int y = begin; y < end; y += kPhases) {
    if (pipe.regular(y)) {
      up_step<K, false, 0>(pipe, prolongation, y);
      up_step<K, false, 1>(pipe, prolongation, y + 1);
      up_step<K, false, 2>(pipe, prolongation, y + 2);
    } else {
      up_step<K, true, 0>(pipe, prolongation, y);
      up_step<K, true, 1>(pipe, prolongation, y + 1);
      up_step<K, true, 2>(pipe, prolongation, y + 2);
    }
    pipe.u.turn(), pipe.b.turn();
  }
}
