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

# What JSON-RPC 2.0 says of messages that are none, or that nobody waits for.
test_mcp_messages_that_are_none() {
	local ping='{"jsonrpc":"2.0","id":2,"method":"ping"}'
	printf '%s\n' '' "  " '{"id":1,"method":"ping"}' '{"jsonrpc":"2.0","id":null,"method":"ping"}' '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}' \
		'{"jsonrpc":"2.0","id":1,"result":{}}' '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}' '{"jsonrpc":"2.0","method":"notifications/any"}' '7' >in
	printf '{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n{"jsonrpc":"2.0","id":1,"method":"ping"}\0junk\n%s\r\n%s' "$ping" "$ping" >>in # (the last line has no end)
	longpole mcp <in >out 2>err || fail "exit status $?"
	[[ $(jq -c '[.id, .error.code]' out | tr '\n' ' ') == "[1,-32600] [null,-32600] [null,-32600] [null,-32600] [null,-32700] [null,-32700] [2,null] [2,null] " ]] ||
		fail "$(cat out)"
}

test_mcp_a_message_that_is_too_long() {
	{
		head -c 20000000 /dev/zero | tr '\0' a
		printf '\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
		head -c 20000000 /dev/zero | tr '\0' a
	} >in
	longpole mcp <in >out 2>err || fail "exit status $?"
	[[ $(jq -c '[.id, .error.code]' out | tr '\n' ' ') == "[null,-32600] [2,null] [null,-32600] " ]] || fail "$(head -c 1000 out)"
}

# JSON-RPC 2.0, section 6.
test_mcp_batches() {
	local ping='{"jsonrpc":"2.0","id":2,"method":"ping"}' told='{"jsonrpc":"2.0","method":"notifications/any"}'
	ask "[$ping,$told,1,{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"no/such\"}]" "[$told]" '[]' "$ping"
	[[ $(jq -c 'if type == "array" then [.[] | [.id, .error.code]] else [.id, .error.code] end' out | tr '\n' ' ') == \
		"[[2,null],[null,-32600],[3,-32601]] [null,-32600] [2,null] " ]] || fail "$(cat out)"
}

# Every schema is one by the draft that the protocol names, and what a tool answers is what its schema says.
test_mcp_schemas_are_schemas() {
	python3 -c 'from jsonschema import Draft202012Validator' 2>/dev/null || skip "no python3-jsonschema of 4.0 or later"
	ask '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' "$(call 2 path "{\"trace\":\"$trace\"}")" "$(call 3 locks "{\"trace\":\"$trace\"}")"
	python3 - <<'PYTHON' || fail "see above"
import json
from jsonschema import Draft202012Validator as validator
tools, *answers = (json.loads(line)["result"] for line in open("out"))
tool = {t["name"]: t for t in tools["tools"]}
assert len(tool) > 15
for t in tool.values():
    for schema in (t["inputSchema"], t.get("outputSchema", {})):
        validator.check_schema(schema)
for name, answer in zip(("path", "locks"), answers):
    check = validator(tool[name]["outputSchema"])
    check.validate(answer["structuredContent"])
    assert not check.is_valid({**answer["structuredContent"], "schema": "another"})
PYTHON
}

# Its client waits for no answer any more. Meanwhile the server says that it is there.
test_mcp_ends_a_call_that_is_cancelled() {
	local pid
	mkfifo in
	longpole mcp <in >out 2>err &
	pid=$!
	exec 9>in
	printf '%s\n' "$(call 1 record '{"program":["sleep","1000"],"output":"s.lpt"}')" '{"jsonrpc":"2.0","id":"there","method":"ping"}' "$(call 2 record '{"program":["true"],"output":"t.lpt"}')" >&9
	until grep -q '"there"' out; do sleep 0.1; done
	printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}' '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}' \
		'{"jsonrpc":"2.0","id":3,"method":"tools/list"}' >&9
	exec 9>&-
	timeout 60 tail --pid=$pid -f /dev/null || fail "it goes on"
	[[ $(jq -c .id out | tr '\n' ' ') == '"there" 2 3 ' ]] || fail "$(cat out)"
}

# Ended all the same: a program that takes no notice.
test_mcp_ends_what_takes_no_notice() {
	local pid
	mkfifo in
	longpole mcp <in >out 2>err &
	pid=$!
	exec 9>in
	printf '%s\n' "$(call 1 record '{"program":["sh","-c","trap \"\" TERM; touch begun; while :; do sleep 1; done"],"output":"s.lpt"}')" >&9
	until [[ -e begun ]]; do sleep 0.1; done
	printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}' '{"jsonrpc":"2.0","id":3,"method":"tools/list"}' >&9
	exec 9>&-
	timeout 60 tail --pid=$pid -f /dev/null || fail "it goes on"
	[[ $(jq -c .id out) == 3 ]] || fail "$(cat out)"
}
