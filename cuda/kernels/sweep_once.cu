// One sweep a pass. Bound by memory: each thread streams down four columns, its loads kAhead rows before their use.
#include "sum.cuh"

constexpr int kOnceThreads = 128;

template <class Real> __device__ __forceinline__ void sweep_once(const Pass<Real>& a) {
  constexpr int W = 4, kAhead = 2;
  const int lane = threadIdx.x & 31;
  const int x = (blockIdx.x * kOnceThreads + threadIdx.x) * W;
  const bool ok = x < a.nx;
  const int top = (a.outLo & -kGroup) + blockIdx.y * a.tileRows;
  const int lo = max(top, a.outLo), hi = min(top + a.tileRows, a.outHi);
  const bool fixed[W] = {x == 0, false, false, false};
  // The columns beside the warp's, for its first and last lane.
  const int besideX = lane == 0 ? x - 1 : lane == 31 ? x + W : -1;
  const bool beside = besideX >= 0 && besideX < a.nx;

  const Real* src = a.now + (ptrdiff_t)(lo - a.rowLo) * a.pitch;
  auto load = [&](const Real* row) {
    Row<Real, W> r = {};
    if (ok)
#pragma unroll
      for (int j = 0; j < W; j += kPer16<Real>) load16(r.v + j, row + x + j);
    return r;
  };
  auto load_beside = [&](const Real* row) { return beside ? __ldg(row + besideX) : Real(0); };

  Row<Real, W> north = load(src - a.pitch), row = load(src);
  Real side = load_beside(src);
  Row<Real, W> ahead[kAhead];
  Real sideAhead[kAhead];
  // Rows of the tile reach one beyond hi; further loads repeat the last one.
  const Real* const last = a.now + (ptrdiff_t)(hi - a.rowLo) * a.pitch;
  const Real* from = src;
  auto fetch = [&](int k) {
    from = from < last ? from + a.pitch : last;
    ahead[k] = load(from);
    sideAhead[k] = load_beside(from);
  };
#pragma unroll
  for (int k = 0; k < kAhead; k++) fetch(k);

  Limbs sum;
  sum.clear(a.bias);
  Real acc = 0;
  int groups = 0;
  // close ends a group at row `end`.
  auto close = [&](int end) {
    const int first = (end - 1) & -kGroup;
    sum.add(ok ? acc - beyond<Real>(min(end, a.countHi) - max(max(first, lo), a.countLo)) : 0);
    acc = 0;
    groups++;
  };
  Real* dst = a.next + (ptrdiff_t)(lo - a.rowLo) * a.pitch + x;
  for (int y = lo; y < hi; y += kAhead) {
#pragma unroll
    for (int k = 0; k < kAhead; k++) {
      if (y + k < hi) {
        Real west = __shfl_up_sync(kAll, row.v[W - 1], 1), east = __shfl_down_sync(kAll, row.v[0], 1);
        if (lane == 0) west = side;
        if (lane == 31) east = side;
        Row<Real, W> o = update(north, row, ahead[k], west, east);
#pragma unroll
        for (int j = 0; j < W; j++)
          if (fixed[j] || x + j >= a.nx - 1) o.v[j] = row.v[j];
        if (y + k >= a.countLo && y + k < a.countHi) acc += squares(o.v, row.v);
        if (((y + k + 1) & (kGroup - 1)) == 0) close(y + k + 1);
        if (ok) store_row(dst, o);
        dst += a.pitch;
        north = row;
        row = ahead[k];
        side = sideAhead[k];
        fetch(k);
      }
    }
    if (groups >= kMostGroups) drain(sum, a.bias, a.sums, ok, lane), groups = 0;
  }
  if (hi & (kGroup - 1)) close(hi);
  drain(sum, a.bias, a.sums, ok, lane);
}

extern "C" __global__ void __launch_bounds__(kOnceThreads) once_f32(const __grid_constant__ Pass<float> a) { sweep_once(a); }
extern "C" __global__ void __launch_bounds__(kOnceThreads) once_f64(const __grid_constant__ Pass<double> a) { sweep_once(a); }
