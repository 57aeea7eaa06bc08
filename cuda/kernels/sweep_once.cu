// One sweep a pass. Memory bounds it, so a thread issues the loads of eight rows, four columns each, before it uses the
// first. A tile is as wide as a block and Cut.tileRows high. Blocks take tile after tile, along the rows of tiles, and
// add up the sum on the way.
#pragma once
#include "once_terms.cuh"
#include "sum.cuh"

template <class Arg> __device__ __forceinline__ void sweep_once(const Arg& a) {
  using Real = typename Arg::Real;
  constexpr int W = kOnceColumns, kWarps = kOnceThreads / kWarp;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int across = (a.nx + W * kOnceThreads - 1) / (W * kOnceThreads);
  const int top = a.outLo & -kGroupRows;
  const int tileRows = a.cut.tileRows, tiles = across * ((a.outHi - top + tileRows - 1) / tileRows);

  // The outermost columns of each warp in eight rows, for the warps beside it. There are two sets in turn, so that one
  // barrier for eight rows is enough.
  __shared__ Real outer[2][kGroupRows][2][kWarps];
  int turn = 0;

  __shared__ unsigned long long words[kWarps][kSumWords];
  if (lane < kSumWords) words[warp][lane] = 0;
  __syncwarp();
  Limbs sum;
  sum.clear(a.bias);
  int groups = 0;

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int x = (tile % across * kOnceThreads + threadIdx.x) * W;
    const bool ok = x < a.nx;
    const int yTile = top + tile / across * tileRows, yEnd = min(yTile + tileRows, a.outHi);
    // The column beside the block, which its first and its last thread load.
    const int besideX = threadIdx.x ? x + W : x - 1;
    const bool beside = (threadIdx.x == 0 || threadIdx.x == kOnceThreads - 1) && besideX >= 0 && besideX < a.nx;

    // A row outside the field is read as the nearest row inside.
    const unsigned moves = a.rowHi - 1 - a.rowLo;
    const Real* at = a.now + (ptrdiff_t)(min(max(yTile - 1, a.rowLo), a.rowHi - 1) - a.rowLo) * a.pitch;
    auto below = [&](int y) { at += (unsigned)(y - a.rowLo) < moves ? a.pitch : 0; };  // from row y
    auto load = [&]() {
      Row<Real, W> r = {};
      if (ok)
#pragma unroll
        for (int j = 0; j < W; j += kPer16<Real>) load16(r.v + j, at + x + j);
      return r;
    };
    Row<Real, W> rows[kGroupRows + 2];  // from y0-1 to y0+8
    rows[0] = load(), below(yTile - 1), rows[1] = load();
    OnceTerms<Arg> terms(a, x, yTile);
    Real* to = a.next + x + (ptrdiff_t)(yTile - a.rowLo) * a.pitch;
    for (int y0 = yTile; y0 < yEnd; y0 += kGroupRows) {
      terms.load(a, y0, ok);
      Real side[kGroupRows];
#pragma unroll
      for (int k = 0; k < kGroupRows; k++) {
        side[k] = beside ? at[besideX] : Real(0);
        below(y0 + k);
        rows[k + 2] = load();
      }
#pragma unroll
      for (int k = 0; k < kGroupRows; k++) {
        if (lane == 0) outer[turn][k][0][warp] = rows[k + 1].v[0];
        if (lane == 31) outer[turn][k][1][warp] = rows[k + 1].v[W - 1];
      }
      __syncthreads();
      const Real more = surplus<Real>(min(y0 + kGroupRows, a.countHi) - max(y0, a.countLo));
      Real acc = 0;
#pragma unroll
      for (int k = 0; k < kGroupRows; k++) {
        const Row<Real, W>& c = rows[k + 1];
        const int y = y0 + k;
        Real west = __shfl_up_sync(kAll, c.v[W - 1], 1), east = __shfl_down_sync(kAll, c.v[0], 1);
        if (lane == 0) west = warp > 0 ? outer[turn][k][1][warp - 1] : side[k];
        if (lane == 31) east = warp < kWarps - 1 ? outer[turn][k][0][warp + 1] : side[k];
        Row<Real, W> o = terms.update(a, rows[k], c, rows[k + 2], west, east, x, y, k);
        Real d[W];
#pragma unroll
        for (int j = 0; j < W; j++) {
          o.v[j] = terms.keeps(a, x, k, j) ? c.v[j] : o.v[j];
          d[j] = o.v[j] - c.v[j];
        }
        const Real p = squares(d, kSmallest<Real>);
        acc += y >= a.countLo && y < a.countHi ? p : Real(0);
        if (ok && y >= a.outLo && y < yEnd) terms.store(a, to, o, x);
        to += a.pitch;
      }
      turn ^= 1;
      sum.add(ok && more > 0 ? (double)acc - (double)more : 0);
      if (++groups == kMostGroups) sum.drain(a.bias, words[warp], true, lane), sum.clear(a.bias), groups = 0;
      rows[0] = rows[kGroupRows], rows[1] = rows[kGroupRows + 1];
    }
  }
  sum.drain(a.bias, words[warp], true, lane);
  flush(words[warp], a.sums, lane);
}

#define ONCE(name, Arg, blocks) \
  KERNEL(kOnceThreads, blocks) name(const __grid_constant__ Arg a) { sweep_once(a); }
#ifndef TERMS
ONCE(once_f32, Pass<float>, 4)
ONCE(once_f64, Pass<double>, 4)
#endif
