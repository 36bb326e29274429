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
		gem5_record 21000 5 2 1 1 # a hand-over of 1 ns
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
	has err 'wrote annotate.lpt' '24 records of 2 state machines on 1 queues'
	expect 0 longpole report annotate.lpt
	has out 'consumer: use' 'all of the path is explained' '96 %'
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
