// The part of a CUDA driver that runs the kernel of launcher probe, whose launches have one thread. The rest is the
// fake driver of ../driver/drivertest, in which these functions have other names.
#include "../kernels/probe.cu"

extern "C" {

int cuModuleGetFunction(intptr_t* f, intptr_t, const char* name) {
  *f = (intptr_t)probe_pingpong;
  return strcmp(name, "probe_pingpong") ? 500 : 0;
}

int cuLaunchKernel(intptr_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, intptr_t, void** a,
                   void**) {
  const auto pointer = [a](int i) { return *(unsigned**)a[i]; };
  const auto number = [a](int i) { return *(unsigned*)a[i]; };
  probe_pingpong(pointer(0), pointer(1), pointer(2), number(3), number(4), number(5));
  return 0;
}

}  // extern "C"
