# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # $work comes from run.sh
# noc_graph.sh - longpole noc gen, sample, infer, match, replay, compare, closed, import, export.

# The way from a graph to its copy: what is inferred finds the reference, and predicts it.
test_noc_infer() {
	expect 0 longpole noc gen -o ref.lpt pattern=central nodes=16 packets=8000 hot_node=5
	has out 'central: 8,000 packets of 16 nodes'
	expect 0 longpole noc sample -o run ref.lpt runs=4
	expect 0 longpole noc infer --json -o inferred.lpt run-{0,1,2,3,4}.lpt reference=ref.lpt
	is_json out '.result.base_moved == 0 and .result.base_execution_error == 0'
	is_json out '.schema == "longpole/noc-infer/1" and .result.reference.found_share >= 0.99 and .result.reference.quasi_per_true <= 0.02'
	expect 0 longpole noc infer --json -o literal.lpt run-{0,1,2,3,4}.lpt reference=ref.lpt method=literal
	is_json out '.result.method == "literal" and .result.reference.found_share < 0.9'
	expect 0 longpole noc compare --json ref.lpt inferred.lpt literal.lpt
	is_json out '[.result.rows[].network] | unique == ["fattree", "ideal", "mesh", "ring", "torus"]'
	is_json out '[.result.rows[] | select(.replay == "inferred.lpt") | .execution_error | fabs] | max < 0.02'
	is_json out '[.result.rows[] | select(.replay == "time stamps" and .network == "ring") | .execution_error | fabs] | max > 0.05'
	is_json out '[.result.rows[] | select(.network == "ideal") | .execution_error] | all(. == 0)'
	expect 0 longpole noc compare ref.lpt inferred.lpt on=mesh
	has out 'Time stamps alone miss' 'inferred.lpt'
	expect 0 longpole dump inferred.lpt
	has out noc_packet noc_gate noc_dependency
	expect 2 longpole noc infer run-0.lpt ref.lpt
	has err 'no run differs from run-0.lpt'
}

# Multicasts: dependencies on one's own copy are found; who cannot carry them says so.
test_noc_multicast() {
	expect 0 longpole noc gen --json -o ref.lpt pattern=rand multicast=0.4 receivers=3 nodes=16 packets=6000
	is_json out '.result.packets == 6000 and .result.transmits < 4000'
	expect 0 longpole noc sample -o run ref.lpt runs=3
	expect 0 longpole noc infer --json -o inferred.lpt run-{0,1,2,3}.lpt reference=ref.lpt
	is_json out '.result.reference.found_share >= 0.99 and .result.reference.quasi_per_true <= 0.02'
	expect 0 longpole noc compare --json ref.lpt inferred.lpt
	is_json out '[.result.rows[] | select(.replay == "inferred.lpt") | .execution_error | fabs] | max < 0.02'
	expect 0 longpole dump ref.lpt
	has out noc_receiver
	expect 0 longpole noc export netrace ref.lpt -o ref.tra.bz2
	has out 'receivers of multicasts'
	expect 0 longpole noc export csv ref.lpt -o ref.csv
	expect 0 longpole noc import csv ref.csv -o back.lpt
	expect 0 longpole noc compare --json ref.lpt back.lpt on=mesh
	is_json out '[.result.rows[] | select(.replay == "back.lpt")] | all(.execution_error == 0 and .latency_error == 0)'
	expect 0 longpole noc gen -o inval.lpt pattern=inval nodes=16 packets=2000
	has out 'further receivers of a multicast'
}

# A report of packets says what they waited for; who needs threads says where to go.
test_noc_report() {
	local asked
	expect 0 longpole noc gen -o ref.lpt pattern=central nodes=16 packets=3000
	expect 0 longpole report ref.lpt
	has out 'THE PATH' 'no network makes the run shorter' 'longpole noc compare ref.lpt'
	expect 0 longpole noc replay -o torus.lpt ref.lpt topology=torus k=4
	has out 'cycles on 4x4 torus'
	! grep -q CAVEAT out || fail 'as many nodes as packets have'
	expect 0 longpole noc replay ref.lpt
	has out '8x8 mesh' 'the network has 64 nodes, the packets use 16'
	expect 2 longpole noc replay ref.lpt topology=ring k=16
	has err 'topology=torus n=1'
	expect 0 longpole report --json torus.lpt
	is_json out '.schema == "longpole/packets/1" and .result.packets == 3000'
	is_json out '.result | .execution_cycles == (.path | .network_cycles + .node_cycles + .turn_cycles + .time_stamp_cycles + .rest_cycles)'
	is_json out '.result | ([.nodes[].sent_flits] | add) == 3000 and ([.nodes[].path_cycles] | add) == .execution_cycles - .path.network_cycles'
	expect 0 longpole noc sample -o run ref.lpt runs=1
	expect 0 longpole report run-0.lpt
	has out 'times only' 'longpole noc infer'
	for asked in path queues graph; do
		expect 2 longpole "$asked" ref.lpt
		has err 'no threads' "'longpole report'"
	done
	expect 0 longpole export -f ctf -o ctf ref.lpt
}

