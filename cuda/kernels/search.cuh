// A step of conjugate gradients on level 0: the scalar products, and the change of direction and field.
// solver/multigrid/search.go defines both. The structs have twins in ../search.go. Arrays begin where row 0 of the mesh
// is or would be.
#pragma once
#include "dot.cuh"
#include "multigrid_rows.cuh"

constexpr int kProducts = 5;
constexpr int kProductWarps = 4;                           // of a block
constexpr int kProductStep = (kWarp - 2) * kGroupColumns;  // distance of two strips: the outer lanes serve neighbours
constexpr int kStepThreads = 256;                          // of a block, each with two columns

// ProductSums is the argument of the kernels search_products*: 24 bytes read a point, and 8 of the source.
struct ProductSums {
  const double *u, *x, *p, *b;  // the fields after and before the cycle, the direction, the source
  unsigned long long* sums;     // kDotWords for each of zz, zp, pp, zx, px; the kernel adds to them
  double h, q;
  DotUnit unit;
  int pitch, nx;
  int lo, hi;                       // rows to sum over
  int columnLo, columnHi;           // columns that are swept
  int halfRows[2], halfColumns[2];  // where d counts half, at both walls; far from the mesh for none
  int strips, segments;             // strips of columns, parts of rows
  Span rows, columns;
};

// LaneColumns are those of a lane. kEdge: some of the warp's lie elsewhere or are not swept.
template <bool kEdge> struct LaneColumns {
  static constexpr int W = kGroupColumns;
  using R = Row<double, W>;
  int x;
  int at[W];       // kEdge: where their values are found
  double half[W];  // kEdge: how much d counts; 0 in columns that are not swept

  __device__ __forceinline__ LaneColumns(const ProductSums& a, int first) : x(first) {
    if (kEdge)
      for (int j = 0; j < W; j++) {
        const int c = x + j;
        at[j] = a.columns.held(min(max(c, -1), a.nx));
        half[j] = c < a.columnLo || c >= a.columnHi ? 0 : c == a.halfColumns[0] || c == a.halfColumns[1] ? 0.5 : 1;
      }
  }
  __device__ __forceinline__ R load(const double* row) const {
    R r;
    for (int j = 0; j < W; j += kEdge ? 1 : 2)
      if (kEdge) r.v[j] = row[at[j]];
      else load16(r.v + j, row + x + j);
    return r;
  }
  // weigh makes d of a row count as much as it has to.
  __device__ __forceinline__ void weigh(R& d, bool halfRow) const {
    for (int j = 0; j < W; j++) {
      if (halfRow) d.v[j] *= 0.5;
      if (kEdge) d.v[j] = half[j] == 0 ? 0 : d.v[j] * half[j];
    }
  }
};

// Lines are a row of what the products are made of.
struct Lines {
  Row<double, kGroupColumns> u, x, p, b;
};

template <bool kEdge, bool kSource>
__device__ __forceinline__ Lines lines(const ProductSums& a, const LaneColumns<kEdge>& columns, int y) {
  const ptrdiff_t at = (ptrdiff_t)a.rows.held(y) * a.pitch;
  Lines l = {columns.load(a.u + at), columns.load(a.x + at), columns.load(a.p + at)};
  if (kSource) l.b = columns.load(a.b + at);
  return l;
}

// product returns what a row adds to the sum of a group.
__device__ __forceinline__ double product(const double* v, const double* d) {
  return fused(d[1], v[1], d[0] * v[0]) + fused(d[3], v[3], d[2] * v[2]);
}

