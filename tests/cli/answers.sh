# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# answers.sh - what the commands say about a good trace: form, not numbers (those are unit tests').

test_report() {
	expect 0 longpole report "$trace"
	sed -n 2p out | grep -q '^The long pole is mutex ladder_mutex: its holders ' || fail "second line: $(sed -n 2p out)"
	has out 'Holding it half as long: ' 'WHERE THE TIME GOES' 'HALVED    GONE  THEN' '  #1 ' "longpole whatif $trace '#1=-50%'"
	(($(wc -l <out) <= 24)) || fail "$(wc -l <out) lines are no short answer"
	[[ ! -s err ]] || fail "wrote to standard error"
	! sed -n '2,/^NEXT/p' out | grep -v ' longpole ' | grep -E '^.{101,}' >&2 || fail "wider than COLUMNS"
	expect 0 longpole report --full "$trace"
	has out 'The long pole is ' 'IF IT TOOK LESS' 'THE PATH, ' 'RUNNER-UP' 'CAVEATS' 'not seen: ' "longpole locks $trace"
}

# What a report numbers can be asked about by its number, and by a lock's name: one answer.
test_report_numbers() {
	expect 0 longpole report --json "$trace"
	local halved gone
	halved=$(jq '.result.parts[0].halved.predicted_speedup' out)
	gone=$(jq '.result.parts[0].gone.predicted_speedup' out)
	expect 0 longpole whatif --json "$trace" '#1=-50%' -- scale 'mutex ladder_mutex'=-50% -- remove '#1'
	is_json out ".result.scenarios | .[0].best.predicted_speedup == $halved and .[1].best.predicted_speedup == $halved
		and .[2].best.predicted_speedup == $gone"
	printf "%s\n" "# a comment" "#1=-50% # the first" "'#1=-50%'" >edits
	expect 0 longpole whatif --json -f edits "$trace"
	is_json out '.result.scenarios | length == 1 and (.[0].edits | length) == 2'
	expect 0 longpole locks --json --name='#1' "$trace"
	is_json out '.result.locks | length == 1 and .[0].lock == "mutex ladder_mutex"'
	expect 0 longpole queues --json --name='#1' "$trace"
	is_json out '.result.queues[0].queue == "mutex ladder_mutex"'
	expect 2 longpole locks --name='#77' "$trace"
	expect 2 longpole whatif "$trace" '#77=-50%'
	has err 'parts' 'longpole report --full'
}

test_next_commands_work() {
	longpole report --start='@holding mutex ladder_mutex' "$trace" | sed -n '/^NEXT/,$ s/^\(NEXT\)\? *\(longpole [a-z]* .*\)/\2/p' >commands
	(($(wc -l <commands) == 3)) || fail "$(wc -l <commands) next commands"
	(($(grep -c -- "--start='@holding mutex ladder_mutex'" commands) == 3)) || fail "next commands are about another path"
	local command
	while read -r command; do
		(eval "$command") >out 2>err </dev/null || { cat err >&2; fail "$command"; }
	done <commands
}

# Whoever comes first to a FIFO waits in open() for the other one.
test_opening_that_lasts() {
	mkfifo pipe
	expect 0 longpole record -q -o fifo.lpt sh -c 'cat pipe & sleep 0.1; echo done >pipe; wait'
	longpole dump --json -k io_begin fifo.lpt >opened
	jq -es 'any(.op_text == "opening files")' opened >/dev/null || { cat opened >&2; fail "no open() is recorded"; }
}

# Names without a place in the file system may have zeros in them and behind them: both ends are one socket.
test_abstract_names() {
	local name
	for name in plain 'in\0side' 'padded\0\0\0'; do
		cat >abstract.py <<-END
			import socket, threading, time
			name = b"\0longpole-$$-$name"
			s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen()
			def call():
			    time.sleep(0.1)
			    socket.socket(socket.AF_UNIX).connect(name)
			threading.Thread(target=call).start()
			s.accept()
		END
		expect 0 longpole record -q -o abstract.lpt python3 abstract.py
		expect 0 longpole path --all --json abstract.lpt
		is_json out 'all(.result.steps[]; .kind != "external" or (.state | contains("accept") | not))'
	done
}

