// The pipe of a warp: kSmooth sweeps over a strip of columns, one behind the other, in one pass over the rows. Sweep k
// takes at each step the row that sweep k-1 made in the step before, so the sweeps of a step do not wait for each
// other.
#pragma once
#include "multigrid_strip.cuh"

// Kind is what distinguishes the kernels.
template <class R, int kColumns, bool source, bool zero, bool up, int ahead> struct Kind {
  using Real = R;
  static constexpr int W = kColumns;          // columns of a lane
  static constexpr bool kSource = source;     // there is a b
  static constexpr bool kZero = zero;         // u is 0 before: the first sweep makes w b
  static constexpr bool kUp = up;             // corrects u first; otherwise restricts d at the end
  static constexpr bool kCounts = !up && !zero;  // sums the squares of the first d
  static constexpr int kAhead = ahead;        // groups of rows that are under way from memory
  static constexpr int kWidth = kWarp * W;
  // Columns at both ends of a strip that belong to its neighbours: a sweep uses up one. The defect takes one more, and
  // the restriction two. Columns are stored four at a time.
  static constexpr int kSide = up ? 4 : 8, kStep = kWidth - 2 * kSide;
  static constexpr int kFirst = zero ? 1 : 0; // the first sweep that reads its neighbours
  // Sweep k makes row y - delay(k) at the step that reads row y. The defect is made as by a sweep kSmooth.
  __host__ __device__ static constexpr int delay(int k) { return 2 * (k - kFirst) + 1; }
  static constexpr int kLast = delay(up ? kSmooth - 1 : kSmooth);
  using U = Ring<Real, W, 0, zero ? 0 : ahead>;
  using B = Ring<Real, W, 3, ahead>;
  static constexpr int kUBytes = zero ? 0 : U::kBytes, kBBytes = source ? B::kBytes : 0;
  static constexpr int kWindow = kWarp * (W + 1);  // coarse columns of a strip, and some more
  static constexpr int kBufferBytes = up ? kPhases * kWindow * 4 : kWidth * 4;
  static constexpr int kBytes = kUBytes + kBBytes + kBufferBytes;  // of shared memory for a warp
};

