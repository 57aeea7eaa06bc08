# For scripts that bench/ runs over nodes that are namespaces of this machine; to be sourced. Needs root and ip.
#
# Everything has its name from a directory that mktemp makes, or lies in a network namespace of its own. So scripts may
# run beside each other.

# network WORK NODES "RATE LATENCY" joins namespaces by bench/link, as that program says, and sets net: node i is
# namespace ${net}i with address 10.123.45.(10+i), and ${net}0 has 10.123.45.1. WORK is from mktemp -d.
network() {
	net=jn${1##*.}
	namespaces=$2
	(cd "$here/.." && go build -o "$1/link" ./bench/link)
	for i in $(seq 0 "$2"); do ip netns add "$net$i"; done
	mkfifo "$1/ready"
	# shellcheck disable=SC2046,SC2086
	ip netns exec "${net}0" "$1/link" -rate ${3% *} -latency ${3#* } $(seq -f "$net%g" "$2") >"$1/ready" &
	read -r _ <"$1/ready" || return 1 # the program has said why
}

# drop_network deletes the namespaces of network, if there are any.
drop_network() {
	for i in $(seq 0 "${namespaces:--1}"); do
		if [ -e "/run/netns/$net$i" ]; then ip netns delete "$net$i"; fi
	done
}

# within NODE COMMAND... replaces the shell by a command in the network namespace of a node, if there is one.
within() {
	local node=$1
	shift
	if [ -n "${net:-}" ]; then exec ip netns exec "$net$node" "$@"; fi
	exec "$@"
}
