# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # $LONGPOLE_SOURCE comes from run.sh
# import_go.sh - Go's execution traces: of programs whose critical paths are known by construction, built here.

# go_shape NAME MICROSECONDS - runs it, which writes and imports NAME.trace. Skips without Go.
go_shape() {
	command -v go >/dev/null || skip "no Go compiler (Debian: golang-go)"
	[[ -x shapes ]] || GO111MODULE=off GOCACHE=$PWD/cache GOPATH=$PWD/path HOME=$PWD go build -o shapes "$LONGPOLE_SOURCE/tests/target/go/shapes.go" ||
		fail "go build does not work"
	./shapes "$1" "$2" "$1.trace" >/dev/null || fail "$1 does not run"
	expect 0 longpole import go "$1.trace"
	has err "wrote $1.lpt" 'goroutines on' 'by Go 1.'
	expect 0 longpole report --json "$1.lpt"
}

test_import_go_pipeline_leads_to_the_slow_stage() {
	go_shape pipeline 2000
	is_json out '.result.parts[0].name == "running main.middle"'
	expect 0 longpole path pipeline.lpt
	expect 0 longpole whatif pipeline.lpt '#1=-50%'
	has out 'running main.middle'
}

test_import_go_mutex_leads_from_holder_to_holder() {
	go_shape ladder 1000
	is_json out '.result.parts[0].name == "running main.rung"'
	expect 0 longpole report --full ladder.lpt
	has out ' goroutines · '
	tr '\n' ' ' <out | grep -qE 'goroutines \(ladder/main.rung|goroutine ladder/main.rung' || fail 'the pole is no goroutine' # equal ones are one row
	! grep -qE 'thread|waits that bypass libc' out || fail "threads are spoken of: $(grep -E 'thread|libc' out)"
	expect 0 longpole dump --kind=task_wait ladder.lpt
	has out 'for a mutex' 'for a WaitGroup' "how=0(another task)"
}

test_import_go_fork_join_leads_to_the_slow_worker() {
	go_shape fork 2000
	expect 0 longpole report --full fork.lpt
	has out 'fork/main.slowWorker'
	expect 0 longpole dump --kind=task_needs fork.lpt
}

test_import_go_sleep_is_no_work() {
	go_shape sleeps 5000
	is_json out '.result.parts[0].name == "sleeping in main.sleeps"'
}

test_import_go_select_and_garbage() {
	go_shape selects 400
	expect 0 longpole dump --kind=task_wait selects.lpt
	has out 'in a select'
	go_shape garbage 2000
	expect 0 longpole actors garbage.lpt
	has out 'runtime.gcBgMarkWorker'
}

test_import_go_with_one_processor() {
	export GOMAXPROCS=1
	go_shape pipeline 400
	expect 0 longpole report pipeline.lpt
	has out '1 CPU'
	expect 0 longpole whatif pipeline.lpt add-processors +1
	has out 'add-processors'
}

test_import_go_of_what_is_no_trace() {
	printf 'go 1.22 tracx' >no.trace
	expect 3 longpole import go no.trace
	has err 'does not begin as an execution trace of Go'
	printf 'go 1.7 trace\0\0\0\0' >old.trace
	expect 3 longpole import go old.trace
	has err 'a trace of Go 1.7: those of Go 1.11 and newer are read'
	[[ ! -e no.lpt && ! -e old.lpt ]] || fail "something was written"
}

# Debian's Go has traces of older versions beside its own reader (package golang-1.19-src).
test_import_go_of_older_versions() {
	local data trace
	command -v go >/dev/null || skip "no Go compiler (Debian: golang-go)"
	data=$(go env GOROOT)/src/internal/trace/testdata
	[[ -r $data/http_1_11_good ]] || skip "Go's own traces are not there: $data"
	for trace in "$data"/{http,stress,stress_start_stop}_1_{11,19}_good; do
		[[ -r $trace ]] || continue
		expect 0 longpole import go -o old.lpt "$trace"
		! grep -q 'cut short\|not be read\|no cause' err || fail "$trace is said to lack something: $(<err)"
		expect 0 longpole report --json old.lpt
		is_json out '.result.elapsed_ns > 0'
	done
	expect 3 longpole import go -o older.lpt "$data/http_1_10_good"
	has err 'a trace of Go 1.10: those of Go 1.11 and newer are read'
}

# esbuild, of a newer Go than Debian's, writes its own trace: format 2.
test_import_go_of_format_2() {
	local esbuild=${LONGPOLE_ESBUILD:-$(command -v esbuild)} i
	[[ -x $esbuild ]] || skip "no esbuild (npm: @esbuild/linux-x64), or LONGPOLE_ESBUILD does not name it"
	for ((i = 0; i < 40; i++)); do
		printf 'import "./m%d.js"; export const a%d = [%s];\n' $((i + 1)) "$i" "$(seq -s, 400)" >"m$i.js"
	done
	echo 'export const end = 1' >m40.js
	"$esbuild" --bundle --minify m0.js --outfile=out.js --trace=es.trace >/dev/null 2>&1 || skip "this esbuild writes no trace"
	expect 0 longpole import go es.trace
	has err 'goroutines on'
	! grep -q 'cut short\|not be read\|no cause' err || fail "a whole trace is said to lack something: $(<err)"
	expect 0 longpole report es.lpt
	has out 'bundler'
	expect 0 longpole dump --kind=task_wait es.lpt
	has out 'for a WaitGroup' 'to receive from a channel'
}

# The trace does not say that both ends of a pipe are in the program: what their waiting hides, predictions must allow for.
test_import_go_pipe_within_the_program_widens() {
	go_shape pipes 2000
	expect 0 longpole whatif --json pipes.lpt scale 'running main.writer'=-50%
	is_json out '.result.scenarios[0].best | .predicted_speedup_low < 1.1 and .predicted_speedup_high > 1.7'
}
