// Walls, fixed points and sources of the checks without Go.
#pragma once
#include <vector>

#include "../kernels/terms.cuh"

// Problem is what a sweep computes on a mesh of nx columns and ny rows. Walls are f (fixed), p (periodic) or n (the
// normal derivative is given, which is zero here as it is part of the source), for left, right, top and bottom.
// Periodic rows repeat every ny rows, and have no copies; columns 0 and nx-1 are copies if they are periodic.
struct Problem {
  int nx, ny;
  char walls[5];
  int points;  // fixed ones: 0 none, 1 everywhere, 2 in three plates
  int values;  // of a point: 0 none, 1 a source, kWeightedValues those of weighted points

  // terms says whether only kernels with terms compute this.
  bool terms() const {
    return points || values || walls[0] != 'f' || walls[1] != 'f' || walls[2] == 'n' || walls[3] == 'n';
  }
  bool copies() const { return walls[0] == 'p'; }
  int left() const { return walls[0] != 'n'; }          // columns that are swept
  int right() const { return nx - (walls[1] != 'n'); }  // after the last one
  int top() const { return walls[2] == 'f'; }
  int bottom() const { return ny - (walls[3] == 'f'); }

  // keeps says whether a point keeps its value, as a copy does while it is not made.
  __host__ __device__ bool keeps(int y, int x) const {
    if (x <= 0 && walls[0] != 'n') return true;
    if (x >= nx || (x == nx - 1 && walls[1] != 'n')) return true;
    if ((y == 0 && walls[2] == 'f') || (y == ny - 1 && walls[3] == 'f')) return true;
    if (!points || y < 0 || y >= ny) return false;
    if (points == 2) return y % (ny / 4) < 40 && y > ny / 8 && x > nx / 4 && x < nx / 4 * 3;
    const unsigned h = (y * 7919u + x) * 2654435761u;
    return (y % 48 < 10 && x % 300 > 20 && x % 300 < 60) || (h >> 12) % 1500 == 0;
  }
};

// Kept is the tables of fixed points for rows [lo, hi), see Terms. ../terms.go makes the same.
struct Kept {
  std::vector<unsigned long long> fixed;
  std::vector<int> busy;
  int words, groups;

  Kept(const Problem& p, int lo, int hi, int pitch) : words(pitch / 8), groups(((hi - 1) >> 3) - (lo >> 3) + 1) {
    fixed.resize((size_t)words * groups), busy.resize(fixed.size());
    for (int g = groups - 1; g >= 0; g--)
      for (int w = 0; w < words; w++) {
        unsigned long long& bits = fixed[(size_t)g * words + w];
        for (int b = 0; b < 64; b++) {
          const int y = ((lo >> 3) + g) * 8 + b / 8, inside = p.walls[2] == 'p' ? (y % p.ny + p.ny) % p.ny : y;
          if (y >= lo && y < hi) bits |= (unsigned long long)p.keeps(inside, w * 8 + b % 8) << b;
        }
        busy[(size_t)g * words + w] = bits ? g : g + 1 < groups ? busy[(size_t)(g + 1) * words + w] : 1 << 24;
      }
  }
};

// ofProblem returns what a sweep makes of a point, whose values are `pitch` apart from `values` on.
template <class Real>
__host__ __device__ Real ofProblem(const Problem& p, const Real* values, ptrdiff_t pitch, Real centre, Real west,
                                   Real east, Real north, Real south) {
  if (p.values > 1)
    return update(values[0], values[pitch], values[2 * pitch], values[3 * pitch], values[4 * pitch], west, east, north,
                  south);
  if (p.values) return update(Real(0.48), Real(0.3), values[0], west, east, north, south);
  return update(centre, west, east, north, south);
}

// valueOf makes value v of a point of noise between -1/2 and 1/2: a small source, or a weight of up to 1/4.
template <class Real> __host__ __device__ Real valueOf(int v, Real noise) {
  return v ? (noise + Real(0.5)) / 4 : noise / 64;
}

// setTerms sets the terms of a pass but for the pointers.
template <class Real> void setTerms(Terms<Real>& t, const Problem& p, const Kept& kept, int pitch) {
  constexpr int kNone = 1 << 29;
  t.words = kept.words, t.groups = kept.groups;
  t.left = p.walls[0] == 'n' ? 0 : -kNone, t.right = p.walls[1] == 'n' ? p.nx - 1 : kNone;
  t.top = p.walls[2] == 'n' ? 0 : -kNone, t.bottom = p.walls[3] == 'n' ? p.ny - 1 : kNone;
  t.copies = p.copies(), t.sourcePitch = pitch * std::max(p.values, 1), t.scale = Real(0.48), t.blend = Real(0.3);
}
