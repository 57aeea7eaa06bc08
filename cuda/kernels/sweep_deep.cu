// Up to 16 sweeps a pass (temporal blocking). Warps are a pipeline over a strip of 32*W columns, down whose rows it streams: each warp does
// S sweeps on rows as they pass and hands them on through shared memory, so that memory is read and written once for all sweeps.
//
//   field --cp.async--> ring 0 -> warp 0 -> ring 1 -> warp 1 -> ... -> warp n-1 -> field
//
// A warp keeps, for each of its sweeps, the last two rows in registers (W columns a lane; columns of the neighbouring
// lanes come by shuffle) and makes a new row of the next level from them and the row that comes in. The outer
// `sweeps` columns and rows of what a pipeline goes over go stale on the way: strips, and shares of a strip, overlap by as much.
//
// There are as many pipelines as the GPU holds, several in a block, and each does an equal share of all strips (shares.cuh). A share may end one
// strip and begin the next: rows of the next one follow those of the last without a gap, and what mixes goes stale anyway.
// Pipelines of one block advance evenly; of several blocks on a multiprocessor, some would be done long before the others.
//
// Rows are handed on in steps of B. In step m, warp w takes rows Y + B*m - (S+B)*w and following, so what it takes was given
// in the step before. A step begins when the warps before and behind have done the last one: they meet at barriers of
// their own, so that a slow step of one warp does not hold up all. Loops are unrolled over U rows, so that a group of 8 rows
// ends, and a ring's slot lies, at a place known to the compiler; registers then need few moves from row to row.
//
// The plain loop just fits into 80 registers a thread, 24 warps a multiprocessor: a change that makes it spill costs a fifth of the speed.
// Look at the compiler's report, for LDL in the loop, and for BRA.DIV: where the compiler cannot see that a warp stays together, it spills.
#include "exchange.cu"
#include "shares.cuh"
#include "sum.cuh"

// A row in shared memory: 16-byte part p of lane l's columns is the (32*p + l)-th, so that a warp meets all banks.
template <class Real, int W> struct Slot {
  static constexpr int kParts = W / kPer16<Real>;
  static constexpr int kBytes = kParts * 512;
  static __device__ __forceinline__ char* part(char* slot, int p, int lane) { return slot + (32 * p + lane) * 16; }
  static __device__ __forceinline__ Row<Real, W> take(char* slot, int lane) {
    Row<Real, W> r;
#pragma unroll
    for (int p = 0; p < kParts; p++) load16(r.v + p * kPer16<Real>, (const Real*)part(slot, p, lane));
    return r;
  }
  static __device__ __forceinline__ void give(char* slot, int lane, const Row<Real, W>& r) {
#pragma unroll
    for (int p = 0; p < kParts; p++) store16((Real*)part(slot, p, lane), r.v + p * kPer16<Real>);
  }
};

// The barriers at which the warps of a pipeline meet their neighbours: each of an even number has one with the two behind it. One for each two
// neighbours would be more than the 16 that a block has. PAIRS makes it one for each two, for one pipeline a block: less order, of which
// racecheck can tell whether it is enough; of three warps at a barrier it cannot (../bench/sanitize.sh).
struct Neighbours {
#ifdef PAIRS
  static constexpr int kBefore = 64;
#else
  static constexpr int kBefore = 96;
#endif
  int behind, before, count;  // barriers, and the threads of the first; 0: none

  __device__ __forceinline__ Neighbours(int pipe, int warp, int warps) {
#ifdef PAIRS
    before = warp;
    behind = warp < warps - 1 ? warp + 1 : 0;
    count = 64;
#else
    const int base = 1 + pipe * (warps / 2);
    before = warp & 1 || warp == 0 ? 0 : base + warp / 2 - 1;
    behind = warp < warps - 1 || warp & 1 ? base + warp / 2 : 0;
    count = 32 * min(3, warps - (warp & ~1));
#endif
  }
  __device__ __forceinline__ void meet() const {
    if (before) ::meet<kBefore>(before);
    if (behind) ::meet(behind, count);
  }
};

// What a warp has to know of the part of a strip that it goes over.
struct Part {
  int strip, top, bottom, end;
  int stop, needLo, needHi, drainAt;
};

