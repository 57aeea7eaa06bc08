#!/bin/bash
# Runs what docs/results.md says of the GPUs of one host, a rank each, and prints a line for each case as table.sh does.
# At the end it kills a rank with SIGKILL and goes on with one rank less, which must give the same field.
# usage: bench/gpu/node.sh BIN GPUS [LARGEST]   LARGEST: no mesh has more rows (default 65536)
set -u
bin=$1 gpus=$2 largest=${3:-65536}
here=$(cd "$(dirname "$0")" && pwd)
smooth='problem.coefficient=1+0.9*sin(6*pi*x)*sin(4*pi*y)'
disc='hypot(x-0.5,y-0.5)<0.2'
areas="problem.fixed=$disc --set problem.initial=$disc?1:0 --set problem.coefficient=y<0.3?4:1"
square() { echo "-np $gpus --set grid.nx=$1 --set grid.ny=$1"; }
sweeps() { echo "$(square "$1") --set problem.preset=gtc2019"; }
cases=(
	"$(sweeps 16384)" "$(sweeps 16384) --set solver.norm_every=16" "$(sweeps 16384) --set grid.dtype=float64"
	"$(sweeps 16384) --set halo.depth=1" "$(sweeps 16384) --set halo.transport=nats" "$(sweeps 2048)"
	"$(square 16384) --set problem.top=1" "$(square 1024) --set problem.top=1"
	"$(square 8192) --set $smooth --set problem.source=1" "$(square 4096) --set $areas"
)
for n in 32768 65536; do
	[ $n -le "$largest" ] && cases+=("$(sweeps $n)")
done
for n in 65536 131072; do
	[ $n -le "$largest" ] && cases+=("$(square $n) --set problem.top=1")
done
REPEAT=${REPEAT:-2} "$here/table.sh" "$bin" "${cases[@]}"

# A rank is killed after the first checkpoint; one rank less ends the run.
cd "$(mktemp -d)" || exit 1
common="--set problem.preset=gtc2019 --set grid.nx=8192 --set grid.ny=8192 --set solver.max_iterations=400000"
common+=" --set solver.tolerance=0 --set output.field= --set output.picture= --set checkpoint.dir=checkpoints"
field() { awk '/SHA-256/ {print $NF}' "$1"; }
# shellcheck disable=SC2086
{
	"$bin/launcher" -np "$gpus" $common --set checkpoint.every=0.5s >killed.txt 2>&1 &
	until compgen -G 'checkpoints/*/*' >/dev/null || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
	pkill -KILL -o jacobi-rank
	wait $!
	echo "a rank was killed: the launcher ended with $?"
	"$bin/launcher" -np $((gpus > 1 ? gpus - 1 : 1)) $common --restart >resumed.txt 2>&1 || tail -3 resumed.txt
	"$bin/launcher" -np "$gpus" $common >whole.txt 2>&1 || tail -3 whole.txt
}
whole=$(field whole.txt)
[ -n "$whole" ] && [ "$(field resumed.txt)" = "$whole" ] || { echo 'the fields differ'; exit 1; }
echo "one rank less has gone on from the checkpoint: the same field"
