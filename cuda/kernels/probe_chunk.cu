// probe_chunk is the middle one of three stages: an array is copied to the GPU, computed on, and copied back. The probe
// overlaps the stages of different chunks of the array.
//
//   traffic in memory   8 n bytes: n values of 4 bytes are read once and written once
//   arithmetic          3 n weight operations
//   intensity           3 weight / 8 operations a byte: a small weight waits for memory, a large one for arithmetic
//
// Each value goes weight steps along the logistic map v -> r v (1 - v). With r = 3.75 the map is chaotic, so values
// that differ in their last bit differ everywhere after some 50 steps: a value that was computed twice, not at all, or
// in another place does not go unnoticed. Every operation rounds on its own (the module is compiled with -fmad=false),
// so a CPU gets the same bits.
//
// Launch it with at least n threads in blocks of one dimension. The number of blocks is n / threads, rounded up:
// (n + threads - 1) / threads. The last block may have threads beyond the array, and these do nothing.
#include "primitives.cuh"

extern "C" __global__ void probe_chunk(float* values, unsigned long long n, int weight) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = values[i];
  for (int step = 0; step < weight; step++) v = (3.75f * v) * (1.0f - v);
  values[i] = v;
}