test_json() {
	local result="type == \"object\" and (.schema | test(\"^longpole/[a-z-]+/1$\")) and has(\"result\")"
	local command
	for command in report path poles queues 'queues --histogram' actors coach whatif 'whatif +scale +ladder_mutex=-50%' 'dump --stats'; do
		local word=(${command//+/})
		if [[ $command == *+* ]]; then
			expect 0 longpole whatif --json "$trace" scale ladder_mutex=-50%
		else
			expect 0 longpole "${word[@]}" --json "$trace"
		fi
		is_json out "$result"
	done
	expect 0 longpole report --json "$trace"
	is_json out '.tool | startswith("longpole ")'
	is_json out '.trace.records > 1000 and .trace.threads == 3 and (.diagnostics | type == "array")'
	is_json out '[.result.path[].share] | add > 0.999 and add < 1.001'
	is_json out '.result.path | all(has("state") and has("actor") and has("kind") and has("waiting_share")
		and has("where") and (.functions | type == "array"))'
	is_json out '.result.opportunities | all(.predicted_speedup >= 1 and .reduction_percent > 0
		and (.next_bottleneck | type == "string"))'
	is_json out '.result.elapsed_ns == (.result.end_ns - .result.start_ns)'
	expect 0 longpole doctor --json
	is_json out '.result.can_record and (.result.probes | length > 3)'
	expect 0 longpole help --json
	is_json out '.commands | length > 8'
	longpole dump --json -d "$trace" | jq -es 'length > 1000 and all(has("kind"))' >/dev/null ||
		fail "dump --json is not one object a line"
}

test_prediction_of_the_lock() {
	# A lock that is not waited for and one that is ignored are the same, but for waits for a processor after it.
	expect 0 longpole whatif --json --method=path "$trace" elide 'waiting for mutex ladder_mutex' -- ignore-queue ladder_mutex
	is_json out '.result.scenarios[0].predicted_ns < 1.05 * .result.scenarios[1].predicted_ns'
	is_json out '.result.scenarios[0].predicted_ns < .result.elapsed_ns'
	is_json out '.result.scenarios[0].edits[0].waited_ns > 0'
	expect 2 longpole whatif "$trace" elide 'no such state'
	has err 'longest waits' 'waiting for mutex'
	expect 0 longpole whatif --json "$trace" remove 'holding mutex ladder_mutex' -- scale ladder_mutex=+50%
	is_json out '[.result.scenarios[].best | .predicted_speedup_low < .predicted_speedup and .predicted_speedup < .predicted_speedup_high] | all'
	is_json out '.result.scenarios | length == 2'
	is_json out '.result.scenarios[0].predicted_speedup > 1.02 and .result.scenarios[1].predicted_speedup < 1'
	printf '# half\nscale "ladder_mutex"=-50%%\n\nremove ladder_mutex\n' >file
	expect 0 longpole whatif --json --scenario=file "$trace"
	is_json out '.result.scenarios | length == 2'
	is_json out '.result.scenarios[0].predicted_ns > .result.scenarios[1].predicted_ns'
}

test_equal_pipes_are_one() {
	# Eight pipes of one sort, whoever came to each first: one row with their sum, by one name in all answers.
	local pipes='8 pipes from equal_pipes/feed to equal_pipes/drain'
	expect 0 longpole record -q -o pipes.lpt "$LONGPOLE_BUILD/tests/target/equal_pipes"
	expect 0 longpole report --json pipes.lpt
	is_json out "[.result.path[].state | select(test(\"pipe[s ]\")) | endswith(\"$pipes\")] | length > 1 and all"
	is_json out '[.result.path[] | select(.state | test(" pipes ")) | .share] | add > 0.1'
	cp out report.json
	expect 0 longpole whatif --json pipes.lpt '#1=-50%'
	is_json out '.result.scenarios[0].best.predicted_speedup == '"$(jq '.result.parts[0].halved.predicted_speedup' report.json)"
	is_json out '.result.scenarios[0].edits[0].example == '"$(jq '.result.parts[0].name' report.json)"
	expect 0 longpole queues --json pipes.lpt
	is_json out '[.result.queues[] | select(.queue == "pipe from equal_pipes/feed to equal_pipes/drain") | .members] == [8]'
	expect 0 longpole report -q --html=pipes.html pipes.lpt
	has pipes.html "$pipes"
	! grep -qE 'of pipe [0-9]|in pipe [0-9]' pipes.html || fail "the page tells equal pipes apart"
}

