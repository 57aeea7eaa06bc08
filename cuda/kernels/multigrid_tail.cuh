// The coarsest levels in one block: their arrays fit into its shared memory, so that a sweep takes no launch. Points
// that no sweep changes stay 0.
#pragma once
#include "group.cuh"
#include "multigrid_level.cuh"

constexpr int kTailThreads = 1024;
constexpr int kTailPoints = 2;  // of a thread, which keeps their places in registers for all sweeps of a level

// TailLevel is a level of the tail. Its arrays lie `u`, `v` and `b` values into the memory of all levels, with nx
// values a row.
struct TailLevel {
  const Taps *tapsX, *tapsY;                         // by point of the next level
  const Between *betweenRows, *betweenColumns;       // by point of this level, from -kBeyond on
  const unsigned* fixed;                             // a bit for each point, set where it is fixed; null: none inside
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
  int values;            // of all arrays
  int pitch;
  float w[kSmooth];      // in the order of the sweeps before the correction
};

// each calls f for every point of a level.
template <class F> __device__ __forceinline__ void each(const TailLevel& l, F&& f) {
  for (int i = threadIdx.x; i < l.nx * l.ny; i += kTailThreads) f(i / l.nx, i % l.nx);
  __syncthreads();
}

// in_wall reports whether a point lies in a fixed wall or is the copy of another one.
__device__ __forceinline__ bool in_wall(const TailLevel& l, int y, int x) {
  return y < l.rows.lo || y >= l.rows.hi || x < l.columns.lo || x >= l.columns.hi || y <= l.rows.fixedLow ||
         y >= l.rows.fixedHigh || x <= l.columns.fixedLow || x >= l.columns.fixedHigh;
}
// keeps reports whether no sweep changes a point.
__device__ __forceinline__ bool keeps(const TailLevel& l, int y, int x) {
  const int i = y * l.nx + x;
  return in_wall(l, y, x) || (l.fixed && (l.fixed[i / 32] >> i % 32 & 1));
}

// defect returns d at a point.
__device__ __forceinline__ float defect(const TailLevel& l, const float* u, float b, int y, int x) {
  const float s = u[y * l.nx + l.columns.held(x - 1)] + u[y * l.nx + l.columns.held(x + 1)];
  const float t = u[l.rows.held(y - 1) * l.nx + x] + u[l.rows.held(y + 1) * l.nx + x];
  return fused(l.h, fused(l.q, t - s, s), b) - u[y * l.nx + x];
}

// Places are where a thread's points and their neighbours lie, and the points' b. Points that no sweep changes are left
// out.
struct Places {
  int at[kTailPoints], west[kTailPoints], east[kTailPoints], north[kTailPoints], south[kTailPoints];
  float b[kTailPoints];
};

__device__ __forceinline__ Places places(const TailLevel& l, const float* b) {
  Places p;
#pragma unroll
  for (int k = 0; k < kTailPoints; k++) {
    const int i = threadIdx.x + kTailThreads * k, y = i / l.nx, x = i % l.nx;
    p.at[k] = -1;
    if (i >= l.nx * l.ny || keeps(l, y, x)) continue;
    p.at[k] = i, p.b[k] = b[i];
    p.west[k] = y * l.nx + l.columns.held(x - 1), p.east[k] = y * l.nx + l.columns.held(x + 1);
    p.north[k] = l.rows.held(y - 1) * l.nx + x, p.south[k] = l.rows.held(y + 1) * l.nx + x;
  }
  return p;
}

// sweeps does n sweeps from u to v and back, and returns where the result is. Points that no sweep changes are the same
// in both.
template <class Weight>
__device__ __forceinline__ float* sweeps(const TailLevel& l, float* u, float* v, const float* b, int n, Weight&& w) {
  const bool few = l.nx * l.ny <= kTailThreads * kTailPoints;
  Places p;
  if (few) p = places(l, b);
  for (int k = 0; k < n; k++) {
    const float weight = w(k);
    if (few) {
#pragma unroll
      for (int i = 0; i < kTailPoints; i++)
        if (p.at[i] >= 0) {
          const float s = u[p.west[i]] + u[p.east[i]], t = u[p.north[i]] + u[p.south[i]], c = u[p.at[i]];
          v[p.at[i]] = fused(weight, fused(l.h, fused(l.q, t - s, s), p.b[i]) - c, c);
        }
      __syncthreads();
    } else {
      each(l, [&](int y, int x) {
        const int i = y * l.nx + x;
        if (!keeps(l, y, x)) v[i] = fused(weight, defect(l, u, b[i], y, x), u[i]);
      });
    }
    float* const t = u;
    u = v, v = t;
  }
  return u;
}

// restrict_to sets b of the next level from the defects d.
__device__ __forceinline__ void restrict_to(const TailLevel& l, const TailLevel& to, const float* d, float* b) {
  each(to, [&](int y, int x) {
    if (in_wall(to, y, x)) return;
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

__device__ __forceinline__ void run_tail(const Tail& a) {
  DYNAMIC_SHARED(shared);
  float* const memory = a.memory ? a.memory : (float*)shared;
  const TailLevel& top = a.levels[0];
  for (int i = threadIdx.x; i < a.values; i += kTailThreads) memory[i] = 0;
  __syncthreads();
  each(top, [&](int y, int x) { memory[top.b + y * top.nx + x] = a.b[(ptrdiff_t)y * a.pitch + x]; });
  for (int i = 0; i + 1 < a.count; i++) {
    const TailLevel &l = a.levels[i], &next = a.levels[i + 1];
    float *const u = memory + l.u, *const d = memory + l.v, *const b = memory + l.b;
    sweeps(l, u, d, b, kSmooth, [&](int k) { return a.w[k]; });  // an even number, so they end in u
    each(l, [&](int y, int x) {
      if (!keeps(l, y, x)) d[y * l.nx + x] = defect(l, u, b[y * l.nx + x], y, x);
    });
    restrict_to(l, next, d, memory + next.b);
  }
  const TailLevel& last = a.levels[a.count - 1];
  float* solution = sweeps(last, memory + last.u, memory + last.v, memory + last.b, a.sweeps,
                           [&](int k) { return a.weights[k]; });
  for (int i = a.count - 2; i >= 0; i--) {
    const TailLevel &l = a.levels[i], &next = a.levels[i + 1];
    float* const u = memory + l.u;
    correct(l, next, solution, u);
    solution = sweeps(l, u, memory + l.v, memory + l.b, kSmooth, [&](int k) { return a.w[kSmooth - 1 - k]; });
  }
  each(top, [&](int y, int x) { a.u[(ptrdiff_t)y * a.pitch + x] = solution[y * top.nx + x]; });
}
