// Halo rows between two GPUs of one node, or within one GPU, moved by the kernels themselves: neither the host nor the
// stream's memory operations take part, which need ten times as long. Only ranks that have a GPU to themselves use
// this, because a kernel that waits would keep another rank's kernel from running.
//
// A pass of several sweeps exchanges halos part by part. A part is rows [top, bottom) of a strip or a tile. A part at
// an end of the stripe
//   1. waits until the halo there is filled (await_halos),
//   2. writes each outer row of the stripe into the neighbour's halo as it is made (hand_on),
//   3. tells the neighbour after its last row (handed).
//
// Why the neighbour's halo may be overwritten: a pass reads the halo of one field while the rows that it hands on go
// into the halo of the neighbour's other field. The neighbour read that halo in its pass before, and every part of it
// that reads a halo hands on rows at the same end afterwards. So a filled halo also means that the neighbour has read
// its old one. Parts that lie near an end fetch halo rows beyond those they need, perhaps while the neighbour writes
// them; they do not use these values.
#pragma once
#include "pass.cuh"

// await waits until a word has reached `number`. Words hold the number of the newest exchange and only grow.
__device__ __forceinline__ void await(const unsigned* word, unsigned number) {
  while ((int)(load_acquire(word) - number) < 0) __nanosleep(100);
}

// await_halos waits until the halos that rows [top, bottom) of a pass depend on are filled: it reads rows beyond the
// stripe, which are those that do not count, or hands rows on. With halos deeper than a pass, a pass computes rows of
// the halo too, so a part may lie within the stripe or beyond it and read rows of the halo. The whole warp calls it and
// stays together: the compiler makes worse code of everything after it otherwise.
template <class Real> __device__ __forceinline__ void await_halos(const Pass<Real>& a, int top, int bottom) {
  const int reach = max(a.sweeps, a.depth);
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (a.sides[i].came && (i ? bottom + reach > a.countHi : top - reach < a.countLo))
      while (__any_sync(kAll, (int)(load_acquire(a.sides[i].came) - a.awaited) < 0)) __nanosleep(100);
}

// hand_on writes columns v of a new row, which lie at `at` in next, into the halos of the neighbours that need the row.
template <class Real, int W>
__device__ __forceinline__ void hand_on(const Pass<Real>& a, int row, Real* at, const Row<Real, W>& v) {
#pragma unroll 1
  for (int i = 0; i < 2; i++) {
    const int begin = i ? a.outHi - a.depth : a.outLo;
    if (a.sides[i].to && (unsigned)(row - begin) < a.depth)
      store_row(at + (a.sides[i].to - (a.next + (begin - a.rowLo) * (ptrdiff_t)a.pitch)), v);
  }
}

// handed counts the rows of [top, bottom) that a part has handed on. The part that completes the rows of all strips
// tells the neighbour. The warp that handed the rows on calls it as a whole.
template <class Real>
__device__ __forceinline__ void handed(const Pass<Real>& a, int top, int bottom, int strips, int lane) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const Side<Real>& s = a.sides[i];
    const int begin = i ? a.outHi - a.depth : a.outLo, rows = min(bottom, begin + a.depth) - max(top, begin);
    if (s.theirs && rows > 0) {
      __threadfence_system();
      __syncwarp();
      if (lane == 0 && atomicAdd(s.rows, rows) == strips * a.depth - rows) {
        *s.rows = 0;
        __threadfence_system();
        store_after_fence(s.theirs, a.posted);
      }
    }
  }
}
