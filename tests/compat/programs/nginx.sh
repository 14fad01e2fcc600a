#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
mkdir -p www
seq 2000 > www/page.txt
cat > nginx.conf << 'CONF'
user root;
daemon off;
pid /tmp/nginx.pid;
error_log /tmp/error.log;
worker_processes 3;
events { worker_connections 64; }
http { access_log /tmp/access.log; server { listen 127.0.0.1:7001; root /tmp/www; } }
CONF
"$@" nginx -c /tmp/nginx.conf > server.log 2>&1 &
server=$!
until_true curl -sf http://127.0.0.1:7001/page.txt
ends page curl -sf http://127.0.0.1:7001/page.txt
ends missing curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:7001/none
ends load sh -c "ab -q -n 2000 -c 8 http://127.0.0.1:7001/page.txt | grep -E 'Failed|Complete'"
kill -HUP "$(cat nginx.pid)"
ends after-reload sh -c "ab -q -n 500 -c 4 http://127.0.0.1:7001/page.txt | grep -E 'Failed|Complete'"
stops stop "$server" TERM
