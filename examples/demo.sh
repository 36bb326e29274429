#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh - a guided tour: `./dev demo` builds longpole and calls this. Two minutes at most; leaves nothing behind.
#   1. pigz on 200 MiB: what its time goes into, and what one fix or another would buy
#   2. a log processor of three processes: the answer, the prediction, then the fix itself and what it really bought
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
source_dir=${LONGPOLE_SOURCE:-$(readlink -f "$here/..")}
longpole=${LONGPOLE:-$source_dir/build/src/cmd/longpole}
[[ -x $longpole ]] || {
	echo "demo: no longpole; run ./dev demo" >&2
	exit 2
}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/longpole-demo-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[[ -t 1 ]] || say() { printf '\n%s\n' "$*"; }
show() {
	say "\$ longpole $*"
	"$longpole" "$@"
}

# 200 MiB of what every Debian has, in the order of names.
make_input() {
	local wanted=$((200 * 1024 * 1024))
	while [[ ! -s input || $(stat -c %s input) -lt $wanted ]]; do
		find /usr/bin /usr/lib -xdev -type f -readable -size -64M -print0 2>/dev/null | LC_ALL=C sort -z |
			xargs -0 cat 2>/dev/null | head -c "$((wanted - $(stat -c %s input 2>/dev/null || echo 0)))" >>input || true
	done
}

if command -v pigz >/dev/null; then
	threads=$(nproc)
	((threads >= 2)) || threads=2
	((threads <= 4)) || threads=4
	say "1. Compressing 200 MiB with pigz -p $threads"
	make_input
	say "\$ longpole record -o pigz.lpt pigz -p $threads -k -c input > /dev/null"
	"$longpole" record -o pigz.lpt pigz -p "$threads" -k -c input >/dev/null
	show report pigz.lpt
	rm -f input
else
	say "1. pigz is not installed: left out"
fi

say "2. A log processor: reader | parser | counter"
"${CC:-cc}" -O2 -g -o pipeline "$here/pipeline.c"
say "\$ longpole record -o slow.lpt ./pipeline"
"$longpole" record -o slow.lpt ./pipeline
show report slow.lpt
say "The parser looks each path up in a list. What would a much better look-up buy?"
show whatif slow.lpt scale find_path=-50% -- remove find_path
predicted=$("$longpole" whatif --json slow.lpt remove find_path |
	grep -A 2 '"best"' | grep -o '"predicted_speedup": *[0-9.]*' | head -n 1 | grep -o '[0-9.]*$')

say "Now the fix is made: a hash table (./pipeline --fixed). Seven runs of each, in turns, not recorded:"
# seconds OPTION...
seconds() {
	local TIMEFORMAT=%R
	{ time ./pipeline "$@" >/dev/null; } 2>&1
}
for _ in 1 2 3 4 5 6 7; do
	seconds >>before
	seconds --fixed >>after
done
median() { sort -n "$1" | sed -n 4p; }
awk -v before="$(median before)" -v after="$(median after)" -v predicted="$predicted" 'BEGIN {
	printf "   before %.3f s, after %.3f s: %.2f times as fast\n", before, after, before / after
	printf "   predicted, for a look-up that costs nothing: %.2f times (%+.1f %%)\n", predicted, (predicted * after / before - 1) * 100
}'
