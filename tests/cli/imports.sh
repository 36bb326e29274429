# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# imports.sh - other tools' files as traces. Their bytes are made here.

# le BYTES NUMBER - little-endian.
le() {
	local i v=$2
	for ((i = 0; i < $1; i++)); do
		printf '%b' "$(printf '\\x%02x' $(((v >> 8 * i) & 255)))"
	done
}

# gem5_record TICK OPERATION MACHINE WHAT DATA
gem5_record() {
	le 8 "$1"
	le 4 "$5"
	le 2 "$3"
	le 2 "$4"
	le 1 "$2"
	le 2 0
}

# annotate_bin FILE - a producer of 20 ns an item and a consumer of 50 ns; 10 items in 521 ns.
annotate_bin() {
	local i key records=0
	key='sms["producer"] = ["NULL", "make", "rest"]
sms["consumer"] = ["NULL", "use"]
smNum = ["NULL", (1, "producer", 1), (1, "consumer", 1)]
sysNum = ["NULL", "system"]
queues = ["NULL", (1, "ring", 1)]
smComb = [s for s in [(i,r) for i in xrange(1,len(sysNum)) for r in xrange (1,len(smNum))]]
'
	{
		gem5_record 0 1 1 1 0 # make
		gem5_record 0 2 2 1 1 # the consumer waits
		gem5_record 20000 4 1 1 1
		gem5_record 21000 5 2 1 1 # a hand-off of 1 ns
		gem5_record 21000 1 2 1 0 # use
		for ((i = 1; i < 10; i++)); do
			gem5_record $((21000 + i * 50000 - 10000)) 4 1 1 1
			gem5_record $((21000 + i * 50000)) 5 2 1 1
		done
		gem5_record 521000 1 2 1 0
	} >"$1.records"
	records=$(($(stat -c %s "$1.records") / 19))
	{
		printf '\x01\x01\x00\x00NA5M'
		le 8 "$records"
		le 8 $((40 + records * 19))
		le 8 $((40 + records * 19 + ${#key}))
		le 4 ${#key}
		le 4 0
		cat "$1.records"
		printf '%s' "$key"
	} >"$1"
	rm "$1.records"
}

test_import_gem5_gives_an_answer() {
	annotate_bin annotate.bin
	expect 0 longpole import gem5 annotate.bin
	has err 'wrote annotate.lpt' '24 records of 2 state machines on 1 queue'
	expect 0 longpole report annotate.lpt
	has out 'consumer: use' 'WHERE THE TIME GOES (critical path' '96 %'
	! grep -q 'left out\|cut short' out || fail "a whole file is said to lack something"
	expect 0 longpole report --json annotate.lpt
	is_json out '.result.elapsed_ns == 521'
	expect 0 longpole queues annotate.lpt
	has out 'queue ring'
	expect 0 longpole import gem5 --tick-ps=500 -q -o ticks.lpt annotate.bin
	[[ ! -s err ]] || fail "--quiet is not"
	expect 0 longpole report --json ticks.lpt
	is_json out '.result.elapsed_ns == 260500'
}

test_import_gem5_there_and_back() {
	annotate_bin annotate.bin
	expect 0 longpole import gem5 -o a.lpt annotate.bin
	expect 0 longpole export --format=gem5 -o b.bin a.lpt
	expect 0 longpole import gem5 -o b.lpt b.bin
	cmp <(longpole dump a.lpt) <(longpole dump b.lpt) || fail "the records differ"
	[[ $(longpole dump a.lpt | wc -l) -gt 24 ]] || fail "no records"
	expect 0 longpole export --format=gem5 a.lpt
	[[ -s a.annotate.bin ]] || fail "no a.annotate.bin"
	cmp a.annotate.bin b.bin || fail "two exports differ"
}

test_import_gem5_cut() {
	annotate_bin annotate.bin
	head -c 200 annotate.bin >cut.bin
	expect 0 longpole import gem5 cut.bin
	has err 'the header promises 24 records, there are 8' 'the last 8 bytes are no whole record'
	expect 0 longpole report cut.lpt
	has out 'was cut short' 'machine 1'
	head -c 39 annotate.bin >cut.bin
	expect 3 longpole import gem5 -o none.lpt cut.bin
	[[ ! -e none.lpt && ! -e none.lpt.part ]] || fail "a refused import left a file"
}

test_import_mistakes() {
	annotate_bin annotate.bin
	expect 3 longpole import gem5 "$trace" -o a.lpt
	has err "instead of annotate.bin's version" 'not a file of that format'
	expect 2 longpole import gem6 annotate.bin
	has err "did you mean 'gem5'"
	expect 2 longpole import gem5
	expect 2 longpole import gem5 annotate.bin another
	expect 2 longpole import gem5 --tick-ps=0 annotate.bin
	expect 2 longpole import gem5 -o annotate.bin annotate.bin
	has err 'would overwrite'
	expect 2 longpole import gem5 -o a.lpt /dev/null
	expect 4 longpole import gem5 -o a.lpt missing.bin
	expect 2 longpole export --format=gem5 "$trace"
	has err 'no annotations'
	expect 2 longpole export --format=gem5 --from=1ms "$trace"
	has err 'do not apply'
}

# chrome_answer JSON PATTERN... - the imported file's report; what import said stays in `said`.
chrome_answer() {
	printf '%s' "$1" >slices.json
	expect 0 longpole import chrome -o slices.lpt slices.json
	mv err said
	expect 0 longpole report --full slices.lpt
	has out "${@:2}"
}

test_import_chrome_ids_are_numbers() {
	local ids pair
	ids=('1 "1"' '"0x0A" "0xa"' '"0x10" 16' '"007" 7' '"012" 12.0' '-1 18446744073709551615'
		'"550E8400-E29B" "550e8400-e29b"' '10230935201254747350 "0x8dfb955c16d42cd6"')
	for pair in "${ids[@]}"; do
		set -- $pair
		chrome_answer '[{"name":"A","ph":"X","pid":1,"tid":1,"ts":0,"dur":400},{"name":"f","ph":"s","id":'"$1"',"pid":1,"tid":1,"ts":390},
{"name":"f","ph":"f","bp":"e","id":'"$2"',"pid":1,"tid":2,"ts":500},{"name":"B","ph":"X","pid":1,"tid":2,"ts":500,"dur":600}]' 'thread 1: A'
		! grep -q 'waiting for data in queue' out || fail "ids $pair are not one flow"
	done
}

test_import_chrome_bind_id() {
	local bound
	for bound in '"0x5" "0x05"' '5 "5"' '"0xA" 10'; do
		set -- $bound
		chrome_answer '[{"name":"A","ph":"X","pid":1,"tid":1,"ts":0,"dur":400,"bind_id":'"$1"',"flow_out":true},
{"name":"B","ph":"X","pid":1,"tid":2,"ts":500,"dur":600,"bind_id":'"$2"',"flow_in":true}]' 'thread 1: A'
		has said '2 slices and 1 flow'
	done
}

# clang -ftime-trace says in args.detail what was parsed or instantiated.
test_import_chrome_detail() {
	chrome_answer '{"traceEvents":[{"name":"Source","ph":"X","pid":1,"tid":1,"ts":0,"dur":300,"args":{"detail":"/usr/include/vector"}},
		{"name":"InstantiateFunction","ph":"B","pid":1,"tid":1,"ts":300,"args":{"detail":"f<int>"}},{"ph":"E","pid":1,"tid":1,"ts":1000},
		{"name":"Backend","ph":"X","pid":1,"tid":1,"ts":1000,"dur":200,"args":{"detail":7}},
		{"name":"","ph":"X","pid":1,"tid":1,"ts":1200,"dur":200,"args":{"detail":"alone"}}]}' 'InstantiateFunction f<int>'
	expect 0 longpole path --all --json slices.lpt
	is_json out '[.result.steps[].state] | contains(["Source /usr/include/vector", "InstantiateFunction f<int>", "Backend", "alone"])'
	# Of a thousand details the longest are told apart, the others are one state.
	jq -n '[range(1000) | {name: "Make", ph: "X", pid: 1, tid: 1, ts: (. * 100), dur: (if . == 500 then 90 else 50 end), args: {detail: "f<\(.)>"}}]' >slices.json
	expect 0 longpole import chrome -o slices.lpt slices.json
	has err '800 details'
	expect 0 longpole path --all --json slices.lpt
	is_json out '[.result.steps[].state] | unique | contains(["Make", "Make f<500>"]) and length <= 204'
}

