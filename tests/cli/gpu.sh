# shellcheck shell=bash disable=SC2154 # $trace comes from run.sh
# SPDX-License-Identifier: Apache-2.0
# gpu.sh - traces of accelerators: `longpole import pytorch`, `longpole gpu`.

# make_step - a step of 100 us by hand: 20 us of an operator with a launch in it, a kernel of 60 us, which the host waits for.
make_step() {
	cat >step.json <<-'EOF'
		{"schemaVersion": 1, "traceEvents": [
		{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1, "ts": 1000, "dur": 100},
		{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000, "dur": 20},
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1010, "dur": 10, "args": {"correlation": 5}},
		{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1024, "dur": 60, "args": {"device": 0, "stream": 7, "correlation": 5}},
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": 1021, "dur": 69, "args": {"correlation": 6}},
		]}
	EOF
	expect 0 longpole import pytorch -o step.lpt step.json
}

test_gpu_parts_are_the_step() {
	make_step
	expect 0 longpole gpu --json step.lpt
	jq -e '.result.steps | length == 1' out >/dev/null || fail "not one step"
	jq -e '.result.steps[0] | .name == "ProfilerStep#7" and .duration_ns == 100000' out >/dev/null || fail "the step: $(jq -c .result.steps out)"
	# by hand: kernel 60; operator 10 and 10 after the synchronisation; launch 10 and 4 on the way; 6 until it returns
	jq -e '.result.steps[0] | .compute_share == 0.6 and .host_share == 0.2 and .launch_share == 0.14 and .sync_share == 0.06' out >/dev/null ||
		fail "the parts: $(jq -c '.result.steps[0]' out)"
	jq -e '[.result.steps[0] | to_entries[] | select(.key | endswith("_share")) | .value] | add | . > 0.999999 and . < 1.000001' out >/dev/null ||
		fail "parts are not the step"
	jq -e '.result.work[0] | .name == "gemm" and .operator == "aten::mm" and .work == "compute" and .visits == 1' out >/dev/null ||
		fail "the kernel: $(jq -c '.result.work[0]' out)"
	jq -e '.result.changes[] | select(.change == "kernels take half as long") | .length_ns == 70000' out >/dev/null ||
		fail "the change: $(jq -c .result.changes out)"
}

test_gpu_refuses_what_is_none() {
	expect 2 longpole gpu "$trace"
	grep -q 'has no accelerator in it' err || fail "says: $(cat err)"
	make_step
	expect 2 longpole gpu --step=nothing step.lpt
	grep -q "no step of this trace matches 'nothing'" err || fail "says: $(cat err)"
	printf '[{"ph":"X","cat":"x","name":"n","pid":1,"tid":1,"ts":1,"dur":1}]' >other.json
	expect 3 longpole import pytorch other.json
	grep -q 'longpole import chrome' err || fail "says: $(cat err)"
	expect 0 longpole import chrome -o other.lpt step.json
	grep -q "3 events are calls and kernels of an accelerator: 'longpole import pytorch' knows" err || fail "says: $(cat err)"
}

test_gpu_is_a_section() {
	make_step
	expect 0 longpole report gpu queues step.lpt
	grep -q 'ProfilerStep#7' out || fail "no step: $(cat out)"
	gzip -k step.json
	expect 0 longpole import pytorch -o packed.lpt step.json.gz
	expect 0 longpole gpu packed.lpt
	expect 0 longpole whatif step.lpt scale gemm=x0.5
}

# make_rank DIR RANK WORK-US - a rank that works WORK-US us before its collective, which is over for all at 1300.
make_rank() {
	mkdir -p "$1"
	local begin=$((1000 + $3 + 8))
	cat >"$1/rank$2.json" <<-EOF
		{"distributedInfo": {"rank": $2}, "traceEvents": [
		{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1, "ts": 1000, "dur": 300},
		{"ph": "X", "cat": "cpu_op", "name": "aten::work", "pid": 1, "tid": 1, "ts": 1000, "dur": $3},
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": $((begin - 8)), "dur": 5, "args": {"correlation": 5}},
		{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": $begin, "dur": $((1300 - begin)), "args":
			{"device": 0, "stream": 20, "correlation": 5, "Collective name": "allreduce", "In msg nelems": 1000000, "dtype": "Float",
			"Group size": 2, "Process Group Name": "0"}},
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": $((begin - 2)), "dur": $((1302 - begin)), "args": {"correlation": 6}}
		]}
	EOF
}

