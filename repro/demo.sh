#!/usr/bin/env bash
# The classic hang, its diagnosis and its cures, on a real program: repro/demo.sh PREFIX [PROGRAM], from the root of the
# repository. PREFIX is a build or an installation. PROGRAM is the compiled program, where there is no compiler.
# Each step is the command that a user would type, then its real output, which is checked: the first that is not as
# said ends the demo with status 1.
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

# The line of the source that has a MARK.
line_of() { awk -v mark="MARK: $1" 'index($0, mark) { print FNR }' "repro/openmp/$source"; }

# step TITLE STATUS COMMAND...: runs it; its status must be STATUS. A cure that does not cure ends after 20 s, with 124.
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

# The output of the last step has this text.
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
printf '\nIt hung: after 3 seconds it was stopped.\n'

step "2. forksight names the hang" 137 "$run" run --omp=observe --on-hang kill -- "$program"
has "CERTAIN HANG: lost-openmp-pool" "libgomp pool of 2 threads" "$source:$(line_of region)" "$source:$(line_of fork)" \
  "1 worker, made at" "a victim, not the cause" "omp_pause_resource_all(omp_pause_hard)"

step "3. Cure: one thread in the child, although num_threads(2) asks for two" 0 "$run" run --omp=clamp -- "$program"
has "parent: sum 500500 by 2 threads" "child: sum 500500 by 1 threads" "CURED: lost-openmp-pool"

step "4. Cure: give the pool back before the fork; two threads on both sides" 0 "$run" run --omp=quiesce -- "$program"
has "parent: sum 500500 by 2 threads" "child: sum 500500 by 2 threads" "CURED: lost-openmp-pool"

step "5. Cure: build the pool anew in the child; costs the parent nothing" 0 "$run" run --omp=rebuild -- "$program"
has "parent: sum 500500 by 2 threads" "child: sum 500500 by 2 threads" "CURED: lost-openmp-pool"

step "6. Cure: the default chooses by itself" 0 "$run" run -- "$program"
has "parent: sum 500500 by 2 threads" "child: sum 500500 by 2 threads" "CURED: lost-openmp-pool"

printf '\ndemo: done: 1 hang, named with its lines, and 4 cures; each step was checked\n'
