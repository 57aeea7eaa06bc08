// The way down: four sweeps, the defect of the result, and its restriction, in one pass over a level. Bytes a point:
// read u and b, write u, and a quarter of a coarse b: 17 on level 0 without source, 25 with one, 9 on other levels.
#pragma once
#include "multigrid_pipe.cuh"
#include "sum.cuh"

// Squares collects the sum of squares of the first d, a group of 8 rows by 4 columns at a time.
template <class K> struct Squares {
  using Real = typename K::Real;
  static constexpr int W = K::W;
  int lo, hi;       // rows that count
  unsigned counts;  // bit j: column x+j counts
  Real acc = 0;
  Limbs sum;
  int groups = 0;

  __device__ __forceinline__ void begin(const Pipe<K>& pipe) {
    const Smooth<Real>& a = pipe.a;
    lo = max(pipe.lo, a.countLo), hi = min(pipe.hi, a.countHi), counts = pipe.counted(a);
    sum.clear(a.bias);
  }

  // add adds row y of the strip.
  template <bool kEdge> __device__ __forceinline__ void add(const Pipe<K>& pipe, Row<Real, W> d, int y) {
    if (y < lo || y >= hi) return;
#pragma unroll
    for (int j = 0; j < W; j++)
      if (kEdge) d.v[j] = counts >> j & 1 ? d.v[j] : Real(0);
    if constexpr (W == kGroupColumns) {
      acc += squares(d.v, kSmallest<Real>);
    } else {  // two lanes have a group
      const Real half = fused(d.v[1], d.v[1], fused(d.v[0], d.v[0], kSmallest<Real>));
      acc += half + __shfl_xor_sync(kAll, half, 1);
    }
    if (y % kGroupRows == kGroupRows - 1 || y == hi - 1) close(pipe, y);
  }

  __device__ __forceinline__ void close(const Pipe<K>& pipe, int y) {
    const Real more = surplus<Real>(y + 1 - max(lo, y / kGroupRows * kGroupRows));
    sum.add(pipe.stores && (W == kGroupColumns || pipe.lane % 2 == 0) ? (double)acc - (double)more : 0);
    acc = 0, groups++;
  }
  __device__ __forceinline__ void drain(const Pipe<K>& pipe, unsigned long long* words) {
    sum.drain(pipe.a.bias, words, true, pipe.lane), sum.clear(pipe.a.bias), groups = 0;
  }
};

// Restriction collects rows of defects for two coarse rows at a time.
template <class K> struct Restriction {
  using Real = typename K::Real;
  static constexpr int W = K::W, kKept = 2;
  float* buffer;       // a row of the strip
  int lo, hi;          // coarse rows that this warp writes
  int left, right;     // coarse columns
  int coarse;          // the coarse row of `upper`
  float upper[W], lower[W];
  Taps taps[kKept];    // of the lane's first coarse columns
  Restricted next;     // of the next row

  __device__ __forceinline__ void begin(const Pipe<K>& pipe, int y, char* shared) {
    const Smooth<Real>& a = pipe.a;
    buffer = (float*)shared;
    lo = max(a.coarseLo, coarse_from(pipe.lo, a.coarseY, a.fineY));
    hi = min(a.coarseHi, coarse_from(pipe.hi, a.coarseY, a.fineY));
    const int2 columns = pipe.coarse_columns(a);
    left = columns.x, right = columns.y;
#pragma unroll
    for (int i = 0; i < kKept; i++)
      if (left + pipe.lane + kWarp * i < right) taps[i] = a.taps[left + pipe.lane + kWarp * i];
#pragma unroll
    for (int j = 0; j < W; j++) upper[j] = lower[j] = 0;
    next = a.restricted[y + kBeyond];
    coarse = next.coarse;
  }

  // add adds d of row y.
  __device__ __forceinline__ void add(const Pipe<K>& pipe, const Row<Real, W>& d, int y) {
    const Restricted row = next;
    next = pipe.a.restricted[y + 1 + kBeyond];
    if (row.coarse != coarse) {  // its last term has come
      if (coarse >= lo && coarse < hi) write(pipe);
#pragma unroll
      for (int j = 0; j < W; j++) upper[j] = lower[j], lower[j] = 0;
      coarse = row.coarse;
    }
#pragma unroll
    for (int j = 0; j < W; j++) {
      const float e = sizeof(Real) == 8 ? (float)(d.v[j] * (Real)pipe.a.scale) : (float)d.v[j];
      upper[j] = fused(row.near, e, upper[j]), lower[j] = fused(row.next, e, lower[j]);
    }
  }

  __device__ __forceinline__ void write(const Pipe<K>& pipe) {
    const Smooth<Real>& a = pipe.a;
    float* const to = a.coarseB + (ptrdiff_t)coarse * a.coarsePitch;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < W; j++) buffer[W * pipe.lane + j] = upper[j];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kKept; i++) {
      const int x = left + pipe.lane + kWarp * i;
      if (x < right) to[x] = fused(a.gain, across(taps[i], pipe.x0), 0.f);
    }
