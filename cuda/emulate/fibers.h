// Enough of CUDA to run kernels on one thread of a CPU: the threads of a block are fibers, which take turns where they
// meet. Thousands of launches take seconds, so whole devices can be tested without a GPU; device.h finds races.
#pragma once
#include <setjmp.h>
#include <ucontext.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <vector>

#include "values.h"

#define __shared__ static
#define DYNAMIC_SHARED(name) char* name = fibers.shared.data()

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
inline Index threadIdx, blockIdx, blockDim, gridDim;

// Meeting is a barrier.
struct Meeting {
  int came = 0;
  unsigned number = 0;
};

// Fibers runs the threads of one block after the other.
struct Fibers {
  static constexpr int kStack = 128 << 10;
  struct Fiber {
    std::unique_ptr<char[]> stack{new char[kStack]};
    ucontext_t start;
    jmp_buf at;
    bool begun, done;
  };
  // Warp is 32 threads, which exchange values through slots: those of odd meetings through others than those of even
  // ones, so that a thread which is ahead overwrites nothing.
  struct Warp {
    Meeting meeting;
    uint64_t slots[2][32];
  };
  std::vector<Fiber> threads;
  std::vector<Warp> warps;
  std::vector<char> shared;
  Meeting all;
  jmp_buf scheduler;
  ucontext_t home;
  std::function<void()> kernel;

  static void enter();
  void yield() {
    if (!_setjmp(threads[threadIdx.x].at)) _longjmp(scheduler, 1);
  }
  void meet(Meeting& m, int threads) {
    const unsigned number = m.number;
    if (++m.came == threads) {
      m.came = 0, m.number++;
      return;
    }
    while (m.number == number) yield();
  }
  void resume(int thread) {
    threadIdx.x = thread;
    Fiber& f = threads[thread];
    if (_setjmp(scheduler)) return;
    if (f.begun) _longjmp(f.at, 1);
    f.begun = true;
    setcontext(&f.start);
  }
  void run(int blocks, int n, int bytes, std::function<void()> k) {
    kernel = std::move(k);
    if ((int)threads.size() < n) threads.resize(n);
    blockDim.x = n, gridDim.x = blocks;
    for (int block = 0; block < blocks; block++) {
      blockIdx.x = block;
      shared.assign(bytes, (char)0xff);  // not numbers
      warps.assign((n + 31) / 32, Warp{});
      all = {};
      for (int t = 0; t < n; t++) {
        Fiber& f = threads[t];
        f.begun = f.done = false;
        getcontext(&f.start);
        f.start.uc_stack.ss_sp = f.stack.get(), f.start.uc_stack.ss_size = kStack, f.start.uc_link = nullptr;
        makecontext(&f.start, enter, 0);
      }
      for (bool left = true; left;) {
        left = false;
        for (int t = 0; t < n; t++)
          if (!threads[t].done) resume(t), left = true;
      }
    }
  }
};
inline Fibers fibers;
inline void Fibers::enter() {
  fibers.kernel();
  fibers.threads[threadIdx.x].done = true;
  _longjmp(fibers.scheduler, 1);
}

// exchanged returns a warp's slots after each thread has put v into its own.
inline const uint64_t* exchanged(const void* v, int bytes) {
  Fibers::Warp& w = fibers.warps[threadIdx.x / 32];
  uint64_t* const slots = w.slots[w.meeting.number % 2];
  memcpy(&slots[threadIdx.x % 32], v, bytes);
  fibers.meet(w.meeting, 32);
  return slots;
}
template <class T> T exchange(T v, int from) {
  T got;
  memcpy(&got, &exchanged(&v, sizeof v)[from], sizeof got);
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
template <class T> T __shfl_xor_sync(unsigned, T v, int by) { return exchange(v, (threadIdx.x % 32) ^ by); }
inline uint64_t warpSum(uint64_t v) {
  const uint64_t* const slots = exchanged(&v, sizeof v);
  uint64_t all = 0;
  for (int i = 0; i < 32; i++) all += slots[i];
  return all;
}
inline bool __any_sync(unsigned, bool p) { return warpSum(p) > 0; }
inline unsigned __reduce_add_sync(unsigned, unsigned n) { return warpSum(n); }
inline void __syncwarp() { fibers.meet(fibers.warps[threadIdx.x / 32].meeting, 32); }
inline void __syncthreads() { fibers.meet(fibers.all, blockDim.x); }

inline void copy16_async(void* to, const void* from) { memcpy(to, from, 16); }

inline void __threadfence() {}  // one thread runs all fibers
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { usleep(20); }
inline unsigned load_acquire(const unsigned* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline void store_after_fence(unsigned* word, unsigned n) { __atomic_store_n(word, n, __ATOMIC_RELEASE); }
inline unsigned atomicAdd(unsigned* at, unsigned n) {
  const unsigned old = *at;
  *at += n;
  return old;
}
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long n) {
  const unsigned long long old = *at;
  *at += n;
  return old;
}
