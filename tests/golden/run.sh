#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - golden traces: what was written once must be read for ever, and by two readers alike.
# Prints `ok NAME`, `not ok NAME: why`, `skip NAME: reason`; exit status 1 when one is not ok.
# `run.sh --update` writes what is expected anew (look at the difference), and appends to schema.txt.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(realpath "${LONGPOLE_BUILD:-$here/../../build}")
source=$(realpath "${LONGPOLE_SOURCE:-$here/../..}")
dump=$build/tests/golden/dump_tool
gen_doc=$build/src/trace/gen-format-doc
update=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

ok() { echo "ok $1"; }
not_ok() {
	echo "not ok $1: $2"
	bad=1
}

# expect NAME ACTUAL EXPECTED - the same text?
expect() {
	if [[ $update == --update ]]; then
		cp "$2" "$3"
	fi
	if difference=$(diff "$3" "$2" 2>&1 | head -n 5) && [[ -z $difference ]]; then
		ok "$1"
	else
		not_ok "$1" "differs from ${3#"$source/"}: ${difference//$'\n'/ ; }"
	fi
}

if [[ ! -x $dump || ! -x $gen_doc ]]; then
	not_ok build "no $dump or no $gen_doc"
	exit 1
fi

readers=two
if ! python3 -c 'import zstandard' 2>/dev/null && ! command -v zstd >/dev/null; then
	readers=one
fi
json=()
for trace in "$here"/*.lpt "$here"/bad/*.lpt; do
	name=${trace#"$here/"} name=${name%.lpt}
	flat=$work/${name//\//-}
	if ! "$dump" text "$trace" >"$flat.txt" 2>"$flat.err"; then
		not_ok "dump-$name" "$(head -n 1 "$flat.err")"
		continue
	fi
	expect "dump-$name" "$flat.txt" "${trace%.lpt}.txt"
	"$dump" json "$trace" >"$flat.json" 2>/dev/null
	json+=("$flat.json")
	if [[ $readers == one ]]; then
		echo "skip second-reader-$name: neither python3-zstandard nor zstd is there"
	elif why=$("$here/reader_min.py" --compare "$flat.json" "$trace" 2>"$flat.err"); then
		ok "second-reader-$name"
	else
		not_ok "second-reader-$name" "${why:-$(tail -n 1 "$flat.err")}"
	fi
done
"$gen_doc" schema >"$work/dump.schema.json"
if why=$("$here/check_schema.py" "$work/dump.schema.json" "${json[@]}" 2>&1); then
	ok json-schema
else
	not_ok json-schema "$(tail -n 1 <<<"$why")"
fi

# The first screens of programs that were recorded once (screens/README.md), as people read them.
command=$build/src/cmd/longpole
for trace in "$here"/screens/*.lpt; do
	[[ -x $command && -f $trace ]] || continue
	name=$(basename "$trace" .lpt)
	(cd "$here/screens" && COLUMNS=100 LC_ALL=C.UTF-8 "$command" report "$name.lpt") >"$work/screen" 2>"$work/screen.err" ||
		not_ok "screen-$name" "$(head -n 1 "$work/screen.err")"
	expect "screen-$name" "$work/screen" "${trace%.lpt}.txt"
done

# The README shows one of them.
if sed -n '/^\$ longpole report mutex.lpt$/,/^```$/{//d;p}' "$source/README.md" | cmp -s - "$here/screens/mutex.txt"; then
	ok readme-screen
else
	not_ok readme-screen "README.md's screen is not screens/mutex.txt"
fi

# A kind's number, name and fields are for ever; so are the names of counters.
"$dump" schema >"$work/schema"
if [[ $update == --update ]]; then
	touch "$here/schema.txt"
	grep -vxFf "$here/schema.txt" "$work/schema" >>"$here/schema.txt"
fi
gone=$(grep -vxFf "$work/schema" "$here/schema.txt" | head -n 1)
new=$(grep -vxFf "$here/schema.txt" "$work/schema" | head -n 1)
twice=$(sed -n 's/^\([0-9]*\) .*/\1/p' "$here/schema.txt" | sort | uniq -d | head -n 1)
if [[ $gone ]]; then
	not_ok schema "changed or gone: $gone"
elif [[ $new ]]; then
	not_ok schema "not in schema.txt, append it with run.sh --update: $new"
elif [[ $twice ]]; then
	not_ok schema "kind $twice is used twice"
else
	ok schema
fi

"$gen_doc" layout >"$work/format.md"
expect format.md "$work/format.md" "$source/doc/format.md"
exit $bad
