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
// Rows are handed on in steps of B between barriers. In step m, warp w takes rows Y + B*m - (S+B)*w and following,
// so what it takes was given in the step before. Loops are unrolled over the 8 rows of a group, so that a group ends,
// and a ring's slot lies, at a place known to the compiler; registers then need no moves from row to row.
#include "sum.cuh"


__device__ __forceinline__ void copy16_async(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
  *(float4*)to = __ldg((const float4*)from);
#endif
}
__device__ __forceinline__ void copies_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N> __device__ __forceinline__ void copies_wait() {  // until at most N commits are under way
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// A row in shared memory: 16-byte part p of lane l's columns lies at p*kPart + l*16. The parts are shifted against
// each other so that the copies of neighbouring columns meet different banks.
template <class Real, int W> struct Slot {
  static constexpr int kParts = W / kPer16<Real>;
  static constexpr int kPart = 32 * 16 + (kParts > 1 ? 64 : 0);
  static constexpr int kBytes = kParts * kPart;
  static __device__ __forceinline__ Row<Real, W> take(const char* slot, int lane) {
    Row<Real, W> r;
#pragma unroll
    for (int p = 0; p < kParts; p++) load16(r.v + p * kPer16<Real>, (const Real*)(slot + p * kPart + lane * 16));
    return r;
  }
  static __device__ __forceinline__ void give(char* slot, int lane, const Row<Real, W>& r) {
#pragma unroll
    for (int p = 0; p < kParts; p++) store16((Real*)(slot + p * kPart + lane * 16), r.v + p * kPer16<Real>);
  }
};

// Pipeline is what one warp does: Levels sweeps, S of them unless it is the last warp of an odd number of sweeps.
template <class Real, int W, int S, int B, int Levels> struct Pipeline {
  static_assert(S % B == 0 && kGroup % (2 * B) == 0, "slots and barriers have fixed places in a group");
  using Slot = ::Slot<Real, W>;
  static constexpr int kGroups = W / 4;       // groups side by side in a lane
  static constexpr int kFirst = kGroup;       // slots of ring 0
  static constexpr int kRing = 2 * B;         // slots of the others
  static constexpr int kAhead = kFirst / B - 1;  // steps from fetch to use
  static constexpr int kDrain = kMostGroups / kGroups * kGroup;  // rows after which the sums must be drained

  static __device__ __forceinline__ void run(const Pass<Real>& a, char* shared, int lane, int warp, int warps) {
    const bool first = warp == 0, last = warp == warps - 1;
    const int T = a.sweeps;

    // The strip: W columns a lane from x on; those of the outer `pad` lanes on both sides are for reading alone.
    const int pad = (T + W - 1) / W;
    const int x0 = (int)blockIdx.x * (32 - 2 * pad) * W - W * pad;
    const int x = x0 + W * lane;
    const bool ok = lane >= pad && lane < 32 - pad && x < a.nx;
    const bool inner = x0 > 0 && x0 + 32 * W < a.nx;

    // The tile: rows [top, bottom), and which of them are written and counted.
    const int top = (a.outLo & -kGroup) + blockIdx.y * a.tileRows;
    const int bottom = min(top + a.tileRows, a.outHi), bottom8 = (bottom + kGroup - 1) & -kGroup;
    const int writeLo = max(top, a.outLo);
    const int countLo = max(top, a.countLo), countHi = min(bottom, a.countHi);

    // The rows that this warp takes: [y0, y0 + 8n), of which it needs [needLo, needHi).
    const int Y = (top - T) & -kGroup;
    auto delay = [](int w) { return (S + B) * w; };
    const int y0 = Y - (delay(warp) & -kGroup);
    const int n = max(bottom8 + S + (delay(warps - 1) & -kGroup), bottom8 + S * warps) - Y + kGroup - 1 >> 3;
    const int needLo = top - T + S * warp, needHi = bottom8 + S * (warps - warp);
    const int yEnd = y0 + kGroup * n;

    // Taking rows [plainLo, plainHi) concerns neither a fixed row nor a group that is counted in part.
    int plainLo = a.fixTop + Levels + 1, plainHi = a.fixBottom + 1;
    if (countLo % kGroup) plainLo = max(plainLo, (countLo & -kGroup) + kGroup + Levels);
    if (countHi % kGroup) plainHi = min(plainHi, (countHi & -kGroup) + 1);
    plainHi = min(plainHi, min(needHi, yEnd));

    // Ring 0 has as many slots as a group has rows; half of them are reached from `inFar`.
    char* const in = first ? shared : shared + (kFirst + (warp - 1) * kRing) * Slot::kBytes;
    char* const inFar = first ? in + kRing * Slot::kBytes : in;
    char* const out = shared + (kFirst + warp * kRing) * Slot::kBytes;
    auto slot = [&](int k) { return (k / kRing % 2 ? inFar : in) + k % kRing * Slot::kBytes; };
    static_assert(kFirst <= 2 * kRing, "");

    auto fetch = [&](int y, int k) {
      const Real* row = a.now + (ptrdiff_t)(min(max(y, a.rowLo), a.rowHi - 1) - a.rowLo) * a.pitch;
#pragma unroll
      for (int i = 0; i < Slot::kParts; i++) {
        const int part = i * 32 + lane;  // of the strip's row
        const int column = min(max(x0 + part * kPer16<Real>, 0), a.pitch - kPer16<Real>);
        copy16_async(shared + k * Slot::kBytes + part % Slot::kParts * Slot::kPart + part / Slot::kParts * 16, row + column);
      }
    };
    if (first) {
#pragma unroll
      for (int k = 0; k < kAhead * B; k += B) {
#pragma unroll
        for (int i = 0; i < B; i++) fetch(y0 + k + i, k + i);
        copies_commit();
      }
    }
    auto step = [&](int y, int k) {
      if (first) copies_wait<kAhead - 1>();
      __syncthreads();
      if (first) {
#pragma unroll
        for (int i = 0; i < B; i++) fetch(y + kAhead * B + i, (k + kAhead * B + i) % kFirst);
        copies_commit();
      }
    };

    Row<Real, W> north[Levels], centre[Levels];
    Real acc[Levels][kGroups];
    // The sums, touched once in a group, wait in shared memory: three numbers a lane for each level.
    double* const sums = (double*)(shared + (kFirst + (warps - 1) * kRing) * Slot::kBytes) + warp * S * 96 + lane;
    Limbs sum;
    sum.clear(a.bias);
#pragma unroll
    for (int s = 0; s < Levels; s++) {
      north[s] = centre[s] = {};
      sum.save(sums + s * 96);
#pragma unroll
      for (int g = 0; g < kGroups; g++) acc[s][g] = 0;
    }

    // take makes the warp's levels of one row come in. Care: 0 none, 1 of fixed columns, 2 also of fixed rows and of
    // single rows that do not count.
    auto take = [&](int y, int k, bool counts, auto care) {
      constexpr int kCare = decltype(care)::value;
      if (k % B == 0) step(y + k, k);
      Row<Real, W> v = Slot::take(slot(k), lane);
#pragma unroll
      for (int s = 0; s < Levels; s++) {
        const Row<Real, W> c = centre[s];
        const Real west = __shfl_up_sync(kAll, c.v[W - 1], 1), east = __shfl_down_sync(kAll, c.v[0], 1);
        Row<Real, W> o = update(north[s], c, v, west, east);
        const int row = y + k - s - 1;
        if (kCare) {
          const bool keep = kCare == 2 && (row == a.fixTop || row == a.fixBottom);
#pragma unroll
          for (int j = 0; j < W; j++)
            if (keep || x + j <= 0 || x + j >= a.nx - 1) o.v[j] = c.v[j];
        }
        if (kCare < 2 || (row >= countLo && row < countHi)) {
#pragma unroll
          for (int g = 0; g < kGroups; g++) acc[s][g] += squares(o.v + 4 * g, c.v + 4 * g);
        }
        if (k == s) {  // row y-1 ends a group
          sum.load(sums + s * 96);
#pragma unroll
          for (int g = 0; g < kGroups; g++) sum.add(counts ? acc[s][g] - beyond<Real>(kCare == 2 ? min(y, countHi) - max(y - kGroup, countLo) : kGroup) : 0), acc[s][g] = 0;
          sum.save(sums + s * 96);
        }
        north[s] = c;
        centre[s] = v;
        v = o;
      }
      const int row = y + k - Levels;
      if (!last) Slot::give(out + (k - Levels & kRing - 1) * Slot::kBytes, lane, v);
      else if (ok && row >= writeLo && row < bottom) store_row(a.next + x + (ptrdiff_t)(row - a.rowLo) * a.pitch, v);
    };
    auto plain = [&](int& y, int end, auto care) {
#pragma unroll 1
      for (; y + kGroup <= end; y += kGroup) {
        const bool counts = y - kGroup >= countLo && y <= countHi;
#pragma unroll
        for (int k = 0; k < kGroup; k++) take(y, k, counts, care);
      }
    };

    // The warps' delays differ by a part of a group: those ahead in their group wait before it, the others after.
    for (int i = 0; i < delay(warp) % kGroup / B; i++) __syncthreads();
    int y = y0;
    while (y < yEnd) {
      const int drainAt = min(yEnd, y + kDrain);
      while (y < drainAt) {
        if (y + kGroup <= needLo || y >= needHi) {
#pragma unroll 1
          for (int k = 0; k < kGroup; k += B) step(y + k, k);
          y += kGroup;
        } else if (y >= plainLo && y + kGroup <= plainHi) {
          const int end = min(plainHi, drainAt);
          if (inner) plain(y, end, Care<0>());
          else plain(y, end, Care<1>());
        } else {
          const bool counts = y > countLo && y - kGroup < countHi;
#pragma unroll 1
          for (int k = 0; k < kGroup; k++) take(y, k, counts, Care<2>());
          y += kGroup;
        }
      }
#pragma unroll
      for (int s = 0; s < Levels; s++) {
        sum.load(sums + s * 96);
        drain(sum, a.bias, a.sums + (S * warp + s) * kSumWords, ok, lane);
        sum.save(sums + s * 96);
      }
    }
    for (int i = delay(warp) % kGroup / B; i < kGroup / B; i++) __syncthreads();
  }
  template <int N> struct Care { static constexpr int value = N; };
};

template <class Real, int W, int S, int B> __device__ __forceinline__ void sweep_deep(const Pass<Real>& a) {
  extern __shared__ __align__(16) char shared[];
  const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  const int warp = __shfl_sync(kAll, threadIdx.x >> 5, 0);  // by shuffle: the compiler then knows that a warp agrees on it
  const int levels = min(S, a.sweeps - S * warp);
  if (levels == S) Pipeline<Real, W, S, B, S>::run(a, shared, lane, warp, warps);
  else if (S > 2 && levels == 2) Pipeline<Real, W, S, B, (S > 2 ? 2 : 1)>::run(a, shared, lane, warp, warps);
  else if (S > 3 && levels == 3) Pipeline<Real, W, S, B, (S > 3 ? 3 : 1)>::run(a, shared, lane, warp, warps);
  else Pipeline<Real, W, S, B, 1>::run(a, shared, lane, warp, warps);
}

// Columns a lane, sweeps a warp and rows a step are the same in ../kernel.go; a block has at most as many warps as its bound says.
#ifndef SHAPE_F32 // bench/gpu/variants.sh tries others
#define SHAPE_F32 4, 4, 4
#define BOUND_F32 128, 5
#define SHAPE_F64 4, 2, 2
#define BOUND_F64 128, 6
#endif
extern "C" __global__ void __launch_bounds__(BOUND_F32) sweep_f32(const __grid_constant__ Pass<float> a) { sweep_deep<float, SHAPE_F32>(a); }
extern "C" __global__ void __launch_bounds__(BOUND_F64) sweep_f64(const __grid_constant__ Pass<double> a) { sweep_deep<double, SHAPE_F64>(a); }
// For more than 8 sweeps of float64.
extern "C" __global__ void __launch_bounds__(128, 3) deep_f64(const __grid_constant__ Pass<double> a) { sweep_deep<double, 4, 4, 4>(a); }
