#!/bin/sh
# Builds the images of compose.yaml without a registry: jacobi:local from the programs in BIN and this machine's C
# library, nats:local from the Go module of the NATS server that the tests use, and prometheus:local from this machine's
# prometheus, if it has one. Needs Go, and Debian's busybox-static for the health check.
#
#   docker/local-images.sh bin
#   JACOBI_IMAGE=jacobi:local NATS_IMAGE=nats:local docker-compose -f docker/compose.yaml up ...
set -eu
bin=$(realpath "${1:-bin}")
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkdir -p "$tmp/jacobi/usr/local/bin" "$tmp/jacobi/data" "$tmp/jacobi/tmp" "$tmp/jacobi/etc"
chmod 1777 "$tmp/jacobi/tmp"
cp "$bin/launcher" "$bin/jacobi-rank" "$tmp/jacobi/usr/local/bin"
libs=$(ldd "$bin/launcher" "$bin/jacobi-rank" | grep -o '/[^ :]*\.so[^ ]*' | sort -u)
libc=$(dirname "$(echo "$libs" | grep '/libc\.so')")
# libcuda needs the last four libraries.
for lib in $libs "$libc/libm.so.6" "$libc/libdl.so.2" "$libc/libpthread.so.0" "$libc/librt.so.1"; do
  mkdir -p "$tmp/jacobi$(dirname "$lib")" && cp -L "$lib" "$tmp/jacobi$lib"
done
tar -C "$tmp/jacobi" -c . | docker import --change 'WORKDIR /data' --change 'USER 65532:65532' \
  --change 'ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility' \
  --change 'ENTRYPOINT ["/usr/local/bin/launcher"]' --change 'CMD ["--help"]' - jacobi:local

mkdir -p "$tmp/nats/bin" "$tmp/nats/usr/local/bin" "$tmp/nats/etc/nats" "$tmp/nats/tmp" "$tmp/nats/data"
chmod 1777 "$tmp/nats/data" # a volume mounted there inherits the mode
go build -tags netgo,osusergo -o "$tmp/nats/usr/local/bin/nats-server" github.com/nats-io/nats-server/v2
cp "$(command -v busybox)" "$tmp/nats/bin/busybox"
ln -s busybox "$tmp/nats/bin/wget"
tar -C "$tmp/nats" -c . | docker import --change 'USER 65532:65532' \
  --change 'ENTRYPOINT ["/usr/local/bin/nats-server"]' - nats:local

prometheus=$(command -v prometheus) || exit 0
mkdir -p "$tmp/prometheus/bin" "$tmp/prometheus/prometheus" "$tmp/prometheus/tmp"
chmod 1777 "$tmp/prometheus/prometheus" "$tmp/prometheus/tmp"
cp "$prometheus" "$tmp/prometheus/bin"
for lib in $(ldd "$prometheus" | grep -o '/[^ :]*\.so[^ ]*'); do
  mkdir -p "$tmp/prometheus$(dirname "$lib")" && cp -L "$lib" "$tmp/prometheus$lib"
done
tar -C "$tmp/prometheus" -c . | docker import --change 'USER 65534:65534' --change 'VOLUME /prometheus' \
  --change 'ENTRYPOINT ["/bin/prometheus", "--config.file=/etc/prometheus/prometheus.yml"]' \
  --change 'CMD ["--storage.tsdb.path=/prometheus"]' - prometheus:local