# Whatever a file's writer counts from, and however it writes what it counts.
test_import_chrome_times() {
	local at dur
	for at in 0 1700000000000000 1700000000000000.25 -5000000 '"1700000000000000"' -0.5; do
		for dur in '400 600' '"400" "600.0"' '4e2 600.0'; do
			set -- $dur
			chrome_answer "$(jq -n --argjson at "$at" --argjson a "$1" --argjson b "$2" '($at | if type == "string" then tonumber else . end) as $n |
				def time($us): $n + $us | if $at | type == "string" then tostring else . end;
				[{name: "A", ph: "X", pid: 1, tid: 1, ts: time(0), dur: $a}, {name: "f", ph: "s", id: 1, pid: 1, tid: 1, ts: time(400)},
				{name: "f", ph: "f", bp: "e", id: 1, pid: 1, tid: 2, ts: time(400)}, {name: "B", ph: "X", pid: 1, tid: 2, ts: time(400), dur: $b}]')" \
				'THE PATH, 1.00 ms' 'thread 2: B'
			grep -q '^ *#1  *60 % ' out || fail "from $at on, B is not 60 %"
		done
	done
	printf '[{"name":"A","ph":"X","pid":1,"tid":1,"ts":1e18,"dur":1},{"name":"A","ph":"C","ts":1}]' >none.json
	expect 3 longpole import chrome -o none.lpt none.json
	has err 'none of its events is a slice or a flow with a sensible time'
}

