// The levels of a weighted operator: stencils, interpolation, scaling and what cycles read of them. A thread has a
// point of a level, or a coarse point and the nine fine ones on which it lies and that lie next to it. P is computed
// where it is needed: to read it from memory takes longer.
#pragma once
#include "weighted_level.cuh"

constexpr double kMinimal = 0x1p-240;  // the least C of a coarse point that is an unknown

// Assembly is the argument of weighted_assemble, with the numbers of solver.Assembly. `level` is that of level 0, of
// which `from` has the coefficient of the points and `centre` the right-hand side.
struct Assembly {
  WeightedArg<double> level;
  double hx, hy, unit;
};

// assemble_point computes the source, C and the couplings of a point.
__device__ __forceinline__ void assemble_point(const Assembly& s) {
  const WeightedArg<double>& a = s.level;
  const ThreadPoint at(a);
  const int x = at.x, last = a.fine.nx - 1;
  if (!at.ok || x > last) return;
  const ptrdiff_t i = (ptrdiff_t)at.y * a.fine.pitch + x;
  const double own = a.from[i];
  const auto face = [&](ptrdiff_t step, double h) {
    const double other = a.from[i + step];
    return 2 * own * other / (own + other) / (h * h);
  };
  const auto scaled = [&](double v) { return v * s.hx * s.hy * s.unit; };
  const double w = face(x > 0 ? -1 : 1, s.hx), e = face(x < last ? 1 : -1, s.hx);
  const double n = face(-a.fine.pitch, s.hy), so = face(a.fine.pitch, s.hy), d = (w + e) + (n + so);
  const bool swept = at.swept(a.fine);
  const double part = swept && (x == 0 || x == last) ? 0.5 : 1;
  a.b[i] = swept ? a.centre[i] / d : 0;
  a.centre[i] = swept ? scaled(d * part) : 0;
  a.east[i] = x < last ? scaled(e) : 0;
  a.south[i] = scaled(so * part);
}

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

// The arrays of a stencil, in the order of Equations.
enum { kC, kE, kS, kSE, kSW };

// HeldValues are the stencil of a level in memory, 0 for points that are not held and swept.
struct HeldValues {
  const Grid& grid;
  const Equations& e;

  __device__ __forceinline__ double of(const double* a, int y, int x) const {
    return grid.find(y, x) ? a[(ptrdiff_t)y * grid.widePitch + x] : 0;
  }
  __device__ __forceinline__ double at(int k, int y, int x) const {
    return of(k == kC ? e.c : k == kE ? e.e : k == kS ? e.s : k == kSE ? e.se : e.sw, y, x);
  }
};

// Coarse points of a block, one a thread, and the most fine points that lie on them or up to three away.
constexpr int kSetupColumns = 32, kSetupRows = kPointThreads / kSetupColumns;
constexpr int kFineColumns = 2 * kSetupColumns + 6, kFineRows = 2 * kSetupRows + 4;
constexpr int kFinePoints = kFineRows * kFineColumns;

// FineValues are the stencil of these fine points in shared memory, with its excesses, rows and columns counted from
// those of the first one. Even columns of a row lie before odd ones: neighbouring threads read every other column.
template <bool kFinest> struct FineValues {
  static constexpr int kExcess = kFinest ? 3 : 5, kBytes = (kExcess + 1) * kFinePoints * 8;
  double* all;

  __device__ __forceinline__ static int place(int y, int x) {
    return y * kFineColumns + (x & 1) * (kFineColumns / 2) + (x >> 1);
  }
  __device__ __forceinline__ double& at(int k, int y, int x) const { return all[k * kFinePoints + place(y, x)]; }

  // load loads the values of the points from (top, left) on.
  __device__ __forceinline__ void load(const Grid& g, const Equations& e, int top, int left) const {
    for (int i = threadIdx.x; i < kFinePoints; i += kPointThreads) {
      int y = top + i / kFineColumns, x = left + i % kFineColumns;
      const int to = place(i / kFineColumns, i % kFineColumns);
      g.find(y, x);
      const bool held = g.held(y, x);
      const ptrdiff_t from = (ptrdiff_t)y * g.widePitch + x;
      all[kC * kFinePoints + to] = held ? e.c[from] : 0;
      all[kE * kFinePoints + to] = held ? e.e[from] : 0;
      all[kS * kFinePoints + to] = held ? e.s[from] : 0;
      if (kFinest) continue;
      all[kSE * kFinePoints + to] = held ? e.se[from] : 0;
      all[kSW * kFinePoints + to] = held ? e.sw[from] : 0;
    }
    __syncthreads();
  }
};

