// probe_transpose_wide is probe_transpose_padded with tiles of kWide x kWide values, which a thread moves 16 at a time:
// more reads are under way at once, and the pieces of rows that a block writes are twice as long. Launch a grid of
// (nx + 63) / 64 by (ny + 63) / 64 blocks.
//
//   reads    1 byte transferred for each byte used
//   writes   the same
//   shared   2 nx ny values besides, without conflicts
#include "probe_tile.cuh"

constexpr int kWide = 64;

template <class T> __device__ __forceinline__ void probe_transpose_wide(const Part<T>& p) {
  __shared__ T tile[kWide][kWide + 1];
  const int lane = threadIdx.x % kTile, row = threadIdx.x / kTile;
  const int x = blockIdx.x * kWide, y = blockIdx.y * kWide;  // of the tile in the matrix
#pragma unroll
  for (int r = 0; r < kWide; r += kTileRows)
#pragma unroll
    for (int c = 0; c < kWide; c += kTile)
      if (x + c + lane < p.nx && y + r + row < p.ny)
        tile[r + row][c + lane] = p.in[(y + r + row) * p.inPitch + x + c + lane];
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kWide; r += kTileRows)
#pragma unroll
    for (int c = 0; c < kWide; c += kTile)
      if (y + c + lane < p.ny && x + r + row < p.nx)
        p.out[(x + r + row) * p.outPitch + y + c + lane] = tile[c + lane][r + row];
}
PROBE_TILE(probe_transpose_wide)