# A mark before the text, halves of characters, backslashes that escape nothing, names that are none.
test_import_chrome_texts() {
	chrome_answer $'\xef\xbb\xbf[{"name":"marked","ph":"X","pid":1,"tid":1,"ts":0,"dur":1000}]' 'thread 1: marked'
	local pair
	for pair in '\ud83d|\xef\xbf\xbd' '\ud83d\ude00|\xf0\x9f\x98\x80' '\ude00\ud83d|\xef\xbf\xbd\xef\xbf\xbd' '\ud83dx|\xef\xbf\xbdx' \
		'C:\Users|C:\\Users' '\u00e9|\xc3\xa9' '\u12|\\u12' 'a\\b|a\\b'; do
		chrome_answer '[{"name":"'"${pair%%|*}"'","ph":"X","pid":1,"tid":1,"ts":0,"dur":1000},{"name":"\ud800","ph":"X","pid":1,"tid":1,"ts":1000,"dur":1}]' \
			"thread 1: $(printf '%b' "${pair#*|}")"
	done
	chrome_answer '[{"ph":"X","pid":1,"tid":-2,"ts":0,"dur":700},{"name":5,"ph":"X","pid":1,"tid":-2,"ts":700,"dur":300}]' \
		'thread -2: slice without a name' 'thread -2: 5' 'THE PATH, 1.00 ms'
}

test_import_pytorch_texts() {
	local pair
	for pair in '\ud83d|\xef\xbf\xbd' '\ud83d\ude00|\xf0\x9f\x98\x80' '\ud83dx|\xef\xbf\xbdx' 'C:\Users|C:\\Users' '\u00e9|\xc3\xa9' '\u65e5|\xe6\x97\xa5'; do
		printf '\xef\xbb\xbf{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"%s","pid":9,"tid":9,"ts":0,"dur":1000}]}' "${pair%%|*}" >ops.json
		sed -n 1p ops.json | grep -qF "${pair%%|*}" || fail "printf has understood ${pair%%|*}"
		expect 0 longpole import pytorch -o ops.lpt ops.json
		expect 0 longpole report --full ops.lpt
		has out "$(printf '%b' "${pair#*|}")"
	done
}

test_import_chrome_names_and_ends() {
	chrome_answer '{"traceEvents":[{"ph":"X","name":"step","pid":"Spans","tid":"PyTorch Profiler","ts":1700,"dur":1000}]}' 'PyTorch Profiler'
	chrome_answer '{"a":[1,{"b":[{}]}],"c":{"traceEvents":[3]},"traceEvents":[{"name":"a","ph":"X","pid":1,"tid":1,"ts":0,"dur":1000},{"name":"b","ph' 'thread 1: a'
	has said 'cut short'
	chrome_answer '[{"name":"a","ph":"X","pid":1,"tid":1,"ts":0,"dur":1000,},
,{"name":"b","ph":"X","pid":1,"tid":1,"ts":1000,"dur":5,"args":{"x":NaN,"y":-Infinity,"z":[1,2,],}},]' 'thread 1: a'
	! grep -q 'cut short' said || fail "a comma too many cuts the file short"
	chrome_answer '[{"name":"o","ph":"B","pid":1,"tid":1,"ts":0},{"name":"i","ph":"B","pid":1,"tid":1,"ts":100},{"name":"x","ph":"X","pid":1,"tid":1,"ts":200,"dur":800}]' 'THE PATH, 1.00 ms'
	has said '2 slices have no end'
}

test_import_compressed() {
	echo '[{"name":"a","ph":"X","pid":1,"tid":1,"ts":0,"dur":1000}]' >a.json
	local nr=$(stat -c %s a.json)
	expect 0 longpole import chrome -o a.lpt a.json
	longpole dump a.lpt >plain
	gzip -c a.json >a.gz
	# a frame of one raw block
	{ printf '\x28\xb5\x2f\xfd\x20' && le 1 "$nr" && le 3 $((nr << 3 | 1)) && cat a.json; } >a.zst
	mkdir packed
	for i in a.gz a.zst; do
		cp "$i" packed/a.json # its name is in the trace
		(cd packed && expect 0 longpole import chrome -o ../b.lpt a.json)
		cmp <(longpole dump b.lpt) plain || fail "$i gives another trace"
	done
	{ head -c 10 a.json | gzip && tail -c +11 a.json | gzip; } >two.gz
	cp two.gz packed/a.json
	(cd packed && expect 0 longpole import chrome -o ../b.lpt a.json)
	cmp <(longpole dump b.lpt) plain || fail "two members give another trace"
	head -c 12 a.gz >cut.gz
	expect 3 longpole import chrome -o a.lpt cut.gz
	head -c 600000000 /dev/zero | gzip -1 >bomb.gz
	expect 4 longpole import chrome -o a.lpt bomb.gz
	has err 'unpacks to more than 512 MiB'
	gzip -c a.json >trace.dat
	expect 3 longpole import tracecmd -o a.lpt trace.dat
	has err 'compressed with gzip' gunzip
	printf '\xfd7zXZ\0 ' >a.xz
	expect 3 longpole import chrome -o a.lpt a.xz
	has err 'compressed with xz' unxz
}

# otlp_pair TRACE SPAN TRACE PARENT - a request of 100 ms that another service works on for 70.
otlp_pair() {
	cat <<-END
		{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"front"}}]},"scopeSpans":[{"spans":[
		{"traceId":"$1","spanId":"$2","parentSpanId":"0000000000000000","name":"GET","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000100000000"},]}]},
		{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"back"}}]},"scopeSpans":[{"spans":[
		{"traceId":"$3","spanId":"b7ad6b7169203331","parentSpanId":"$4","name":"query","startTimeUnixNano":"1700000000010000000","endTimeUnixNano":"1700000000080000000"}]}]}]}
	END
}

