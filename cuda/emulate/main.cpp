// Runs the kernels of several sweeps a pass on threads of the CPU, for ranks that exchange halos as ranks of one node
// do, and compares fields and sums bit by bit with single sweeps. Prints a line for each case.
#include <cstdio>
#include <cstdlib>

#include "device.h"

#include "../bench/exact.h"
#include "../bench/launches.h"
#include "../kernels/sweep_deep.cu"
#include "../kernels/sweep_held.cu"

// Case is a mesh of nx columns whose rows are divided among ranks at cuts, the last of which is the number of rows. The
// rows are periodic unless `fixed` is set. Then the first and the last row are fixed, and there is one rank.
struct Case {
  int nx;
  std::vector<int> cuts;
  bool fixed;
  int sweeps, passes, blocks, pipes;
  int rows = 0;  // if not 0, tiles in registers with this many rows for each warp: `blocks` tiles in an inner column
                 // of tiles and `pipes` in an outer one
};

// kernelFor returns the kernel for the given number of sweeps: if rows is not 0, the one for tiles of warps with that
// many rows.
static void (*kernelFor(float, int, int rows))(Pass<float>) {
  return rows == 24 ? held24_f32 : rows ? held16_f32 : sweep_f32;
}
static void (*kernelFor(double, int sweeps, int rows))(Pass<double>) {
  return rows ? held8_f64 : sweeps > 8 ? deep_f64 : sweep_f64;
}

template <class Real> struct Rank {
  int lo, hi;                  // rows
  std::vector<Real> field[2];  // rows [lo - depth, hi + depth)
  unsigned came[2] = {}, rows[2] = {};
  std::vector<unsigned long long> sums;
};

