#!/usr/bin/env bash
# spec/bench/xla.sh: the same models on an XLA device, in JAX, and on the CPU of ltrain.
#
#   ./dev bench xla [STEPS] [ROUNDS]
#
# Installs JAX and XLA's plugin for the CPU into a virtual environment of the build folder; with
# LTRAIN_PJRT_PLUGIN set that plugin is used, and JAX with its own of the kind JAX_PLATFORMS names.
# Weights and batches are equal. The three take turns; the least time of the rounds counts. The first
# step compiles (JAX: and traces). LT_BENCH_MODELS: some of the models.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
steps=${1:-} rounds=${2:-3}
build=${LT_BUILD:-$here/../../build}
venv=$(LT_TORCH_VENV=${LT_JAX_VENV:-$build/venv-jax} bash "$here/torch_venv.sh" jax numpy)
plugin=$(LT_TORCH_VENV=$build/venv-xla bash "$here/torch_venv.sh" lammps_jax_pjrt_cpu)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export LUA_PATH_5_4="$here/../../?.lua;;" PYTHONDONTWRITEBYTECODE=1 LTRAIN_XLA_CACHE=
[ -n "${LTRAIN_PJRT_PLUGIN:-}" ] || export LTRAIN_PJRT_PLUGIN
: "${LTRAIN_PJRT_PLUGIN:=$(echo "$plugin"/lib/python3*/site-packages/lammps_jax_pjrt_cpu/*.so)}"
run_ltrain() { "${LTRAIN:-$build/ltrain}" "$here/xla_steps.lua" "$model" "$n" "$work" "$1"; }
for model in ${LT_BENCH_MODELS:-mlp mlp_512 cnn gpt gpt128_256}; do
  case $model in mlp*) n=${steps:-400} ;; *) n=${steps:-20} ;; esac
  for _ in $(seq "$rounds"); do
    echo "cpu $(run_ltrain cpu)"
    echo "xla $(run_ltrain xla)"
    echo "jax $("$venv/bin/python" "$here/xla_steps.py" "$model" "$n" "$work")"
  done 2>"$work/errors" | awk -v model="$model" '
    { if (!($1 in first) || $3 < first[$1]) first[$1] = $3
      if (!($1 in step) || $5 < step[$1]) step[$1] = $5
      if ($7 > worst) worst = $7 }
    END { if (!step["jax"] || !step["xla"]) exit 1
      printf "%s: ms a step: cpu %.2f, xla %.2f, JAX %.2f, xla / JAX %.2f; first step, s: " \
        "xla %.2f, JAX %.2f, xla / JAX %.2f; largest relative difference of the loss %.2g\n", model,
        1e3 * step["cpu"], 1e3 * step["xla"], 1e3 * step["jax"], step["xla"] / step["jax"],
        first["xla"], first["jax"], first["xla"] / first["jax"], worst }' ||
    { cat "$work/errors" >&2; exit 1; }
done
