#!/usr/bin/env bash
# spec/dist/two_hosts/hosts.sh: two hosts on this machine, lta and ltb, and the link between them.
#
#   hosts.sh up FOLDER               makes them; everything they need is in FOLDER
#   hosts.sh on FOLDER HOST CMD...   runs a command on a host
#   hosts.sh cut FOLDER [FROM]       frames (FROM that host, else both ways) no longer arrive
#   hosts.sh heal FOLDER             they do again
#   hosts.sh down FOLDER             ends every process on them and removes them
#
# A host is a network namespace, with a host name and a file of names of its own. FOLDER/agent is
# what mpirun starts its daemons with, in place of ssh. Needs root.
#
# A cut link drops frames silently: a permanent neighbour entry with a MAC that nobody has. (A link
# that is taken down is seen by the sender, and proves nothing.) `up` takes it all down by itself
# after LIMIT seconds.

hosts="lta ltb" prefix=ln limit=${LIMIT:-120}
# shellcheck source=spec/dist/namespaces.sh
. "$(dirname "$0")/../namespaces.sh"

lta=10.77.0.1 ltb=10.77.0.2
mac_of() { echo "02:00:00:00:77:0${1##*.}"; }

# next_hop FROM TO MAC: where frames to an address go.
next_hop() { ip -n "$id$1" neigh replace "${!2}" lladdr "$3" dev eth0 nud permanent; }

wire() {
  local host
  for host in lta ltb; do ip netns add "$id$host"; done
  ip -n "${id}lta" link add eth0 type veth peer name eth0 netns "${id}ltb"
  for host in lta ltb; do
    ip -n "$id$host" link set eth0 address "$(mac_of "${!host}")"
    number "$host" "${!host}"
  done
  heal
  for host in lta ltb; do # libraries look for interfaces that are up
    for _ in {1..100}; do
      if ip -n "$id$host" -br link show eth0 | grep -q ' UP '; then break; fi
      sleep 0.02
    done
  done
  printf '127.0.0.1 localhost\n%s lta\n%s ltb\n' "$lta" "$ltb" >"$folder/hosts"
  printf '#!/bin/sh\nhost=$1\nshift\nexec "%s" on "%s" "$host" sh -c "$*"\n' "$here" "$folder" \
    >"$folder/agent"
  chmod +x "$folder/agent"
}

cut() {
  local nobody=02:00:00:00:77:99
  if [ "${1:-lta}" = lta ]; then next_hop lta ltb "$nobody"; fi
  if [ "${1:-ltb}" = ltb ]; then next_hop ltb lta "$nobody"; fi
}

heal() {
  next_hop lta ltb "$(mac_of "$ltb")"
  next_hop ltb lta "$(mac_of "$lta")"
}

case $verb in
  up)
    begin
    wire
    ;;
  on) on "$@" ;;
  cut) cut "$@" ;;
  heal) heal ;;
  down) down ;;
  *)
    echo "hosts.sh: up, on, cut, heal or down: $verb" >&2
    exit 2
    ;;
esac