template <class Real> bool right(const Case& c) {
  const int depth = c.sweeps, pitch = (c.nx + 7) & ~7, ny = c.cuts.back(), n = c.cuts.size();
  std::vector<std::vector<Real>> want(1 + c.sweeps * c.passes, std::vector<Real>((size_t)ny * pitch));
  for (size_t i = 0; i < want[0].size(); i++) want[0][i] = Real((i * 2654435761u >> 8 & 0xffff) / 65536. - .5);
  for (size_t k = 0; k + 1 < want.size(); k++)
    for (int y = 0; y < ny; y++)
      for (int x = 0; x < pitch; x++) {
        auto at = [&](int dy, int dx) { return want[k][(size_t)((y + dy + ny) % ny) * pitch + x + dx]; };
        const bool keep = x == 0 || x >= c.nx - 1 || (c.fixed && (y == 0 || y == ny - 1));
        want[k + 1][(size_t)y * pitch + x] =
            keep ? at(0, 0) : update(at(0, 0), at(0, -1), at(0, 1), at(-1, 0), at(1, 0));
      }

  std::vector<Rank<Real>> ranks(n);
  for (int r = 0; r < n; r++) {
    Rank<Real>& k = ranks[r];
    k.lo = r ? c.cuts[r - 1] : c.fixed, k.hi = c.cuts[r] - c.fixed;
    k.sums.resize((size_t)c.passes * c.sweeps * kSumWords);
    for (auto& f : k.field) f.resize((size_t)(k.hi - k.lo + 2 * depth) * pitch);
    for (int y = k.lo - depth; y < k.hi + depth; y++)
      for (int x = 0; x < pitch; x++)
        k.field[0][(size_t)(y - k.lo + depth) * pitch + x] = want[0][(size_t)((y + 2 * ny) % ny) * pitch + x];
  }

  auto pass = [&](int r, int p) {
    Rank<Real>& k = ranks[r];
    Pass<Real> a{};
    a.now = k.field[p % 2].data(), a.next = k.field[(p + 1) % 2].data(),
    a.sums = &k.sums[(size_t)p * c.sweeps * kSumWords];
    setBias(a);
    a.pitch = pitch, a.nx = c.nx, a.sweeps = c.sweeps, a.cut.seam = 3, a.cut.edge = 4;
    a.rowLo = k.lo - depth, a.rowHi = k.hi + depth, a.outLo = a.countLo = k.lo, a.outHi = a.countHi = k.hi;
    a.fixTop = c.fixed ? 0 : -1 << 29, a.fixBottom = c.fixed ? ny - 1 : 1 << 29;
    if (!c.fixed) {
      Rank<Real>* const neighbours[2] = {&ranks[(r + n - 1) % n], &ranks[(r + 1) % n]};
      for (int i = 0; i < 2; i++) {
        Rank<Real>& o = *neighbours[i];
        a.sides[i].to = o.field[(p + 1) % 2].data() +
                        (i ? 0 : (size_t)(o.hi - o.lo + depth) * pitch);  // k's upper edge fills o's lower halo
        if (n == 1) continue;
        a.sides[i].came = p ? &k.came[i] : nullptr, a.sides[i].theirs = &o.came[1 - i], a.sides[i].rows = &k.rows[i];
      }
      a.awaited = p, a.posted = p + 1, a.depth = depth;
    }
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<Block>> blocks;
    const Launch l = c.rows ? heldLaunchOf(a, c.rows, c.blocks, c.pipes)
                            : launchOf<Real>(shapeFor(Real(), c.sweeps), c.sweeps, c.blocks, c.pipes);
    auto* const kernel = kernelFor(Real(), c.sweeps, c.rows);
    launch(threads, blocks, l.blocks, l.threads, l.bytes, [a, kernel] { kernel(a); });
    for (auto& t : threads) t.join();
  };
  std::vector<std::thread> all;
  for (int r = 0; r < n; r++)
    all.emplace_back([&, r] {
      for (int p = 0; p < c.passes; p++) pass(r, p);
    });
  for (auto& t : all) t.join();

  int field = 0, sums = 0, counts = 0;
  for (auto& k : ranks) {
    for (int y = k.lo; y < k.hi; y++)
      field += memcmp(&k.field[c.passes % 2][(size_t)(y - k.lo + depth) * pitch], &want.back()[(size_t)y * pitch],
                      c.nx * sizeof(Real)) != 0;
    for (int i = 0; i + 1 < (int)want.size(); i++)
      sums += !sameSum(&k.sums[(size_t)i * kSumWords], want[i], want[i + 1], pitch, c.nx, 0, k.lo, k.hi);
    for (int i = 0; i < 2; i++) counts += k.rows[i] != 0 || (!c.fixed && n > 1 && k.came[i] != (unsigned)c.passes);
  }
  char work[60];
  if (c.rows) snprintf(work, sizeof work, "%d and %d tiles, %d rows a warp", c.blocks, c.pipes, c.rows);
  else snprintf(work, sizeof work, "%d blocks of %d pipelines", c.blocks, c.pipes);
  printf("f%zu, %d columns, %d rows, %d ranks, %d passes of %d sweeps, %s: %d rows, %d sums, %d words wrong\n",
         8 * sizeof(Real), c.nx, ny, n, c.passes, c.sweeps, work, field, sums, counts);
  return !field && !sums && !counts;
}

int main() {
  bool ok = true;
  for (const Case& c : {
           Case{250, {16}, false, 16, 2, 1, 2},         // a rank that is its own neighbour
           Case{250, {33}, true, 5, 1, 2, 2},           // fixed rows, a warp that does one sweep
           Case{250, {13, 30, 45}, false, 6, 2, 2, 2},  // ranks between two others, groups cut by stripes
           Case{5, {4, 7, 10, 14}, false, 3, 4, 1, 2},  // stripes as low as the halo, shares without rows
           Case{130, {20, 36}, false, 9, 2, 1, 1}, Case{260, {24}, false, 16, 2, 1, 2, 16},  // three tiles side by side
           Case{
               131, {24}, true, 5, 1, 2, 1, 16},  // fixed rows, an odd number of sweeps, a mesh that ends within a lane
           Case{250, {13, 30, 45}, false, 7, 3, 1, 2, 24},  // ranks between two others, groups cut by stripes
       })
    ok &= right<float>(c);
  for (const Case& c : {
           Case{150, {21, 40, 56}, false, 12, 2, 1, 2},
           Case{140, {30}, true, 14, 1, 1, 2},  // a warp with two sweeps
           Case{129, {17, 32}, false, 8, 2, 2, 1},
           Case{131, {24}, false, 12, 2, 1, 2, 8},
       })
    ok &= right<double>(c);
  return !ok;
}
