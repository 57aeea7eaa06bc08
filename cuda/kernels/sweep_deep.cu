// Up to 16 sweeps a pass (temporal blocking). A block owns a strip of 32*W columns and streams down the rows of a
// tile; its warps are a pipeline: each does S sweeps on rows as they pass and hands them on through shared memory, so
// that memory is read and written once for all sweeps.
//
//   field --cp.async--> ring 0 -> warp 0 -> ring 1 -> warp 1 -> ... -> warp n-1 -> field
//
// A warp keeps, for each of its sweeps, the last two rows in registers (W columns a lane; columns of the neighbouring
// lanes come by shuffle) and makes a new row of the next level from them and the row that comes in. The outer
// `sweeps` columns and rows of strip and tile go stale on the way: strips and tiles overlap by as much.
//
// Rows are handed on in steps of B. In step m, warp w takes rows Y + B*m - (S+B)*w and following, so what it takes was given
// in the step before. A step begins when the warps before and behind have done the last one: they meet at a barrier of
// their own, so that a slow step of one warp does not hold up all. Loops are unrolled over U rows, so that a group of 8 rows
// ends, and a ring's slot lies, at a place known to the compiler; registers then need few moves from row to row.
//
// The plain loop just fits into 80 registers a thread, three blocks of 256 threads a multiprocessor: a change that
// makes it spill costs a fifth of the speed. Look at the compiler's report and for LDL in the loop.
#include "exchange.cu"
#include "sum.cuh"

