# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $LONGPOLE_SOURCE comes from run.sh
# record_go.sh - static Go programs, recorded by their goroutines: the same as Go's own trace of the run says, and the program as alone.

# go_program NAME [FLAGS...] - builds tests/target/go/NAME.go. Skips without Go.
go_program() {
	local name=$1
	shift
	command -v go >/dev/null || skip "no Go compiler (Debian: golang-go)"
	[[ $(uname -m) == x86_64 ]] || skip 'not this processor'
	CGO_ENABLED=0 GO111MODULE=off GOCACHE=$PWD/cache GOPATH=$PWD/path HOME=$PWD go build "$@" -o "$name" \
		"$LONGPOLE_SOURCE/tests/target/go/$name.go" || fail "go build does not work"
}

# go_recorded OPTIONS... - records a program into r.lpt, or skips where nobody may start one stopped.
go_recorded() {
	longpole record -o r.lpt "$@" >said 2>err
	status=$?
	! grep -q 'Operation not permitted' err || skip "$(head -1 err)"
	[[ -e r.lpt ]] || fail "$(cat err)"
}

# go_agrees SHAPE - injection and Go's own trace of one run.
go_agrees() {
	go_recorded ./shapes "$1" 1000 own.trace
	expect 0 longpole import go -o own.lpt own.trace
	longpole dump r.lpt >r.txt
	longpole dump own.lpt >own.txt
	python3 "$LONGPOLE_SOURCE/tests/cli/go_compare.py" r.txt own.txt >compared || fail "$1: $(cat compared)"
}

test_record_go_agrees_with_its_own_trace() {
	local shape
	go_program shapes
	for shape in pipeline ladder fork selects pipes; do
		go_agrees $shape 2>compared || fail "$shape: $(cat compared)"
	done
}

test_record_go_finds_the_pole() {
	go_program shapes
	go_recorded --sample-hz=0 ./shapes pipeline 4000
	has err 'changes of goroutines'
	! grep -q sample err || fail "$(cat err)"
	expect 0 longpole report --json r.lpt
	is_json out '.result.parts[0].name == "running main.middle"'
	expect 0 longpole whatif r.lpt '#1=-50%'
	go_recorded --sample-hz=0 ./shapes ladder 20000
	expect 0 longpole report --json r.lpt
	is_json out '.result.parts[0].name == "running main.rung"'
}