test_more_room_in_a_queue() {
	# Declared or inferred, the same size; and a slot more is worth what the waits for room say.
	local declared bounded=$LONGPOLE_BUILD/tests/target/bounded
	for declared in 0 1; do
		expect 0 longpole record -q -o bounded.lpt "$bounded" --declared=$declared
		expect 0 longpole whatif --json bounded.lpt resize-queue 'queue slots=+1' -- resize-queue 'queue slots=+3'
		is_json out "[.result.scenarios[].edits[0] | .size == 1 and .size_inferred == ($declared == 0)] | all"
		is_json out '.result.scenarios | .[0].best.predicted_speedup > 1.02 and .[1].best.predicted_speedup >= .[0].best.predicted_speedup'
		expect 0 longpole loops --json bounded.lpt
		is_json out "[.result.loops[] | select(.space) | .capacity == 1 and .size_inferred == ($declared == 0)] | all"
		is_json out '[.result.loops[] | select(.space) | .more | length > 0] | all'
		is_json out ".result.loops[] | select(.space) | .more[0].predicted_speedup | . > 1.06 and . < 1.17"
	done
	has <(longpole whatif bounded.lpt resize-queue 'queue slots=+1') 'at most 1 (recorded)'
}

test_more_room_however_a_queue_is_built() {
	# Locks, condition variables, naps and semaphores within an announced wait are how it waits: 330 ms become 300 and 280.
	local built
	for built in 1 2 3 4 5; do
		expect 0 longpole record -q -o bounded.lpt "$LONGPOLE_BUILD/tests/target/bounded" --built=$built
		expect 0 longpole whatif --json bounded.lpt resize-queue 'queue slots=+1' -- resize-queue 'queue slots=+3'
		is_json out '[.result.scenarios[].best.predicted_speedup] | .[0] > 1.06 and .[0] < 1.17 and .[1] > 1.11 and .[1] < 1.25'
		is_json out '.result.replay | .own_error_share < 0.05 and .given_waits == 0'
	done
}

test_more_room_in_a_pipe() {
	# 28 ms a burst with one chunk of room, 22 with four (on a quiet machine they are 249 and 195 ms in all).
	expect 0 longpole record -q -o burst.lpt "$LONGPOLE_BUILD/tests/target/burst_pipe"
	expect 0 longpole whatif --json burst.lpt resize-queue 'pipe=+196608'
	is_json out '.result.scenarios[0] | .edits[0].size == 65536 and .best.predicted_speedup > 1.15 and .best.predicted_speedup < 1.4'
}

test_more_room_that_nobody_waits_for() {
	expect 0 longpole record -q -o wide.lpt "$LONGPOLE_BUILD/tests/target/bounded" --slots=100
	expect 0 longpole whatif --json wide.lpt resize-queue 'queue slots=+1'
	is_json out '.result.scenarios[0] | .edits[0].queues_never_full == 1 and (.best.predicted_speedup - 1 | fabs) < 0.001'
	has <(longpole whatif wide.lpt resize-queue 'queue slots=+1') 'for room in which nobody waited'
	expect 2 longpole whatif "$trace" resize-queue 'end of a thread=+1'
}

test_same_bytes() {
	local command
	for command in report 'report --json' 'report --full' path 'path --json' queues 'queues --histogram' actors 'actors --json' coach 'coach --json' 'whatif --json' 'dump -d' 'dump --stats'; do
		longpole $command "$trace" >first 2>/dev/null || fail "longpole $command"
		longpole $command "$trace" >second 2>/dev/null
		cmp -s first second || fail "longpole $command differs between two runs"
	done
	for command in perfetto speedscope collapsed 'collapsed --weight=wait'; do
		longpole export -q -o first -f $command "$trace" || fail "export -f $command"
		longpole export -q -o second -f $command "$trace"
		cmp -s first second || fail "export -f $command differs between two runs"
		[[ -s first ]] || fail "export -f $command wrote nothing"
	done
}

test_ascii_where_needed() {
	LC_ALL=C longpole report --full "$trace" >out
	! LC_ALL=C grep -q '[^ -~]' out || fail "not ASCII in the C locale: $(LC_ALL=C grep '[^ -~]' out | head -n 1)"
	longpole report "$trace" >out
	grep -q '×' out || fail "no × in a UTF-8 locale"
}

