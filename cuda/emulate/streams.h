// Streams, events and memory of an emulated driver. Each stream does its work on a thread of its own, after the call
// has returned: work in the wrong order, or host memory that is used again too early, shows as on a GPU. A stream may
// wait for a word that another process writes, in memory that it has mapped by CUDA IPC.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#ifndef WITHOUT_PEERS
#define WITHOUT_PEERS 0  // a device, from 10 on, that has no peers
#endif

extern "C" int cuCtxGetCurrent(intptr_t*);

namespace emulated {

inline void nap() { usleep(20); }

struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool busy = false, closed = false;

  void put(std::function<void()> f) {
    std::lock_guard<std::mutex> lock(mutex);
    work.push_back(std::move(f));
    changed.notify_all();
  }
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return closed || !work.empty(); });
      if (work.empty()) return;
      const std::function<void()> f = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      f();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
  bool empty() {
    std::lock_guard<std::mutex> lock(mutex);
    return work.empty() && !busy;
  }
  void drain() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return work.empty() && !busy; });
  }
};

// Event has passed if its newest record has. An older one, in another stream, may pass later, and counts no more.
struct Event {
  std::mutex mutex;
  std::atomic<uint64_t> recorded{0}, passed{0};
  std::chrono::steady_clock::time_point at;  // when it passed; read after that
  bool done() const { return passed == recorded; }
  void pass(uint64_t n) {
    std::lock_guard<std::mutex> lock(mutex);
    if (n < passed) return;
    at = std::chrono::steady_clock::now();
    passed = n;
  }
};

inline std::mutex mutex;               // guards what follows
inline std::vector<Stream*> streams;   // they and events are never freed: work may still name them
inline std::map<uint64_t, int> files;  // of allocations that other processes may map
inline std::map<uint64_t, size_t> sizes;

constexpr size_t kShared = 2 << 20;  // allocations of whole multiples are shared with nothing else

// drainAll waits for all streams, as the driver does where it waits for the device.
inline void drainAll() {
  std::vector<Stream*> all;
  {
    std::lock_guard<std::mutex> lock(mutex);
    all = streams;
  }
  for (Stream* s : all) s->drain();
}

inline void put(intptr_t s, std::function<void()> f) { ((Stream*)s)->put(std::move(f)); }

}  // namespace emulated

