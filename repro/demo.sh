#!/usr/bin/env bash
# Shows the typical hang of a program that uses OpenMP, its diagnosis and its cures. Usage: repro/demo.sh PREFIX
# [PROGRAM], from the root of the repository. PREFIX is a build or an installation. PROGRAM is the compiled program, for
# a machine without a compiler. Each step shows the command that a user would type, then the command's real output. The
# demo checks the output. The first step whose output or status is wrong ends the demo with status 1.
set -euo pipefail
run=$1/bin/forksight
source=lost_openmp_pool.c
folder=$(mktemp -d)
output=$folder/output
program=$folder/lost_openmp_pool
trap 'rm -rf "$folder"' EXIT
if [ $# -ge 2 ]; then
  cp "$2" "$program"
else
  gcc -O2 -g -fopenmp "repro/openmp/$source" -o "$program"
fi

# Prints the number of the line of the source that has the MARK $1.
line_of() { awk -v mark="MARK: $1" 'index($0, mark) { print FNR }' "repro/openmp/$source"; }

# step TITLE STATUS COMMAND...: runs COMMAND, whose exit status must be STATUS. A COMMAND that hangs is ended after
# 20 s, with status 124. This happens, for example, if a cure does not work.
step() {
  local title=$1 expected=$2 status=0
  shift 2
  printf '\n== %s\n\n$ %s\n' "$title" "$*"
  timeout 20 "$@" 2>&1 | tee "$output" || status=${PIPESTATUS[0]}
  if [ "$status" -ne "$expected" ]; then
    printf '\ndemo: failed: the exit status is %s, not %s\n' "$status" "$expected" >&2
    exit 1
  fi
}

# Checks that the output of the last step has the text of each argument.
has() {
  local text
  for text in "$@"; do
    if ! grep -qF -- "$text" "$output"; then
      printf '\ndemo: failed: the output has no "%s"\n' "$text" >&2
      exit 1
    fi
  done
}

has_not() {
  if grep -qF -- "$1" "$output"; then
    printf '\ndemo: failed: the output has "%s"\n' "$1" >&2
    exit 1
  fi
}

step "1. The bare program: a parallel region, fork(), a parallel region in the child" 124 timeout 3 "$program"
has "parent: sum 500500 by 2 threads"
has_not "child:"
printf '\nThe program hung: it was stopped after 3 seconds.\n'

step "2. forksight names the hang" 137 "$run" run --omp=observe --on-hang kill -- "$program"
has "CERTAIN HANG: lost-openmp-pool" "libgomp pool of 2 threads" "$source:$(line_of region)" "$source:$(line_of fork)" \
  "1 worker, made at" "a victim, not the cause" "omp_pause_resource_all(omp_pause_hard)"

step "3. Cure: one thread in the child, although num_threads(2) asks for two" 0 "$run" run --omp=clamp -- "$program"
has "parent: sum 500500 by 2 threads" "child: sum 500500 by 1 threads" "CURED: lost-openmp-pool"

step "4. Cure: end the pool before the fork; two threads in parent and child" 0 "$run" run --omp=quiesce -- "$program"
has "parent: sum 500500 by 2 threads" "child: sum 500500 by 2 threads" "CURED: lost-openmp-pool"

step "5. Cure: build a new pool in the child; costs the parent nothing" 0 "$run" run --omp=rebuild -- "$program"
has "parent: sum 500500 by 2 threads" "child: sum 500500 by 2 threads" "CURED: lost-openmp-pool"

step "6. Cure: the default, which chooses a cure" 0 "$run" run -- "$program"
has "parent: sum 500500 by 2 threads" "child: sum 500500 by 2 threads" "CURED: lost-openmp-pool"

printf '\ndemo: done: 1 hang, named with its lines, and 4 cures; each step was checked\n'
