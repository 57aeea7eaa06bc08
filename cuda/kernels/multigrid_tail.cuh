// The coarsest levels in one block: their arrays fit into its shared memory, so that a sweep takes no launch. Tables
// made by the host (../leveltail.go) hold the points that sweeps change, with the places of all values that they need;
// walls and mirrors are resolved there. The other points stay 0.
//
// One loop does the way down and the way up, so there is one copy of the code.
#pragma once
#include "group.cuh"
#include "multigrid_coarsest.cuh"
#include "multigrid_level.cuh"
#include "update.cuh"

constexpr int kTailThreads = 1024;
constexpr int kTailPoints = 5;     // of a thread, which keeps them in registers for all sweeps of a level
constexpr int kTailLevels = 15;    // in one argument
constexpr int kTailValues = 8192;  // of all levels in shared memory

// A place is the number of a value in an array of all levels: in u, v or b.

// Around is the places of the neighbours of a point.
struct __align__(16) Around {
  int west, east, north, south;
};

// Restricting is the restriction to a point: rows and columns of the finer level, and their weights.
struct __align__(16) Restricting {
  int rows[kTaps], columns[kTaps];  // rows[k] + columns[i] is a place
  float wy[kTaps], wx[kTaps];
};

// Correcting is the interpolation at a point: four places of the coarser level, and the weights of the southern and the
// eastern ones.
struct __align__(8) Correcting {
  int nw, ne, sw, se;
  float wy, wx;
};

// TailLevel is a level of the tail, with tables by point.
struct TailLevel {
  const int* at;                   // its place
  const Around* around;
  const Restricting* restricting;  // from the finer level, if it is one of the tail
  const Correcting* correcting;    // from the coarser level
  float h, q, gain;                // gain: of the restriction to the coarser level
  int points;
};

// Tail is the argument of the kernel tail.
struct Tail {
  const float* weights;  // of the sweeps on the way down, and on the way up
  const int* outside;    // where the points of the first level lie in the following two
  const float* fromB;
  float* toU;
  Factors factors;       // of the coarsest level, whose points are in the order of its blocks and slots
  int count, values;     // levels; values of them, an even number
  TailLevel levels[kTailLevels];
};

// Arrays are u, v and b of all levels.
struct Arrays {
  float* const u;
  const int values;
  __device__ __forceinline__ float* v() const { return u + values; }
  __device__ __forceinline__ float* b() const { return u + 2 * values; }
};

// Points are a thread's points of a level: every kTailThreads-th one.
template <int N> struct Points {
  const TailLevel& l;
  const Arrays m;
  const int points;
  const float h, q;
  int at[N];
  Around around[N];
  float b[N], u[N];

  __device__ __forceinline__ Points(const TailLevel& l, Arrays m) : l(l), m(m), points(l.points), h(l.h), q(l.q) {
    each([&](int k) {
      const int i = threadIdx.x + k * kTailThreads;
      at[k] = l.at[i], around[k] = l.around[i];
      b[k] = m.b()[at[k]], u[k] = m.v()[at[k]];
    });
  }
  // each calls f(k) for each point.
  template <class F> __device__ __forceinline__ void each(F&& f) const {
#pragma unroll
    for (int k = 0; k < N; k++)
      if ((int)threadIdx.x + k * kTailThreads < points) f(k);
  }
  // defect returns d of a point.
  __device__ __forceinline__ float defect(int k, const float* from) const {
    const Around& a = around[k];
    return ::defect(h, q, b[k], u[k], from[a.west], from[a.east], from[a.north], from[a.south]);
  }
  __device__ __forceinline__ void sweep(float w, const float* from, float* to) {
    each([&](int k) {
      const float d = defect(k, from);
      to[at[k]] = u[k] = fused(w, d, u[k]);
    });
    __syncthreads();
  }
  // sweeps does n sweeps, from v to u and back.
  __device__ __forceinline__ void sweeps(const float* weights, int n) {
    float next = n > 0 ? weights[0] : 0;
#pragma unroll 1
    for (int k = 0; k < n; k += 2) {
      const float w = next, second = k + 1 < n ? weights[k + 1] : 0;
      sweep(w, m.v(), m.u);
      if (k + 1 == n) break;
      next = k + 2 < n ? weights[k + 2] : 0;
      sweep(second, m.u, m.v());
    }
  }
  // defects sets v to d of u.
  __device__ __forceinline__ void defects() {
    each([&](int k) {
      const float d = defect(k, m.u);
      m.v()[at[k]] = d;
    });
    __syncthreads();
  }
};

