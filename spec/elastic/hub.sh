#!/usr/bin/env bash
# spec/elastic/hub.sh: four hosts on this machine, h1 to h4, on a switch with a fifth one, hub.
#
#   hub.sh up FOLDER              makes them; everything they need is in FOLDER
#   hub.sh on FOLDER HOST CMD...  runs a command on a host
#   hub.sh cut FOLDER HOST        frames from and to that host no longer arrive
#   hub.sh heal FOLDER HOST       they do again
#   hub.sh down FOLDER            ends every process on them and removes them
#
# A host is a network namespace, with a host name and a file of names of its own. A host that is cut
# off keeps its link: the other end is taken out of the switch. Needs root. `up` takes it all down by
# itself after LIMIT seconds.

hosts="hub h1 h2 h3 h4" prefix=lh limit=${LIMIT:-120}
# shellcheck source=spec/dist/namespaces.sh
. "$(dirname "$0")/../dist/namespaces.sh"

wire() {
  local host
  for host in $hosts; do ip netns add "$id$host"; done
  ip -n "${id}hub" link add eth0 type bridge forward_delay 0
  number hub 10.78.0.100
  printf '127.0.0.1 localhost\n10.78.0.100 hub\n' >"$folder/hosts"
  for host in h1 h2 h3 h4; do
    ip -n "$id$host" link add eth0 type veth peer name "to-$host" netns "${id}hub"
    ip -n "${id}hub" link set "to-$host" master eth0 up
    number "$host" "10.78.0.${host#h}"
    printf '10.78.0.%s %s\n' "${host#h}" "$host" >>"$folder/hosts"
  done
}

case $verb in
  up)
    begin
    wire
    ;;
  on) on "$@" ;;
  cut) ip -n "${id}hub" link set "to-$1" nomaster ;;
  heal) ip -n "${id}hub" link set "to-$1" master eth0 ;;
  down) down ;;
  *)
    echo "hub.sh: up, on, cut, heal or down: $verb" >&2
    exit 2
    ;;
esac
