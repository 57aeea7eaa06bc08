// A driver without a GPU: device memory is host memory, and streams do their work at once. It checks the binding's
// argument lists. Build it with -DVERSION=..., -DINIT=... (the result of cuInit), -DFREE=... (bytes of free memory that
// it reports), -DWITHOUT_IPC, -DPEERS=1 (peer access can be enabled), -DWITHOUT_PEERS=d (device d, from 10 on, has no
// peers), -DLOCKABLE=... (the largest allocation of page-locked memory, in bytes), -DSMS=... (multiprocessors). With
// FAKE_PEERS=0 in the environment no device has peers.
//
// With -DRUN it serves whole programs: it accepts any PTX and any kernel, and kernels do nothing. -DGPUS=... is the
// number of GPUs, some of which CUDA_VISIBLE_DEVICES may hide. -DPTX=... is the result of loading PTX. -DLOSE=n loses
// the context of GPU 11 in the n-th launch there, as an illegal access of a kernel does. -DNORM=1 makes every kernel,
// which must be one that sweeps, add 1 unit to the sum of each of its sweeps, so that a run goes on. Events pass at the
// time of the host's clock; with -DTICK=ns, and without -DRUN, each is so many ns, or 0.25 ms, after the one before.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef VERSION
#define VERSION 12040
#endif
#ifndef INIT
#define INIT 0
#endif

#ifndef FREE
#define FREE (3ul << 29)
#endif
#ifndef GPUS
#define GPUS 2
#endif
#ifndef PTX
#define PTX 0
#endif
#ifndef LOSE
#define LOSE 0
#endif
#ifndef NORM
#define NORM 0
#endif
#ifndef TICK
#define TICK (run ? 0 : 250000)
#endif
#ifndef SMS
#define SMS 0
#endif
#ifndef PEERS
#define PEERS 0
#endif
#ifndef WITHOUT_PEERS
#define WITHOUT_PEERS 0
#endif
#ifndef LOCKABLE
#define LOCKABLE (1ul << 40)
#endif
#ifdef RUN
enum { run = 1 };
#else
enum { run = 0 };
#endif

typedef uint64_t ptr;
typedef struct {
  uint64_t w[8];
} ipc;
typedef struct {
  size_t srcX, srcY;
  uint32_t srcKind;
  const void* srcHost;
  ptr srcDevice;
  void* srcArray;
  size_t srcPitch;
  size_t dstX, dstY;
  uint32_t dstKind;
  void* dstHost;
  ptr dstDevice;
  void* dstArray;
  size_t dstPitch;
  size_t width, height;
} copy2d;

static __thread int current;  // the context that is current on a thread
static int asleep;            // the code of a kernel that failed

int cuInit(unsigned flags) { return flags ? 1 : INIT; }
int cuDriverGetVersion(int* v) {
  *v = VERSION;
  return 0;
}

static const struct {
  int code;
  const char *name, *text;
} errors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};
static int find(int code) {
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) return i;
  return -1;
}
int cuGetErrorName(int code, const char** s) {
  int i = find(code);
  *s = i < 0 ? 0 : errors[i].name;
  return i < 0;
}
int cuGetErrorString(int code, const char** s) {
  int i = find(code);
  *s = i < 0 ? 0 : errors[i].text;
  return i < 0;
}

// visible returns the i-th GPU of CUDA_VISIBLE_DEVICES, a list of single digits, or 0 after the last.
static int visible(int i) {
  const char* list = getenv("CUDA_VISIBLE_DEVICES");
  if (!list) return i < GPUS ? 10 + i : 0;
  return 2 * i < (int)strlen(list) ? 10 + list[2 * i] - '0' : 0;
}
int cuDeviceGetCount(int* n) {
  for (*n = 0; visible(*n); ++*n)
    ;
  return 0;
}
int cuDeviceGet(int* d, int i) {
  *d = visible(i);
  return 0;
}
int cuDeviceGetName(char* s, int n, int d) {
  snprintf(s, n, "Fake %d", d);
  return 0;
}
int cuDeviceGetUuid_v2(uint8_t* u, int d) {
  for (int i = 0; i < 16; i++) u[i] = 16 * i + d;
  return 0;
}
int cuDeviceGetPCIBusId(char* s, int n, int d) {
  snprintf(s, n, "0000:%02X:00.0", d);
  return 0;
}
int cuDeviceGetAttribute(int* v, int a, int d) {
  *v = a == 16 && SMS ? SMS : 1000 * d + a + (a == 97 ? 80000 : 0);
  return 0;
}  // 97: shared memory, which kernels need
int cuDeviceTotalMem_v2(size_t* n, int d) {
  *n = (size_t)d << 30;
  return 0;
}
int cuDeviceCanAccessPeer(int* can, int d, int peer) {
  const char* const peers = getenv("FAKE_PEERS");
  *can = d != peer && d != WITHOUT_PEERS && peer != WITHOUT_PEERS && (!peers || *peers != '0');
  return 0;
}

