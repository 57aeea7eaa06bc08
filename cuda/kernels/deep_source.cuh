// The rows of the source in a pipeline, and the fixed points of a warp's rows: what a pass with terms has beside the
// field.
//
// The source of a row is needed by every warp, by one later than by the warp before. So there is one ring of rows for
// all warps of a pipeline. The first warp copies rows into it together with those of the field, and each warp takes
// every row from it once and keeps it for its sweeps (Sources). A row of weighted points has a slot for each of its
// values.
//
// Size of the ring. In a step, the first warp copies the row that comes kRows + B - 1 after the first that it takes.
// Warp L, the last one, is at least in the step that comes L - 1 before, since neighbours are at most a step apart. It
// takes rows that come (S+B)*L before those of the first warp, and the source of the row before them. Hence
// kRows + 1 + (S+2*B)*L rows are in use, with L > 0.
#pragma once
#include "deep_ring.cuh"
#include "terms.cuh"

// Care is what a row needs beyond the plain update.
enum class Care {
  plain,   // nothing
  points,  // with terms: fixed points
  sides,   // fixed columns or, with terms, fixed points and mirrors of columns; handing on, and the end of a group that
           // counts in part
  ends,    // the same; fixed rows or, with terms, mirrors of rows; and rows that do not count in a group that does
};

// sourceSlots returns the slots of the ring for the source: whole groups of rows. `ahead` is Fetch::kRows.
template <class Arg> __device__ __forceinline__ int sourceSlots(int warps, int levels, int step, int ahead) {
  if (Arg::kValues == 0) return 0;
  const int rows = warps > 1 ? ahead + 1 + (levels + 2 * step) * (warps - 1) : ahead + 1 + step;
  return ((rows + kGroupRows - 1) & -kGroupRows) * Arg::kValues;
}

// SourceFetch copies the rows of the source, one after the other, into its ring.
template <class Arg, int = Arg::kValues> struct SourceFetch {
  using Real = typename Arg::Real;
  const Real* from;

  __device__ __forceinline__ void aim(const Arg& a, int x, int row) {
    from = a.terms.source + x + row * (ptrdiff_t)a.terms.sourcePitch;
  }
  template <int W> __device__ __forceinline__ void copy(const Arg& a, bool moves, char* slot, int lane) {
    using Slot = ::Slot<Real, W>;
#pragma unroll
    for (int p = 0; p < Slot::kParts; p++) copy16_async(Slot::part(slot, p, lane), from + p * kPer16<Real>);
    from += moves ? a.terms.sourcePitch : 0;
  }
};
template <class Arg> struct SourceFetch<Arg, kWeightedValues> : SourceFetch<Arg, 1> {
  template <int W> __device__ __forceinline__ void copy(const Arg& a, bool moves, char* slot, int lane) {
    using Real = typename Arg::Real;
    using Slot = ::Slot<Real, W>;
#pragma unroll
    for (int v = 0; v < kWeightedValues; v++)
#pragma unroll
      for (int p = 0; p < Slot::kParts; p++)
        copy16_async(Slot::part(slot + v * Slot::kBytes, p, lane),
                     this->from + v * (ptrdiff_t)a.pitch + p * kPer16<Real>);
    this->from += moves ? a.terms.sourcePitch : 0;
  }
};
template <class Arg> struct SourceFetch<Arg, 0> {
  __device__ __forceinline__ void aim(const Arg&, int, int) {}
  template <int W> __device__ __forceinline__ void copy(const Arg&, bool, char*, int) {}
};

