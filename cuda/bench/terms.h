// Checks and times the kernels with terms. Part of bench.cu.

template <class Real, int values> struct TermsType {
  using Arg = std::conditional_t<(values > 1), WeightedPass<Real>, TermsPass<Real, values == 1>>;
  static DeepShape shape() {
    const bool f32 = sizeof(Real) == 4;
    if (values > 1)
      return f32 ? shapeOf("SHAPE_WEIGHTED_F32", kWeightedF32) : shapeOf("SHAPE_WEIGHTED_F64", kWeightedF64);
    if (values) return f32 ? shapeOf("SHAPE_SOURCE_F32", kSourceF32) : shapeOf("SHAPE_SOURCE_F64", kSourceF64);
    return f32 ? shapeOf("SHAPE_FIXED_F32", kFixedF32) : shapeOf("SHAPE_FIXED_F64", kFixedF64);
  }
  static std::string name(const char* kind) {
    return std::string(kind) + (values > 1 ? "_weighted_" : values ? "_source_" : "_fixed_") +
           (sizeof(Real) == 4 ? "f32" : "f64");
  }
  static CUmodule module() { return values > 1 ? weightedModule : termsModule; }
};

// A rank holds a whole mesh: with periodic rows halos of `depth` rows, else the rows of fixed walls.
struct Held {
  int lo, hi, rowLo, rowHi;
  Held(const Problem& p, int depth) : lo(p.top()), hi(p.bottom()), rowLo(0), rowHi(p.ny) {
    if (p.walls[2] == 'p') rowLo = -depth, rowHi = p.ny + depth;
  }
  int rows() const { return rowHi - rowLo; }
};

template <class Real> __global__ void naiveTerms(Problem p, int rowLo, int rowHi, int pitch, const Real* values,
                                                 const Real* a, Real* b, bool copies) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = rowLo + (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= p.nx || y >= rowHi) return;
  const ptrdiff_t i = (ptrdiff_t)(y - rowLo) * pitch + x;
  if (copies) {
    if (x == 0) b[i] = b[i + p.nx - 2];
    if (x == p.nx - 1) b[i] = b[i - (p.nx - 2)];
    return;
  }
  const bool wraps = p.walls[2] == 'p';
  const int inside = wraps ? (y % p.ny + p.ny) % p.ny : y;
  if (p.keeps(inside, x) || (wraps && (y == rowLo || y == rowHi - 1))) {
    b[i] = a[i];
    return;
  }
  const Real west = a[x ? i - 1 : i + 1], east = a[x < p.nx - 1 ? i + 1 : i - 1];
  const Real north = a[y > rowLo ? i - pitch : i + pitch], south = a[y < rowHi - 1 ? i + pitch : i - pitch];
  const Real* const own = values + (ptrdiff_t)(y - rowLo) * pitch * max(p.values, 1) + x;
  b[i] = ofProblem(p, own, pitch, a[i], west, east, north, south);
}

// wrapRows makes the rows of f repeat every ny rows.
template <class Real> __global__ void wrapRows(Problem p, int rowLo, int rowHi, int pitch, Real* f) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= pitch || y >= p.ny) return;
  const Real v = f[(ptrdiff_t)(y - rowLo) * pitch + x];
  for (int to = y - (y - rowLo) / p.ny * p.ny; to < rowHi; to += p.ny)
    if (to >= rowLo) f[(ptrdiff_t)(to - rowLo) * pitch + x] = v;
}

// makeValues makes values of points of noise.
template <class Real> __global__ void makeValues(Real* f, size_t n, int pitch, int values) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    f[i] = valueOf<Real>(i / pitch % values, f[i]);
}

