// Runs the kernels on fibers, those of several sweeps for ranks that exchange halos as ranks of one node do, one thread
// for each rank, and compares fields and sums bit by bit with single sweeps. Prints a line for each case.
#include <cstdio>
#include <cstdlib>
#include <thread>

#define PER_THREAD thread_local
#include "fibers.h"

#include "../bench/exact.h"
#include "../bench/launches.h"
#include "../bench/problem.h"
#include "../kernels/sweep_deep.cu"
#include "../kernels/sweep_held.cu"
#include "../kernels/sweep_once.cu"
#include "../kernels/terms.cu"
#include "../kernels/weighted.cu"

// Case is a problem whose rows are divided among ranks at cuts, the last of which is the number of rows.
struct Case {
  Problem problem;  // of any number of rows
  std::vector<int> cuts;
  int sweeps, passes, blocks, pipes;
  int rows = 0;  // if not 0, tiles in registers with this many rows for each warp: `blocks` tiles in an inner column
                 // of tiles and `pipes` in an outer one
  int more = 0;  // passes between two exchanges besides the last one: halos are (1+more) * sweeps rows deep
  int bare = 0;  // if not 0, of each so many passes the last one has a norm, of its last sweep; the others have none
  bool raced = false;  // run under ThreadSanitizer too
  bool normed(int sweep) const {
    return !bare || (sweep % sweeps == sweeps - 1 && (sweep / sweeps + 1) % bare == 0);
  }
  int cycle() const { return 1 + more; }
};

// Kernels are those for a type: with terms for a problem that needs them. rows is that of Case.
template <class Real> struct Kernels {
  void (*once)(Pass<Real>);
  void (*onceFixed)(FixedPass<Real>);
  void (*onceSource)(SourcePass<Real>);
  void (*onceWeighted)(WeightedPass<Real>);
  void (*deepFixed)(FixedPass<Real>);
  void (*deepSource)(SourcePass<Real>);
  void (*deepWeighted)(WeightedPass<Real>);
  DeepShape fixed, source, weighted;
};
static const Kernels<float> kernels32 = {once_f32,         once_fixed_f32,     once_source_f32, once_weighted_f32,
                                         sweep_fixed_f32,  sweep_source_f32,   sweep_weighted_f32,
                                         kFixedF32,        kSourceF32,         kWeightedF32};
static const Kernels<double> kernels64 = {once_f64,        once_fixed_f64,     once_source_f64, once_weighted_f64,
                                          sweep_fixed_f64, sweep_source_f64,   sweep_weighted_f64,
                                          kFixedF64,       kSourceF64,         kWeightedF64};
static const Kernels<float>& kernelsOf(float) { return kernels32; }
static const Kernels<double>& kernelsOf(double) { return kernels64; }
static void (*deepOf(float, int, int rows))(Pass<float>) {
  return rows == 24 ? held24_f32 : rows ? held16_f32 : sweep_f32;
}
static void (*deepOf(double, int sweeps, int rows))(Pass<double>) {
  return rows ? held8_f64 : sweeps > 8 ? deep_f64 : sweep_f64;
}

static void (*bareOf(float))(BarePass<float>) { return bare_f32; }
static void (*bareOf(double))(BarePass<double>) { return bare_f64; }
static DeepShape bareShape(float) { return kBareF32; }
static DeepShape bareShape(double) { return kBareF64; }

template <class Real> struct Rank {
  int lo, hi;                  // rows that it sweeps
  int rowLo, rowHi;            // rows that it holds
  std::vector<Real> field[2];  // these rows
  std::vector<Real> values;
  unsigned came[2] = {}, rows[2] = {}, room[2] = {};
  std::vector<unsigned long long> sums;
};

static double noise(size_t i) { return (i * 2654435761u >> 8 & 0xffff) / 65536. - .5; }

