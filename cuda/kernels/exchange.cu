// Kernels that exchange halo rows on their own, for passes that do not: see ../exchange.go.
#pragma once
#include "exchange.cuh"

// Push is the argument of push_rows. type push in ../exchange.go has the same layout. Blocks with blockIdx.y = i
// serve side i.
struct Push {
  struct Side {
    const uint4* from;
    uint4* to;             // in the neighbour's memory; null: no neighbour
    unsigned* came;        // the neighbour's word, set to number at the end; null: nobody looks at it
    const unsigned* room;  // this rank's word, at least number before anything is written; null: there is room
    unsigned* blocks;      // blocks that are done; 0 before and after
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
  const unsigned threads = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < a.units; i += threads) s.to[i] = s.from[i];
  if (!s.came) return;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(s.blocks, 1) == gridDim.x - 1) {
    *s.blocks = 0;
    __threadfence_system();
    store_after_fence(s.came, a.number);
  }
}

// Await is the argument of await_rows. type await in ../exchange.go has the same layout.
struct Await {
  const unsigned* came[2];  // this rank's words; null: no neighbour
  unsigned number;
};

extern "C" __global__ void __launch_bounds__(32) await_rows(const __grid_constant__ Await a) {
  if (threadIdx.x < 2 && a.came[threadIdx.x]) await(a.came[threadIdx.x], a.number);
}