__device__ __forceinline__ void copy16_async(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void copies_wait() {  // until at most N commits are under way
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

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

// Two neighbouring warps meet: warp and the one behind it.
__device__ __forceinline__ void meet(int warp) { asm volatile("bar.sync %0, 64;" ::"r"(1 + warp) : "memory"); }

// The lanes on each side of a strip whose columns go stale in so many sweeps, and the strip's first column.
template <int W> __device__ __forceinline__ int stale(int sweeps) { return (sweeps + W - 1) / W; }
template <int W> __device__ __forceinline__ int strip(int sweeps) { return ((int)blockIdx.x * (32 - 2 * stale<W>(sweeps)) - stale<W>(sweeps)) * W; }

// Where a lane's limbs are from one group to the next: in registers, or in shared memory, which leaves registers to the rest.
enum class Keep { registers, shared };

// Pipeline is what one warp does: Levels sweeps, S of them unless it is the last warp and fewer are left. Its loop holds U rows.
template <class Real, int W, int S, int B, int U, Keep kKeep, int Levels> struct Pipeline {
  static_assert(S % B == 0 && U % (2 * B) == 0 && kGroup % U == 0 && S <= U, "slots, barriers and ends of groups have fixed places");
  using Slot = ::Slot<Real, W>;
  static constexpr int kGroups = W / 4;          // groups side by side in a lane
  static constexpr int kFirst = kGroup;          // slots of ring 0
  static constexpr int kRing = 2 * B;            // slots of the others
  static constexpr int kAhead = kFirst / B - 1;  // steps from fetch to use
  static constexpr int kDrain = kMostGroups / kGroups * kGroup;  // rows after which the sums must be drained

  // Care is what a row needs beyond the plain update: 1 heeds fixed columns, 2 also fixed rows and rows that do not count.
  template <int N> struct Care { static constexpr int value = N; };

  // Of the tile of rows [top, bottom).
  static __device__ __forceinline__ void run(const Pass<Real>& a, char* shared, int top, int bottom, int lane, int warp, int warps) {
    const bool first = warp == 0, last = warp == warps - 1;
    const int T = a.sweeps;

    // The strip: W columns a lane from x on; those of the outer `pad` lanes on both sides are for reading alone.
    const int pad = stale<W>(T), x0 = strip<W>(T);
    const int x = x0 + W * lane;
    const bool ok = lane >= pad && lane < 32 - pad && x < a.nx;
    const bool inner = x0 > 0 && x0 + 32 * W < a.nx;

    // Which rows of the tile are written and counted.
    const int bottom8 = (bottom + kGroup - 1) & -kGroup;
    const int writeLo = max(top, a.outLo);
    const int countLo = max(top, a.countLo), countHi = min(bottom, a.countHi);

    // The rows that this warp takes: [y0, y0 + 8n), of which it needs [needLo, needHi).
    const int Y = (top - T) & -kGroup;
    auto delay = [](int w) { return (S + B) * w; };
    const int y0 = Y - (delay(warp) & -kGroup);
    const int n = (max(bottom8 + S + (delay(warps - 1) & -kGroup), bottom8 + S * warps) - Y + kGroup - 1) >> 3;
    const int base = S * warp;  // sweeps of the warps before
    const int needLo = top - T + base, needHi = bottom8 + S * warps - base;

    // Taking rows [plainLo, plainHi) concerns neither a fixed row nor a group that is counted in part.
    int plainLo = a.fixTop + Levels + 1, plainHi = a.fixBottom + 1;
    if (countLo % kGroup) plainLo = max(plainLo, (countLo & -kGroup) + kGroup + Levels);
    if (countHi % kGroup) plainHi = min(plainHi, (countHi & -kGroup) + 1);

    // Ring 0 has as many slots as a group has rows, which is more than the others have.
    char* const in = first ? shared : shared + (kFirst + (warp - 1) * kRing) * Slot::kBytes;
    char* const out = shared + (kFirst + warp * kRing) * Slot::kBytes;
    const int round = first ? kRing * Slot::kBytes : 0;
    auto slot = [&](int k) { return in + k % kRing * Slot::kBytes + k / kRing * round; };

    // Each lane fetches the columns that it will take. Rows that the field does not have are fetched as the nearest it has.
    const unsigned pitch = a.pitch, moves = a.rowHi - 1 - a.rowLo;
    const Real* from = a.now + min(max(x, 0), a.pitch - W) + (min(max(y0, a.rowLo), a.rowHi - 1) - a.rowLo) * (ptrdiff_t)pitch;
    auto fetch = [&](int y, int k) {
#pragma unroll
      for (int p = 0; p < Slot::kParts; p++) copy16_async(Slot::part(shared + k * Slot::kBytes, p, lane), from + p * kPer16<Real>);
      from += (unsigned)(y - a.rowLo) < moves ? pitch : 0;
    };
    if (first) {
#pragma unroll
      for (int k = 0; k < kAhead * B; k++) {
        fetch(y0 + k, k);
        if (k % B == B - 1) copies_commit();
      }
    }
    auto step = [&]() {
      if (!first) meet(warp - 1);
      if (!last) meet(warp);
    };
    auto fetchAhead = [&](int y, int k) {
      if (!first) return;
      copies_wait<kAhead - 1>();
#pragma unroll
      for (int i = 0; i < B; i++) fetch(y + kAhead * B + i, (k + kAhead * B + i) % kFirst);
      copies_commit();
    };
    Real* to = a.next + x + (y0 - Levels - a.rowLo) * (ptrdiff_t)pitch;  // where the last warp writes
    const unsigned writes = ok ? bottom - writeLo : 0;

    unsigned long long(*const words)[kSumWords] = (unsigned long long(*)[kSumWords])(shared + (kFirst + (warps - 1) * kRing) * Slot::kBytes) + base;
    Limbs sum[Levels];
    double* const kept = (double*)((char*)(words - base) + S * warps * kSumWords * 8) + base * 3 * 32 + lane;
    auto fromKept = [&](int s) {
      if (kKeep == Keep::shared)
#pragma unroll
        for (int i = 0; i < 3; i++) sum[s].limb[i] = kept[(3 * s + i) * 32];
    };
    auto toKept = [&](int s) {
      if (kKeep == Keep::shared)
#pragma unroll
        for (int i = 0; i < 3; i++) kept[(3 * s + i) * 32] = sum[s].limb[i];
    };
    Row<Real, W> north[Levels], centre[Levels];
    Real acc[Levels][kGroups];
#pragma unroll
    for (int s = 0; s < Levels; s++) {
      north[s] = centre[s] = {};
      sum[s].clear(a.bias), toKept(s);
      if (lane < kSumWords) words[s][lane] = 0;
#pragma unroll
      for (int g = 0; g < kGroups; g++) acc[s][g] = 0;
    }
    __syncwarp();
    auto drain = [&]() {
#pragma unroll
      for (int s = 0; s < Levels; s++) {
        fromKept(s);
        sum[s].drain(a.bias, words[s], ok, lane), sum[s].clear(a.bias);
        toKept(s);
      }
    };

    // take does the warp's levels as row y+begin+k comes in, the k-th of a turn of the loop that begins in row `begin` of the
    // group from y on. `counts`: the group that ends with row y-1 does.
    auto take = [&](int y, int begin, int k, bool counts, auto care) {
      constexpr int kCare = decltype(care)::value;
      if (k % B == 0) step(), fetchAhead(y + begin + k, begin + k);
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
          const double more = surplus<Real>(kCare < 2 ? kGroup : min(y, countHi) - max(y - kGroup, countLo));
          fromKept(s);
#pragma unroll
          for (int g = 0; g < kGroups; g++) {
            sum[s].add(counts ? (double)acc[s][g] - more : 0);
            acc[s][g] = 0;
          }
          toKept(s);
        }
        north[s] = c;
        centre[s] = v;
        v = o;
      }
      const int row = y + begin + k - Levels;
      if (!last) {
        Slot::give(out + ((k - Levels) & (kRing - 1)) * Slot::kBytes, lane, v);
      } else {
        if ((unsigned)(row - writeLo) < writes) store_row(to, v);
        to += pitch;
      }
    };
    auto group = [&](int y, auto care) {
      const bool counts = y - 1 >= countLo && y - kGroup < countHi;
#pragma unroll 1
      for (int begin = 0; begin < kGroup; begin += U)
#pragma unroll
        for (int k = 0; k < U; k++) take(y, begin, k, counts, care);
    };

    // The warps' delays differ by a part of a group: those ahead in their group wait before it, the others after.
    const int wait = delay(warp) % kGroup;
    for (int i = 0; i < wait; i += B) step();
    int y = y0;
    const int yEnd = y0 + kGroup * n;
    int drainAt = y + kDrain;
    while (y < yEnd) {
      if (y >= drainAt) drain(), drainAt = y + kDrain;
      const int stop = min(min(plainHi, needHi), min(yEnd, drainAt)) - kGroup;
      if (y + kGroup <= needLo || y >= needHi) {
#pragma unroll 1
        for (int k = 0; k < kGroup; k += B) step(), fetchAhead(y + k, k);
        y += kGroup;
        to += kGroup * (ptrdiff_t)pitch;
      } else if (y >= plainLo && y <= stop && inner) {
#pragma unroll 1
        for (; y <= stop; y += kGroup) group(y, Care<0>());
      } else if (y >= plainLo && y <= stop) {
#pragma unroll 1
        for (; y <= stop; y += kGroup) group(y, Care<1>());
      } else {
        const bool counts = y - 1 >= countLo && y - kGroup < countHi;
#pragma unroll 1
        for (int k = 0; k < kGroup; k++) take(y, 0, k, counts, Care<2>());
        y += kGroup;
      }
    }
    for (int i = wait; i < kGroup; i += B) step();
    drain();
#pragma unroll
    for (int s = 0; s < Levels; s++) flush(words[s], a.sums + (base + s) * kSumWords, lane);
  }
};