extern "C" {

int cuStreamCreateWithPriority(intptr_t* s, unsigned flags, int) {
  auto* const stream = new emulated::Stream;
  std::thread([stream] { stream->run(); }).detach();
  std::lock_guard<std::mutex> lock(emulated::mutex);
  emulated::streams.push_back(stream);
  *s = (intptr_t)stream;
  return flags != 1;
}
int cuStreamDestroy_v2(intptr_t s) {
  auto* const stream = (emulated::Stream*)s;
  std::lock_guard<std::mutex> lock(stream->mutex);
  stream->closed = true;
  stream->changed.notify_all();
  return 0;
}
int cuStreamSynchronize(intptr_t s) {
  if (s) ((emulated::Stream*)s)->drain();
  return 0;
}
int cuStreamQuery(intptr_t s) {
  if (((emulated::Stream*)s)->empty()) return 0;
  emulated::nap();
  return 600;
}
int cuStreamWaitEvent(intptr_t s, intptr_t e, unsigned) {
  const auto* const event = (emulated::Event*)e;
  emulated::put(s, [event, n = event->recorded.load()] {
    while (event->passed < n) emulated::nap();
  });
  return 0;
}
int cuStreamWaitValue32_v2(intptr_t s, uint64_t p, uint32_t v, unsigned flags) {
  emulated::put(s, [p, v] {
    while ((int32_t)(__atomic_load_n((uint32_t*)p, __ATOMIC_ACQUIRE) - v) < 0) emulated::nap();
  });
  return flags;
}
int cuStreamWriteValue32_v2(intptr_t s, uint64_t p, uint32_t v, unsigned flags) {
  emulated::put(s, [p, v] { __atomic_store_n((uint32_t*)p, v, __ATOMIC_RELEASE); });
  return flags;
}

int cuEventCreate(intptr_t* e, unsigned) {
  *e = (intptr_t) new emulated::Event;
  return 0;
}
int cuEventDestroy_v2(intptr_t e) { return !e; }
int cuEventRecord(intptr_t e, intptr_t s) {
  auto* const event = (emulated::Event*)e;
  emulated::put(s, [event, n = ++event->recorded] { event->pass(n); });
  return 0;
}
int cuEventElapsedTime(float* ms, intptr_t from, intptr_t to) {
  *ms = std::chrono::duration<float, std::milli>(((emulated::Event*)to)->at - ((emulated::Event*)from)->at).count();
  return 0;
}
int cuEventQuery(intptr_t e) {
  if (((emulated::Event*)e)->done()) return 0;
  emulated::nap();
  return 600;
}
int cuEventSynchronize(intptr_t e) {
  while (cuEventQuery(e))
    ;
  return 0;
}
int cuCtxSynchronize() {
  emulated::drainAll();
  return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t d, const void* from, size_t n, intptr_t s) {
  emulated::put(s, [=] { memcpy((void*)d, from, n); });
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, intptr_t s) {
  emulated::put(s, [=] { memcpy(to, (void*)from, n); });
  return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t from, size_t n, intptr_t s) {
  emulated::put(s, [=] { memcpy((void*)d, (void*)from, n); });
  return 0;
}
struct Copy2D {  // CUDA_MEMCPY2D
  struct End {
    size_t x, y;
    unsigned kind;
    void* host;
    uint64_t device;
    void* array;
    size_t pitch;
    char* at() const { return kind == 1 ? (char*)host : (char*)device; }
  } from, to;
  size_t width, height;
};
int cuMemcpy2DAsync_v2(const Copy2D* c, intptr_t s) {
  emulated::put(s, [c = *c] {
    for (size_t y = 0; y < c.height; y++)
      memcpy(c.to.at() + y * c.to.pitch, c.from.at() + y * c.from.pitch, c.width);
  });
  return c->from.x || c->from.y || c->to.x || c->to.y;
}
int cuMemsetD8Async(uint64_t d, uint8_t v, size_t n, intptr_t s) {
  emulated::put(s, [=] { memset((void*)d, v, n); });
  return 0;
}
int cuMemsetD32Async(uint64_t d, uint32_t v, size_t n, intptr_t s) {
  emulated::put(s, [=] { std::fill_n((uint32_t*)d, n, v); });
  return 0;
}

// Memory is full of what are not numbers.
int cuMemAlloc_v2(uint64_t* p, size_t n) {
  void* memory;
  if (n % emulated::kShared) {
    memory = aligned_alloc(256, (n + 255) / 256 * 256);
  } else {
    const int file = (int)syscall(SYS_memfd_create, "device memory", 0);
    if (file < 0 || ftruncate(file, n)) return 2;
    memory = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 2;
    std::lock_guard<std::mutex> lock(emulated::mutex);
    emulated::files[(uint64_t)memory] = file;
    emulated::sizes[(uint64_t)memory] = n;
  }
  *p = (uint64_t)memory;
  memset(memory, 0xff, n);
  return 0;
}
int cuMemFree_v2(uint64_t p) {
  emulated::drainAll();
  std::lock_guard<std::mutex> lock(emulated::mutex);
  const auto at = emulated::files.find(p);
  if (at == emulated::files.end()) {
    free((void*)p);
    return 0;
  }
  close(at->second);
  emulated::files.erase(at);
  return munmap((void*)p, emulated::sizes[p]) ? 1 : 0;
}

struct Handle {
  uint64_t pid, file, size, device, unused[4];
};
int cuIpcGetMemHandle(Handle* h, uint64_t p) {
  std::lock_guard<std::mutex> lock(emulated::mutex);
  const auto at = emulated::files.find(p);
  if (at == emulated::files.end()) return 1;  // other processes would see what else lies there
  intptr_t device;
  cuCtxGetCurrent(&device);
  *h = {(uint64_t)getpid(), (uint64_t)at->second, emulated::sizes[p], (uint64_t)device, {}};
  return 0;
}
int cuIpcOpenMemHandle_v2(uint64_t* p, Handle h, unsigned flags) {
  intptr_t device;
  cuCtxGetCurrent(&device);
  if (h.pid == (uint64_t)getpid()) return 201;
  const intptr_t without = 100 + WITHOUT_PEERS;
  if (device != (intptr_t)h.device && (device == without || (intptr_t)h.device == without)) return 217;
  char name[64];
  snprintf(name, sizeof name, "/proc/%llu/fd/%llu", (unsigned long long)h.pid, (unsigned long long)h.file);
  const int file = open(name, O_RDWR);
  if (file < 0) return 1;
  void* const memory = mmap(nullptr, h.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return 1;
  *p = (uint64_t)memory;
  std::lock_guard<std::mutex> lock(emulated::mutex);
  emulated::sizes[*p] = h.size;
  return flags != 1;
}
int cuIpcCloseMemHandle(uint64_t p) {
  emulated::drainAll();
  std::lock_guard<std::mutex> lock(emulated::mutex);
  return munmap((void*)p, emulated::sizes[p]) ? 1 : 0;
}

}  // extern "C"
