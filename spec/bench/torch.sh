#!/usr/bin/env bash
# spec/bench/torch.sh: the same models from equal weights in PyTorch and here.
#
#   ./dev bench torch [STEPS] [THREADS] [ROUNDS]
#
# Installs PyTorch into a virtual environment of the build folder (LT_TORCH_VENV names another), lets
# it write weights, batches and its losses, repeats the steps with ltrain, and prints the largest
# relative difference of the losses and the time of a step on both sides. Both sides take turns for
# some rounds; the last line of a model has the least time of each. LT_BENCH_MODELS: some of the
# models.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
steps=${1:-20} threads=${2:-1} rounds=${3:-3}
build=${LT_BUILD:-$here/../../build}
venv=$(bash "$here/torch_venv.sh" torch numpy torchvision transformers)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export LUA_PATH_5_4="$here/../../?.lua;;" PYTHONDONTWRITEBYTECODE=1
for model in ${LT_BENCH_MODELS:-mlp cnn gpt resnet18 unet vit gpt2 gpt2_124m lstm}; do
  for _ in $(seq "$rounds"); do
    OMP_NUM_THREADS=$threads "$venv/bin/python" "$here/torch_steps.py" "$model" "$steps" "$work"
    OMP_NUM_THREADS=$threads "${LTRAIN:-$build/ltrain}" "$here/torch_steps.lua" \
      "$model" "$steps" "$work" "$threads"
  done | tee /dev/stderr | awk -v model="$model" '
    match($0, /PyTorch [0-9.]+/) { t = substr($0, RSTART + 8, RLENGTH - 8) + 0 }
    match($0, /, ltrain [0-9.]+/) { l = substr($0, RSTART + 9, RLENGTH - 9) + 0
      if (!n || t < theirs) theirs = t
      if (!n++ || l < ours) ours = l }
    END { if (!n) exit 1
      printf "%s: least of %d rounds: PyTorch %.3f, ltrain %.3f, ltrain / PyTorch %.2f\n",
        model, n, theirs, ours, ours / theirs }'
  rm -f "$work/$model".*
done