int cuDevicePrimaryCtxSetFlags_v2(int d, unsigned flags) { return d < 10 || flags > 4; }
int cuDevicePrimaryCtxRetain(intptr_t* c, int d) {
  *c = 100 + d;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int d) { return d < 10; }
int cuCtxGetCurrent(intptr_t* c) {
  *c = current;
  return 0;
}
int cuCtxSetCurrent(intptr_t c) {
  current = c;
  return 0;
}
int cuCtxSynchronize(void) { return current ? asleep : 201; }
int cuCtxEnablePeerAccess(intptr_t peer, unsigned flags) {
  if (flags) return 1;
  if (peer == current) return 201;
  return PEERS ? 0 : 217;
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return 0;
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = FREE;
  *total = 10ul << 30;
  return current ? 0 : 201;
}
int cuMemAlloc_v2(ptr* p, size_t n) {
  if (!current) return 201;
  if (n > 3ul << 29) return 2;
  *p = (ptr)malloc(n);
  return 0;
}
int cuMemFree_v2(ptr p) {
  free((void*)p);
  return asleep;
}
int cuMemHostAlloc(void** p, size_t n, unsigned flags) {
  if (n > LOCKABLE) return 2;
  *p = malloc(n);
  return flags == 3 ? 0 : 1;
}
int cuMemFreeHost(void* p) {
  free(p);
  return 0;
}
int cuMemHostRegister_v2(void* p, size_t n, unsigned flags) { return p && n && flags == 3 ? 0 : 1; }
int cuMemHostUnregister(void* p) { return p ? 0 : 1; }
int cuMemHostGetDevicePointer_v2(ptr* d, void* p, unsigned flags) {
  *d = (ptr)p;
  return flags;
}
int cuMemcpyHtoD_v2(ptr d, const void* s, size_t n) {
  memcpy((void*)d, s, n);
  return 0;
}
int cuMemcpyDtoH_v2(void* d, ptr s, size_t n) {
  memcpy(d, (void*)s, n);
  return 0;
}
int cuMemcpyHtoDAsync_v2(ptr d, const void* s, size_t n, intptr_t stream) {
  memcpy((void*)d, s, n);
  return stream != 7;
}
int cuMemcpyDtoHAsync_v2(void* d, ptr s, size_t n, intptr_t stream) {
  memcpy(d, (void*)s, n);
  return stream != 7;
}
int cuMemcpyDtoDAsync_v2(ptr d, ptr s, size_t n, intptr_t stream) {
  memcpy((void*)d, (void*)s, n);
  return stream != 7;
}
int cuMemcpyPeerAsync(ptr d, intptr_t to, ptr s, intptr_t from, size_t n, intptr_t stream) {
  if (to < 110 || from < 110) return 201;
  memcpy((void*)d, (void*)s, n);
  return stream != 7;
}
int cuMemcpy2DAsync_v2(const copy2d* c, intptr_t stream) {
  if (stream != 7 || c->srcX || c->srcY || c->srcArray || c->dstX || c->dstY || c->dstArray) return 1;
  const char* s = c->srcKind == 1 ? c->srcHost : (char*)c->srcDevice;
  char* d = c->dstKind == 1 ? c->dstHost : (char*)c->dstDevice;
  for (size_t y = 0; y < c->height; y++) memcpy(d + y * c->dstPitch, s + y * c->srcPitch, c->width);
  return 0;
}
int cuMemsetD8Async(ptr d, uint8_t v, size_t n, intptr_t stream) {
  memset((void*)d, v, n);
  return stream != 7;
}

#ifndef WITHOUT_IPC
int cuIpcGetMemHandle(ipc* h, ptr p) {
  if (run) return 801;
  for (int i = 0; i < 8; i++) h->w[i] = p + i;
  return 0;
}
int cuIpcOpenMemHandle_v2(ptr* p, ipc h, unsigned flags) {
  for (int i = 1; i < 8; i++)
    if (h.w[i] != h.w[0] + i) return 1;
  *p = h.w[0];
  return flags != 1 ? 1 : h.w[0] ? 0 : 801;
}
int cuIpcCloseMemHandle(ptr p) { return !p; }
#endif

