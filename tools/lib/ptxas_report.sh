#!/bin/sh
# Runs a compiler and keeps what ptxas says of registers, spills and shared memory beside the object
# file, as OBJECT.ptxas; all else is shown. For CMake, in front of nvcc.
object=
previous=
for word in "$@"; do
  [ "$previous" = -o ] && object=$word
  previous=$word
done
[ -n "$object" ] || exec "$@"
"$@" 2>"$object.stderr"
status=$?
grep -E '^ptxas info|bytes stack frame' "$object.stderr" >"$object.ptxas"
grep -vE '^ptxas info|bytes stack frame|^$' "$object.stderr" >&2
rm -f "$object.stderr"
exit $status
