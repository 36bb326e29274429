# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# graph.sh - the compact graph: read back by dot, known answers, mistakes.

need_dot() { command -v dot >/dev/null || skip "no dot (Debian package graphviz)"; }
# parses FILE - dot reads it, and finds as many nodes as the JSON has.
parses() {
	dot -Tcanon "$1" >canon 2>canon.err || { cat canon.err >&2; fail "dot cannot read $1"; }
	[[ ! -s canon.err ]] || fail "dot: $(head -n 1 canon.err)"
}

test_graph_is_read_back_by_dot() {
	need_dot
	local options nodes edges
	for options in '' '--view=states' '--view=states --max-nodes=5' '--actor=ladder' '--each-actor --all' '--max-nodes=1'; do
		expect 0 longpole graph $options "$trace"
		cp out graph.dot
		parses graph.dot
		longpole graph $options --json "$trace" >json || fail "json"
		nodes=$(dot -Tplain graph.dot | grep -c '^node n')
		edges=$(dot -Tplain graph.dot | grep -c '^edge ')
		is_json json "(.result.nodes | length) == $nodes and (.result.edges | length) == $edges"
		is_json json '.schema == "longpole/graph/1"'
	done
}

test_graph_sums_to_the_path() {
	expect 0 longpole graph --view=states --json "$trace"
	is_json out '([.result.edges[].path_ns] | add) + .result.unplaced_path_ns == .result.elapsed_ns'
}

test_graph_pictures() {
	need_dot
	expect 0 longpole graph -o a.svg "$trace"
	has a.svg '<svg' 'ladder_mutex' 'Who waits on whom'
	expect 0 longpole graph --view=states --max-nodes=20 -o b.png "$trace"
	[[ $(head -c 8 b.png | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "b.png is no png"
	[[ ! -e a.svg.part && ! -e b.png.part ]] || fail "a temporary file is left"
	longpole graph -q --format=svg "$trace" >c.svg || fail "svg on standard output"
	cmp -s a.svg c.svg || fail "file and standard output differ"
}

test_graph_without_dot() {
	mkdir bin
	local status=0
	PATH=$PWD/bin "$LONGPOLE" graph -o a.svg "$trace" 2>err || status=$?
	((status == 4)) || fail "exit status $status instead of 4"
	grep -q 'Debian package graphviz' err || fail "does not say what to install"
	[[ ! -e a.svg ]] || fail "left a file"
	PATH=$PWD/bin "$LONGPOLE" graph "$trace" >a.dot 2>err || fail "DOT needs dot"
}

test_graph_format_by_ending() {
	expect 0 longpole graph -q -o a.dot "$trace"
	has a.dot 'digraph longpole {'
	expect 0 longpole graph -q -o a.json "$trace"
	is_json a.json '.result.view == "interaction"'
	expect 0 longpole graph -q -o a.txt "$trace"
	has a.txt 'Who waits on whom' 'mutex ladder_mutex'
	expect 2 longpole graph -o a.jpeg "$trace"
	has err '--format'
	expect 2 longpole graph --view=states --actor=x "$trace"
	expect 2 longpole graph --max-nodes=0 "$trace"
	expect 2 longpole graph --actor=nobody "$trace"
	has err "matches 'nobody'" 'ladder'
}

# Whatever a program is called, the DOT stays one string, and the picture shows the name.
test_graph_of_odd_names() {
	need_dot
	local odd=$'l"b\\<i>&amp;\u00e9\\N\n}'
	cp "$LONGPOLE_BUILD/tests/target/lock_ladder" "./$odd"
	expect 0 longpole record -q -o odd.lpt "./$odd"
	for options in '' '--view=states' '--actor=l'; do
		expect 0 longpole graph $options odd.lpt
		cp out odd.dot
		parses odd.dot
		dot -Tsvg odd.dot >odd.svg 2>err || fail "svg"
		has odd.svg 'l&quot;b\&lt;i&gt;&amp;amp;é\N?}'
	done
}

# Three stages and two pipes: who hands to whom, and the slow stage is the path. (How much of it depends on what else the
# machine does: the unit test has numbers.)
test_graph_of_a_pipeline() {
	local is_slow='.result as $r | ([$r.nodes[] | select(.kind == "actor")] | max_by(.path_ns) | .node) as $slow |'
	expect 0 longpole record -q -o p.lpt "$LONGPOLE_BUILD/tests/target/pipeline" --blocks=300 --units2=3000
	expect 0 longpole graph --view=states --json p.lpt
	cp out s.json
	expect 0 longpole graph --json p.lpt
	cp out g.json
	# the reddest actor is the one that runs the second stage
	local stage2
	stage2=$(jq -r '.result as $r | [$r.edges[] | select(.kind == "state" and .name == "running stage2_work")] | max_by(.path_ns)
		| $r.nodes[.from].name' s.json)
	is_json g.json "$is_slow \$r.nodes[\$slow].name == \"$stage2\""
	is_json s.json '[.result.edges[] | select(.name == "running stage2_work")] | all(.path_ns <= .time_ns) and max_by(.path_ns).path_ns > 1e6'
	# it takes from one pipe, which another fills, and fills one, from which a third takes
	is_json g.json "$is_slow"' [$r.nodes[] | select(.kind == "queue" and .type == "pipe") | .node] as $pipes
		| [$r.edges[] | select(.kind == "take" and .to == $slow) | .from] as $in
		| [$r.edges[] | select(.kind == "put" and .from == $slow) | .to] as $out
		| ($pipes | length) == 2 and ($in + $out | sort) == ($pipes | sort) and ($in | length) == 1
		and ([$r.edges[] | select(.kind == "put" and .to == $in[0] and .from != $slow and .waits > 10)] | length) == 1
		and ([$r.edges[] | select(.kind == "take" and .from == $out[0] and .to != $slow and .waits > 10)] | length) == 1'
	# 300 blocks of 4 KiB go through the second, which never is full; of a full one, what was read before its blocked write
	# was accounted is left out
	is_json g.json '[.result.edges[] | select(.kind == "put" or .kind == "take") | .bytes] | max == 300 * 4096'
	# in the picture it is the reddest ellipse: what is left of green and blue is least
	expect 0 longpole graph p.lpt
	sed -n 's/.*label="\([^\\"]*\).*shape=ellipse, fillcolor="#ff\(..\).*/\2 \1/p' out | sort >ellipses
	[[ $(head -n 1 ellipses) == ??" $stage2" ]] || { cat ellipses >&2; fail "$stage2 is not the reddest"; }
}

test_graph_limits() {
	expect 0 longpole graph --view=states --format=text --max-nodes=3 "$trace"
	has out 'Left out (--max-nodes shows more)' 'of the critical path'
	expect 0 longpole graph --view=states --format=text -n 2 "$trace"
	has out 'more (--all shows them)'
	expect 0 longpole graph --view=states --format=json --max-nodes=3 "$trace"
	cp out small.json
	longpole graph --view=states --json "$trace" >all.json
	local sums='([.result.edges[].path_ns] | add // 0) + .result.left_out.path_ns'
	(($(jq "$sums" small.json) == $(jq "$sums" all.json))) || fail "the path's time is not conserved"
	sums='([.result.edges[] | select(.visits) | .visits] | add // 0) + .result.left_out.visits'
	(($(jq "$sums" small.json) == $(jq "$sums" all.json))) || fail "visits are not conserved"
}
