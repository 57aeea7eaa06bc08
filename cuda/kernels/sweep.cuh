#pragma once
#include <climits>
#include <cstdint>
#include <type_traits>

constexpr int kGroup = 8;

template <class Real, int W> struct Row { Real v[W]; };

template <int W> __device__ __forceinline__ Row<float, W> load_row(const float* p) {
  Row<float, W> r;
#pragma unroll
  for (int j = 0; j < W; j += 4) {
    float4 t = __ldg((const float4*)(p + j));
    r.v[j] = t.x, r.v[j + 1] = t.y, r.v[j + 2] = t.z, r.v[j + 3] = t.w;
  }
  return r;
}
template <int W> __device__ __forceinline__ Row<double, W> load_row(const double* p) {
  Row<double, W> r;
#pragma unroll
  for (int j = 0; j < W; j += 2) {
    double2 t = __ldg((const double2*)(p + j));
    r.v[j] = t.x, r.v[j + 1] = t.y;
  }
  return r;
}
template <int W> __device__ __forceinline__ void store_row(float* p, const Row<float, W>& r) {
#pragma unroll
  for (int j = 0; j < W; j += 4) *(float4*)(p + j) = make_float4(r.v[j], r.v[j + 1], r.v[j + 2], r.v[j + 3]);
}
template <int W> __device__ __forceinline__ void store_row(double* p, const Row<double, W>& r) {
#pragma unroll
  for (int j = 0; j < W; j += 2) *(double2*)(p + j) = make_double2(r.v[j], r.v[j + 1]);
}
__device__ __forceinline__ float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }

template <class Real> struct Pass {
  const Real* now;
  Real* next;
  unsigned long long* sums;
  double bias[3];
  int pitch, nx;
  int rowLo, rowHi;
  int outLo, outHi;
  int cntLo, cntHi;
  int fixTop, fixBottom;
  int tileRows, sweeps;
};

template <class Real, int W>
__device__ __forceinline__ Row<Real, W> update(const Row<Real, W>& p, const Row<Real, W>& c, const Row<Real, W>& v) {
  Real l = __shfl_up_sync(~0u, c.v[W - 1], 1), r = __shfl_down_sync(~0u, c.v[0], 1);
  Row<Real, W> o;
#pragma unroll
  for (int j = 0; j < W; j++)
    o.v[j] = Real(0.25) * (((j ? c.v[j - 1] : l) + (j < W - 1 ? c.v[j + 1] : r)) + (p.v[j] + v.v[j]));
  return o;
}
template <class Real> __device__ __forceinline__ Real squares(const Real* o, const Real* c) {
  Real d0 = o[0] - c[0], d1 = o[1] - c[1], d2 = o[2] - c[2], d3 = o[3] - c[3];
  return fma_rn(d1, d1, d0 * d0) + fma_rn(d3, d3, d2 * d2);
}


template <class Real> __device__ __forceinline__ void copy_async(char* to, const Real* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
  *(float4*)to = __ldg((const float4*)from);
#endif
}
__device__ __forceinline__ void copy_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N> __device__ __forceinline__ void copy_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// Rows in shared memory: chunk i of 16 bytes of lane l at (i*32 + l)*16, so that a warp reads without conflict.
template <class Real, int W> __device__ __forceinline__ Row<Real, W> take(const char* row, int lane, bool flip = false) {
  constexpr int per = 16 / sizeof(Real);
  Row<Real, W> r;
#pragma unroll
  for (int i = 0; i < W / per; i++) {
    if (sizeof(Real) == 4) {
      float4 t = *(const float4*)(row + (i * 32 + lane) * 16);
      r.v[i * per + (PERM ? flip ? 2 : 0 : 0) % per] = t.x, r.v[i * per + (PERM ? flip ? 0 : 2 : 1) % per] = t.y, r.v[i * per + (PERM ? flip ? 3 : 1 : 2) % per] = t.z, r.v[i * per + (PERM ? flip ? 1 : 3 : 3) % per] = t.w;
    }
    if (sizeof(Real) == 8) {
      double2 t = *(const double2*)(row + (i * 32 + lane) * 16);
      r.v[i * per] = t.x, r.v[i * per + 1] = t.y;
    }
  }
  return r;
}
template <class Real, int W> __device__ __forceinline__ void give(char* row, int lane, const Row<Real, W>& r, bool flip = false) {
  constexpr int per = 16 / sizeof(Real);
#pragma unroll
  for (int i = 0; i < W / per; i++) {
    if (sizeof(Real) == 4) *(float4*)(row + (i * 32 + lane) * 16) = make_float4(r.v[i * per + (PERM ? flip ? 2 : 0 : 0) % per], r.v[i * per + (PERM ? flip ? 0 : 2 : 1) % per], r.v[i * per + (PERM ? flip ? 3 : 1 : 2) % per], r.v[i * per + (PERM ? flip ? 1 : 3 : 3) % per]);
    if (sizeof(Real) == 8) *(double2*)(row + (i * 32 + lane) * 16) = make_double2(r.v[i * per], r.v[i * per + 1]);
  }
}

