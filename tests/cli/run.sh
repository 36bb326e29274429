#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [PATTERN...] - the command line: every function test_* of the *.sh files here (or those that match, as in noc*), each in an
# empty directory.
#
# Prints `ok NAME`, `not ok NAME: why` or `skip NAME: reason`, and how long each took to standard error. In a test, `fail WHY` and
# `skip REASON` end it. $trace is a recording of tests/target/lock_ladder, made once.
#
# Without a PATTERN, as many tests run at a time as there are processors; those that are named, and those that say `as_root` and so may
# watch the whole machine, run one after the other.
#
# What is tested is an installed copy (../installed/tree.sh), by another user than root, but for tests that say `as_root`. With LONGPOLE set
# to another program than the build's, it is that one, by whoever we are.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${LONGPOLE_SOURCE:=$(cd "$here/../.." && pwd)}" "${LONGPOLE_BUILD:=$LONGPOLE_SOURCE/build}"
: "${LONGPOLE:=$LONGPOLE_BUILD/src/cmd/longpole}"
export LONGPOLE_SOURCE LONGPOLE_BUILD LONGPOLE
export LC_ALL=C.UTF-8 COLUMNS=100
unset NO_COLOR TERM
export XDG_STATE_HOME=/nonexistent # no ledger of the user's

# shellcheck source=tests/installed/tree.sh
source "$here/../installed/tree.sh"
# in_parts TEST... - with the copy: what needs no root as another user, then the rest. Else the tests are as they are.
in_parts() {
	local tree status=0
	tree=$(mktemp -d)
	# shellcheck disable=SC2064 # now
	trap "installed_tree_remove '$tree'" EXIT
	chmod 755 "$tree"
	mkdir -m 1777 "$tree/work"
	LONGPOLE=$(installed_tree "$tree") || { echo "not ok install: meson install failed"; return 1; }
	if ((EUID)); then
		TMPDIR=$tree/work LONGPOLE_CLI_PART=all "$0" "$@" || status=1
	elif as_other test -r "$here/run.sh" -a -x "$LONGPOLE_BUILD/tests/target/lock_ladder" -a -x "$LONGPOLE"; then
		TMPDIR=$tree/work HOME=$tree/work LONGPOLE_CLI_PART=other as_other "$0" "$@" || status=1
		TMPDIR=$tree/work LONGPOLE_CLI_PART=root "$0" "$@" || status=1
	else
		echo "skip by_another_user: the source or the build cannot be reached by one"
		TMPDIR=$tree/work LONGPOLE_CLI_PART=all "$0" "$@" || status=1
	fi
	return $status
}
part=${LONGPOLE_CLI_PART:-}
if [[ -z $part && $LONGPOLE == "$LONGPOLE_BUILD/src/cmd/longpole" ]]; then
	in_parts "$@"
	exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$work/bin:$PATH work
mkdir "$work/bin" "$work/json" "$work/tests"
ln -s "$LONGPOLE" "$work/bin/longpole"
ln -s "$LONGPOLE_BUILD/tests/target/lock_ladder" "$work/bin/ladder"
trace=$work/ladder.lpt
export trace

fail() {
	printf '%s' "$*" >"$test_dir.why"
	exit 1
}
skip() {
	printf '%s' "$*" >"$test_dir.why"
	exit 77
}
# In a test: root is wanted, if we can be. (run.sh reads it before.)
as_root() { :; }
# expect STATUS COMMAND... - runs it; its output is in out and err.
expect() {
	local want=$1 got=0
	shift
	"$@" >out 2>err </dev/null || got=$?
	((got == want)) && return
	cat err >&2
	fail "exit status $got instead of $want: $*"
}
# once FILE COMMAND... - which makes FILE, that several tests read.
once() {
	local file=$1
	shift
	(flock 9 && { [[ -s $file ]] || "$@"; }) 9>"$file.lock"
}
# has FILE TEXT... - each text is in the file.
has() {
	local file=$1 text
	shift
	for text in "$@"; do
		grep -qF -- "$text" "$file" || { cat "$file" >&2; fail "'$text' is not in $file"; }
	done
}
# is_json FILE FILTER - jq's filter gives true.
is_json() {
	[[ -p $1 || -s $1 ]] || fail "$1 is empty"
	jq -e "$2" "$1" >/dev/null || fail "not true in $1: $2"
	[[ -p $1 ]] || cp -- "$1" "$(mktemp "$work/json/XXXXXX")"
}

