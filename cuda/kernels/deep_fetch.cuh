// How the first warp of a pipeline gets rows of the field into ring 0, by copies in the background.
#pragma once
#include "deep_source.cuh"
#include "sum.cuh"

// Rings is where the rings of a pipeline lie in its shared memory, and behind them the words of its sums. Ring 0, which
// the first warp reads, has a slot for each row of a group; the others have 2*B.
template <class Real, int W, int B> struct Rings {
  using Slot = ::Slot<Real, W>;
  static constexpr int kFirst = kGroupRows, kOther = 2 * B;
  char *source, *target;
  int turn;  // bytes from a turn of a ring's slots to the next: 0 but for ring 0, where it is not over yet

  __device__ __forceinline__ Rings(char* shared, const Place& at) {
    source = at.first() ? shared : shared + (kFirst + (at.warp - 1) * kOther) * Slot::kBytes;
    target = shared + (kFirst + at.warp * kOther) * Slot::kBytes;
    turn = at.first() ? kOther * Slot::kBytes : 0;
  }
  // in returns the slot of the k-th row of a turn of the loop that begins with row `begin` of a group; out that of row
  // k.
  __device__ __forceinline__ char* in(int begin, int k) const {
    return source + k % kOther * Slot::kBytes + k / kOther * turn + begin / kOther * turn;
  }
  __device__ __forceinline__ char* out(int k) const { return target + (k & (kOther - 1)) * Slot::kBytes; }

  static __device__ __forceinline__ int slots(int warps) { return kFirst + (warps - 1) * kOther; }
  // words returns the words of the sums, kSumWords for each sweep.
  template <int S> static __device__ __forceinline__ unsigned long long (*words(char* shared, int warps))[kSumWords] {
    return (unsigned long long(*)[kSumWords])(shared + slots(warps) * Slot::kBytes);
  }
  // bytes returns the shared memory of a pipeline of warps that do S sweeps each, without a ring for a source.
  template <int S> static __device__ __forceinline__ int bytes(int warps) {
    return slots(warps) * Slot::kBytes + S * warps * kSumWords * (int)sizeof(unsigned long long);
  }
};

// Fetch copies rows, one after the other, into ring 0, and those of a source into its ring. Each lane copies the
// columns that it will take. A row outside the field is copied as the nearest row inside.
template <class Arg, int W, int B> struct Fetch {
  using Real = typename Arg::Real;
  using Slot = ::Slot<Real, W>;
  static constexpr int kFirst = Rings<Real, W, B>::kFirst;
  static constexpr int kSteps = kFirst / B - 1;  // from the copy of a row until it is taken
  static constexpr int kRows = kSteps * B;
  const Arg& a;
  char* const shared;
  const int lane;
  const unsigned moves;
  const Real* from;
  SourceFetch<Arg> source;

  __device__ __forceinline__ Fetch(const Arg& a, char* shared, int lane)
      : a(a), shared(shared), lane(lane), moves(a.rowHi - 1 - a.rowLo) {}

  // aim makes row y, from column x on, the next to be copied.
  __device__ __forceinline__ void aim(int x, int y) {
    from = a.now + min(max(x, 0), a.pitch - W) + (min(max(y, a.rowLo), a.rowHi - 1) - a.rowLo) * (ptrdiff_t)a.pitch;
    source.aim(a, min(max(x, 0), a.pitch - W), min(max(y, a.rowLo), a.rowHi - 1) - a.rowLo);
  }
  // copy copies row y into slot k, and its source into sourceSlot.
  __device__ __forceinline__ void copy(int y, int k, char* sourceSlot) {
#pragma unroll
    for (int p = 0; p < Slot::kParts; p++)
      copy16_async(Slot::part(shared + k * Slot::kBytes, p, lane), from + p * kPer16<Real>);
    from += (unsigned)(y - a.rowLo) < moves ? a.pitch : 0;
    source.template copy<W>(a, (unsigned)(y - a.rowLo) < moves, sourceSlot, lane);
  }
  // begin copies the first kRows rows, from y on.
  __device__ __forceinline__ void begin(int x, int y, const Beside<Arg, W>& beside) {
    aim(x, y);
#pragma unroll
    for (int k = 0; k < kRows; k++) {
      copy(y + k, k, beside.slot(k));
      if (k % B == B - 1) copies_commit();
    }
  }
  // ahead is called in the step that takes rows from y on, which lie in slots from k on: it waits for these and copies
  // those of a later step.
  __device__ __forceinline__ void ahead(int y, int k, const Beside<Arg, W>& beside) {
    copies_wait<kSteps - 1>();
#pragma unroll
    for (int i = 0; i < B; i++) copy(y + kRows + i, (k + kRows + i) % kFirst, beside.slot(k + kRows + i));
    copies_commit();
  }
};
