#!/usr/bin/env bash
# spec/parity/run.sh: random calls of operations, layers, optimizers and schedulers, and the samples
# of PyTorch's operator database, here and in PyTorch; our ONNX files in onnxruntime; and metrics of
# random batches in torchmetrics.
#
#   ./dev parity [--seed N] [--cases N] [--record]
#
# --record writes PyTorch's answers to spec/parity/recorded.jsonl and samples.jsonl, which the
# suite compares with.
#
# PyTorch comes as for ./dev bench torch (spec/bench/torch_venv.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
seed=1 cases=3200 record=()
while [ $# -gt 0 ]; do
  case $1 in
    --record) record=("$here/recorded.jsonl"); shift; continue ;;
    --seed) seed=$2 ;;
    --cases) cases=$2 ;;
    *) echo "parity: unknown option: $1 (there are --seed, --cases, --record)" >&2; exit 2 ;;
  esac
  shift 2
done
samples=("${record[@]/recorded.jsonl/samples.jsonl}")
venv=$(bash "$here/../bench/torch_venv.sh" torch numpy onnxruntime safetensors torchvision \
  torchmetrics pycocotools rouge_score)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LUA_PATH_5_4="$here/../../?.lua;;" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
"$LTRAIN" "$here/draw.lua" "$seed" "$cases" >"$work/cases.jsonl"
status=0
"$venv/bin/python" "$here/compare.py" "$work/cases.jsonl" "${record[@]}" || status=1
"$venv/bin/python" "$here/op_db.py" "$LTRAIN" "$here/answer.lua" "$work" "${samples[@]}" || status=1
if [ ${#record[@]} -eq 0 ]; then
  mkdir "$work/onnx"
  "$LTRAIN" "$here/onnx.lua" "$work/onnx"
  "$venv/bin/python" "$here/onnx.py" "$work/onnx" || status=1
  metrics=$here/../metrics
  "$venv/bin/python" "$metrics/torchmetrics_cases.py" --seed "$seed" >"$work/metrics.jsonl"
  LT_METRIC_CASES=$work/metrics.jsonl "$LTRAIN" "$(command -v busted)" \
    "$metrics/torchmetrics_spec.lua" || status=1
fi
exit $status
