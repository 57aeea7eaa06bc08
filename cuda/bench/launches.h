// How the kernels of several sweeps are called, for programs without Go; the same in ../shares.go and ../held.go.
#pragma once
#include <algorithm>

#include "../kernels/pass.cuh"

struct Launch {
  int blocks, threads, bytes;  // the latter two a block
};

// Shape of a kernel in sweep_deep.cu: columns a lane, sweeps a warp, rows between two barriers.
struct Shape {
  int columns, levels, step;
};
inline Shape shapeFor(float, int) { return {8, 2, 2}; }
inline Shape shapeFor(double, int sweeps) { return sweeps > 8 ? Shape{4, 4, 4} : Shape{4, 2, 2}; }

inline int warpsOf(const Shape& s, int sweeps) { return (sweeps + s.levels - 1) / s.levels; }

template <class Real> Launch launchOf(const Shape& s, int sweeps, int blocks, int pipes) {
  const int warps = warpsOf(s, sweeps), slot = 32 * s.columns * (int)sizeof(Real);
  return {blocks, pipes * 32 * warps, pipes * ((kGroup + 2 * s.step * (warps - 1)) * slot + s.levels * warps * kSumWords * 8)};
}

// heldLaunchOf divides a pass among tiles in registers, whose warps have so many rows, `inner` and `outer` one below the other in an inner and an outer
// column of tiles.
template <class Real> Launch heldLaunchOf(Pass<Real>& p, int rows, int inner, int outer) {
  const int T = p.sweeps, step = (32 - 2 * ((T + 3) / 4)) * 4, across = 1 + (std::max(p.nx - 128, 0) + step - 1) / step, outers = std::min(across, 2);
  const int groups = (p.outHi - (p.outLo & -kGroup) + kGroup - 1) / kGroup;
  p.tileRows = (groups + inner - 1) / inner * kGroup, p.edge = (groups + outer - 1) / outer * kGroup;
  const int warps = (std::max(p.tileRows, p.edge) + (T + kGroup - 1) / kGroup * kGroup + T + rows - 1) / rows;
  auto tiles = [&](int height) { return (groups * kGroup + height - 1) / height; };
  return {outers * tiles(p.edge) + (across - outers) * tiles(p.tileRows), 32 * warps,
          ((warps + 2) * 16 + T * warps * rows / kGroup) * 32 * (int)sizeof(Real) + warps * kSumWords * 8};
}