test_import_otlp_ids_are_numbers() {
	local upper=5B8EFFF798038103D269B633813FC60C low=5b8efff798038103d269b633813fc60c ids
	for ids in "$upper EEE19B7EC3C1B174 $low eee19b7ec3c1b174" "00AF 01 af 1" \
		'00ff 17 @255 @23' '@255 @23 0xFF 0017' '@255 @23 @255 @23' \
		"W47/95gDgQPSabYzgT/GDA== 7uGbfsPBsXQ= $low eee19b7ec3c1b174" "W47_95gDgQPSabYzgT_GDA 7uGbfsPBsXQ $upper 0xEEE19B7EC3C1B174"; do
		otlp_pair $ids | sed 's/"@\([0-9]*\)"/\1/g' >spans.json # @: a number
		expect 0 longpole import otlp -o a.lpt spans.json
		has err '2 spans of 1 trace'
		! grep -q 'parent that is not there' err || fail "$ids: no parent"
		expect 0 longpole report a.lpt
		grep -q '^ *#1  *70 % .*query' out || fail "$ids: the query is not 70 %"
	done
}

# Clocks that count milliseconds: whoever is called begins and ends with its caller, however deep.
test_import_otlp_at_one_time() {
	local depth
	for depth in 3 64 65 1500; do
		jq -n --argjson n "$depth" 'def ns($ms): "\(1700000000000 + $ms)000000";
			{resourceSpans: [{scopeSpans: [{spans: [range(2 * $n) | (if . < $n then 0 else 1 end) as $late | {traceId: "a", spanId: "\(. + 1)",
			parentSpanId: (if . == 0 then "" else "\(.)" end), name: "s\(.)", startTimeUnixNano: ns($late), endTimeUnixNano: ns(100 - $late)}]}]}]}' >spans.json
		expect 0 longpole import otlp -o a.lpt spans.json
		expect 0 longpole report a.lpt
		grep -q "^ *#1  *98 % .*s$((2 * depth - 1))" out || fail "$depth deep: not 98 % of the innermost"
		! grep -q 'more than was seen' out || fail "$depth deep: something is taken before it is put"
	done
	printf '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a","spanId":"b","name":"x","startTimeUnixNano":"5","endTimeUnixNano":"4"}]}]}]}' >none.json
	expect 3 longpole import otlp none.json
	has err 'none of its spans has sensible times'
}

