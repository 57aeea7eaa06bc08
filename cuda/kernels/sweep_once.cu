// One sweep a pass. Bound by memory, so the loads of a whole group, 8 rows of four columns a lane and the rows around
// them, are under way before the first is used. A tile is one group high and as wide as a block; blocks take tile
// after tile, row by row of tiles, and add up the sum on the way: tileRows and the grid do not matter here.
#include "sum.cuh"
#ifndef ONCE_F32
#define ONCE_F32 6
#define ONCE_F64 4
#endif

template <class Real> __device__ __forceinline__ void sweep_once(const Pass<Real>& a) {
  constexpr int W = 4;
  const int lane = threadIdx.x & 31;
  const int across = (a.nx + W * blockDim.x - 1) / (W * blockDim.x);
  const int top = a.outLo & -kGroup;
  const int tiles = across * ((a.outHi - top + kGroup - 1) / kGroup);

  Limbs sum;
  sum.clear(a.bias);
  int groups = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int x = (tile % across * blockDim.x + threadIdx.x) * W;
    const int y0 = top + tile / across * kGroup;
    const bool ok = x < a.nx;
    // The column beside the warp's, for its first and last lane.
    const int besideX = lane ? x + W : x - 1;
    const bool beside = (lane == 0 || lane == 31) && besideX >= 0 && besideX < a.nx;

    Row<Real, W> rows[kGroup + 2];  // from y0-1 to y0+8
    Real side[kGroup];
#pragma unroll
    for (int k = 0; k < kGroup + 2; k++) {
      const Real* row = a.now + (ptrdiff_t)(min(max(y0 - 1 + k, a.rowLo), a.rowHi - 1) - a.rowLo) * a.pitch;
      rows[k] = {};
      if (ok)
#pragma unroll
        for (int j = 0; j < W; j += kPer16<Real>) load16(rows[k].v + j, row + x + j);
      if (k > 0 && k <= kGroup) side[k - 1] = beside ? __ldg(row + besideX) : Real(0);
    }
    Real acc = 0;
#pragma unroll
    for (int k = 0; k < kGroup; k++) {
      const Row<Real, W>& c = rows[k + 1];
      const int y = y0 + k;
      Real west = __shfl_up_sync(kAll, c.v[W - 1], 1), east = __shfl_down_sync(kAll, c.v[0], 1);
      if (lane == 0) west = side[k];
      if (lane == 31) east = side[k];
      Row<Real, W> o = update(rows[k], c, rows[k + 2], west, east);
#pragma unroll
      for (int j = 0; j < W; j++)
        if (x + j == 0 || x + j >= a.nx - 1) o.v[j] = c.v[j];
      const Real p = squares(o.v, c.v);
      acc += y >= a.countLo && y < a.countHi ? p : Real(0);
      if (ok && y >= a.outLo && y < a.outHi) store_row(a.next + x + (ptrdiff_t)(y - a.rowLo) * a.pitch, o);
    }
    sum.add(ok ? acc - beyond<Real>(min(y0 + kGroup, a.countHi) - max(y0, a.countLo)) : 0);
    if (++groups == kMostGroups) drain(sum, a.bias, a.sums, true, lane), groups = 0;
  }
  drain(sum, a.bias, a.sums, true, lane);
}

extern "C" __global__ void __launch_bounds__(128, ONCE_F32) once_f32(const __grid_constant__ Pass<float> a) { sweep_once(a); }
extern "C" __global__ void __launch_bounds__(128, ONCE_F64) once_f64(const __grid_constant__ Pass<double> a) { sweep_once(a); }
