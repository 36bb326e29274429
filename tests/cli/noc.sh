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

# What is offered counts replies, as what is accepted does.
test_noc_replies() {
	expect 0 longpole noc sim --json reply=1 load=0.03 warmup_cycles=1000 measure_cycles=4000
	is_json out '.result | (.offered_flits_node_cycle - 0.15 | fabs) < 1e-9 and (.accepted_flits_node_cycle / 0.15 - 1 | fabs) < 0.05'
	expect 0 longpole noc sim reply=1 load=0.1 warmup_cycles=1000 measure_cycles=2000
	has out 'Saturated: of 0.5 flits a node and cycle (requests and replies) '
}

test_noc_sim_saturated() {
	expect 0 longpole noc sim k=4 load=1 warmup_cycles=2000 measure_cycles=4000
	has out 'Saturated: '
	expect 0 longpole noc sim --saturation --json k=4 warmup_cycles=2000 measure_cycles=3000
	is_json out '.result | .saturation_load_flits_node_cycle > 0.5 and .saturation_load_flits_node_cycle < 0.6'
}

# The same packets over links twice as wide: half as busy; and of no use with slow allocation.
test_noc_width() {
	local common=(k=4 load=0.3 packet_flits=4 buffer_flits=32 warmup_cycles=1000 measure_cycles=3000)
	expect 0 longpole noc sim --json "${common[@]}"
	cp out one
	expect 0 longpole noc sim --json "${common[@]}" link_flits=2 node_flits=2
	jq -s '[.[].result.link_busy_share]' one out >both
	is_json both '.[1] / .[0] | . > 0.49 and . < 0.51'
	jq -s '[.[].result.zero_load_cycles]' one out >both
	is_json both '.[0] - .[1] | . > 1.99 and . < 2.01'
	expect 2 longpole noc sim k=4 link_flits=2 link_flit_cycles=2
	has err 'not both'
	expect 2 longpole noc sim k=4 link_flits=2 sw_alloc_delay=2
	has err 'delays of one cycle'
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
	has err "'simulate' is none of: sim "
	expect 4 longpole noc sim topology=graph graph=/nonexistent
}

test_noc_parameters() {
	expect 0 longpole noc --list-parameters --json
	is_json out '[.result.parameters[] | select(.key == "topology") | .words[].word] | index("flatfly") != null'
	expect 0 longpole noc gen --list-parameters --json
	is_json out '.schema == "longpole/parameters/1" and (.result.patterns | length == 11) and (.result.parameters | all(.least <= .default and .default <= .most))'
	expect 0 longpole noc
	has out 'noc sim '
}

short=(warmup_cycles=500 measure_cycles=1000)

test_sweep() {
	local spec=$LONGPOLE_SOURCE/examples/noc/sweep.ini
	expect 0 longpole sweep --json --csv a.csv --svg a.svg "$spec" "${short[@]}" 'load=0.1 0.2'
	is_json out '.result | .simulated == 12 and .known == 0 and .failed == 0 and (.points | length) == 12'
	is_json out '[.result.points[].values.latency_cycles] | min > 20'
	[[ $(wc -l <a.csv) == 13 ]] || fail "CSV has $(wc -l <a.csv) lines"
	head -2 a.csv | tail -1 | grep -q '^grids,latency,mesh,8,2,' || fail "CSV: $(head -2 a.csv)"
	grep -q '</svg>' a.svg || fail "no picture"
	[[ $(grep -c 'class="line"' a.svg) == 12 ]] || fail "not two diagrams of six lines"
	# A wider one does only what is new, and the old answers are the same.
	jq -S '.result.points[0].values' out >before
	expect 0 longpole sweep --json -j 1 "$spec" "${short[@]}" 'load=0.1..0.3/0.1'
	is_json out '.result | .simulated == 6 and .known == 12'
	jq -S '.result.points[0].values' out >after
	cmp -s before after || fail "the answer has changed: $(diff before after)"
	expect 0 longpole sweep --dry-run "$spec" "${short[@]}" 'load=0.1..0.4/0.1'
	has out '24 simulations, 6 of them to do'
}

# The point of a sweep is the simulation by hand.
test_sweep_is_the_same() {
	printf '[a]\ntopology = torus\nk = 4\nload = 0.2\n[b]\nk = 3\ntraffic = transpose\n[c]\nk = 4\nmeasure = saturation\n' >spec.ini
	expect 0 longpole sweep --json spec.ini "${short[@]}"
	is_json out '.result.failed == 1 and (.result.points[1].error | test("power of four"))'
	is_json out '.result.points[2].values.saturation_load_flits_node_cycle > 0.4'
	local swept
	swept=$(jq '.result.points[0].values.latency_cycles' out)
	expect 0 longpole noc sim --json topology=torus k=4 load=0.2 "${short[@]}"
	is_json out ".result.latency_cycles.mean == $swept"
	expect 2 longpole sweep spec.ini measure=speed
	expect 2 longpole sweep spec.ini nothing=1
	has err "no parameter 'nothing'"
	expect 2 longpole sweep spec.ini 'topology=mesh, torus'
	has err 'spaces between its values'
	expect 4 longpole sweep /nonexistent
	expect 4 longpole sweep -o /nonexistent/x spec.ini
}

