// probe_transpose_coalesced turns each tile in shared memory, so that a warp writes a piece of a row, too.
//
//   reads    1 byte transferred for each byte used
//   writes   the same
//   shared   2 nx ny values besides. A warp that reads a column of the tile finds all 32 values in one bank, since rows
//            are 32 words long: the access takes 32 turns instead of 1.
#include "probe_tile.cuh"

template <class T> __device__ __forceinline__ void probe_transpose_coalesced(const Part<T>& p) {
  __shared__ T tile[kTile][kTile];
  const int lane = threadIdx.x % kTile, row = threadIdx.x / kTile;
  const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;  // of the tile in the matrix
  for (int r = row; r < kTile; r += kTileRows)
    if (x + lane < p.nx && y + r < p.ny) tile[r][lane] = p.in[(y + r) * p.inPitch + x + lane];
  __syncthreads();
  for (int r = row; r < kTile; r += kTileRows)
    if (y + lane < p.ny && x + r < p.nx) p.out[(x + r) * p.outPitch + y + lane] = tile[lane][r];
}
PROBE_TILE(probe_transpose_coalesced)
