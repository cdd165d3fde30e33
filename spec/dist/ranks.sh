#!/usr/bin/env bash
# spec/dist/ranks.sh: runs a command as ranks of one job on this machine, with the variables that
# torchrun sets.
#
#   ranks.sh N COMMAND...
#
# Its status is that of the first rank that did not end well. TERM and INT go to all of them.
set -uo pipefail

n=$1
shift
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 10000)) WORLD_SIZE=$n
export LOCAL_WORLD_SIZE=$n TORCHELASTIC_RUN_ID=$$.$RANDOM TORCHELASTIC_USE_AGENT_STORE=True
pids=()
for ((r = 0; r < n; r++)); do
  RANK=$r LOCAL_RANK=$r "$@" &
  pids+=($!)
done
trap 'kill -TERM "${pids[@]}" 2>/dev/null' TERM
trap 'kill -INT "${pids[@]}" 2>/dev/null' INT
status=0
for pid in "${pids[@]}"; do
  wait "$pid"
  one=$?
  while kill -0 "$pid" 2>/dev/null; do # a signal ended the wait
    wait "$pid"
    one=$?
  done
  [ $status -ne 0 ] || status=$one
done
exit $status
