// The levels of a weighted operator: stencils, interpolation, scaling and what cycles read of them. A thread has a
// point of a level, or a coarse point and the nine fine ones on which it lies and that lie next to it.
#pragma once
#include "weighted_level.cuh"

constexpr double kMinimal = 0x1p-240;  // the least C of a coarse point that is an unknown

// load_point sets C to 0 at a point that is not an unknown, makes b the product of C and the source, and sets the
// copies of the point in its row.
__device__ __forceinline__ void load_point(const WeightedArg<double>& a) {
  const ThreadPoint at(a);
  if (!at.ok || at.x >= a.fine.nx) return;
  const ptrdiff_t row = (ptrdiff_t)at.y * a.fine.pitch;
  const unsigned* const fixed = a.fixed + (ptrdiff_t)(at.y - a.fine.rowLo) * a.fixedPitch;
  int y = at.y, x = at.x;
  const bool swept = a.fine.find(y, x);
  if (x != at.x) return;  // a copy
  const double c = swept && !(a.fixed && fixed[x >> 5] >> (x & 31) & 1) ? a.centre[row + x] : 0;
  const auto set = [&](double* to, double v) { a.fine.storeInRow(to + row, x, v); };
  set(a.b, a.b[row + x] * c), set(a.centre, c);
  set(a.to, a.to[row + x]), set(a.east, a.east[row + x]), set(a.south, a.south[row + x]);
}

// Stencil reads the stencil of a level, 0 for points that are not unknowns.
template <bool kFinest> struct Stencil {
  const Grid& grid;
  const Equations& e;

  __device__ __forceinline__ double at(const double* a, int y, int x) const {
    return grid.find(y, x) ? a[(ptrdiff_t)y * grid.widePitch + x] : 0;
  }
  __device__ __forceinline__ double c(int y, int x) const { return at(e.c, y, x); }
  // s returns the coupling of a point to the one dy rows below it and dx columns behind it.
  __device__ __forceinline__ double s(int y, int x, int dy, int dx) const {
    if (dy < 0 || (dy == 0 && dx < 0)) y += dy, x += dx, dy = -dy, dx = -dx;
    if (kFinest) {
      if ((dy && dx) || !(c(y, x) > 0) || !(c(y + dy, x + dx) > 0)) return 0;
      return at(dy ? e.s : e.e, y, x);
    }
    return at(dy == 0 ? e.e : dx == 0 ? e.s : dx > 0 ? e.se : e.sw, y, x);
  }
  // line returns P of a point between two coarse ones, dy rows and dx columns away from it, for one of these.
  __device__ double line(int y, int x, int dy, int dx) const {
    const double centre = c(y, x);
    if (!(centre > 0)) return 0;
    const double w = s(y, x, 0, -1), e = s(y, x, 0, 1), n = s(y, x, -1, 0), so = s(y, x, 1, 0);
    const double nw = s(y, x, -1, -1), ne = s(y, x, -1, 1), sw = s(y, x, 1, -1), se = s(y, x, 1, 1);
    const double before = dx ? fabs((nw + w) + sw) : fabs((nw + n) + ne);
    const double after = dx ? fabs((ne + e) + se) : fabs((sw + so) + se);
    const double total = (before + after) + fmax(0., centre - (((w + e) + (n + so)) + ((nw + ne) + (sw + se))));
    return total == 0 ? 0 : (dy + dx < 0 ? before : after) / total;
  }
  // cross returns P of a point between columns and rows for the coarse point dy rows and dx columns away from it.
  // `row` and `column` are the P for it of the points next to it in its row and in its column.
  __device__ double cross(int y, int x, int dy, int dx, double row, double column) const {
    const double centre = c(y, x);
    if (!(centre > 0)) return 0;
    return fused(s(y, x, 0, dx), column, fused(s(y, x, dy, 0), row, s(y, x, dy, dx))) / centre;
  }
};

// interpolate_point computes P of a coarse point.
template <bool kFinest, class Arg> __device__ __forceinline__ void interpolate_point(const Arg& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.coarse)) return;
  const Stencil<kFinest> s{a.fine, a.own};
  const int y = a.y.on(at.y), x = a.x.on(at.x);
  double p[9] = {};
  if (s.c(y, x) > 0) {
    p[4] = 1;
    for (int d = -1; d <= 1; d += 2) {
      if (a.x.beside(at.x, d)) p[4 + d] = s.line(y, x + d, 0, -d);
      if (a.y.beside(at.y, d)) p[4 + 3 * d] = s.line(y + d, x, -d, 0);
    }
    for (int dy = -1; dy <= 1; dy += 2)
      for (int dx = -1; dx <= 1; dx += 2)
        if (a.x.beside(at.x, dx) && a.y.beside(at.y, dy))
          p[4 + 3 * dy + dx] = s.cross(y + dy, x + dx, -dy, -dx, p[4 + dx], p[4 + 3 * dy]);
  }
  for (int k = 0; k < 9; k++) a.coarse.store(a.p.of(k), a.coarse.widePitch, at.y, at.x, p[k]);
}