// right_side returns b of point i of a level.
__device__ __forceinline__ float right_side(const Tail& a, int level, Arrays m, int i) {
  if (level == 0) return a.fromB[a.outside[i]];
  const Restricting r = a.levels[level].restricting[i];
  const float* const d = m.v();
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kTaps; j++) {
    float column = 0;
#pragma unroll
    for (int k = 0; k < kTaps; k++) column = fused(r.wy[k], d[r.rows[k] + r.columns[j]], column);
    sum = fused(r.wx[j], column, sum);
  }
  return fused(a.levels[level - 1].gain, sum, 0.f);
}

// correction returns that of point i of a level, from u or v of the coarser one.
__device__ __forceinline__ float correction(const TailLevel& l, const float* from, int i) {
  const Correcting c = l.correcting[i];
  const float t0 = fused(c.wy, from[c.sw] - from[c.nw], from[c.nw]);
  const float t1 = fused(c.wy, from[c.se] - from[c.ne], from[c.ne]);
  return fused(c.wx, t1 - t0, t0);
}

// visit does the sweeps of a level, from v. n of them are left, which begin with weights[0].
template <int N>
__device__ __forceinline__ void visit(const TailLevel& l, Arrays m, const float* weights, int n, bool down) {
  Points<N> p(l, m);
  p.sweeps(weights, n);
  if (down) p.defects();
}

// solve_coarsest sets u of the coarsest level.
__device__ __forceinline__ void solve_coarsest(const Tail& a, const Factors& f, Arrays m) {
  const TailLevel& l = a.levels[a.count - 1];
#pragma unroll 1
  for (int i = threadIdx.x; i < l.points; i += kTailThreads) f.set(i, right_side(a, a.count - 1, m, i));
  solve(f);
#pragma unroll 1
  for (int i = threadIdx.x; i < l.points; i += kTailThreads) m.u[l.at[i]] = f.solution(i);
  __syncthreads();
}

// run_tail leaves the solution of a level in v on the way up, and that of the coarsest level in u.
__device__ __forceinline__ void run_tail(const Tail& a) {
  DYNAMIC_SHARED(shared);
  const Arrays m = {(float*)shared, a.values};
  const int last = a.count - 1;
#pragma unroll 1
  for (int i = threadIdx.x; i < a.values; i += kTailThreads) m.u[i] = 0, m.v()[i] = 0;
  const Factors factors = a.factors.brought((double*)(m.b() + a.values));
  __syncthreads();
  const float *const wayDown = a.weights, *const wayUp = wayDown + kSmooth;
  const float* solution = m.u;
#pragma unroll 1
  for (int visited = 0; visited <= 2 * last; visited++) {
    if (visited == last) {
      solve_coarsest(a, factors, m);
      continue;
    }
    const bool up = visited > last;
    const int level = up ? 2 * last - visited : visited;
    const TailLevel& l = a.levels[level];
    const float* const weights = up ? wayUp : wayDown;
    const float w = weights[0];
#pragma unroll 1
    for (int i = threadIdx.x; i < l.points; i += kTailThreads) {
      const int at = l.at[i];
      if (up) {
        m.v()[at] = m.u[at] + correction(l, solution, i);
      } else {  // the first sweep, from 0
        const float b = right_side(a, level, m, i);
        m.b()[at] = b, m.v()[at] = fused(w, b, 0.f);
      }
    }
    if (up) solution = m.v();
    __syncthreads();
    const float* const rest = up ? weights : weights + 1;
    const int n = up ? kSmooth : kSmooth - 1;
    if (l.points <= kTailThreads) visit<1>(l, m, rest, n, !up);
    else visit<kTailPoints>(l, m, rest, n, !up);
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < a.levels[0].points; i += kTailThreads)
    a.toU[a.outside[i]] = solution[a.levels[0].at[i]];
}