// sum_rows adds the products of rows [lo, hi), which are whole groups of the stripe, to those of the device.
template <bool kEdge, bool kSource>
__device__ __forceinline__ void sum_rows(const ProductSums& a, int first, int lo, int hi, char* shared, int lane) {
  using R = Row<double, kGroupColumns>;
  const LaneColumns<kEdge> columns(a, first + kGroupColumns * lane);
  const bool counts = lane > 0 && lane < kWarp - 1;
  Dots<kProducts> dots;
  dots.begin(shared, lane);
  double acc[kProducts] = {};
  const R none = zeros<double, kGroupColumns>();
  // z, p and x in three rows, the middle one of which is y, and b in the last two.
  R z[3] = {}, p[3] = {}, x[3] = {}, b[2] = {};
  const auto take = [&](const Lines& l) {
    z[0] = z[1], p[0] = p[1], x[0] = x[1], b[0] = b[1];
    z[1] = z[2], p[1] = p[2], x[1] = x[2], b[1] = kSource ? l.b : none;
    p[2] = l.p, x[2] = l.x;
    for (int j = 0; j < kGroupColumns; j++) z[2].v[j] = l.u.v[j] - l.x.v[j];
  };
  take(lines<kEdge, kSource>(a, columns, lo - 1));
  take(lines<kEdge, kSource>(a, columns, lo));
  Lines ahead = lines<kEdge, kSource>(a, columns, lo + 1);
  for (int y = lo; y < hi; y++) {
    take(ahead);
    ahead = lines<kEdge, kSource>(a, columns, y + 2);
    const bool half = y == a.halfRows[0] || y == a.halfRows[1];
    R dz = defect(z[0], z[1], z[2], none, a.h, a.q), dp = defect(p[0], p[1], p[2], none, a.h, a.q);
    R dx = defect(x[0], x[1], x[2], b[0], a.h, a.q);
    columns.weigh(dz, half), columns.weigh(dp, half), columns.weigh(dx, half);
    acc[0] += product(z[1].v, dz.v), acc[1] += product(z[1].v, dp.v), acc[2] += product(p[1].v, dp.v);
    acc[3] += product(z[1].v, dx.v), acc[4] += product(p[1].v, dx.v);
    if ((y + 1) % kGroupRows && y + 1 < hi) continue;
#pragma unroll
    for (int k = 0; k < kProducts; k++) {
      if (counts) dots.add(k, acc[k], a.unit);
      acc[k] = 0;
    }
  }
  dots.flush(a.sums, lane);
}

template <bool kSource> __device__ __forceinline__ void sum_products(const ProductSums& a) {
  DYNAMIC_SHARED(shared);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, id = blockIdx.x * kProductWarps + warp;
  if (id >= a.strips * a.segments) return;
  const int strip = id % a.strips, segment = id / a.strips;
  // Groups are cut by nothing but the ends of the stripe.
  const int top = a.lo / kGroupRows, groups = (a.hi + kGroupRows - 1) / kGroupRows - top;
  const int lo = max(a.lo, (top + (int)((long long)groups * segment / a.segments)) * kGroupRows);
  const int hi = min(a.hi, (top + (int)((long long)groups * (segment + 1) / a.segments)) * kGroupRows);
  const int first = strip * kProductStep - kGroupColumns;
  char* const own = shared + warp * Dots<kProducts>::kBytes;
  const bool inner = first > a.columnLo && first + kWarp * kGroupColumns < a.columnHi;
  if (inner) sum_rows<false, kSource>(a, first, lo, hi, own, lane);
  else sum_rows<true, kSource>(a, first, lo, hi, own, lane);
}

// Step is the argument of the kernel search_step: 24 bytes read and 24 written a point.
struct Step {
  double *u, *x, *p;
  double a, b;
  int pitch, nx;
  int lo, hi;           // rows
  int strips, segment;  // blocks next to each other; rows of a block
};

// step_columns sets p = fma(a, u - x, b p), and u and x to x + p.
__device__ __forceinline__ void step_columns(const Step& s) {
  const int column = (blockIdx.x % s.strips * kStepThreads + threadIdx.x) * 2;
  if (column >= s.nx) return;
  const int lo = s.lo + blockIdx.x / s.strips * s.segment, hi = min(lo + s.segment, s.hi);
#pragma unroll 4
  for (int y = lo; y < hi; y++) {
    const ptrdiff_t at = (ptrdiff_t)y * s.pitch + column;
    double u[2], x[2], p[2];
    load16(u, s.u + at), load16(x, s.x + at), load16(p, s.p + at);
#pragma unroll
    for (int j = 0; j < 2; j++) p[j] = fused(s.a, u[j] - x[j], s.b * p[j]), u[j] = x[j] + p[j];
    if (column + 1 == s.nx) p[1] = u[1] = 0;  // behind the row
    store16(s.p + at, p), store16(s.u + at, u), store16(s.x + at, u);
  }
}
