#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [--update] - the page in a browser: the committed page is what its source makes; panels of real traces, keys, selection,
# paper; pictures of the panels of a simulated trace beside those in golden/, which --update makes anew (look at them).
#
# Needs node, npm with its registry in reach, and chromium; without one of them it says so and skips.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${LONGPOLE_SOURCE:=$(cd "$here/../.." && pwd)}" "${LONGPOLE_BUILD:=$LONGPOLE_SOURCE/build}"
: "${LONGPOLE:=$LONGPOLE_BUILD/src/cmd/longpole}"
# Chromium keeps a socket there, whose path has at most 107 bytes.
tmp=${TMPDIR:-/tmp}
((${#tmp} <= 40)) || export TMPDIR=/tmp
work=$(mktemp -d)
server=''
cleanup() {
	[[ -z $server ]] || kill "$server" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT

skip_all() {
	echo "skip page: $*"
	exit 0
}
for tool in node npm; do
	command -v "$tool" >/dev/null || skip_all "no $tool"
done
node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 18 ? 1 : 0)' || skip_all "node $(node --version) is older than 18"
mkdir "$work/ui"
cp -r "$LONGPOLE_SOURCE"/ui/{package.json,package-lock.json,build.mjs,tsconfig.json,src} "$work/ui/"
(cd "$work/ui" && timeout 180 npm ci --ignore-scripts --no-audit --no-fund >"$work/npm.log" 2>&1) ||
	{ tail -n 5 "$work/npm.log" >&2; skip_all "npm ci did not get the packages"; }

# ---- the committed page --------------------------------------------------------------------

if ! (cd "$work/ui" && node build.mjs "$work/report.html") >&2; then
	echo "not ok page/built: build.mjs failed"
elif cmp "$work/report.html" "$LONGPOLE_SOURCE/ui/dist/report.html" >&2; then
	echo "ok page/built"
else
	echo "not ok page/built: ui/dist/report.html is not what ui/src makes; run: cd ui && npm ci && npm run build"
fi
if (cd "$work/ui" && timeout 120 node node_modules/typescript/bin/tsc --noEmit) >&2; then
	echo "ok page/types"
else
	echo "not ok page/types: tsc complains"
fi
if ! grep -q '"resolved"' "$LONGPOLE_SOURCE/ui/package-lock.json"; then
	echo "ok page/lock_names_no_registry"
else
	echo "not ok page/lock_names_no_registry: npm install --omit-lockfile-registry-resolved"
fi

# ---- traces --------------------------------------------------------------------------------

chromium=$(command -v chromium || command -v chromium-browser) || { echo "skip page/browser: no chromium"; exit 0; }
cd "$work" || exit 1
head -c 3000000 /dev/urandom | base64 >data
if command -v pigz >/dev/null && timeout 60 "$LONGPOLE" record -q -o pigz.lpt pigz -kfp4 data >&2; then :; else echo "skip page/pigz: no pigz"; fi
timeout 60 "$LONGPOLE" platform -o tcp.lpt --set=gensink.transfer_bytes=3000000 "$LONGPOLE_SOURCE/examples/platform/tcp-2.conf" >/dev/null
cp "$LONGPOLE_SOURCE/tests/golden/empty.lpt" empty.lpt
if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	timeout 40 "$LONGPOLE" record -q -o redis.lpt redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --io-threads 3 \
		--dir "$work" >&2 &
	server=$!
	for _ in {1..100}; do
		[[ -S redis.sock ]] && break
		sleep 0.1
	done
	timeout 20 redis-benchmark -s "$work/redis.sock" -q -n 1000 -c 8 -t set,get >&2
	timeout 5 redis-cli -s "$work/redis.sock" shutdown nosave >&2
	wait "$server"
	server=''
else
	echo "skip page/redis: no redis-server"
fi
cat >ciat.json <<'END'
{"schema": "longpole/ciat/1", "tool": "t", "result": {"threads": 2, "location_bytes": 4, "line_bytes": 64, "phases": [],
 "usage": {"touched_pages": 2, "touched_bytes": 12, "shared_bytes": 4, "page_shared_bytes": 12, "accesses": 402, "shared_data_accesses": 2},
 "communication_matrix": [[0, 7], [3, 0]], "line_bytes": 64, "total": {"sharing_degree_from_1": [5, 0], "invalidation_degree_from_1": [0, 2]}, "lines": [{"address": "0x10000", "false_misses": 199, "true_misses": 0, "upgrades": 100}], "lines_moved": 1}}
END
cat >deadlock.json <<'END'
{"schema": "longpole/deadlock/1", "tool": "t", "result": {"finding": "Deadlock: <b>two</b> threads", "processes": 1, "threads": 2, "threads_asleep": 2,
 "deadlocks": [{"finding": "two threads", "kind": "cycle", "sure": "certain",
  "threads": [{"pid": 1, "tid": 11, "name": "</script>", "wait": "waits for a mutex", "waits_for": ["mutex b"], "frames": []},
   {"pid": 1, "tid": 12, "name": "x", "wait": "waits for a mutex", "waits_for": ["mutex a"], "frames": []}],
  "edges": [{"waiter_tid": 11, "producer_tid": 12, "why": "owns", "event": "mutex b"}, {"waiter_tid": 12, "producer_tid": 11, "why": "owns", "event": "mutex a"}]}]}}
END
timeout 60 "$LONGPOLE" noc sim topology=mesh k=4 load=0.3 traffic=transpose warmup_cycles=500 measure_cycles=1000 --json >noc.json
for trace in *.lpt; do
	with=()
	[[ $trace != tcp.lpt ]] || with=(--with=ciat.json --with=deadlock.json --with=noc.json)
	if timeout 120 "$LONGPOLE" report "${with[@]}" --html="${trace%.lpt}.html" "$trace" >&2; then
		echo "ok page/${trace%.lpt}/written"
	else
		echo "not ok page/${trace%.lpt}/written: exit status $?"
	fi
done
cp "$here/page.mjs" "$work/ui/"
update=()
[[ ${1-} != --update ]] || update=(--update) # (what else is given names tests; all are run)
timeout 400 node "$work/ui/page.mjs" "$chromium" "$work" "$here/golden" "${update[@]}"
status=$?
((status == 0)) || echo "not ok page/browser: exit status $status"
exit 0
