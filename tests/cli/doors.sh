# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091,SC2046 # $trace and $work come from run.sh; words split on purpose
# doors.sh - each export read by its consumer or checked against its definition; each import of what the foreign tool wrote.

# elapsed TRACE - the path's length.
elapsed() { longpole report --json "$@" | jq .result.elapsed_ns; }

# ---- exports ---------------------------------------------------------------------------------

# babeltrace2 sees the same records, kind by kind.
test_ctf_same_counts() {
	command -v babeltrace2 >/dev/null || skip "no babeltrace2 (Debian package babeltrace2)"
	expect 0 longpole export -q -f ctf -o a.ctf "$trace"
	babeltrace2 a.ctf >text 2>err || { cat err >&2; fail "babeltrace2 cannot read it"; }
	sed -E 's/.* longpole:([a-z_]+): .*/\1/' text | sort | uniq -c >theirs
	longpole dump --json "$trace" | jq -r '.kind // empty' | sort | uniq -c >ours
	[[ -s ours ]] || fail "longpole dump --json has no kinds"
	diff ours theirs >&2 || fail "the counts differ"
	has text 'object_text = "ladder_mutex"' 'thread = "ladder"'
	expect 2 longpole export -f ctf -o a.ctf "$trace" # there is one
	[[ ! -e a.ctf.part ]] || fail "a refused export left a directory"
}

