// Enough of CUDA to run the kernels on threads of a CPU, one for each GPU thread. Tests can then check without a GPU
// that the kernels are right and, under ThreadSanitizer, which knows POSIX barriers, that they have no data race.
#pragma once
#include <pthread.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "values.h"

#define __shared__ static  // so blocks of a kernel with such memory run one after the other: launch
#define DYNAMIC_SHARED(name) char* name = thread.block->shared.get()

class Barrier {
 public:
  explicit Barrier(int threads) : threads(threads) { pthread_barrier_init(&barrier, nullptr, threads); }
  ~Barrier() { pthread_barrier_destroy(&barrier); }
  void meet() { pthread_barrier_wait(&barrier); }
  const int threads;

 private:
  pthread_barrier_t barrier;
};

// Warp is 32 threads, which exchange values through slots. Exchanges take the two sets of slots in turn, so one barrier
// each is enough: who writes a set again has met all that have read it, at the barrier of the exchange between.
struct Warp {
  Barrier barrier{32};
  uint64_t slots[2][32];
};

// Block is the warps of a block and the memory and barriers that they share.
struct Block {
  Block(int threads, int bytes) : shared(new (std::align_val_t(16)) char[bytes]()), warps(threads / 32) {}
  struct Free {
    void operator()(char* p) const { operator delete[](p, std::align_val_t(16)); }
  };
  std::unique_ptr<char, Free> shared;
  std::vector<Warp> warps;
  std::mutex mutex;  // guards barriers
  std::map<int, std::unique_ptr<Barrier>> barriers;

  void meet(int barrier, int threads) {
    Barrier* b;
    {
      std::lock_guard<std::mutex> lock(mutex);
      std::unique_ptr<Barrier>& at = barriers[barrier];
      if (!at) at.reset(new Barrier(threads));
      b = at.get();
    }
    if (barrier < 0 || barrier > 15 || b->threads != threads)
      printf("barrier %d of %d threads met by %d\n", barrier, b->threads, threads), exit(1);
    b->meet();
  }
};

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
inline thread_local Index threadIdx, blockIdx, blockDim, gridDim;
inline thread_local struct {
  Block* block;
  Warp* warp;
  unsigned exchanges;  // so far; all threads of a warp take part in all
} thread;

// launch runs a kernel on grid blocks, each of size threads and with bytes of shared memory: all at once, or `inTurn`.
template <class Kernel> void launch(int grid, int size, int bytes, bool inTurn, Kernel kernel) {
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Block>> blocks;
  auto join = [&] {
    for (auto& t : threads) t.join();
    threads.clear();
  };
  for (int b = 0; b < grid; b++) {
    blocks.emplace_back(new Block(size, bytes));
    Block* block = blocks.back().get();
    for (int t = 0; t < size; t++)
      threads.emplace_back([=] {
        threadIdx.x = t, blockIdx.x = b, blockDim.x = size, gridDim.x = grid;
        thread.block = block, thread.warp = &block->warps[t / 32];
        kernel();
      });
    if (inTurn) join();
  }
  join();
}

// tell gives v to the threads of the warp, and returns the values of all.
template <class T> const uint64_t* tell(T v) {
  uint64_t* slots = thread.warp->slots[thread.exchanges++ % 2];
  memcpy(&slots[threadIdx.x % 32], &v, sizeof v);
  thread.warp->barrier.meet();
  return slots;
}
template <class T> T exchange(T v, int from) {
  T got;
  memcpy(&got, &tell(v)[from], sizeof got);
  return got;
}
template <class T> T __shfl_sync(unsigned, T v, int from) { return exchange(v, from); }
template <class T> T __shfl_up_sync(unsigned, T v, int by) {
  const int lane = threadIdx.x % 32;
  return exchange(v, lane < by ? lane : lane - by);
}
template <class T> T __shfl_down_sync(unsigned, T v, int by) {
  const int lane = threadIdx.x % 32;
  return exchange(v, lane + by > 31 ? lane : lane + by);
}
// warpSum returns the sum of the values of a warp's threads.
inline uint64_t warpSum(uint64_t v) {
  const uint64_t* values = tell(v);
  uint64_t all = 0;
  for (int i = 0; i < 32; i++) all += values[i];
  return all;
}
inline bool __any_sync(unsigned, bool p) { return warpSum(p) > 0; }
inline unsigned __reduce_add_sync(unsigned, unsigned n) { return warpSum(n); }
inline unsigned __reduce_min_sync(unsigned, unsigned n) {
  for (int by = 16; by; by /= 2) n = min(n, exchange(n, (threadIdx.x % 32) ^ by));
  return n;
}
inline void __syncwarp() { thread.warp->barrier.meet(); }
inline void __syncthreads() { thread.block->meet(0, blockDim.x); }
template <int kThreads> void meet(int barrier) { thread.block->meet(barrier, kThreads); }
inline void meet(int barrier, int threads) { thread.block->meet(barrier, threads); }

// peek reads memory unseen by ThreadSanitizer. Pipelines fetch more rows than they need, among them rows of halos that
// a neighbour is writing, and do not use these values.
struct Peeked {
  uint64_t v[2];
};
__attribute__((no_sanitize("thread"), noinline)) inline Peeked peek(const volatile uint64_t* from) {
  return {{from[0], from[1]}};
}
inline void copy16_async(void* to, const void* from) {
  const Peeked p = peek((const volatile uint64_t*)from);
  memcpy(to, &p, sizeof p);
}

inline unsigned load_acquire(const unsigned* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline void store_after_fence(unsigned* word, unsigned n) { __atomic_store_n(word, n, __ATOMIC_RELEASE); }
inline unsigned atomicAdd(unsigned* at, unsigned n) { return __atomic_fetch_add(at, n, __ATOMIC_ACQ_REL); }
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long n) {
  return __atomic_fetch_add(at, n, __ATOMIC_ACQ_REL);
}
inline void __threadfence_system() {}  // the atomic accesses to the words order memory enough
inline void __nanosleep(unsigned) { std::this_thread::yield(); }
