// An NVML without a GPU, for programs that run on the CUDA driver in cuda/driver/drivertest: it lists the GPUs of that
// one in reverse. Build with -DGPUS=... (how many), -DCORE=... (the core near all of them).
//
// A GPU's temperature depends on who asks: by readings of their own, all ranks of a node would take CUDA's GPU 0. Its
// utilization does not: CUDA's GPU i has 10 * (i ^ 1) percent.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef GPUS
#define GPUS 2
#endif
#ifndef CORE
#define CORE 0
#endif

typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
} pci;
typedef struct {
  unsigned long long total, free, used;
} memory;
typedef struct {
  unsigned gpu, memory;
} utilization;

static int gpus[GPUS];  // CUDA's numbers of the devices
static int of(const int* d) { return *d - 10; }

int nvmlInit_v2(void) {
  for (int i = 0; i < GPUS; i++) gpus[i] = 10 + GPUS - 1 - i;
  return 0;
}
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int code) { return code ? "an error" : "success"; }
int nvmlDeviceGetCount_v2(unsigned* n) {
  *n = GPUS;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, int** d) {
  *d = &gpus[i];
  return i < GPUS ? 0 : 6;
}
int nvmlDeviceGetUUID(int* d, char* s, unsigned n) {
  int k = snprintf(s, n, "GPU-");
  for (int i = 0; i < 16; i++)
    k += snprintf(s + k, n - k, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", 16 * i + *d);
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, int** d) {
  for (int i = 0; i < GPUS; i++) {
    char s[96];
    nvmlDeviceGetUUID(*d = &gpus[i], s, sizeof s);
    if (!strcmp(s, uuid)) return 0;
  }
  return 6;
}
int nvmlDeviceGetPciInfo_v3(int* d, pci* p) {
  memset(p, 0, sizeof *p);
  snprintf(p->bus_id, 32, "00000000:%02X:00.0", *d);
  return 0;
}
int nvmlDeviceGetName(int* d, char* s, unsigned n) {
  snprintf(s, n, "Fake %d", *d);
  return 0;
}
int nvmlDeviceGetMemoryInfo(int* d, memory* m) {
  m->total = 10ul << 30;
  m->free = 3ul << 29;
  m->used = m->total - m->free;
  return 0;
}
int nvmlDeviceGetUtilizationRates(int* d, utilization* u) {
  u->gpu = 10 * (of(d) ^ 1);
  u->memory = 0;
  return 0;
}
int nvmlDeviceGetTemperature(int* d, int sensor, unsigned* c) {
  const char* rank = getenv("JACOBI_LOCAL_RANK");
  *c = 40 + (of(d) + (rank ? atoi(rank) : 0)) % GPUS;
  return 0;
}
int nvmlDeviceGetPowerUsage(int* d, unsigned* mw) {
  *mw = 100000;
  return 0;
}
int nvmlDeviceGetCpuAffinity(int* d, unsigned words, unsigned long* set) {
  memset(set, 0, words * sizeof *set);
  set[CORE / 64] = 1ul << CORE % 64;
  return 0;
}
