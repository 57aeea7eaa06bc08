#!/bin/sh
# Builds the harness and runs it on sweep.ptx.gz, terms.ptx.gz and weighted.ptx.gz in kernels, which the driver compiles
# as in the product:
# cuda/bench/run.sh check
cd "$(dirname "$0")" && nvcc -arch=sm_80 -std=c++17 -O3 -fmad=false bench.cu -lcuda -o /tmp/bench && /tmp/bench "$@"