# Every part of the robust method can be switched off.
test_noc_infer_switches() {
	local off
	expect 0 longpole noc gen -o ref.lpt nodes=8 packets=2000
	expect 0 longpole noc sample -o run ref.lpt runs=2 design=links noise=1 seed=7
	has out 'delays differ by up to 1 cycle in'
	for off in blocked=0 adaptive=0 grade=0 reduce=0 learn=0 tolerance=0 tolerance=5 k=3 w=4 k_max=2; do
		expect 0 longpole noc infer run-0.lpt run-1.lpt run-2.lpt "$off"
	done
	expect 2 longpole noc infer run-0.lpt
	expect 2 longpole noc infer run-0.lpt run-1.lpt speed=3
	has err speed=3
	expect 2 longpole noc infer run-0.lpt run-1.lpt k=0
	expect 2 longpole noc sample -o x run-0.lpt
	has err 'times only'
}

# Runs that differ: one without some messages.
test_noc_match() {
	expect 0 longpole noc gen -o ref.lpt nodes=8 packets=3000
	expect 0 longpole noc sample -o run ref.lpt runs=2 design=packets
	expect 0 longpole noc export csv run-1.lpt -o whole.csv
	awk 'NR % 100 != 50' whole.csv >less.csv
	expect 0 longpole noc import csv less.csv -o less.lpt
	expect 0 longpole noc match --json -o match.csv run-0.lpt less.lpt
	is_json out '.result.matched_share > 0.98 and .result.base_only == 30 and .result.other_only == 0'
	[[ $(grep -c ',$' match.csv) == 30 ]] || fail "match.csv does not have 30 messages without a match"
	expect 0 longpole noc infer --json run-0.lpt less.lpt run-2.lpt reference=ref.lpt
	# 88 %, as from whole runs; 74 % when each pair's messages, which are all alike, are aligned by themselves
	is_json out '.result.matching.base_only == 30 and .result.reference.found_share > 0.85'
}

# Window by window: what is found of all at once; and what cannot be done so is said.
test_noc_windows() {
	expect 0 longpole noc gen -o ref.lpt nodes=8 packets=5000
	expect 0 longpole noc sample -o run ref.lpt runs=2
	expect 0 longpole noc infer --json -o whole.lpt run-0.lpt run-1.lpt run-2.lpt learn=0 tolerance=0
	whole=$(jq .result.dependencies out)
	expect 0 longpole noc infer --json -o parts.lpt run-0.lpt run-1.lpt run-2.lpt learn=0 tolerance=0 window_packets=1500
	is_json out ".result.packets == 5000 and .result.dependencies == $whole"
	expect 0 longpole noc compare --json whole.lpt parts.lpt on=ideal
	is_json out '[.result.rows[] | select(.replay == "parts.lpt") | .execution_error] == [0]'
	expect 2 longpole noc infer run-0.lpt run-1.lpt window_packets=1500 reference=ref.lpt
	expect 2 longpole noc infer run-0.lpt run-1.lpt window_packets=10
}

# What an independent reader finds in the file that we export, and what comes back.
test_noc_netrace() {
	command -v python3 >/dev/null || skip "no python3"
	expect 0 longpole noc gen -o ref.lpt pattern=tree nodes=20 packets=500
	expect 0 longpole noc export netrace ref.lpt -o ref.tra.bz2
	has out 'intrinsic delays, for which the format has no place'
	expect 0 python3 - ref.tra.bz2 <<-'PY'
		import bz2, struct, sys
		b = bz2.open(sys.argv[1]).read()
		magic, version = struct.unpack_from("<If", b)
		cycles, packets, notes, regions = struct.unpack_from("<QQII", b, 40)
		assert (magic, version, b[38], packets, regions) == (0x484A5455, 1.0, 20, 500, 1)
		at = 72 + notes
		assert struct.unpack_from("<QQQ", b, at) == (0, cycles, 500)
		at, sent, edges = at + 24, {}, 0
		waiting = []
		for number in range(packets):
		    cycle, id, address, type, src, dst, units, nr = struct.unpack_from("<QIIBBBBB", b, at)
		    assert id == number and type in (1, 2) and src < 20 and dst < 20 and cycle < cycles
		    sent[id] = (cycle, src)
		    waiting += [(dst, cycle, child) for child in struct.unpack_from(f"<{nr}I", b, at + 21)]
		    at += 21 + 4 * nr
		assert at == len(b)
		assert all(sent[child][1] == dst and sent[child][0] > cycle for dst, cycle, child in waiting)
		print("edges", len(waiting))
	PY
	expect 0 longpole noc import --json netrace ref.tra.bz2 -o back.lpt delays=inferred latency=1
	[[ $(jq .result.dependencies out) == "$(longpole dump --json ref.lpt | grep -c noc_dependency)" ]] || fail "dependencies were lost"
	expect 0 longpole noc replay --json back.lpt topology=ideal nodes=20
	is_json out '.result.packets == 500 and .result.mean_packet_latency_cycles == 1'
	printf 'UTJH and no more' >cut.tra
	expect 3 longpole noc import netrace cut.tra -o x.lpt
	has err 'not a Netrace 1.0 trace'
}

