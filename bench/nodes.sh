#!/bin/bash
# Runs the launcher over several nodes that are namespaces of this machine, and prints a line for each case, as
# gpu/table.sh does. Needs root, unshare and ip.
#
# usage: bench/nodes.sh BIN NODES CASE...   a case is a quoted list of launcher arguments
#
#   GPUS=4             the machine's GPUs, shared out among the nodes (default: as nvidia-smi says; 0 without it)
#   SLOTS=1            ranks a node, where it has no GPUs
#   LINK="1gbit 1ms"   rate and latency of each node's link (bench/link says how they are written). The nodes, and
#                      the server with the launcher, then have network namespaces of their own, which takes
#                      /dev/net/tun. Without LINK they share the machine's loopback.
#   NATS_SERVER=PATH   the server to start (default: built from go.mod's version)
#   REPEAT=3           runs of each case, of which the fastest counts
set -eu
bin=$1 nodes=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
. "$here/namespaces.sh"
gpus=${GPUS:-$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)}
work=$(mktemp -d) run=
end() {
	trap - EXIT
	trap '' INT TERM # an agent that is killed may signal its group
	{ # the shell would report each job that is killed
		if [ -n "$run" ]; then kill -TERM "$run" && wait "$run" || true; fi
		# shellcheck disable=SC2046
		kill -KILL $(jobs -p) || true # unshare may ignore SIGTERM
		wait || true
	} 2>/dev/null
	drop_network
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

server=${NATS_SERVER:-}
if [ -z "$server" ]; then
	server=$work/nats-server
	(cd "$here/.." && go build -o "$server" github.com/nats-io/nats-server/v2)
fi
address=127.0.0.1
if [ -n "${LINK:-}" ]; then
	address=10.123.45.1
	network "$work" "$nodes" "$LINK"
fi
mkdir "$work/ports"
(within 0 "$server" -a $address -p -1 --ports_file_dir "$work/ports" -l "$work/server") &
server_pid=$!
until url=$(grep -ho "nats://$address:[0-9]*" "$work"/ports/*.ports 2>/dev/null); do
	kill -0 $server_pid 2>/dev/null || { cat "$work/server" >&2; exit 1; }
	sleep 0.05
done
for i in $(seq "$nodes"); do
	slots=${SLOTS:-1} devices=
	if [ "$gpus" -gt 0 ]; then
		slots=$((gpus / nodes))
		devices=$(seq -s, $(((i - 1) * slots)) $((i * slots - 1)))
	fi
	(CUDA_VISIBLE_DEVICES=$devices within "$i" unshare --uts --pid --fork --kill-child --mount-proc sh -c \
		"hostname node$i && exec $bin/launcher node --slots $slots --set nats.url=$url" >"$work/node$i" 2>&1) &
done
for case in "$@"; do
	best=0 line=
	failed=
	for _ in $(seq "${REPEAT:-3}"); do
		# shellcheck disable=SC2086
		(cd "$work" && within 0 timeout -k 10 300 "$bin/launcher" --nodes --wait 30s --set nats.url=$url $case \
			--set output.field= --set output.picture= >out.txt 2>err.txt) & # a signal does not wait for it
		run=$!
		wait $run || failed=$?
		run=
		if [ -n "$failed" ]; then
			line="FAILED: $(grep -v sweeps "$work/err.txt" | tail -3 | tr '\n' ' ')"
			break
		fi
		speed=$(awk '/^  Speed/ {print $2}' "$work/out.txt")
		if awk "BEGIN {exit !($speed > $best)}"; then
			best=$speed
			line=$(awk '/^  Time/ {t=$2; s=$8} /^  Ranks/ {sub(/.*halo depth /, ""); d=$1} /^  Transports/ {$1=""; x=$0}
				/SHA/ {h=substr($NF,1,12)}
				END {printf "depth %s, %s s (setup %s),%s, %s", d, t, s, x, h}' "$work/out.txt")
		fi
	done
	printf '%-64s %10.1f GLUP/s  %s\n' "$case" "$best" "$line"
done
