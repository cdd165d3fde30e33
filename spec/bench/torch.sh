#!/usr/bin/env bash
# spec/bench/torch.sh: the same models from equal weights in PyTorch and here.
#
#   ./dev bench torch [STEPS] [THREADS]
#
# Installs PyTorch into a virtual environment of the build folder (LT_TORCH_VENV names another), lets
# it write weights, batches and its losses, repeats the steps with ltrain, and prints the largest
# relative difference of the losses and the time of a step on both sides. LT_BENCH_MODELS: some of
# the models.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
steps=${1:-20} threads=${2:-1}
build=${LT_BUILD:-$here/../../build}
venv=$(bash "$here/torch_venv.sh" torch numpy torchvision transformers)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export LUA_PATH_5_4="$here/../../?.lua;;" PYTHONDONTWRITEBYTECODE=1
for model in ${LT_BENCH_MODELS:-mlp cnn gpt resnet18 unet vit gpt2 lstm}; do
  OMP_NUM_THREADS=$threads "$venv/bin/python" "$here/torch_steps.py" "$model" "$steps" "$work"
  OMP_NUM_THREADS=$threads "${LTRAIN:-$build/ltrain}" "$here/torch_steps.lua" "$model" "$steps" "$work" "$threads"
done
