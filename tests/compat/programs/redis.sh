#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
"$@" redis-server --port 7000 --dir /tmp --save '' --appendonly yes --io-threads 2 > server.log 2>&1 &
server=$!
until_true redis-cli -p 7000 ping
for test in set get incr lpush mset; do
  ends "benchmark-$test" sh -c "redis-benchmark -p 7000 -q -t $test -n 5000 > /dev/null"
done
ends keys redis-cli -p 7000 dbsize
redis-cli -p 7000 bgsave > /dev/null
saved() { redis-cli -p 7000 info persistence | grep -q 'rdb_bgsave_in_progress:0'; }
until_true saved
ends saved sh -c "redis-cli -p 7000 info persistence | grep rdb_last_bgsave_status"
redis-cli -p 7000 bgrewriteaof > /dev/null
rewritten() { redis-cli -p 7000 info persistence | grep -q 'aof_rewrite_in_progress:0'; }
until_true rewritten
ends rewritten sh -c "redis-cli -p 7000 info persistence | grep aof_last_bgrewrite_status"
stops stop "$server" TERM
