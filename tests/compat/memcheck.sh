#!/usr/bin/env bash
# memcheck.sh VALGRIND SHIM PROGRAM: runs PROGRAM with the shim under memcheck. Memcheck must report no error. The shim must
# have written a trace, which shows that the shim was loaded.
set -eu
valgrind=$1 shim=$2 program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
LD_PRELOAD=$shim FORKSIGHT_OUT=$folder "$valgrind" -q --error-exitcode=9 "$program" || status=$?
[ "$status" = 0 ] || { echo "memcheck: ended with status $status"; exit 1; }
ls "$folder"/*.fstrace > /dev/null 2>&1 || { echo "memcheck: the shim wrote no trace"; exit 1; }
