#!/usr/bin/env bash
# spec/bench/load.sh: training beside programs that never sleep.
#
#   ./dev bench load [ROUNDS] [SECONDS]
#
# With 0, 1 and 2 busy loops beside it, steps a second of a small MLP: as ltrain does by itself, with
# threads that always spin, with threads that always sleep, and on one thread; the middle of ROUNDS,
# taken in turns.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-5} seconds=${2:-2}
work=$(mktemp -d)
loops=()
trap 'exec 2>/dev/null; kill "${loops[@]}"; rm -rf "$work"' EXIT

steps() { # NAME COMMAND...
  local name=$1
  shift
  "$@" "$here/load_steps.lua" "$seconds" >>"$work/$name"
}

middle() { sort -n "$work/$1" | sed -n "$(((rounds + 1) / 2))p"; }

printf '%-12s %8s %8s %8s %8s\n' "busy loops" default spin sleep "1 thread"
for beside in 0 1 2; do
  rm -f "$work"/*
  for _ in $(seq "$rounds"); do
    steps default "$LTRAIN"
    steps spin env GOMP_SPINCOUNT=300000 "$LTRAIN" # libgomp's own number
    steps sleep env OMP_WAIT_POLICY=passive "$LTRAIN"
    steps one env OMP_NUM_THREADS=1 "$LTRAIN"
  done
  printf '%-12s %8s %8s %8s %8s\n' $beside "$(middle default)" "$(middle spin)" "$(middle sleep)" \
    "$(middle one)"
  "$LTRAIN" -e "while true do end" 2>"$work/end" &
  loops+=($!)
  disown
done
