#!/usr/bin/env bash
# spec/bench/torch_venv.sh: prints the folder of a virtual environment that has the given packages of
# Python. It is one of the build folder, made and filled where that is needed; LT_TORCH_VENV names
# another.
#
#   venv=$(bash torch_venv.sh torch numpy)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${LT_TORCH_VENV:-${LT_BUILD:-$here/../../build}/venv-torch}
known="import sys, importlib.util as u; exit(not u.find_spec(sys.argv[1]))"
for package in "$@"; do
  "$venv/bin/python" -c "$known" "$package" 2>/dev/null && continue
  echo "installing into $venv: $*" >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "$@" >&2
  break
done
echo "$venv"
