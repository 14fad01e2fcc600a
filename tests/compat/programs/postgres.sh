#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
bin=$(dirname "$(find /usr/lib/postgresql -name initdb -type f | sort | tail -n 1)")
as=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME=/tmp)
ends initdb sh -c '"$@" > /dev/null' sh "${as[@]}" "$bin/initdb" -D /tmp/data --auth=trust --no-sync
"${as[@]}" "$@" "$bin/postgres" -D /tmp/data -k /tmp -p 7002 -c fsync=off > server.log 2>&1 &
server=$!
until_true "$bin/pg_isready" -q -h /tmp -p 7002
sql=(psql -q -A -t -U postgres -h /tmp -p 7002)
ends create "${sql[@]}" -c 'create table numbers as select n from generate_series(1, 20000) n'
ends parallel "${sql[@]}" -c 'set parallel_setup_cost=0' -c 'set parallel_tuple_cost=0' -c 'set min_parallel_table_scan_size=0' -c 'select sum(n) from numbers'
ends pgbench-init pgbench -q -i -U postgres -h /tmp -p 7002
ends pgbench sh -c "pgbench -U postgres -h /tmp -p 7002 -c 4 -j 2 -t 200 2> /dev/null | grep -E 'actually|failed'"
ends vacuum "${sql[@]}" -c 'vacuum full'
stops stop "$server" TERM
