# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# exports.sh - other tools' formats, read by others.

test_perfetto_decodes() {
	command -v protoc >/dev/null || skip "no protoc (Debian package protobuf-compiler)"
	expect 0 longpole export --format=perfetto -o a.pftrace "$trace"
	protoc --decode=perfetto.protos.Trace -I "$LONGPOLE_SOURCE/tests/cli" perfetto.proto <a.pftrace >text 2>err ||
		{ cat err >&2; fail "protoc cannot decode it"; }
	! grep -Eq '^ *[0-9]+[:{ ]' text || fail "unknown field: $(grep -Em1 '^ *[0-9]+[:{ ]' text)"
	local begins ends flows
	begins=$(grep -c 'TYPE_SLICE_BEGIN' text) ends=$(grep -c 'TYPE_SLICE_END' text)
	((begins && begins == ends)) || fail "$begins slices begin, $ends end"
	flows=$(grep -c '[^_]flow_ids' text)
	((flows && flows == $(grep -c 'terminating_flow_ids' text))) || fail "arrows begin and do not end"
	has text 'name: "critical path"' 'name: "holds mutex ladder_mutex"' 'thread_name: ' 'process_name: "ladder"'
}

test_every_format() {
	local format from nr=0
	annotate_bin annotate.bin
	expect 0 longpole import gem5 annotate.bin
	"$LONGPOLE_BUILD/src/trace/lpt-gen-network" ranks.lpt 2 2 1000 100 100 >out || fail "lpt-gen-network"
	for format in $(longpole help --json | jq -r '.commands[] | select(.name == "export") | .options[]
		| select(.name == "format") | .choices'); do
		from=$trace
		[[ $format != gem5 ]] || from=annotate.lpt # of annotations only
		[[ $format != otf2 ]] || from=ranks.lpt # of MPI only
		nr=$((nr + 1))
		[[ $format != otf2 || -x $LONGPOLE_BUILD/src/format/lpt-gen-otf2 ]] || continue # (built without its library)
		expect 0 longpole export --format="$format" -o "out.$format" "$from"
		[[ -s out.$format ]] || fail "$format is empty"
		grep -q "^FORMAT($format," "$LONGPOLE_SOURCE/src/format/formats.def" || fail "$format is not in formats.def"
	done
	((nr == $(grep -c '^FORMAT(' "$LONGPOLE_SOURCE/src/format/formats.def"))) || fail "--format does not offer all of formats.def"
}

test_speedscope_schema() {
	expect 0 longpole export -q -f speedscope -o a.json "$trace"
	is_json a.json '.["$schema"] == "https://www.speedscope.app/file-format-schema.json"'
	is_json a.json '.profiles | all(.endValue >= .startValue) and .[0].name == "critical path"'
	is_json a.json '.profiles |= map(select(.type == "evented")) | .profiles | length == 4 and all(.unit == "nanoseconds")'
	is_json a.json '.profiles | map(select(.type == "sampled")) | all(.unit == "none" and .endValue == (.samples | length))'
	jq '.profiles |= map(select(.type == "evented"))' a.json >evented.json && mv evented.json a.json
	is_json a.json '(.shared.frames | length) as $n | [.profiles[].events[].frame] | max < $n and min >= 0'
	is_json a.json '.profiles | all((.events | map(select(.type == "O")) | length) * 2 == (.events | length))'
	is_json a.json '.profiles | all([.events[].at] | . == sort)'
}

test_collapsed_is_integers() {
	longpole export -q -f collapsed -o - "$trace" >path || fail "export"
	longpole export -q -f collapsed --weight=wait -o - "$trace" >./wait || fail "export --weight=wait"
	! grep -Evq '^[^;]+(;[^;]+)+ [0-9]+$' path wait || fail "no stack: $(grep -Evhm1 '^[^;]+(;[^;]+)+ [0-9]+$' path wait)"
	local sum elapsed
	sum=$(awk '{ s += $NF } END { printf "%.0f", s }' path)
	elapsed=$(longpole report --json "$trace" | jq .result.elapsed_ns)
	((sum > elapsed - 1000 && sum < elapsed + 1000)) || fail "weights sum to $sum, the path is $elapsed ns long"
	has wait 'ladder;' '[wait: mutex ladder_mutex]'
}

test_guard_gives_flags_that_work() {
	expect 4 longpole export -f perfetto --max-events=100 -o a.pftrace "$trace"
	has err '--min-duration=' '--max-events='
	[[ ! -e a.pftrace && ! -e a.pftrace.part ]] || fail "a refused export left a file"
	local flag
	flag=$(grep -o -- '--min-duration=[0-9]*ns' err)
	expect 0 longpole export -f perfetto --max-events=100 "$flag" -o a.pftrace "$trace"
	[[ -s a.pftrace ]] || fail "no file"
}

# A device or a pipe is not replaced by a file.
test_export_to_a_pipe() {
	mkfifo pipe
	expect 2 longpole export --format=csv -o pipe "$trace"
	has err 'is no file'
	expect 2 longpole merge -o pipe "$trace" "$trace"
	[[ -p pipe ]] || fail "the pipe was replaced"
	cat pipe >read.dot &
	expect 0 longpole graph -o pipe "$trace"
	wait $!
	grep -q digraph read.dot || fail "the graph did not come through the pipe"
	[[ -p pipe ]] || fail "the pipe was replaced"
}

# What is asked for and not there is no empty file.
test_export_of_nothing() {
	expect 2 longpole export --format=chrome --from=500s -o a.json "$trace"
	has err 'nothing lies between them'
	expect 2 longpole export --format=chrome --thread=nosuch -o a.json "$trace"
	has err "--thread=nosuch: no thread has that in its name" 'longpole actors'
	[[ ! -e a.json && ! -e a.json.part ]] || fail 'left a file'
	expect 0 longpole export --format=ctf -o records "$trace"
	expect 2 longpole export --format=ctf -o records "$trace"
	has err 'records is there already'
}
