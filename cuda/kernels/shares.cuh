// How pipelines of warps share out the strips of a pass, so that all do about the same work and end at the same time.
//
// The strips, one after the other, form a line of positions. A strip takes one position for each of its groups of rows,
// after `seam` positions for the cost of starting it. The first and the last strip have fixed columns, where a row
// costs more: they are longer by edge/8 of their groups. Every pipeline gets the same number of positions, which may
// span the end of one strip and the beginning of the next.
#pragma once
#include "pass.cuh"

struct Shares {
  int strips, groups, seam, edge;

  __device__ __forceinline__ bool outer(int strip) const { return strip == 0 || strip == strips - 1; }
  __device__ __forceinline__ int longer(int strip) const { return outer(strip) ? groups * edge / 8 : 0; }
  __device__ __forceinline__ int begin(int strip) const {  // begin(strips) is the end of the line
    return strip * (groups + seam) + (strip > 0 ? longer(0) : 0) + (strip == strips && strips > 1 ? longer(0) : 0);
  }
  __device__ __forceinline__ int at(int position) const {  // at returns the strip at a position
    return position < begin(1) ? 0 : min((position - longer(0)) / (groups + seam), strips - 1);
  }
  // group returns how many groups of a strip lie before a position.
  __device__ __forceinline__ int group(int strip, int position) const {
    const int length = groups + longer(strip), within = position - begin(strip) - seam;
    if (within >= length) return groups;
    return max(within, 0) * 8 / (outer(strip) ? 8 + edge : 8);
  }
  // of returns the position at which one of `shares` equal shares begins.
  __device__ __forceinline__ int of(unsigned share, unsigned shares) const {
    const unsigned all = begin(strips);
    return share * (all / shares) + share * (all % shares) / shares;
  }
};
