// Checks the sweep kernels, bit by bit, against kernels of one point a thread and sums computed on the host, and times
// them, without Go. It is for work on the kernels and loads the PTX or cubins named by the variables PTX, TERMS_PTX and
// WEIGHTED_PTX. run.sh builds and runs it, and sanitize.sh runs it under compute-sanitizer.
//
//   bench check              many shapes; FEW=1: fewer, for compute-sanitizer; TERMS=0, 1 or 5: only kernels
//                            without terms, with terms (../kernels/terms.cuh) or of weighted points
//   bench time N T B...      an N x N float32 and float64 mesh, T sweeps a pass, B blocks (T = 1: tiles of 8B rows)
//   bench terms N T B WALLS POINTS VALUES...
//                            the same for the kernels with terms: WALLS as in problem.h, POINTS 0, 1 (everywhere) or 2
//                            (plates), VALUES 0, 1 (a source) or 5 (weighted points)
//
// Variables for time: ROWS=R makes the mesh N x R. HELD=R,I,O (HELD64 for float64) keeps tiles in registers, with R
// rows for each warp and I and O tiles in the inner and outer columns of tiles. PIPES=P allows P pipelines in a block.
// SEAM and EDGE are those of shares.cuh. ONCE=1 launches each kernel once.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda.h>

#include "../kernels/pass.cuh"
#include "exact.h"
#include "launches.h"
#include "problem.h"

static void check(cudaError_t e, const char* what, int line) {
  if (e == cudaSuccess) return;
  printf("FAIL %s line %d: %s\n", what, line, cudaGetErrorString(e));
  exit(1);
}
#define CK(x) check((x), #x, __LINE__)

template <class Real>
__global__ void naive(const Real* a, Real* b, int pitch, int nx, int rows, int fixTop, int fixBottom) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= nx || y < 1 || y >= rows - 1) return;
  const size_t i = (size_t)y * pitch + x;
  const bool fixed = x == 0 || x == nx - 1 || y == fixTop || y == fixBottom;
  b[i] = fixed ? a[i] : update(a[i], a[i - 1], a[i + 1], a[i - pitch], a[i + pitch]);
}

enum Kind { noise, tiny, checkers };  // tiny: many magnitudes; checkers: the largest possible updates

template <class Real> __global__ void fill(Real* a, size_t n, int pitch, Kind kind) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    unsigned h = (unsigned)i * 2654435761u;
    h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;
    double v = h / 4294967296.0 - 0.5;
    if (kind == tiny) v = ldexp(v, -(int)(h % 140));
    if (kind == checkers) v = (i % pitch + i / pitch) & 1 ? 1 : -1;
    a[i] = (Real)v;
  }
}

struct Case {
  int nx, lo, hi, depth, sweeps, fixTop, fixBottom, blocks;
  Kind kind;
};
constexpr int kNone = 1 << 29;

template <class Real> Pass<Real> makePass(const Case& c, Real* now, Real* next, unsigned long long* sums, int pitch) {
  Pass<Real> p{};
  p.now = now, p.next = next, p.sums = sums, p.pitch = pitch, p.nx = c.nx;
  setBias(p);
  p.rowLo = c.lo - c.depth, p.rowHi = c.hi + c.depth, p.outLo = p.countLo = c.lo, p.outHi = p.countHi = c.hi;
  p.fixTop = c.fixTop, p.fixBottom = c.fixBottom, p.cut.tileRows = kGroupRows * c.blocks, p.sweeps = c.sweeps;
  p.cut.seam = getenv("SEAM") ? atoi(getenv("SEAM")) : 10;
  p.cut.edge = getenv("EDGE") ? atoi(getenv("EDGE")) : sizeof(Real) == 8 ? 6 : 4;
  return p;
}

static DeepShape shapeOf(const char* name, DeepShape otherwise) {  // as in SHAPE_F64=4,2,2
  if (const char* s = getenv(name)) sscanf(s, "%d,%d,%d", &otherwise.columns, &otherwise.levels, &otherwise.step);
  return otherwise;
}
template <class Real> struct Type;
template <> struct Type<float> {
  static constexpr const char* once = "once_f32";
  static const char* deep(int) { return "sweep_f32"; }
  static DeepShape shape(int T) { return shapeOf("SHAPE_F32", shapeFor(0.f, T)); }
};
template <> struct Type<double> {
  static constexpr const char* once = "once_f64";
  static const char* deep(int T) { return T > 8 && !getenv("SHAPE_F64") ? "deep_f64" : "sweep_f64"; }
  static DeepShape shape(int T) { return shapeOf("SHAPE_F64", shapeFor(0., T)); }
};

