// Small levels, in tiles: a block keeps a part of a level in the registers of its threads for all sweeps. A warp has
// kRows rows of a strip of columns. Warps hand each other their outer rows through shared memory before each sweep, so
// a sweep takes one barrier. A level takes as long as its slowest tile, some microseconds; the pipes of
// multigrid_pipe.cuh need a step for each row of a part, and move less of the tiles' borders on large levels.
#pragma once
#include "multigrid_strip.cuh"
#include "sum.cuh"

// TileKind is what distinguishes the kernels.
template <class R, int kColumns, int rows, int warps, bool source, bool zero, bool up> struct TileKind {
  using Real = R;
  static constexpr int W = kColumns, kRows = rows;  // of a lane
  static constexpr int kWarps = warps, kHeight = warps * rows;
  static constexpr bool kSource = source, kZero = zero, kUp = up;  // as in Kind
  static constexpr bool kCounts = !up && !zero;
  static constexpr bool kHoldsB = source && sizeof(R) == 4;  // b is in registers too; otherwise in shared memory
  static constexpr int kSide = up ? 4 : 8, kWidth = kWarp * W, kStep = kWidth - 2 * kSide;
  static constexpr int kFirst = zero ? 1 : 0;
  // Rows above and below those that the tile makes: a sweep uses up one. The defect takes one more, and the restriction
  // one above and two below. Tiles that count begin with a group.
  static constexpr int kAbove = up ? kSmooth : kCounts ? kGroupRows : kSmooth + 2 - kFirst;
  static constexpr int kBelow = up ? kSmooth : kSmooth + 3 - kFirst;
  static constexpr int kRowBytes = kWidth * (int)sizeof(R), kEdgeBytes = 2 * warps * kRowBytes;
  static constexpr int kDefectBytes = up ? 0 : kHeight * kWidth * 4;
  static constexpr int kBBytes = source && !kHoldsB ? kHeight * kRowBytes : 0;
  // Of shared memory: outer rows of all warps, twice, of which the second are overwritten by the defects; b; sums.
  static constexpr int kBAt = kEdgeBytes + (kEdgeBytes > kDefectBytes ? kEdgeBytes : kDefectBytes);
  static constexpr int kBytes = kBAt + kBBytes + (kCounts ? warps * kSumWords * 8 : 0);
  static_assert(kColumns * rows <= 32, "a lane has a bit for each of its points");
  static_assert(!kCounts || (rows == kGroupRows && kColumns == kGroupColumns), "a lane has a group of the norm");
};

// put and get move the lane's columns of a row to and from shared memory, without conflicts of banks.
template <class Real, int W> __device__ __forceinline__ void put(char* row, int lane, const Row<Real, W>& r) {
  if constexpr (W * sizeof(Real) == 8) {
    *(float2*)(row + 8 * lane) = make_float2(r.v[0], r.v[1]);
  } else {
#pragma unroll
    for (int p = 0; p < W / kPer16<Real>; p++)
      store16((Real*)(row + 16 * (kWarp * p + lane)), r.v + p * kPer16<Real>);
  }
}
template <class Real, int W> __device__ __forceinline__ void get(Row<Real, W>& r, const char* row, int lane) {
  if constexpr (W * sizeof(Real) == 8) {
    const float2 t = *(const float2*)(row + 8 * lane);
    r.v[0] = t.x, r.v[1] = t.y;
  } else {
    take(r, row + 16 * lane);
  }
}

