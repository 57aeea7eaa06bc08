#!/bin/sh
# Prepares the files that compose.yaml needs, once: passwords, which never leave this directory; directories for
# outputs, checkpoints and JetStream, with their owner; and .env with that owner and the project's name.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 700 secrets # closed, because its files are readable by all: the containers may run as any user
random() { head -c 24 /dev/urandom | base64 | tr '+/' '-_'; }
make_secret() { [ -s "secrets/$1" ] || { cat > "secrets/$1"; chmod 444 "secrets/$1"; }; }
random | make_secret nats_password
random | make_secret run_secret
random | make_secret grafana_password
printf 'users: [{user: jacobi, password: "%s"}]\n' "$(cat secrets/nats_password)" | make_secret nats_users
route() {
  printf 'authorization {user: route, password: "%s"}\n' "$1"
  printf 'routes: [nats://route:%s@nats:6222, nats://route:%s@nats-2:6222, ' "$1" "$1"
  printf 'nats://route:%s@nats-3:6222]\n' "$1"
}
route "$(random)" | make_secret nats_routes
user=$(id -u):$(id -g)
[ "$(id -u)" != 0 ] || user=65532:65532 # containers are not root
for dir in "${OUT_DIR:-out}" "${CHECKPOINT_DIR:-checkpoints}" jetstream/nats jetstream/nats-2 jetstream/nats-3; do
  mkdir -p "$dir"
  [ "$(id -u)" != 0 ] || chown "$user" "$dir"
done
# The project's name is set here because Debian's docker-compose does not read it from compose.yaml.
printf 'JACOBI_USER=%s\nCOMPOSE_PROJECT_NAME=jacobi\n' "$user" > .env
