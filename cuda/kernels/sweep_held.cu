// Up to 16 sweeps a pass over a mesh that the registers of a GPU hold: nothing moves between its first row and its last sweep.
//
// A block holds a tile: its warps lie one below the other, each with R rows of 4 columns a lane. Columns of the neighbouring lanes come by
// shuffle, the rows above and below a warp's through shared memory. Tiles overlap, for `sweeps` rows and columns go stale on each side.
//
// A new row takes the registers of the row above it, which nobody needs any more: a sweep down moves all rows up by one place, the next
// one goes up and moves them back. That also gives the warps time: the outer row that a warp needs first is the one that its neighbour made
// first in the sweep before, half a sweep ago at least, and the one it needs last, the neighbour made last. So one barrier in
// the middle of each sweep orders everything, and no warp waits for a row.
//
// Sums of groups wait in shared memory until the pass is over, and are then added up sweep by sweep.
//
// The two outer columns of tiles have fixed columns to heed, which costs them a sixth, so they are lower (Pass.edge). A block runs one loop only, which with all
// else just fits into a multiprocessor's cache of instructions: with two loops a pass took half as long again.
#include "exchange.cu"
#include "sum.cuh"

template <class Real, int R> struct Held {
  static constexpr int W = 4;  // columns a lane: a group's
  static constexpr int kGroups = R / kGroup;
  static_assert(R % kGroup == 0 && R <= 32, "a warp holds whole groups, and a word a bit for each row");
  using Row = ::Row<Real, W>;

  const Pass<Real>& a;
  int lane, warp, warps;
  int x, y0;        // of the lane's first column, and of the warp's first row
  bool ok;          // the lane's columns are right in the end
  int top, bottom;  // rows that the tile writes
  unsigned counts;  // a bit for each of the warp's rows: it counts for the norm
  Row* edges;       // outer rows, for the warps above and below: [turn][warp, and one before and behind][top, bottom][lane]
  Real* sums;       // of groups: [sweep][warp][group][lane]

  __device__ __forceinline__ Row& edge(int sweep, int warp, int bottom) const { return edges[(((sweep & 1) * (warps + 2) + warp + 1) * 2 + bottom) * 32 + lane]; }
  __device__ __forceinline__ Row& above(int sweep) const { return edge(sweep, warp - 1, 1); }
  __device__ __forceinline__ Row& below(int sweep) const { return edge(sweep, warp + 1, 0); }

  __device__ __forceinline__ void meet() const { ::meet(0, 32 * warps); }

  // update makes a row of a sweep, the r-th, and returns the sum of its squares. Care is what it needs beyond the plain update: 1 heeds fixed columns, 2
  // also fixed rows, and groups of which any rows do not count.
  template <int kCare> __device__ __forceinline__ Real update(int r, const Row& north, const Row& row, const Row& south, Row& to) const {
    const Real west = __shfl_up_sync(kAll, row.v[W - 1], 1), east = __shfl_down_sync(kAll, row.v[0], 1);
    Row o = around(north, row, south, west, east), d;
    const bool fixed = kCare == 2 && ((y0 + r == a.fixTop) | (y0 + r == a.fixBottom));
#pragma unroll
    for (int j = 0; j < W; j++) {
      o.v[j] *= Real(0.25);
      if (kCare) o.v[j] = fixed | (x + j <= 0) | (x + j >= a.nx - 1) ? row.v[j] : o.v[j];
      d.v[j] = o.v[j] - row.v[j];
    }
    to = o;
    return squares(d.v, kSmallest<Real>);
  }

  // count adds a row's squares to a group's sum. Groups are whole, but for their first or last row; looking at each row would cost more.
  template <int kCare> __device__ __forceinline__ static Real count(unsigned counts, int r, Real sum, Real more) {
    if (r % kGroup == 0) return counts & 1u << r ? more : 0;
    if (kCare == 2 || r % kGroup == kGroup - 1) return counts & 1u << r ? sum + more : sum;
    return sum + more;
  }

  __device__ __forceinline__ void keep(int sweep, int group, Real sum) const { sums[((sweep * warps + warp) * kGroups + group) * 32 + lane] = sum; }

  // down takes the rows from v[1] on and leaves them from v[0] on.
  template <int kCare> __device__ __forceinline__ void down(int sweep, Row* v) const {
    const unsigned counts = anew(this->counts);
    v[0] = above(sweep);
    Real sum = 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
      if (r == R / 2) meet();
      const Row south = r < R - 1 ? v[r < R - 1 ? r + 2 : 0] : below(sweep);
      const Real more = update<kCare>(r, v[r], v[r + 1], south, v[r]);
      sum = count<kCare>(counts, r, r % kGroup ? sum : 0, more);
      if (r % kGroup == kGroup - 1) keep(sweep, r / kGroup, sum);
      if (r == 0) edge(sweep + 1, warp, 0) = v[0];
    }
    edge(sweep + 1, warp, 1) = v[R - 1];
  }

  // up takes them from v[0] on and leaves them from v[1] on.
  template <int kCare> __device__ __forceinline__ void up(int sweep, Row* v) const {
    const unsigned counts = anew(this->counts);
    v[R] = below(sweep);
    Real more[kGroup];
#pragma unroll
    for (int r = R - 1; r >= 0; r--) {
      if (r == R / 2 - 1) meet();
      const Row north = r ? v[r ? r - 1 : 0] : above(sweep);
      more[r % kGroup] = update<kCare>(r, north, v[r], v[r + 1], v[r + 1]);
      if (r % kGroup == 0) {  // from top to bottom, as in a sweep down
        Real sum = 0;
#pragma unroll
        for (int i = 0; i < kGroup; i++) sum = count<kCare>(counts, r + i, sum, more[i]);
        keep(sweep, r / kGroup, sum);
      }
      if (r == R - 1) edge(sweep + 1, warp, 1) = v[R];
    }
    edge(sweep + 1, warp, 0) = v[1];
  }

  // load takes the rows from now, and those beside them. Rows that are not needed are loaded as the nearest that is.
  __device__ __forceinline__ void load(Row* v) const {
    const int first = max(a.rowLo, top - a.sweeps), last = min(a.rowHi, bottom + a.sweeps) - 1;
    const Real* const from = a.now + min(x, a.pitch - W);
    auto take = [&](int r) {
      Row row;
#pragma unroll
      for (int j = 0; j < W; j += kPer16<Real>) load16(row.v + j, from + ((min(max(y0 + r, first), last) - a.rowLo) * a.pitch + j));
      return row;
    };
    const Row north = take(-1);
#pragma unroll
    for (int r = 0; r < R; r++) v[r] = take(r);
    const Row south = take(R);
    above(0) = north, below(0) = south;
    if (warp == 0) above(1) = north;  // nobody else writes there
    if (warp == warps - 1) below(1) = south;
  }

  // store writes the rows to next and into the neighbours' halos.
  __device__ __forceinline__ void store(const Row* v) const {
#pragma unroll 1
    for (int i = -1; i < 2; i++) {
      const int begin = i < 1 ? a.outLo : a.outHi - a.depth, end = i < 0 ? a.outHi : begin + a.depth;
      Real* const to = i < 0 ? a.next + (begin - a.rowLo) * (ptrdiff_t)a.pitch : a.sides[i].to;
      const int lo = max(top, begin), n = ok && to ? min(bottom, end) - lo : 0;
      if (n <= 0) continue;
#pragma unroll
      for (int r = 0; r < R; r++)
        if ((unsigned)(y0 + r - lo) < n) store_row(to + (x + (y0 + r - begin) * a.pitch), v[r]);
    }
  }

  template <int kCare> __device__ __forceinline__ void run() const {
    Row v[R + 1];
    load(v + 1);
    int s = 0;
#pragma unroll 1
    for (;;) {
      down<kCare>(s, v);
      if (++s == a.sweeps) return store(v);
      up<kCare>(s, v);
      if (++s == a.sweeps) return store(v + 1);
    }
  }
};