template <class K> struct Tile : Strip<typename K::Real, K::W, K::kSide> {
  using Real = typename K::Real;
  static constexpr int W = K::W, kRows = K::kRows;
  using R = Row<Real, W>;
  using S = Strip<Real, W, K::kSide>;
  using S::each, S::keeps, S::lane, S::load, S::stores, S::x;

  const Smooth<Real>& a;
  char* const shared;
  const int warp;
  const Part part;
  const int top, y;  // first row of the tile, and of the warp
  unsigned kept;     // bit W*r + j: no sweep changes column x+j of row y+r
  bool keepsAny;     // of the warp's points
  R u[kRows], b[K::kHoldsB ? kRows : 1];

  __device__ __forceinline__ Tile(const Smooth<Real>& a, char* shared)
      : a(a), shared(shared), warp(__shfl_sync(kAll, threadIdx.x / kWarp, 0)), part(a, blockIdx.x / a.strips),
        top(part.first - K::kAbove), y(top + kRows * warp) {
    S::take_strip(a, blockIdx.x % a.strips);
    const int held = a.rows.held(y + lane % kRows);  // a lane looks up one row for the warp
    int columns[W];
    if (each)
#pragma unroll
      for (int j = 0; j < W; j++) columns[j] = a.columns.held(x + j);
#pragma unroll
    for (int r = 0; r < kRows; r++) {
      const ptrdiff_t row = (ptrdiff_t)__shfl_sync(kAll, held, r) * a.pitch;
      if constexpr (!K::kZero) u[r] = read(a.from + row, columns);
      if constexpr (K::kHoldsB) b[r] = read(a.b + row, columns);
      else if constexpr (K::kSource) put(own_b(r), lane, read(a.b + row, columns));
    }
    find_kept(held <= a.rows.fixedLow || held >= a.rows.fixedHigh);
  }

  // find_kept sets kept. rowKeeps says of row lane % kRows that no sweep changes it.
  __device__ __forceinline__ void find_kept(bool rowKeeps) {
    kept = 0;
    if (__any_sync(kAll, rowKeeps || keeps))
#pragma unroll 1
      for (int r = 0; r < kRows; r++) kept |= (__shfl_sync(kAll, rowKeeps, r) ? (1u << W) - 1 : keeps) << W * r;
    keepsAny = __any_sync(kAll, kept);
  }

  // read returns the lane's columns of a row.
  __device__ __forceinline__ R read(const Real* row, const int (&columns)[W]) const {
    R r;
    if (each) {
#pragma unroll
      for (int j = 0; j < W; j++) r.v[j] = row[columns[j]];
    } else if constexpr (W * sizeof(Real) == 8) {
      const float2 t = *(const float2*)(row + load);
      r.v[0] = t.x, r.v[1] = t.y;
    } else {
#pragma unroll
      for (int j = 0; j < W; j += kPer16<Real>) load16(r.v + j, row + load + j);
    }
    return r;
  }
  __device__ __forceinline__ char* own_b(int r) const { return shared + K::kBAt + (kRows * warp + r) * K::kRowBytes; }
  __device__ __forceinline__ R source(int r) const {
    R s = zeros<Real, W>();
    if constexpr (K::kHoldsB) s = b[r];
    else if constexpr (K::kSource) get(s, own_b(r), lane);
    return s;
  }
  __device__ __forceinline__ bool is_kept(int r, int j) const { return kept >> (W * r + j) & 1; }

  // defects calls use(r, u, d) for each row; use may change this->u[r]. Calls with even and odd numbers `k` take turns.
  template <class Use> __device__ __forceinline__ void defects(int k, Use&& use) {
    char* const edges = shared + k % 2 * K::kEdgeBytes;
    put(edges + 2 * warp * K::kRowBytes, lane, u[0]), put(edges + (2 * warp + 1) * K::kRowBytes, lane, u[kRows - 1]);
    __syncthreads();
    // Beyond the tile any numbers will do.
    R north = u[0], south = u[kRows - 1];
    if (warp > 0) get(north, edges + (2 * warp - 1) * K::kRowBytes, lane);
    if (warp < K::kWarps - 1) get(south, edges + (2 * warp + 2) * K::kRowBytes, lane);
#pragma unroll
    for (int r = 0; r < kRows; r++) {
      const R c = u[r], d = defect(north, c, r + 1 < kRows ? u[r + 1] : south, source(r), a.h, a.q);
      north = c;
      use(r, c, d);
    }
  }

  // sweep does sweep k. first(r, d) sees d of each row.
  template <class First> __device__ __forceinline__ void sweep(int k, First&& first) {
    const Real w = a.w[k];
    defects(k, [&](int r, const R& c, const R& d) {
      first(r, d);
#pragma unroll
      for (int j = 0; j < W; j++) u[r].v[j] = fused(w, d.v[j], c.v[j]);
      if (keepsAny)
#pragma unroll
        for (int j = 0; j < W; j++) u[r].v[j] = is_kept(r, j) ? c.v[j] : u[r].v[j];
    });
  }
  // sweep_from does the sweeps from k on.
  __device__ __forceinline__ void sweep_from(int k) {
#pragma unroll 1
    for (; k < kSmooth; k++) sweep(k, [](int, const R&) {});
  }
  // store writes row y+r, if the tile makes it.
  __device__ __forceinline__ void store(int r, const R& v) const {
    if (!stores || y + r < part.lo || y + r >= part.hi) return;
    Real* const to = a.to + (ptrdiff_t)(y + r) * a.pitch + x;
    if constexpr (W * sizeof(Real) == 8) *(float2*)to = make_float2(v.v[0], v.v[1]);
    else store_row(to, v);
  }

  // first_sweep does sweep 0 and adds the squares of its d to the sum of the device.
  __device__ __forceinline__ void first_sweep() {
    const int lo = max(part.lo, a.countLo), hi = min(part.hi, a.countHi);
    const unsigned counts = S::counted(a);
    Real acc = 0;
    sweep(0, [&](int r, R d) {
      if (y + r < lo || y + r >= hi) return;
#pragma unroll
      for (int j = 0; j < W; j++) d.v[j] = (counts >> j & 1) && !is_kept(r, j) ? d.v[j] : Real(0);
      acc += squares(d.v, kSmallest<Real>);
    });
    const int rows = min(hi, y + kRows) - max(lo, y);
    unsigned long long* const words = (unsigned long long*)(shared + K::kBAt + K::kBBytes) + warp * kSumWords;
    if (lane < kSumWords) words[lane] = 0;
    __syncwarp();
    Limbs sum;
    sum.clear(a.bias);
    sum.add(stores && rows > 0 ? (double)acc - (double)surplus<Real>(rows) : 0);
    sum.drain(a.bias, words, true, lane);
    flush(words, a.sums, lane);
  }

  // restrict_defects sets the part of coarseB that lies under the tile from d, whose rows begin at `top`.
  __device__ __forceinline__ void restrict_defects(const float* d) const {
    const int2 rows = part.coarse_rows(a), columns = S::coarse_columns(a);
#pragma unroll 1
    for (int row = rows.x + warp; row < rows.y; row += K::kWarps) {
      const Taps ty = a.rowTaps[row];
#pragma unroll 1
      for (int column = columns.x + lane; column < columns.y; column += kWarp) {
        const Taps tx = a.taps[column];
        const float* const from = d + (ty.first - top) * K::kWidth + (tx.first - S::x0);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kTaps; i++) {
          float v = 0;
#pragma unroll
          for (int k = 0; k < kTaps; k++) v = fused(ty.w[k], from[k * K::kWidth + i], v);
          sum = fused(tx.w[i], v, sum);
        }
        a.coarseB[(ptrdiff_t)row * a.coarsePitch + column] = fused(a.gain, sum, 0.f);
      }
    }
  }

  // correct adds the correction from the coarser level.
  __device__ __forceinline__ void correct() {
    int west[W], east[W];
    float weight[W];
#pragma unroll
    for (int j = 0; j < W; j++) {
      const Between b = a.betweenColumns[min(x + j, a.nx - 1 + kBeyond) + kBeyond];
      west[j] = a.coarseColumns.held(b.coarse), east[j] = a.coarseColumns.held(b.coarse + 1), weight[j] = b.weight;
    }
    // A lane looks up one row for the warp.
    const Between own = a.betweenRows[min(y + lane % kRows, part.hi + K::kBelow - 1) + kBeyond];
    const int above = a.coarseRows.held(own.coarse), below = a.coarseRows.held(own.coarse + 1);
#pragma unroll
    for (int r = 0; r < kRows; r++) {
      const float* const north = a.coarseU + (ptrdiff_t)__shfl_sync(kAll, above, r) * a.coarsePitch;
      const float* const south = a.coarseU + (ptrdiff_t)__shfl_sync(kAll, below, r) * a.coarsePitch;
      const float rowWeight = __shfl_sync(kAll, own.weight, r);
#pragma unroll
      for (int j = 0; j < W; j++) {
        const float nw = north[west[j]], ne = north[east[j]];
        const float t0 = fused(rowWeight, south[west[j]] - nw, nw), t1 = fused(rowWeight, south[east[j]] - ne, ne);
        const float e = fused(weight[j], t1 - t0, t0);
        const Real sum = sizeof(Real) == 8 ? fused((Real)a.scale, (Real)e, u[r].v[j]) : u[r].v[j] + (Real)e;
        u[r].v[j] = is_kept(r, j) ? u[r].v[j] : sum;
      }
    }
  }
};