test_gpu_ranks_of_a_directory() {
	make_rank job 0 50
	make_rank job 1 192
	printf '{"schema": "of something else"}' >job/graph.json
	expect 0 longpole import pytorch job/
	grep -q 'wrote job.lpt' err || fail "says: $(cat err)"
	grep -q '1 file of the directory is of something else' err || fail "says: $(cat err)"
	expect 0 longpole gpu --json --ranks=4 job.lpt
	# rank 1 comes at 1200, rank 0 at 1058; then 100 us of communication
	jq -e '.result.ranks[0] | .rank == 1 and .last == 1 and .waited_for_ns == 142000 and .waits_ns == 0' out >/dev/null ||
		fail "ranks: $(jq -c .result.ranks out)"
	jq -e '.result.steps[0] | .rank_share == 0 and .communication_share > 0.3333 and .communication_share < 0.3334' out >/dev/null ||
		fail "step: $(jq -c '.result.steps[0]' out)"
	# one size: all 100 us are bytes. Twice the bandwidth: 50. A ring of 4 moves 3/2 S instead of S.
	jq -e '.result.changes[] | select(.change == "links are 2 times as fast") | .length_ns == 250000' out >/dev/null ||
		fail "links: $(jq -c .result.changes out)"
	jq -e '.result.changes[] | select(.change == "there are 4 ranks on a ring, each with as much work as now") | .length_ns == 350000' out >/dev/null ||
		fail "more ranks: $(jq -c .result.changes out)"
	expect 0 longpole gpu job.lpt
	grep -q 'came last' out || fail "no ranks: $(cat out)"
}

test_gpu_refuses_what_is_no_job() {
	make_rank job 0 50
	cp job/rank0.json job/again.json
	expect 3 longpole import pytorch -o x.lpt job
	grep -q 'are both of rank 0: give one file of each rank' err || fail "says: $(cat err)"
	mkdir empty
	expect 2 longpole import pytorch -o x.lpt empty
	grep -q 'has no .json, .json.gz or .json.zst in it' err || fail "says: $(cat err)"
	expect 2 longpole import pytorch -o job/rank0.json job/rank0.json job/again.json
	grep -q 'would overwrite what is imported' err || fail "says: $(cat err)"
}

test_gpu_steps_are_chosen() {
	make_step
	sed -i 's/ProfilerStep#7/iteration 7/' step.json
	expect 0 longpole import pytorch --step='iteration *' -o step.lpt step.json
	expect 0 longpole gpu --json step.lpt
	jq -e '.result.steps | length == 1 and .[0].name == "iteration 7" and .[0].duration_ns == 100000' out >/dev/null || fail "steps: $(jq -c .result.steps out)"
}

# Clocks of nanoseconds: a step's end may come after the begin of the next one.
test_gpu_steps_that_overlap() {
	cat >step.json <<-'EOF'
		{"traceEvents": [
		{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 1000, "dur": 100.001},
		{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 1, "ts": 1100, "dur": 50},
		{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000, "dur": 150}]}
	EOF
	expect 0 longpole import pytorch -o step.lpt step.json
	expect 0 longpole gpu --json step.lpt
	jq -e '[.result.steps[].duration_ns] == [100001, 50000]' out >/dev/null || fail "steps: $(jq -c .result.steps out)"
}

# A kernel waits for a collective of 100 us that another kernel of 50 us hides in part. By hand: launch 5, 1, launch 5, way 4, collective 100,
# event 2, kernel 30: 147. Without the wait the kernel ends at 60 + 30, the collective at 115. With no collective the kernel ends at 90.
# With launches of no time the collective begins at 1: 1 + 100 + 2 + 30.
test_gpu_changes_known_answers() {
	cat >step.json <<-'EOF'
		{"traceEvents": [
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1000, "dur": 5, "args": {"correlation": 1}},
		{"ph": "X", "cat": "kernel", "name": "first", "pid": 0, "tid": 7, "ts": 1010, "dur": 50, "args": {"device": 0, "stream": 7, "correlation": 1}},
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1006, "dur": 5, "args": {"correlation": 2}},
		{"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 20, "ts": 1015, "dur": 100, "args": {"device": 0, "stream": 20, "correlation": 2}},
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaEventRecord", "pid": 1, "tid": 1, "ts": 1012, "dur": 1, "args": {"correlation": 90}},
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 1, "tid": 1, "ts": 1013, "dur": 1, "args": {"correlation": 91}},
		{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 7, "ts": 1013, "dur": 1, "args":
			{"device": 0, "stream": 7, "correlation": 91, "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 90}},
		{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1015, "dur": 5, "args": {"correlation": 3}},
		{"ph": "X", "cat": "kernel", "name": "second", "pid": 0, "tid": 7, "ts": 1117, "dur": 30, "args": {"device": 0, "stream": 7, "correlation": 3}}
		]}
	EOF
	expect 0 longpole import pytorch -o step.lpt step.json
	expect 0 longpole gpu --json step.lpt
	local change
	for change in "collectives overlap with all that follows on other streams=115000" "communication is hidden, all of it=90000" \
		"launches take no time (as in a CUDA graph)=133000"; do
		jq -e --arg change "${change%=*}" --argjson ns "${change##*=}" '.result.changes[] | select(.change == $change) | .length_ns == $ns' out >/dev/null ||
			fail "$change: $(jq -c .result.changes out)"
	done
}