test_color() {
	local escape=$'\033[1m'
	colored() { # VARIABLE=VALUE... - on a terminal
		env TERM=xterm LONGPOLE_PAGER= "$@" script -qec "longpole report '$trace'" /dev/null >out </dev/null
		grep -qF "$escape" out
	}
	expect 0 longpole report --color=always "$trace"
	has out "$escape"
	expect 0 longpole report "$trace"
	! grep -qF "$escape" out || fail "colours without a terminal"
	command -v script >/dev/null || skip "no script(1) for a terminal"
	colored || fail "no colours on a terminal"
	! colored NO_COLOR=1 || fail "NO_COLOR"
	! colored TERM=dumb || fail "TERM=dumb"
}

# What every command has may stand before its name.
test_options_before_the_command() {
	expect 0 longpole --color=always report "$trace"
	cp out before
	expect 0 longpole report --color=always "$trace"
	cmp out before || fail "--color before the command"
	expect 0 longpole --color always --no-pager report "$trace"
	cmp out before || fail "--color always before the command"
	expect 0 longpole --color=never noc sim --list-parameters
	cp out before
	expect 0 longpole noc sim --list-parameters
	cmp out before || fail "before a command of two words"
	expect 0 longpole --color=never -o a.lpt true # no command: the options are the recording's
	[[ -s a.lpt ]] || fail "no trace"
	expect 2 longpole --colour=never report
	expect 2 longpole --color=pink report "$trace"
	has err "'pink' is none of"
}

# A long answer on a terminal goes through a pager; nothing else does.
test_pager() {
	command -v script >/dev/null || skip "no script(1) for a terminal"
	on_terminal() { # COMMAND - in $said what the pager was given
		rm -f said
		env TERM=xterm LONGPOLE_PAGER='cat >said; echo paged by $LESS' script -qec "$*" /dev/null >out </dev/null
	}
	on_terminal "longpole queues '$trace'" || fail "exit status $?"
	grep -q 'paged by FRX' out || fail "no pager: $(cat out)"
	grep -q 'ladder_mutex' said || fail "the pager got: $(cat said)"
	on_terminal "longpole dump --json '$trace'" || fail "dump: exit status $?"
	[[ $(wc -l <said) -gt 100 ]] || fail "dump did not page"
	on_terminal "longpole --no-pager queues '$trace'"
	[[ ! -e said ]] || fail "--no-pager"
	on_terminal "longpole queues '$trace' >plain"
	[[ ! -e said ]] || fail "a file was paged"
	longpole queues "$trace" | cmp - plain || fail "the file has something else"
	on_terminal "longpole -q --sample-hz=0 -o a.lpt true" # the answer is on standard error
	[[ ! -e said ]] || fail "paged beside a program"
	on_terminal "TERM=dumb longpole queues '$trace'"
	[[ ! -e said ]] || fail "paged on a dumb terminal"
	on_terminal "LONGPOLE_PAGER=cat longpole queues '$trace'"
	grep -q ladder_mutex out || fail "cat is none"
	on_terminal "PAGER='cat >other' LONGPOLE_PAGER= longpole queues '$trace'"
	[[ ! -e other && ! -e said ]] || fail "an empty one is none"
	env -u LONGPOLE_PAGER TERM=xterm PAGER='cat >said' script -qec "longpole queues '$trace'" /dev/null >out </dev/null
	grep -q ladder_mutex said || fail "PAGER"
	on_terminal "LONGPOLE_PAGER=no-such-pager longpole queues '$trace'"
	grep -q 'ladder_mutex' out || fail "without the pager that is not there: $(cat out)"
	# The pager ends early: so does the command, without a word.
	on_terminal "LONGPOLE_PAGER='head -n 1' longpole dump '$trace'"
	! grep -q 'error' out || fail "$(cat out)"
}

test_full_disk_is_an_error() {
	[[ -w /dev/full ]] || skip "no /dev/full"
	local status=0
	longpole report "$trace" >/dev/full 2>err || status=$?
	((status == 4)) || fail "exit status $status on a full disk"
	status=0
	longpole dump "$trace" >/dev/full 2>err || status=$?
	((status == 4)) || fail "dump: exit status $status on a full disk"
	has err 'error'
}

# The path between two moments: the first that matches --start, the last that matches --end.
test_start_and_end() {
	expect 0 longpole report --json "$trace"
	local whole
	whole=$(jq .result.elapsed_ns out)
	expect 0 longpole report --json --end='@holding mutex ladder_mutex' "$trace"
	is_json out ".result.elapsed_ns == .result.end_ns - .result.start_ns and .result.elapsed_ns < $whole"
	expect 0 longpole report --json --start='@holding mutex ladder_mutex' "$trace"
	is_json out ".result.elapsed_ns == .result.end_ns - .result.start_ns and .result.elapsed_ns < $whole"
	expect 0 longpole whatif --json --start='@ladder_mutex' --end='@ladder_mutex' "$trace" remove ladder_mutex
	is_json out '.result.scenarios[0].predicted_speedup > 1'
	expect 2 longpole path --start=nobody_of_this_name "$trace"
	has err "no actor matches 'nobody_of_this_name'; on the path are '"
	expect 2 longpole path --start=@ "$trace"
	has err 'names nothing'
}

