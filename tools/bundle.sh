#!/usr/bin/env bash
# tools/bundle.sh BUILD: the program with the libraries that it needs beside it, as a tarball that can
# be unpacked anywhere on a system with the glibc of its name, or a later one.
#
# The libraries are those that the program was linked with and those that it opens by name
# (dlopen), which are read off it; in lib/bundled, where its rpath leads. Not among them: glibc,
# and what belongs to a machine (drivers of GPUs, MPI). Their licenses are in share/doc.
set -euo pipefail

build=$(cd "$1" && pwd)
system='^(ld-linux.*|lib(c|m|dl|pthread|rt|resolv|util|mvec|anl|nsl))\.so'
of_machine='^lib(cuda|nv|nccl|mpi|open-rte|openblas)'

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/ltrain
cmake --install "$build" --prefix "$root" --component Unspecified --strip >/dev/null
rm -rf "$root"/include "$root"/lib/libltrain* "$root"/lib/{cmake,pkgconfig,lua}
mkdir -p "$root/lib/bundled" "$root/share/doc/ltrain/bundled"

# "NAME PATH" of each library that a file is linked with, also through others.
linked() { ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}'; }

# The same of those that are opened by name, as far as they are installed, and what they need.
opened() {
  local name path
  for name in $(strings "$root/bin/ltrain" | grep -oE 'lib[a-zA-Z0-9_-]+\.so\.[0-9]+$' | sort -u); do
    path=$(ldconfig -p | awk -v name="$name" '$1 == name && !found++ {print $NF}')
    [ -n "$path" ] || continue
    [[ $name =~ $of_machine ]] && continue
    echo "$name $path"
    linked "$path"
  done
}

PATH=$PATH:/usr/sbin:/sbin
{ linked "$root/bin/ltrain"; opened; } | sort -u | while read -r name path; do
  [[ $name =~ $system ]] && continue
  cp -L "$path" "$root/lib/bundled/$name"
  package=$(dpkg -S "$(realpath "$path")" 2>/dev/null | head -n 1 | cut -d: -f1) || true
  [ -z "$package" ] || cp -L "/usr/share/doc/$package/copyright" \
    "$root/share/doc/ltrain/bundled/$package"
done
strip --strip-unneeded "$root"/lib/bundled/*

glibc=$(objdump -T "$root/bin/ltrain" "$root"/lib/bundled/* | grep -o 'GLIBC_2\.[0-9]*' | sort -uV |
  tail -n 1)
version=$("$build/ltrain" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
name=ltrain-$version-linux-$(uname -m)-${glibc/GLIBC_/glibc}
mv "$root" "$stage/$name"
rm -f "$build"/ltrain-*-glibc*.tar.gz
tar -C "$stage" --owner=0 --group=0 -czf "$build/$name.tar.gz" "$name"
echo "$build/$name.tar.gz"