// Pipeline is what one warp does: Levels sweeps, S of them unless it is the last warp and fewer are left. Its loop holds U rows.
template <class Real, int W, int S, int B, int U, int Levels> struct Pipeline {
  static_assert(S % B == 0 && U % (2 * B) == 0 && kGroup % U == 0 && S <= U, "slots, barriers and ends of groups have fixed places");
  using Slot = ::Slot<Real, W>;
  static constexpr int kGroups = W / 4;          // groups side by side in a lane
  static constexpr int kFirst = kGroup;          // slots of ring 0
  static constexpr int kRing = 2 * B;            // slots of the others
  static constexpr int kAhead = kFirst / B - 1;  // steps from fetch to use
  static constexpr int kDrain = kMostGroups / kGroups * kGroup;  // rows after which the sums must be drained

  // Care is what a row needs beyond the plain update: 1 heeds fixed columns, hands on, and ends groups that are counted in part, 2 also heeds
  // fixed rows, and rows that do not count though others of their group do.
  template <int N> struct Care { static constexpr int value = N; };

  // Of warp `warp` of pipeline `pipe`, whose shared memory begins at `shared`.
  static __device__ __forceinline__ void run(const Pass<Real>& a, Part& p, char* shared, int lane, int warp, int warps, int pipe, int pipes) {
    const bool first = warp == 0, last = warp == warps - 1;
    const int T = a.sweeps;
    const int pad = (T + W - 1) / W;  // lanes on each side of a strip whose columns go stale: for reading alone
    const int base = S * warp;        // sweeps of the warps before
    auto delay = [](int w) { return (S + B) * w; };
    auto firstColumn = [&](int strip) { return (strip * (32 - 2 * pad) - pad + lane) * W; };  // of this lane

    // Ring 0 has as many slots as a group has rows, which is more than the others have.
    char* const in = first ? shared : shared + (kFirst + (warp - 1) * kRing) * Slot::kBytes;
    char* const out = shared + (kFirst + warp * kRing) * Slot::kBytes;
    const int round = first ? kRing * Slot::kBytes : 0;
    auto slot = [&](int k) { return in + k % kRing * Slot::kBytes + k / kRing * round; };

    // Each lane fetches the columns that it will take. Rows that the field does not have are fetched as the nearest it has.
    const unsigned pitch = a.pitch, moves = a.rowHi - 1 - a.rowLo;
    const Real* from;
    auto aim = [&](int strip, int y) {
      from = a.now + min(max(firstColumn(strip), 0), a.pitch - W) + (min(max(y, a.rowLo), a.rowHi - 1) - a.rowLo) * (ptrdiff_t)pitch;
    };
    auto fetch = [&](int y, int k) {
#pragma unroll
      for (int p = 0; p < Slot::kParts; p++) copy16_async(Slot::part(shared + k * Slot::kBytes, p, lane), from + p * kPer16<Real>);
      from += (unsigned)(y - a.rowLo) < moves ? pitch : 0;
    };
    const Neighbours neighbours(pipe, warp, warps);
    auto fetchAhead = [&](int y, int k) {
      if (!first) return;
      copies_wait<kAhead - 1>();
#pragma unroll
      for (int i = 0; i < B; i++) fetch(y + kAhead * B + i, (k + kAhead * B + i) % kFirst);
      copies_commit();
    };
    unsigned long long(*const words)[kSumWords] = (unsigned long long(*)[kSumWords])(shared + (kFirst + (warps - 1) * kRing) * Slot::kBytes) + base;
    Limbs sum[Levels];
    Row<Real, W> north[Levels], centre[Levels];
    Real acc[Levels][kGroups];
#pragma unroll
    for (int s = 0; s < Levels; s++) {
      north[s] = centre[s] = {};
      sum[s].clear(a.bias);
      if (lane < kSumWords) words[s][lane] = 0;
#pragma unroll
      for (int g = 0; g < kGroups; g++) acc[s][g] = 0;
    }
    __syncwarp();

    const int top8 = a.outLo & -kGroup;
    const Shares shares = {(a.nx + (32 - 2 * pad) * W - 1) / ((32 - 2 * pad) * W), (a.outHi - top8 + kGroup - 1) / kGroup, a.seam, a.edge};
    auto row = [&](int strip, int position) { return top8 + kGroup * shares.group(strip, position); };
    {
      const int slot = blockIdx.x * pipes + pipe, slots = gridDim.x * pipes;
      const int begin = shares.of(slot, slots);
      p.end = shares.of(slot + 1, slots);
      p.strip = shares.at(begin);
      p.top = row(p.strip, begin);
      p.bottom = row(p.strip, p.end);
    }

    // The warps' delays differ by a part of a group: those ahead in their group wait before the first one, the others after the last one.
    const int wait = delay(warp) % kGroup;
    for (int i = 0; i < wait; i += B) neighbours.meet();
    if (first && p.top < p.bottom) {
      const int y = (p.top - T) & -kGroup;
      await_halos(a, p.top, p.bottom);
      aim(p.strip, y);
#pragma unroll
      for (int k = 0; k < kAhead * B; k++) {
        fetch(y + k, k);
        if (k % B == B - 1) copies_commit();
      }
    }
#pragma unroll 1
    while (p.top < p.bottom) {
      const int x = firstColumn(p.strip);
      const bool ok = lane >= pad && lane < 32 - pad && x < a.nx;
      const int writeLo = max(p.top, a.outLo), writes = ok ? min(p.bottom, a.outHi) - writeLo : 0;
      const int countLo = max(p.top, a.countLo), countHi = min(p.bottom, a.countHi);

      // The rows that this warp takes: [y, p.stop), of which it needs [p.needLo, p.needHi). Warp 0 needs none of the last group, in which it
      // begins to fetch those of the next part.
      int y = (p.top - T) & -kGroup;
      p.stop = y + kGroup * ((max(p.bottom + S + (delay(warps - 1) & -kGroup), p.bottom + S * warps + kGroup) - y + kGroup - 1) / kGroup) - (delay(warp) & -kGroup);
      y -= delay(warp) & -kGroup;
      p.needLo = p.top - T + base, p.needHi = p.bottom + S * warps - base;

      const int x0 = x - W * lane;
      const bool inner = x0 > 0 && x0 + 32 * W < a.nx;  // no fixed column

      Real* to = a.next + x + (y - Levels - a.rowLo) * (ptrdiff_t)pitch;  // where the last warp writes
      p.drainAt = y + kDrain;

      auto drain = [&]() {
#pragma unroll
        for (int s = 0; s < Levels; s++) sum[s].drain(a.bias, words[s], ok, lane), sum[s].clear(a.bias);
      };

      bool hands = false;  // rows that come out of this group may have to be handed on

      // take does the warp's levels as row y+begin+k comes in, the k-th of a turn of the loop that begins in row `begin` of the
      // group from y on. `counts`: the group that ends with row y-1 does.
      auto take = [&](int y, int begin, int k, bool counts, auto care) {
        constexpr int kCare = decltype(care)::value;
        if (k % B == 0) neighbours.meet(), fetchAhead(y + begin + k, begin + k);
        Row<Real, W> v = Slot::take(slot(k) + begin / kRing * round, lane);
#pragma unroll
        for (int s = 0; s < Levels; s++) {
          const Row<Real, W> c = centre[s];
          const Real west = __shfl_up_sync(kAll, c.v[W - 1], 1), east = __shfl_down_sync(kAll, c.v[0], 1);
          Row<Real, W> o = around(north[s], c, v, west, east), d;
          const int row = y + begin + k - s - 1;
          const bool fixed = kCare == 2 && (row == a.fixTop || row == a.fixBottom);
#pragma unroll
          for (int j = 0; j < W; j++) {
            o.v[j] *= Real(0.25);
            if (kCare && (fixed || x + j <= 0 || x + j >= a.nx - 1)) o.v[j] = c.v[j];
            d.v[j] = o.v[j] - c.v[j];
          }
          if (kCare < 2 || (row >= countLo && row < countHi)) {
#pragma unroll
            for (int g = 0; g < kGroups; g++) acc[s][g] += squares(d.v + 4 * g, kSmallest<Real>);
          }
          if (k == s && begin == 0) {  // row y-1 ends a group
            const double more = surplus<Real>(kCare ? min(y, countHi) - max(y - kGroup, countLo) : kGroup);
#pragma unroll
            for (int g = 0; g < kGroups; g++) {
              sum[s].add(counts ? (double)acc[s][g] - more : 0);
              acc[s][g] = 0;
            }
          }
          north[s] = c;
          centre[s] = v;
          v = o;
        }
        const int row = y + begin + k - Levels;
        if (!last) {
          Slot::give(out + ((k - Levels) & (kRing - 1)) * Slot::kBytes, lane, v);
        } else {
          if ((unsigned)(row - writeLo) < (unsigned)writes) {
            store_row(to, v);
            if (kCare && hands) hand_on(a, row, to, v);
          }
          to += pitch;
        }
      };
      auto group = [&](int y, bool counts, auto care) {
#pragma unroll 1
        for (int begin = 0; begin < kGroup; begin += U)
#pragma unroll
          for (int k = 0; k < U; k++) take(y, begin, k, counts, care);
      };

      while (y < p.stop) {
        if (y >= p.drainAt) {
          drain();
          p.drainAt = y + kDrain;
        }
        const bool counts = y > countLo && y < countHi + kGroup;  // the group that ends with row y-1
        hands = last && (y < a.outLo + a.depth + Levels || y + kGroup > a.outHi - a.depth + Levels);
        if (y + kGroup <= p.needLo || y >= p.needHi) {
          int from = y;
          if (first && y + kGroup == p.stop && row(p.strip + 1, p.end) > top8) {
            from = ((top8 - T) & -kGroup) - kGroup;
            await_halos(a, top8, row(p.strip + 1, p.end));
            aim(p.strip + 1, from + kAhead * B);
          }
#pragma unroll 1
          for (int k = 0; k < kGroup; k += B) neighbours.meet(), fetchAhead(from + k, k);
          y += kGroup;
          to += kGroup * (ptrdiff_t)pitch;
          continue;
        }
        // The last group up to which things stay as they are, before y if this one needs care.
        int until = min(p.drainAt - kGroup, p.needHi - 1);
        if (y < countHi + kGroup) until = min(until, counts ? countHi + kGroup - 1 : countLo);
        if (last) until = min(until, hands ? y : a.outHi - a.depth + Levels - kGroup);
        auto heed = [&](int lo, int hi) {  // taking rows lo to hi needs care
          if (hi >= y) until = min(until, lo - kGroup);
        };
        heed(a.fixTop + 1, a.fixTop + Levels), heed(a.fixBottom + 1, a.fixBottom + Levels);
        if (countLo % kGroup) heed((countLo & -kGroup) + 1, countLo - 1 + Levels);
        if (countHi % kGroup) heed(countHi + 1, (countHi & -kGroup) + kGroup + Levels - 1);
        const bool partly = countLo % kGroup && y == (countLo & -kGroup) + kGroup;  // the group that ends with row y-1 counts in part
        if (partly) until = min(until, y);
        if (until < y) {
#pragma unroll 1
          for (int k = 0; k < kGroup; k++) take(y, 0, k, counts, Care<2>());
          y += kGroup;
        } else if (inner && !hands && !partly) {
#pragma unroll 1
          for (; y <= until; y += kGroup) group(y, counts, Care<0>());
        } else {
#pragma unroll 1
          for (; y <= until; y += kGroup) group(y, counts, Care<1>());
        }
      }
      drain();
      if (last) handed(a, p.top, min(p.bottom, a.outHi), shares.strips, lane);
      p.strip++, p.top = top8, p.bottom = row(p.strip, p.end);
    }
    for (int i = wait; i < kGroup; i += B) neighbours.meet();
#pragma unroll
    for (int s = 0; s < Levels; s++) flush(words[s], a.sums + (base + s) * kSumWords, lane);
  }
};

