// Up to 16 sweeps a pass (temporal blocking). The warps of a block form pipelines. A pipeline streams down the rows of
// a strip of 32*W columns: each warp does S sweeps on the rows as they pass (deep_levels.cuh) and hands them on through
// a ring in shared memory, so that memory is read once and written once for all sweeps.
//
//   field --copies in the background--> ring 0 -> warp 0 -> ring 1 -> warp 1 -> ... -> last warp -> field
//
// Time skew. All warps work at once, in steps of B rows. In step m, warp w takes rows Y + B*m - (S+B)*w and following:
// S rows later than the warp before, because S sweeps hold rows back by S, and B more, because it takes what was given
// in the step before. With S = 2 and B = 2:
//
//            warp 0 takes   gives     warp 1 takes   gives     warp 2 takes
//   step 4   Y+8  Y+9       Y+6 Y+7   Y+4  Y+5       Y+2 Y+3   Y    Y+1
//   step 5   Y+10 Y+11      Y+8 Y+9   Y+6  Y+7       Y+4 Y+5   Y+2  Y+3
//
// Invariants:
//   - A ring between two warps has 2*B slots: those given in this step, and those taken in it, which were given in the
//     step before.
//   - A warp begins a step when both its neighbours have finished the step before. They meet at barriers of their own,
//     so that a slow step of one warp does not hold up all.
//   - To make rows [top, bottom) of sweep T, a warp that does sweeps b+1 and following needs rows
//     [top-(T-b), bottom+(T-b)) of sweep b. It also takes rows outside of these, to keep step; what they hold does not
//     matter.
//   - Rows are taken in groups of 8, aligned in the mesh, so that a group of the norm ends at a place known to the
//     compiler. The delay (S+B)*w is a multiple of 8 plus a rest: the multiple shifts a warp's first row, and the rest
//     is waited for once, before the first row of all.
//
// Columns beside another strip and the outer rows of a part go stale on the way: strips and parts overlap. There are
// as many pipelines as the GPU holds, and each does an equal share of all strips (shares.cuh). A share may end one
// strip and begin the next: the rows of the next part follow those of the last without a gap, and the rows that mix are
// not needed by either. Pipelines of one block advance evenly; pipelines of several blocks on a multiprocessor do not,
// and some would end early.
//
// Registers are scarce: the plain loop of sweep_f32 just fits into 80 of them, 24 warps a multiprocessor, and spilling
// costs a fifth of the speed. After a change, look at the compiler's report, for LDL in the loop, and for BRA.DIV:
// where the compiler cannot see that a warp stays together, it spills. Loops are unrolled over U rows, so that slots
// and ends of groups have fixed places and rows need not move between registers.
#pragma once
#include "deep_fetch.cuh"
#include "deep_part.cuh"
#include "deep_ring.cuh"
#include "exchange.cuh"