test_connections() {
	expect 2 longpole connections "$trace"
	has err 'no connection is identified' longpole_identify
	make_annotated
	expect 0 longpole connections annotated.lpt
	has out 'connections, path ' ' in the median, ' 'SHARED between connections'
	expect 0 longpole connections --json annotated.lpt
	# (where a thread is interrupted between a look at the ring and its annotation, a wait has no explanation)
	is_json out '.result.connections | length > 1 and all(.found) and (map(select(.explained_share > 0.9)) | length) > 0.99 * length'
	is_json out '.result.actors | any(.shared)'
	local id
	id=$(jq '.result.connections[0].connection' out)
	jq '.result.connections[0].path_ns' out >path_ns
	expect 0 longpole report --json --connection="$id" annotated.lpt
	is_json out ".result.elapsed_ns == $(cat path_ns)"
	expect 2 longpole report --connection=987654321 annotated.lpt
	has err 'connection 987654321 is not identified'
}

test_poles() {
	expect 0 longpole poles "$trace"
	expect 0 longpole poles --json --limit=4 "$trace"
	# each path is at most as long as the one before it, and no state holds it twice
	is_json out '[.result.poles[].path_ns] as $p | $p == ($p | sort | reverse) and $p[0] == .result.elapsed_ns'
	is_json out '[.result.poles[].state] as $s | ($s | length) > 1 and ($s | unique | length) == ($s | length)'
	# what has more than half of the path has no room
	is_json out '.result as $r | [$r.states[] | select(.path_ns > 0.5 * $r.elapsed_ns) | .slack_factor < 1.2] | all'
	is_json out '[.result.states[] | .drag_ns >= 0 and .slack_factor >= 1] | all'
	expect 2 longpole poles --tolerance=101 "$trace"
}

# A function of which a known share is in one line; its source gone; nothing of that name.
test_annotate() {
	command -v cc >/dev/null || skip "no compiler"
	cat >two.c <<-'END'
		static volatile unsigned long sink;
		__attribute__((noinline)) void hot(long n) {
			for (long i = 0; i < n; i++) sink += i;
		}
		__attribute__((noinline)) void outer(void) {
			hot(300000000);
			sink++;
		}
		int main(void) { outer(); return 0; }
	END
	cc -g -O1 -fno-inline -fno-optimize-sibling-calls -o two two.c || fail "cc"
	expect 0 longpole record -q -o two.lpt ./two
	longpole annotate hot two.lpt >out 2>err || skip "no samples here: $(cat err)"
	has out 'hot: ' 'two.c' 'sink += i' '(observed)'
	expect 0 longpole annotate --json hot two.lpt
	is_json out '.result.functions | length == 1 and .[0].function == "hot" and .[0].own_samples > 0'
	is_json out '.result | .samples as $n | .functions[0] | .own_samples > 0.8 * $n and ([.files[].lines[] | select(.line == 3) | .own_samples] | add) > 0.8 * $n'
	is_json out '[.result.functions[].files[].lines[] | select(.line == 3)][0].source | contains("sink += i")'
	if command -v objdump >/dev/null; then
		expect 0 longpole annotate --asm hot two.lpt
		grep -q '[0-9] %  *[0-9a-f]*:' out || fail "no instruction has a share"
	fi
	echo '/* another build */ int main(void) { return 1; }' >three.c
	cc -g -O0 -o two three.c || fail "cc"
	expect 4 longpole annotate --asm hot two.lpt
	has err 'its instructions are not here'
	rm two.c
	expect 0 longpole annotate hot two.lpt
	has out 'source not shown' 'No such file or directory'
	expect 2 longpole annotate no_such_function two.lpt
	has err "no sample is in a function 'no_such_function'" 'hot'
	expect 2 longpole annotate
	expect 2 longpole annotate --asm --json hot two.lpt
}

