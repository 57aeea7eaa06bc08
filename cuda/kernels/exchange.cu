// Halo rows between two GPUs of one node, or within one, without the host and without the stream's own memory operations, which take ten
// times as long. Only ranks that have their GPU to themselves wait here: a kernel that waits must not keep another rank from its turn.
#pragma once
#include "pass.cuh"

// Words at which ranks meet: the newest exchange whose rows have come, or for which there is room. They only grow.
__device__ __forceinline__ void await(const unsigned* word, unsigned number) {
  while ((int)(look(word) - number) < 0) __nanosleep(100);
}

// A pass of several sweeps exchanges halos itself, part by part: a part is rows [top, bottom) of a strip. One at an end of the stripe waits for
// its halo before it begins, hands on the outer rows of the stripe as it makes them, and says so when it is done. Whichever
// reads a halo is among those that hand on rows at that end, and those all wait: so rows that have come also say that the
// neighbour's halo of the field before was read for the last time. Parts beside those fetch rows of it too, beyond what they need, perhaps
// while the neighbour writes them: nothing comes of what they get.

// await_halos is called by a whole warp, which stays together: the compiler makes worse code of all that follows else.
template <class Real> __device__ __forceinline__ void await_halos(const Pass<Real>& a, int top, int bottom) {
  const int reach = max(a.sweeps, a.depth);
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (a.sides[i].came && (i ? bottom + reach > a.outHi : top - reach < a.outLo))
      while (__any_sync(kAll, (int)(look(a.sides[i].came) - a.awaited) < 0)) __nanosleep(100);
}

// hand_on writes columns of a new row, which go to `at` in next, into the neighbours' halos that have the row.
template <class Real, int W> __device__ __forceinline__ void hand_on(const Pass<Real>& a, int row, Real* at, const Row<Real, W>& v) {
#pragma unroll 1
  for (int i = 0; i < 2; i++) {
    const int begin = i ? a.outHi - a.depth : a.outLo;
    if (a.sides[i].to && (unsigned)(row - begin) < a.depth) store_row(at + (a.sides[i].to - (a.next + (begin - a.rowLo) * (ptrdiff_t)a.pitch)), v);
  }
}

// handed tells the neighbours once all strips' rows are handed on. It is called by the whole warp that did it for a part.
template <class Real> __device__ __forceinline__ void handed(const Pass<Real>& a, int top, int bottom, int strips, int lane) {
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
        tell(s.theirs, a.posted);
      }
    }
  }
}

// Push is the argument of push_rows; cuda.push in Go has the same layout. Blocks with blockIdx.y = i serve side i.
struct Push {
  struct Side {
    const uint4* from;
    uint4* to;             // in the neighbour's memory; 0: no neighbour
    unsigned* came;        // the neighbour's word, set to number at the end; 0: nobody looks before the kernel ends
    const unsigned* room;  // this rank's word, at least number before anything is written; 0: there is room
    unsigned* blocks;      // how many are done, 0 before and after
  } sides[2];
  unsigned units;  // of 16 bytes, a side
  unsigned number;
};

extern "C" __global__ void __launch_bounds__(256) push_rows(const __grid_constant__ Push a) {
  const Push::Side& s = a.sides[blockIdx.y];
  if (!s.to) return;
  if (s.room) {
    if (threadIdx.x == 0) await(s.room, a.number);
    __syncthreads();
  }
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < a.units; i += gridDim.x * blockDim.x) s.to[i] = s.from[i];
  if (!s.came) return;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(s.blocks, 1) == gridDim.x - 1) {
    *s.blocks = 0;
    __threadfence_system();
    tell(s.came, a.number);
  }
}

// Await is the argument of await_rows; cuda.await in Go has the same layout.
struct Await {
  const unsigned* came[2];  // this rank's words; 0: no neighbour
  unsigned number;
};

extern "C" __global__ void __launch_bounds__(32) await_rows(const __grid_constant__ Await a) {
  if (threadIdx.x < 2 && a.came[threadIdx.x]) await(a.came[threadIdx.x], a.number);
}
