#!/usr/bin/env bash
# spec/build/arm64_sysroot.sh FOLDER: Debian's arm64 packages that ltrain and busted need, unpacked
# below FOLDER/root.
#
# They are fetched with apt-get from the mirror that Debian names for all, by lists of their own: as
# any user, without another architecture in this machine's dpkg, and nothing is installed. About
# 20 MB; a folder that is complete is left as it is.
set -euo pipefail

folder=$(realpath -m "$1")
[ ! -e "$folder/complete" ] || exit 0
. /etc/os-release
mkdir -p "$folder"/apt/lists/partial "$folder"/apt/cache/archives/partial "$folder/root"
: >"$folder/apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
  "http://deb.debian.org/debian $VERSION_CODENAME main" >"$folder/apt/sources.list"

get=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=
  -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status"
  -o Dir::Cache="$folder/apt/cache" -o Dir::Etc::SourceList="$folder/apt/sources.list"
  -o Dir::Etc::SourceParts=/dev/null -o Debug::NoLocking=1)
"${get[@]}" update
"${get[@]}" install -y --download-only --no-install-recommends liblua5.4-dev libdnnl-dev \
  libjansson-dev zlib1g-dev libedit-dev libgomp1 lua-filesystem lua-system lua-term
for package in "$folder"/apt/cache/archives/*.deb; do
  dpkg-deb -x "$package" "$folder/root"
done

# Absolute links would lead out of the folder.
find "$folder/root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfnr "$folder/root$(readlink "$link")" "$link"
done
touch "$folder/complete"