// Loaded is a pass with terms and its memory on the device.
template <class Real, int values> struct Loaded {
  typename TermsType<Real, values>::Arg a{};
  Real *field[2], *b;
  unsigned long long *sums, *fixed;
  int* busy;
  size_t n;

  Loaded(const Problem& p, int T, int blocks, Kind kind) {
    const Held h(p, T);
    const int pitch = (p.nx + 31) & ~31, valuePitch = pitch * std::max(values, 1);
    n = (size_t)h.rows() * pitch;
    const size_t all = (size_t)h.rows() * valuePitch;
    for (Real** m : {&field[0], &field[1]}) CK(cudaMalloc(m, n * sizeof(Real)));
    CK(cudaMalloc(&b, all * sizeof(Real)));
    CK(cudaMalloc(&sums, T * kSumWords * 8)), CK(cudaMemset(sums, 0, T * kSumWords * 8));
    const dim3 grid((pitch + 31) / 32, (h.rows() + 7) / 8), block(32, 8);
    fill<<<1024, 256>>>(field[0], n, pitch, kind), fill<<<1024, 256>>>(b, all, valuePitch, noise);
    makeValues<<<1024, 256>>>(b, all, pitch, std::max(values, 1));
    wrapRows<<<grid, block>>>(p, h.rowLo, h.rowHi, pitch, field[0]);
    wrapRows<<<dim3((valuePitch + 31) / 32, grid.y), block>>>(p, h.rowLo, h.rowHi, valuePitch, b);
    if (p.copies()) naiveTerms<<<grid, block>>>(p, h.rowLo, h.rowHi, pitch, b, field[0], field[0], true);
    CK(cudaMemcpy(field[1], field[0], n * sizeof(Real), cudaMemcpyDeviceToDevice));
    const Kept kept(p, h.rowLo, h.rowHi, pitch);
    CK(cudaMalloc(&fixed, kept.fixed.size() * 8)), CK(cudaMalloc(&busy, kept.busy.size() * 4));
    CK(cudaMemcpy(fixed, kept.fixed.data(), kept.fixed.size() * 8, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(busy, kept.busy.data(), kept.busy.size() * 4, cudaMemcpyHostToDevice));
    const Case c{p.nx, h.lo, h.hi, 0, T, -kNone, kNone, blocks, kind};
    static_cast<Pass<Real>&>(a) = makePass<Real>(c, field[0], field[1], sums, pitch);
    a.rowLo = h.rowLo, a.rowHi = h.rowHi;
    setTerms(a.terms, p, kept, pitch);
    a.terms.source = b, a.terms.fixed = fixed, a.terms.busy = busy;
  }
  ~Loaded() {
    for (void* m : {(void*)field[0], (void*)field[1], (void*)b, (void*)sums, (void*)fixed, (void*)busy}) cudaFree(m);
  }

  void launch(int blocks) {
    using Type = TermsType<Real, values>;
    const bool once = a.sweeps == 1 && !getenv("DEEP");
    CUfunction f;
    CU(cuModuleGetFunction(&f, Type::module(), Type::name(once ? "once" : "sweep").c_str()));
    Launch l{0, kOnceThreads, 0};
    if (once) {
      int perSM, SMs;
      CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&perSM, f, l.threads, 0));
      CU(cuDeviceGetAttribute(&SMs, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
      l.blocks = perSM * SMs;
    } else {
      const DeepShape s = Type::shape();
      l = launchOf<Real>(s, a.sweeps, blocks, pipesOf<Real>(f, s, a.sweeps, values), values);
      CU(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, l.bytes));
    }
    void* args[] = {&a};
    CU(cuLaunchKernel(f, l.blocks, 1, 1, l.threads, 1, 1, l.bytes, 0, args, 0));
  }
};

