# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# longpole mcp: commands as tools, by JSON-RPC on standard input and output.

# ask MESSAGE... - one server's answers, a line each, in `out`.
ask() {
	printf '%s\n' "$@" | longpole mcp ${mcp_option:-} >out 2>err || fail "exit status $?: $(cat err)"
}
call() { # ID TOOL ARGUMENTS
	printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s}}' "$1" "$2" "$3"
}

test_mcp_begins() {
	ask '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
		'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
		'{"jsonrpc":"2.0","id":"two","method":"ping"}' \
		'{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}'
	[[ $(wc -l <out) == 3 ]] || fail "$(wc -l <out) answers to three requests and a notification"
	is_json <(sed -n 1p out) '.id == 1 and .result.protocolVersion == "2025-03-26" and .result.capabilities.tools'
	is_json <(sed -n 2p out) '.id == "two" and .result == {}'
	is_json <(sed -n 3p out) '.result.protocolVersion == "2025-06-18"'
}

test_mcp_tools_have_the_options_of_their_commands() {
	ask '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
	is_json out '[.result.tools[].name] | contains(["record", "report", "whatif", "diff"])'
	is_json out '.result.tools[] | select(.name == "record") | .inputSchema.required == ["program"] and .annotations.readOnlyHint == false'
	is_json out '.result.tools[] | select(.name == "queues") | .inputSchema.properties | has("limit") and has("trace") and (has("json") | not)'
	is_json out '.result.tools[] | select(.name == "queues") | .outputSchema.properties.schema.const == "longpole/queues/1"'
	mcp_option=--read-only ask '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
	is_json out '[.result.tools[] | select(.annotations.readOnlyHint | not)] == []'
	mcp_option=--read-only ask "$(call 1 record '{"program":["true"]}')"
	is_json out '.error.code == -32602'
}

test_mcp_answers_what_json_prints() {
	longpole queues --json --limit=1 "$trace" >direct 2>/dev/null
	ask "$(call 7 queues "{\"trace\":\"$trace\",\"limit\":1}")"
	is_json out '.id == 7 and .result.isError == false'
	[[ $(jq -S .result.structuredContent out) == "$(jq -S . direct)" ]] || fail "the tool's answer is not the command's"
	ask "$(call 8 whatif "{\"trace\":\"$trace\",\"operands\":[\"#1=-50%\"]}")"
	is_json out '.result.structuredContent.result.scenarios | length == 1'
}

test_mcp_records_and_stays_a_protocol() {
	ask "$(call 1 record '{"program":["sh","-c","echo {; echo noise >&2"],"output":"made.lpt"}')" "$(call 2 report '{"trace":"made.lpt"}')"
	[[ $(wc -l <out) == 2 ]] || fail "the program's output is among the messages"
	is_json <(sed -n 1p out) '[.result.content[].text] | join("") | contains("{") and contains("noise")'
	is_json <(sed -n 2p out) '.result.isError == false and .result.structuredContent.schema == "longpole/report/1"'
}

test_mcp_refuses_what_is_wrong() {
	ask '{' '[]' '{"jsonrpc":"2.0","id":1,"method":"no/such"}' "$(call 2 nothing '{}')" "$(call 3 queues '{"bogus":1}')" \
		"$(call 4 queues '{"limit":true}')" "$(call 5 queues '{"operands":["--html=/x"]}')" "$(call 6 record '{}')" \
		"$(call 7 queues '{"trace":"/nonexistent.lpt"}')" "$(call 8 queues '{"directory":"/nonexistent"}')" "$(call 9 queues '[]')"
	[[ $(jq -c '.error.code // .result.isError' out | tr '\n' ' ') == \
		"-32700 -32600 -32601 -32602 -32602 -32602 -32602 -32602 true true -32602 " ]] || fail "$(cat out)"
}

test_mcp_ends_a_call_that_is_cancelled() {
	local pid
	mkfifo in
	longpole mcp <in >out 2>err &
	pid=$!
	exec 9>in
	printf '%s\n' "$(call 1 record '{"program":["sleep","1000"],"output":"s.lpt"}')" >&9
	sleep 1
	printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}' '{"jsonrpc":"2.0","id":2,"method":"ping"}' >&9
	exec 9>&-
	timeout 60 tail --pid=$pid -f /dev/null || fail "it goes on"
	is_json <(tail -n 1 out) '.id == 2 and .result == {}'
}
