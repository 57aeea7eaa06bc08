// The part of a CUDA driver that runs the kernels of launcher probe, on fibers. The rest is the fake driver of
// ../driver/drivertest, in which these functions have other names.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <tuple>

#include "../emulate/fibers.h"
#include "../kernels/probe.cu"

namespace {

struct Kernel {
  const char* name;
  void (*run)(void** arguments);
};

template <auto kernel, class... A, size_t... I>
void call(void (*)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(*(A*)arguments[I]...);
}
template <auto kernel, class... A> void unpack(void (*k)(A...), void** arguments) {
  call<kernel>(k, arguments, std::index_sequence_for<A...>());
}
template <auto kernel> void run(void** arguments) { unpack<kernel>(kernel, arguments); }

#define KERNEL(name) {#name, run<name>}
#define FLOATS(name) KERNEL(name##_f32), KERNEL(name##_f64)
#define NUMBERS(name) KERNEL(name##_i32), KERNEL(name##_i64), FLOATS(name)

const Kernel kernels[] = {
    KERNEL(probe_chunk),
    KERNEL(probe_pingpong),
    FLOATS(probe_copy),
    FLOATS(probe_copy_shared),
    FLOATS(probe_transpose_naive),
    FLOATS(probe_transpose_coalesced),
    FLOATS(probe_transpose_padded),
    FLOATS(probe_transpose_wide),
    NUMBERS(probe_fill),
    NUMBERS(probe_sum_divergent),
    NUMBERS(probe_sum_conflicts),
    NUMBERS(probe_sum_sequential),
    NUMBERS(probe_sum_load),
    NUMBERS(probe_sum_shuffle),
    NUMBERS(probe_sum_several),
    NUMBERS(probe_sum_once),
    FLOATS(probe_sum_exact),
};

std::mutex one;  // launch at a time: all share the fibers

}  // namespace

extern "C" {

int cuModuleGetFunction(intptr_t* f, intptr_t, const char* name) {
  for (const Kernel& k : kernels)
    if (!strcmp(k.name, name)) {
      *f = (intptr_t)&k;
      return 0;
    }
  return 500;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, intptr_t, int, size_t) {
  *n = 2;
  return 0;
}

int cuLaunchKernel(intptr_t f, unsigned gx, unsigned gy, unsigned, unsigned bx, unsigned, unsigned, unsigned shared,
                   intptr_t, void** arguments, void**) {
  std::lock_guard<std::mutex> alone(one);
  gridDim.y = gy;
  for (blockIdx.y = 0; blockIdx.y < gy; blockIdx.y++)
    fibers.run(gx, bx, shared, [f, arguments] { ((const Kernel*)f)->run(arguments); });
  return 0;
}

}  // extern "C"