test_sqlite_answers() {
	command -v sqlite3 >/dev/null || skip "no sqlite3 (Debian package sqlite3)"
	expect 0 longpole export -q -f sqlite -o a.db "$trace"
	[[ $(sqlite3 a.db 'PRAGMA integrity_check') == ok ]] || fail "the database is damaged"
	local nr=0 query='' line inside=0
	while IFS= read -r line; do
		case $line in
		'```sql') inside=1 query='' ;;
		'```')
			((inside)) || continue
			inside=0 nr=$((nr + 1))
			sqlite3 a.db "$query" >"answer$nr" 2>err || { cat err >&2; fail "query $nr: $query"; }
			;;
		*) ((!inside)) || query+=$line$'\n' ;;
		esac
	done <"$LONGPOLE_SOURCE/doc/howto/ask-in-sql.md"
	((nr >= 7)) || fail "only $nr queries in doc/howto/ask-in-sql.md"
	[[ $(sqlite3 a.db 'SELECT abs(sum(path_ns) - (SELECT sum(duration_ns) FROM path)) < 1000 FROM path_state') == 1 ]] ||
		fail "the path's states and its steps differ"
	[[ $(sqlite3 a.db 'SELECT sum(duration_ns) FROM path') == $(elapsed "$trace") ]] || fail "the path is not as long as the run"
	[[ $(sqlite3 a.db "SELECT count(*) > 0 FROM slice WHERE label = 'wait: mutex ladder_mutex'") == 1 ]] || fail "no waits for the mutex"
	[[ $(sqlite3 a.db "SELECT count(*) > 0 FROM dependence WHERE what = 'mutex ladder_mutex'") == 1 ]] || fail "nobody gave the mutex"
	# slices of a thread do not overlap
	[[ $(sqlite3 a.db 'SELECT count(*) FROM (SELECT begin_ns, lag(end_ns) OVER (PARTITION BY thread ORDER BY begin_ns) AS before
		FROM slice) WHERE begin_ns < before') == 0 ]] || fail "slices overlap"
	[[ $(sqlite3 a.db "SELECT count(*) FROM documentation d WHERE NOT EXISTS (SELECT 1 FROM sqlite_master m WHERE m.name = d.name)") == 0 ]] ||
		fail "the documentation speaks of tables that are not there"
}

test_pprof_decodes() {
	command -v protoc >/dev/null || skip "no protoc (Debian package protobuf-compiler)"
	local weight sum
	for weight in path wait; do
		expect 0 longpole export -q -f pprof --weight=$weight -o $weight.pb.gz "$trace"
		gzip -dc $weight.pb.gz | protoc --decode=perftools.profiles.Profile -I "$LONGPOLE_SOURCE/tests/cli" profile.proto >$weight 2>err ||
			{ cat err >&2; fail "protoc cannot decode it"; }
		! grep -Eq '^ *[0-9]+[:{ ]' $weight || fail "unknown field: $(grep -Em1 '^ *[0-9]+[:{ ]' $weight)"
		# string_table[0] is "", and every location that a sample has exists
		[[ $(grep -m1 string_table $weight) == 'string_table: ""' ]] || fail "the first string is not empty"
		diff <(sed -n 's/^ *location_id: //p' $weight | sort -u) <(awk '/^location/ { on = 1 } on && / id:/ { print $2; on = 0 }' $weight |
			sort -u) >&2 || fail "locations of samples and locations differ"
	done
	sum=$(awk '/^sample \{/ { on = 1 } on && /^ *value:/ { s += $2 } /^}/ { on = 0 } END { printf "%.0f", s }' path)
	((sum > $(elapsed "$trace") - 1000 && sum < $(elapsed "$trace") + 1000)) || fail "the path's samples sum to $sum"
	has wait 'string_table: "contentions"' 'string_table: "delay"' 'string_table: "nanoseconds"' 'wait: mutex ladder_mutex' 'lock_ladder.c'
}

# The consumer's own reader, where Go is: every nanosecond of the path is in its table, and a damaged file is refused.
test_pprof_reads_it() {
	local pprof
	pprof=$(command -v pprof || compgen -G '/usr/lib/go*/pkg/tool/*/pprof' | head -n 1)
	[[ -x $pprof ]] || skip "no pprof (it is in Debian's golang-go)"
	expect 0 longpole export -q -f pprof --weight=path -o a.pb.gz "$trace"
	expect 0 "$pprof" -top -unit=ns -nodefraction=0 -nodecount=100000 a.pb.gz
	has out 'Type: critical_path' 'holding mutex ladder_mutex'
	local sum
	sum=$(awk 'on { sub(/ns$/, "", $1); s += $1 } /flat%/ { on = 1 } END { printf "%.0f", s }' out)
	((sum > $(elapsed "$trace") * 99 / 100 && sum < $(elapsed "$trace") * 101 / 100)) || fail "pprof sums to $sum"
	expect 0 longpole export -q -f pprof --weight=wait -o b.pb.gz "$trace"
	expect 0 "$pprof" -top b.pb.gz
	has out 'Type: delay'
	head -c 200 a.pb.gz >cut.pb.gz
	! "$pprof" -top cut.pb.gz >out 2>&1 || fail "pprof reads a damaged file"
}

test_firefox_tables() {
	expect 0 longpole export -q -f firefox -o a.json "$trace"
	is_json a.json '.meta.preprocessedProfileVersion == 48 and (.meta.categories | length) > 5'
	is_json a.json '.threads | length == 4 and .[0].name == "critical path" and all(.samples.length >= 1 and (.pid | type) == "string")'
	# columns are as long as their tables say, and indices stay within
	is_json a.json '[.threads[] | .frameTable, .funcTable, .stackTable, .samples, .markers, .nativeSymbols, .resourceTable
		| .length as $n | to_entries[] | select(.value | type == "array") | (.value | length) == $n] | all'
	is_json a.json '.threads | all((.stringArray | length) as $s | .stackTable.length as $k | .frameTable.length as $f
		| (.funcTable.name + .markers.name | all(. < $s and . >= 0)) and (.samples.stack | all(. < $k))
		and (.stackTable.frame | all(. < $f)) and ([.stackTable.prefix | to_entries[] | .value == null or .value < .key] | all))'
	is_json a.json '(.meta.categories | length) as $c | [.threads[].markers.category[]] | all(. < $c)'
	# the processor time of a thread between its samples: not more than the time, and less where it waited
	is_json a.json '.meta.sampleUnits.threadCPUDelta == "ns" and ([.threads[].samples | .threadCPUDelta as $c | .time as $t
		| range(1; .length) | $c[.] >= 0 and $c[.] <= ($t[.] - $t[. - 1]) * 1e6 + 1] | all)'
	is_json a.json '[.threads[].markers as $m | range($m.length) | $m.endTime[.] >= $m.startTime[.]] | all'
}

