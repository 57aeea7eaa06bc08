#!/bin/sh
# Compiles the multigrid kernels in other shapes for compute capability 9.0, and a test binary that checks and times
# them on a GPU; the machine with the GPU needs neither Go nor nvcc:
#
#	cuda/bench/multigrid.sh DIR
#	LEVEL_VARIANTS=DIR DIR/cuda.test -test.run '^$' -test.bench LevelVariants -test.benchtime 10x
#	DIR/cuda.test -test.run Levels -test.bench 'Levels$' -test.benchtime 20x
#
# A shape is columns of a lane, groups of rows ahead, warps of a block, blocks of a multiprocessor.
set -eu
out=${1:?the directory for the result}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."
(cd .. && go test -c -o "$out/cuda.test" ./cuda)
cd kernels
n=0
while read -r down source coarse up upsource upcoarse; do
	printf '%s\n' "DOWN_F64 $down" "DOWN_SOURCE_F64 $source" "DOWN_F32 $coarse" "UP_F64 $up" \
		"UP_SOURCE_F64 $upsource" "UP_F32 $upcoarse" > "$out/$n.shapes"
	sed 's/^/#define /' "$out/$n.shapes" > "$out/$n.h" # nvcc divides macros on its command line at commas
	nvcc -std=c++17 -O3 -fmad=false -gencode=arch=compute_80,code=compute_80 -ptx -include "$out/$n.h" multigrid.cu \
		-o "$out/$n.ptx"
	ptxas -v -arch=sm_90 "$out/$n.ptx" -o "$out/$n.cubin" 2> "$out/$n.log"
	rm "$out/$n.ptx" "$out/$n.h"
	n=$((n + 1))
done <<END
4,2,4,2 4,1,4,2 4,1,4,3 4,1,4,2 4,1,4,2 4,1,4,3
2,1,4,4 2,2,4,3 4,2,4,4 2,1,4,4 2,2,4,3 4,2,4,4
4,1,8,1 2,1,4,4 4,1,8,2 4,2,4,3 4,1,4,3 4,1,8,2
2,1,4,3 2,1,8,2 8,1,4,2 4,1,8,1 2,1,4,5 8,1,4,2
4,1,4,3 4,1,8,1 4,1,4,5 2,1,4,5 2,1,4,3 4,1,4,5
END
