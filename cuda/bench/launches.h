// Launches of the kernels of several sweeps, for programs without Go. ../shares.go and ../held.go do the same.
#pragma once
#include <algorithm>

#include "../kernels/pass.cuh"
#include "../kernels/sum.cuh"

struct Launch {
  int blocks, threads, bytes;  // number of blocks; threads, and bytes of shared memory, of a block
};

inline DeepShape shapeFor(float, int) { return kSweepF32; }
inline DeepShape shapeFor(double, int sweeps) { return sweeps > 8 ? kDeepF64 : kSweepF64; }

inline int warpsOf(const DeepShape& s, int sweeps) { return (sweeps + s.levels - 1) / s.levels; }

// launchOf returns the launch of a kernel in sweep_deep.cu with the given numbers of blocks and of pipelines in a
// block.
template <class Real> Launch launchOf(const DeepShape& s, int sweeps, int blocks, int pipes, int values = 0) {
  const int warps = warpsOf(s, sweeps), slot = kWarp * s.columns * (int)sizeof(Real);
  const int ahead = kGroupRows - s.step;  // rows
  const int used = warps > 1 ? ahead + 1 + (s.levels + 2 * s.step) * (warps - 1) : ahead + 1 + s.step;
  const int slots = kGroupRows + 2 * s.step * (warps - 1) + ((used + kGroupRows - 1) & -kGroupRows) * values;
  const int bytes = slots * slot + s.levels * warps * kSumWords * 8;
  return {blocks, pipes * kWarp * warps, pipes * bytes};
}

// heldLaunchOf divides a pass among tiles in registers, with `rows` rows for each warp. An inner column has `inner`
// tiles, an outer one `outer`.
template <class Real> Launch heldLaunchOf(Pass<Real>& p, int rows, int inner, int outer) {
  const int T = p.sweeps, width = kWarp * kGroupColumns;
  const int step = (kWarp - 2 * ((T + kGroupColumns - 1) / kGroupColumns)) * kGroupColumns;
  const int across = 1 + (std::max(p.nx - width, 0) + step - 1) / step, outers = std::min(across, 2);
  const int groups = (p.outHi - (p.outLo & -kGroupRows) + kGroupRows - 1) / kGroupRows;
  Cut& cut = p.cut;
  cut.innerRows = (groups + inner - 1) / inner * kGroupRows, cut.outerRows = (groups + outer - 1) / outer * kGroupRows;
  const int overlap = (T + kGroupRows - 1) / kGroupRows * kGroupRows + T;
  const int warps = (std::max(cut.innerRows, cut.outerRows) + overlap + rows - 1) / rows;
  auto tiles = [&](int height) { return (groups * kGroupRows + height - 1) / height; };
  return {outers * tiles(cut.outerRows) + (across - outers) * tiles(cut.innerRows), kWarp * warps,
          ((warps + 2) * 16 + T * warps * rows / kGroupRows) * kWarp * (int)sizeof(Real) + warps * kSumWords * 8};
}

// setBias sets the initial values of the limbs for a problem of magnitude E = 0: 2^52 units each.
template <class Real> void setBias(Pass<Real>& p) {
  for (int i = 0; i < kLimbs; i++) p.bias[i] = ldexp(1.0, 52 - kUnitBits + kLimbBits * (kLimbs - 1 - i));
}