test_chrome_there_and_back() {
	expect 0 longpole export -q -f chrome -o a.json "$trace"
	is_json a.json '.displayTimeUnit == "ns" and ([.traceEvents[] | .ph] | unique - ["X","M","s","f","C"] == [])'
	is_json a.json '[.traceEvents[] | select(.ph == "s") | .id] == [.traceEvents[] | select(.ph == "f") | .id]'
	expect 0 longpole import chrome -o b.lpt a.json
	has err 'slices and'
	# what is known of the path is known again: the mutex is what it is handed over by
	expect 0 longpole report --json b.lpt
	is_json out '[.result.path[] | select(.state | contains("mutex ladder_mutex"))] | length > 0'
	local there back
	there=$(elapsed "$trace") back=$(elapsed b.lpt)
	((back > there * 9 / 10 && back < there * 11 / 10)) || fail "the path was $there ns long, now $back"
}

test_otlp_is_a_tree() {
	expect 0 longpole export -q -f otlp -o a.json "$trace"
	is_json a.json '[.resourceSpans[].scopeSpans[].spans[]] | (map(.spanId) | length == (unique | length)) and all(.traceId | length == 32)'
	is_json a.json '[.resourceSpans[].scopeSpans[].spans[]] | (map({(.spanId): 1}) | add) as $ids
		| all((.parentSpanId == null or $ids[.parentSpanId]) and ((.links // []) | all($ids[.spanId])))'
	is_json a.json '[.resourceSpans[].scopeSpans[].spans[]] | all((.startTimeUnixNano | tonumber) <= (.endTimeUnixNano | tonumber))'
	is_json a.json '[.resourceSpans[].scopeSpans[].spans[] | select(.name == "wait: mutex ladder_mutex") | .links // [] | length] | add > 10'
}

test_csv_adds_up() {
	expect 0 longpole export -q -f csv -o a.csv "$trace"
	python3 - a.csv "$(elapsed "$trace")" <<-'PY' >&2 || fail "the table does not add up"
		import csv, sys
		rows = list(csv.DictReader(open(sys.argv[1], newline="")))
		assert all(None not in row and None not in row.values() for row in rows)
		assert {row["what"] for row in rows} == {"path", "slice", "dependence"}
		assert sum(int(row["duration_ns"]) for row in rows if row["what"] == "path") == int(sys.argv[2])
		assert all(int(row["end_ns"]) - int(row["begin_ns"]) == int(row["duration_ns"]) for row in rows)
	PY
}

test_sarif_has_places() {
	expect 0 longpole export -q -f sarif -o a.sarif "$trace"
	is_json a.sarif '.version == "2.1.0" and (.runs | length) == 1 and (.runs[0].results | length) > 0'
	is_json a.sarif '.runs[0] | .tool.driver.rules as $r | .results | all($r[.ruleIndex].id == .ruleId and .message.text != ""
		and (.level | IN("note", "warning", "error")) and (.partialFingerprints | length) == 2)'
	# what GitHub asks for: each result is somewhere, and is itself
	is_json a.sarif '[.runs[0].results[] | .locations[0].physicalLocation | .artifactLocation.uri != "" and .region.startLine >= 1] | all'
	is_json a.sarif '[.runs[0].results[].partialFingerprints.primaryLocationLineHash] | length == (unique | length)'
	is_json a.sarif '[.runs[0].results[].locations[].physicalLocation | select(.artifactLocation.uri | endswith("lock_ladder.c"))
		| .region.startLine > 0] | length > 0 and all'
}

test_perfetto_counts_queues() {
	command -v protoc >/dev/null || skip "no protoc (Debian package protobuf-compiler)"
	make_annotated
	expect 0 longpole export -q -o a.pftrace annotated.lpt
	protoc --decode=perfetto.protos.Trace -I "$LONGPOLE_SOURCE/tests/cli" perfetto.proto <a.pftrace >text 2>err || fail "protoc cannot decode it"
	has text 'TYPE_COUNTER' 'counter_value: ' 'unit_name: "units"'
	expect 0 longpole export -q -o b.pftrace "$trace"
	protoc --decode=perfetto.protos.Trace -I "$LONGPOLE_SOURCE/tests/cli" perfetto.proto <b.pftrace >text || fail "protoc cannot decode it"
	has text 'name: "gives mutex ladder_mutex"' 'name: "gets mutex ladder_mutex"'
}

# ---- imports ---------------------------------------------------------------------------------

# A client works 100 us, wakes a server and sleeps; the server runs from 120 us, wakes it at 620; it runs from 640 to 700.
is_the_known_answer() { # TRACE
	expect 0 longpole report --json --process=client "$1"
	is_json out '.result.elapsed_ns == 700000 and .result.unexplained_ns == 0'
	is_json out '[.result.path[] | select(.actor == "server" and (.state | startswith("running"))) | .path_ns] == [500000]'
	is_json out '[.result.path[] | select(.actor == "client" and (.state | startswith("running"))) | .path_ns] == [160000]'
	is_json out '[.result.path[] | select(.state | startswith("waking up")) | .path_ns] == [20000, 20000]'
}

test_import_ctf_known_answer() {
	pkg-config --exists babeltrace2 2>/dev/null || skip "no libbabeltrace2 (Debian package libbabeltrace2-dev)"
	"${CC:-cc}" "$LONGPOLE_SOURCE/tests/cli/make_ctf.c" -o make_ctf $(pkg-config --cflags --libs babeltrace2) 2>err || { cat err >&2; fail "make_ctf.c"; }
	./make_ctf kernel.ctf 2>err || { cat err >&2; fail "make_ctf"; }
	expect 0 longpole import ctf kernel.ctf
	has err '10 events of 2 threads'
	is_the_known_answer kernel.lpt
	mkdir above
	mv kernel.ctf above
	expect 0 longpole import -q ctf -o above.lpt above # as LTTng keeps them
	is_the_known_answer above.lpt
	expect 0 longpole export -q -f ctf -o own.ctf "$trace"
	expect 3 longpole import ctf -o none.lpt own.ctf
	has err 'no sched_switch'
	mkdir empty
	expect 3 longpole import ctf -o none.lpt empty
	has err 'metadata'
	[[ ! -e none.lpt && ! -e none.lpt.part ]] || fail "a refused import left a file"
}

# The library ends the process that reads some of these: an error with the path all the same, no crash, nothing left.
test_import_ctf_damaged() {
	pkg-config --exists babeltrace2 2>/dev/null || skip "no libbabeltrace2 (Debian package libbabeltrace2-dev)"
	"${CC:-cc}" "$LONGPOLE_SOURCE/tests/cli/make_ctf.c" -o make_ctf $(pkg-config --cflags --libs babeltrace2) 2>err || { cat err >&2; fail "make_ctf.c"; }
	./make_ctf whole.ctf 2>err || { cat err >&2; fail "make_ctf"; }
	local size at status
	size=$(stat -c %s whole.ctf/stream)
	for at in $(seq 4 12 "$size") 280; do
		rm -rf bad.ctf
		cp -r whole.ctf bad.ctf
		printf '\001' | dd of=bad.ctf/stream bs=1 seek="$at" conv=notrunc status=none
		status=0
		longpole import ctf -o bad.lpt bad.ctf >out 2>err || status=$?
		case $status in
		0) rm bad.lpt ;;
		3) has err 'error: ' 'while importing bad.ctf as ctf' ;;
		*) cat err >&2 && fail "byte $at: exit status $status" ;;
		esac
		[[ ! -e bad.lpt && ! -e bad.lpt.part ]] || fail "byte $at: a refused import left a file"
	done
}

