#!/bin/bash
# Compiles the sweep kernels in several shapes and times them, with as many pipelines a block as fit. A shape is columns
# a lane, sweeps a warp, rows a step, rows a loop and warps a block, as in cuda/kernels/shapes.cuh.
cd "$(dirname "$0")/../../cuda/bench" || exit 1
nvcc -arch=sm_80 -std=c++17 -O3 -fmad=false bench.cu -lcuda -o /tmp/bench || exit 1
while read -r f32 f64; do
	echo "== float32 $f32, float64 $f64"
	printf '#define %s %s\n' SHAPE_F32 "$f32" SHAPE_F64 "$f64" >/tmp/v.h # nvcc would split -D at commas
	nvcc -std=c++17 -O3 -fmad=false -gencode=arch=compute_80,code=compute_80 -ptx -include /tmp/v.h \
		../kernels/sweep.cu -o /tmp/v.ptx || exit 1
	export PTX=/tmp/v.ptx SHAPE_F32=$f32 SHAPE_F64=$f64
	for t in 8 16; do
		for n in 2048 16384; do /tmp/bench time $n $t 132 | grep GLUP; done
	done
done <<'V'
8,2,2,8,24 4,2,2,8,20
4,4,4,8,20 4,2,2,8,16
8,4,4,8,12 4,4,4,8,12
V