static CUmodule module, termsModule, weightedModule;  // the kernels without and with terms, and of weighted points

static void checkDriver(CUresult e, const char* what, int line) {
  const char* text = "";
  if (e == CUDA_SUCCESS) return;
  cuGetErrorString(e, &text);
  printf("FAIL %s line %d: %s\n", what, line, text);
  exit(1);
}
#define CU(x) checkDriver((x), #x, __LINE__)

template <class Real> const char* held() { return getenv(sizeof(Real) == 4 ? "HELD" : "HELD64"); }

// pipesOf returns how many pipelines fit into a block, as in ../shares.go.
template <class Real> int pipesOf(CUfunction deep, const DeepShape& s, int T, int values) {
  const int warps = warpsOf(s, T);
  int threads, shared;
  CU(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, deep));
  CU(cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
  const int pipes = std::min(
      {threads / 32 / warps, warps > 1 ? 15 / (warps / 2) : 99, shared / launchOf<Real>(s, T, 1, 1, values).bytes});
  return getenv("PIPES") ? std::min(pipes, atoi(getenv("PIPES"))) : pipes;
}

template <class Real> void launch(Pass<Real> p, int blocks) {
  const int T = p.sweeps;
  const DeepShape s = Type<Real>::shape(T);
  CUfunction once, deep;
  CU(cuModuleGetFunction(&once, module, Type<Real>::once)), CU(cuModuleGetFunction(&deep, module, Type<Real>::deep(T)));
  void* args[] = {&p};
  if (T == 1 && !getenv("DEEP")) {
    int perSM, SMs;
    CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&perSM, once, 128, 0));
    CU(cuDeviceGetAttribute(&SMs, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    CU(cuLaunchKernel(once, perSM * SMs, 1, 1, 128, 1, 1, 0, 0, args, 0));
    return;
  }
  auto call = [&](CUfunction kernel, const Launch& l) {
    CU(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l.bytes));
    CU(cuLaunchKernel(kernel, l.blocks, 1, 1, l.threads, 1, 1, l.bytes, 0, args, 0));
  };
  if (held<Real>()) {
    int rows, inner, outer;
    sscanf(held<Real>(), "%d,%d,%d", &rows, &inner, &outer);
    CUfunction kernel;
    const char* const float32 = rows == 24 ? "held24_f32" : "held16_f32";
    CU(cuModuleGetFunction(&kernel, module, sizeof(Real) == 8 ? "held8_f64" : float32));
    return call(kernel, heldLaunchOf(p, rows, inner, outer));
  }
  call(deep, launchOf<Real>(s, T, blocks, pipesOf<Real>(deep, s, T, 0)));
}

