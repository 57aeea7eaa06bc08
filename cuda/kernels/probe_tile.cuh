// Tiles of a matrix for the copies and transposes of the probe. A block of kTileThreads threads moves one tile of
// 32 x 32 values, four values a thread: thread (lane, row) those in column `lane` and rows row, row + 8, row + 16 and
// row + 24. Launch a grid of (nx + 31) / 32 by (ny + 31) / 32 blocks; nx and ny may be any numbers.
//
// Each kernel moves 2 nx ny values: it reads each value once and writes it once. The kernels differ in how many bytes
// their accesses transfer for that. Memory is transferred in sectors of 32 bytes, and a warp's access costs as many
// sectors as it touches.
#pragma once
#include "primitives.cuh"

constexpr int kTile = 32, kTileRows = 8, kTileThreads = kTile * kTileRows;

// Part is a matrix `in` of ny rows of nx values, and the matrix `out` that it is copied to, or its transpose of nx rows
// of ny values. Rows begin inPitch and outPitch values apart, so both may be blocks of larger matrices.
template <class T> struct Part {
  const T* in;
  T* out;
  long long inPitch, outPitch;
  int nx, ny;
};

// A kernel for both types.
#define PROBE_TILE(name) \
  extern "C" __global__ void __launch_bounds__(kTileThreads) name##_f32(Part<float> p) { name(p); } \
  extern "C" __global__ void __launch_bounds__(kTileThreads) name##_f64(Part<double> p) { name(p); }