// Run is a case in one type.
template <class Real> struct Run {
  const Case& c;
  const Problem p;
  const int depth, pitch, n;
  std::vector<std::vector<Real>> want;  // the field before each sweep, and at the end
  const int valuePitch;                 // from a row of values to the next
  std::vector<Real> values;
  std::vector<Rank<Real>> ranks;

  explicit Run(const Case& c)
      : c(c),
        p{c.problem.nx,
          c.cuts.back(),
          {c.problem.walls[0], c.problem.walls[1], c.problem.walls[2], c.problem.walls[3]},
          c.problem.points,
          c.problem.values},
        depth(c.sweeps * c.cycle()),
        pitch((p.nx + 7) & ~7),
        n(c.cuts.size()),
        want(1 + c.sweeps * c.passes, std::vector<Real>((size_t)p.ny * pitch)),
        valuePitch(pitch * std::max(p.values, 1)),
        values((size_t)p.ny * valuePitch),
        ranks(n) {}

  bool wraps() const { return p.walls[2] == 'p'; }
  int inside(int y) const { return wraps() ? (y % p.ny + p.ny) % p.ny : y; }

  void copyColumns(std::vector<Real>& f) const {
    if (p.copies())
      for (int y = 0; y < p.ny; y++) {
        Real* row = &f[(size_t)y * pitch];
        row[0] = row[p.nx - 2], row[p.nx - 1] = row[1];
      }
  }
  void sweepAll() {
    for (size_t i = 0; i < want[0].size(); i++) want[0][i] = noise(i);
    for (size_t i = 0; i < values.size(); i++) values[i] = valueOf<Real>(i % valuePitch / pitch, noise(i + 77));
    copyColumns(want[0]);
    for (size_t k = 0; k + 1 < want.size(); k++) {
      for (int y = 0; y < p.ny; y++)
        for (int x = 0; x < pitch; x++) {
          auto at = [&](int row, int column) { return want[k][(size_t)inside(row) * pitch + column]; };
          Real& to = want[k + 1][(size_t)y * pitch + x];
          to = at(y, x);
          if (p.keeps(y, x)) continue;
          const Real west = at(y, x ? x - 1 : 1), east = at(y, x < p.nx - 1 ? x + 1 : x - 1);
          const Real north = at(y || wraps() ? y - 1 : 1, x), south = at(y < p.ny - 1 || wraps() ? y + 1 : y - 1, x);
          to = ofProblem(p, &values[(size_t)y * valuePitch + x], pitch, to, west, east, north, south);
        }
      copyColumns(want[k + 1]);
    }
  }

  bool neighbour(int r, int side) const { return wraps() || (side ? r < n - 1 : r > 0); }
  void load() {
    for (int r = 0; r < n; r++) {
      Rank<Real>& k = ranks[r];
      k.lo = r ? c.cuts[r - 1] : p.top(), k.hi = r < n - 1 ? c.cuts[r] : p.bottom();
      k.rowLo = neighbour(r, 0) ? k.lo - depth : 0, k.rowHi = neighbour(r, 1) ? k.hi + depth : p.ny;
      k.sums.resize((size_t)c.passes * c.sweeps * kSumWords);
      for (auto& f : k.field) f.resize((size_t)(k.rowHi - k.rowLo) * pitch);
      k.values.resize((size_t)(k.rowHi - k.rowLo) * valuePitch);
      for (int y = k.rowLo; y < k.rowHi; y++)
        for (int x = 0; x < pitch; x++) {
          const size_t to = (size_t)(y - k.rowLo) * pitch + x, from = (size_t)inside(y) * pitch + x;
          k.field[0][to] = k.field[1][to] = want[0][from];
        }
      for (int y = k.rowLo; y < k.rowHi; y++)
        std::copy_n(&values[(size_t)inside(y) * valuePitch], valuePitch,
                    &k.values[(size_t)(y - k.rowLo) * valuePitch]);
    }
  }

  // halo returns where row `row` of a rank's edge lies in the halo of its neighbour, after pass i.
  Real* halo(int r, int side, int i) {
    Rank<Real>& o = ranks[side ? (r + 1) % n : (r + n - 1) % n];
    return o.field[(i + 1) % 2].data() + (side ? 0 : (size_t)(o.hi - o.rowLo) * pitch);
  }

  template <class Arg> void setPass(Arg& a, int r, int i) {
    Rank<Real>& k = ranks[r];
    a.now = k.field[i % 2].data(), a.next = k.field[(i + 1) % 2].data();
    a.sums = &k.sums[(size_t)i * c.sweeps * kSumWords];
    setBias(a);
    a.pitch = pitch, a.nx = p.nx, a.sweeps = c.sweeps, a.cut.seam = 3, a.cut.edge = 4, a.cut.tileRows = 16;
    a.rowLo = k.rowLo, a.rowHi = k.rowHi, a.outLo = a.countLo = k.lo, a.outHi = a.countHi = k.hi;
    const int margin = (c.more - i % c.cycle()) * c.sweeps;
    if (neighbour(r, 0)) a.outLo -= margin;
    if (neighbour(r, 1)) a.outHi += margin;
    a.fixTop = p.walls[2] == 'f' ? 0 : -1 << 29, a.fixBottom = p.walls[3] == 'f' ? p.ny - 1 : 1 << 29;
    if (c.sweeps == 1) return;
    for (int side = 0; side < 2; side++) {
      if (!neighbour(r, side)) continue;
      if (c.more) {  // the kernel waits for halos, and hands nothing on
        a.awaited = i / c.cycle();
        a.sides[side].came = i % c.cycle() == 0 && i ? &k.came[side] : nullptr;
        continue;
      }
      a.awaited = i, a.posted = i + 1, a.depth = depth;
      a.sides[side].to = halo(r, side, i);
      if (n == 1) continue;
      Rank<Real>& o = ranks[side ? (r + 1) % n : (r + n - 1) % n];
      a.sides[side].came = i ? &k.came[side] : nullptr, a.sides[side].theirs = &o.came[1 - side],
      a.sides[side].rows = &k.rows[side];
    }
  }
  template <class Arg> void call(void (*kernel)(Arg), const Arg& a, const Launch& l) {
    fibers.run(l.blocks, l.threads, l.bytes, [a, kernel] { kernel(a); });
  }
  template <class Arg> void passWith(int r, int i, void (*once)(Arg), void (*deep)(Arg), const DeepShape& s) {
    Arg a{};
    setPass(a, r, i);
    const Kept kept(p, a.rowLo, a.rowHi, pitch);
    setTerms(a.terms, p, kept, pitch);
    a.terms.fixed = kept.fixed.data(), a.terms.busy = kept.busy.data(), a.terms.source = ranks[r].values.data();
    if (c.sweeps == 1) return call(once, a, {c.blocks, kOnceThreads, 0});
    call(deep, a, launchOf<Real>(s, c.sweeps, c.blocks, c.pipes, p.values));
  }
  void pass(int r, int i) {
    const Kernels<Real>& k = kernelsOf(Real());
    if (p.values > 1) return passWith(r, i, k.onceWeighted, k.deepWeighted, k.weighted);
    if (p.values) return passWith(r, i, k.onceSource, k.deepSource, k.source);
    if (p.terms()) return passWith(r, i, k.onceFixed, k.deepFixed, k.fixed);
    if (c.bare) {
      BarePass<Real> a{};
      setPass(a, r, i);
      if (!c.normed(i * c.sweeps + c.sweeps - 1)) a.countHi = a.countLo;
      return call(bareOf(Real()), a, launchOf<Real>(bareShape(Real()), c.sweeps, c.blocks, c.pipes));
    }
    Pass<Real> a{};
    setPass(a, r, i);
    if (c.sweeps == 1) return call(k.once, a, {c.blocks, kOnceThreads, 0});
    call(deepOf(Real(), c.sweeps, c.rows), a,
         c.rows ? heldLaunchOf(a, c.rows, c.blocks, c.pipes)
                : launchOf<Real>(shapeFor(Real(), c.sweeps), c.sweeps, c.blocks, c.pipes));
  }
  void passes() {
    if (c.sweeps == 1) {  // these kernels hand nothing on
      for (int i = 0; i < c.passes; i++) {
        for (int r = 0; r < n; r++) pass(r, i);
        for (int r = 0; r < n; r++)
          for (int side = 0; side < 2; side++)
            if (neighbour(r, side)) {
              const Rank<Real>& k = ranks[r];
              const size_t from = (size_t)((side ? k.hi - depth : k.lo) - k.rowLo) * pitch;
              memcpy(halo(r, side, i), &k.field[(i + 1) % 2][from], (size_t)depth * pitch * sizeof(Real));
            }
      }
      return;
    }
    std::vector<std::thread> all;
    for (int r = 0; r < n; r++)
      all.emplace_back([this, r] {
        for (int i = 0; i < c.passes; i++) {
          const bool last = c.more && i % c.cycle() == c.more;
          if (last) makeRoom(r, i);
          pass(r, i);
          if (last) push(r, i);
        }
      });
    for (auto& t : all) t.join();
  }
  // makeRoom tells the neighbours of a rank that the halos that pass i leaves are not read any more.
  void makeRoom(int r, int i) {
    for (unsigned& word : ranks[r].room) __atomic_store_n(&word, i / c.cycle() + 1, __ATOMIC_RELEASE);
  }
  // push copies the edges of a rank into the halos of its neighbours, after pass i, as push_rows does.
  void push(int r, int i) {
    const Rank<Real>& k = ranks[r];
    const unsigned number = i / c.cycle() + 1;
    for (int side = 0; side < 2; side++) {
      Rank<Real>& o = ranks[side ? (r + 1) % n : (r + n - 1) % n];
      while (__atomic_load_n(&o.room[1 - side], __ATOMIC_ACQUIRE) < number) std::this_thread::yield();
      const size_t from = (size_t)((side ? k.hi - depth : k.lo) - k.rowLo) * pitch;
      memcpy(halo(r, side, i), &k.field[(i + 1) % 2][from], (size_t)depth * pitch * sizeof(Real));
      __atomic_store_n(&o.came[1 - side], number, __ATOMIC_RELEASE);
    }
  }

  // rightSum says whether a rank's sum of a sweep is right. Sweeps without a norm have none.
  bool rightSum(const Rank<Real>& k, int sweep) const {
    const unsigned long long* words = &k.sums[(size_t)sweep * kSumWords];
    if (!c.normed(sweep)) return std::all_of(words, words + kSumWords, [](unsigned long long w) { return w == 0; });
    return sameSum(words, want[sweep], want[sweep + 1], pitch, p.left(), p.right(), 0, k.lo, k.hi);
  }

  bool right() {
    sweepAll();
    load();
    passes();
    int field = 0, sums = 0, counts = 0;
    for (int r = 0; r < n; r++) {
      Rank<Real>& k = ranks[r];
      for (int y = k.lo; y < k.hi; y++)
        field += memcmp(&k.field[c.passes % 2][(size_t)(y - k.rowLo) * pitch], &want.back()[(size_t)y * pitch],
                        p.nx * sizeof(Real)) != 0;
      for (int i = 0; i + 1 < (int)want.size(); i++)
        sums += !rightSum(k, i);
      for (int i = 0; i < 2; i++)
        counts += k.rows[i] != 0 ||
                  (c.sweeps > 1 && n > 1 && neighbour(r, i) && k.came[i] != (unsigned)(c.passes / c.cycle()));
    }
    char work[60];
    if (c.rows) snprintf(work, sizeof work, "%d and %d tiles, %d rows a warp", c.blocks, c.pipes, c.rows);
    else if (c.sweeps == 1) snprintf(work, sizeof work, "%d blocks", c.blocks);
    else snprintf(work, sizeof work, "%d blocks of %d pipelines", c.blocks, c.pipes);
    char halos[30] = "";
    if (c.more) snprintf(halos, sizeof halos, ", halo %d", depth);
    const char kind = c.bare ? 'b' : 'f';
    printf("%c %c%zu %s%s%s, %dx%d, %d ranks, %d passes of %d sweeps%s, %s: %d rows, %d sums, %d words wrong\n",
           c.raced ? '*' : ' ', kind, 8 * sizeof(Real), p.walls,
           p.values > 1 ? " values" : p.values ? " source" : "", p.points ? " points" : "",
           p.nx, p.ny, n, c.passes, c.sweeps, halos, work, field, sums, counts);
    return !field && !sums && !counts;
  }
};

