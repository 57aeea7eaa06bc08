// The multigrid kernels: a module of its own, so that the code of the sweep kernels does not depend on them.
#include "multigrid_down.cuh"
#include "multigrid_shapes.cuh"
#include "multigrid_tail.cuh"
#include "multigrid_tile.cuh"
#include "multigrid_up.cuh"
#include "pass.cuh"

#define DOWN(name, type, shape, source, zero, fixed) \
  KERNEL(shape.warps* kWarp, shape.blocks) name(const __grid_constant__ Smooth<type> a) { \
    down<Kind<type, shape.columns, source, zero, false, shape.ahead, fixed>>(a); \
  }
#define UP(name, type, shape, source, fixed) \
  KERNEL(shape.warps* kWarp, shape.blocks) name(const __grid_constant__ Smooth<type> a) { \
    up<Kind<type, shape.columns, source, false, true, shape.ahead, fixed>>(a); \
  }

DOWN(down_f64, double, kDownF64, false, false, false)
DOWN(down_source_f64, double, kDownSourceF64, true, false, false)
DOWN(down_f32, float, kDownF32, true, true, false)
UP(up_f64, double, kUpF64, false, false)
UP(up_source_f64, double, kUpSourceF64, true, false)
UP(up_f32, float, kUpF32, true, false)

// With fixed points inside the mesh.
DOWN(down_fixed_f64, double, kDownF64, false, false, true)
DOWN(down_fixed_source_f64, double, kDownSourceF64, true, false, true)
DOWN(down_fixed_f32, float, kDownF32, true, true, true)
UP(up_fixed_f64, double, kUpFixedF64, false, true)
UP(up_fixed_source_f64, double, kUpSourceF64, true, true)
UP(up_fixed_f32, float, kUpF32, true, true)

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

KERNEL(kTailThreads, 1) tail(const __grid_constant__ Tail a) { run_tail<Shared>(a); }
KERNEL(kTailThreads, 1) tail_large(const __grid_constant__ Tail a) { run_tail<Large>(a); }
