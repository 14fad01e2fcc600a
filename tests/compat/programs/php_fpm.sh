#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
fpm=$(find /usr/sbin -name 'php-fpm8*' | sort | tail -n 1)
printf '<?php echo "answer ", array_sum(range(1, (int)$_GET["n"])), "\\n"; ?>' > page.php
for manager in static dynamic ondemand; do
  cat > fpm.conf << CONF
[global]
error_log = /tmp/fpm.log
daemonize = no
[www]
user = www-data
group = www-data
listen = /tmp/fpm.sock
pm = $manager
pm.max_children = 4
pm.start_servers = 2
pm.min_spare_servers = 1
pm.max_spare_servers = 3
pm.max_requests = 20
CONF
  "$@" "$fpm" -n -y /tmp/fpm.conf > server.log 2>&1 &
  server=$!
  until_true test -S fpm.sock
  ask() { SCRIPT_FILENAME=/tmp/page.php REQUEST_METHOD=GET QUERY_STRING="n=$1" cgi-fcgi -bind -connect /tmp/fpm.sock; }
  until_true ask 1
  for number in $(seq 60); do
    ask "$number"
  done > answers
  ends "$manager-answers" grep answer answers
  kill -USR2 "$server"
  until_true ask 1
  ends "$manager-after-reload" sh -c 'grep -c answer answers'
  stops "$manager-stop" "$server" TERM
  rm -f fpm.sock
done
