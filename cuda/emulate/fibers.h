// Enough of CUDA to run kernels on a CPU: the threads of a block are fibers of one thread, which take turns where they
// meet, and blocks run one after the other. Whole devices can be tested without a GPU. ThreadSanitizer sees each fiber
// as a thread, and the order of two fibers only where they meet, so it finds the data races of a GPU.
#pragma once
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "values.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define HIDDEN __attribute__((no_sanitize("thread"), noipa))  // from ThreadSanitizer
#else
#define HIDDEN __attribute__((noipa))
#endif
#ifndef PER_THREAD
#define PER_THREAD  // thread_local where several threads run kernels at a time
#endif

#define __shared__ static
#define DYNAMIC_SHARED(name) char* name = fibers.shared.data()

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
inline PER_THREAD Index threadIdx, blockIdx, blockDim, gridDim;

// Watched tells ThreadSanitizer which fiber runs, and what happens before what.
#ifdef __SANITIZE_THREAD__
struct Watched {
  void* fiber = nullptr;
  // open keeps a fiber: making one costs much, and blocks follow each other in any case.
  HIDDEN void open() {
    if (!fiber) fiber = __tsan_create_fiber(0);
  }
  HIDDEN void end() {
    if (fiber) __tsan_destroy_fiber(fiber);
    fiber = nullptr;
  }
  HIDDEN void own() { fiber = __tsan_get_current_fiber(); }
  HIDDEN void run() { __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync); }
  HIDDEN static void release(void* at) { __tsan_release(at); }
  HIDDEN static void acquire(void* at) { __tsan_acquire(at); }
};
#else
struct Watched {
  void open() {}
  void end() {}
  void own() {}
  void run() {}
  static void release(void*) {}
  static void acquire(void*) {}
};
#endif

// Meeting is a barrier. Who comes to an even one may still leave an odd one, so they are watched at two places.
struct Meeting {
  int came = 0, threads = 0;
  unsigned number = 0;
  char watched[2];
};

// Fibers runs the threads of one block after the other.
struct Fibers {
  static constexpr int kStack = 128 << 10;
  struct Fiber {
    std::unique_ptr<char[]> stack{new char[kStack]};
    void* at[5];
    Watched watched;
    bool begun = false, done;
    const Meeting* awaited;  // may be null
    unsigned number;         // of the awaited meeting
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
  Meeting barriers[16];
  void* home[5];
  Watched watched;
  char begin, end;  // places of a block at which it is watched
  std::function<void()> kernel;

  ~Fibers() {
    for (Fiber& f : threads) f.watched.end();
  }
  static void enter();
  HIDDEN static void jump(void** to) { __builtin_longjmp(to, 1); }  // GCC: not where `to` is set
  HIDDEN void yield() {
    if (__builtin_setjmp(threads[threadIdx.x].at)) return;
    watched.run();
    jump(home);
  }
  HIDDEN void meet(Meeting& m, int n) {
    if (m.came++ == 0) m.threads = n;
    if (m.threads != n) printf("a barrier of %d threads met by %d\n", m.threads, n), exit(1);
    char* const place = &m.watched[m.number % 2];
    Watched::release(place);
    if (m.came == n) {
      m.came = 0, m.number++;
    } else {
      Fiber& f = threads[threadIdx.x];
      f.awaited = &m, f.number = m.number;
      yield();
    }
    Watched::acquire(place);
  }
  HIDDEN void resume(Fiber& f) {
    if (__builtin_setjmp(home)) return;
    f.watched.run();
    if (f.begun) jump(f.at);
    f.begun = true;
    ucontext_t start;
    getcontext(&start);
    const int apart = threadIdx.x % 64 * 64;  // else the caches have one place for the tops of all stacks
    start.uc_stack.ss_sp = f.stack.get(), start.uc_stack.ss_size = kStack - apart, start.uc_link = nullptr;
    makecontext(&start, enter, 0);
    setcontext(&start);
  }
  HIDDEN void runBlock(int n) {
    watched.own();
    for (int t = 0; t < n; t++) {
      Fiber& f = threads[t];
      f.done = false, f.awaited = nullptr;
      f.watched.open();
    }
    Watched::release(&begin);
    for (int left = n; left;) {
      bool went = false;
      for (int t = 0; t < n; t++) {
        Fiber& f = threads[t];
        if (f.done || (f.awaited && f.awaited->number == f.number)) continue;
        threadIdx.x = t, went = true;
        resume(f);
        left -= f.done;
      }
      if (!went) printf("%d threads wait for each other\n", left), exit(1);
    }
    Watched::acquire(&end);
  }
  void run(int blocks, int n, int bytes, std::function<void()> k) {
    kernel = std::move(k);
    if ((int)threads.size() < n) threads.resize(n);
    blockDim.x = n, gridDim.x = blocks;
    for (int block = 0; block < blocks; block++) {
      blockIdx.x = block;
      shared.assign(bytes, (char)0xff);  // not numbers
      warps.assign((n + 31) / 32, Warp{});
      for (Meeting& m : barriers) m = {};
      runBlock(n);
    }
  }
};
inline PER_THREAD Fibers fibers;
HIDDEN inline void Fibers::enter() {
  for (;;) {
    Watched::acquire(&fibers.begin);
    fibers.kernel();
    Watched::release(&fibers.end);
    fibers.threads[threadIdx.x].done = true;
    fibers.yield();
  }
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
inline unsigned __reduce_min_sync(unsigned, unsigned n) {
  const uint64_t v = n, *const slots = exchanged(&v, sizeof v);
  return *std::min_element(slots, slots + 32);
}
inline void __syncwarp() { fibers.meet(fibers.warps[threadIdx.x / 32].meeting, 32); }
inline void meet(int barrier, int threads) { fibers.meet(fibers.barriers[barrier], threads); }
template <int kThreads> void meet(int barrier) { meet(barrier, kThreads); }
inline void __syncthreads() { meet(0, blockDim.x); }

#ifdef __SANITIZE_THREAD__
// peek reads memory unseen by ThreadSanitizer. Pipelines fetch more rows than they need, among them rows of halos that
// a neighbour is writing, and do not use these values.
struct Peeked {
  uint64_t v[2];
};
HIDDEN inline Peeked peek(const volatile uint64_t* from) { return {{from[0], from[1]}}; }
inline void copy16_async(void* to, const void* from) {
  const Peeked p = peek((const volatile uint64_t*)from);
  memcpy(to, &p, sizeof p);
}
inline void __threadfence_system() {}  // the atomic accesses to the words order memory enough
#else
inline void copy16_async(void* to, const void* from) { memcpy(to, from, 16); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#endif
inline void copy16_or_zero_async(void* to, const void* from, bool copies) {
  if (copies) copy16_async(to, from);
  else memset(to, 0, 16);
}
inline void __threadfence() {}  // one thread runs all fibers
inline void __nanosleep(unsigned) { usleep(20); }
inline unsigned load_acquire(const unsigned* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline void store_after_fence(unsigned* word, unsigned n) { __atomic_store_n(word, n, __ATOMIC_RELEASE); }
inline unsigned atomicAdd(unsigned* at, unsigned n) { return __atomic_fetch_add(at, n, __ATOMIC_ACQ_REL); }
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long n) {
  return __atomic_fetch_add(at, n, __ATOMIC_ACQ_REL);
}
inline void atomicMax(unsigned long long* at, unsigned long long n) {
  unsigned long long now = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  while (now < n && !__atomic_compare_exchange_n(at, &now, n, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
}
