#!/usr/bin/env bash
# Runs gdb and valgrind on $BUILT/debugged. The words of the mode (see lib.sh) come before each of these commands. The
# program `debugged` has threads, forks and locks, and no defect.
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
program=$BUILT/debugged
ends plain "$@" "$program"
gdb=(gdb -nx -batch -iex 'set debuginfod enabled off' -iex 'set debug-file-directory /nowhere' -iex 'set auto-load safe-path /')
# The results of the tests of gdb include what gdb prints about the program, for example the names of its functions.
ends gdb-run sh -c '"$@" 2>&1 | grep -oE "exited normally|child: [a-z]+|SIG[A-Z]+" | sort' sh "$@" "${gdb[@]}" -ex run "$program"
ends gdb-thread sh -c '"$@" 2>&1 | grep -oE "in (add_one|worker)|[#]0 +(add_one|worker)|exited normally|SIG[A-Z]+"' sh "$@" "${gdb[@]}" \
  -ex 'break add_one' -ex run -ex 'bt 1' -ex delete -ex continue "$program"
ends gdb-child sh -c '"$@" 2>&1 | grep -oE "child_main|exited normally|SIG[A-Z]+" | head -n 2' sh "$@" "${gdb[@]}" \
  -ex 'set follow-fork-mode child' -ex 'break child_main' -ex run -ex 'bt 1' "$program"
ends gdb-finish sh -c '"$@" 2>&1 | grep -oE "Value returned is .*|SIG[A-Z]+"' sh "$@" "${gdb[@]}" \
  -ex 'break add_one' -ex run -ex delete -ex 'set scheduler-locking on' -ex finish "$program"
errors() { "$@" > tool.log 2>&1 && status=0 || status=$?; cat tool.log >&2; echo "$status $(grep -c '^==.*== [A-Z]' tool.log)"; }
ends memcheck errors "$@" valgrind -q --error-exitcode=9 --trace-children=no "$program"
ends memcheck-leaks errors "$@" valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$program"
ends helgrind errors "$@" valgrind -q --tool=helgrind --error-exitcode=9 "$program"
ends drd errors "$@" valgrind -q --tool=drd --error-exitcode=9 "$program"
