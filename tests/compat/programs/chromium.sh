#!/usr/bin/env bash
# shellcheck disable=SC1091,SC2016,SC2154
. "$(dirname "$0")/lib.sh"
set -eu
cat > page.html << 'HTML'
<!doctype html><title>page</title><p id="p">before</p>
<script>
const worker = new Worker(URL.createObjectURL(new Blob(["onmessage = e => postMessage(e.data * 2)"])));
worker.onmessage = e => { document.getElementById("p").textContent = "after " + e.data; };
worker.postMessage(21);
</script>
HTML
options=(--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir=/tmp/profile --virtual-time-budget=3000)
ends dump-dom "$@" chromium "${options[@]}" --dump-dom file:///tmp/page.html
rm -rf profile
ends screenshot "$@" chromium "${options[@]}" --screenshot=/tmp/page.png file:///tmp/page.html
ends picture sh -c 'head -c 8 page.png'