test_noc_csv() {
	expect 0 longpole noc gen -o ref.lpt nodes=9 packets=300 long_share=0.5
	expect 0 longpole noc export csv ref.lpt -o ref.csv
	expect 0 longpole noc import csv ref.csv -o back.lpt
	cmp <(longpole dump ref.lpt | grep -E ' noc_(packet|gate|dep)') <(longpole dump back.lpt | grep -E ' noc_(packet|gate|dep)') ||
		fail "CSV does not give the same graph"
	# numbers that are kept need no matching: the same answer as from our own files
	expect 0 longpole noc sample -o run ref.lpt runs=2
	for run in 0 1 2; do
		expect 0 longpole noc export csv run-$run.lpt -o run.csv
		expect 0 longpole noc import csv run.csv -o kept-$run.lpt numbers=kept
	done
	expect 0 longpole noc infer -o own.lpt run-0.lpt run-1.lpt run-2.lpt
	expect 0 longpole noc infer -o kept.lpt kept-0.lpt kept-1.lpt kept-2.lpt
	! grep -qF 'the runs differ' out || fail "numbers were not kept"
	cmp <(longpole dump own.lpt | grep -E ' noc_(packet|gate|dep)') <(longpole dump kept.lpt | grep -E ' noc_(packet|gate|dep)') ||
		fail "numbers that are kept do not give the same graph"
	expect 2 longpole noc infer run-1.lpt run-0.lpt
	has err 'no base run'
	awk -F, -v OFS=, 'NR > 1 { $1 = 0 } 1' run.csv >twice.csv
	expect 3 longpole noc import csv twice.csv -o x.lpt numbers=kept
	has err 'there twice'
	expect 0 longpole noc export booksim ref.lpt -o ref.txt
	has out 'trace(ref.txt,{'
	expect 0 longpole noc import booksim ref.txt -o text.lpt sizes=5,1
	expect 0 longpole noc replay text.lpt topology=mesh dims=3x3
	has out 'sent at their time stamps'
	echo '1 2' >bad.txt
	expect 3 longpole noc import booksim bad.txt -o x.lpt
	has err 'line 1'
	expect 2 longpole noc import tape ref.csv -o x.lpt
	expect 2 longpole noc replay ref.lpt topology=mesh dims=2x2
	has err 'the network has 4 nodes'
}

# Two threads on one line: what is known from inside predicts the loop, time stamps do not.
test_noc_closed() {
	make_smait run.2
	expect 0 longpole noc closed --json -o inferred.lpt run.2 on=ring,ideal
	is_json out '.result.threads == 2 and .result.accesses == 412 and (.result.rows | length) == 8'
	is_json out '.result.known_mean_execution_error < 0.02'
	is_json out '[.result.rows[] | select(.network == "ideal") | .execution_error] | all(. == 0)'
	is_json out '.result.base_cycles > 2'
	expect 0 longpole noc replay inferred.lpt topology=ideal nodes=2
	expect 0 longpole noc closed --json run.2 on=ring ideal_cycles=1
	is_json out '.result.base_cycles == 1 and .result.known_mean_execution_error < 0.02 and .result.stripped_mean_execution_error > 0.3'
	expect 2 longpole noc closed run.2 on=mesh
	has err 'for 2 nodes'
	expect 2 longpole noc closed run.2 on=ring,mesh
	has err "on= has no 'mesh'" 'ring, ideal'
	expect 0 longpole noc closed run.2 on=ideal
	has out 'Nothing was predicted' 'the graph is the base run, to the cycle'
	! grep -q 'misses the execution time' out || fail "$(head -1 out)"
	expect 0 longpole noc closed --json run.2 on=ideal
	is_json out '.result.inferred_mean_execution_error == null and .result.base_moved == 0 and .result.base_execution_error == 0'
}