test_import_tracecmd_known_answer() {
	as_root
	command -v trace-cmd >/dev/null || skip "no trace-cmd (Debian package trace-cmd)"
	[[ -r /sys/kernel/tracing/events/sched/sched_switch/format ]] || skip "tracefs cannot be read"
	python3 "$LONGPOLE_SOURCE/tests/cli/trace_pages.py" || fail "trace_pages.py"
	trace-cmd restore -c -o head.dat >out 2>&1 && trace-cmd restore -i head.dat -o trace.dat cpu0 cpu1 >out 2>&1 ||
		skip "trace-cmd restore does not work here: $(tail -n 1 out)"
	expect 0 longpole import tracecmd trace.dat
	is_the_known_answer trace.lpt
	head -c 5000 trace.dat >cut.dat
	expect 3 longpole import tracecmd cut.dat
}

# sched_story FORM - the same as text of Perfetto's protobuf: whole events, or compact ones.
sched_story() {
	if [[ $1 == whole ]]; then
		cat <<-'TEXT'
			packet { ftrace_events { cpu: 0
			 event { timestamp: 0 pid: 0 sched_switch { prev_pid: 0 prev_state: 0 next_comm: "client" next_pid: 11 } }
			 event { timestamp: 100000 pid: 11 sched_waking { comm: "server" pid: 12 } }
			 event { timestamp: 105000 pid: 11 sched_switch { prev_comm: "client" prev_pid: 11 prev_state: 1 next_pid: 0 } }
			 event { timestamp: 640000 pid: 0 sched_switch { prev_pid: 0 prev_state: 0 next_comm: "client" next_pid: 11 } }
			 event { timestamp: 700000 pid: 11 sched_switch { prev_comm: "client" prev_pid: 11 prev_state: 1 next_pid: 0 } } } }
			packet { ftrace_events { cpu: 1
			 event { timestamp: 0 pid: 0 sched_switch { prev_pid: 0 prev_state: 0 next_comm: "server" next_pid: 12 } }
			 event { timestamp: 10000 pid: 12 sched_switch { prev_comm: "server" prev_pid: 12 prev_state: 1 next_pid: 0 } }
			 event { timestamp: 120000 pid: 0 sched_switch { prev_pid: 0 prev_state: 0 next_comm: "server" next_pid: 12 } }
			 event { timestamp: 620000 pid: 12 sched_waking { comm: "client" pid: 11 } }
			 event { timestamp: 630000 pid: 12 sched_switch { prev_comm: "server" prev_pid: 12 prev_state: 1 next_pid: 0 } } } }
		TEXT
		return
	fi
	cat <<-'TEXT'
		packet { ftrace_events { cpu: 1 compact_sched {
		 intern_table: "swapper" intern_table: "server" intern_table: "client"
		 switch_timestamp: [0, 10000, 110000, 510000] switch_prev_state: [0, 1, 0, 1] switch_next_pid: [12, 0, 12, 0]
		 switch_next_comm_index: [1, 0, 1, 0] waking_timestamp: [620000] waking_pid: [11] waking_comm_index: [2] } } }
		packet { ftrace_events { cpu: 0 compact_sched {
		 intern_table: "swapper" intern_table: "client" intern_table: "server"
		 switch_timestamp: [0, 105000, 535000, 60000] switch_prev_state: [0, 1, 0, 1] switch_next_pid: [11, 0, 11, 0]
		 switch_next_comm_index: [1, 0, 1, 0] waking_timestamp: [100000] waking_pid: [12] waking_comm_index: [2] } } }
		packet { process_tree { processes { pid: 11 cmdline: "/usr/bin/client" } threads { tid: 12 tgid: 12 name: "server" } } }
	TEXT
}

