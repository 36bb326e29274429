# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# traces.sh - traces that are not whole, or no traces at all.

test_no_trace_at_all() {
	echo 'hello, this is no trace at all, whatever its name says' >text.lpt
	: >empty.lpt
	local file
	for file in text.lpt empty.lpt; do
		expect 3 longpole report $file
		has err "$file" 'likely cause: ' 'try: '
		[[ ! -s out ]] || fail "$file: something on standard output"
	done
	expect 4 longpole report missing.lpt
	has err 'missing.lpt' 'likely cause: '
}

# A trace cut anywhere gives an answer with a caveat, or an error; never a crash, never silence.
test_cut_anywhere() {
	local size at status
	size=$(stat -c %s "$trace")
	for at in 1 8 40 100 $((size / 10)) $((size / 3)) $((size / 2)) $((size * 9 / 10)) $((size - 9)) $((size - 1)); do
		head -c "$at" "$trace" >cut.lpt
		status=0
		longpole report cut.lpt >out 2>err || status=$?
		case $status in
		0) has out '! a cut or damaged file: only ' ;;
		2 | 3) has err 'error: ' 'cut.lpt' ;;
		*) fail "cut at byte $at of $size: exit status $status" ;;
		esac
	done
}

test_bits_flipped() {
	local size seed=1 round status at
	size=$(stat -c %s "$trace")
	for round in {1..24}; do
		seed=$(((seed * 1103515245 + 12345) % 2147483648))
		at=$((seed % size))
		cp "$trace" bad.lpt
		printf '\xa5' | dd of=bad.lpt bs=1 seek=$at conv=notrunc status=none
		for command in 'report' 'queues --json' 'graph --view=states' 'dump -d'; do
			status=0
			longpole $command bad.lpt >out 2>err || status=$?
			((status == 0 || status == 2 || status == 3)) ||
				{ cat err >&2; fail "byte $at: $command: exit status $status"; }
		done
	done
}

test_bad_traces_of_the_format() {
	local file status nr=0
	for file in "$LONGPOLE_SOURCE"/tests/golden/bad/*; do
		[[ -f $file && $file != *.md ]] || continue
		nr=$((nr + 1))
		for command in report 'report --json' path queues graph 'graph --view=states' dump 'export -o x'; do
			status=0
			longpole $command "$file" >out 2>err || status=$?
			((status == 0 || status == 2 || status == 3)) ||
				{ cat err >&2; fail "$(basename "$file"): $command: exit status $status"; }
			((status == 0)) || has err 'error: '
		done
	done
	((nr)) || skip "tests/golden/bad has no files"
}

# Names of files change on disks, too: each call is a call with that file.
test_names_of_files() {
	local call
	: >old
	expect 0 longpole record -q -o names.lpt sh -c 'mkdir made && mv old new && rm new && rmdir made && truncate -s 4096 grown'
	longpole dump names.lpt >text
	for call in 'made op=[0-9]+.mkdir' 'old op=[0-9]+.rename' 'new op=[0-9]+.unlink' 'made op=[0-9]+.unlink' 'grown op=[0-9]+.truncate'; do
		grep -qE "io_begin object=[0-9]+\(file [^)]*${call/ /\\) }\)" text || fail "no $call"
	done
	# A call that fails may not have looked at the name.
	printf '%s\n' '#include <unistd.h>' 'int main(void) { return truncate((char *)1, -1) != -1 || unlink((char *)1) != -1; }' >bad.c
	"${CC:-cc}" -w bad.c -o bad || fail "bad.c"
	expect 0 longpole record -q -o bad.lpt ./bad
}
