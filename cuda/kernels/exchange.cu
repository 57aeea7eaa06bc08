// Halo rows between two GPUs of one node, or within one, without the host and without the stream's own memory operations, which take ten
// times as long. Only ranks that have their GPU to themselves wait here: a kernel that waits must not keep another rank from its turn.
#pragma once
#include "pass.cuh"

// Words at which ranks meet: the newest exchange whose rows have come, or for which there is room. They only grow.
__device__ __forceinline__ unsigned look(const unsigned* word) {
  unsigned n;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(n) : "l"(word) : "memory");
  return n;
}
__device__ __forceinline__ void await(const unsigned* word, unsigned number) {
  while ((int)(look(word) - number) < 0) __nanosleep(100);
}

// A pass of several sweeps exchanges halos itself: tiles at an end of the stripe wait for its halo before they begin, and hand on
// its outer rows when they are done. The tiles that read a halo are among those that hand on the rows at that end, so rows that
// have come also say that the neighbour's halo of the field before was read for the last time.
template <class Real> __device__ __forceinline__ void await_halos(const Pass<Real>& a, int top, int bottom) {
  const bool waits[2] = {a.sides[0].came && top - a.sweeps < a.countLo, a.sides[1].came && bottom + a.sweeps > a.countHi};
  if (!waits[0] && !waits[1]) return;
  if (threadIdx.x < 2 && waits[threadIdx.x]) await(a.sides[threadIdx.x].came, a.awaited);
  __syncthreads();
}

// hand_on copies what is in columns [left, right) of the tile, both at multiples of 16 bytes.
template <class Real> __device__ __forceinline__ void hand_on(const Pass<Real>& a, int top, int bottom, int left, int right) {
  if (!a.sides[0].to && !a.sides[1].to) return;
  __syncthreads();
  const int first = a.outLo & -kGroup;  // of the first tile
  for (int i = 0; i < 2; i++) {
    const Side<Real>& s = a.sides[i];
    const int begin = i ? a.outHi - a.depth : a.outLo, end = begin + a.depth;
    const int lo = max(top, begin), hi = min(bottom, end);
    if (!s.to || lo >= hi) continue;
    const int width = (right - left) / kPer16<Real>;
    for (int k = threadIdx.x; k < width * (hi - lo); k += blockDim.x) {
      const int row = lo + k / width, x = left + k % width * kPer16<Real>;
      const Real* from = a.next + (row - a.rowLo) * (ptrdiff_t)a.pitch + x;
      __stcg((float4*)(s.to + (row - begin) * (ptrdiff_t)a.pitch + x), __ldcg((const float4*)from));
    }
    if (!s.theirs) continue;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x) continue;
    const int rows = i ? gridDim.y - (begin - first) / a.tileRows : min(gridDim.y, (end - first + a.tileRows - 1) / a.tileRows);
    if (atomicAdd(s.tiles, 1) == rows * gridDim.x - 1) {
      *s.tiles = 0;
      __threadfence_system();
      *(volatile unsigned*)s.theirs = a.posted;
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
    *(volatile unsigned*)s.came = a.number;
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