# The collector's work is a state of its own, and somebody's doing.
test_record_go_collects_garbage() {
	go_program shapes
	go_recorded ./shapes garbage 20000
	longpole dump r.lpt >dumped
	grep -q 'task_run what=.*(marking for the garbage collector (background))' dumped || fail 'nobody marks'
	[[ $(awk '/thread_begin.*runtime.gcBgMarkWorker/ { split($2, at, ":"); worker[at[1]] }
		/ task_wake / { match($0, /woken=[0-9]+/); if (substr($0, RSTART + 6, RLENGTH - 6) in worker) nr++ } END { print nr + 0 }' dumped) -gt 0 ]] ||
		fail 'nobody begins a round of the collector'
}

# Of a function that no event is in, and that calls another one, without a frame, for all its time.
test_record_go_samples_functions() {
	go_program shapes
	go_recorded ./shapes ladder 20000
	! grep -q 'no samples' err || skip "$(grep 'no samples' err)"
	has err 'samples'
	expect 0 longpole whatif --json r.lpt scale main.slowStage=-50%
	is_json out '.result.scenarios[0].edits[0].path_share > 0.5'
	expect 0 longpole dump --kind=sample r.lpt
	grep -q 'main.burn.*stack=.*main.slowStage.*main.rung' out || fail "callers are not known: $(head -3 out)"
}

test_record_go_that_is_stripped() {
	go_program shapes -ldflags '-s -w'
	go_agrees ladder
	expect 0 longpole dump --kind=task_wait r.lpt
	has out 'for a mutex' 'shapes.go'
}

# Of a newer Go than Debian's, stripped, and without the linker's word on its version.
test_record_go_of_a_newer_version() {
	local esbuild=${LONGPOLE_ESBUILD:-$(command -v esbuild)} i
	[[ -x $esbuild ]] || skip "no esbuild (npm: @esbuild/linux-x64), or LONGPOLE_ESBUILD does not name it"
	for ((i = 0; i < 40; i++)); do
		printf 'import "./m%d.js"; export const a%d = [%s];\n' $((i + 1)) "$i" "$(seq -s, 400)" >"m$i.js"
	done
	echo 'export const end = 1' >m40.js
	"$esbuild" --bundle --minify m0.js --outfile=alone.js >/dev/null 2>&1 || fail 'esbuild does not work'
	longpole record -o r.lpt "$esbuild" --bundle --minify m0.js --outfile=out.js >said 2>err
	grep -q 'is not known here\|not permitted' err && skip "$(head -1 err)"
	cmp alone.js out.js || fail 'it writes something else'
	expect 0 longpole report r.lpt
	has out 'bundler'
	expect 0 longpole dump --kind=task_wait r.lpt
	has out 'for a WaitGroup' 'to receive from a channel'
}

# Its signals, panics, preemption, children and own stacks are as they are alone.
test_record_go_does_not_change_the_program() {
	local how status
	go_program faults
	for how in exit panic; do
		./faults $how >alone 2>alone.err
		status=$?
		longpole record -o f.lpt ./faults $how >said 2>err
		(($? == status)) || fail "$how: its exit status is another one"
		cmp -s alone said || fail "$how: it prints something else: $(diff alone said)"
		sed -nE '/^(panic|goroutine|main\.)/s/\(.*//p' alone.err >alone.trace
		sed -nE '/^(panic|goroutine|main\.)/s/\(.*//p' err >its.trace
		cmp -s alone.trace its.trace || fail "$how: another traceback: $(cat err)"
	done
}

test_record_go_that_a_signal_ends() {
	local recorder program
	go_program faults
	longpole record -o r.lpt ./faults hang >said 2>err & recorder=$!
	for _ in {1..100}; do
		grep -qs ready said && break
		sleep 0.1
	done
	program=$(pgrep -P $recorder -x faults) || skip "$(head -1 err)"
	kill -TERM "$program"
	wait $recorder
	(($? == 143)) || fail "exit status is not the signal's: $(cat err)"
	expect 0 longpole report r.lpt
	has out 'faults'
}

# Nobody looks after it any more: it goes on.
test_record_go_outlives_its_recorder() {
	local recorder program
	go_program faults
	longpole record -o r.lpt ./faults hang >said 2>err & recorder=$!
	for _ in {1..100}; do
		grep -qs ready said && break
		sleep 0.1
	done
	program=$(pgrep -P $recorder -x faults) || skip "$(head -1 err)"
	kill -KILL $recorder
	wait $recorder 2>/dev/null
	sleep 0.3
	kill -0 "$program" || fail 'it has ended with its recorder'
	kill -TERM "$program"
}

test_record_go_of_an_unknown_version() {
	go_program shapes -ldflags '-s -w'
	sed -i 's/go1\.[0-9][0-9]/go1.99/g' shapes
	longpole record -o r.lpt ./shapes sleeps 1000 own.trace >said 2>err && fail 'it was recorded'
	grep -q 'Go 1.99 is not known' err || fail "$(cat err)"
	[[ ! -e own.trace && ! -e r.lpt ]] || fail 'it has run'
}

test_record_go_that_takes_no_such_program() {
	printf 'int main(void) { return 0; }' >p.c
	gcc -static p.c -o static 2>/dev/null || skip 'no static programs here'
	longpole record -o r.lpt ./static >said 2>err && fail 'it was recorded'
	grep -q 'statically linked' err || fail "$(cat err)"
}
