#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - longpole as it is installed: moved below a directory with a blank and a colon in its name, read-only, run by a
# user who is not root. What is found beside the program in a build tree must be found there, too.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${LONGPOLE_SOURCE:=$(cd "$here/../.." && pwd)}" "${LONGPOLE_BUILD:=$LONGPOLE_SOURCE/build}"
export LC_ALL=C.UTF-8 COLUMNS=100 XDG_STATE_HOME=/nonexistent
# shellcheck source=tests/installed/tree.sh
source "$here/tree.sh"

# (where other users can get to)
root=$(TMPDIR=/tmp mktemp -d)
trap 'installed_tree_remove "$root"' EXIT
chmod 755 "$root"
longpole=$(installed_tree "$root") || { echo "not ok install: meson install failed"; exit 1; }
mkdir "$root/work" && chmod 1777 "$root/work"
cp "$LONGPOLE_BUILD/tests/target/lock_ladder" "$LONGPOLE_SOURCE/tests/installed/sum.c" "$root/"
chmod a+rx "$root/lock_ladder"

# in_work COMMAND... - in work, as another user; its output is in out and err.
in_work() {
	(cd "$root/work" && umask 022 && TMPDIR="$root/work" as_other timeout 120 env PATH="$PATH" "$@" >out 2>err </dev/null)
}
# No word of the loader's, and it ends well.
well() {
	local status=0
	in_work "$@" || status=$?
	((!status)) || { tail -n 3 "$root/work/err"; printf 'exit status %s: %s\n' "$status" "$2"; return; }
	! grep 'ld\.so' "$root/work/err"
}
in_out() { grep -qF -- "$1" "$root/work/out" || { head -n 3 "$root/work/out"; printf "'%s' is not there\n" "$1"; }; }