template <class Real, int W, int S, int B, int U> __device__ __forceinline__ void sweep_deep(const Pass<Real>& a) {
  DYNAMIC_SHARED(shared);
  const int lane = threadIdx.x & 31, warps = (a.sweeps + S - 1) / S, pipes = (blockDim.x >> 5) / warps;
  const int all = __shfl_sync(kAll, threadIdx.x >> 5, 0);  // by shuffle: the compiler then knows that a warp agrees on it
  const int pipe = all / warps, warp = (all + pipe) % warps;  // in turn, for the first and the last have more to do, and each scheduler has every fourth
  char* const own = shared + pipe * Slot<Real, W>::kBytes * (kGroup + 2 * B * (warps - 1)) + pipe * S * warps * kSumWords * 8;
  Part part;
  const int levels = min(S, a.sweeps - S * warp);
  if (levels == S) Pipeline<Real, W, S, B, U, S>::run(a, part, own, lane, warp, warps, pipe, pipes);
  else if (S > 2 && levels == 2) Pipeline<Real, W, S, B, U, (S > 2 ? 2 : 1)>::run(a, part, own, lane, warp, warps, pipe, pipes);
  else if (S > 3 && levels == 3) Pipeline<Real, W, S, B, U, (S > 3 ? 3 : 1)>::run(a, part, own, lane, warp, warps, pipe, pipes);
  else Pipeline<Real, W, S, B, U, 1>::run(a, part, own, lane, warp, warps, pipe, pipes);
}

// Columns a lane, sweeps a warp, rows a step and rows a loop; the first three are the same in ../shares.go. A block has at most
// as many warps as its bound says.
#ifndef SHAPE_F32  // bench/gpu/variants.sh tries others
#define SHAPE_F32 8, 2, 2, 8
#define BOUND_F32 768, 1
#define SHAPE_F64 4, 2, 2, 8
#define BOUND_F64 640, 1
#endif
extern "C" __global__ void __launch_bounds__(BOUND_F32) sweep_f32(const __grid_constant__ Pass<float> a) { sweep_deep<float, SHAPE_F32>(a); }
extern "C" __global__ void __launch_bounds__(BOUND_F64) sweep_f64(const __grid_constant__ Pass<double> a) { sweep_deep<double, SHAPE_F64>(a); }
// For more than 8 sweeps of float64.
extern "C" __global__ void __launch_bounds__(384, 1) deep_f64(const __grid_constant__ Pass<double> a) { sweep_deep<double, 4, 4, 4, 8>(a); }
