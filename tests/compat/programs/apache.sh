#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
mkdir -p www
seq 2000 > www/page.txt
printf '#!/bin/sh\nprintf "Content-Type: text/plain\\n\\nscript %%s\\n" "$QUERY_STRING"\n' > www/script.cgi
chmod 755 www www/*
for model in event worker; do
  modules=/usr/lib/apache2/modules
  cgi=cgid
  cat > apache.conf << CONF
ServerRoot /tmp
ServerName localhost
Listen 127.0.0.1:7003
PidFile /tmp/apache.pid
ErrorLog /tmp/error.log
Mutex file:/tmp default
LoadModule mpm_${model}_module $modules/mod_mpm_$model.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule mime_module $modules/mod_mime.so
LoadModule ${cgi}_module $modules/mod_$cgi.so
User www-data
Group www-data
StartServers 2
DocumentRoot /tmp/www
TypesConfig /dev/null
AddHandler cgi-script .cgi
$([ "$cgi" = cgi ] || echo "ScriptSock /tmp/cgi.sock")
<Directory /tmp/www>
  Options +ExecCGI
  Require all granted
</Directory>
CONF
  "$@" apache2 -f /tmp/apache.conf -DFOREGROUND > server.log 2>&1 &
  server=$!
  until_true curl -sf http://127.0.0.1:7003/page.txt
  ends "$model-page" curl -sf http://127.0.0.1:7003/page.txt
  ends "$model-script" curl -sf 'http://127.0.0.1:7003/script.cgi?seven'
  ends "$model-load" sh -c "ab -q -n 2000 -c 8 http://127.0.0.1:7003/page.txt | grep -E 'Failed|Complete'"
  kill -USR1 "$(cat apache.pid)"
  until_true curl -sf http://127.0.0.1:7003/page.txt
  ends "$model-after-reload" sh -c "ab -q -n 300 -c 4 http://127.0.0.1:7003/page.txt | grep -E 'Complete'"
  stops "$model-stop" "$server" TERM
done