// Stencil is the stencils of points, with S to diagonal neighbours or without.
template <class Values, bool kDiagonals> struct Stencil {
  Values values;

  __device__ __forceinline__ double c(int y, int x) const { return values.at(kC, y, x); }
  // s returns the coupling of a point to the one dy rows below it and dx columns behind it.
  __device__ __forceinline__ double s(int y, int x, int dy, int dx) const {
    if (dy < 0 || (dy == 0 && dx < 0)) y += dy, x += dx, dy = -dy, dx = -dx;
    if (!kDiagonals && dy && dx) return 0;
    return values.at(dy == 0 ? kE : dx == 0 ? kS : dx > 0 ? kSE : kSW, y, x);
  }
  // excess returns what C exceeds the sum of the couplings by; 0 at a point that is not an unknown.
  __device__ __forceinline__ double excess(int y, int x) const {
    const double sum = ((s(y, x, 0, -1) + s(y, x, 0, 1)) + (s(y, x, -1, 0) + s(y, x, 1, 0))) +
                       ((s(y, x, -1, -1) + s(y, x, -1, 1)) + (s(y, x, 1, -1) + s(y, x, 1, 1)));
    return fmax(0., c(y, x) - sum);
  }
  // line returns P of a point between two coarse ones, dy rows and dx columns away from it, for one of these.
  __device__ __forceinline__ double line(int y, int x, int dy, int dx) const {
    const double centre = c(y, x);
    if (!(centre > 0)) return 0;
    const double w = s(y, x, 0, -1), e = s(y, x, 0, 1), n = s(y, x, -1, 0), so = s(y, x, 1, 0);
    const double nw = s(y, x, -1, -1), ne = s(y, x, -1, 1), sw = s(y, x, 1, -1), se = s(y, x, 1, 1);
    const auto excess = [&](int d) { return values.at(Values::kExcess, y + d * dy, x + d * dx); };
    const double before = dx ? fabs((nw + w) + sw) : fabs((nw + n) + ne);
    const double after = dx ? fabs((ne + e) + se) : fabs((sw + so) + se);
    const double total = (before + after) + fmax(0., excess(0) - fmin(excess(-1), excess(1)));
    return total == 0 ? 0 : (dy + dx < 0 ? before : after) / total;
  }
  // cross returns P of a point between columns and rows for the coarse point dy rows and dx columns away from it.
  // `row` and `column` are the P for it of the points next to it in its row and in its column.
  __device__ __forceinline__ double cross(int y, int x, int dy, int dx, double row, double column) const {
    const double centre = c(y, x);
    if (!(centre > 0)) return 0;
    return fused(s(y, x, 0, dx), column, fused(s(y, x, dy, 0), row, s(y, x, dy, dx))) / centre;
  }
};

