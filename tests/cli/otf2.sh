# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # run.sh's
# otf2.sh - OTF2 archives (Score-P's): made by a generator that uses the format's library alone, with a known answer; there and back.

otf2_generator() {
	gen=$LONGPOLE_BUILD/src/format/lpt-gen-otf2
	[[ -x $gen ]] || skip "built without libotf2 (Debian package libotf2-trace-dev)"
}

# otf2_answer FILE - rank 1 computes twice as long as the others; the path is its steps, a message and a meeting a round. (Calls that only
# begin something, 100 ns a round, are of the state before them.)
otf2_answer() {
	is_json "$1" '.result | .elapsed_ns == 1051000 and .explained_share > 0.999'
	is_json "$1" '[.result.path[] | select(.state == "step" and (.actor | endswith("rank 1")) and .where == "step (app.c:90)") | .path_ns] | length == 1 and .[0] >= 1000000 and .[0] <= 1000500'
	is_json "$1" '.trace.mpi == [{ranks: 4, recorded: 4, missing: "", unfinished: "", first_ended: null, ended: ""}]'
}

test_import_otf2_known_answer() {
	otf2_generator
	local kind
	for kind in '' requests; do
		rm -rf app app.lpt
		# shellcheck disable=SC2086 # an argument or none
		"$gen" app 4 5 $kind || fail "lpt-gen-otf2"
		expect 0 longpole import otf2 app
		has err 'wrote app.lpt'
		longpole report --json app.lpt >report.json || fail "no report"
		otf2_answer report.json
		longpole messages --json app.lpt >matrix.json || fail "no matrix"
		# rank 2 receives from the slow rank, and waits; of the other three nobody does
		is_json matrix.json '.result.ways | length == 4 and all(.[]; .messages == 5 and .bytes == 5120)'
		is_json matrix.json '[.result.ways[] | select(.late_senders > 0) | [.from, .to, .late_senders]] == [["1", "2", 5]]'
		expect 0 longpole import -q otf2 -o anchor.lpt app/traces.otf2
		cmp <(longpole dump app.lpt) <(longpole dump anchor.lpt) || fail "the anchor file says otherwise than its directory"
	done
}

# All records come back: their times, ranks, tags, bytes, functions. (Numbers of places and requests are the file's own.)
otf2_records() { longpole dump "$1" | sed -E 's/(site|state|request)=[0-9]+/\1/g'; }
test_otf2_round_trip() {
	otf2_generator
	local kind
	for kind in '' requests; do
		rm -rf app app.lpt back back.lpt
		# shellcheck disable=SC2086 # an argument or none
		"$gen" app 5 3 $kind || fail "lpt-gen-otf2"
		expect 0 longpole import -q otf2 app
		expect 0 longpole export -q -f otf2 -o back app.lpt
		expect 0 longpole import -q otf2 back
		otf2_records app.lpt >there
		otf2_records back.lpt >again
		(($(wc -l <there) > 100)) || fail "$(wc -l <there) records"
		cmp there again || fail "there and back it is another trace"
		expect 2 longpole export -f otf2 -o back app.lpt
		has err 'back is there already'
	done
	# what our own recorder leaves: the same path and the same waits
	mkdir ranks
	"$LONGPOLE_BUILD/src/trace/lpt-gen-ranks" ranks 6 10 || fail "lpt-gen-ranks"
	expect 0 longpole merge -q -o own.lpt ranks
	expect 0 longpole export -q -f otf2 -o own own.lpt
	expect 0 longpole import -q otf2 -o own2.lpt own
	local file
	for file in own own2; do
		longpole report --json $file.lpt | jq -c '[.result.path[] | select(.state | test("start|seen") | not) | [.state, .where, .path_ns]]' >$file.path
		longpole messages --json $file.lpt | jq -c .result.ways >$file.ways
	done
	has own.path 'running step'
	cmp own.path own2.path || fail "there and back it is another path: $(cat own.path own2.path)"
	cmp own.ways own2.ways || fail "there and back they are other messages"
	if command -v otf2-print >/dev/null; then
		otf2-print own/traces.otf2 >printed 2>&1 || fail "otf2-print refuses it: $(head -3 printed)"
		(($(grep -c '^MPI_SEND' printed) == 60 && $(grep -c '^MPI_COLLECTIVE_END' printed) == 60)) || fail "$(cut -c1-20 printed | sort | uniq -c)"
	fi
}

