// A driver without a GPU that writes down the work that a backend puts into streams, one call a line, to the file named
// by CUDA_TRACE. It is ../driver/drivertest/testdata/fake.c, named by the macro FAKE, with some functions replaced.
// Kernels and copies within devices do nothing, and no wait waits. A word is named by its number among the flags.
#define RUN
#define cuDevicePrimaryCtxRetain fake_retain
#define cuStreamCreateWithPriority fake_streamCreate
#define cuStreamDestroy_v2 fake_streamDestroy
#define cuStreamSynchronize fake_streamSynchronize
#define cuStreamQuery fake_streamQuery
#define cuStreamWaitEvent fake_streamWaitEvent
#define cuStreamWaitValue32_v2 fake_waitValue
#define cuStreamWriteValue32_v2 fake_writeValue
#define cuEventCreate fake_eventCreate
#define cuEventRecord fake_eventRecord
#define cuEventQuery fake_eventQuery
#define cuEventDestroy_v2 fake_eventDestroy
#define cuEventElapsedTime fake_eventElapsedTime
#define cuCtxSynchronize fake_ctxSynchronize
#define cuMemAlloc_v2 fake_memAlloc
#define cuMemFree_v2 fake_memFree
#define cuMemcpyDtoHAsync_v2 fake_memcpyDtoH
#define cuMemcpyDtoDAsync_v2 fake_memcpyDtoD
#define cuMemcpy2DAsync_v2 fake_memcpy2D
#define cuMemsetD8Async fake_memset
#define cuModuleGetFunction fake_getFunction
#define cuFuncSetAttribute fake_setAttribute
#define cuOccupancyMaxActiveBlocksPerMultiprocessor fake_occupancy
#define cuLaunchKernel fake_launch
#include FAKE
#undef cuDevicePrimaryCtxRetain
#undef cuStreamCreateWithPriority
#undef cuStreamDestroy_v2
#undef cuStreamSynchronize
#undef cuStreamQuery
#undef cuStreamWaitEvent
#undef cuStreamWaitValue32_v2
#undef cuStreamWriteValue32_v2
#undef cuEventCreate
#undef cuEventRecord
#undef cuEventQuery
#undef cuEventDestroy_v2
#undef cuEventElapsedTime
#undef cuCtxSynchronize
#undef cuMemAlloc_v2
#undef cuMemFree_v2
#undef cuMemcpyDtoHAsync_v2
#undef cuMemcpyDtoDAsync_v2
#undef cuMemcpy2DAsync_v2
#undef cuMemsetD8Async
#undef cuModuleGetFunction
#undef cuFuncSetAttribute
#undef cuOccupancyMaxActiveBlocksPerMultiprocessor
#undef cuLaunchKernel
#include <stdarg.h>
#include <sys/mman.h>

static void say(const char* format, ...) {
  FILE* f = fopen(getenv("CUDA_TRACE"), "a");
  va_list args;
  va_start(args, format);
  vfprintf(f, format, args);
  va_end(args);
  fputc('\n', f);
  fclose(f);
}

enum { firstStream = 7, firstEvent = 1000, firstTimed = 1 << 20, lastTimed = 1 << 21, firstFunction = 40 };
static int streams, events, timed, functions;
static int64_t recorded[lastTimed - firstTimed], ticks;  // of events with timing, in microseconds
static char names[64][32];
static char* arena;
static size_t used;

static const char* stream(intptr_t s) {
  static const char* name[] = {"fast", "slow"};
  if (!s) return "default";
  return s - firstStream < 2 ? name[s - firstStream] : "other";
}
static const char* event(intptr_t e) {
  static const char* name[] = {"emptied", "staged0", "staged1",  "staged2",  "staged3",  "halosIn",
                               "edgesOut", "swept",   "arrived0", "arrived1", "arrived2", "arrived3"};
  return e - firstEvent < 12 ? name[e - firstEvent] : "other";
}

// whose names the owner of memory: the test maps memory of neighbours at 1 << 32 and at 2 << 32.
static const char* whose(ptr p) { return p >> 32 == 1 ? "above " : p >> 32 == 2 ? "below " : ""; }
static unsigned word(ptr p) { return (p & 0xffff) / 128; }

