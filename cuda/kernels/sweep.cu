// All kernels, as one module.
#include "sweep_deep.cu"
#include "sweep_once.cu"
