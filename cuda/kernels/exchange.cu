// Halo rows between two GPUs of one node, without the host and without the stream's own memory operations, which take ten times
// as long. Only for ranks that have their GPU to themselves: a kernel that waits must not keep another rank from its turn.
#pragma once

// Words at which ranks meet: the newest exchange whose rows have come, or for which there is room. They only grow.
__device__ __forceinline__ unsigned look(const unsigned* word) {
  unsigned n;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(n) : "l"(word) : "memory");
  return n;
}
__device__ __forceinline__ void await(const unsigned* word, unsigned number) {
  while ((int)(look(word) - number) < 0) __nanosleep(100);
}

// Push is the argument of push_rows; cuda.push in Go has the same layout. Blocks with blockIdx.y = i serve side i.
struct Push {
  struct Side {
    const uint4* from;
    uint4* to;             // in the neighbour's memory; 0: no neighbour
    unsigned* came;        // the neighbour's word, set to number at the end
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