# Threads that fight for few words: who wins differs from run to run; the base run is met all the same.
test_noc_closed_contended() {
	python3 - <<-'END'
		import random, struct
		def call(kind, *a):
		    fields = [10, 20] + list(a) + [0] * (4 - len(a))
		    return b"".join(struct.pack(">II", 0x1000 | kind << 4 | i, f) for i, f in enumerate(fields))
		def access(store, address):
		    return struct.pack(">II", store | 0x40, address)
		for thread in range(4):
		    draw = random.Random(thread)
		    data = call(1, 7, 4) if not thread else b""
		    for i in range(400):
		        word = 0x10000 + 4 * draw.randrange(16)
		        data += access(0, word) + access(1, word)
		    with open("fight.4.%d" % thread, "wb") as file:
		        file.write(data + call(2, 7))
	END
	expect 0 longpole noc closed --json -o inferred.lpt fight.4 on=ring,ideal
	is_json out '.result.base_moved == 0 and .result.unexplained > 0'
	is_json out '[.result.rows[] | select(.network == "ideal") | .execution_error] | all(. == 0)'
	is_json out '[.result.rows[] | select(.replay == "inferred") | .execution_error | fabs] | max < 0.5'
	expect 0 longpole noc closed fight.4 on=ring ideal_cycles=1
	has out 'the graph is the base run, to the cycle'
}

# What cannot be meant is refused, with what can.
test_noc_refusals() {
	expect 0 longpole noc gen -o ref.lpt nodes=9 packets=300
	expect 0 longpole noc gen -o other.lpt nodes=9 packets=300 seed=7
	expect 2 longpole noc compare ref.lpt on=mesh,tours
	has err "'tours'" 'mesh, torus, ring'
	expect 2 longpole noc compare ref.lpt k=3
	has err 'fits the number of nodes'
	expect 2 longpole noc compare ref.lpt other.lpt
	has err 'not of the packets of ref.lpt'
	expect 0 longpole noc compare ref.lpt
	has out 'The run is shortest on'
	tr '\n' ' ' <out | grep -q 'on 4 simulated networks' || fail 'not four networks were simulated'
	expect 0 longpole noc replay ref.lpt topology=torus k=3
	has out 'NEXT  longpole noc compare ref.lpt'
	expect 0 longpole noc gen -o next.lpt nodes=16 pattern=nn packets=100
	expect 0 longpole noc gen -o across.lpt nodes=16 pattern=inv packets=100
	expect 2 longpole noc infer next.lpt across.lpt
	has err 'across.lpt has none of the messages of next.lpt'
	expect 2 longpole noc replay ref.lpt topology=torsu k=3
	has err "the nearest is 'torus'"
	expect 2 longpole noc sim routing=nca
	has err 'dor, adaptive, valiant, o1turn'
	expect 2 longpole noc gen -o x.lpt pattern=rnd
	has err 'it is one of rand, nn'
	expect 4 longpole noc sim topology=graph graph=missing.txt
	has err 'No such file'
}

# An average over no network is none.
test_noc_compare_none() {
	expect 0 longpole noc gen -o ref.lpt pattern=rand nodes=16 packets=500
	expect 0 longpole noc compare ref.lpt ref.lpt on=ideal
	has out 'No error on average: no network of routers was compared'
	! head -1 out | grep -q '0\.00' || fail "$(head -1 out)"
	expect 0 longpole noc compare --json ref.lpt on=ideal
	is_json out '.result.stripped_mean_execution_error == null'
	expect 0 longpole noc compare --json ref.lpt on=ideal,mesh
	is_json out '.result.stripped_mean_execution_error >= 0'
}

# More slowed runs: the text of PDG_GEN misses more, with blocked=1 fewer (figure 6).
test_noc_literal_trend() {
	local m found=()
	expect 0 longpole noc gen -o ref.lpt pattern=rand nodes=64 packets=8000
	for m in 2 8; do
		expect 0 longpole noc sample -o run ref.lpt runs=$m
		for blocked in 0 1; do
			# shellcheck disable=SC2046 # names without blanks
			expect 0 longpole noc infer --json $(seq -f 'run-%g.lpt' 0 $m) method=literal blocked=$blocked reference=ref.lpt
			found+=("$(jq .result.reference.found_share out)")
		done
	done
	jq -n "[${found[0]}, ${found[1]}, ${found[2]}, ${found[3]}]" >shares
	is_json shares '.[2] < .[0] and .[0] < 0.9 and .[1] > 0.999 and .[3] >= .[1]'
}