// SetupTile is the coarse points of a block. All its threads make it.
template <bool kFinest, class Arg> struct SetupTile {
  const Arg& a;
  const int y, x;         // the coarse point of the thread
  const int top, left;    // the first fine point
  const int fineY, fineX; // where the point lies, counted from the first one
  const Stencil<FineValues<kFinest>, !kFinest> s;

  // Blocks have `columns` coarse columns of their own from column `first` on, and `rows` rows.
  __device__ __forceinline__ SetupTile(const Arg& a, int first, int columns, int rows, char* shared)
      : a(a),
        y(a.lo + (int)(blockIdx.x / a.strips) * rows + (int)threadIdx.x / kSetupColumns),
        x(first + (int)(blockIdx.x % a.strips) * columns + (int)threadIdx.x % kSetupColumns),
        top(a.y.on(y - (int)threadIdx.x / kSetupColumns) - 3),
        left(a.x.on(x - (int)threadIdx.x % kSetupColumns) - 3),
        fineY(a.y.on(y) - top), fineX(a.x.on(x) - left), s{{(double*)shared}} {
    s.values.load(a.fine, a.own, top, left);
    for (int i = threadIdx.x; i < kFinePoints; i += kPointThreads) {
      const int y = i / kFineColumns, x = i % kFineColumns;
      if (y > 0 && x > 0 && x + 1 < kFineColumns) s.values.at(FineValues<kFinest>::kExcess, y, x) = s.excess(y, x);
    }
    __syncthreads();
  }

  // interpolate computes P of the point.
  __device__ __forceinline__ void interpolate(double (&p)[9]) const {
    for (double& v : p) v = 0;
    int row = y, column = x;
    if (!a.coarse.find(row, column) || !(s.c(fineY, fineX) > 0)) return;
    p[4] = 1;
    const bool beside[2][2] = {{a.y.beside(y, -1), a.y.beside(y, 1)}, {a.x.beside(x, -1), a.x.beside(x, 1)}};
#pragma unroll
    for (int d = -1; d <= 1; d += 2) {
      if (beside[1][d > 0]) p[4 + d] = s.line(fineY, fineX + d, 0, -d);
      if (beside[0][d > 0]) p[4 + 3 * d] = s.line(fineY + d, fineX, -d, 0);
    }
#pragma unroll
    for (int dy = -1; dy <= 1; dy += 2)
#pragma unroll
      for (int dx = -1; dx <= 1; dx += 2)
        if (beside[0][dy > 0] && beside[1][dx > 0])
          p[4 + 3 * dy + dx] = s.cross(fineY + dy, fineX + dx, -dy, -dx, p[4 + dx], p[4 + 3 * dy]);
  }
};

// Galerkin computes A of the coarse point of a thread and another one.
template <bool kFinest, class Arg> struct Galerkin {
  const SetupTile<kFinest, Arg>& tile;
  const double (&own)[9];  // P of the point
  const double* p;         // of those of a block: nine times kPointThreads

  // other returns P of the point jy rows and jx columns behind the thread's.
  __device__ __forceinline__ double other(int k, int jy, int jx) const {
    return p[k * kPointThreads + (int)threadIdx.x + jy * kSetupColumns + jx];
  }
  // product does so if that point lies stepY rows and stepX columns behind the thread's on the fine level. Where these
  // are constants, so is all that decides.
  __device__ __forceinline__ double product(int jy, int jx, int stepY, int stepX) const {
    double sum = 0;
#pragma unroll
    for (int k = 0; k < 9; k++) {
      const int dy = k / 3 - 1, dx = k % 3 - 1;
      double ap = 0;
      bool any = false;
#pragma unroll
      for (int n = 0; n < 9; n++) {
        const int ny = n / 3 - 1, nx = n % 3 - 1, down = dy + ny - stepY, right = dx + nx - stepX;
        if (down < -1 || down > 1 || right < -1 || right > 1 || (kFinest && ny && nx)) continue;
        const int y = tile.fineY + dy, x = tile.fineX + dx, at = 4 + 3 * down + right;
        ap = fused(n == 4 ? tile.s.c(y, x) : -tile.s.s(y, x, ny, nx), jy || jx ? other(at, jy, jx) : own[at], ap);
        any = true;
      }
      if (any) sum = fused(own[k], ap, sum);
    }
    return sum;
  }
};