#pragma unroll 1
    for (int begin = left + kWarp * kKept; begin < right; begin += kWarp) {
      const int x = begin + pipe.lane;
      if (x < right) to[x] = fused(a.gain, across(a.taps[x], pipe.x0), 0.f);
    }
  }
  __device__ __forceinline__ float across(const Taps& t, int x0) const {
    const float* const e = buffer + (t.first - x0);
    return fused(t.w[3], e[3], fused(t.w[2], e[2], fused(t.w[1], e[1], t.w[0] * e[0])));
  }
};

template <class K, bool kEdge, int p>
__device__ __forceinline__ void down_step(Pipe<K>& pipe, Restriction<K>& restriction, Squares<K>& squares, int y) {
  using R = Row<typename K::Real, K::W>;
  copies_wait<kPhases * K::kAhead - 1>();
  R v;
  if constexpr (K::kZero) v = pipe.template source<p, 0>();
  else take(v, pipe.u.template at<p>());
  pipe.template advance<kEdge, p>(y);
  pipe.template enter<kEdge, p>(v, y);
  constexpr int kDelay = K::delay(kSmooth);
  const auto& last = pipe.ring[kSmooth];
  restriction.add(pipe, defect(last[(p + 1) % kPhases], last[(p + 2) % kPhases], last[p],
                               pipe.template source<p, kDelay>(), pipe.a.h, pipe.a.q), y - kDelay);
  pipe.template sweep<kEdge, p, kSmooth - 1>(y, [&](const R& d, int row) {
    if constexpr (K::kCounts) squares.template add<kEdge>(pipe, d, row);
  });
}

template <class K> __device__ __forceinline__ void down(const Smooth<typename K::Real>& a) {
  DYNAMIC_SHARED(shared);
  const int warp = __shfl_sync(kAll, threadIdx.x / kWarp, 0), warps = blockDim.x / kWarp;
  char* const own = shared + warp * K::kBytes;
  unsigned long long* const words = (unsigned long long*)(shared + warps * K::kBytes) + warp * kSumWords;
  Pipe<K> pipe(a);
  if (!pipe.begin(blockIdx.x * warps + warp, own)) return;
  Squares<K> squares;
  if constexpr (K::kCounts) {
    if (pipe.lane < kSumWords) words[pipe.lane] = 0;
    __syncwarp();
    squares.begin(pipe);
  }
  // The first coarse row needs defects from row lo-1 on, and each of them five rows of u on both sides. The last one is
  // written with the defect of row hi+2.
  const int begin = pipe.lo - 7, end = pipe.hi + 3 + K::kLast;
  Restriction<K> restriction;
  restriction.begin(pipe, begin - K::kLast, own + K::kUBytes + K::kBBytes);
  pipe.fill(begin);
#pragma unroll 1
  for (int y = begin; y < end; y += kPhases) {
    if (pipe.regular(y)) {
      down_step<K, false, 0>(pipe, restriction, squares, y);
      down_step<K, false, 1>(pipe, restriction, squares, y + 1);
      down_step<K, false, 2>(pipe, restriction, squares, y + 2);
    } else {
      down_step<K, true, 0>(pipe, restriction, squares, y);
      down_step<K, true, 1>(pipe, restriction, squares, y + 1);
      down_step<K, true, 2>(pipe, restriction, squares, y + 2);
    }
    pipe.u.turn(), pipe.b.turn();
    if constexpr (K::kCounts)
      if (squares.groups == kMostGroups) squares.drain(pipe, words);
  }
  if constexpr (K::kCounts) {
    squares.drain(pipe, words);
    flush(words, a.sums, pipe.lane);
  }
}
