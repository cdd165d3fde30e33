#!/usr/bin/env bash
# spec/bench/reductions.sh: sums, topk, bags of embeddings and fresh tensors here and in PyTorch.
#
#   ./dev bench reductions [ROUNDS] [THREADS]
#
# The least time of ROUNDS calls in ms, and its ratio to PyTorch's, which runs first. Installs PyTorch
# as torch.sh does.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-20} threads=${2:-1}
build=${LT_BUILD:-$here/../../build}
venv=$(bash "$here/torch_venv.sh" torch numpy)
export OMP_NUM_THREADS=$threads PYTHONDONTWRITEBYTECODE=1
theirs=$("$venv/bin/python" "$here/reductions.py" "$rounds" "$threads")
"${LTRAIN:-$build/ltrain}" "$here/reductions_times.lua" "$rounds" <<<"$theirs"