// Galerkin computes A of two coarse points.
template <bool kFinest, class Arg> struct Galerkin {
  const Arg& a;
  const Stencil<kFinest> s{a.fine, a.own};

  __device__ __forceinline__ double p(int row, int column, int dy, int dx) const {
    return a.coarse.find(row, column) ? a.p.of(4 + 3 * dy + dx)[(ptrdiff_t)row * a.coarse.widePitch + column] : 0;
  }
  // times_p returns AP of a fine and a coarse point.
  __device__ double times_p(int y, int x, int row, int column) const {
    const int onY = a.y.on(row), onX = a.x.on(column);
    double sum = 0;
    for (int dy = -1; dy <= 1; dy++) {
      const int down = y + dy - onY;
      if (down < -1 || down > 1 || !a.y.beside(row, down)) continue;
      for (int dx = -1; dx <= 1; dx++) {
        const int right = x + dx - onX;
        if (right < -1 || right > 1 || !a.x.beside(column, right)) continue;
        sum = fused(dy || dx ? -s.s(y, x, dy, dx) : s.c(y, x), p(row, column, down, right), sum);
      }
    }
    return sum;
  }
  __device__ double product(int row, int column, int toRow, int toColumn) const {
    int r = toRow, c = toColumn;
    if (!a.coarse.find(r, c)) return 0;
    const int y = a.y.on(row), x = a.x.on(column);
    double sum = 0;
    for (int dy = -1; dy <= 1; dy++)
      for (int dx = -1; dx <= 1; dx++)
        if (a.y.beside(row, dy) && a.x.beside(column, dx))
          sum = fused(p(row, column, dy, dx), times_p(y + dy, x + dx, toRow, toColumn), sum);
    return sum;
  }
};

// coarsen_point computes the stencil of a coarse point.
template <bool kFinest, class Arg> __device__ __forceinline__ void coarsen_point(const Arg& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.coarse)) return;
  const Galerkin<kFinest, Arg> g{a};
  const int y = at.y, x = at.x;
  const double c = g.product(y, x, y, x);
  const auto store = [&](double* to, double v) { a.coarse.store(to, a.coarse.widePitch, y, x, v); };
  store(a.next.c, c >= kMinimal ? c : 0);
  store(a.next.e, 0 - g.product(y, x, y, x + 1));
  store(a.next.s, 0 - g.product(y, x, y + 1, x));
  store(a.next.se, 0 - g.product(y, x, y + 1, x + 1));
  store(a.next.sw, 0 - g.product(y, x, y + 1, x - 1));
}

// scale_point computes h of a point and, unless it is null, g.
__device__ __forceinline__ void scale_point(const WeightedArg<float>& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.fine)) return;
  const Stencil<false> s{a.fine, a.own};
  const int y = at.y, x = at.x;
  const auto root = [&](int dy, int dx) {
    const double c = s.c(y + dy, x + dx);
    return c > 0 ? 1 / sqrt(c) : 0;
  };
  const double c = s.c(y, x), own = root(0, 0);
  double h = 0;
  if (c > 0) {
    double sum = 0;
    const auto add = [&](int dy, int dx) { sum = fused(fabs(s.s(y, x, dy, dx)), own * root(dy, dx), sum); };
    add(0, -1), add(0, 1), add(-1, 0), add(1, 0), add(-1, -1), add(-1, 1), add(1, -1), add(1, 1);
    h = sqrt(c * fmax(1., sum));
  }
  a.fine.store(a.own.h, a.fine.widePitch, y, x, h);
  if (a.own.g) a.fine.store(a.own.g, a.fine.widePitch, y, x, c > 0 ? 1 / h : 0);
}

// complete_point computes q and the couplings of a point.
__device__ __forceinline__ void complete_point(const WeightedArg<float>& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.fine)) return;
  const Stencil<false> s{a.fine, a.own};
  const int y = at.y, x = at.x;
  const double g = s.at(a.own.g, y, x);
  const auto set = [&](float* to, double v, int dy, int dx) {
    a.fine.store(to, a.fine.pitch, y, x, (float)(v * (g * s.at(a.own.g, y + dy, x + dx))));
  };
  set(a.centre, s.c(y, x), 0, 0);
  set(a.east, s.s(y, x, 0, 1), 0, 1);
  set(a.south, s.s(y, x, 1, 0), 1, 0);
  set(a.southEast, s.s(y, x, 1, 1), 1, 1);
  set(a.southWest, s.s(y, x, 1, -1), 1, -1);
}

// transfer_point computes P' of a coarse point.
template <bool kFinest, class Arg> __device__ __forceinline__ void transfer_point(const Arg& a) {
  const ThreadPoint at(a);
  if (!at.swept(a.coarse)) return;
  const Stencil<false> fine{a.fine, a.own};
  const int y = a.y.on(at.y), x = a.x.on(at.x);
  const ptrdiff_t i = (ptrdiff_t)at.y * a.coarse.widePitch + at.x;
  const double g = a.next.g[i];
  for (int k = 0; k < 9; k++) {
    const double by = kFinest ? g : fine.at(a.own.h, y + k / 3 - 1, x + k % 3 - 1) * g;
    a.coarse.store(a.transfer.of(k), a.coarse.pitch, at.y, at.x, (float)(a.p.of(k)[i] * by));
  }
}
