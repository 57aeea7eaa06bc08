// The instructions that the kernels name themselves. Compiled for a CPU (../emulate), others of the same names take
// their place.
#pragma once
#include "shapes.cuh"

#ifdef __CUDACC__

#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) char name[]

// Copies of 16 bytes into shared memory, in the background.
__device__ __forceinline__ void copy16_async(void* to, const void* from) {
  const unsigned at = __cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
// copy16_or_zero_async sets the bytes to 0 if it is not to copy them.
__device__ __forceinline__ void copy16_or_zero_async(void* to, const void* from, bool copies) {
  const unsigned at = __cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(copies ? 16 : 0) : "memory");
}
// Copies of 4 or 8 bytes.
template <int kBytes> __device__ __forceinline__ void copy_async(void* to, const void* from) {
  const unsigned at = __cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(kBytes) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// copies_wait waits until at most N commits are under way.
template <int N> __device__ __forceinline__ void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// meet is a barrier, of 0 to 15, for some of a block's warps.
template <int kThreads> __device__ __forceinline__ void meet(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
__device__ __forceinline__ void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// load_acquire and store_after_fence access words that other GPUs write and read.
__device__ __forceinline__ unsigned load_acquire(const unsigned* word) {
  unsigned n;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(n) : "l"(word) : "memory");
  return n;
}
__device__ __forceinline__ void store_after_fence(unsigned* word, unsigned n) { *(volatile unsigned*)word = n; }

// opaque returns v and hides from the compiler that it does: nothing derived from the result is computed earlier and
// kept in registers.
__device__ __forceinline__ unsigned opaque(unsigned v) {
  asm volatile("" : "+r"(v));
  return v;
}

#else
#include "../emulate/fibers.h"
#endif