test_loops() {
	expect 0 longpole loops "$trace"
	has out 'The path goes round ' 'mutex ladder_mutex' ' rounds, one every ' 'no limit: '
	expect 0 longpole loops --json "$trace"
	is_json out '.result.loops[0] | .queue == "mutex ladder_mutex" and .tokens and .rounds > 0'
	is_json out '[.result.loops[0].more[].predicted_speedup] as $s | $s == ($s | sort) and $s[0] >= 1'
	is_json out '.result.loops[0] | .predicted_speedup_unbounded >= .more[-1].predicted_speedup'
}

# What scanf and reads of wide characters move is seen to the byte, and what they wait for.
test_streams_without_counts() {
	local way
	for way in scanf fgetws fgetwc; do
		expect 0 longpole record -q -o scan.lpt -- "$LONGPOLE_BUILD/tests/target/scan_pipe" $way
		expect 0 longpole dump --json scan.lpt
		jq -es '[.[] | select(.kind == "io_end" and (.object_text | test("pipe")))] | group_by(.op)
			| map([.[0].op_text, (map(.result) | add)]) == [["read", 287], ["write", 287]]' out >/dev/null || fail "$way: other numbers of bytes"
		expect 0 longpole report --json scan.lpt
		is_json out '.result.explained_share > 0.95 and ([.result.path[] | select(.kind == "sleep") | .share] | add > 0.6)'
	done
}

# A lock with priority inheritance that only the kernel knows when it is contended: who gives it up ends the wait.
test_lock_of_its_own() {
	expect 0 longpole record -q -o pi.lpt -- "$LONGPOLE_BUILD/tests/target/pi_lock"
	expect 0 longpole report --json pi.lpt
	is_json out '.result.explained_share > 0.95 and ([.result.path[] | select(.kind == "sleep") | .share] | add > 0.6)'
}

test_histograms() {
	expect 0 longpole queues --histogram "$trace"
	has out 'mutex ladder_mutex' 'OCCUPANCY' 'WAITS FOR UNITS' 'held: from taking to releasing it' 'ARRIVALS' 'p99'
	! grep -E '^.{101,}' out >&2 || fail "wider than COLUMNS"
	expect 0 longpole queues --histogram='mutex *' -n 1 "$trace"
	[[ $(head -n 1 out) == 'mutex ladder_mutex'* ]] || fail "not that queue: $(head -n 1 out)"
	expect 0 longpole queues --histogram=ladder_mutex --json "$trace"
	# every acquisition is one service; as many are in the buckets; the lock is held or free at any time
	is_json out '.result.queues[0].histograms | all(.buckets | type == "array")'
	is_json out '.result.queues[0].histograms.service | .count_takes > 1000 and ([.buckets[].count_takes] | add) == .count_takes'
	is_json out '.result.queues[0].histograms.occupancy | ([.buckets[].count_ns] | add) == .count_ns and .max_units == 1'
	is_json out '.result.queues[0].arrived_units | length == 120'
	expect 2 longpole queues --histogram=ladder_mutex --name=x "$trace"
	expect 2 longpole queues --histogram=nothing "$trace"
	LC_ALL=C longpole queues --histogram "$trace" >out
	! LC_ALL=C grep -q '[^ -~]' out || fail "not ASCII in the C locale"
}

test_actors() {
	expect 0 longpole actors "$trace"
	has out 'climb #1' 'climb #2' 'of the critical path' 'holding mutex ladder_mutex'
	! grep -E '^.{101,}' out >&2 || fail "wider than COLUMNS"
	expect 0 longpole actors --json --groups --actor=climb "$trace"
	is_json out '.result.actors | length == 1 and .[0].members == 2'
	is_json out '.result.actors[0] | .active_ns + .waiting_ns + .ready_ns == .total_ns and ([.states[].total_ns] | add) == .total_ns'
	is_json out '.result.actors[0] | ([.processor_had_by[].wait_ns] | add // 0) <= .ready_ns'
	expect 2 longpole actors --actor=nobody "$trace"
	has err nobody
}

test_coach() {
	expect 0 longpole coach "$trace"
	has out 'of the path is explained' 'lightly loaded run'
	expect 0 longpole coach --json "$trace"
	is_json out '.result.findings == 0 and (.result.lightly_loaded | not) and (.result.advice | type == "array")'
}

