#!/usr/bin/env bash
# Runs common programs that use threads, children and pipes. All programs that they start also load the shim.
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
seq 60000 > numbers
ends sort "$@" sort --parallel=4 -S 1M -n -r numbers
ends xz "$@" sh -c 'xz -T2 --block-size=64KiB -c numbers | xz -dc'
ends zstd "$@" sh -c 'zstd -q -T2 -c numbers | zstd -q -dc'
ends tar "$@" sh -c 'tar -czf - numbers | tar -tzf -'
ends xargs "$@" sh -c 'seq 40 | xargs -P 4 -n 1 expr 1 + | sort -n'
ends awk "$@" awk '{ while (("echo " $1) | getline line) n += line } NR == 30 { print n; exit }' numbers
ends find "$@" sh -c 'find /etc -maxdepth 1 -type f -exec basename {} \; | sort'
ends git "$@" sh -c 'git init -q work && cd work && cp ../numbers . && git add . &&
  git -c user.name=a -c user.email=b commit -q -m first && git gc -q --aggressive && git fsck && git status --short && git grep -c 59999'
mkdir -p many
for number in $(seq 12); do
  echo "int f$number(void) { return $number; }" > "many/f$number.c"
done
printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n\t@nm $^ | grep -c " T "\n' > many/Makefile
ends make "$@" make -s -j4 -C many
ends perl-fork "$@" perl "$sources/forks.pl"
ends perl-threads "$@" perl "$sources/threads.pl"
ends ruby "$@" ruby "$sources/forks.rb"
ends node "$@" node "$sources/forks.js"
ends java "$@" java -Xmx256m "$sources/Forks.java"
ends python "$@" /usr/bin/python3 -c 'import multiprocessing as m; print(m.get_context("fork").Pool(3).map(abs, range(-50, 0)))'
