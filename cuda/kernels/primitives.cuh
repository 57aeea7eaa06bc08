// The instructions that the kernels name themselves. Compiled for a CPU (../emulate), there are others of the same names.
#pragma once

#ifdef __CUDACC__

#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) char name[]

// Copies of 16 bytes into shared memory, in the background.
__device__ __forceinline__ void copy16_async(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void copies_wait() {  // until at most N commits are under way
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// A barrier for some of a block's warps, of 1 to 15.
template <int kThreads> __device__ __forceinline__ void meet(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory"); }
__device__ __forceinline__ void meet(int barrier, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }

// Words that other GPUs write and read.
__device__ __forceinline__ unsigned look(const unsigned* word) {
  unsigned n;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(n) : "l"(word) : "memory");
  return n;
}
__device__ __forceinline__ void tell(unsigned* word, unsigned n) { *(volatile unsigned*)word = n; }  // after a fence

// anew makes the compiler take a value for a new one: nothing that follows from it is worked out before, to lie in registers meanwhile.
__device__ __forceinline__ unsigned anew(unsigned v) {
  asm volatile("" : "+r"(v));
  return v;
}

#else
#include "../emulate/device.h"
#endif
