#!/usr/bin/env bash
# spec/bench/slow_links/hosts.sh: two hosts on this machine, lta and ltb, and a slow link between
# them.
#
#   hosts.sh up FOLDER MBIT MS       makes them: MBIT per second, MS milliseconds one way
#   hosts.sh on FOLDER HOST CMD...   runs a command on a host
#   hosts.sh down FOLDER             ends every process on them and removes them
#
# The link is relay.c, as few kernels have netem. FOLDER/agent is what mpirun starts its daemons
# with, in place of ssh. Needs root and /dev/net/tun. `up` takes it all down by itself after LIMIT
# seconds.

hosts="lta ltb" prefix=sl limit=${LIMIT:-1200}
# shellcheck source=spec/dist/namespaces.sh
. "$(dirname "$0")/../../dist/namespaces.sh"

lta=10.78.0.1 ltb=10.78.0.2

wire() { # wire MBIT MS
  local host
  for host in lta ltb; do ip netns add "$id$host"; done
  cc -O2 -pthread -o "$folder/relay" "$(dirname "$here")/relay.c"
  setsid "$folder/relay" "${id}lta" "${id}ltb" "$1" "$2" >"$folder/relay.out" 2>&1 </dev/null &
  echo $! >"$folder/relay.pid"
  for _ in $(seq 50); do
    ! grep -q ready "$folder/relay.out" || break
    sleep 0.1
  done
  for host in lta ltb; do number "$host" "${!host}"; done
  printf '127.0.0.1 localhost\n%s lta\n%s ltb\n' "$lta" "$ltb" >"$folder/hosts"
  printf '#!/bin/sh\nhost=$1\nshift\nexec "%s" on "%s" "$host" sh -c "$*"\n' "$here" "$folder" \
    >"$folder/agent"
  chmod +x "$folder/agent"
}

case $verb in
  up)
    begin
    wire "$@"
    ;;
  on) on "$@" ;;
  down)
    [ ! -e "$folder/relay.pid" ] || kill "$(cat "$folder/relay.pid")" 2>/dev/null || true
    down
    ;;
  *)
    echo "hosts.sh: up, on or down: $verb" >&2
    exit 2
    ;;
esac