template <class Real> bool right(const Case& c) {
  const int pitch = (c.nx + 7) & ~7, rows = c.hi - c.lo + 2 * c.depth, base = c.lo - c.depth;
  const size_t n = (size_t)pitch * rows, bytes = n * sizeof(Real);
  Real *now, *next, *ref[2];
  unsigned long long* sums;
  CK(cudaMalloc(&now, bytes)), CK(cudaMalloc(&next, bytes)), CK(cudaMalloc(&ref[0], bytes)),
      CK(cudaMalloc(&ref[1], bytes));
  CK(cudaMalloc(&sums, c.sweeps * kSumWords * 8)), CK(cudaMemset(sums, 0, c.sweeps * kSumWords * 8));
  fill<<<256, 256>>>(now, n, pitch, c.kind);
  CK(cudaMemset(next, 0xee, bytes));
  for (auto r : ref) CK(cudaMemcpy(r, now, bytes, cudaMemcpyDeviceToDevice));
  std::vector<std::vector<Real>> want(c.sweeps + 1, std::vector<Real>(n));
  CK(cudaMemcpy(want[0].data(), now, bytes, cudaMemcpyDeviceToHost));
  for (int k = 0; k < c.sweeps; k++) {
    naive<<<dim3((c.nx + 31) / 32, (rows + 7) / 8), dim3(32, 8)>>>(ref[k & 1], ref[~k & 1], pitch, c.nx, rows,
                                                                   c.fixTop - base, c.fixBottom - base);
    CK(cudaMemcpy(want[k + 1].data(), ref[~k & 1], bytes, cudaMemcpyDeviceToHost));
  }
  Pass<Real> p = makePass(c, now, next, sums, pitch);
  // The outer rows go to halos[0] and halos[1]. The kernel reads two of the words, sets two, and counts in two.
  const bool hands = c.sweeps > 1 && c.hi - c.lo >= c.sweeps;
  const size_t halo = (size_t)c.sweeps * pitch;
  Real* halos;
  unsigned *signals, words32[6] = {7, 7, 0, 0, 0, 0};
  CK(cudaMalloc(&halos, 2 * halo * sizeof(Real))), CK(cudaMemset(halos, 0xee, 2 * halo * sizeof(Real)));
  CK(cudaMalloc(&signals, sizeof words32)), CK(cudaMemcpy(signals, words32, sizeof words32, cudaMemcpyHostToDevice));
  if (hands)
    for (int i = 0; i < 2; i++) p.sides[i] = {signals + i, halos + i * halo, signals + 2 + i, signals + 4 + i};
  if (hands) p.awaited = 7, p.posted = 8, p.depth = c.sweeps;
  launch(p, c.blocks);
  CK(cudaGetLastError()), CK(cudaDeviceSynchronize());
  std::vector<Real> got(n);
  std::vector<unsigned long long> words(c.sweeps * kSumWords);
  CK(cudaMemcpy(got.data(), next, bytes, cudaMemcpyDeviceToHost)),
      CK(cudaMemcpy(words.data(), sums, c.sweeps * kSumWords * 8, cudaMemcpyDeviceToHost));
  Real untouched;
  memset(&untouched, 0xee, sizeof untouched);
  size_t bad = 0, outside = 0;
  for (int y = 0; y < rows; y++)
    for (int x = 0; x < pitch; x++) {
      const size_t i = (size_t)y * pitch + x;
      const bool in = y + base >= c.lo && y + base < c.hi;
      if (in && x < c.nx) bad += memcmp(&got[i], &want[c.sweeps][i], sizeof(Real)) != 0;
      if (!in) outside += memcmp(&got[i], &untouched, sizeof(Real)) != 0;
    }
  size_t wrongHalos = 0;
  if (hands) {
    std::vector<Real> sent(2 * halo);
    CK(cudaMemcpy(sent.data(), halos, 2 * halo * sizeof(Real), cudaMemcpyDeviceToHost)),
        CK(cudaMemcpy(words32, signals, sizeof words32, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 2; i++) {
      wrongHalos += words32[2 + i] != 8 || words32[4 + i];
      for (int y = 0; y < c.sweeps; y++)
        wrongHalos += memcmp(&sent[i * halo + (size_t)y * pitch],
                             &want[c.sweeps][(size_t)((i ? c.hi - c.sweeps : c.lo) - base + y) * pitch],
                             c.nx * sizeof(Real)) != 0;
    }
  }
  int badSums = 0;
  for (int k = 0; k < c.sweeps; k++)
    badSums += !sameSum(&words[k * kSumWords], want[k], want[k + 1], pitch, 1, c.nx - 1, base, c.lo, c.hi);
  if (bad || outside || badSums || wrongHalos)
    printf(
        "BAD %zu-byte nx=%d rows [%d,%d) depth %d sweeps %d fixed %d %d blocks %d kind %d: field %zu outside %zu sums "
        "%d handed on %zu\n",
        sizeof(Real), c.nx, c.lo, c.hi, c.depth, c.sweeps, c.fixTop, c.fixBottom, c.blocks, c.kind, bad, outside,
        badSums, wrongHalos);
  cudaFree(now), cudaFree(next), cudaFree(ref[0]), cudaFree(ref[1]), cudaFree(sums), cudaFree(halos), cudaFree(signals);
  return !(bad || outside || badSums || wrongHalos);
}

template <class Real> bool checkAll() {
  int bad = 0, n = 0;
  const bool few = getenv("FEW");
  for (int nx : few ? std::vector{5, 300} : std::vector{3, 4, 5, 127, 130, 500, 1023})
    for (Kind kind : {noise, tiny, checkers})
      for (int T : few ? std::vector{1, 3, 16} : std::vector{1, 2, 3, 4, 7, 8, 12, 16}) {
        const int deep = std::max(T, 8);
        for (const Case& c :
             {Case{nx, 8, 80, T, T, -kNone, kNone, 5, kind}, Case{nx, 1, 93, T, T, 0, 93, 17, kind},
              Case{nx, 1, 9, deep, T, -kNone, kNone, 1, kind}, Case{nx, 16, 301, deep, T, -kNone, 301, 3, kind}}) {
          if (held<Real>() && T == 1) continue;
          bad += !right<Real>(c), n++;
        }
      }
  printf("check %zu-byte: %d cases, %d bad\n", sizeof(Real), n, bad);
  return !bad;
}

template <class Real> void timeAll(int N, int T, const std::vector<int>& counts) {
  const int rows = getenv("ROWS") ? atoi(getenv("ROWS")) : N;
  const size_t n = (size_t)N * (rows + 2 * T);
  Real *a, *b;
  unsigned long long* sums;
  CK(cudaMalloc(&a, n * sizeof(Real))), CK(cudaMalloc(&b, n * sizeof(Real))), CK(cudaMalloc(&sums, T * kSumWords * 8));
  fill<<<4096, 256>>>(a, n, N, noise);
  CK(cudaMemset(b, 0, n * sizeof(Real)));
  cudaEvent_t e0, e1;
  cudaEventCreate(&e0), cudaEventCreate(&e1);
  for (int blocks : counts) {
    const Case c{N, 1, rows - 1, T, T, -kNone, kNone, blocks, noise};
    const bool once = getenv("ONCE");
    const int reps = once ? 1 : N > 8000 ? 8 : 60;
    float best = 1e9, worst = 0;
    for (int r = 0; r < (once ? 1 : 5); r++) {
      cudaEventRecord(e0);
      for (int i = 0; i < reps; i++) launch(makePass(c, i & 1 ? b : a, i & 1 ? a : b, sums, N), blocks);
      cudaEventRecord(e1);
      CK(cudaEventSynchronize(e1));
      float ms;
      cudaEventElapsedTime(&ms, e0, e1);
      ms /= reps * T;
      best = std::min(best, ms), worst = std::max(worst, ms);
    }
    printf("%zu-byte N=%d T=%d blocks=%d: %.2f us/sweep (worst %.2f) %.0f GLUP/s\n", sizeof(Real), N, T, blocks,
           best * 1e3, worst * 1e3, (double)N * rows / best / 1e6);
  }
  cudaFree(a), cudaFree(b), cudaFree(sums);
}

#include "terms.h"

// load loads a module, plain or packed by gzip.
static void load(CUmodule& to, const std::string& path) {
  FILE* f = popen(("gzip -dcf " + path).c_str(), "r");
  std::string ptx;
  for (int c; f && (c = fgetc(f)) != EOF;) ptx += (char)c;
  if (!f || pclose(f)) printf("%s cannot be read\n", path.c_str()), exit(1);
  const auto start = std::chrono::steady_clock::now();
  CU(cuModuleLoadData(&to, ptx.c_str()));
  printf("%s: compiled by the driver in %.2f s\n", path.c_str(),
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

int main(int argc, char** argv) {
  CK(cudaFree(0));
  load(module, getenv("PTX") ? getenv("PTX") : "../kernels/sweep.ptx.gz");
  load(termsModule, getenv("TERMS_PTX") ? getenv("TERMS_PTX") : "../kernels/terms.ptx.gz");
  load(weightedModule, getenv("WEIGHTED_PTX") ? getenv("WEIGHTED_PTX") : "../kernels/weighted.ptx.gz");
  if (argc > 1 && std::string(argv[1]) == "check") {
    const std::string terms = getenv("TERMS") ? getenv("TERMS") : "";
    bool ok = true;
    const auto runs = [&](const char* which) { return terms.empty() || terms == which; };
    if (runs("0")) ok &= checkAll<float>() & checkAll<double>();
    if (runs("1") && !getenv("HELD")) ok &= checkTerms<float>({0, 1}) & checkTerms<double>({0, 1});
    if (runs("5") && !getenv("HELD"))
      ok &= checkTerms<float>({kWeightedValues}) & checkTerms<double>({kWeightedValues});
    return !ok;
  }
  if (argc > 7 && std::string(argv[1]) == "terms")
    for (int i = 5; i + 2 < argc; i += 3) {
      Problem p{atoi(argv[2]), atoi(argv[2]), {}, atoi(argv[i + 1]), atoi(argv[i + 2])};
      memcpy(p.walls, argv[i], 4);
      timeTerms<float>(p, atoi(argv[3]), atoi(argv[4])), timeTerms<double>(p, atoi(argv[3]), atoi(argv[4]));
    }
  if (argc > 4 && std::string(argv[1]) == "time") {
    std::vector<int> counts;
    for (int i = 4; i < argc; i++) counts.push_back(atoi(argv[i]));
    timeAll<float>(atoi(argv[2]), atoi(argv[3]), counts), timeAll<double>(atoi(argv[2]), atoi(argv[3]), counts);
  }
}