// A backend begins with this call: its first stream is fast, and its memory begins at the same address.
int cuDevicePrimaryCtxRetain(intptr_t* c, int d) {
  streams = events = timed = functions = used = ticks = 0;
  return fake_retain(c, d);
}

int cuStreamCreateWithPriority(intptr_t* s, unsigned flags, int priority) {
  *s = firstStream + streams++;
  return 0;
}
int cuStreamDestroy_v2(intptr_t s) { return 0; }
int cuStreamSynchronize(intptr_t s) { return say("%s: synchronize", stream(s)), 0; }
int cuStreamQuery(intptr_t s) { return say("ask whether %s is empty", stream(s)), 0; }
int cuStreamWaitEvent(intptr_t s, intptr_t e, unsigned flags) { return say("%s: wait %s", stream(s), event(e)), 0; }
int cuStreamWaitValue32_v2(intptr_t s, ptr p, uint32_t v, unsigned flags) {
  return say("%s: wait until %sword %u is %u", stream(s), whose(p), word(p), v), 0;
}
int cuStreamWriteValue32_v2(intptr_t s, ptr p, uint32_t v, unsigned flags) {
  return say("%s: set %sword %u to %u", stream(s), whose(p), word(p), v), 0;
}
int cuEventCreate(intptr_t* e, unsigned flags) {
  *e = flags ? firstEvent + events++ : firstTimed + timed++;
  return timed > lastTimed - firstTimed;
}
int cuEventDestroy_v2(intptr_t e) { return 0; }
// Times are not written where they are taken of the clock, because the number of tries varies.
int cuEventRecord(intptr_t e, intptr_t s) {
  if (e < firstTimed) return say("%s: record %s", stream(s), event(e)), 0;
  recorded[e - firstTimed] = ++ticks;
  if (s != firstStream + 2) say("%s: take the time", stream(s));
  return 0;
}
int cuEventQuery(intptr_t e) {
  if (e < firstTimed) say("ask for %s", event(e));
  return 0;
}
int cuEventElapsedTime(float* ms, intptr_t from, intptr_t to) {
  *ms = (recorded[to - firstTimed] - recorded[from - firstTimed]) * 1e-3;
  return from < firstTimed || to < firstTimed;
}
int cuCtxSynchronize(void) { return say("synchronize"), 0; }

int cuMemAlloc_v2(ptr* p, size_t n) {
  if (!arena)
    arena = mmap((void*)0x100000000000, 1ul << 30, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  *p = (ptr)arena + used;
  used += (n + 0xffff) & ~0xfffful;
  return arena == MAP_FAILED || used > 1ul << 30 ? 2 : 0;
}
int cuMemFree_v2(ptr p) { return 0; }
int cuMemcpyDtoHAsync_v2(void* d, ptr s, size_t n, intptr_t to) {
  say("%s: %zu bytes to the host", stream(to), n);
  return fake_memcpyDtoH(d, s, n, firstStream);
}
int cuMemcpyDtoDAsync_v2(ptr d, ptr s, size_t n, intptr_t to) {
  return say("%s: %zu bytes to %sfield", stream(to), n, whose(d)), 0;
}
int cuMemcpy2DAsync_v2(const copy2d* c, intptr_t to) {
  if (c->srcKind == 1)
    say("%s: %zu rows from the host", stream(to), c->height);
  else
    say("%s: %zu rows to the host", stream(to), c->height);
  return fake_memcpy2D(c, firstStream);
}
int cuMemsetD8Async(ptr d, uint8_t v, size_t n, intptr_t to) {
  say("%s: fill", stream(to));
  return fake_memset(d, v, n, firstStream);
}

int cuModuleGetFunction(intptr_t* f, intptr_t m, const char* name) {
  *f = firstFunction + functions;
  snprintf(names[functions++], sizeof *names, "%s", name);
  return functions > sizeof names / sizeof *names;
}
int cuFuncSetAttribute(intptr_t f, int a, int v) { return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, intptr_t f, int threads, size_t shared) {
  return fake_occupancy(n, firstFunction, threads, shared);
}
int cuLaunchKernel(intptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, intptr_t to, void** args, void** extra) {
  return say("%s: %s, %u by %u blocks", stream(to), names[f - firstFunction], gx, gy), 0;
}
