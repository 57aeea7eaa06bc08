// probe_transpose_padded is probe_transpose_coalesced with one more value in each row of the tile, which puts the
// values of a column into different banks.
//
//   reads    1 byte transferred for each byte used
//   writes   the same
//   shared   2 nx ny values besides, without conflicts: value (r, c) lies in bank (33 r + c) mod 32 = (r + c) mod 32
#include "probe_tile.cuh"

template <class T> __device__ __forceinline__ void probe_transpose_padded(const Part<T>& p) {
  __shared__ T tile[kTile][kTile + 1];
  const int lane = threadIdx.x % kTile, row = threadIdx.x / kTile;
  const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;  // of the tile in the matrix
#pragma unroll
  for (int r = row; r < kTile; r += kTileRows)
    if (x + lane < p.nx && y + r < p.ny) tile[r][lane] = p.in[(y + r) * p.inPitch + x + lane];
  __syncthreads();
#pragma unroll
  for (int r = row; r < kTile; r += kTileRows)
    if (y + lane < p.ny && x + r < p.nx) p.out[(x + r) * p.outPitch + y + lane] = tile[lane][r];
}
PROBE_TILE(probe_transpose_padded)