if ! longpole record -q -o "$trace" ladder >"$work/record.out" 2>"$work/record.err"; then
	cat "$work/record.err" >&2
	echo "not ok record: cannot record tests/target/lock_ladder"
	exit 1
fi

# (all of them are one script: what two define would be the last one's)
twice=$(sed -En 's/^([a-z_0-9]+)\(\).*/\1/p' "$here"/*.sh | sort | uniq -d | tr '\n' ' ')
[[ -z $twice ]] || { echo "not ok functions: two files here define $twice"; exit 1; }
for file in "$here"/*.sh; do
	# shellcheck source=/dev/null
	[[ $file == "$here/run.sh" ]] || source "$file"
done
# is_wanted TEST PATTERN...
is_wanted() {
	local test=$1 pattern
	shift
	(($#)) || return 0
	for pattern; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $test == $pattern ]] && return
	done
	return 1
}
# is_in_part TEST - of those that are run now.
is_in_part() {
	case $part in
	other) ! declare -f "test_$1" | grep -qw as_root ;;
	root) declare -f "test_$1" | grep -qw as_root ;;
	esac
}
# remaining TEST - processes that it started and left: they work in its directory.
remaining() {
	local process
	for process in /proc/[0-9]*; do
		[[ $(readlink "$process/cwd" 2>/dev/null)/ == "$work/tests/$1/"* ]] && echo "${process#/proc/}"
	done
}
# end_remaining TEST - what still runs two seconds after its test would slow down all tests after it, and is not what anybody wants to find.
end_remaining() {
	local pids
	for _ in {1..20}; do
		mapfile -t pids < <(remaining "$1")
		((${#pids[@]})) || return 0
		sleep 0.1
	done
	echo "$1 left running: $(ps -o args= -p "${pids[*]}" | sort | uniq -c | tr '\n' ';')" >&2
	kill -KILL "${pids[@]}" 2>/dev/null
}
# run_test TEST - prints its line.
run_test() {
	local result=0 why begin=$EPOCHREALTIME
	test_dir=$work/tests/$1
	mkdir "$test_dir"
	: >"$test_dir.why"
	(cd "$test_dir" && "test_$1") || result=$?
	end_remaining "$1"
	why=$(tr '\n' ' ' <"$test_dir.why")
	case $result in
	0) echo "ok $1" ;;
	77) echo "skip $1: $why" ;;
	*) echo "not ok $1: ${why:-exit status $result}" ;;
	esac >"$test_dir.result"
	cat "$test_dir.result"
	awk -v test="$1" -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%s took %.1f s\n", test, end - begin }' >&2
}
nr=0 lanes=1
(($#)) || [[ $part == root ]] || lanes=$(nproc)
for test in $(declare -F | sed -n 's/^declare -f test_//p'); do
	is_wanted "$test" "$@" || continue
	nr=$((nr + 1))
	is_in_part "$test" || continue
	while (($(jobs -rp | wc -l) >= lanes)); do
		wait -n
	done
	run_test "$test" &
done
wait
status=0
! grep -qs "^not ok" "$work"/tests/*.result || status=1
((nr)) || { echo "not ok $*: no such test"; status=1; }
# Every JSON document that is_json() saw has the keys of doc/json.md: the installed one, or the build's.
page=${LONGPOLE%/bin/longpole}/share/doc/longpole/json.md
[[ -f $page ]] || page=$LONGPOLE_BUILD/doc/json.md
shopt -s nullglob
if why=$("$here/check_json.py" "$page" "$LONGPOLE_SOURCE/src" "$work"/json/*); then
	echo "ok json_keys"
else
	echo "not ok json_keys: $(tr '\n' ' ' <<<"$why")"
	status=1
fi
exit $status