test_window() {
	local whole first second part=.result.elapsed_ns
	expect 0 longpole report --json "$trace"
	whole=$(jq $part out)
	cp out whole.json
	expect 0 longpole report --json --from=0ns --to=100% "$trace"
	cmp out whole.json || fail "the window of all is not the whole run"
	expect 0 longpole report --json --to=40% "$trace"
	first=$(jq $part out)
	expect 0 longpole report --json --from=40% "$trace"
	is_json out '.trace.window.from_ns > 0'
	second=$(jq $part out)
	((first + second == whole)) || fail "$first and $second ns are not $whole ns"
	((first > 0 && second > 0)) || fail "one window is empty"
	expect 0 longpole path --json --all --from=20% --to=60% "$trace"
	is_json out '.result | .start_ns == .from_ns and .end_ns == .to_ns
		and .elapsed_ns == .to_ns - .from_ns and ([.steps[].increment_ns] | add) == .elapsed_ns'
	expect 0 longpole report --from=20% --to=60% "$trace"
	has out 'only the window from' 'mutex ladder_mutex: its holders' 'longpole locks --from='
	expect 0 longpole queues --to=1ms "$trace"
	expect 0 longpole whatif --from=20% "$trace" scale ladder_mutex=-50%
	expect 2 longpole report --from=60% --to=20% "$trace"
	has err 'nothing lies between them'
	! grep -q ' ns)' err || fail "the trace's length is said in ns: $(cat err)"
	expect 2 longpole report --from=1000000s "$trace"
	expect 2 longpole report --from=120% "$trace"
	has err 'no share'
	expect 2 longpole report --to=5 "$trace"
	has err 'write it like'
}

test_ledger() {
	local edit=(scale ladder_mutex=-50%) with=(--ledger=deep/in/ledger.jsonl)
	expect 0 longpole whatif "${with[@]}" "$trace" "${edit[@]}"
	! grep -q LEDGER out || fail "a ledger before any outcome"
	expect 0 longpole whatif "${with[@]}" --record-outcome=10ms "$trace" "${edit[@]}"
	expect 0 longpole whatif "${with[@]}" --record-outcome="$trace" "$trace" "${edit[@]}"
	has err 'measured 1.00x; noted in deep/in/ledger.jsonl'
	jq -es 'length == 2 and all(.kind == "scale" and .path > 0.9 and .replay > 0.9 and .measured > 0)' deep/in/ledger.jsonl >/dev/null ||
		fail "$(cat deep/in/ledger.jsonl)"
	echo 'not an entry' >>deep/in/ledger.jsonl
	expect 0 longpole whatif "${with[@]}" "$trace" "${edit[@]}"
	has out 'LEDGER' 'outcomes of scale so far (2): path ' '; replay '
	has err '1 line is no entry'
	expect 0 longpole whatif "${with[@]}" "$trace" ignore-queue ladder_mutex
	! grep -q LEDGER out || fail "the ledger has nothing of that kind"
	for _ in {1..9}; do echo '{"kind": "ignore-queue", "best": 1, "measured": 2.5}' >>deep/in/ledger.jsonl; done
	expect 0 longpole whatif "${with[@]}" "$trace" ignore-queue ladder_mutex
	has out 'nine in ten within a factor of 2.500'
	expect 0 longpole whatif --json "${with[@]}" "$trace" ignore-queue ladder_mutex
	jq -e '.result.scenarios[0].best | .predicted_speedup_high >= 2.49 * .predicted_speedup and .predicted_speedup >= 2.49 * .predicted_speedup_low' out >/dev/null ||
		fail "$(jq -c '.result.scenarios[0].best' out)"
	expect 2 longpole whatif "${with[@]}" --record-outcome=soon "$trace" "${edit[@]}"
	expect 2 longpole whatif "${with[@]}" --record-outcome=1s "$trace" "${edit[@]}" -- "${edit[@]}"
	has err 'is of one scenario'
	expect 4 longpole whatif --ledger=/proc/nowhere/ledger --record-outcome=1s "$trace" "${edit[@]}"
}

# annotate reads the newest trace that has samples; a path says where waits were only counted; a signal's end is no first caveat.
test_trace_that_only_counts() {
	longpole record -q -o old.lpt ladder >/dev/null
	[[ -n $(longpole dump -k sample old.lpt 2>/dev/null) ]] || skip "no samples of the processor here"
	longpole locks -q --mode=count -o new.lpt -- ladder >/dev/null 2>&1
	touch -d '1 minute ago' old.lpt
	expect 0 longpole annotate climb
	has err 'reading old.lpt, the newest trace here with samples' 'new.lpt is newer'
	expect 0 longpole report new.lpt
	grep '^!' out | head -n 1 | grep -q 'waits for locks were only counted' || fail "no word of what was only counted: $(grep '^!' out)"
	rm old.lpt
	expect 2 longpole annotate climb
	has err 'no samples of the processor'
	expect 143 longpole record -q -o ended.lpt sh -c 'sleep 0.1; kill -TERM $$'
	expect 0 longpole report ended.lpt
	! grep '^!' out | head -n 1 | grep -q 'ended by a signal' || fail "first: $(grep '^!' out)"
	expect 0 longpole report --json ended.lpt
	is_json out 'any(.diagnostics[]; .name == "killed")'
}

