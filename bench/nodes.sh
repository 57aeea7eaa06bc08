#!/bin/bash
# Runs the launcher over several nodes that are namespaces of this machine, and prints a line for each case, as
# gpu/table.sh does. Needs root, unshare and ip.
#
# usage: bench/nodes.sh BIN NODES CASE...   a case is a quoted list of launcher arguments
#
#   GPUS=4             the machine's GPUs, shared out among the nodes (default: as nvidia-smi says; 0 without it)
#   SLOTS=1            ranks a node, where it has no GPUs
#   LINK="1e9 1ms"     bits a second and latency of each node's link (bench/link); nodes then have network namespaces
#                      of their own, which takes /dev/net/tun. Without it they share the machine's loopback.
#   NATS_SERVER=PATH   the server to start (default: built from go.mod's version)
set -eu
bin=$1 nodes=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
gpus=${GPUS:-$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)}
work=$(mktemp -d)
server=${NATS_SERVER:-}
if [ -z "$server" ]; then
	server=$work/nats-server
	(cd "$here/.." && go build -o "$server" github.com/nats-io/nats-server/v2)
fi
net=jn$$ address=127.0.0.1 port=$((20000 + $$ % 20000))
end() {
	trap - EXIT
	trap '' INT TERM # an agent that is killed may signal its group
	kill -KILL $(jobs -p) 2>/dev/null || true # unshare may ignore SIGTERM
	wait || true
	if [ -n "${LINK:-}" ]; then
		for i in $(seq "$nodes"); do ip netns delete "$net$i" || true; done
	fi
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

if [ -n "${LINK:-}" ]; then
	address=10.123.45.1
	(cd "$here/.." && go build -o "$work/link" ./bench/link)
	for i in $(seq "$nodes"); do ip netns add "$net$i"; done
	mkfifo "$work/ready"
	# shellcheck disable=SC2046,SC2086
	"$work/link" -rate ${LINK% *} -latency ${LINK#* } $(seq -f "$net%g" "$nodes") >"$work/ready" &
	read -r _ <"$work/ready"
fi
"$server" -a $address -p $port >"$work/server" 2>&1 &
url=nats://$address:$port
for i in $(seq "$nodes"); do
	within=
	if [ -n "${LINK:-}" ]; then within="ip netns exec $net$i"; fi
	slots=${SLOTS:-1} devices=
	if [ "$gpus" -gt 0 ]; then
		slots=$((gpus / nodes))
		devices=$(seq -s, $(((i - 1) * slots)) $((i * slots - 1)))
	fi
	CUDA_VISIBLE_DEVICES=$devices $within unshare --uts --pid --fork --kill-child --mount-proc sh -c \
		"hostname node$i && exec $bin/launcher node --slots $slots --set nats.url=$url" >"$work/node$i" 2>&1 &
done
for case in "$@"; do
	best=0 line=
	for _ in $(seq "${REPEAT:-3}"); do
		# shellcheck disable=SC2086
		if ! (cd "$work" && timeout 300 "$bin/launcher" --nodes --wait 30s --set nats.url=$url $case \
			--set output.field= --set output.picture= >out.txt 2>err.txt); then
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
