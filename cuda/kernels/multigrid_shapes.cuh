// The shapes of the multigrid kernels. Go has the same numbers in ../levelkernel.go; ../emulate/multigrid.cpp compares
// them.
#pragma once

// SmoothShape is the shape of a kernel down_* or up_*.
struct SmoothShape {
  int columns;  // of a lane
  int ahead;    // groups of three rows that are under way from memory
  int warps;    // of a block
  int blocks;   // of a multiprocessor at once, for the bound of registers
};

#ifndef DOWN_F64  // ../bench/multigrid.sh compiles others
#define DOWN_F64 4, 1, 8, 1
#endif
#ifndef DOWN_SOURCE_F64
#define DOWN_SOURCE_F64 2, 2, 4, 3
#endif
#ifndef DOWN_F32
#define DOWN_F32 4, 1, 8, 2
#endif
#ifndef UP_F64
#define UP_F64 2, 1, 4, 4
#endif
#ifndef UP_SOURCE_F64
#define UP_SOURCE_F64 2, 1, 4, 4
#endif
#ifndef UP_F32
#define UP_F32 4, 1, 4, 3
#endif
constexpr SmoothShape kDownF64 = {DOWN_F64}, kDownSourceF64 = {DOWN_SOURCE_F64}, kDownF32 = {DOWN_F32};
constexpr SmoothShape kUpF64 = {UP_F64}, kUpSourceF64 = {UP_SOURCE_F64}, kUpF32 = {UP_F32};

// TileShape is the shape of a kernel tile_*.
struct TileShape {
  int columns, rows;  // of a lane
  int warps;          // of a block
  int blocks;         // as in SmoothShape
};
#ifndef TILE_F64
#define TILE_F64 4, 8, 12, 1
#endif
#ifndef TILE_F32
#define TILE_F32 4, 8, 12, 1
#endif
#ifndef TILE_SMALL_F32
#define TILE_SMALL_F32 2, 4, 12, 2
#endif
constexpr TileShape kTileF64 = {TILE_F64}, kTileF32 = {TILE_F32}, kTileSmallF32 = {TILE_SMALL_F32};