// Pipeline is what one warp does: N sweeps, which is S unless it is the last warp and fewer are left.
template <class Arg, int W, int S, int B, int U, int N, Squares kSquares> struct Pipeline {
  static_assert(S % B == 0 && U % (2 * B) == 0 && kGroupRows % U == 0 && S <= U, "fixed places of slots and barriers");
  using Real = typename Arg::Real;
  using Slot = ::Slot<Real, W>;
  using Rings = ::Rings<Real, W, B>;
  static constexpr int kWorth = 4 * kGroupRows;  // rows without fixed points for which the plain loop is worth a look
  static constexpr int kNowhere = -(1 << 29);
  using Levels = ::Levels<Arg, W, N, kSquares>;
  static constexpr bool kCounts = kSquares != Squares::none;
  // rows between two drains
  static constexpr int kDrain = kCounts ? kMostGroups / Levels::kGroups * kGroupRows : 1 << 28;

  static __device__ __forceinline__ int delay(int warp) { return (S + B) * warp; }
  static __device__ __forceinline__ int delayGroups(int warp) { return delay(warp) & -kGroupRows; }  // in rows

  // stop returns the row below which the first warp takes rows of a part, whose first it takes is y. All warps take
  // equally many. The last one needs rows below bottom+S. The first one needs rows below bottom+S*warps, and a group in
  // which it begins to fetch the next part.
  static __device__ __forceinline__ int stop(const Place& at, int y, int bottom) {
    const int rows = max(bottom + S + delayGroups(at.warps - 1), bottom + S * at.warps + kGroupRows) - y;
    return y + kGroupRows * ((rows + kGroupRows - 1) / kGroupRows);
  }

  // run does a warp's part of a pass. The shared memory of its pipeline begins at `shared`.
  static __device__ __forceinline__ void run(const Arg& a, Part& p, char* shared, const Place& at) {
    const bool first = at.first(), last = at.last();
    const int lane = at.lane, T = a.sweeps, base = S * at.warp;
    const unsigned pitch = a.pitch;
    const Strips<W> strips(T, lane);
    const Rings rings(shared, at);
    const Neighbours neighbours(at);
    char* const ring = shared + Rings::template bytes<S>(at.warps);  // of the source
    char* const ringEnd = ring + sourceSlots<Arg>(at.warps, S, B, Fetch<Arg, W, B>::kRows) * Slot::kBytes;
    Fetch<Arg, W, B> fetch(a, shared, lane);
    Beside<Arg, W> beside(ring, ringEnd, delayGroups(at.warp));
    auto step = [&](int y, int k) {  // begins the step that takes rows from y+k on
      neighbours.meet();
      if (first) fetch.ahead(y + k, k, beside);
    };

    auto* const words = Rings::template words<S>(shared, at.warps) + base;
    Levels levels;
    levels.clear(a.bias);
#pragma unroll
    for (int s = 0; s < N; s++)
      if (Levels::counts(s) && lane < kSumWords) words[s][lane] = 0;
    __syncwarp();

    const int top8 = a.outLo & -kGroupRows;
    const Shares shares = {strips.count(a.nx), (a.outHi - top8 + kGroupRows - 1) / kGroupRows, a.cut.seam, a.cut.edge};
    auto row = [&](int strip, int position) { return top8 + kGroupRows * shares.group(strip, position); };
    {
      const int share = blockIdx.x * at.pipes + at.pipe, all = gridDim.x * at.pipes;
      const int begin = shares.of(share, all);
      p.end = shares.of(share + 1, all);
      p.strip = shares.at(begin);
      p.top = row(p.strip, begin);
      p.bottom = row(p.strip, p.end);
    }

    const int wait = delay(at.warp) % kGroupRows;
    for (int i = 0; i < wait; i += B) neighbours.meet();
    if (first && p.top < p.bottom) {
      await_halos(a, p.top, p.bottom);
      fetch.begin(strips.x(p.strip), (p.top - T) & -kGroupRows, beside);
    }
#pragma unroll 1
    while (p.top < p.bottom) {
      const int x = strips.x(p.strip);
      const bool ok = strips.right(x, a.nx);
      const int writeLo = max(p.top, a.outLo), writes = ok ? min(p.bottom, a.outHi) - writeLo : 0;
      Counted counted = {kNowhere, kNowhere};
      if (kCounts) counted = {max(p.top, a.countLo), min(p.bottom, a.countHi)};
      const int x0 = x - W * lane;
      bool inner;  // no fixed column; with terms no mirror of a column
      if constexpr (Arg::kTerms) inner = x0 > a.terms.left && x0 + kWarp * W <= a.terms.right;
      else inner = x0 > 0 && x0 + kWarp * W < a.nx;

      int y = (p.top - T) & -kGroupRows;
      p.stop = stop(at, y, p.bottom) - delayGroups(at.warp);
      y -= delayGroups(at.warp);
      p.needLo = p.top - T + base, p.needHi = p.bottom + S * at.warps - base;
      p.drainAt = y + kDrain;
      Real* to = a.next + x + (y - N - a.rowLo) * (ptrdiff_t)a.pitch;  // where the last warp writes
      bool hands = false;

      // take takes row y+begin+k, the k-th of a turn of the loop that begins with row y+begin.
      auto take = [&](int y, int begin, int k, bool counts, auto tag) {
        constexpr Care kCare = decltype(tag)::value;
        if (k % B == 0) step(y, begin + k);
        Row<Real, W> v = Slot::take(rings.in(begin, k), lane);
        v = levels.template advance<kCare>(a, v, x, y, begin + k, counts, counted, beside, lane);
        const int row = y + begin + k - N;
        if (!last) return Slot::give(rings.out(k - N), lane, v);
        if ((unsigned)(row - writeLo) < (unsigned)writes) {
          store_row(to, v);
          if (kCare >= Care::sides && hands) hand_on(a, row, to, v);
        }
        to += pitch;
      };
      auto group = [&](int y, bool counts, auto tag) {
#pragma unroll 1
        for (int begin = 0; begin < kGroupRows; begin += U)
#pragma unroll
          for (int k = 0; k < U; k++) take(y, begin, k, counts, tag);
      };

      while (y < p.stop) {
        if (y >= p.drainAt) {
          levels.drain(a.bias, words, ok, lane);
          p.drainAt = y + kDrain;
        }
        if (y + kGroupRows <= p.needLo || y >= p.needHi) {
          int from = y;
          const int nextBottom = row(p.strip + 1, p.end);
          if (first && y + kGroupRows == p.stop && nextBottom > top8) {
            from = ((top8 - T) & -kGroupRows) - kGroupRows;
            await_halos(a, top8, nextBottom);
            fetch.aim(strips.x(p.strip + 1), from + fetch.kRows);
          }
#pragma unroll 1
          for (int k = 0; k < kGroupRows; k += B) step(from, k);
          y += kGroupRows;
          beside.move();
          to += kGroupRows * (ptrdiff_t)pitch;
          continue;
        }
        const Group g = Group::at<N>(a, p, counted, y, last);
        hands = g.hands;
        const bool counts = g.counts;
        bool plain = inner && !g.hands && !g.partly;
        int until = g.until;
        int care = kNowhere;  // with terms: the next row with fixed points, if they are all that needs care
        if constexpr (Arg::kTerms) {
          if (plain && y <= until) {
            care = FixedPoints<Real, W>(a, x).busy(y - kGroupRows);
            if (care >= y + kWorth) until = min(until, care - kGroupRows);
            else plain = false;
          }
        }
        if (until < y) {
          if constexpr (Arg::kTerms) beside.look(FixedPoints<Real, W>(a, x), y);
#pragma unroll 1
          for (int k = 0; k < kGroupRows; k++) take(y, 0, k, counts, Tag<Care::ends>());
          y += kGroupRows;
          beside.move();
        } else if (plain) {
#pragma unroll 1
          for (; y <= until; y += kGroupRows, beside.move()) group(y, counts, Tag<Care::plain>());
        } else if constexpr (Arg::kTerms) {
          const FixedPoints<Real, W> points(a, x);
          auto next = [&] { y += kGroupRows, beside.move(), beside.turn(); };
          beside.look(points, y);
          if (care == kNowhere)
#pragma unroll 1
            for (; y <= until; next()) beside.ahead(points, y), group(y, counts, Tag<Care::sides>());
          else
#pragma unroll 1
            do beside.ahead(points, y), group(y, counts, Tag<Care::points>()), next();
            while (y <= until && (y <= care || !beside.none()));
        } else {
#pragma unroll 1
          for (; y <= until; y += kGroupRows) group(y, counts, Tag<Care::sides>());
        }
      }
      levels.drain(a.bias, words, ok, lane);
      if (last) handed(a, p.top, min(p.bottom, a.outHi), shares.strips, lane);
      p.strip++, p.top = top8, p.bottom = row(p.strip, p.end);
    }
    for (int i = wait; i < kGroupRows; i += B) neighbours.meet();
#pragma unroll
    for (int s = 0; s < N; s++)
      if (Levels::counts(s)) flush(words[s], a.sums + (base + s) * kSumWords, lane);
  }
};