int cuStreamCreateWithPriority(intptr_t* s, unsigned flags, int priority) {
  *s = 7;
  return flags != 1 || priority > 0 || priority < -5;
}
int cuStreamDestroy_v2(intptr_t s) { return s != 7 ? 1 : asleep; }
int cuStreamSynchronize(intptr_t s) { return s && s != 7 ? 1 : asleep; }
int cuStreamQuery(intptr_t s) { return s != 7 ? 1 : 600; }
int cuStreamWaitEvent(intptr_t s, intptr_t e, unsigned flags) { return s != 7 || e < 20 || flags; }
int cuStreamWaitValue32_v2(intptr_t s, ptr p, uint32_t v, unsigned flags) {
  return s != 7 || flags || (int32_t)(*(uint32_t*)p - v) < 0;
}
int cuStreamWriteValue32_v2(intptr_t s, ptr p, uint32_t v, unsigned flags) {
  *(uint32_t*)p = v;
  return s != 7 || flags;
}

// An event with timing is the address of the time in nanoseconds at which it was recorded.
enum { plainEvent = 22 };
int cuEventCreate(intptr_t* e, unsigned flags) {
  *e = flags ? 20 + flags : (intptr_t)calloc(1, sizeof(int64_t));
  return 0;
}
int cuEventDestroy_v2(intptr_t e) {
  if (e > plainEvent) free((void*)e);
  return e < 20;
}
static int64_t now(void) {
  static int64_t ticks;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return TICK ? (ticks += TICK) : t.tv_sec * 1000000000ll + t.tv_nsec;
}
int cuEventRecord(intptr_t e, intptr_t s) {
  if (e < 20 || s != 7) return 1;
  if (e > plainEvent) *(int64_t*)e = now();
  return asleep;
}
int cuEventSynchronize(intptr_t e) { return e < 20; }
int cuEventQuery(intptr_t e) { return e < 20 ? 1 : asleep; }
int cuEventElapsedTime(float* ms, intptr_t from, intptr_t to) {
  if (from <= plainEvent || to <= plainEvent) return 1;
  *ms = (*(int64_t*)to - *(int64_t*)from) * 1e-6;
  return 0;
}

int cuModuleLoadDataEx(intptr_t* m, const char* ptx, unsigned n, const uint32_t* options, void** values) {
  *m = 30;
  if (n != 2 || options[0] != 5 || options[1] != 6) return 1;
  if (run && !PTX) return 0;
  snprintf(values[0], (size_t)values[1], "ptxas application ptx input, line 1; fatal: %s\n",
           run ? "Unsupported .version" : ptx);
  if (run) return PTX;
  return !strcmp(ptx, "good") ? 0 : !strcmp(ptx, "new") ? 222 : 218;
}
int cuModuleGetFunction(intptr_t* f, intptr_t m, const char* name) {
  *f = 40;
  return m != 30 ? 1 : strcmp(name, "sum") && !run ? 500 : 0;
}
int cuFuncSetAttribute(intptr_t f, int a, int v) { return f != 40 || a != 8 || v > 100000; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, intptr_t f, int threads, size_t shared) {
  *n = 2048 / threads;
  return f != 40 || (shared != 512 && !run);
}
#if VERSION >= 12040 && !defined RUN
int cuFuncGetParamInfo(intptr_t f, size_t i, size_t* offset, size_t* size) {  // sum(ptr out, int32 a, double b)
  static const size_t sizes[] = {8, 4, 8};
  if (f != 40 || i > 2) return 1;
  *offset = 8 * i;
  *size = sizes[i];
  return 0;
}
#endif
// sum writes a + b and its launch parameters. If a == -1, it accesses an illegal address.
int cuLaunchKernel(intptr_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, intptr_t stream, void** args, void** extra) {
  if (f != 40 || stream != 7 || extra) return 1;
  if (run) {
    static int launches;
    if (++launches == LOSE && current == 111) asleep = 700;
    if (NORM) {  // struct Pass in cuda/kernels/pass.cuh
      uint64_t* sums = ((uint64_t**)args[0])[2];
      for (int i = ((int32_t*)args[0])[22]; i-- > 0;) sums[8 * i]++;
    }
    return asleep;
  }
  int a = *(int32_t*)args[1];
  if (a == -1) {
    asleep = 700;
    return 0;
  }
  double out[] = {a + *(double*)args[2], gx, gy, gz, bx, by, bz, shared};
  memcpy(*(void**)args[0], out, sizeof out);
  return 0;
}
