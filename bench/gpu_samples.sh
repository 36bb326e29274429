#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_samples.sh DIR - fetches public traces of PyTorch's profiler into DIR, imports each and says how it went: one line a file with the
# part of its path that is explained. None of them is part of longpole: they are Holistic Trace Analysis' test data (MIT licence,
# https://github.com/facebookresearch/HolisticTraceAnalysis, tests/data), of A100, V100, MI250 and MTIA.
set -eu
[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
longpole=${LONGPOLE:-longpole}
commit=f4d0062c382f42bd8a74838bcdad1916c7d5d2da
mkdir -p "$1"
for name in \
	amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz \
	critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz \
	critical_path/cuda_event_sync/event_sync_trace.json.gz \
	critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz \
	critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz \
	df_index_resolver/df_index_resolver.json.gz \
	mtia_trace_single_rank/mtia_rank_0.json.gz \
	nccl_parser_config/nccl_data.json.gz \
	negative_queue_length_values_check/rank0.json.gz \
	ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz \
	timeline_analysis/sampled_rank-0.json.gz \
	trace_diff/control/control.json.gz \
	trace_diff/test/test.json.gz \
	triton_example/triton_example.json.gz; do
	file=$1/$(echo "$name" | tr / _)
	[ -s "$file" ] || curl -fsSL -o "$file" \
		"https://raw.githubusercontent.com/facebookresearch/HolisticTraceAnalysis/$commit/tests/data/$name" || { echo "$name: not fetched"; continue; }
	"$longpole" import -q pytorch -o "$file.lpt" "$file" || { echo "$name: refused"; continue; }
	"$longpole" gpu -q --json "$file.lpt" |
		jq -r --arg name "$name" '"\($name): \(.result.steps | length) steps, \(.result.explained_share * 1000 | round / 10) % explained"'
done
