#!/bin/sh
# Runs memcheck and racecheck on the kernels with small meshes. Fails if either reports an error or a result is wrong.
# The variables PTX, TERMS_PTX and WEIGHTED_PTX name other code, as for run.sh.
#
# racecheck handles barriers of two warps. It reports false hazards where, of five or more warps in a row, three
# neighbours meet at each barrier, even in a program that does nothing else. It therefore checks sweep_deep.cu built
# with a barrier for each pair of warps (PAIRS), which has the same accesses and fewer ordering constraints.
set -eu
cd "$(dirname "$0")"
nvcc -arch=sm_80 -std=c++17 -O3 -fmad=false bench.cu -lcuda -o /tmp/bench
for module in sweep terms weighted; do
	nvcc -std=c++17 -O3 -fmad=false -DPAIRS -gencode=arch=compute_80,code=compute_80 -ptx \
		../kernels/$module.cu -o /tmp/pairs_$module.ptx
done
check() {
	tool=$1
	shift
	echo "== $tool $*"
	# shellcheck disable=SC2086
	env FEW=1 "$@" compute-sanitizer --tool $tool --error-exitcode 1 /tmp/bench check
}
memcheck='memcheck --report-api-errors no'
check racecheck PTX=/tmp/pairs_sweep.ptx TERMS_PTX=/tmp/pairs_terms.ptx WEIGHTED_PTX=/tmp/pairs_weighted.ptx PIPES=1
check "$memcheck"
for float32 in 24,1,1 16,2,3; do
	check racecheck HELD=$float32 HELD64=8,5,5
	check "$memcheck" HELD=$float32 HELD64=8,5,5
done
