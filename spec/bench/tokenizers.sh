#!/usr/bin/env bash
# spec/bench/tokenizers.sh: encoding here and by Hugging Face's tokenizers, one after the other.
#
#   ./dev bench tokenizers [MEGABYTES] [ROUNDS] [FILE]
#
# Processor time of the fastest of ROUNDS encodings of a text on 1 core, as MB/s: of the markdown
# pages of docs/ repeated, or of FILE, and of mixed Unicode whose words hardly come twice
# (spec/text/tokenizers_of_hf.py). The tokenizers are trained first, by Hugging Face's library, which
# is installed as torch.sh installs PyTorch.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
megabytes=${1:-10} rounds=${2:-3} file=${3:-}
build=${LT_BUILD:-$here/../../build}
venv=$(bash "$here/torch_venv.sh" tokenizers)
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here/../text
export TOKENIZERS_PARALLELISM=false RAYON_NUM_THREADS=1 LTRAIN=${LTRAIN:-$build/ltrain}
"$venv/bin/python" "$here/tokenizers_speed.py" "$megabytes" "$rounds" "$here/../../docs" "$file"