template <class Real, int values> bool rightTerms(const Problem& p, int T, int blocks, Kind kind) {
  const Held h(p, T);
  Loaded<Real, values> l(p, T, blocks, kind);
  const int pitch = l.a.pitch;
  Real* ref[2];
  for (Real*& r : ref) {
    CK(cudaMalloc(&r, l.n * sizeof(Real)));
    CK(cudaMemcpy(r, l.field[0], l.n * sizeof(Real), cudaMemcpyDeviceToDevice));
  }
  std::vector<std::vector<Real>> want(T + 1, std::vector<Real>(l.n));
  const dim3 grid((p.nx + 31) / 32, (h.rows() + 7) / 8), block(32, 8);
  for (int k = 0; k <= T; k++) {
    CK(cudaMemcpy(want[k].data(), ref[k & 1], l.n * sizeof(Real), cudaMemcpyDeviceToHost));
    for (bool copies : {false, true})
      if (!copies || p.copies())
        naiveTerms<<<grid, block>>>(p, h.rowLo, h.rowHi, pitch, l.b, ref[k & 1], ref[~k & 1], copies);
  }
  l.launch(blocks);
  CK(cudaGetLastError()), CK(cudaDeviceSynchronize());
  std::vector<Real> got(l.n);
  std::vector<unsigned long long> words(T * kSumWords);
  CK(cudaMemcpy(got.data(), l.field[1], l.n * sizeof(Real), cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(words.data(), l.sums, words.size() * 8, cudaMemcpyDeviceToHost));
  size_t field = 0, outside = 0;
  int sums = 0;
  for (int y = h.rowLo; y < h.rowHi; y++) {
    const size_t at = (size_t)(y - h.rowLo) * pitch;
    const bool in = y >= h.lo && y < h.hi;
    (in ? field : outside) += memcmp(&got[at], &want[in ? T : 0][at], p.nx * sizeof(Real)) != 0;
  }
  for (int k = 0; k < T; k++)
    sums += !sameSum(&words[k * kSumWords], want[k], want[k + 1], pitch, p.left(), p.right(), h.rowLo, h.lo, h.hi);
  if (field || outside || sums)
    printf("BAD %zu-byte %d x %d %s points %d values %d sweeps %d blocks %d: %zu rows, %zu outside, %d sums\n",
           sizeof(Real), p.nx, p.ny, p.walls, p.points, p.values, T, blocks, field, outside, sums);
  cudaFree(ref[0]), cudaFree(ref[1]);
  return !field && !outside && !sums;
}

// withValues calls f with the number of values of a point as a constant.
template <class F> auto withValues(int values, F f) {
  if (values > 1) return f(std::integral_constant<int, kWeightedValues>());
  return values ? f(std::integral_constant<int, 1>()) : f(std::integral_constant<int, 0>());
}

// checkTerms checks the kernels for the given numbers of values of a point.
template <class Real> bool checkTerms(const std::vector<int>& kinds) {
  int bad = 0, n = 0;
  const bool few = getenv("FEW");
  for (int nx : few ? std::vector{5, 300} : std::vector{3, 5, 128, 130, 500, 1023})
    for (int ny : few ? std::vector{40} : std::vector{9, 93, 301})
      for (const char* walls :
           few ? std::vector{"ffff", "nnpp", "ppnf"}
               : std::vector{"ffff", "ffpp", "nnnn", "nffn", "fnnf", "nnpp", "ppff", "pppp", "ppnf"})
        for (int points : {0, 1})
          for (int values : kinds)
            for (int T : few ? std::vector{1, 3, 16} : std::vector{1, 2, 3, 5, 8, 12, 16}) {
              if (walls[0] == 'p' && T > 1) continue;
              Problem p{nx, ny, {}, points, values};
              memcpy(p.walls, walls, 4);
              const int blocks = 1 + n % 7;
              const Kind kind = values || n % 3 ? noise : tiny;
              bad += !withValues(values, [&](auto v) { return rightTerms<Real, v>(p, T, blocks, kind); });
              n++;
            }
  printf("check terms %zu-byte: %d cases, %d bad\n", sizeof(Real), n, bad);
  return !bad;
}

template <class Real, int values> void timeTermsOf(const Problem& p, int T, int blocks) {
  Loaded<Real, values> l(p, T, blocks, noise);
  cudaEvent_t e0, e1;
  cudaEventCreate(&e0), cudaEventCreate(&e1);
  const bool once = getenv("ONCE");
  const int reps = once ? 1 : p.nx > 8000 ? 8 : 60;
  float best = 1e9, worst = 0;
  for (int r = 0; r < (once ? 1 : 5); r++) {
    cudaEventRecord(e0);
    for (int i = 0; i < reps; i++) l.a.now = l.field[i & 1], l.a.next = l.field[~i & 1], l.launch(blocks);
    cudaEventRecord(e1);
    CK(cudaEventSynchronize(e1));
    float ms;
    cudaEventElapsedTime(&ms, e0, e1);
    ms /= reps * T;
    best = std::min(best, ms), worst = std::max(worst, ms);
  }
  printf("terms %zu-byte N=%d T=%d blocks=%d %s points %d values %d: %.2f us/sweep (worst %.2f) %.0f GLUP/s\n",
         sizeof(Real), p.nx, T, blocks, p.walls, p.points, p.values, best * 1e3, worst * 1e3,
         (double)p.nx * p.ny / best / 1e6);
}
template <class Real> void timeTerms(const Problem& p, int T, int blocks) {
  withValues(p.values, [&](auto v) { timeTermsOf<Real, v>(p, T, blocks); });
}
