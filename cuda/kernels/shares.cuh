// How the strips of a pass are shared out among pipelines: all do about the same work, at the same time.
//
// The strips, one behind the other, are a line of positions, one for each group of rows. A strip begins with `seam` more, for what it
// costs to begin one, and the outer two, where columns are fixed and a row costs more, are longer by edge/8. Each pipeline gets
// the same number of positions, so the end of one strip and maybe the begin of the next.
#pragma once
#include "pass.cuh"

struct Shares {
  int strips, groups, seam, edge;

  __device__ __forceinline__ bool outer(int strip) const { return strip == 0 || strip == strips - 1; }
  __device__ __forceinline__ int longer(int strip) const { return outer(strip) ? groups * edge / 8 : 0; }
  __device__ __forceinline__ int begin(int strip) const {  // that of the strip behind the last one is the end of the line
    return strip * (groups + seam) + (strip > 0 ? longer(0) : 0) + (strip == strips && strips > 1 ? longer(0) : 0);
  }
  __device__ __forceinline__ int at(int position) const {  // the strip there
    return position < begin(1) ? 0 : min((position - longer(0)) / (groups + seam), strips - 1);
  }
  // group returns how many groups of a strip lie before a position.
  __device__ __forceinline__ int group(int strip, int position) const {
    const int length = groups + longer(strip), within = position - begin(strip) - seam;
    if (within >= length) return groups;
    return max(within, 0) * 8 / (outer(strip) ? 8 + edge : 8);
  }
  // of returns where one of so many shares begins.
  __device__ __forceinline__ int of(unsigned share, unsigned shares) const {
    const unsigned all = begin(strips);
    return share * (all / shares) + share * (all % shares) / shares;
  }
};
