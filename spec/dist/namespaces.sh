# spec/dist/namespaces.sh: hosts that are network namespaces of this machine; for scripts that make
# some and source this with their arguments, VERB FOLDER ..., after they have set
#   hosts   their names      prefix   of the namespaces      limit   seconds
#
# A host has a name and a file of names of its own, and FOLDER/NAME.tmp, if there is one, stands in
# for FOLDER/tmp. A process belongs to a host when it is in its namespace: `down` ends those,
# whatever became of their parents. Needs root.
#
# shellcheck shell=bash disable=SC2154
set -euo pipefail

export PATH=$PATH:/usr/sbin:/sbin
here=$(realpath "$0")
verb=$1
folder=$(cd "$2" && pwd)
shift 2
id=$(cat "$folder/id" 2>/dev/null || echo "$prefix$$")

on() { # on HOST COMMAND...: there; does not come back
  local host=$1
  shift
  exec nsenter --net="/run/netns/$id$host" unshare --uts --mount bash -c '
    hostname "$1"
    mount --bind "$2/hosts" /etc/hosts
    if [ -d "$2/$1.tmp" ]; then mount --bind "$2/$1.tmp" "$2/tmp"; fi
    shift 2
    exec "$@"' on "$host" "$folder" "$@"
}

number() { # number HOST ADDRESS: for its end of a wire
  ip -n "$id$1" addr add "$2/24" dev eth0
  ip -n "$id$1" link set eth0 up
  ip -n "$id$1" link set lo up
}

remove() {
  local host pids
  for _ in 1 2 3; do
    pids=""
    for host in $hosts; do pids+=" $(ip netns pids "$id$host" 2>/dev/null | tr '\n' ' ')"; done
    [ -n "${pids// /}" ] || break
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null || true
    sleep 0.1
  done
  for host in $hosts; do ip netns del "$id$host" 2>/dev/null || true; done
}

begin() { # before `up` makes anything; what fails from here on is undone
  echo "$id" >"$folder/id"
  trap remove ERR
  # The last resort: whoever started this may have been killed.
  setsid bash -c 'sleep "$1"; exec "$2" down "$3"' on "$limit" "$here" "$folder" \
    </dev/null >/dev/null 2>&1 &
  echo $! >"$folder/limit.pid"
}

down() {
  remove
  [ ! -e "$folder/limit.pid" ] || kill -- "-$(cat "$folder/limit.pid")" 2>/dev/null || true
}
