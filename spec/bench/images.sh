#!/usr/bin/env bash
# spec/bench/images.sh: images a second that a loader gives, here and by torchvision with PIL.
#
#   ./dev bench images [WORKERS] [ROUNDS]
#
# 400 JPEG files of 500 x 375, RandomResizedCrop(224), a flip, normalised, in batches of 50. Both
# sides have the same cores: WORKERS processes of PyTorch's DataLoader that stay, as many threads
# here. They take turns; each prints images a second, and milliseconds of the processor an image;
# the last line has the best of each.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
workers=${1:-2} rounds=${2:-3}
build=${LT_BUILD:-$here/../../build}
venv=$(bash "$here/torch_venv.sh" torch numpy torchvision)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export OMP_NUM_THREADS=1
"$venv/bin/python" "$here/images.py" make "$work"
for _ in $(seq "$rounds"); do
  "$venv/bin/python" "$here/images.py" read "$work" "$workers"
  "${LTRAIN:-$build/ltrain}" "$here/images_read.lua" "$work" "$workers"
done | tee /dev/stderr | awk '
  $1 == "torchvision" { if ($2 > rate) rate = $2; if (!cpu || $3 < cpu) cpu = $3 }
  $1 == "ltrain" { if ($2 > own) own = $2; if (!own_cpu || $3 < own_cpu) own_cpu = $3 }
  END {
    printf "images a second: torchvision %.0f, ltrain %.0f: %.2f times\n", rate, own, own / rate
    printf "milliseconds an image: torchvision %.2f, ltrain %.2f: %.2f times\n", cpu, own_cpu,
      cpu / own_cpu }'
