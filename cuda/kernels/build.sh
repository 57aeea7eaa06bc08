#!/bin/sh
# Compiles the kernels to sweep.ptx, which the driver finishes for the GPU that it finds, and to sweep_90.cubin, finished for compute
# capability 9.0. Needs nvcc, 11.8 or newer; 11.8 was used, whose code for 9.0 is faster than that of 13.0. files.sha256 records what
# belongs together; a test compares it with the tree.
#
# nvcc 13.0 writes PTX ISA 9.0, which drivers before CUDA 13 refuse. The kernels need no instruction beyond ISA 7.0 (CUDA 11),
# but for a hint to the assembler (.pragma "used_bytes_mask"): without it, the version may be lowered.
set -eu
cd "$(dirname "$0")"
new=$(mktemp)
trap 'rm -f "$new"' EXIT
nvcc -std=c++17 -O3 -fmad=false -gencode=arch=compute_80,code=compute_80 -ptx sweep.cu -o "$new"
ptxas -arch=sm_90 "$new" -o sweep_90.cubin
sed -e '/used_bytes_mask/d' -e 's/^\.version .*/.version 7.0/' "$new" > sweep.ptx
sha256sum build.sh *.cu *.cuh sweep.ptx sweep_90.cubin > files.sha256
