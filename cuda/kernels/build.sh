#!/bin/sh
# Compiles the kernels to sweep.ptx, which the driver finishes for the GPU that it finds. Needs nvcc, 11.8 or newer (11.8 was used). The first
# line records what the PTX was made from; a test compares it with the sources in the tree.
#
# nvcc 13.0 writes PTX ISA 9.0, which drivers before CUDA 13 refuse. The kernels need no instruction beyond ISA 7.0 (CUDA 11),
# but for a hint to the assembler (.pragma "used_bytes_mask"): without it, the version may be lowered.
set -eu
cd "$(dirname "$0")"
nvcc -std=c++17 -O3 -fmad=false -gencode=arch=compute_80,code=compute_80 -ptx sweep.cu -o "${1:-sweep.ptx}.new"
{
	echo "// made from $(cat build.sh exchange.cu pass.cuh sum.cuh sweep.cu sweep_deep.cu sweep_once.cu | sha256sum | cut -d' ' -f1)"
	sed -e '/used_bytes_mask/d' -e 's/^\.version .*/.version 7.0/' "${1:-sweep.ptx}.new"
} > "${1:-sweep.ptx}"
rm "${1:-sweep.ptx}.new"