template <class Real, int W, int S, int B, int U, Keep kKeep = Keep::registers> __device__ __forceinline__ void sweep_deep(const Pass<Real>& a) {
  extern __shared__ __align__(16) char shared[];
  const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  const int warp = __shfl_sync(kAll, threadIdx.x >> 5, 0);  // by shuffle: the compiler then knows that a warp agrees on it
  const int top = (a.outLo & -kGroup) + blockIdx.y * a.tileRows, bottom = min(top + a.tileRows, a.outHi);
  await_halos(a, top, bottom);
  const int levels = min(S, a.sweeps - S * warp);
  if (levels == S) Pipeline<Real, W, S, B, U, kKeep, S>::run(a, shared, top, bottom, lane, warp, warps);
  else if (S > 2 && levels == 2) Pipeline<Real, W, S, B, U, kKeep, (S > 2 ? 2 : 1)>::run(a, shared, top, bottom, lane, warp, warps);
  else if (S > 3 && levels == 3) Pipeline<Real, W, S, B, U, kKeep, (S > 3 ? 3 : 1)>::run(a, shared, top, bottom, lane, warp, warps);
  else Pipeline<Real, W, S, B, U, kKeep, 1>::run(a, shared, top, bottom, lane, warp, warps);
  const int x0 = strip<W>(a.sweeps), pad = stale<W>(a.sweeps) * W;
  hand_on(a, top, bottom, x0 + pad, min(x0 + 32 * W - pad, (a.nx + W - 1) / W * W));
}

// Columns a lane, sweeps a warp, rows a step and rows a loop; the first three are the same in ../kernel.go. A block has at most
// as many warps as its bound says.
#ifndef SHAPE_F32  // bench/gpu/variants.sh tries others
#define SHAPE_F32 8, 2, 2, 8
#define BOUND_F32 256, 3
#define SHAPE_F64 4, 2, 2, 8
#define BOUND_F64 128, 5
#endif
extern "C" __global__ void __launch_bounds__(BOUND_F32) sweep_f32(const __grid_constant__ Pass<float> a) { sweep_deep<float, SHAPE_F32>(a); }
extern "C" __global__ void __launch_bounds__(BOUND_F64) sweep_f64(const __grid_constant__ Pass<double> a) { sweep_deep<double, SHAPE_F64>(a); }
// For meshes that do not fill the GPU: blocks that are alone on a multiprocessor are faster with a shorter loop.
extern "C" __global__ void __launch_bounds__(256, 3) small_f32(const __grid_constant__ Pass<float> a) { sweep_deep<float, 8, 2, 2, 4, Keep::shared>(a); }
// For more than 8 sweeps of float64.
extern "C" __global__ void __launch_bounds__(128, 3) deep_f64(const __grid_constant__ Pass<double> a) { sweep_deep<double, 4, 4, 4, 8>(a); }