test_import_perfetto_known_answer() {
	command -v protoc >/dev/null || skip "no protoc (Debian package protobuf-compiler)"
	local form
	for form in whole compact; do
		sched_story $form | protoc --encode=perfetto.protos.Trace -I "$LONGPOLE_SOURCE/tests/cli" ftrace.proto >$form.pftrace ||
			fail "protoc cannot encode it"
		expect 0 longpole import perfetto $form.pftrace
		is_the_known_answer $form.lpt
	done
	head -c 200 whole.pftrace >cut.pftrace
	expect 0 longpole import perfetto cut.pftrace
	has err 'imported as far as it goes'
	expect 0 longpole report cut.lpt
	has out 'was cut short'
	expect 0 longpole export -q -f perfetto -o own.pftrace "$trace"
	expect 3 longpole import perfetto -o none.lpt own.pftrace
	has err 'no sched_switch'
}

# What perf wrote: ten requests of 5 ms to a server that takes 20 ms for each. And as CTF, where perf can convert it.
test_import_perf_recorded() {
	as_root
	command -v perf >/dev/null || skip "no perf (Debian package linux-perf)"
	"${CC:-cc}" -O1 -pthread "$LONGPOLE_SOURCE/tests/cli/requests.c" -o requests || fail "requests.c"
	# 250 ms of processor time, of both threads in turn, are on the path, however long they wait for a processor; as
	# far as the kernel shows all switches, which on a busy machine it may not: then again
	local events=sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,sched:sched_process_fork,sched:sched_process_exec,sched:sched_process_exit
	local run_ns=0 missing=0
	for _ in 1 2 3; do
		perf record -q -a -e "$events" -o perf.data ./requests >out 2>&1 || skip "perf record does not work here: $(tail -n 1 out)"
		expect 0 longpole import perf -o perf.lpt perf.data
		missing=$(sed -En 's/^longpole: ([0-9,]+) switches are missing.*/\1/p' err | tr -d ,)
		expect 0 longpole report --json --process=requests perf.lpt
		run_ns=$(jq '[.result.path[] | select(.group == "requests" and (.state | startswith("running"))) | .path_ns] | add // 0' out)
		((run_ns > 200000000 && run_ns < 350000000)) && break
	done
	# (one switch that the kernel hides can hide the rest of the path behind it)
	((run_ns > 200000000 && run_ns < 350000000 || ${missing:-0} == 0)) || skip "the kernel did not show $missing switches"
	((run_ns > 200000000 && run_ns < 350000000)) || fail "no switch is missing: $run_ns ns of the path are the program's work, not 250 ms"
	is_json out '[.result.path[] | select(.group == "requests") | .actor] | any(contains("2"))'
	expect 0 longpole report --json perf.lpt # the program that perf started is the default, as of a recording of ours
	is_json out '.trace.command == "./requests" and .trace.system.process == "requests" and .result.elapsed_ns < 5e9'
	longpole dump perf.lpt >text
	grep -q ' wake woken=' text || fail "no wakes"
	head -c $(($(stat -c %s perf.data) / 2)) perf.data >cut.data
	expect 3 longpole import perf cut.data
	has err 'is cut'
	perf data convert --to-ctf=perf.ctf -i perf.data >out 2>&1 || return 0 # (perf may be built without)
	expect 0 longpole import ctf -o converted.lpt perf.ctf
	local one other
	one=$(elapsed --process=requests perf.lpt) other=$(elapsed --process=requests converted.lpt)
	# (CTF does not say which process a thread is of)
	((one > other * 95 / 100 && one < other * 105 / 100)) || fail "by perf.data $one ns, by CTF $other ns"
}

