#!/bin/bash
# Runs the launcher on this machine's GPUs and prints one line a case: the best of REPEAT runs, and the field's SHA-256.
# usage: bench/gpu/table.sh BIN CASE...   a case is a quoted list of launcher arguments; gtc2019, 1000 sweeps otherwise
set -u
bin=$1; shift
dir=$(mktemp -d); cd "$dir" || exit 1
for case in "$@"; do
	best=0 line=
	for _ in $(seq "${REPEAT:-3}"); do
		# shellcheck disable=SC2086
		if ! timeout 120 "$bin/launcher" $case --set output.field= --set output.picture= >out.txt 2>err.txt; then
			line="FAILED: $(grep -v sweeps err.txt | tail -3 | tr '\n' ' ')"; break
		fi
		speed=$(awk '/^  Speed/ {print $2}' out.txt)
		if awk "BEGIN {exit !($speed > $best)}"; then
			best=$speed
			line=$(awk '/^  Time/ {t=$2; s=$8} /^  Ranks/ {sub(/.*halo depth /, ""); d=$1} /^  Transports/ {$1=""; x=$0}
				/SHA/ {h=substr($NF,1,12)} END {printf "depth %s, %s s (setup %s),%s, %s", d, t, s, x, h}' out.txt)
		fi
	done
	printf '%-64s %10.1f GLUP/s  %s\n' "$case" "$best" "$line"
done
