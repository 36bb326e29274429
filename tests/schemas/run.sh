#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - exports checked with what others publish: the JSON schemas of SARIF 2.1.0 and speedscope, the message types of OTLP.
# They are fetched from npm's registry for the test (package-lock.json) and are no part of this repository. Our own answers with our own schemas.
#
# Prints `ok NAME`, `not ok NAME: why` or `skip NAME: reason`. A damaged file of each kind must be refused.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${LONGPOLE_SOURCE:=$(cd "$here/../.." && pwd)}" "${LONGPOLE_BUILD:=$LONGPOLE_SOURCE/build}"
: "${LONGPOLE:=$LONGPOLE_BUILD/src/cmd/longpole}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in node npm jq; do
	command -v "$tool" >/dev/null || { echo "skip schemas: no $tool"; exit 0; }
done
cp "$here"/{package.json,package-lock.json,check.mjs} "$work/"
cd "$work" || exit 1
timeout 100 npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 ||
	{ tail -n 5 npm.log >&2; echo "skip schemas: npm ci did not get the packages"; exit 0; }

"$LONGPOLE" record -q -o ladder.lpt "$LONGPOLE_BUILD/tests/target/lock_ladder" >/dev/null 2>err ||
	{ cat err >&2; echo "not ok schemas/record: cannot record tests/target/lock_ladder"; exit 1; }
"$LONGPOLE" platform -o tcp.lpt --set=gensink.transfer_bytes=300000 "$LONGPOLE_SOURCE/examples/platform/tcp-2.conf" >/dev/null
status=0
not_ok() {
	echo "not ok $1: $2"
	status=1
}

# check FORMAT JQ-EDIT - exports of every trace are right; after the edit they are not.
check() {
	local format=$1 edit=$2 trace
	for trace in ladder tcp; do
		"$LONGPOLE" export -q -f "$format" -o "$trace.json" "$trace.lpt" || { not_ok "schemas/$format" "cannot export $trace.lpt"; return; }
	done
	node check.mjs "$format" ladder.json tcp.json || { not_ok "schemas/$format" "not what its definition says"; return; }
	jq "$edit" ladder.json >bad.json
	! node check.mjs "$format" bad.json 2>/dev/null || { not_ok "schemas/$format" "a damaged file passes"; return; }
	rm ladder.json tcp.json bad.json
	echo "ok schemas/$format"
}
check sarif '.runs[0].results[0].level = "fatal"'
check otlp '.resourceSpans[0].scopeSpans[0].spans[0] |= (.startUnixNano = .startTimeUnixNano | del(.startTimeUnixNano))'
check speedscope '.profiles[0].type = "unknown"'

# What --json prints is what `longpole help --schemas` says.
"$LONGPOLE" record -q -o ladder.lpt "$LONGPOLE_BUILD/tests/target/lock_ladder" >/dev/null 2>err
"$LONGPOLE" help --schemas >schemas.json
for section in actors queues path poles loops locks coach; do
	"$LONGPOLE" "$section" --json -q ladder.lpt >"$section.json" 2>/dev/null
done
jq '.result.queues[0].dequeues = "many"' queues.json >bad.json
if ! node check.mjs longpole actors.json queues.json path.json poles.json loops.json locks.json coach.json; then
	not_ok schemas/longpole "a document is not what its schema says"
elif node check.mjs longpole bad.json 2>/dev/null; then
	not_ok schemas/longpole "a damaged document passes"
else
	echo "ok schemas/longpole"
fi

# A deadlock that is reported as SARIF: a thread that waits for its own lock.
"$LONGPOLE_BUILD/tests/target/deadlock/hang_threads" self-lock >/dev/null 2>&1 &
pid=$!
for _ in {1..50}; do
	"$LONGPOLE" deadlock --settle=50ms --sarif --pid "$pid" >deadlock.sarif 2>err
	jq -e '.runs[0].results | length > 0' deadlock.sarif >/dev/null 2>&1 && break
	sleep 0.1
done
kill "$pid"
if [[ ! -s deadlock.sarif ]]; then
	echo "skip schemas/deadlock: $(tail -n 1 err)"
elif node check.mjs sarif deadlock.sarif; then
	echo "ok schemas/deadlock"
else
	not_ok schemas/deadlock "not what its definition says"
fi
exit $status