make_jaeger() {
	cat >"$1" <<-'JSON'
		{"data": [{"traceID": "a", "processes": {"p1": {"serviceName": "front"}, "p2": {"serviceName": "db"}, "p3": {"serviceName": "cache"}}, "spans": [
		{"traceID": "a", "spanID": "1", "operationName": "GET", "startTime": 1000, "duration": 1000, "processID": "p1", "references": []},
		{"traceID": "a", "spanID": "2", "operationName": "query", "startTime": 1100, "duration": 700, "processID": "p2",
		 "references": [{"refType": "CHILD_OF", "traceID": "a", "spanID": "1"}]},
		{"traceID": "a", "spanID": "3", "operationName": "get", "startTime": 1150, "duration": 100, "processID": "p3",
		 "references": [{"refType": "CHILD_OF", "traceID": "a", "spanID": "1"}]}]}]}
	JSON
}

# make_spans FILE - one span, as OTLP.
make_spans() {
	echo '{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "a", "spanId": "1", "name": "GET",
		"startTimeUnixNano": "1000", "endTimeUnixNano": "2000"}]}]}]}' >"$1"
}

# A frontend of 1 ms calls a database for 700 us, and a cache for 100 us meanwhile.
test_import_spans() {
	make_jaeger jaeger.json
	jq -c '.data[0] as $t | {resourceSpans: [$t.spans[] | {resource: {attributes: [{key: "service.name", value: {stringValue:
		$t.processes[.processID].serviceName}}]}, scopeSpans: [{spans: [{traceId: .traceID, spanId: .spanID, parentSpanId:
		(.references[0].spanID // ""), name: .operationName, startTimeUnixNano: (.startTime * 1000 | tostring), endTimeUnixNano:
		((.startTime + .duration) * 1000 | tostring)}]}]}]} | .resourceSpans[] | {resourceSpans: [.]}' jaeger.json >otlp.json
	(($(wc -l <otlp.json) == 3)) || fail "one document a line was wanted"
	local form
	for form in jaeger otlp; do
		expect 0 longpole import otlp $form.json
		has err '3 spans of 1 trace'
		expect 0 longpole report --json $form.lpt
		is_json out '.result.elapsed_ns == 1000000 and .result.unexplained_ns == 0'
		is_json out '[.result.path[] | select(.actor == "db/query 1") | .path_ns] | add == 700000'
		is_json out '[.result.path[] | select(.actor == "front/GET 1") | .path_ns] | add == 300000'
	done
	echo '{"neither": 1}' >other.json
	expect 3 longpole import otlp -o none.lpt other.json
	expect 3 longpole import chrome -o none.lpt other.json
	echo 'no JSON' >other.json
	expect 3 longpole import otlp -o none.lpt other.json
	[[ ! -e none.lpt && ! -e none.lpt.part ]] || fail "a refused import left a file"
}

