#!/bin/bash
# Compiles the sweep kernels in several shapes and times them, with as many pipelines a block as fit: columns a lane, sweeps a warp, rows a step,
# rows a loop / threads, blocks a multiprocessor.
cd "$(dirname "$0")/../../cuda/bench" || exit 1
nvcc -std=c++17 -O3 -fmad=false bench.cu -lcuda -o /tmp/bench || exit 1
while read -r f32 b32 f64 b64; do
	echo "== float32 $f32 / $b32, float64 $f64 / $b64"
	printf '#define %s %s\n' SHAPE_F32 "$f32" BOUND_F32 "$b32" SHAPE_F64 "$f64" BOUND_F64 "$b64" >/tmp/v.h # nvcc would split -D at commas
	nvcc -std=c++17 -O3 -fmad=false -gencode=arch=compute_80,code=compute_80 -ptx -include /tmp/v.h ../kernels/sweep.cu -o /tmp/v.ptx || exit 1
	export PTX=/tmp/v.ptx SHAPE_F32=$f32 SHAPE_F64=$f64
	for t in 8 16; do
		for n in 2048 16384; do /tmp/bench time $n $t 132 | grep GLUP; done
	done
done <<'V'
8,2,2,8 768,1 4,2,2,8 640,1
4,4,4,8 640,1 4,2,2,8 512,1
8,4,4,8 384,1 4,4,4,8 384,1
V
