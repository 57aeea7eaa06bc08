// The coarsest levels in one block: their arrays fit into its shared memory, so that a sweep takes no launch.
#pragma once
#include "group.cuh"
#include "multigrid_level.cuh"

constexpr int kTailSide = 32, kTailThreads = kTailSide * kTailSide;

// TailLevel is a level of the tail. Its arrays lie `u`, `v` and `b` values into the memory of all levels, with nx
// values a row.
struct TailLevel {
  const Taps *tapsX, *tapsY;                         // by point of the next level
  const Between *betweenRows, *betweenColumns;       // by point of this level, from -kBeyond on
  Span rows, columns;
  float h, q, gain;
  int nx, ny;
  int u, v, b;
  int unused;
};

// Tail is the argument of the kernel tail.
struct Tail {
  const TailLevel* levels;
  const float* weights;  // of the sweeps on the coarsest level
  float* memory;         // of all arrays; null: shared memory
  const float* b;        // of the first level, with `pitch` values a row
  float* u;
  int count, sweeps;     // levels; weights
  int pitch;
  float w[kSmooth];      // in the order of the sweeps before the correction
};

// each calls f for every point of a level.
template <class F> __device__ __forceinline__ void each(const TailLevel& l, F&& f) {
  for (int y = threadIdx.x / kTailSide; y < l.ny; y += kTailSide)
    for (int x = threadIdx.x % kTailSide; x < l.nx; x += kTailSide) f(y, x);
  __syncthreads();
}

__device__ __forceinline__ bool keeps(const TailLevel& l, int y, int x) {
  return y < l.rows.lo || y >= l.rows.hi || x < l.columns.lo || x >= l.columns.hi || y <= l.rows.fixedLow ||
         y >= l.rows.fixedHigh || x <= l.columns.fixedLow || x >= l.columns.fixedHigh;
}

// defect returns d at a point.
__device__ __forceinline__ float defect(const TailLevel& l, const float* u, float b, int y, int x) {
  const float s = u[y * l.nx + l.columns.held(x - 1)] + u[y * l.nx + l.columns.held(x + 1)];
  const float t = u[l.rows.held(y - 1) * l.nx + x] + u[l.rows.held(y + 1) * l.nx + x];
  return fused(l.h, fused(l.q, t - s, s), b) - u[y * l.nx + x];
}

// sweep does one sweep from u to v.
__device__ __forceinline__ void sweep(const TailLevel& l, const float* u, float* v, const float* b, float w) {
  each(l, [&](int y, int x) {
    const int i = y * l.nx + x;
    v[i] = keeps(l, y, x) ? u[i] : fused(w, defect(l, u, b[i], y, x), u[i]);
  });
}

// restrict_to sets b of the next level from the defects d.
__device__ __forceinline__ void restrict_to(const TailLevel& l, const TailLevel& to, const float* d, float* b) {
  each(to, [&](int y, int x) {
    if (keeps(to, y, x)) return;
    const Taps ty = l.tapsY[y], tx = l.tapsX[x];
    float row = 0;
#pragma unroll
    for (int i = 0; i < kTaps; i++) {
      const int from = l.columns.held(tx.first + i);
      float column = 0;
#pragma unroll
      for (int k = 0; k < kTaps; k++) column = fused(ty.w[k], d[l.rows.held(ty.first + k) * l.nx + from], column);
      row = fused(tx.w[i], column, row);
    }
    b[y * to.nx + x] = fused(l.gain, row, 0.f);
  });
}

// correct adds the correction c of the next level to u.
__device__ __forceinline__ void correct(const TailLevel& l, const TailLevel& next, const float* c, float* u) {
  each(l, [&](int y, int x) {
    if (keeps(l, y, x)) return;
    const Between by = l.betweenRows[y + kBeyond], bx = l.betweenColumns[x + kBeyond];
    const float* const north = c + next.rows.held(by.coarse) * next.nx;
    const float* const south = c + next.rows.held(by.coarse + 1) * next.nx;
    const int west = next.columns.held(bx.coarse), east = next.columns.held(bx.coarse + 1);
    const float t0 = fused(by.weight, south[west] - north[west], north[west]);
    const float t1 = fused(by.weight, south[east] - north[east], north[east]);
    u[y * l.nx + x] += fused(bx.weight, t1 - t0, t0);
  });
}

// smooth_tail does the sweeps of the tail from 0 and returns where u is then: in u or in v.
__device__ __forceinline__ void smooth_tail(const TailLevel& l, float* u, float* v, const float* b, const float* w) {
  each(l, [&](int y, int x) { u[y * l.nx + x] = keeps(l, y, x) ? 0 : fused(w[0], b[y * l.nx + x], 0.f); });
  sweep(l, u, v, b, w[1]), sweep(l, v, u, b, w[2]), sweep(l, u, v, b, w[3]);
}

__device__ __forceinline__ void run_tail(const Tail& a) {
  DYNAMIC_SHARED(shared);
  float* const memory = a.memory ? a.memory : (float*)shared;
  const TailLevel& top = a.levels[0];
  each(top, [&](int y, int x) { memory[top.b + y * top.nx + x] = a.b[(ptrdiff_t)y * a.pitch + x]; });
  for (int i = 0; i + 1 < a.count; i++) {
    const TailLevel &l = a.levels[i], &next = a.levels[i + 1];
    float *const u = memory + l.u, *const v = memory + l.v, *const b = memory + l.b;
    smooth_tail(l, u, v, b, a.w);
    each(l, [&](int y, int x) {
      u[y * l.nx + x] = keeps(l, y, x) ? 0.f : defect(l, v, b[y * l.nx + x], y, x);
    });
    restrict_to(l, next, u, memory + next.b);
  }
  const TailLevel& last = a.levels[a.count - 1];
  float *u = memory + last.u, *v = memory + last.v;
  each(last, [&](int y, int x) { u[y * last.nx + x] = 0; });
  for (int k = 0; k < a.sweeps; k++) {
    sweep(last, u, v, memory + last.b, a.weights[k]);
    float* const t = u;
    u = v, v = t;
  }
  const float* solution = u;
  for (int i = a.count - 2; i >= 0; i--) {
    const TailLevel &l = a.levels[i], &next = a.levels[i + 1];
    float *const to = memory + l.u, *const from = memory + l.v, *const b = memory + l.b;
    correct(l, next, solution, from);
    sweep(l, from, to, b, a.w[3]), sweep(l, to, from, b, a.w[2]);
    sweep(l, from, to, b, a.w[1]), sweep(l, to, from, b, a.w[0]);
    solution = from;
  }
  each(top, [&](int y, int x) { a.u[(ptrdiff_t)y * a.pitch + x] = solution[y * top.nx + x]; });
}