static Problem plain(int nx, const char* top) { return {nx, 0, {'f', 'f', top[0], top[0]}, 0, 0}; }
static Problem points(int nx, const char* w) { return {nx, 0, {w[0], w[1], w[2], w[3]}, 1, 0}; }
static Problem walls(int nx, const char* w) { return {nx, 0, {w[0], w[1], w[2], w[3]}, 0, 0}; }
static Problem source(int nx, const char* w, int points = 1) { return {nx, 0, {w[0], w[1], w[2], w[3]}, points, 1}; }
static Problem weighted(int nx, const char* w, int points = 1) {
  return {nx, 0, {w[0], w[1], w[2], w[3]}, points, kWeightedValues};
}

// raced marks a case that ThreadSanitizer watches too. Together these cases run every kernel in which threads share
// memory or wait for each other.
static Case raced(Case c) {
  c.raced = true;
  return c;
}

// With an argument, main runs the raced cases alone.
int main(int argc, char**) {
  bool ok = true;
  for (const Case& c : {
           Case{plain(250, "p"), {16}, 16, 2, 1, 2},         // a rank that is its own neighbour
           Case{plain(250, "f"), {33}, 5, 1, 2, 2},          // fixed rows, a warp that does one sweep
           raced(Case{plain(250, "p"), {13, 30, 45}, 6, 2, 2, 2}),  // ranks between two others, groups cut by stripes
           Case{plain(5, "p"), {4, 7, 10, 14}, 3, 4, 1, 2},  // stripes as low as the halo, shares without rows
           Case{plain(130, "p"), {20, 36}, 9, 2, 1, 1},
           Case{plain(260, "p"), {24}, 16, 2, 1, 2, 16},  // three tiles side by side
           raced(Case{plain(131, "f"), {24}, 5, 1, 2, 1, 16}),   // odd sweeps, a mesh that ends within a lane
           raced(Case{plain(250, "p"), {13, 30, 45}, 7, 3, 1, 2, 24}),
           // Halos deeper than a pass, and parts so low that the second one reads halos too.
           Case{plain(130, "p"), {40, 80}, 4, 5, 3, 3, 0, 3},
           raced(Case{plain(131, "p"), {40, 80}, 4, 5, 4, 4, 16, 3}),
           Case{plain(515, "f"), {40}, 1, 2, 2, 0},
           // Without norms, or with that of the last sweep.
           Case{plain(250, "p"), {16}, 16, 2, 1, 2, 0, 0, 1},
           Case{plain(250, "p"), {13, 30, 45}, 6, 4, 2, 2, 0, 0, 2},
           Case{plain(250, "f"), {33}, 2, 3, 2, 2, 0, 0, 3},
           raced(Case{plain(130, "p"), {40, 80}, 4, 5, 3, 3, 0, 3, 4}),
           // With terms. Of three strips the middle one has no fixed point below row 10.
           Case{points(620, "ffff"), {140}, 7, 1, 2, 2},
           raced(Case{points(250, "ffpp"), {13, 30, 45}, 6, 2, 2, 2}),
           Case{walls(250, "nnnn"), {33}, 16, 1, 1, 2},
           Case{walls(249, "nfnf"), {24, 41}, 5, 2, 2, 1},
           Case{source(620, "ffff", 0), {90}, 16, 1, 1, 2},
           Case{source(250, "ffpp"), {16, 32, 50}, 11, 2, 1, 2},
           Case{source(256, "nnnn"), {24, 50}, 8, 2, 2, 2},
           raced(Case{source(130, "fnfn"), {20}, 2, 3, 2, 4}),  // one warp a pipeline
           Case{points(515, "ppff"), {16, 40}, 1, 3, 2, 0},
           Case{source(514, "pppp"), {16, 40}, 1, 3, 2, 0},
           Case{source(3, "pppp"), {12}, 1, 3, 1, 0},
           raced(Case{source(513, "nnnn"), {24, 50}, 1, 2, 3, 0}),
           // Weighted points: the last warp with fewer sweeps, a pipeline of one warp, and single sweeps.
           raced(Case{weighted(130, "ffpp"), {50}, 11, 1, 1, 1}),
           Case{weighted(250, "ffpp"), {16, 32, 50}, 15, 2, 1, 1},
           Case{weighted(620, "nfnf", 0), {60}, 16, 1, 2, 1},
           Case{weighted(130, "fnfn"), {20}, 3, 2, 2, 2},
           Case{weighted(514, "pppp"), {16, 40}, 1, 2, 2, 0},
       })
    if (c.raced || argc < 2) ok &= Run<float>(c).right();
  for (const Case& c : {
           Case{plain(150, "p"), {21, 40, 56}, 12, 2, 1, 2},
           raced(Case{plain(140, "f"), {30}, 14, 1, 1, 2}),  // a warp with two sweeps
           raced(Case{plain(129, "p"), {17, 32}, 8, 2, 2, 1}),
           raced(Case{plain(131, "p"), {24}, 12, 2, 1, 2, 8}),
           Case{plain(131, "p"), {40, 80}, 4, 5, 8, 8, 8, 3},
           Case{points(310, "nfff"), {130}, 12, 1, 1, 3},
           raced(Case{walls(150, "nnpp"), {21, 40, 56}, 7, 2, 1, 2}),
           Case{source(310, "fffn"), {40, 90}, 12, 1, 1, 2},
           raced(Case{source(140, "nnpp"), {24}, 14, 2, 1, 1}),
           Case{points(260, "ppnn"), {30}, 1, 2, 1, 0},
           Case{source(516, "ppfn"), {24, 50}, 1, 2, 2, 0},
           Case{weighted(150, "nnpp"), {24, 50}, 16, 1, 2, 1},
           Case{weighted(140, "ffnn", 0), {30}, 6, 2, 1, 2},
           Case{weighted(516, "nnff"), {24, 50}, 1, 2, 2, 0},
           // Without norms, or with that of the last sweep.
           Case{plain(150, "p"), {21, 40, 56}, 12, 2, 1, 2, 0, 0, 1},
           raced(Case{plain(140, "f"), {30}, 16, 2, 1, 2, 0, 0, 2}),
           Case{plain(131, "p"), {40, 80}, 4, 5, 3, 3, 0, 3, 2},
       })
    if (c.raced || argc < 2) ok &= Run<double>(c).right();
  return !ok;
}
