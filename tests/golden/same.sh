#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# same.sh - do two longpoles give the same answers, byte for byte? For changes of the code that must not change what it says.
# Usage: same.sh OLD NEW [TRACE...]; without traces those of this directory. Prints `differs ARGUMENTS`, with the first lines
# of the difference, and a line of counts; exit status 1 when an answer differs.
set -uo pipefail
export COLUMNS=100 LC_ALL=C.UTF-8
here=$(dirname "$(readlink -f "$0")")
declare -A binary
binary[old]=$(readlink -f "${1:?usage: same.sh OLD NEW [TRACE...]}")
binary[new]=$(readlink -f "${2:?usage: same.sh OLD NEW [TRACE...]}")
shift 2
traces=("$@")
(($#)) || traces=("$here"/screens/*.lpt "$here"/*.lpt "$here"/bad/*.lpt "$here"/laws/*.lpt)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nr=0 bad=0

# same WORDS... - what both print, and write into a page, and how both end.
same() {
	local which
	for which in old new; do
		timeout 300 "${binary[$which]}" "$@" </dev/null >"$work/$which" 2>"$work/$which.err"
		echo "exit status $?" >>"$work/$which"
		cat "$work/$which.err" "$work"/page* >>"$work/$which" 2>/dev/null
		rm -f "$work"/page*
	done
	nr=$((nr + 1))
	if ! cmp -s "$work/old" "$work/new"; then
		bad=$((bad + 1))
		echo "differs $*"
		diff -a "$work/old" "$work/new" | head -n 6 | cut -c 1-300
	fi
}

same help
same help documents
same help --json
for trace in "${traces[@]}"; do
	cd "$(dirname "$trace")" || exit 1
	name=$(basename "$trace")
	same report "$name"
	same report "$name" --json
	same report path poles queues actors connections messages loops coach calls locks gpu "$name"
	same report path poles queues actors connections messages loops coach calls locks gpu "$name" --json
	for form in "" --json; do
		same whatif "$name" $form
		same whatif "$name" scale '*=-50%' $form
		for function in main burn worker run; do
			same annotate "$function" "$name" $form
		done
		same diff "$name" "$name" $form
		same graph "$name" $form
		same dump "$name" --stats $form
		for command in ciat cdat slack tdat; do
			same "$command" "$name" $form
		done
	done
	same report "$name" --from 10ms --to 60ms --json
	same dump "$name"
	same dump "$name" --json
	for format in chrome csv collapsed firefox speedscope pprof otlp perfetto sarif; do
		same export "$name" --format=$format -o -
	done
	same view "$name" -o "$work/page.html"
done
echo "$nr answers, $bad differ"
exit $((bad > 0))
