#!/bin/sh
# cmake/nvcc.sh LOG COMMAND...: runs nvcc; what ptxas says of each kernel goes to LOG, the rest is
# printed.
log=$1
shift
"$@" >"$log" 2>&1
status=$?
grep -v '^ptxas info\|bytes stack frame\|^$' "$log" >&2
exit $status
