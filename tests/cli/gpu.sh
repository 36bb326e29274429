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