template <class K> struct Pipe : Strip<typename K::Real, K::W, K::kSide> {
  using Real = typename K::Real;
  static constexpr int W = K::W;
  using R = Row<Real, W>;
  using S = Strip<Real, W, K::kSide>;
  using S::each, S::keeps, S::lane, S::load, S::outer, S::stores, S::x;

  const Smooth<Real>& a;
  int lo, hi;  // rows that this warp writes
  typename K::U u;
  typename K::B b;
  R ring[kSmooth + 1][kPhases];  // [k]: the rows that sweep k reads

  __device__ __forceinline__ explicit Pipe(const Smooth<Real>& a) : a(a) {}

  // begin returns false if there is no work for warp number `id`.
  __device__ __forceinline__ bool begin(int id, char* shared) {
    // The first and the last strip have more parts: their steps cost more.
    const int outers = min(a.strips, 2) * a.outerSegments;
    const int inners = a.strips - 2;
    int strip, part, parts;
    if (id < outers) {
      strip = a.strips > 1 && id % 2 ? a.strips - 1 : 0, part = a.strips > 1 ? id / 2 : id, parts = a.outerSegments;
    } else if (inners > 0) {
      strip = 1 + (id - outers) % inners, part = (id - outers) / inners, parts = a.segments;
    } else {
      return false;
    }
    if (part >= parts) return false;
    const Part rows(a, part, parts);
    lo = rows.lo, hi = rows.hi;
    if (lo >= hi) return false;
    S::take_strip(a, strip);
    u.place(shared, lane), b.place(shared + K::kUBytes, lane);
#pragma unroll
    for (int k = 0; k <= kSmooth; k++)
#pragma unroll
      for (int i = 0; i < kPhases; i++) ring[k][i] = zeros<Real, W>();
    return true;
  }

  // regular reports whether the steps for rows y, y+1 and y+2 meet inner rows and columns only.
  __device__ __forceinline__ bool regular(int y) const {
    return !outer && y - K::kLast - 1 > a.regularLo && y + kPhases * (K::kAhead + 1) < a.regularHi;
  }

  // read fetches row y to the given places.
  template <bool kEdge> __device__ __forceinline__ void read(int y, char* toU, char* toB) const {
    const ptrdiff_t at = (ptrdiff_t)(kEdge ? a.rows.held(y) : y) * a.pitch;
    if (!kEdge || !each) {
      if constexpr (!K::kZero) fetch<Real, W>(toU, a.from + at, load);
      if constexpr (K::kSource) fetch<Real, W>(toB, a.b + at, load);
    } else {
      if constexpr (!K::kZero) fetch_each<Real, W>(toU, a.from + at, x, a.columns);
      if constexpr (K::kSource) fetch_each<Real, W>(toB, a.b + at, x, a.columns);
    }
    copies_commit();
  }
  // fill fetches the rows from y on that are under way before the first step.
  __device__ __forceinline__ void fill(int y) const {
#pragma unroll 1
    for (int i = 0; i < kPhases * K::kAhead; i++)
      read<true>(y + i, u.template at<0>() + i * K::U::kRowBytes, b.template at<0>() + i * K::B::kRowBytes);
  }
  // advance fetches the row that will be needed kAhead groups later, in the step of phase p for row y.
  template <bool kEdge, int p> __device__ __forceinline__ void advance(int y) const {
    constexpr int kPlace = p + kPhases * K::kAhead;
    read<kEdge>(y + kPhases * K::kAhead, u.template at<K::kZero ? 0 : kPlace>(), b.template at<kPlace>());
  }

  // source returns b of the row that is kDelay rows behind that of phase p.
  template <int p, int kDelay> __device__ __forceinline__ R source() const {
    R r = zeros<Real, W>();
    if constexpr (K::kSource) take(r, b.template at<p - kDelay>());
    return r;
  }

  // keep restores the points of row y that no sweep changes.
  template <bool kEdge> __device__ __forceinline__ void keep(R& o, const R& before, int y) const {
    if constexpr (kEdge) {
      const bool row = (y < a.regularLo || y >= a.regularHi) && a.rows.keeps(y);
#pragma unroll
      for (int j = 0; j < W; j++)
        if (row || (keeps >> j & 1)) o.v[j] = before.v[j];
    }
  }

  // sweep does sweep k in the step of phase p for row y. first sees d of the first sweep before its use.
  template <bool kEdge, int p, int k, class First> __device__ __forceinline__ void sweep(int y, First&& first) {
    constexpr int kDelay = K::delay(k);
    const R& c = ring[k][(p + 2) % kPhases];
    R o;
    const R d = defect<Real, W>(ring[k][(p + 1) % kPhases], c, ring[k][p], source<p, kDelay>(), a.h, a.q);
    if constexpr (k == 0) first(d, y - kDelay);
#pragma unroll
    for (int j = 0; j < W; j++) o.v[j] = fused(a.w[k], d.v[j], c.v[j]);
    keep<kEdge>(o, c, y - kDelay);
    if constexpr (k == kSmooth - 1) {
      const int row = y - kDelay;
      if (stores && row >= lo && row < hi) store_row(a.to + (ptrdiff_t)row * a.pitch + x, o);
    }
    if constexpr (k < kSmooth - 1 || !K::kUp) ring[k + 1][(p + 1) % kPhases] = o;
    if constexpr (k > K::kFirst) sweep<kEdge, p, k - 1>(y, first);
  }

  // enter makes row v the newest that the first sweep reads. From 0, v is b, and the first sweep makes w b of it.
  template <bool kEdge, int p> __device__ __forceinline__ void enter(R v, int y) {
    if constexpr (K::kZero) {
#pragma unroll
      for (int j = 0; j < W; j++) v.v[j] = fused(a.w[0], v.v[j], Real(0));
      keep<kEdge>(v, zeros<Real, W>(), y);
    }
    ring[K::kFirst][p] = v;
  }
};
