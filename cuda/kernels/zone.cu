// Kernels that write rows of multigrid's levels into the windows of other ranks, and take them out of the own one: see
// ../levelexchange.go. They need a fraction of the time of the stream's copies and memory operations. Only ranks that
// have a GPU to themselves use them, because a kernel that waits would keep another rank's kernel from running.
#include <cstddef>

#include "primitives.cuh"

constexpr int kMoves = 8;
constexpr int kMoveThreads = 256;

// Move is rows in one piece. type move in ../levelexchange.go has the same layout.
struct Move {
  const uint4* from;
  uint4* to;
  unsigned* word;    // another rank's word that is set once all is written, or the own one that is waited for
  unsigned* blocks;  // blocks that have written; 0 before and after
  unsigned units;    // of 16 bytes
  unsigned unused;
};

// Moves is the argument of both kernels. type moves in ../levelexchange.go has the same layout. Each move has `blocks`
// blocks.
struct Moves {
  Move moves[kMoves];
  unsigned number;  // of the exchange or gather
  unsigned blocks;
};
static_assert(sizeof(Move) == 40 && offsetof(Moves, number) == 320 && sizeof(Moves) == 328, "as in TestMovesLayout");

// move_rows does a block's part of a move. Four loads are under way at once.
__device__ __forceinline__ void move_rows(const Move& m, unsigned block, unsigned blocks) {
  const unsigned threads = blocks * blockDim.x;
  for (unsigned i = block * blockDim.x + threadIdx.x; i < m.units; i += 4 * threads) {
    uint4 v[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (i + k * threads < m.units) v[k] = m.from[i + k * threads];
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (i + k * threads < m.units) m.to[i + k * threads] = v[k];
  }
}

extern "C" __global__ void __launch_bounds__(kMoveThreads) push_zones(const __grid_constant__ Moves a) {
  const Move& m = a.moves[blockIdx.x / a.blocks];
  move_rows(m, blockIdx.x % a.blocks, a.blocks);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(m.blocks, 1) == a.blocks - 1) {
    *m.blocks = 0;
    __threadfence_system();
    store_after_fence(m.word, a.number);
  }
}

extern "C" __global__ void __launch_bounds__(kMoveThreads) take_zone(const __grid_constant__ Moves a) {
  const Move& m = a.moves[blockIdx.x / a.blocks];
  if (threadIdx.x == 0)
    while ((int)(load_acquire(m.word) - a.number) < 0) __nanosleep(40);
  __syncthreads();
  move_rows(m, blockIdx.x % a.blocks, a.blocks);
}