template <class K> __device__ __forceinline__ void tile_down(const Smooth<typename K::Real>& a) {
  using Real = typename K::Real;
  using R = Row<Real, K::W>;
  DYNAMIC_SHARED(shared);
  Tile<K> t(a, shared);
  if constexpr (K::kZero) {  // the first sweep makes w b of 0
#pragma unroll
    for (int r = 0; r < K::kRows; r++)
#pragma unroll
      for (int j = 0; j < K::W; j++) t.u[r].v[j] = t.is_kept(r, j) ? Real(0) : fused(a.w[0], t.b[r].v[j], Real(0));
  } else {
    t.first_sweep();
  }
  t.sweep_from(1);
  Row<float, K::W> e[K::kRows];
  t.defects(kSmooth, [&](int r, const R& c, const R& d) {
    t.store(r, c);
#pragma unroll
    for (int j = 0; j < K::W; j++)
      e[r].v[j] = t.is_kept(r, j) ? 0.f : sizeof(Real) == 8 ? (float)(d.v[j] * (Real)a.scale) : (float)d.v[j];
  });
  // The last defects took the even edges, and every warp has read the odd ones.
  static_assert(kSmooth % 2 == 0, "the defects would overwrite the edges that they are made from");
  float* const buffer = (float*)(shared + K::kEdgeBytes);
#pragma unroll
  for (int r = 0; r < K::kRows; r++) {
    float* const to = buffer + (K::kRows * t.warp + r) * K::kWidth + K::W * t.lane;
    if constexpr (K::W == 2) *(float2*)to = make_float2(e[r].v[0], e[r].v[1]);
    else store_row(to, e[r]);
  }
  __syncthreads();
  t.restrict_defects(buffer);
}

template <class K> __device__ __forceinline__ void tile_up(const Smooth<typename K::Real>& a) {
  DYNAMIC_SHARED(shared);
  Tile<K> t(a, shared);
  t.correct();
  t.sweep_from(0);
#pragma unroll
  for (int r = 0; r < K::kRows; r++) t.store(r, t.u[r]);
}
