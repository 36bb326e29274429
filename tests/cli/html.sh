# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $trace comes from run.sh
# html.sh - pages: report --html, view, diff's renderings. What a browser makes of them: tests/e2e.

# The document inside a page.
page_data() { sed -n 's/^<script type="application\/json" id="data">\(.*\)<\/script>$/\1/p' "$1"; }

test_report_html() {
	expect 0 longpole report --html=a.html "$trace"
	[[ ! -s out && ! -e a.html.part ]] || fail "something else was written"
	has err 'wrote a.html'
	has a.html "Content-Security-Policy" "default-src 'none'" '<p class=finding>' '<svg class=timeline' 'ladder_mutex'
	page_data a.html >a.json
	is_json a.json '.schema == "longpole/page/1" and .answer.finding != "" and (.timeline.tiles | has("0/0"))'
	is_json a.json '.timeline.path_ns == .timeline.end_ns - .timeline.start_ns'
	longpole report --json "$trace" >r.json || fail "report --json"
	jq -es '.[0].answer.finding == .[1].result.finding' a.json r.json >/dev/null || fail "another finding than report's"
	expect 0 longpole report -q --html=b.html "$trace"
	cmp -s a.html b.html || fail "two pages of one trace differ"
	[[ ! -s err ]] || fail "-q is not quiet"
}

test_report_html_window() {
	expect 0 longpole report --html=a.html --from=30% --to=60% "$trace"
	page_data a.html >a.json
	is_json a.json '.timeline.end_ns - .timeline.start_ns <= .answer.elapsed_ns + 1 and .trace.window.from_ns > 0'
}

# A shell's child executes another program: the lane of its first image ends there, and does not go on "starting" beside it.
test_page_replaced_image() {
	expect 0 longpole record -q -o r.lpt sh -c '(exec sleep 0.3); exit 0'
	expect 0 longpole report --html=r.html r.lpt
	page_data r.html >r.json
	is_json r.json '(.timeline | .end_ns - .start_ns) > 250000000'
	is_json r.json '[.timeline.states[] | select(.kind == "start") | .total_ns] | add < 250000000'
}

test_report_html_refuses() {
	expect 2 longpole report --html=a.html --json "$trace"
	expect 4 longpole report --html=/nonexistent/a.html "$trace"
	[[ ! -e a.html ]] || fail "left a file"
}

test_page_of_nothing() {
	expect 0 longpole report --html=a.html "$LONGPOLE_SOURCE/tests/golden/empty.lpt"
	has a.html 'There is no answer for this trace'
}

test_view() {
	cp "$trace" x.lpt
	DISPLAY= WAYLAND_DISPLAY= expect 0 longpole view x.lpt
	[[ $(cat out) == "$(realpath x.html)" ]] || fail "said: $(cat out)"
	has x.html '<p class=finding>'
	# a display: the browser is asked, and told which file
	mkdir fake
	printf '#!/bin/sh\nprintf "%%s" "$1" >asked\n' >fake/xdg-open
	chmod +x fake/xdg-open
	PATH=$PWD/fake:$PATH DISPLAY=:9 expect 0 longpole view -o y.html x.lpt
	[[ $(cat asked) == y.html ]] || fail "xdg-open was not asked"
	rm asked
	PATH=$PWD/fake:$PATH DISPLAY=:9 expect 0 longpole view --no-open x.lpt
	[[ ! -e asked ]] || fail "--no-open opened it"
}

test_diff_renderings() {
	expect 0 longpole diff --html=d.html --junit=d.xml --fail-on=elapsed=+5% "$trace" -- "$trace"
	has d.html "default-src 'none'" 'length of the run' '<svg' 'within the budget: elapsed=+5%'
	has d.xml '<testsuite name="longpole diff" tests="1" failures="0"' 'name="elapsed=+5%"'
	# another program altogether: longer or shorter, one of the two budgets is exceeded
	expect 0 longpole platform -o tcp.lpt --set=gensink.transfer_bytes=200000 "$LONGPOLE_SOURCE/examples/platform/tcp-1.conf"
	expect 1 longpole diff --html=d.html --junit=d.xml --fail-on=elapsed=-5% --fail-on=elapsed=+5% "$trace" -- tcp.lpt
	has d.xml 'tests="2" failures="1"' '<failure type="budget" message="length of the run: '
	has d.html 'over the budget: elapsed=' 'within the budget: elapsed='
	has err 'over the budget: elapsed='
	! command -v xmllint >/dev/null || xmllint --noout d.xml || fail "not XML"
	expect 0 longpole diff --markdown --label='a|b' --label='<b>' "$trace" -- "$trace"
	has out '| length of the run |' 'a\|b' '&#60;b&#62;'
	expect 2 longpole diff --markdown --json "$trace" -- "$trace"
	# what the path is made of
	longpole diff --json "$trace" -- "$trace" >d.json
	is_json d.json '[.result.quantities[].key | select(startswith("state:"))] | length > 0'
	expect 0 longpole diff --fail-on='state:holding mutex ladder_mutex=+5%' "$trace" -- "$trace"
}

test_report_html_with() {
	echo '{"schema": "longpole/ciat/1", "result": {"threads": 1}}' >c.json
	expect 0 longpole report --html=a.html --with=c.json "$trace"
	page_data a.html >a.json
	is_json a.json '.attached == {"ciat": {"threads": 1}}'
	echo '{"schema": "longpole/path/1", "result": {}}' >c.json
	expect 2 longpole report --html=b.html --with=c.json "$trace"
	echo '{' >c.json
	expect 2 longpole report --html=b.html --with=c.json "$trace"
	expect 2 longpole report --with=c.json "$trace"
	expect 4 longpole report --html=b.html --with=nothing.json "$trace"
	[[ ! -e b.html ]] || fail "left a file"
}