// S levels of one strip: a warp's share of the pipeline.
template <class Real, int W, int S, int Levels, int B> struct Stage {
  static constexpr int G = W / 4;
  static constexpr int kRow = 32 * W * sizeof(Real);
  static constexpr int kRing = 2 * B * kRow;

  static __device__ __forceinline__ void run(const Pass<Real>& a, char* smem, int lane, int warp, int warps) {
    const bool first = warp == 0, lastWarp = warp == warps - 1;
    const int T = a.sweeps;
    const int pad = (T + W - 1) / W;
    const int x0 = (int)blockIdx.x * (32 - 2 * pad) * W - W * pad;
    const int x = x0 + W * lane;
    const bool ok = lane >= pad && lane < 32 - pad && x < a.nx;
    const int top = (a.outLo & -kGroup) + blockIdx.y * a.tileRows;
    const int bot = min(top + a.tileRows, a.outHi), bot8 = (bot + 7) & -kGroup;
    const int cl = max(top, a.cntLo), ch = min(bot, a.cntHi), ol = max(top, a.outLo);
    const bool inner = x0 > 0 && x0 + 32 * W < a.nx;
    // The warps' clocks: a step is B rows and ends with a barrier; warp w reads row Y + B*m - (S+B)*w at step m.
    const int Y = (top - T) & -kGroup;
    auto lag = [](int w) { return (S + B) * w & 7; };
    const int y0 = Y - ((S + B) * warp & -kGroup);
    const int yLast = Y - ((S + B) * (warps - 1) & -kGroup);
    const int n = max(bot8 + S - yLast + 7, bot8 + S * warps - Y + 7) >> 3;
    const int need0 = top - T + S * warp, need1 = bot8 + S * (warps - warp);
    int plainLo = a.fixTop + S + 1, plainHi = a.fixBottom - 6;
    if (cl & 7) plainLo = max(plainLo, (cl & -kGroup) + 8 + S);
    if (ch & 7) plainHi = min(plainHi, (ch & -kGroup) - 6);

    // Rings of rows in shared memory, one in front of each warp: 8 rows for warp 0, 2*B for the others.
    char* const in = first ? smem : smem + 8 * kRow + (warp - 1) * kRing;
    char* const inB = first && 2 * B < 8 ? in + 2 * B * kRow : in;
    char* const out = smem + 8 * kRow + warp * kRing;
    auto at = [&](int k) { return 2 * B < 8 && (k & 4) ? inB + (k % 4) * kRow : in + k * kRow; };
    const Real* const src = a.now + min(max(x, 0), a.pitch - W);
    auto fetch = [&](int y, int slot) {
      const Real* p = src + (ptrdiff_t)(min(max(y, a.rowLo), a.rowHi - 1) - a.rowLo) * a.pitch;
#pragma unroll
      for (int i = 0; i < W * (int)sizeof(Real) / 16; i++)
        copy_async<Real>(smem + slot * kRow + (i * 32 + lane) * 16, p + i * (16 / sizeof(Real)));
    };
    constexpr int kAhead = 8 / B - 1;  // steps between fetch and use
    if (first) {
#pragma unroll
      for (int k = 0; k < kAhead * B; k++) {
        fetch(y0 + k, k);
        if (k % B == B - 1) copy_commit();
      }
    }
    auto put = [&](int row, int slot, const Row<Real, W>& v, bool flip = false) {
      if (!lastWarp) give(out + slot * kRow, lane, v, flip);
      else if (ok && row >= ol && row < bot) store_row<W>(a.next + x + (ptrdiff_t)(row - a.rowLo) * a.pitch, v);
    };
    // A step: B rows between barriers; warp 0 fetches rows for a later step.
    auto step = [&](int y, int k) {
      __syncthreads();
      if (first) {
        copy_wait<kAhead - 1>();
#pragma unroll
        for (int i = 0; i < B; i++) fetch(y + kAhead * B + i, (k + kAhead * B + i) % 8);
        copy_commit();
      }
    };
    Row<Real, W> P[Levels], C[Levels];
    Real acc[Levels][G];
    double sum[Levels][3];
#pragma unroll
    for (int s = 0; s < Levels; s++) {
#pragma unroll
      for (int j = 0; j < W; j++) P[s].v[j] = C[s].v[j] = 0;
#pragma unroll
      for (int g = 0; g < G; g++) acc[s][g] = 0;
#pragma unroll
      for (int i = 0; i < 3; i++) sum[s][i] = a.bias[i];
    }
    auto add = [&](int s, bool counts) {
#pragma unroll
      for (int g = 0; g < G; g++) {
        double q = counts ? acc[s][g] : Real(0);
        double t = __dadd_rd(sum[s][0], q);
        double rem = q - (t - sum[s][0]);
        double u = __dadd_rd(sum[s][1], rem);
        rem -= u - sum[s][1];
        sum[s][0] = t;
        sum[s][1] = u;
        sum[s][2] = __dadd_rd(sum[s][2], rem);
        acc[s][g] = 0;
      }
    };
    auto rows = [&](int y, auto edge) {
      const bool counts = y - 1 >= cl && y - 8 < ch;
#pragma unroll
      for (int k = 0; k < kGroup; k++) {
        if (k % B == 0) step(y + k, k);
        Row<Real, W> v = take<Real, W>(at(k), lane, (k & 2) != 0);
#pragma unroll
        for (int s = 0; s < Levels; s++) {
          Row<Real, W> o = update(P[s], C[s], v);
          if (s < Levels - 1) PIN(o, (k - s - 1) & 2 ? 1 : 0, s);
          if (decltype(edge)::value) {
#pragma unroll
            for (int j = 0; j < W; j++)
              if (x + j <= 0 || x + j >= a.nx - 1) o.v[j] = C[s].v[j];
          }
#pragma unroll
          for (int g = 0; g < G; g++) acc[s][g] += squares(o.v + 4 * g, C[s].v + 4 * g);
          if (k == s) add(s, counts);
          P[s] = C[s];
          C[s] = v;
          v = o;
        }
        put(y + k - Levels, k - Levels & 2 * B - 1, v, ((k - Levels) & 2) != LASTFLIP);
      }
    };

    for (int i = 0; i < lag(warp) / B; i++) __syncthreads();
    int y = y0;
    const int yEnd = y0 + kGroup * n;
    while (y < yEnd) {
      const int stop = min(min(plainHi, need1), yEnd) - kGroup;
      if (y + 7 < need0 || y >= need1) {
#pragma unroll 1
        for (int k = 0; k < kGroup; k += B) step(y + k, k);
        y += kGroup;
      } else if (y >= plainLo && y <= stop && inner) {
#pragma unroll 1
        for (; y <= stop; y += kGroup) rows(y, std::false_type());
      } else if (EDGEBODY && y >= plainLo && y <= stop) {
#pragma unroll 1
        for (; y <= stop; y += kGroup) rows(y, std::true_type());
      } else {
#pragma unroll 1
        for (int k = 0; k < kGroup; k++) {
          if (k % B == 0) step(y + k, k);
          Row<Real, W> v = take<Real, W>(at(k), lane);
#pragma unroll
          for (int s = 0; s < Levels; s++) {
            Row<Real, W> o = update(P[s], C[s], v);
            const int row = y + k - s - 1;
            const bool fixed = row == a.fixTop || row == a.fixBottom;
#pragma unroll
            for (int j = 0; j < W; j++)
              if (fixed || x + j <= 0 || x + j >= a.nx - 1) o.v[j] = C[s].v[j];
            if (row >= cl && row < ch) {
#pragma unroll
              for (int g = 0; g < G; g++) acc[s][g] += squares(o.v + 4 * g, C[s].v + 4 * g);
            }
            if (k == s) add(s, y - 1 >= cl && y - 8 < ch);
            P[s] = C[s];
            C[s] = v;
            v = o;
          }
          put(y + k - Levels, k - Levels & 2 * B - 1, v);
        }
        y += kGroup;
      }
    }
    for (int i = lag(warp) / B; i < 8 / B; i++) __syncthreads();
#pragma unroll
    for (int s = 0; s < Levels; s++)
#pragma unroll
      for (int i = 0; i < 3; i++) {
        unsigned long long w = ok ? __double_as_longlong(sum[s][i]) - __double_as_longlong(a.bias[i]) : 0;
        const bool bad = __any_sync(~0u, w > 1ull << 52);
#pragma unroll
        for (int d = 16; d; d >>= 1) w += __shfl_xor_sync(~0u, w, d);
        unsigned long long* to = a.sums + (S * warp + s) * 8;
        if (lane == 0) {
          atomicAdd(to + 2 * i, w & 0x7fffffff);
          atomicAdd(to + 2 * i + 1, w >> 31);
          if (bad) atomicAdd(to + 6, 1ull);
        }
      }
  }
};

template <class Real, int W, int S, int B, int MaxWarps, int MinBlocks>
__global__ void __launch_bounds__(32 * MaxWarps, MinBlocks) sweep(const __grid_constant__ Pass<Real> a) {
  extern __shared__ __align__(16) char smem[];
  const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  const int warp = __shfl_sync(~0u, ((threadIdx.x >> 5) + ROTATE) % warps, 0);
  const int levels = min(S, a.sweeps - S * warp);
  if (levels == S) Stage<Real, W, S, S, B>::run(a, smem, lane, warp, warps);
  if (ALLT && S > 1 && levels == 1) Stage<Real, W, S, 1, B>::run(a, smem, lane, warp, warps);
  if (ALLT && S > 2 && levels == 2) Stage<Real, W, S, (S > 2 ? 2 : 1), B>::run(a, smem, lane, warp, warps);
  if (ALLT && S > 3 && levels == 3) Stage<Real, W, S, (S > 3 ? 3 : 1), B>::run(a, smem, lane, warp, warps);
}
