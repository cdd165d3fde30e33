#!/usr/bin/env bash
# spec/bench/sort.sh: sort and randperm here and in PyTorch, one after the other.
#
#   ./dev bench sort [ELEMENTS] [ROUNDS]
#
# The least processor time of ROUNDS calls on 1 thread, in ms, and its ratio to PyTorch's. Installs
# PyTorch as torch.sh does.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
elements=${1:-10000000} rounds=${2:-3}
build=${LT_BUILD:-$here/../../build}
venv=$(bash "$here/torch_venv.sh" torch numpy)
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
"$venv/bin/python" "$here/sort.py" "$elements" "$rounds" \
  | "${LTRAIN:-$build/ltrain}" "$here/sort_times.lua" "$elements" "$rounds"
