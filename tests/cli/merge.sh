# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# merge.sh - several recordings as one trace. Skewed clocks: tests/unit/test_merge.c, test_merge_align.c.

# record_two - client.lpt and server.lpt, each recorded for itself, at the same time.
record_two() {
	local server
	longpole record -q -o server.lpt "$LONGPOLE_BUILD/tests/target/request" --as=server >server.out 2>server.err &
	server=$!
	longpole record -q -o client.lpt "$LONGPOLE_BUILD/tests/target/request" --as=client >client.out 2>client.err ||
		{ kill $server; cat client.err >&2; fail "the client's recording"; }
	wait $server || { cat server.err >&2; fail "the server's recording"; }
}

test_merge_two_recordings() {
	record_two
	expect 0 longpole merge --json -o both.lpt client.lpt server.lpt
	is_json out '.schema == "longpole/merge/1"'
	is_json out '.result | .hosts == 1 and .connections == 1 and .connections_unusable == 0 and .error_max_ns < 1000000'
	is_json out '.result.inputs[1] | .clock == "same kernel" and .byte_pairs >= 300'
	# the server's work is on the client's path; on a busy machine both wait for processors, too
	expect 0 longpole report --json both.lpt
	is_json out '.result.explained_share > 0.8'
	is_json out '[.result.path[] | select(.state == "running answer") | .path_ns] as [$answer] |
		[.result.path[] | select(.state == "running prepare") | .path_ns] as [$prepare] | $answer / $prepare | . > 2 and . < 6'
	client_ns=$(longpole report --json client.lpt | jq .result.elapsed_ns)
	is_json out ".result.elapsed_ns / $client_ns | . > 0.95 and . < 1.05"
	# alone, the client only waits for somebody who was not recorded
	expect 0 longpole merge server.lpt client.lpt
	has out 'Merged 2 recordings of 1 machine into merged.lpt' 'the same kernel as 1' 'Connections between the recordings: 1.' \
		'next: longpole report merged.lpt'
}

test_merge_predicts_the_other_program() {
	record_two
	expect 0 longpole merge -q -o both.lpt client.lpt server.lpt
	local elapsed_ns answer_ns
	elapsed_ns=$(longpole report --json both.lpt | jq .result.elapsed_ns)
	answer_ns=$(longpole report --json both.lpt | jq '.result.path[] | select(.state == "running answer") | .path_ns')
	expect 0 longpole whatif --json both.lpt scale answer=-100%
	is_json out ".result.scenarios[0].predicted_ns | ($elapsed_ns - .) / $answer_ns | . > 0.5 and . < 1.1"
}

# Clocks that are half a second apart from machine to machine, and drift: the path is that of one clock, within the bound that is said.
test_merge_skewed_ranks() {
	local gen=$LONGPOLE_BUILD/src/trace/lpt-gen-ranks rounds=200 kind skew=()
	for kind in even skewed; do
		mkdir $kind
		"$gen" $kind 24 $rounds "${skew[@]}" || fail "no traces"
		skew=(500000000)
		expect 0 longpole merge --json -o $kind.lpt $kind
		cp out $kind.merge
		longpole report --json $kind.lpt >$kind.json || fail "$kind: no report"
		# of each round rank 1 works 200 us; what is between two calls is counted with it
		is_json $kind.json '.result.path[0] | .state == "running step" and (.actor | contains("rank 1 ")) and .path_ns > '$rounds' * 200000 and .path_ns < 1.02 * '$rounds' * 200000'
		is_json $kind.json '.result.explained_share > 0.99'
	done
	is_json skewed.merge '.result | .hosts == 16 and (.inputs | map(.offset_ns) | max - min > 7e9)'
	jq -en --slurpfile e even.json --slurpfile s skewed.json --argjson bound "$(jq '.result.error_max_ns' skewed.merge)" '
		($e[0].result.elapsed_ns - $s[0].result.elapsed_ns | fabs) <= $bound + 1 and
		all($e[0].result.path[:3][] as $p | $s[0].result.path[] | select(.state == $p.state and .actor == $p.actor and .where == $p.where) | .path_ns - $p.path_ns | fabs;
			. <= $bound)' >/dev/null || fail "$(jq -c '.result.path[:4][] | [.state, .actor, .path_ns]' even.json skewed.json)"
}

test_merge_mistakes() {
	cp "$trace" a.lpt
	expect 2 longpole merge a.lpt
	has err 'two traces'
	expect 2 longpole merge -o a.lpt a.lpt a.lpt
	has err 'would overwrite'
	expect 4 longpole merge -o both.lpt a.lpt nothing.lpt
	[[ ! -e both.lpt && ! -e both.lpt.part ]] || fail "a refused merge left a file"
	cp a.lpt b.lpt
	expect 0 longpole merge -q -o both.lpt a.lpt b.lpt
	expect 2 longpole merge -o all.lpt both.lpt a.lpt
	has err 'merged trace already'
	head -c 20000 a.lpt >cut.lpt
	expect 0 longpole merge -q -o both.lpt a.lpt cut.lpt
	# another machine's, to which nothing passed: golden traces have no boot id
	expect 3 longpole merge -o both.lpt a.lpt "$LONGPOLE_SOURCE/tests/golden/lock.lpt"
	has err 'cannot be aligned' 'nothing passed between them' 'record both ends of a connection'
}
