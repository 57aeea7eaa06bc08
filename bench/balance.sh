#!/bin/bash
# balance.sh BIN: GLUP/s of two ranks of one thread each on cores 0 and 1, with equal and with other stripes
# (run.balance). Another program takes half of core 1. The last line is the ideal: 1.5 times what rank 0 alone does on
# core 0.
set -euo pipefail
bin=$(realpath "$1")
dir=$(mktemp -d)
cd "$dir"
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
keys=()
for k in grid.nx=8192 grid.ny=8192 solver.max_iterations=400 device.backend=cpu device.threads=1 output.field= \
  output.picture= output.history= output.results=false halo.timeout=120s; do keys+=(--set "$k"); done

# rank R N ARGS...: one rank of N, on core R
rank() {
  PMI_RANK=$1 PMI_SIZE=$2 taskset -c "$1" "$bin/jacobi-rank" "${keys[@]}" "${@:3}" >"$dir/$1.log" 2>&1 ||
    { cat "$dir/$1.log"; exit 1; }
}
glups() { sed -n 's/.*"glups": *\([0-9.]*\),*/\1/p' out/report.json | head -1; }

rank 0 1
alone=$(glups)
taskset -c 1 sh -c 'while :; do :; done' &
for balance in equal 2,1 auto; do
  best=0
  for _ in 1 2 3; do
    rank 0 2 --set run.balance=$balance &
    first=$!
    rank 1 2 --set run.balance=$balance
    wait $first
    best=$(printf '%s\n%s\n' "$best" "$(glups)" | sort -g | tail -1)
  done
  printf '%-6s %8.3f  %s\n' "$balance" "$best" "$(sed -n 's/.*"balance": *"\(run.*\)",*/\1/p' out/report.json)"
done
printf '%-6s %8.3f\n' ideal "$(echo "$alone" | awk '{print 1.5 * $1}')"
