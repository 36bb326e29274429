# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $work comes from run.sh
# noc.sh - longpole noc sim: answers, JSON, what a mistake is told.

test_noc_sim() {
	expect 0 longpole noc sim k=4 load=0.1 warmup_cycles=2000 measure_cycles=5000 --histogram --links
	has out 'Mean packet latency 19.'
	has out 'links: from router'
	expect 0 longpole noc sim --json k=4 load=0.1 warmup_cycles=2000 measure_cycles=5000
	is_json out '.schema == "longpole/noc-sim/1" and (.result.saturated | not) and .result.nodes == 16'
	is_json out '.result | .latency_cycles.mean > .zero_load_cycles and .latency_cycles.half_width_95 > 0'
	is_json out '.result | ([.histogram[].packets] | add) == .packets and (.links | length) == 48'
	cp out first
	expect 0 longpole noc sim --json k=4 load=0.1 warmup_cycles=2000 measure_cycles=5000
	cmp -s out first || fail "the same simulation gave something else"
}

test_noc_sim_saturated() {
	expect 0 longpole noc sim k=4 load=1 warmup_cycles=2000 measure_cycles=4000
	has out 'Saturated: '
	expect 0 longpole noc sim --saturation --json k=4 warmup_cycles=2000 measure_cycles=3000
	is_json out '.result | .saturation_load_flits_node_cycle > 0.5 and .saturation_load_flits_node_cycle < 0.6'
}

test_noc_config_file() {
	printf '[network]\ntopology = torus\nk = 4\n[traffic]\nload = 0.3\n' >net.ini
	expect 0 longpole noc sim --json -c net.ini load=0.05 warmup_cycles=1000 measure_cycles=2000
	is_json out '.result.config.topology == "torus" and .result.offered_flits_node_cycle == 0.05'
	printf 'topology = donut\n' >net.ini
	expect 2 longpole noc sim -c net.ini
	has err 'net.ini, line 1'
	expect 2 longpole noc sim lod=1
	has err "nearest is 'load'"
	expect 2 longpole noc sim topology=torus vcs=1
	has err 'needs 2 virtual channels'
	expect 2 longpole noc simulate
	has err "no verb 'simulate'"
	expect 4 longpole noc sim topology=graph graph=/nonexistent
}

test_noc_parameters() {
	expect 0 longpole noc --list-parameters --json
	is_json out '[.result.parameters[] | select(.key == "topology") | .words[].word] | index("flatfly") != null'
	expect 0 longpole noc
	has out 'longpole noc sim'
}