test_export_otf2_without_ranks() {
	otf2_generator
	expect 0 longpole record -q -o plain.lpt true
	expect 2 longpole export -f otf2 -o plain plain.lpt
	has err 'no rank of MPI'
	[[ ! -e plain && ! -e plain.part ]] || fail "a refused export left something: $(ls)"
}

# What is missing is said; the rest is imported.
test_import_otf2_damaged() {
	otf2_generator
	"$gen" whole 3 4 requests || fail "lpt-gen-otf2"
	cp -r whole bad && rm bad/traces.otf2
	expect 3 longpole import otf2 -o bad.lpt bad
	has err 'libotf2 cannot read it as an anchor file' 'traces.otf2'
	rm -rf bad && cp -r whole bad && rm bad/traces.def
	expect 3 longpole import otf2 -o bad.lpt bad
	has err 'no thread is defined in it: its .def file is missing, empty or damaged'
	rm -rf bad && cp -r whole bad && rm bad/traces/2.evt
	expect 0 longpole import otf2 -o bad.lpt bad
	has err 'of 1 thread the events are missing, cut or damaged'
	longpole report --json bad.lpt >report.json || fail "no report without a rank"
	is_json report.json '.trace.mpi[0] | .recorded == 2 and .missing == "rank 2 of 3 has no trace: what it held up is not seen"'
	rm -rf bad && cp -r whole bad && rm bad/traces/*
	expect 0 longpole import otf2 -o bad.lpt bad
	has err 'of 3 threads the events are missing, cut or damaged'
	rm bad.lpt
	expect 3 longpole import otf2 -o bad.lpt "$(command -v bash)"
	has err 'error: ' 'as otf2'
	[[ ! -e bad.lpt && ! -e bad.lpt.part ]] || fail "a refused import left a file"
}

# Any byte wrong, any length: an error that names the file, or a trace that can be read. No crash, nothing left.
test_import_otf2_any_damage() {
	otf2_generator
	"$gen" whole 2 2 requests || fail "lpt-gen-otf2"
	local file at status size
	for file in traces.otf2 traces.def traces/1.evt traces/1.def; do
		size=$(stat -c %s whole/$file)
		for at in $(seq 0 $((size / 6 + 1)) "$size"); do
			for how in cut flip; do
				rm -rf bad && cp -r whole bad
				if [[ $how == cut ]]; then truncate -s "$at" bad/$file; else printf '\377' | dd of=bad/$file bs=1 seek="$at" conv=notrunc status=none; fi
				status=0
				timeout -k 1 60 longpole import otf2 -o bad.lpt bad >out 2>err || status=$?
				case $status in
				0)
					longpole report bad.lpt >out 2>err || status=$?
					[[ $status == 0 || $status == 3 ]] || { cat err >&2; fail "$how $file at $at: the report fails ($status)"; }
					rm bad.lpt ;;
				3) has err 'error: ' 'while importing bad as otf2' ;;
				*) cat err >&2 && fail "$how $file at $at: exit status $status" ;;
				esac
				[[ ! -e bad.lpt && ! -e bad.lpt.part ]] || fail "$how $file at $at: a refused import left a file"
			done
		done
	done
}

# One location is read after the other: memory does not grow with their number.
test_import_otf2_many_ranks() {
	otf2_generator
	"$gen" many 1024 2 || fail "lpt-gen-otf2"
	(ulimit -v 2000000 && longpole import -q otf2 many) 2>err || { cat err >&2; fail "1024 ranks need more than 2 GB of address space"; }
	longpole report many.lpt >report.txt 2>err || fail "no report"
	has report.txt '421 us · 1024 threads' 'long pole is in state step of' 'many rank 1'
}
