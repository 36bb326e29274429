# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # $work comes from run.sh
# platform.sh - longpole platform: the examples, what limits each of them, what a mistake is told.

# simulate NAME SETTING... - the example into NAME.lpt; a tenth of the size is enough here.
simulate() {
	local name=$1 app=gensink settings=() setting
	shift
	[[ $name != web* ]] || app=web
	for setting in "$app.transfer_bytes=6000000" "$@"; do settings+=("--set=$setting"); done
	expect 0 longpole platform -o "$name.lpt" "${settings[@]}" "$LONGPOLE_SOURCE/examples/platform/$name.conf"
}
# limits NAME STATE - the longest state of the path is that one.
limits() {
	expect 0 longpole report --json "$1.lpt"
	is_json out ".result.explained_share >= 0.99 and (.diagnostics | length) == 0"
	[[ $(jq -r '.result.path[0].state' out) == "$2" ]] || fail "$1: $(jq -r '.result.path[0].state' out), not $2"
}

test_platform_link_bound() { simulate tcp-1; limits tcp-1 'tx line: transmit'; }
test_platform_bus_bound() { simulate tcp-3; limits tcp-3 'tx send dma: dma packet'; }
test_platform_bus_bound_udp() { simulate udp-x1; limits udp-x1 'tx send dma: dma packet'; }
test_platform_copy_bound() { simulate tcp-4; limits tcp-4 'tx sender: copy from user'; }
test_platform_receiver_bound() { simulate copy-none; limits copy-none 'rx receiver: copy to user'; }
test_platform_engine_bound() { simulate copy-behind; limits copy-behind 'rx copy engine: copy'; }

# The window limits: most of the path is on the cable, to and fro, and more window is more bandwidth.
test_platform_window_bound() {
	simulate tcp-2
	local slow fast
	expect 0 longpole report --json tcp-2.lpt
	is_json out '[.result.path[] | select(.state | test("hand-off of queue .. cable")) | .share] | add > 0.7'
	slow=$(longpole platform --json "$LONGPOLE_SOURCE/examples/platform/tcp-2.conf" | jq .result.goodput_mbps)
	fast=$(longpole platform --json --set=tx.sndbuf_bytes=400000 "$LONGPOLE_SOURCE/examples/platform/tcp-2.conf" | jq .result.goodput_mbps)
	jq -en "$fast > 1.2 * $slow" >/dev/null || fail "$slow Mb/s, with a larger buffer $fast"
}

# What was predicted happens: a link ten times as fast.
test_platform_prediction() {
	simulate tcp-1
	longpole whatif --json tcp-1.lpt link-rate tx=x10 ignore-queue bus >predicted || fail "whatif"
	simulate tcp-2
	longpole report --json tcp-2.lpt >reached || fail "report"
	local error
	error=$(jq -s '(.[0].result.scenarios[0].predicted_ns / .[1].result.elapsed_ns - 1) | fabs' predicted reached)
	jq -en "$error < 0.1" >/dev/null || fail "error of the prediction: $error"
}

# From the link to the copy, three bottlenecks on, by path: the sender's processor, for which nobody waited in the run, is never free.
test_platform_pool_bound() {
	simulate tcp-1 gensink.transfer_bytes=20000000
	longpole whatif --json --method=path tcp-1.lpt scale 'tx line: transmit=x0.1' unbound-queue 'tx sndbuf' \
		scale 'tx send dma: dma packet=-75%' >predicted || fail "whatif"
	is_json predicted '.result.scenarios[0].pool_never_free | test("tx processor")'
	simulate tcp-4 gensink.transfer_bytes=20000000
	longpole report --json tcp-4.lpt >reached || fail "report"
	local error
	error=$(jq -s '(.[0].result.scenarios[0].predicted_ns / .[1].result.elapsed_ns - 1) | fabs' predicted reached)
	jq -en "$error < 0.05" >/dev/null || fail "error of the prediction: $error"
}

