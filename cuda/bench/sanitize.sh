#!/bin/sh
# memcheck and racecheck of the kernels on small meshes; fails if either finds something or a result is wrong. PTX names
# other code, as for run.sh.
#
# racecheck follows barriers for two warps, but reports hazards where five or more in a row meet their neighbours three
# at a barrier, also in a program that does nothing else. So sweep_deep.cu goes under it with a barrier for each two
# (PAIRS): the same accesses, and less order among them.
set -eu
cd "$(dirname "$0")"
nvcc -arch=sm_80 -std=c++17 -O3 -fmad=false bench.cu -lcuda -o /tmp/bench
nvcc -std=c++17 -O3 -fmad=false -DPAIRS -gencode=arch=compute_80,code=compute_80 -ptx \
	../kernels/sweep.cu -o /tmp/pairs.ptx
check() {
	tool=$1
	shift
	echo "== $tool $*"
	# shellcheck disable=SC2086
	env FEW=1 "$@" compute-sanitizer --tool $tool --error-exitcode 1 /tmp/bench check
}
memcheck='memcheck --report-api-errors no'
check racecheck PTX=/tmp/pairs.ptx PIPES=1
check "$memcheck"
for float32 in 24,1,1 16,2,3; do
	check racecheck HELD=$float32 HELD64=8,5,5
	check "$memcheck" HELD=$float32 HELD64=8,5,5
done
