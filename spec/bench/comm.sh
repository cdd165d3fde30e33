#!/usr/bin/env bash
# spec/bench/comm.sh: all_reduce over shm, and MPI_Allreduce on the same machine where there is an
# mpicc: 4 B, 64 KB, 1 MB, 64 MB, on 2 and 4 ranks (./dev bench comm [RANKS...]). Then collectives of
# scripts (collectives.lua) between ranks that ltrain forks, that mpirun starts, and over UCX.
#
# Medians of a busy machine say little: the best times are the ones to compare then, or a run under
# `chrt -f 10` (real-time priority, as root).
set -euo pipefail

ranks=("${@:-2 4}")
# shellcheck disable=SC2206
ranks=(${ranks[*]})
cmake --build "$LT_BUILD" --target bench_comm >/dev/null
"$LT_BUILD/spec/bench/bench_comm" "${ranks[@]}"

collectives() { # collectives TITLE N COMMAND...: as ranks of the command
  echo "$1, $2 ranks, mean, median, shortest:"
  timeout 300 "${@:3}" "$LTRAIN" run "$LT_ROOT/spec/bench/collectives.lua" -- 5
}
for n in "${ranks[@]}"; do
  echo "forked, $n ranks, mean, median, shortest:"
  timeout 300 "$LTRAIN" run "$LT_ROOT/spec/bench/collectives.lua" -- 5 "$n"
  collectives "over UCX" "$n" "$LT_ROOT/spec/dist/ranks.sh" "$n"
done

if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null; then
  echo "mpi: no mpicc and mpirun here, nothing to compare with"
  exit 0
fi
program=$(mktemp)
trap 'rm -f "$program"' EXIT
mpicc -O2 "$LT_ROOT/spec/bench/comm_mpi.c" -o "$program"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for n in "${ranks[@]}"; do
  timeout 300 mpirun --oversubscribe -n "$n" "$program"
  collectives "over MPI" "$n" mpirun -q --oversubscribe -n "$n"
done