test_sweep_mpi() {
	command -v mpirun >/dev/null || skip "no mpirun (Debian package openmpi-bin)"
	[[ -f $LONGPOLE_BUILD/src/cmd/liblongpole-mpi.so ]] || skip "built without MPI"
	printf '[a]\ntopology = mesh torus\nk = 4\nload = 0.1..0.4/0.1\n' >spec.ini
	local ranks=(mpirun --allow-run-as-root --oversubscribe -n)
	OMPI_MCA_btl=self,vader OMPI_MCA_plm=isolated timeout 60 "${ranks[@]}" 3 "$LONGPOLE" sweep --mpi --json -o mpi.sqlite spec.ini "${short[@]}" >out 2>err ||
		skip "mpirun cannot start here: $(tail -3 err | tr '\n' ' ')"
	is_json out '.result.simulated == 8 and .result.failed == 0'
	jq -S '.result.points' out >by_mpi
	expect 0 longpole sweep --json spec.ini "${short[@]}"
	jq -S '.result.points' out | cmp -s - by_mpi || fail "MPI answers something else"
}

# What is not a file is written to, and stays what it is; a file appears whole.
test_sweep_output() {
	printf '[a]\nk = 4\nload = 0.1\nseed = 1 2\n' >spec.ini
	expect 0 longpole sweep --dry-run spec.ini "${short[@]}"
	has out '2 simulations, 2 of them to do' 'seed=2'
	[[ ! -e sweep.sqlite ]] || fail "--dry-run made a database"
	ln -s there.csv link.csv
	expect 0 longpole sweep --csv link.csv spec.ini "${short[@]}"
	has out 'seed=1 ' 'seed=2 '
	[[ -L link.csv && $(wc -l <there.csv) == 3 ]] || fail "a link was replaced"
	mkfifo pipe.csv
	cat pipe.csv >read.csv &
	expect 0 longpole sweep --csv pipe.csv spec.ini "${short[@]}"
	wait $!
	cmp -s there.csv read.csv || fail "the pipe brought something else"
	[[ -p pipe.csv ]] || fail "a pipe was replaced"
	# Answers of another version are not ours.
	command -v sqlite3 >/dev/null || return 0
	sqlite3 sweep.sqlite "UPDATE runs SET tool = 'longpole 0'"
	expect 0 longpole sweep --json spec.ini "${short[@]}"
	is_json out '.result.simulated == 2 and .result.known == 0'
}

# What was not measured has no mean: 0.00 would be one.
test_noc_no_packet() {
	local load
	for load in load=0 load=1e-9 'load=0 reply=1'; do
		# shellcheck disable=SC2086 # two operands
		expect 0 longpole noc sim topology=mesh k=4 $load "${short[@]}"
		has out 'No packet was measured' 'network latency     - cycles' 'quantiles           -'
		! grep -q ' 0\.00 cycles\|0\.0 pJ' out || fail "$load: a mean of nothing: $(cat out)"
		# shellcheck disable=SC2086
		expect 0 longpole noc sim --json k=4 $load "${short[@]}"
		is_json out '.result | .packets == 0 and .latency_cycles.mean == null and .network_latency_cycles.mean == null and .hops_routers == null and .zero_load_cycles == null'
	done
	expect 0 longpole noc sim --json k=4 load=0.1 classes=2 "${short[@]}"
	is_json out '.result | .latency_cycles.mean > 10 and .energy_pj_flit > 0'
	expect 2 longpole noc sim --saturation k=2 measure_cycles=10 warmup_cycles=0 packet_flits=8 buffer_flits=8 seed=3
	has err 'no packet was measured' 'measure_cycles'
	printf '[a]\nk = 4\nload = 0 0.1\nseed = 1 2\n' >spec.ini
	expect 0 longpole sweep --csv a.csv --svg a.svg spec.ini "${short[@]}"
	has out '- no packet was measured'
	! grep -q 'nan' out a.csv a.svg || fail 'nan is no answer'
	expect 0 longpole sweep --json spec.ini "${short[@]}"
	is_json out '[.result.points[] | select(.parameters.load == "0") | .values | has("latency_cycles")] == [false, false]'
}
