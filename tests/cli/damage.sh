# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2086,SC2206 # $trace comes from run.sh; words split on purpose
# damage.sh - whoever reads a trace says what of it is damaged, and no gate opens for a part of one.

# damage TRACE - makes flip.lpt, hole.lpt, cut.lpt, nofooter.lpt of it.
damage() {
	local size footer chunks last middle next i
	size=$(stat -c %s "$1")
	mapfile -t chunks < <(LC_ALL=C grep -abo LPCK "$1" | cut -d: -f1)
	footer=$(LC_ALL=C grep -abo LPIX "$1" | tail -1 | cut -d: -f1)
	((${#chunks[@]} >= 3)) || fail "$1 has ${#chunks[@]} chunks only"
	for ((i = ${#chunks[@]} - 1; i > 1; i--)); do # a chunk of one record has too few bytes to be spoiled
		next=${chunks[i + 1]:-$footer}
		((next - chunks[i] < 120)) || break
	done
	last=${chunks[i]} middle=${chunks[i - 1]} next=${chunks[i]}
	cp "$1" flip.lpt
	printf '\xa5\x5a\xa5' | dd of=flip.lpt bs=1 seek=$((last + 56)) conv=notrunc status=none
	cp "$1" hole.lpt
	head -c $((next - middle)) /dev/zero | dd of=hole.lpt bs=1 seek="$middle" conv=notrunc status=none
	head -c $(((last + footer) / 2)) "$1" >cut.lpt
	head -c "$footer" "$1" >nofooter.lpt
	((footer < size)) || fail "$1 has no footer"
}

# tells_damage CALL... - each, with the trace's name for %, says what is damaged, for every kind of damage.
tells_damage() {
	local call file status
	for file in flip hole cut nofooter; do
		for call; do
			status=0
			rm -rf exported.*
			longpole ${call//%/$file.lpt} >out 2>err </dev/null || status=$?
			grep -qE "^longpole: warning: $file.lpt: .*(damaged|cut short)" err ||
				{ cat err >&2; fail "$file: $call (exit status $status) says nothing"; }
			((status == 0 || status == 2 || status == 3)) || fail "$file: $call: exit status $status"
		done
	done
}

test_damage_is_told_by_all() {
	local format
	damage "$trace"
	local calls=('top %' 'report %' 'report --json %' 'path %' 'whatif %' 'whatif % remove x' 'queues %' 'poles %' 'locks %' 'calls %'
		"diff % -- $trace" "diff $trace -- %" 'loops %' 'connections %' 'graph --format=dot %' 'actors %' 'deadlock --potential %' 'coach %'
		'view -o page.html %' 'dump %' "merge -o merged.lpt $trace %" 'report -q --html=page.html %')
	for format in perfetto speedscope collapsed firefox pprof chrome otlp csv sqlite sarif ctf; do
		calls+=("export -q --format=$format -o exported.$format %")
	done
	tells_damage "${calls[@]}"
	cp flip.lpt only.lpt
	mkdir newest && cp flip.lpt newest/ && cd newest || fail newest
	expect 0 longpole report
	has err 'warning: flip.lpt: 1 chunk is damaged'
}

# Streams of memory, instructions and packets have readers of their own.
test_damage_is_told_by_other_readers() {
	expect 0 longpole noc gen -o packets.lpt pattern=central nodes=16 packets=8000 hot_node=5
	damage packets.lpt
	tells_damage 'report %' 'noc replay %' 'noc export netrace % -o x.tra' "noc infer -o i.lpt packets.lpt %" 'noc sample -o run % runs=1'
	cat >two.c <<-'C'
		#include <pthread.h>
		static int shared[4096];
		static void *work(void *at) { for (int i = 0; i < 200000; i++) shared[(i * 7) & 4095] += (int)(long)at; return 0; }
		int main(void) { pthread_t t[2]; for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)i);
			for (int i = 0; i < 2; i++) pthread_join(t[i], 0); return 0; }
	C
	longpole cc -g -O1 -pthread -o two two.c 2>err || skip "longpole cc: $(head -n 1 err)"
	expect 0 longpole record -q --level 3 -o memory.lpt ./two
	damage memory.lpt
	tells_damage 'ciat %' 'cdat %' 'slack %'
	echo flip.lpt >list
	longpole ciat -t list >out 2>err
	has err 'warning: flip.lpt: '
}

# A budget is neither kept nor broken by a part of a run.
test_damage_opens_no_gate() {
	local file
	damage "$trace"
	expect 0 longpole diff --fail-on=elapsed=+400% "$trace" -- "$trace"
	for file in flip hole cut nofooter; do
		expect 3 longpole diff --fail-on=elapsed=+400% --junit=junit.xml --html=page.html "$trace" -- $file.lpt
		has err '--fail-on: cannot be judged' 'record again'
		has junit.xml 'failures="0" errors="1"' '<error type="trace"'
		has page.html 'not known, for a trace is not whole'
		expect 3 longpole diff --fail-on=elapsed=+400% $file.lpt -- "$trace"
		expect 0 longpole diff $file.lpt -- "$trace"
		expect 3 longpole deadlock --potential $file.lpt
		longpole whatif --ledger=ledger --record-outcome=$file.lpt "$trace" scale main=-10% >out 2>err && fail "$file: an outcome"
		[[ ! -s ledger ]] || fail "$file: a part of a run was noted as an outcome"
	done
	# Of a process that was killed the rest is whole: a gate may be held against it.
	longpole record -q -o killed.lpt sh -c 'kill -9 $$' 2>err
	expect 0 longpole diff --fail-on=elapsed=+10000000% killed.lpt -- killed.lpt
	expect 0 longpole report --json killed.lpt
	is_json out 'any(.diagnostics[]; .name == "killed")'
}