try_record() {
	well "$longpole" record -q -o t.lpt "$root/lock_ladder"
	well "$longpole" report t.lpt && in_out lock_ladder
	well "$longpole" report --html=t.html t.lpt
	grep -q '</html>' "$root/work/t.html" || echo "no page"
	# nothing of it stays
	find "$root/work" /tmp -maxdepth 1 -user "$( ((EUID)) && id -u || echo 65534)" -name 'longpole-lib-*'
}
try_odd_places() { # the program, its directory and TMPDIR have such names, too
	(
		cd "$root/work" && mkdir -p "b:l k" && cp "$root/lock_ladder" "b:l k/lad:d er" && chmod -R a+rwx "b:l k"
		cd "b:l k" && TMPDIR="$PWD" as_other timeout 60 "$longpole" record -q -o o.lpt "./lad:d er" >out 2>err </dev/null ||
			{ tail -n 3 err; echo "exit status other than 0"; }
		! grep 'ld\.so' err
		"$longpole" dump o.lpt >dump 2>&1
		grep -q ' lock_acquire ' dump || echo "no lock is recorded"
	)
}
# The hint can be pasted into a shell, and the program that it makes is recorded.
try_static() {
	local hint
	cp "$LONGPOLE_SOURCE/tests/installed/sum.c" "$root/work/"
	(cd "$root/work" && gcc -static -O1 -o static sum.c -pthread 2>/dev/null && chmod a+rx static) || return 0
	! in_work "$longpole" record -q -o st.lpt ./static || echo "not refused"
	hint=$(sed -n 's/.*, or link it with \(.*\)/\1/p' "$root/work/err")
	(cd "$root/work" && eval "gcc -static -O1 -o static sum.c -pthread $hint" 2>&1) || return
	well "$longpole" record -q -o st.lpt ./static
	"$longpole" dump "$root/work/st.lpt" >"$root/work/dump" 2>&1
	grep -q ' thread_create ' "$root/work/dump" || echo "no thread is recorded"
}
# What a killed longpole leaves goes with the next start, a day later; what is younger may be in use.
try_killed() {
	local left
	(cd "$root/work" && as_other env TMPDIR="$root/work" "$longpole" record -q -o k.lpt sh -c 'kill -9 $PPID; sleep 0.1' >/dev/null 2>&1)
	left=$(find "$root/work" -maxdepth 1 -name 'longpole-lib-*')
	[[ -n $left ]] || { echo "it left nothing: what is tried here?"; return; }
	well "$longpole" record -q -o t.lpt "$root/lock_ladder"
	[[ -d $left ]] || echo "it is gone at once"
	touch -d '2 days ago' "$left"
	well "$longpole" record -q -o t.lpt "$root/lock_ladder"
	! [[ -d $left ]] || echo "it stays"
}
# One of a session that lives stays, however old it is.
try_long() {
	local said
	said=$(cd "$root/work" && as_other env TMPDIR="$root/work" "$longpole" record -q -o k.lpt sh -c \
		'touch -d "2 days ago" longpole-lib-*; "$1" record -q -o i.lpt "$2"; ls -d longpole-lib-* | wc -l' sh "$longpole" "$root/lock_ladder" 2>/dev/null)
	[[ $said == *1 ]] || echo "it was removed: $said"
}
try_locks() { well "$longpole" locks -q -o l.lpt -- "$root/lock_ladder"; }
try_calls() { well "$longpole" calls -q -o c.lpt -- "$root/lock_ladder"; }
try_heap() { well "$longpole" locks -q --mode=holds -o h.lpt -- "$root/lock_ladder"; }
try_stat() {
	well "$longpole" stat -- "$root/lock_ladder"
	! grep -F 'there is no' "$root/work/out" "$root/work/err"
}
try_spin() { well "$longpole" spin -- "$root/lock_ladder"; }
try_spin_yield() { well "$longpole" run "$root/lock_ladder"; }
try_deadlock() { well "$longpole" deadlock -- "$root/lock_ladder"; }
try_doctor() { in_work "$longpole" doctor; in_out liblongpole-preload.so; }
reads_of_others() { jq -e '.result.total.all.raw > 100' "$root/work/err" >/dev/null; } # (standard output is the program's)
# A compiler must find our assembler: streams with accesses in them.
built_by() { # LEVEL VERB [VARIABLE=VALUE]
	local level=$1 verb=$2
	shift 2
	well env "$@" "$longpole" "$verb" -g -O1 -o sum "$root/sum.c" -pthread
	well "$longpole" ciat --level="$level" --json -- ./sum
	reads_of_others || printf '%s: no access is recorded\n' "$verb"
}
try_cc() { built_by 3 cc; }
try_cc_clang() { built_by 3 cc LONGPOLE_CC=clang-14; }
try_cc_tsan() { built_by 2 cc LONGPOLE_CC_RECORDER=tsan; }
try_slack() {
	well "$longpole" cc -g -O1 -o sum "$root/sum.c" -pthread
	well "$longpole" record -q --level 3 -o s.lpt ./sum
	well "$longpole" slack s.lpt
}
try_valgrind() {
	[[ -e $(dirname "$longpole")/../lib/longpole/valgrind/longpole-amd64-linux ]] || return 0
	gcc -g -O1 -o "$root/work/plain" "$root/sum.c" -pthread && chmod a+rx "$root/work/plain"
	well "$longpole" ciat --recorder=valgrind --json -- ./plain
	reads_of_others || echo "no access is recorded"
}
# A program without recording code is an error, never an answer of nothing.
try_uninstrumented() {
	local command
	gcc -O1 -o "$root/work/plain" "$root/sum.c" -pthread && chmod a+rx "$root/work/plain"
	for command in ciat cdat 'record -q --level=3 -o u.lpt' 'record -q --level=2 -o u.lpt'; do
		# shellcheck disable=SC2086 # a command and its options
		! in_work "$longpole" $command -- ./plain || printf '%s: exit status 0\n' "$command"
		grep -qF 'no memory streams' "$root/work/err" || printf '%s: does not say why\n' "$command"
	done
}

status=0
for name in $(declare -F | sed -n 's/^declare -f try_//p'); do
	(($#)) && [[ " $* " != *" $name "* ]] && continue
	why=$("try_$name" 2>&1)
	if [[ -z $why ]]; then
		echo "ok $name"
	else
		echo "not ok $name: ${why//$'\n'/; }"
		status=1
	fi
done
exit $status