// coarsen_point computes the stencil of a coarse point. A row and two columns of the threads serve the others alone.
template <bool kFinest, class Arg> __device__ __forceinline__ void coarsen_point(const Arg& a) {
  DYNAMIC_SHARED(shared);
  const SetupTile<kFinest, Arg> tile(a, -1, kSetupColumns - 2, kSetupRows - 1, shared);
  double own[9];
  tile.interpolate(own);
  double* const p = (double*)(shared + FineValues<kFinest>::kBytes);
  for (int k = 0; k < 9; k++) p[k * kPointThreads + (int)threadIdx.x] = own[k];
  __syncthreads();
  const int row = threadIdx.x / kSetupColumns, column = threadIdx.x % kSetupColumns, y = tile.y, x = tile.x;
  if (row + 1 == kSetupRows || column == 0 || column + 1 == kSetupColumns || y >= a.hi) return;
  if (x < a.coarse.lo || x >= a.coarse.hi) return;
  const Galerkin<kFinest, Arg> g{tile, own, p};
  const int stepY = a.y.on(y + 1) - a.y.on(y), west = a.x.on(x - 1) - a.x.on(x), east = a.x.on(x + 1) - a.x.on(x);
  const auto store = [&](double* to, double v) { a.coarse.store(to, a.coarse.widePitch, y, x, v); };
  const auto all = [&](int stepY, int west, int east) {
    const double c = g.product(0, 0, 0, 0);
    store(a.next.c, c >= kMinimal ? c : 0);
    store(a.next.e, 0 - g.product(0, 1, 0, east));
    store(a.next.s, 0 - g.product(1, 0, stepY, 0));
    store(a.next.se, 0 - g.product(1, 1, stepY, east));
    store(a.next.sw, 0 - g.product(1, -1, stepY, west));
  };
  if (stepY == 2 && west == -2 && east == 2) all(2, -2, 2);
  else all(stepY, west, east);
}

// scale_point computes h of a point and, unless it is null, g.
__device__ __forceinline__ void scale_point(const WeightedArg<float>& a) {
  constexpr int kWidth = kPointColumns + 2;
  __shared__ double roots[(kPointRows + 2) * kWidth];  // 1/sqrt(C), of the points beside those of the block, too
  const Stencil<HeldValues, true> s{{a.fine, a.own}};
  const int top = a.lo + (int)(blockIdx.x / a.strips) * kPointRows, left = blockIdx.x % a.strips * kPointColumns;
  for (int i = threadIdx.x; i < (kPointRows + 2) * kWidth; i += kPointThreads) {
    const double c = s.c(top - 1 + i / kWidth, left - 1 + i % kWidth);
    roots[i] = c > 0 ? 1 / sqrt(c) : 0;
  }
  __syncthreads();
  const ThreadPoint at(a);
  if (!at.swept(a.fine)) return;
  const int y = at.y, x = at.x;
  const auto root = [&](int dy, int dx) { return roots[(1 + y - top + dy) * kWidth + 1 + x - left + dx]; };
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
  const Stencil<HeldValues, true> s{{a.fine, a.own}};
  const int y = at.y, x = at.x;
  const double g = s.values.of(a.own.g, y, x);
  const auto set = [&](float* to, double v, int dy, int dx) {
    a.fine.store(to, a.fine.pitch, y, x, (float)(v * (g * s.values.of(a.own.g, y + dy, x + dx))));
  };
  set(a.centre, s.c(y, x), 0, 0);
  set(a.east, s.s(y, x, 0, 1), 0, 1);
  set(a.south, s.s(y, x, 1, 0), 1, 0);
  set(a.southEast, s.s(y, x, 1, 1), 1, 1);
  set(a.southWest, s.s(y, x, 1, -1), 1, -1);
}

// transfer_point computes P' of a coarse point.
template <bool kFinest, class Arg> __device__ __forceinline__ void transfer_point(const Arg& a) {
  DYNAMIC_SHARED(shared);
  const SetupTile<kFinest, Arg> tile(a, 0, kSetupColumns, kSetupRows, shared);
  const int y = tile.y, x = tile.x;
  if (y >= a.hi || x < a.coarse.lo || x >= a.coarse.hi) return;
  double p[9];
  tile.interpolate(p);
  const HeldValues fine{a.fine, a.own};
  const double g = a.next.g[(ptrdiff_t)y * a.coarse.widePitch + x];
#pragma unroll
  for (int k = 0; k < 9; k++) {
    const int row = tile.top + tile.fineY + k / 3 - 1, column = tile.left + tile.fineX + k % 3 - 1;
    const double by = kFinest ? g : fine.of(a.own.h, row, column) * g;
    a.coarse.store(a.transfer.of(k), a.coarse.pitch, y, x, (float)(p[k] * by));
  }
}