// Beside is a lane's view of source and fixed points while a warp takes a group of rows, the first of which is row y.
template <class Arg, int W, bool = Arg::kTerms> struct Beside {
  using Real = typename Arg::Real;
  using Slot = ::Slot<Real, W>;
  using Points = FixedPoints<Real, W>;
  static constexpr int kRow = Arg::kValues * Slot::kBytes;  // bytes of a row in the ring
  char *begin, *end, *at;        // the ring of the source; the slot of row y
  unsigned before;               // bits of rows y-4 .. y-1
  unsigned long long now, next;  // bits of the group, and of the one below it

  // `late` is how many rows later than the first warp this one takes a row: whole groups.
  __device__ __forceinline__ Beside(char* begin, char* end, int late)
      : begin(begin), end(end), at(late ? end - late * kRow : begin) {}

  // move goes on to the next group.
  __device__ __forceinline__ void move() {
    if (Arg::kValues) at = slot(kGroupRows);
  }
  // slot returns the first of row y+k, -1 <= k < 16.
  __device__ __forceinline__ char* slot(int k) const {
    if (k < 0) return (at == begin ? end : at) + k * kRow;
    if (k < kGroupRows) return at + k * kRow;
    return (at + kGroupRows * kRow == end ? begin : at + kGroupRows * kRow) + (k - kGroupRows) * kRow;
  }
  // source returns that of row y+k; value returns value v of the row.
  __device__ __forceinline__ Row<Real, W> source(int k, int lane) const { return Slot::take(slot(k), lane); }
  __device__ __forceinline__ Row<Real, W> value(int k, int v, int lane) const {
    return Slot::take(slot(k) + v * Slot::kBytes, lane);
  }

  // look reads the fixed points at row y. For the group below, ahead begins to read them, and turn makes them current.
  __device__ __forceinline__ void look(const Points& p, int y) { before = p.at(y - kGroupRows) >> 32, now = p.at(y); }
  __device__ __forceinline__ void ahead(const Points& p, int y) { next = p.at(y + kGroupRows); }
  __device__ __forceinline__ void turn() { before = now >> 32, now = next; }
  // none says whether no row from y-4 to y+7 has a fixed point in the warp's columns.
  __device__ __forceinline__ bool none() const { return !__any_sync(kAll, (before | now) != 0); }
  // keep returns a function that gives column j of row y+r, r >= -4, its old value if it keeps that.
  template <Care kCare> __device__ __forceinline__ auto keep(const Arg&, int, int, int r) const {
    unsigned bits = r < 0 ? before >> 8 * (r + 4) : now >> 8 * r;
    // The compiler would keep the bits of one level for the next, and spill more.
    if (kCare != Care::plain && Arg::kValues == 0) bits = opaque(bits);
    return [=](int j, Real& to, Real from) {
      if (kCare != Care::plain && bits >> j & 1) to = from;
    };
  }
};
template <class Arg, int W> struct Beside<Arg, W, false> {
  using Real = typename Arg::Real;
  __device__ __forceinline__ Beside(char*, char*, int) {}
  __device__ __forceinline__ void move() {}
  __device__ __forceinline__ char* slot(int) const { return nullptr; }
  template <Care kCare> __device__ __forceinline__ auto keep(const Arg& a, int x, int row, int) const {
    const bool fixed = kCare == Care::ends && (row == a.fixTop || row == a.fixBottom);
    return [=, &a](int j, Real& to, Real from) {
      if (kCare != Care::plain && (fixed || x + j <= 0 || x + j >= a.nx - 1)) to = from;
    };
  }
};

// sweep_row returns row `row` of a sweep, in which fixed points still have to keep their values.
struct Nothing {};
template <Care kCare, class Arg, class Real, int W, class Source>
__device__ __forceinline__ Row<Real, W> sweep_row(const Arg& a, const Row<Real, W>& north, const Row<Real, W>& centre,
                                                  const Row<Real, W>& south, Real west, Real east,
                                                  const Source& source, int x, int row) {
  if constexpr (!Arg::kTerms) {
    return update_row(north, centre, south, west, east);
  } else {
    Row<Real, W> up = north, down = south;
#pragma unroll
    for (int j = 0; j < W; j++) {
      if (kCare == Care::ends && row == a.terms.top) up.v[j] = south.v[j];
      if (kCare == Care::ends && row == a.terms.bottom) down.v[j] = north.v[j];
    }
    return update_row<(kCare > Care::points)>(a, up, centre, down, west, east, source, x);
  }
}