test_import_otlp_clocks_are_shifted() {
	local start
	for start in 1699999999970000 1700000000090000 1600000000000000; do # behind, ahead, far
		cat >spans.json <<-END
			{"data":[{"traceID":"af","processes":{"p1":{"serviceName":"front"},"p2":{"serviceName":"back"}},"spans":[
			{"traceID":"af","spanID":"01","operationName":"GET","references":[],"startTime":1700000000000000,"duration":100000,"processID":"p1"},
			{"traceID":"af","spanID":"02","operationName":"query","references":[{"refType":"CHILD_OF","traceID":"af","spanID":"01"}],"startTime":$start,"duration":70000,"processID":"p2"},
			{"traceID":"af","spanID":"03","operationName":"disk","references":[{"refType":"CHILD_OF","traceID":"af","spanID":"02"}],"startTime":$((start + 10000)),"duration":50000,"processID":"p2"}]}]}
		END
		expect 0 longpole import otlp -o a.lpt spans.json
		has err '2 spans were outside of their parents on another service'
		expect 0 longpole report --full a.lpt
		has out 'THE PATH, 100 ms' 'disk: disk'
		! grep -q idle out || fail "an idle time that the clocks made"
	done
}

test_import_perf_directories_are_named() {
	mkdir d.data
	expect 2 longpole import perf -o a.lpt d.data
	has err 'is a directory' 'record without --threads'
	expect 2 longpole import chrome -o a.lpt d.data
	has err 'is a directory: give one file'
}

# As many switches as perf itself reads; those to the idle task are nobody's beginning. (That -z changes nothing: test_format_doors.)
test_import_perf_compressed() {
	perf record -q -a -e sched:sched_switch -e sched:sched_waking -z -o z.data sleep 0.1 >perf.out 2>&1 || skip "perf record -z is not allowed here"
	perf script -i z.data -F event,trace >script 2>/dev/null || skip "perf script does not read it"
	expect 0 longpole import perf -o z.lpt z.data
	! grep -q 'cannot be unpacked\|damaged' err || fail "not all is read"
	local switches idle guessed in
	switches=$(grep -c 'sched_switch' script)
	idle=$(grep 'sched_switch' script | grep -c 'next_pid=0 ')
	guessed=$(sed -n 's/^longpole: \([0-9]*\) switches are missing: guessed$/\1/p' err)
	in=$(longpole dump --stats z.lpt | sed -n 's/^cpu_in  *\([0-9,]*\).*/\1/p' | tr -d ,)
	((in >= switches - idle && in <= switches - idle + ${guessed:-0})) || fail "$in beginnings of $switches switches, $idle to idle, ${guessed:-0} guessed"
}