# A cable twice as long, where the window limits; and a link that the trace does not have.
test_platform_link_latency() {
	simulate tcp-2 l0.delay_us=300
	longpole whatif --json tcp-2.lpt link-latency cable=x2 >predicted || fail "whatif"
	simulate tcp-2 l0.delay_us=600
	longpole report --json tcp-2.lpt >reached || fail "report"
	local error
	error=$(jq -s '(.[0].result.scenarios[0].best.predicted_speedup * .[1].result.elapsed_ns / .[0].result.elapsed_ns - 1) | fabs' predicted reached)
	jq -en "$error < 0.05" >/dev/null || fail "error of the prediction: $error"
	expect 2 longpole whatif tcp-2.lpt link-rate backbone=x10
	has err 'no link of this trace'
	expect 2 longpole whatif tcp-2.lpt link-rate tx=-100%
	has err "link-rate 'LINK'=x10"
}

# The kernel's error of seed 000 section 6.2.1: without it the same platform is faster.
test_platform_kernel_error() {
	simulate udp-x4
	expect 0 longpole report --full udp-x4.lpt
	has out 'tx sender: ip defragment'
	simulate udp-x4 tx.netfilter_defrag=0
	expect 0 longpole report --full udp-x4.lpt
	! grep -q 'tx sender: ip defragment' out || fail "still puts fragments together"
}

test_platform_web() {
	simulate web-1
	has out 'web 4: ' ' files'
	simulate web-2
	simulate web-3
	expect 0 longpole queues web-3.lpt
}

test_platform_is_deterministic() {
	simulate copy-before
	mv copy-before.lpt first.lpt
	simulate copy-before
	cmp first.lpt copy-before.lpt || fail "two runs differ"
	simulate copy-before simulation.seed=2
	! cmp -s first.lpt copy-before.lpt || fail "the seed does nothing"
}

test_platform_json() {
	local conf=$LONGPOLE_SOURCE/examples/platform/udp-x1.conf
	expect 0 longpole platform --json --set=gensink.transfer_bytes=1000000 "$conf"
	is_json out '.schema == "longpole/platform/1" and (.tool | startswith("longpole ")) and .result.trace == null'
	is_json out '.result.connections[0] | .received_bytes == 1000000 and .sent_bytes == 1000000 and .inside_bytes == 0'
	expect 0 longpole platform --json --list-parameters
	is_json out '.result.parameters | length > 50 and all(.unit != "" and .source != "" and .least <= .default)'
}

test_platform_mistakes() {
	expect 2 longpole platform
	has err 'give one configuration'
	expect 4 longpole platform nothing.conf
	has err 'nothing.conf'
	printf '[system tx]\nbus_gpbs = 2\n' >bad.conf
	expect 2 longpole platform bad.conf
	has err "bad.conf:2" "'bus_gpbs'" "'bus_gbps'"
	expect 2 longpole platform --set=tx.bus_gbps "$LONGPOLE_SOURCE/examples/platform/tcp-1.conf"
	has err 'section.key=value'
	expect 2 longpole platform --set=xx.bus_gbps=1 "$LONGPOLE_SOURCE/examples/platform/tcp-1.conf"
	has err "'xx'"
	expect 2 longpole platform --seed=many "$LONGPOLE_SOURCE/examples/platform/tcp-1.conf"
	has err 'seed' 'many'
}

# A lossy link: the path is the timeouts.
test_platform_losses() {
	simulate tcp-1 l0.loss_percent=3
	limits tcp-1 'hand-off of queue tx lost segments'
	expect 0 longpole platform --json --set=l0.loss_percent=1 --set=gensink.transfer_bytes=6000000 "$LONGPOLE_SOURCE/examples/platform/tcp-1.conf"
	is_json out '.result.dropped_packets > 0 and .result.resent_packets > 0'
	expect 2 longpole platform --set=l0.loss_percent=99 "$LONGPOLE_SOURCE/examples/platform/tcp-1.conf"
	has err loss_percent
}
