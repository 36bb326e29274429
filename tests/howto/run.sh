#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - the pages of doc/howto that say how to add something are true: what each says is done to a copy of the source,
# which is built and run (page.py). All pages together, for one build is enough; when that fails, one after the other.
# `run.sh --apply` builds nothing: do the pages fit the source? not-executed.txt has those that are prose only; it may shrink.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${LONGPOLE_SOURCE:=$(cd "$here/../.." && pwd)}"
export LC_ALL=C.UTF-8 COLUMNS=100 LONGPOLE_BUILD=build XDG_STATE_HOME=/nonexistent
export -n LONGPOLE_SOURCE LONGPOLE # (what is run is of the copy)
readonly files_max=8               # what is added by hand: more would be needless edits
mapfile -t pages < <(cd "$LONGPOLE_SOURCE/doc/howto" && basename -s .md add-*.md | grep -vxFf "$here/not-executed.txt")
# What pages may run; the unit tests that they bring are built, too.
targets=(src/cmd/longpole src/preload/liblongpole-preload.so src/trace/gen-format-doc tests/golden/dump_tool)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# copy TREE - the source as it is, without what is built of it.
copy() {
	mkdir -p "$1" && tar -C "$LONGPOLE_SOURCE" --exclude='./build*' --exclude=./.git --exclude=node_modules -cf - . |
		tar -C "$1" -xf -
}

# build TREE PAGE... - applies the pages and builds what they run: -O0, no debug symbols.
build() {
	local tree=$1 page file files wanted=("${targets[@]}")
	shift
	for page in "$@"; do
		"$here/page.py" apply "doc/howto/$page.md" "$tree" || return
		mapfile -t files < <("$here/page.py" files "doc/howto/$page.md")
		((${#files[@]} <= files_max)) || { echo "$page: touches ${#files[@]} files, at most $files_max are allowed"; return 1; }
		printf '%s\n' "${files[@]}" >>"$tree/files"
	done
	mapfile -t files <"$tree/files"
	for file in "${files[@]}"; do
		[[ $file != tests/unit/test_*.c ]] || wanted+=("${file%.c}")
	done
	(
		cd "$tree" || exit
		meson setup build -Dbuildtype=plain -Dbpf=disabled -Dvalgrind=disabled -Dmpi=disabled >setup.log 2>&1 ||
			{ tail -n 15 setup.log; exit 1; }
		ninja -C build --quiet "${wanted[@]}" >build.log 2>&1 || { grep -m 5 -E 'error|FAILED|undefined' build.log; exit 1; }
		! grep -F 'warning: ' build.log | grep -F -f files
	)
}

# try TREE PAGE... - prints a line for each.
try() {
	local tree=$1 page why
	shift
	copy "$tree"
	if ! why=$(build "$tree" "$@" 2>&1); then
		(($# == 1)) || return
		echo "not ok $1: ${why//$'\n'/ ; }"
		return
	fi
	for page in "$@"; do
		if why=$("$here/page.py" run "doc/howto/$page.md" "$tree" 2>&1); then
			echo "ok $page"
		else
			echo "not ok $page: ${why//$'\n'/ ; }"
		fi
	done
}

cd "$LONGPOLE_SOURCE" || exit
if [[ ${1:-} == --apply ]]; then
	status=0
	for page in "${pages[@]}"; do
		copy "$scratch/$page" && "$here/page.py" apply "doc/howto/$page.md" "$scratch/$page" || status=1
	done
	exit $status
fi
(($# == 0)) || pages=("$@")
results=$scratch/results
if ! try "$scratch/all" "${pages[@]}" >"$results"; then
	: >"$results"
	for page in "${pages[@]}"; do
		rm -rf "$scratch/one"
		try "$scratch/one" "$page" >>"$results"
	done
	grep -q '^not ok' "$results" || echo "not ok together: each page is right by itself, but not all of them together" >>"$results"
fi
cat "$results"
! grep -q '^not ok' "$results"
