// The multigrid kernels: a module of its own, so that the code of the sweep kernels does not depend on them.
#include "multigrid_down.cuh"
#include "multigrid_shapes.cuh"
#include "multigrid_tail.cuh"
#include "multigrid_tile.cuh"
#include "multigrid_up.cuh"
#include "pass.cuh"

#define DOWN(name, type, shape, source, zero) \
  KERNEL(shape.warps* kWarp, shape.blocks) name(const __grid_constant__ Smooth<type> a) { \
    down<Kind<type, shape.columns, source, zero, false, shape.ahead>>(a); \
  }
#define UP(name, type, shape, source) \
  KERNEL(shape.warps* kWarp, shape.blocks) name(const __grid_constant__ Smooth<type> a) { \
    up<Kind<type, shape.columns, source, false, true, shape.ahead>>(a); \
  }

DOWN(down_f64, double, kDownF64, false, false)
DOWN(down_source_f64, double, kDownSourceF64, true, false)
DOWN(down_f32, float, kDownF32, true, true)
UP(up_f64, double, kUpF64, false)
UP(up_source_f64, double, kUpSourceF64, true)
UP(up_f32, float, kUpF32, true)

#define TILE(way, name, type, shape, source, zero, up)                                                        \
  KERNEL(shape.warps* kWarp, shape.blocks) tile_##way##_##name(const __grid_constant__ Smooth<type> a) {       \
    tile_##way<TileKind<type, shape.columns, shape.rows, shape.warps, source, zero, up>>(a);                   \
  }
#define TILES(name, type, shape, source, zero)       \
  TILE(down, name, type, shape, source, zero, false) \
  TILE(up, name, type, shape, source, false, true)

TILES(f64, double, kTileF64, false, false)
TILES(source_f64, double, kTileF64, true, false)
TILES(f32, float, kTileF32, true, true)
TILES(small_f32, float, kTileSmallF32, true, true)

KERNEL(kTailThreads, 1) tail(const __grid_constant__ Tail a) { run_tail(a); }
