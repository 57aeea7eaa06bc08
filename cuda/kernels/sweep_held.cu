// Up to 16 sweeps a pass over a mesh that the registers of a GPU hold: nothing leaves them between the first sweep and
// the last.
//
// A block holds a tile. Its warps lie one below the other, each with R rows of 4 columns a lane. The columns of the
// neighbouring lanes come by shuffle, the rows above and below a warp's through shared memory. `sweeps` rows and
// columns go stale on each side of a tile, so tiles overlap by as much.
//
// A new row takes the registers of the row above it, which is not needed any more. So a sweep down moves all rows up by
// one place, and the next sweep goes up and moves them back:
//
//   registers             v[0]    v[1]    v[2]   ...  v[R-1]   v[R]
//   a sweep down begins   above   row 0   row 1       row R-2  row R-1   and makes v[0], v[1], ...
//   a sweep up begins     row 0   row 1   row 2       row R-1  below     and makes v[R], v[R-1], ...
//
// This order also gives the warps time. The first outer row that a warp needs in a sweep is the one that its neighbour
// made first in the sweep before, at least half a sweep ago; the last one it needs is the one that its neighbour made
// last. So one barrier in the middle of a sweep is enough, and no warp waits for a row.
//
// The sums of the groups stay in shared memory until the end of the pass, and are then added up sweep by sweep.
//
// Tiles in the two outer columns of tiles have fixed columns, which cost a sixth more, so they are lower
// (Cut.outerRows). A block runs one of the loops run<Care> only: one loop and the rest just fit into the instruction
// cache of a multiprocessor, and with two loops in use a pass took half as long again.
#include "exchange.cuh"
#include "sum.cuh"

