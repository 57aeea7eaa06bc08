// probe_copy_shared copies a matrix through shared memory, tile by tile. Compared with probe_copy it shows what the way
// through shared memory and the barrier cost, without any transposing.
//
//   reads    1 byte transferred for each byte used
//   writes   the same
//   shared   2 nx ny values besides, without conflicts
#include "probe_tile.cuh"

template <class T> __device__ __forceinline__ void probe_copy_shared(const Part<T>& p) {
  __shared__ T tile[kTile][kTile];
  const int lane = threadIdx.x % kTile, row = threadIdx.x / kTile;
  const int x = blockIdx.x * kTile + lane, y = blockIdx.y * kTile;
  for (int r = row; r < kTile; r += kTileRows)
    if (x < p.nx && y + r < p.ny) tile[r][lane] = p.in[(y + r) * p.inPitch + x];
  __syncthreads();
  for (int r = row; r < kTile; r += kTileRows)
    if (x < p.nx && y + r < p.ny) p.out[(y + r) * p.outPitch + x] = tile[r][lane];
}
PROBE_TILE(probe_copy_shared)