# One works 300 us, then another, for which it has an arrow, 500 us; B and E as well as X.
test_import_chrome_known_answer() {
	cat >a.json <<-'JSON'
		[{"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "first"}},
		 {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "second"}},
		 {"ph": "B", "pid": 1, "tid": 1, "ts": 10, "name": "make"}, {"ph": "E", "pid": 1, "tid": 1, "ts": 310},
		 {"ph": "s", "pid": 1, "tid": 1, "ts": 309.5, "id": "0x7", "name": "hand", "cat": "c"},
		 {"ph": "f", "bp": "e", "pid": 1, "tid": 2, "ts": 312.5, "id": "0x7", "name": "hand", "cat": "c"},
		 {"ph": "X", "pid": 1, "tid": 2, "ts": 312.5, "dur": 500, "name": "use"}]
	JSON
	expect 0 longpole import chrome a.json
	has err '2 slices and 1 flow of 2 threads'
	expect 0 longpole report --json a.lpt
	is_json out '.result.elapsed_ns == 802500'
	is_json out '[.result.path[] | select(.state | contains("make")) | .path_ns] | add == 299500'
	is_json out '[.result.path[] | select(.state | contains("use")) | .path_ns] | add == 500000'
	is_json out '[.result.path[] | select(.state | contains("hand-off of queue hand")) | .path_ns] | add == 3000'

	# Chromium's have integers beyond 64 bits with a sign; a program that was killed leaves the list open.
	sed 's/"hand", "cat": "c"/& , "args": {"x": [18446744073709546545, "]\\"}"]}/' a.json >large.json
	expect 0 longpole import chrome large.json
	expect 0 longpole report --json large.lpt
	is_json out '.result.elapsed_ns == 802500'
	for form in a large; do
		sed '1s/^/{"traceEvents": /; $s/\]$/, {"ph": "X", "pid": 1, "na/' $form.json >open.json
		expect 0 longpole import chrome open.json
		has err 'cut short: imported as far as it goes' '2 slices and 1 flow'
		expect 0 longpole report open.lpt
		has out 'was cut short'
	done
	for form in '[' '[{"ph"' '{"traceEvents": [' '"' '{"a": {"b": [{}'; do
		echo "$form" >none.json
		expect 3 longpole import chrome none.json
	done
}

test_import_chrome_of_node() {
	command -v node >/dev/null || skip "no node"
	cat >w.mjs <<-'JS'
		import fs from 'node:fs';
		import { performance } from 'node:perf_hooks';
		performance.mark('begin');
		for (let i = 0; i < 5; i++) fs.readFileSync('w.mjs');
		performance.mark('end');
		performance.measure('reading', 'begin', 'end');
	JS
	timeout 60 node --trace-event-categories v8,node,node.perf w.mjs && [[ -s node_trace.1.log ]] || skip "node writes no trace events"
	expect 0 longpole import chrome -o node.lpt node_trace.1.log
	has err ' slices and '
	expect 0 longpole report node.lpt
	has out 'JavaScriptMainThread'
}
