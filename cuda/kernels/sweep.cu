// All kernels without terms, as one module.
#include "exchange.cu"
#include "sweep_deep.cu"
#include "sweep_held.cu"
#include "sweep_once.cu"