template <class Real, int R> __device__ __forceinline__ void sweep_held(const Pass<Real>& a) {
  using Held = ::Held<Real, R>;
  constexpr int W = Held::W;
  DYNAMIC_SHARED(shared);
  const int lane = threadIdx.x & 31, warp = __shfl_sync(kAll, threadIdx.x >> 5, 0);
  const int T = a.sweeps, pad = (T + W - 1) / W;  // lanes on each side of a tile whose columns go stale

  // Tiles side by side begin at column 0, which is fixed: nothing goes stale there, nor at the other end. Those two columns of tiles come first.
  const int step = (32 - 2 * pad) * W, across = 1 + (max(a.nx - 32 * W, 0) + step - 1) / step;
  const int top8 = a.outLo & -kGroup, outer = min(across, 2), outers = outer * ((a.outHi - top8 + a.edge - 1) / a.edge), inner = (int)blockIdx.x - outers;
  const int column = inner < 0 ? blockIdx.x % outer * (across - 1) : 1 + inner % (across - 2);
  const int top = top8 + (inner < 0 ? blockIdx.x / outer * a.edge : inner / (across - 2) * a.tileRows), bottom = min(top + (inner < 0 ? a.edge : a.tileRows), a.outHi);
  const int begin = (top - T) & -kGroup, y0 = begin + warp * R, warps = (bottom + T - begin + R - 1) / R;
  if (warp >= warps) return;
  const int x = column * step + lane * W;
  const bool ok = x < a.nx && (lane >= pad || column == 0) && (lane < 32 - pad || column == across - 1);
  const int lo = max(top, a.countLo), hi = min(bottom, a.countHi);
  unsigned counts = 0;
  for (int r = 0; r < R; r++) counts |= (unsigned)(y0 + r >= lo && y0 + r < hi) << r;

  auto* const edges = (typename Held::Row*)shared;
  auto* const sums = (Real*)(edges + 2 * (warps + 2) * 2 * 32);
  auto* const words = (unsigned long long*)(sums + T * warps * Held::kGroups * 32) + warp * kSumWords;
  const Held h = {a, lane, warp, warps, x, y0, ok, max(top, a.outLo), bottom, counts, edges, sums};

  await_halos(a, top, bottom);
  auto inside = [&](int y) { return y >= begin && y < begin + warps * R; };
  if (inside(a.fixTop) || inside(a.fixBottom) || lo % kGroup > 1 || (hi + 1) % kGroup > 1) h.template run<2>();
  else if (inner < 0) h.template run<1>();
  else h.template run<0>();
  h.meet();
  if (warp == 0) handed(a, h.top, bottom, across, lane);

  // The sums of two sweeps at a time, of at most kMostGroups groups of rows.
  const int first = ((lo & -kGroup) - begin) / kGroup, groups = (hi - begin + kGroup - 1) / kGroup - first;
  const int pairs = (T + 1) / 2, parts = max((groups + kMostGroups - 1) / kMostGroups, warps / pairs);
  auto more = [&](int g) {
    const int y = begin + (first + g) * kGroup;
    return (double)surplus<Real>(min(y + kGroup, hi) - max(y, lo));
  };
  const double full = (double)surplus<Real>(kGroup), moreFirst = more(0), moreLast = more(groups - 1);
#pragma unroll 1
  for (int i = warp; i < pairs * parts; i += warps) {
    const int s = i / parts * 2, part = i % parts, until = (part + 1) * groups / parts, two = min(2, T - s);
    Limbs limbs[2];
    limbs[0].clear(a.bias), limbs[1].clear(a.bias);
    const Real* const of = sums + (s * warps * Held::kGroups + first) * 32 + lane;
    const int next = (two - 1) * warps * Held::kGroups * 32;
#pragma unroll 4
    for (int g = part * groups / parts; g < until; g++) {
      const double less = g == 0 ? moreFirst : g == groups - 1 ? moreLast : full;
      limbs[0].add((double)of[g * 32] - less);
      limbs[1].add((double)of[g * 32 + next] - less);
    }
#pragma unroll
    for (int j = 0; j < 2; j++) {
      if (j == two) break;
      if (lane < kSumWords) words[lane] = 0;
      __syncwarp();
      limbs[j].drain(a.bias, words, ok, lane);
      flush(words, a.sums + (s + j) * kSumWords, lane);
      __syncwarp();
    }
  }
}

// Rows a warp, and the most warps that the registers then hold; the same in ../held.go. Lower warps suit lower meshes.
extern "C" __global__ void __launch_bounds__(32 * 16, 1) held24_f32(const __grid_constant__ Pass<float> a) { sweep_held<float, 24>(a); }
extern "C" __global__ void __launch_bounds__(32 * 20, 1) held16_f32(const __grid_constant__ Pass<float> a) { sweep_held<float, 16>(a); }
extern "C" __global__ void __launch_bounds__(32 * 16, 1) held8_f64(const __grid_constant__ Pass<double> a) { sweep_held<double, 8>(a); }