# LTTng-UST's wrapper of pthread_mutex_*: 12 waits from 200 to 590 us for what 11 gives back then; that is told only at 600.
test_import_ctf_of_mutexes() {
	mkdir -p ust/64-bit
	python3 - ust/64-bit <<-'PY'
		import struct, sys
		names = ["lock_req", "lock_acq", "trylock", "unlock"]
		meta = """/* CTF 1.8 */
		trace { major = 1; minor = 8; byte_order = le; };
		env { domain = "ust"; };
		clock { name = m; freq = 1000000000; offset = 0; };
		typealias integer { size = 64; align = 8; signed = false; map = clock.m.value; } := stamp;
		typealias integer { size = 32; align = 8; signed = true; } := i32;
		typealias integer { size = 64; align = 8; signed = false; } := u64;
		stream {
		    event.header := struct { integer { size = 16; align = 8; signed = false; } id; stamp timestamp; };
		    event.context := struct { i32 vtid; i32 vpid; string procname; };
		};
		"""
		for i, name in enumerate(names):
		    status = "" if name == "lock_req" else " i32 status;"
		    meta += 'event { id = %d; name = "lttng_ust_pthread:pthread_mutex_%s"; fields := struct { u64 mutex;%s }; };\n' % (i, name, status)
		open(sys.argv[1] + "/metadata", "w").write(meta)
		out = b""
		for us, tid, what, status in [(100, 11, 0, 0), (101, 11, 1, 0), (101, 11, 0, 0), (102, 11, 1, 0), (110, 11, 3, 0), (200, 12, 0, 0), (250, 13, 2, 16),
		        (590, 12, 1, 0), (600, 11, 3, 0), (900, 12, 3, 0), (910, 12, 3, 1), (1000, 11, 0, 0), (1001, 11, 1, 0), (1002, 11, 3, 0)]:
		    out += struct.pack("<HQii", what, us * 1000, tid, 11) + b"server\0" + struct.pack("<Q", 0xabc0)
		    out += struct.pack("<i", status) if what else b""
		open(sys.argv[1] + "/channel_0", "wb").write(out)
	PY
	expect 0 longpole import ctf -o ust.lpt ust || return
	has err 'no switches'
	expect 0 longpole locks --json ust.lpt
	is_json out '.result.locks | length == 1 and (.[0] | .acquisitions == 3 and .contended == 1 and .failed == 1 and .wait.total_ns == 390000 and .lock == "mutex 0xabc0")'
	is_json out '.result.locks[0].hold.total_ns | . >= 798000 and . <= 801000' # 489 + 310 + 1 us
	! jq -r '.diagnostics[].text' out | grep -q 'more was taken' || fail "a lock is taken that nobody gave back"
	expect 0 longpole dump --kind=lock_fail ust.lpt
	[[ $(grep -c lock_fail out) == 1 ]] || fail "the lock that was tried: $(cat out)"
}

# Spans that were sent twice, both ends of a call under one id (Zipkin's), and what only follows from another span.
test_import_otlp_repeated_and_shared_ids() {
	local order
	jq -n 'def ns($ms): "\(1700000000000 + $ms)000000";
		def span($id; $parent; $name; $from; $to; $kind): {traceId: "a", spanId: $id, parentSpanId: $parent, name: $name, startTimeUnixNano: ns($from),
			endTimeUnixNano: ns($to), kind: $kind};
		def of($service; $spans): {resource: {attributes: [{key: "service.name", value: {stringValue: $service}}]}, scopeSpans: [{spans: $spans}]};
		{resourceSpans: [of("front"; [span("1"; ""; "root"; 0; 100; 1), span("2"; "1"; "call"; 10; 90; 3)]),
			of("back"; [span("2"; "1"; "serve"; 20; 80; 2), span("3"; "2"; "db"; 30; 70; 1)])]}' >shared.json
	jq '.resourceSpans |= reverse' shared.json >reversed.json
	jq -c . shared.json >twice.json && jq -c . shared.json >>twice.json
	jq '(.. | objects | select(has("kind"))).kind = 0' shared.json >kindless.json
	for order in shared reversed twice kindless; do
		expect 0 longpole import otlp -o a.lpt $order.json
		if [[ $order == twice ]]; then has err '4 spans are there more than once' '4 spans of 1 trace'; fi
		expect 0 longpole report --full a.lpt
		grep -q '^ *#1  *40 % .*db' out || { cat out; fail "$order: not 40 % of the innermost span"; }
		[[ $(grep -c '^ *#[234]  *20 % ' out) == 3 ]] || { cat out; fail "$order: not 20 % of each of the others"; }
	done
	cat >follows.json <<-'END'
		{"data":[{"traceID":"af","processes":{"p1":{"serviceName":"front"}},"spans":[
		{"traceID":"af","spanID":"1","operationName":"accept","references":[],"startTime":1700000000000000,"duration":40000,"processID":"p1"},
		{"traceID":"af","spanID":"2","operationName":"later","references":[{"refType":"FOLLOWS_FROM","traceID":"af","spanID":"1"}],"startTime":1700000000050000,"duration":50000,"processID":"p1"}]}]}
	END
	expect 0 longpole import otlp -o a.lpt follows.json
	expect 0 longpole report --full a.lpt
	grep -q '^ *#1  *50 % .*later' out && grep -q ' 40 % .*accept' out || fail "what follows from a span is not seen to: $(head -12 out)"
	! grep -q 'no recorded event ended' out || fail 'a wait without an end'
}
