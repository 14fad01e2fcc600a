#!/usr/bin/env bash
# Programs that were built in the folder $BUILT. Their runtimes start threads.
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
ends go "$@" "$BUILT/forks-go"
ends go-cgo "$@" "$BUILT/forks-cgo"
ends rust "$@" "$BUILT/forks-rust"