template <class Arg, int W, int S, int B, int U> __device__ __forceinline__ void sweep_deep(const Arg& a) {
  using Real = typename Arg::Real;
  DYNAMIC_SHARED(shared);
  const int warps = (a.sweeps + S - 1) / S, pipes = blockDim.x / kWarp / warps;
  const int all = __shfl_sync(kAll, threadIdx.x / kWarp, 0);  // the shuffle tells the compiler that a warp agrees on it
  // The first and the last warp have more to do, and each scheduler has every fourth warp of a block: so pipelines
  // begin with different warps.
  const int pipe = all / warps, warp = (all + pipe) % warps;
  const Place at = {(int)(threadIdx.x % kWarp), warp, warps, pipe, pipes};
  const int slots = sourceSlots<Arg>(warps, S, B, Fetch<Arg, W, B>::kRows);
  const int bytes = Rings<Real, W, B>::template bytes<S>(warps) + slots * Slot<Real, W>::kBytes;
  char* const own = shared + pipe * bytes;
  Part part;
  if constexpr (Arg::kBare) {  // of a multiple of S sweeps
    if (at.last() && a.countLo < a.countHi) Pipeline<Arg, W, S, B, U, S, Squares::last>::run(a, part, own, at);
    else Pipeline<Arg, W, S, B, U, S, Squares::none>::run(a, part, own, at);
  } else {
    const int levels = min(S, a.sweeps - S * warp);
    if (levels == S) Pipeline<Arg, W, S, B, U, S, Squares::all>::run(a, part, own, at);
    else if (S > 2 && levels == 2) Pipeline<Arg, W, S, B, U, (S > 2 ? 2 : 1), Squares::all>::run(a, part, own, at);
    else if (S > 3 && levels == 3) Pipeline<Arg, W, S, B, U, (S > 3 ? 3 : 1), Squares::all>::run(a, part, own, at);
    else Pipeline<Arg, W, S, B, U, 1, Squares::all>::run(a, part, own, at);
  }
}

#define SWEEP(name, Arg, shape)                                              \
  KERNEL(shape.threads(), 1) name(const __grid_constant__ Arg a) {           \
    sweep_deep<Arg, shape.columns, shape.levels, shape.step, shape.loop>(a); \
  }
#ifndef TERMS
SWEEP(sweep_f32, Pass<float>, kSweepF32)
SWEEP(sweep_f64, Pass<double>, kSweepF64)
SWEEP(deep_f64, Pass<double>, kDeepF64)
SWEEP(bare_f32, BarePass<float>, kBareF32)
SWEEP(bare_f64, BarePass<double>, kBareF64)
#endif
