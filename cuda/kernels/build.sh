#!/bin/sh
# build.sh [MODULE]... compiles the kernels, in the modules sweep, terms, weighted, multigrid, weighted_levels, measure,
# zone and probe, to .ptx, which a driver finishes for the GPU that it finds, and to _90.cubin, finished for compute
# capability 9.0. It compiles layout.cu to layout.ptx, which a test compares with Go. Without arguments it compiles all
# of them.
# What the programs embed is packed by gzip.
# files.sha256 records the sources and what was made of them; a test compares it with the tree.
#
# The same sources and compiler give the same bytes. The compiler is nvcc 11.8: its code for 9.0 is faster than that of
# 13.0 (docs/notebook/gpu-deep-kernel.md). On Debian 12, component non-free, it is in the package nvidia-cuda-toolkit;
# on other systems in NVIDIA's CUDA Toolkit 11.8. It needs g++ 11 or older.
set -eu
cd "$(dirname "$0")"
want=11.8.89
if ! command -v nvcc >/dev/null; then
	echo "build.sh: no nvcc in PATH; $want is needed. On Debian 12, non-free: apt-get install nvidia-cuda-toolkit" >&2
	exit 1
fi
found=$(nvcc --version | sed -n 's/.*, V//p')
if [ "$found" != "$want" ] && [ "${ANY_NVCC:-}" != 1 ]; then
	echo "build.sh: nvcc is $found; $want is needed for the same machine code (ANY_NVCC=1 compiles all the same)" >&2
	exit 1
fi
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
flags='-std=c++17 -O3 -fmad=false -gencode=arch=compute_80,code=compute_80 -ptx'
# Newer compilers write a newer PTX ISA than the kernels need, and a hint to the assembler that ISA 7.0 does not know.
for module in ${*:-sweep terms weighted multigrid weighted_levels measure zone probe layout}; do
	nvcc $flags $module.cu -o "$new/$module.ptx"
	sed -e '/used_bytes_mask/d' -e 's/^\.version .*/.version 7.0/' "$new/$module.ptx" > $module.ptx
	[ $module != layout ] || continue
	ptxas -arch=sm_90 "$new/$module.ptx" -o "$new/${module}_90.cubin"
	gzip -9nf $module.ptx
	gzip -9nc "$new/${module}_90.cubin" > ${module}_90.cubin.gz
done
{
	sha256sum build.sh *.cu *.cuh *.ptx
	for packed in *.ptx.gz *.cubin.gz; do # the hash of what is packed: not every gzip packs to the same bytes
		gzip -dc $packed | sha256sum | sed "s/-$/${packed%.gz}/"
	done
} > files.sha256