# The path of one process of several, in an ordinary recording, too.
test_path_of_a_process() {
	expect 0 longpole record -q -o two.lpt sh -c 'sleep 0.3 & timeout 5 true; wait'
	expect 0 longpole report --json two.lpt
	local all
	all=$(jq .result.elapsed_ns out)
	expect 0 longpole report --json --process=timeout two.lpt
	is_json out ".result.elapsed_ns > 0 and .result.elapsed_ns < $all - 100000000"
	expect 0 longpole report --process=timeout two.lpt
	head -n 1 out | grep -q '^timeout ' || fail "whose path: $(head -n 1 out)"
	expect 2 longpole report --process=nosuch two.lpt
	has err "no process 'nosuch'" 'longpole actors --all'
	! grep -q 'longpole queues' err || fail "a hint at queues, for a process"
}

# A section prints what its command prints; several come one after another, and as one document.
test_sections_of_the_report() {
	local section
	for section in path poles queues actors loops coach locks; do
		expect 0 longpole $section --json "$trace"
		mv out alone
		expect 0 longpole report --json $section "$trace"
		cmp out alone || fail "report $section is not what $section says"
	done
	expect 0 longpole queues -n 2 "$trace"
	mv out alone
	expect 0 longpole report -n 2 queues "$trace" # the 2 is no trace
	cmp out alone || fail "options before the section"
	expect 0 longpole report queues actors queues -n 2 --states=1 "$trace"
	[[ $(grep -c '^queues: who waits' out) == 1 && $(grep -c '^actors: what each' out) == 1 ]] || fail "headings: $(cat out)"
	[[ $(sed -n '3,/^$/p' out) == "$(cat alone)" ]] || fail "the first section is not what the command says"
	expect 0 longpole report queues actors locks --json "$trace"
	is_json out '.schema == "longpole/sections/1" and (.result | keys) == ["actors", "locks", "queues"]'
	jq -e --slurpfile one <(longpole locks --json "$trace") '.result.locks == $one[0].result and .schemas.locks == $one[0].schema' out >/dev/null ||
		fail "locks among others are not what locks says"
	expect 0 longpole report queues --histogram --json path "$trace"
	is_json out '.schemas.queues == "longpole/histograms/1"'
	expect 2 longpole report --mode=full locks "$trace"
	has err "unknown option '--mode=full'"
	expect 2 longpole report calls path --from=1ms "$trace" # calls has no window
	has err 'of these sections'
	expect 2 longpole report queues --limit=x "$trace"
	has err "'x' is no count"
	expect 2 longpole report queus "$trace"
	has err "did you mean 'queues'"
	expect 2 longpole report queues calls actors "$trace" # one of them has no answer
	has err 'no counts of library calls' "in the section 'calls'"
	[[ $(grep -c '^queues: who waits' out) == 1 && $(grep -c '^actors: what each' out) == 1 ]] || fail "the others: $(cat out)"
	expect 2 longpole report --json calls queues actors "$trace"
	is_json out '(.result | keys) == ["actors", "queues"]'
	expect 2 longpole report calls connections "$trace"
	[[ ! -s out && $(grep -c "in the section" err) == 2 ]] || fail "none has an answer: $(cat out err)"
	expect 0 longpole report queues --json actors "$trace"
	mv out alone
	expect 0 longpole report queues "$trace" --json actors # the trace may stand among them
	cmp out alone || fail "a section after the trace"
	cp "$trace" queues
	expect 0 longpole report ./queues
	has out 'critical path'
	expect 2 longpole report queues
	has err './queues' 'no trace given'
	expect 0 longpole report queues --help
	has out '--histogram' 'SECTION'
	expect 0 longpole report queues path --help
	has out 'one after another'
	expect 0 longpole help
	has out 'path poles queues'
	! grep -q '^  queues ' out || fail "a section has a line of its own"
}
