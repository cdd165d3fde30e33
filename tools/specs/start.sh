#!/bin/sh
# tools/specs/start.sh DIR LUA COMMAND...: runs COMMAND, of tools/run_specs.lua, once one of two
# places is free, or half a core is idle. One at a time asks for the idle core, so that it starts one
# command.
dir=$1 lua=$2
shift 2
while :; do
  for place in 1 2; do
    flock -n -o -E 99 "$dir/place$place" "$@"
    [ $? -eq 99 ] || exit 0
  done
  if flock -o "$dir/core" "$lua" tools/run_specs.lua --is-core-idle; then exec "$@"; fi
done
