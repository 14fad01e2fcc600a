#!/usr/bin/env bash
# Sourced by the programs' scripts. A script gets the words that stand before a command in a mode ("$@": none, `env LD_PRELOAD=…`
# or `forksight run … --`) and prints a line `@@ TEST RESULT` for each of its tests.
set -eu
cd /tmp
sources=$(dirname "$0")
export sources

# result TEST WORD
result() {
  printf '\n@@ %s %s\n' "$1" "$2"
}

# ends TEST COMMAND...: the result is the exit status, and a sum of the output.
ends() {
  name=$1
  shift
  status=0
  "$@" > "out.$$" 2> "err.$$" < /dev/null || status=$?
  cat "err.$$" >&2
  result "$name" "$status:$(cksum < "out.$$" | cut -d ' ' -f 1)"
}

# until_true COMMAND...: waits for a server that starts.
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

# stops TEST PID SIGNAL: the result is how it ends.
stops() {
  kill "-$3" "$2"
  status=0
  wait "$2" || status=$?
  result "$1" "$status"
}
