// probe_transpose_naive writes each value where it belongs. A warp reads a piece of a row and writes a piece of a
// column: 32 values in 32 rows of the transpose.
//
//   reads    1 byte transferred for each byte used
//   writes   32 sectors for 32 values: 8 bytes for each byte used with values of 4 bytes, 4 with values of 8. Caches
//            collect some of these sectors until they are full.
#include "probe_tile.cuh"

template <class T> __device__ __forceinline__ void probe_transpose_naive(const Part<T>& p) {
  const int x = blockIdx.x * kTile + threadIdx.x % kTile;
  for (int r = threadIdx.x / kTile; r < kTile; r += kTileRows) {
    const int y = blockIdx.y * kTile + r;
    if (x < p.nx && y < p.ny) p.out[x * p.outPitch + y] = p.in[y * p.inPitch + x];
  }
}
PROBE_TILE(probe_transpose_naive)
