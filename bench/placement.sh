#!/bin/bash
# Measures where NATS servers serve halos best (bench/link/placement, which lists the placements). Needs root, ip and
# /dev/net/tun.
#
# usage: LINK="1gbit 1ms" bench/placement.sh [-kib 8,128,1024] [-exchanges 200] [-rounds 3] [PLACEMENT...]
#
# LINK is the rate and latency of each machine's link (bench/link). Without it all processes share loopback.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/namespaces.sh"
work=$(mktemp -d)
end() {
	trap - EXIT
	{
		# shellcheck disable=SC2046
		kill -KILL $(jobs -p) || true
		wait || true
	} 2>/dev/null
	drop_network
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

(cd "$here/.." && go build -o "$work/placement" ./bench/link/placement)
if [ -n "${LINK:-}" ]; then network "$work" 2 "$LINK"; fi
"$work/placement" -net "${net:-}" "$@" & # a signal does not wait for it
wait $!
