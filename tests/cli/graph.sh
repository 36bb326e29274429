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

# Three stages and two pipes: who hands to whom, and the slow stage is the path.
test_graph_of_a_pipeline() {
	expect 0 longpole record -q -o p.lpt "$LONGPOLE_BUILD/tests/target/pipeline" --blocks=400
	expect 0 longpole graph --json p.lpt
	cp out g.json
	# the reddest actor is one stage, with most of the path
	is_json g.json '.result as $r | [$r.nodes[] | select(.kind == "actor")] | max_by(.path_ns) | .path_ns > 0.6 * $r.elapsed_ns'
	# it takes from one pipe, which another fills, and fills one, from which a third takes
	is_json g.json '.result as $r
		| ([$r.nodes[] | select(.kind == "actor")] | max_by(.path_ns) | .node) as $slow
		| [$r.nodes[] | select(.kind == "queue" and .type == "pipe") | .node] as $pipes
		| ($pipes | length) == 2
		and ([$r.edges[] | select(.kind == "take" and .to == $slow) | .from] | length == 1 and (.[0] as $p | $pipes | index($p)) != null)
		and ([$r.edges[] | select(.kind == "put" and .from == $slow) | .to] | length == 1 and (.[0] as $p | $pipes | index($p)) != null)'
	is_json g.json '.result as $r
		| ([$r.nodes[] | select(.kind == "actor")] | max_by(.path_ns) | .node) as $slow
		| ([$r.edges[] | select(.kind == "take" and .to == $slow) | .from][0]) as $in
		| ([$r.edges[] | select(.kind == "put" and .from == $slow) | .to][0]) as $out
		| $in != $out
		and ([$r.edges[] | select(.kind == "put" and .to == $in)] | length == 1 and .[0].from != $slow and .[0].waits > 10)
		and ([$r.edges[] | select(.kind == "take" and .from == $out)] | length == 1 and .[0].to != $slow and .[0].waits > 10)'
	# in DOT the slow stage is the reddest ellipse there is
	expect 0 longpole graph p.lpt
	(($(grep -c 'shape=ellipse, fillcolor="#ff4c4c"' out) == 1)) || fail "not one reddest ellipse"
	# its states: computing is the heaviest line
	expect 0 longpole graph --view=states --format=text p.lpt
	sed -n 3p out | grep -q 'running stage2_work' || { cat out >&2; fail "stage2_work is not the heaviest"; }
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
