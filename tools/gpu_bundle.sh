#!/usr/bin/env bash
# tools/gpu_bundle.sh BUILD: what `./dev gpu` needs on a machine that has a driver of NVIDIA's and
# nothing of ltrain's, as a tarball: the program with its libraries and backends (bundle.sh), the
# specs, examples, busted, and the programs that specs run. `./dev gpu --prebuilt TARBALL` unpacks
# and runs it.
#
# An interpreter is not brought: `ltrain` is one. Kernels are those of BUILD (LT_CUDA_ARCHS).
set -euo pipefail

build=$(cd "$1" && pwd)
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
base=$("$tree/tools/bundle.sh" "$build")
name=$(basename "$base" .tar.gz)
name=ltrain-gpu${name#ltrain}

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/$name
mkdir "$root"
tar -C "$root" --strip-components=1 -xzf "$base"

# As a build has them.
mkdir -p "$root/build/spec/c" "$root/lua"
ln -s ../bin/ltrain "$root/build/ltrain"
ln -s ../lib/ltrain "$root/build/backends"
: >"$root/build/c_tests.txt"
strip -o "$root/build/libltrain.so" "$build/libltrain.so"
for program in device_conformance comm_conformance illegal_address; do
  strip -o "$root/build/spec/c/$program" "$build/spec/c/$program"
done
ln -s ../../backends "$root/build/spec/c/backends"

# Specs, and what they run and read; busted, which is of Lua but for a few modules.
tar -C "$tree" -cf - spec examples tools dev | tar -C "$root" -xf -
cp /usr/bin/busted "$root/lua/run_busted.lua"
for package in lua-busted lua-say lua-luassert lua-cliargs lua-term lua-mediator lua-penlight \
  lua-system lua-filesystem; do
  dpkg -L "$package" 2>/dev/null | while read -r path; do
    case $path in
      */share/lua/5.4/*) to=$root/lua/${path#*/share/lua/5.4/} ;;
      */lua/5.4/*.so) to=$root/lua/${path##*/lua/5.4/} ;;
      *) continue ;;
    esac
    [ -f "$path" ] || continue
    mkdir -p "$(dirname "$to")"
    cp -L "$path" "$to"
  done
done

cat >"$root/gpu" <<'RUN'
#!/usr/bin/env bash
# gpu [SECTION...]: what a GPU has to prove (spec/gpu/report.lua), with what is in this folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -z "${LTRAIN_BACKENDS:-}" ] && ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1; then
  echo "gpu: there is no NVIDIA GPU on this machine (/dev/nvidia0)" >&2
  exit 2
fi
out=(--out "$PWD/gpu.json")
case " $* " in *" --out "*) out=() ;; esac
cd "$here"
export LTRAIN=$here/bin/ltrain LT_BUILD=$here/build LT_ROOT=$here LT_BUSTED=$here/lua/run_busted.lua
export LD_LIBRARY_PATH=$here/lib/bundled${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LUA_PATH_5_4="./?.lua;./?/init.lua;$here/lua/?.lua;$here/lua/?/init.lua;;"
export LUA_CPATH_5_4="$here/lua/?.so;;"
exec "$LTRAIN" spec/gpu/report.lua "${out[@]}" "$@"
RUN
chmod +x "$root/gpu"

rm -f "$build"/ltrain-gpu-*.tar.gz
tar -C "$stage" --owner=0 --group=0 -cf - "$name" | gzip -9 >"$build/$name.tar.gz"
echo "$build/$name.tar.gz"