template <class Real, int R> struct Held {
  static constexpr int W = kGroupColumns;  // columns a lane
  static constexpr int kGroups = R / kGroupRows;
  static_assert(R % kGroupRows == 0 && R <= 32, "a warp holds whole groups, and a word has a bit for each of its rows");
  using Row = ::Row<Real, W>;

  const Pass<Real>& a;
  int lane, warp, warps;
  int x, y0;        // the lane's first column, and the warp's first row
  bool ok;          // the lane's columns come out right
  int top, bottom;  // rows that the tile writes
  unsigned counts;  // a bit for each of the warp's rows: it counts for the norm
  Row* edges;       // outer rows, for the warps above and below: [turn][warp + 1][side][lane]
  Real* sums;       // of groups: [sweep][warp][group][lane]

  __device__ __forceinline__ Row& edge(int sweep, int warp, int bottom) const {
    return edges[(((sweep & 1) * (warps + 2) + warp + 1) * 2 + bottom) * kWarp + lane];
  }
  __device__ __forceinline__ Row& above(int sweep) const { return edge(sweep, warp - 1, 1); }
  __device__ __forceinline__ Row& below(int sweep) const { return edge(sweep, warp + 1, 0); }

  __device__ __forceinline__ void meet() const { ::meet(0, kWarp * warps); }

  // update_squares makes row r of a sweep and returns the sum of its squares. kCare is what the row needs beyond the
  // plain update: 1 heeds fixed columns, 2 also fixed rows, and groups of which some rows do not count.
  template <int kCare> __device__ __forceinline__ Real update_squares(int r, const Row& north, const Row& row,
                                                                      const Row& south, Row& to) const {
    const Real west = __shfl_up_sync(kAll, row.v[W - 1], 1), east = __shfl_down_sync(kAll, row.v[0], 1);
    Row o = update_row(north, row, south, west, east), d;
    const bool fixed = kCare == 2 && ((y0 + r == a.fixTop) | (y0 + r == a.fixBottom));
#pragma unroll
    for (int j = 0; j < W; j++) {
      if (kCare) o.v[j] = fixed | (x + j <= 0) | (x + j >= a.nx - 1) ? row.v[j] : o.v[j];
      d.v[j] = o.v[j] - row.v[j];
    }
    to = o;
    return squares(d.v, kSmallest<Real>);
  }

  // count adds a row's squares to the sum of its group. With kCare < 2 all rows of a group count, except perhaps the
  // first or the last; looking at every row would cost more.
  template <int kCare> __device__ __forceinline__ static Real count(unsigned counts, int r, Real sum, Real more) {
    if (r % kGroupRows == 0) return counts & 1u << r ? more : 0;
    if (kCare == 2 || r % kGroupRows == kGroupRows - 1) return counts & 1u << r ? sum + more : sum;
    return sum + more;
  }

  __device__ __forceinline__ void keep(int sweep, int group, Real sum) const {
    sums[((sweep * warps + warp) * kGroups + group) * kWarp + lane] = sum;
  }

  // down does a sweep on the rows from v[1] on and leaves them from v[0] on.
  template <int kCare> __device__ __forceinline__ void down(int sweep, Row* v) const {
    const unsigned counts = opaque(this->counts);
    v[0] = above(sweep);
    Real sum = 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
      if (r == R / 2) meet();
      const Row south = r < R - 1 ? v[r < R - 1 ? r + 2 : 0] : below(sweep);
      const Real more = update_squares<kCare>(r, v[r], v[r + 1], south, v[r]);
      sum = count<kCare>(counts, r, r % kGroupRows ? sum : 0, more);
      if (r % kGroupRows == kGroupRows - 1) keep(sweep, r / kGroupRows, sum);
      if (r == 0) edge(sweep + 1, warp, 0) = v[0];
    }
    edge(sweep + 1, warp, 1) = v[R - 1];
  }

  // up does a sweep on the rows from v[0] on and leaves them from v[1] on. It adds squares from top to bottom, as down
  // does.
  template <int kCare> __device__ __forceinline__ void up(int sweep, Row* v) const {
    const unsigned counts = opaque(this->counts);
    v[R] = below(sweep);
    Real more[kGroupRows];
#pragma unroll
    for (int r = R - 1; r >= 0; r--) {
      if (r == R / 2 - 1) meet();
      const Row north = r ? v[r ? r - 1 : 0] : above(sweep);
      more[r % kGroupRows] = update_squares<kCare>(r, north, v[r], v[r + 1], v[r + 1]);
      if (r % kGroupRows == 0) {
        Real sum = 0;
#pragma unroll
        for (int i = 0; i < kGroupRows; i++) sum = count<kCare>(counts, r + i, sum, more[i]);
        keep(sweep, r / kGroupRows, sum);
      }
      if (r == R - 1) edge(sweep + 1, warp, 1) = v[R];
    }
    edge(sweep + 1, warp, 0) = v[1];
  }

  // load takes the warp's rows from now, and those beside them. A row that is not needed is loaded as the nearest that
  // is.
  __device__ __forceinline__ void load(Row* v) const {
    const int first = max(a.rowLo, top - a.sweeps), last = min(a.rowHi, bottom + a.sweeps) - 1;
    const Real* const from = a.now + min(x, a.pitch - W);
    auto take = [&](int r) {
      Row row;
#pragma unroll
      for (int j = 0; j < W; j += kPer16<Real>)
        load16(row.v + j, from + ((min(max(y0 + r, first), last) - a.rowLo) * a.pitch + j));
      return row;
    };
    const Row north = take(-1);
#pragma unroll
    for (int r = 0; r < R; r++) v[r] = take(r);
    const Row south = take(R);
    above(0) = north, below(0) = south;
    if (warp == 0) above(1) = north;  // no warp writes there
    if (warp == warps - 1) below(1) = south;
  }

  // store writes the rows to next (i = -1) and into the neighbours' halos.
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

  // add_up adds the sums of all groups to the words of the sweeps. begin is the tile's first row; rows [lo, hi) count.
  // Each warp takes two sweeps at a time, of at most kMostGroups groups of rows.
  __device__ __forceinline__ void add_up(int begin, int lo, int hi, unsigned long long* words) const {
    const int T = a.sweeps;
    const int first = ((lo & -kGroupRows) - begin) / kGroupRows;
    const int groups = (hi - begin + kGroupRows - 1) / kGroupRows - first;
    const int pairs = (T + 1) / 2, parts = max((groups + kMostGroups - 1) / kMostGroups, warps / pairs);
    auto more = [&](int g) {
      const int y = begin + (first + g) * kGroupRows;
      return (double)surplus<Real>(min(y + kGroupRows, hi) - max(y, lo));
    };
    const double full = (double)surplus<Real>(kGroupRows), moreFirst = more(0), moreLast = more(groups - 1);
#pragma unroll 1
    for (int i = warp; i < pairs * parts; i += warps) {
      const int s = i / parts * 2, part = i % parts, until = (part + 1) * groups / parts, two = min(2, T - s);
      Limbs limbs[2];
      limbs[0].clear(a.bias), limbs[1].clear(a.bias);
      const Real* const of = sums + (s * warps * kGroups + first) * kWarp + lane;
      const int next = (two - 1) * warps * kGroups * kWarp;
#pragma unroll 4
      for (int g = part * groups / parts; g < until; g++) {
        const double less = g == 0 ? moreFirst : g == groups - 1 ? moreLast : full;
        limbs[0].add((double)of[g * kWarp] - less);
        limbs[1].add((double)of[g * kWarp + next] - less);
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
};

// Tile is the place of a block's tile. Tiles side by side begin at column 0, which is fixed, so nothing goes stale
// there, nor at the other end. The tiles of the two outer columns come first.
struct Tile {
  int across, column, step;  // columns of tiles; which one this is; columns of the mesh from one to the next
  int top, bottom;           // rows that it writes

  template <class Real> static __device__ __forceinline__ Tile at(const Pass<Real>& a, int pad) {
    constexpr int W = kGroupColumns;
    Tile t;
    t.step = (kWarp - 2 * pad) * W, t.across = 1 + (max(a.nx - kWarp * W, 0) + t.step - 1) / t.step;
    const int top8 = a.outLo & -kGroupRows, outerRows = a.cut.outerRows, innerRows = a.cut.innerRows;
    const int outer = min(t.across, 2), outers = outer * ((a.outHi - top8 + outerRows - 1) / outerRows);
    const int inner = (int)blockIdx.x - outers;
    t.column = inner < 0 ? blockIdx.x % outer * (t.across - 1) : 1 + inner % (t.across - 2);
    t.top = top8 + (inner < 0 ? blockIdx.x / outer * outerRows : inner / (t.across - 2) * innerRows);
    t.bottom = min(t.top + (inner < 0 ? outerRows : innerRows), a.outHi);
    return t;
  }
};

template <class Real, int R> __device__ __forceinline__ void sweep_held(const Pass<Real>& a) {
  using Held = ::Held<Real, R>;
  constexpr int W = Held::W;
  DYNAMIC_SHARED(shared);
  const int lane = threadIdx.x & 31, warp = __shfl_sync(kAll, threadIdx.x >> 5, 0);
  const int T = a.sweeps, pad = (T + W - 1) / W;  // lanes on each side of a tile whose columns go stale

  const Tile tile = Tile::at(a, pad);
  const int top = tile.top, bottom = tile.bottom;
  const int begin = (top - T) & -kGroupRows, y0 = begin + warp * R, warps = (bottom + T - begin + R - 1) / R;
  if (warp >= warps) return;
  const int x = tile.column * tile.step + lane * W;
  const bool first = tile.column == 0, last = tile.column == tile.across - 1;
  const bool ok = x < a.nx && (lane >= pad || first) && (lane < kWarp - pad || last);
  const int lo = max(top, a.countLo), hi = min(bottom, a.countHi);
  unsigned counts = 0;
  for (int r = 0; r < R; r++) counts |= (unsigned)(y0 + r >= lo && y0 + r < hi) << r;

  auto* const edges = (typename Held::Row*)shared;
  auto* const sums = (Real*)(edges + 2 * (warps + 2) * 2 * kWarp);
  auto* const words = (unsigned long long*)(sums + T * warps * Held::kGroups * kWarp) + warp * kSumWords;
  const Held h = {a, lane, warp, warps, x, y0, ok, max(top, a.outLo), bottom, counts, edges, sums};

  await_halos(a, top, bottom);
  auto inside = [&](int y) { return y >= begin && y < begin + warps * R; };
  if (inside(a.fixTop) || inside(a.fixBottom) || lo % kGroupRows > 1 || (hi + 1) % kGroupRows > 1) h.template run<2>();
  else if (first || last) h.template run<1>();
  else h.template run<0>();
  h.meet();
  if (warp == 0) handed(a, h.top, bottom, tile.across, lane);
  h.add_up(begin, lo, hi, words);
}

KERNEL(kHeld24F32.threads(), 1) held24_f32(const __grid_constant__ Pass<float> a) {
  sweep_held<float, kHeld24F32.rows>(a);
}
KERNEL(kHeld16F32.threads(), 1) held16_f32(const __grid_constant__ Pass<float> a) {
  sweep_held<float, kHeld16F32.rows>(a);
}
KERNEL(kHeld8F64.threads(), 1) held8_f64(const __grid_constant__ Pass<double> a) {
  sweep_held<double, kHeld8F64.rows>(a);
}
