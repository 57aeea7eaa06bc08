// The argument of the sweep kernels.
#pragma once
#include "group.cuh"
#include "row.cuh"

#define KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)

// Side says what a pass of several sweeps does at one end of a stripe. Its words tell ranks how far the others are.
template <class Real> struct Side {
  const unsigned* came;  // this rank's word: the halo is filled once it is at least Pass.awaited; null: it is filled
  Real* to;              // the neighbour's halo, which gets the outer rows of this stripe, pitch as here; null: none
  unsigned* theirs;      // the neighbour's word, set to Pass.posted once `to` is filled; null: nobody looks at it
  unsigned* rows;        // rows handed on so far, each counted once a strip; 0 before and after the pass
};

// Cut says how a pass is divided among blocks. Each kind of kernel reads its own fields.
struct Cut {
  int tileRows;              // once_*: height of a tile, a multiple of kGroupRows
  int seam, edge;            // sweep_*, deep_*: what a strip costs besides its rows, see shares.cuh
  int innerRows, outerRows;  // held*: heights of tiles in inner and outer columns of tiles, multiples of kGroupRows
};

// Pass is the argument of every sweep kernel; those with terms take more (terms.cuh). type pass in ../kernel.go has the
// same layout; TestLayout compares them.
//
// Row numbers are global. A field holds rows [rowLo, rowHi), row r from field + (r - rowLo) * pitch on. pitch is a
// multiple of 8. Columns [nx, pitch) of now hold finite numbers, and those of next get finite numbers.
template <class Value> struct Pass {
  using Real = Value;
  static constexpr bool kTerms = false, kBare = false;
  static constexpr int kValues = 0;  // of a point besides that of the field
  const Real* now;
  Real* next;
  unsigned long long* sums;  // kSumWords for each sweep; the kernel adds to them
  double bias[3];            // initial values of the limbs of a sum, see sum.cuh
  int pitch, nx;
  int rowLo, rowHi;
  int outLo, outHi;       // rows of next to write; none of them is fixed
  int countLo, countHi;   // rows whose updates count for the norm; bare_*: none at all if no sweep has a norm
  int fixTop, fixBottom;  // rows that keep their values; beyond all rows if there are none
  int sweeps;
  int depth;  // rows to hand on, at least `sweeps`; 0: none
  unsigned awaited, posted;
  Side<Real> sides[2];  // above and below; once_* leave them alone
  Cut cut;
};

// BarePass is the argument of the kernels for passes without norms, or with that of the last sweep alone. It is a Pass.
template <class Value> struct BarePass : Pass<Value> {
  static constexpr bool kBare = true;
};
