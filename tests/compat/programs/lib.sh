#!/usr/bin/env bash
# The scripts of the programs source this file. A script gets the words of its mode as "$@": none, `env LD_PRELOAD=…`, or
# `forksight run … --`. The script puts these words before its commands. It prints a line `@@ TEST RESULT` for each
# test.
set -eu
cd /tmp
sources=$(dirname "$0")
export sources

# result TEST WORD: prints that the result of TEST is WORD.
result() {
  printf '\n@@ %s %s\n' "$1" "$2"
}

# ends TEST COMMAND...: runs COMMAND. The result of TEST is the exit status and a checksum of the standard output.
ends() {
  name=$1
  shift
  status=0
  "$@" > "out.$$" 2> "err.$$" < /dev/null || status=$?
  cat "err.$$" >&2
  result "$name" "$status:$(cksum < "out.$$" | cut -d ' ' -f 1)"
}

# until_true COMMAND...: repeats COMMAND until it succeeds, for example until a server is ready.
until_true() {
  for _ in $(seq 200); do
    if "$@" > /dev/null 2>&1; then
      return 0
    fi
    sleep 0.05
  done
  echo "never true: $*" >&2
  cat server.log >&2
  return 1
}

# stops TEST PID SIGNAL: sends SIGNAL to the process, and waits for its end. The result of TEST is the exit status of
# the process.
stops() {
  kill "-$3" "$2"
  status=0
  wait "$2" || status=$?
  result "$1" "$status"
}
