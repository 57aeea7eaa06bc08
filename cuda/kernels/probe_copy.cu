// probe_copy copies a matrix: what the transposes are compared with.
//
//   reads    4 sectors for 32 values of 4 bytes: 1 byte transferred for each byte used
//   writes   the same
#include "probe_tile.cuh"

template <class T> __device__ __forceinline__ void probe_copy(const Part<T>& p) {
  const int x = blockIdx.x * kTile + threadIdx.x % kTile;
  for (int r = threadIdx.x / kTile; r < kTile; r += kTileRows) {
    const int y = blockIdx.y * kTile + r;
    if (x < p.nx && y < p.ny) p.out[y * p.outPitch + x] = p.in[y * p.inPitch + x];
  }
}
PROBE_TILE(probe_copy)
