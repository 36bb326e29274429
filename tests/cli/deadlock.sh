# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2016 # $work comes from run.sh; jq's variables are not the shell's
# deadlock.sh - longpole deadlock on programs that hang, and on some that only look so (tests/target/deadlock).

hangs=$LONGPOLE_BUILD/tests/target/deadlock

# start_all PROGRAM CASE... - PROGRAM is one of tests/target/deadlock, or a path; starts them all; pid_of[CASE] is the process that said READY.
declare -A pid_of
started=()
start_all() {
	local program=$1 name
	[[ $program == */* ]] || program=$hangs/$program
	shift
	for name in "$@"; do
		# shellcheck disable=SC2086 # a case may be several words
		TMPDIR=$PWD setsid "$program" $name >"$name.said" 2>/dev/null </dev/null &
		started+=($!)
		disown # quietly killed
	done
	for name in "$@"; do
		for _ in {1..6000}; do
			grep -qs READY "$name.said" && break
			sleep 0.01
		done
		pid_of[$name]=$(sed -n 's/^READY //p' "$name.said")
		[[ ${pid_of[$name]} ]] || fail "$program $name did not start"
	done
	trap stop_all EXIT
}
stop_all() {
	local pid id
	for pid in "${started[@]}"; do
		kill -KILL -- "-$pid" 2>/dev/null
	done
	started=()
	rm -f /dev/mqueue/hang-* /dev/mqueue/calm-* 2>/dev/null # where it is mounted
	sed -n "s/^SEMAPHORES //p" -- *.said 2>/dev/null | while read -r id; do
		ipcrm -s "$id"
	done
	rm -f -- *.said
}

# look NAME OPTION... - one look at a case, as NAME.json.
look() {
	local name=$1
	shift
	timeout 120 longpole deadlock --json --settle=50ms --pid "${pid_of[$name]}" "$@" >"$name.json" 2>err
}

# finds NAME FILTER [OPTION...] - a look finds something for which jq's filter is true. The program may need some looks until it hangs.
finds() {
	local name=$1 filter=$2 status until=$((SECONDS + 60))
	shift 2
	while ((SECONDS < until)); do
		look "$name" "$@" && continue
		status=$?
		((status == 1)) || { cat err >&2; fail "$name: exit status $status"; }
		jq -e "$filter" "$name.json" >/dev/null && return
	done
	jq .result "$name.json" >&2
	fail "$name: not found so: $filter"
}

# says NAME WORDS... - the text of a look, which is left in `text`, has all of them. (A look finds fewer of them run ahead where others have the
# processors.)
says() {
	local name=$1 words until=$((SECONDS + 60))
	shift
	while ((SECONDS < until)); do
		longpole deadlock --settle=50ms --pid "${pid_of[$name]}" >text || :
		for words; do
			grep -qF -- "$words" text || continue 2
		done
		return
	done
	has text "$@"
}

# until_calm NAME FILTER [OPTION...] - none of the looks calls it a deadlock; the last is the first for which the filter is true.
until_calm() {
	local name=$1 filter=$2 until=$((SECONDS + 60))
	shift 2
	while ((SECONDS < until)); do
		look "$name" "$@" || fail "$name: exit status $?"
		jq -e "$filter" "$name.json" >/dev/null && return
	done
}

# runs_ahead NAME OPTION... - a look ran copies of the case ahead; else the test is skipped. (It may take some looks until the case sleeps.)
runs_ahead() {
	local name=$1 refused=0 until=$((SECONDS + 60))
	shift
	while ((SECONDS < until)); do
		look "$name" "$@" || (($? == 1)) || { cat err >&2; fail "$name: exit status"; }
		jq -e '.result.threads_run_ahead > 0' "$name.json" >/dev/null && return
		jq -e '.result.threads_not_run_ahead > 0' "$name.json" >/dev/null && ((++refused >= 5)) && skip "no thread may be run ahead here"
	done
	fail "$name: no thread of it was asleep"
}

cycle_of() {
	printf '.result.deadlocks | length == 1 and (.[0] | .kind == "cycle" and .circle and (.threads | length) == %d and .sure == "%s")' "$1" "${2:-certain}"
}

# Owners of locks, ends of threads: nothing need be run ahead for these.
test_deadlock_of_owners() {
	local name circles=(circle-normal circle-recursive circle-errorcheck circle-adaptive circle-pi circle-robust partial seccomp join-with-lock rwlock-circle)
	start_all hang_threads philosophers self-lock orphan fork-with-lock join-circle "${circles[@]}"
	for name in "${circles[@]}"; do
		finds "$name" "$(cycle_of 2)" --static
	done
	finds philosophers "$(cycle_of 5)" --static
	is_json philosophers.json '.result.deadlocks[0] |
		(.edges | all(.why == "owns" and (.event | startswith("mutex fork_of")))) and .waiting_behind == 1 and
		(.threads | all(.frames | any(.function == "philosopher" and .line > 0)))'
	finds join-circle "$(cycle_of 3)" --static
	finds self-lock '.result.deadlocks | map(.kind) == ["self"]' --static
	finds orphan '.result.deadlocks | map(.kind) == ["orphaned"]' --static
	finds fork-with-lock '.result.deadlocks | map(.kind) == ["inherited"]' --static
	# without BPF, from /proc alone
	finds philosophers "$(cycle_of 5)" --static --no-bpf
	# and on the picture as in the source
	finds circle-normal "$(cycle_of 2)"
	longpole deadlock --settle=1s --dot --pid "${pid_of[circle-normal]}" >picture
	has picture 'mutex first' 'label="owns"' 'shape=box'
	longpole deadlock --settle=50ms --sarif --pid "${pid_of[self-lock]}" >sarif
	is_json sarif '.version == "2.1.0" and .runs[0].results[0].ruleId == "self" and
		(.runs[0].results[0].locations[0].physicalLocation.artifactLocation.uri | endswith("hang_threads.c"))'
	says philosophers 'Deadlock: 5 threads of hang_threads' 'in a circle (certain' 'philosopher() hang_threads.c:' 'HOW IT IS KNOWN'
}

# Filters of containers refuse process_vm_readv (310), some ptrace (101), too: memory is read all the same.
test_deadlock_in_a_container() {
	local calls until
	start_all hang_random "w1 w2 r0"
	for calls in 310 101,310; do
		until=$((SECONDS + 60))
		while ((SECONDS < until)); do
			"$hangs/refused" "$calls" timeout 120 longpole deadlock --json --settle=50ms --pid "${pid_of["w1 w2 r0"]}" >contained.json && continue
			jq -e "$(cycle_of 3)" contained.json >/dev/null && continue 2
		done
		fail "$calls: $(jq -c .result contained.json)"
	done
}

# What threads share is shown under the number of one that lives, also where the first one has ended.
test_deadlock_of_a_main_that_ended() {
	start_all hang_threads main-ended
	finds main-ended "$(cycle_of 2)"
	is_json main-ended.json '.result.deadlocks[0] | (.edges | all(.event | test("mutex (first|second)"))) and
		(.threads | all(.frames | any(.line > 0)))'
	finds main-ended "$(cycle_of 2)" --static
	finds main-ended "$(cycle_of 2)" --no-bpf
	start_all hang_processes main-ended
	finds main-ended "$(cycle_of 2)"
	finds main-ended "$(cycle_of 2)" --no-bpf
}

# A handler may jump out of a wait for a lock: certain is only what no signal reaches.
test_deadlock_beside_signals() {
	local name helped=(circle-with-handler circle-with-alarm circle-with-itimer circle-with-timer join-with-handler)
	local closed=(circle-beside-handler circle-with-fault-handler)
	start_all hang_threads "${helped[@]}" "${closed[@]}"
	for name in "${helped[@]}"; do
		finds "$name" "$(cycle_of 2 probable)" --static
	done
	for name in "${closed[@]}"; do
		finds "$name" "$(cycle_of 2)" --static
	done
	says circle-with-alarm 'probable: nobody was seen to end it' 'a signal handler'
}

# A stopped thread neither sleeps nor runs; the answer says so, and how it goes on.
test_deadlock_of_the_stopped() {
	start_all hang_threads circle-normal
	local pid=${pid_of[circle-normal]} option
	kill -STOP "$pid"
	until grep -q '^State:.T' "/proc/$pid/status"; do sleep 0.01; done
	for option in --static --no-bpf; do
		expect 0 longpole deadlock --settle=50ms $option --pid "$pid"
		has out 'all are stopped.' "threads are stopped by a signal; to continue: kill -CONT $pid."
		! grep -q 'none has slept' out || fail 'as if it ran'
	done
	kill -CONT "$pid"
	finds circle-normal "$(cycle_of 2)"
	start_all calm sleeps traced
	kill -STOP "${pid_of[sleeps]}"
	longpole deadlock --settle=50ms --pid "${pid_of[sleeps]}" --pid "${pid_of[traced]}" >out || fail "$(cat out)"
	has out "kill -CONT ${pid_of[sleeps]}." 'thread is stopped by a debugger or another tracer, which continues it'
	! grep -q 'all are stopped' out || fail 'all'
}

# Circles in programs where somebody lives who could end them: probable, and by whom; if he does, or may, none is told.
test_deadlock_suspicious() {
	local name
	start_all hang_threads doubtful timed-beside lock-and-semaphore-beside once-beside rwlock-beside two-circles
	start_all calm third-posts third-computes worker-gives pool-of-semaphores
	runs_ahead doubtful
	for name in doubtful timed-beside lock-and-semaphore-beside once-beside rwlock-beside; do
		finds "$name" "$(cycle_of 2 probable)"
	done
	finds two-circles '[.result.deadlocks[] | [.sure, (.threads | length)]] == [["certain", 2], ["probable", 2]]'
	is_json doubtful.json ".result.deadlocks[0].could_end_it_tids == [${pid_of[doubtful]}]"
	is_json timed-beside.json '.result.deadlocks[0].could_end_it_tids | length == 3'
	for _ in {1..20}; do # the third may just wake up
		longpole deadlock --settle=50ms --pid "${pid_of[doubtful]}" >text || break
	done
	has text 'probable: who could still end it sleeps' "Could still end it: thread ${pid_of[doubtful]}" 'run ahead, it did not'
	look third-posts || fail "third-posts: reported"
	until_calm third-posts '.result.deadlocks == []' --suspicious # the third was seen to post
	is_json third-posts.json '.result.deadlocks == []'
	# who runs cannot be run ahead
	for _ in {1..3}; do
		look third-computes || fail "third-computes: reported"
	done
	says third-computes '1 thread is on a processor' '--spinners'
	until_calm third-computes '.result.deadlocks | length == 1' --suspicious
	is_json third-computes.json '.result.deadlocks[0] | .sure == "unknown" and (.threads | length) == 2 and (.finding | startswith("Suspicious"))'
	# who waits for work gives it to the next one; and who else waits may be the one who ends it
	for name in pool-of-semaphores worker-gives; do
		for _ in {1..3}; do
			look "$name" || fail "$name: reported"
		done
	done
}

# What a time limit ends is probable, and said when; of what has no owner only where the limit is long.
test_deadlock_until_a_time_limit() {
	local name
	start_all hang_timed timed-mutexes timed-pi-mutexes clocked-rwlock timed-self-lock timed-semaphores short-semaphores
	for name in timed-mutexes timed-pi-mutexes clocked-rwlock; do
		finds "$name" "$(cycle_of 2 probable)" --static
		is_json "$name.json" '.result.deadlocks[0].ends_within_ns | . > 1e9 and . < 201e9'
	done
	finds timed-self-lock '.result.deadlocks | map([.kind, .sure]) == [["self", "probable"]]' --static
	says timed-mutexes 'probable: a time limit will end it' 'Not for ever: a time limit ends it within'
	runs_ahead timed-semaphores
	for _ in 1 2; do # the second time the kernel goes on with a call that it restarted
		finds timed-semaphores "$(cycle_of 2 probable)"
	done
	is_json timed-semaphores.json '.result.deadlocks[0].ends_within_ns | . > 200e9 and . < 301e9'
	look short-semaphores || fail "short-semaphores: reported"
	until_calm short-semaphores '.result.deadlocks | length == 1' --suspicious
	is_json short-semaphores.json '.result.deadlocks[0] | .sure == "unknown" and .ends_within_ns < 26e9'
}

# What only the future tells: semaphores, conditions, words without an owner.
test_deadlock_of_the_future() {
	start_all hang_threads smokers nested-monitors lost-wakeup predicates rwlock-upgrade barrier raw-futex same-place same-place-with-handler
	runs_ahead raw-futex
	finds raw-futex "$(cycle_of 2)"
	# each thread for itself, though others stand at the same place
	finds same-place '.result.deadlocks | length == 1 and (.[0] | .kind == "cycle" and (.threads | length) == 3 and .sure == "certain")'
	finds same-place-with-handler '.result.deadlocks | length == 1 and (.[0] | .kind == "cycle" and (.threads | length) == 3 and .sure == "probable")'
	finds rwlock-upgrade "$(cycle_of 2)"
	finds barrier "$(cycle_of 2)"
	finds nested-monitors "$(cycle_of 2)"
	finds smokers '.result.deadlocks | length >= 1 and (.[0] | .kind == "cycle" and .sure == "certain" and
		([.edges[] | select(.why == "would")] | length) == 4)' # both cycles of the source's figure 4-9
	finds lost-wakeup '.result.deadlocks | length == 1 and .[0].lost_wakeup and .[0].waiting_behind == 1'
	finds predicates "$(cycle_of 2)"
	is_json predicates.json '.result.deadlocks[0].edges | map(.event) | sort == ["condition variable condition", "condition variable other"]'
}

# Threads that run and get nowhere.
test_deadlock_of_spinners() {
	local name
	"$LONGPOLE_BUILD/tests/target/deadlock_ahead" --can-watch || skip "debug registers do not stop a process here"
	for name in spinlocks yielders spin-with-lock; do # one at a time: they burn
		start_all hang_spinning "$name"
		look "$name" --spinners || :
		jq -e '.result.registers | test("ptrace")' "$name.json" >/dev/null || skip "no copies can be made here"
		finds "$name" "$(cycle_of 2 probable)" --spinners
		longpole deadlock --settle=50ms --spinners --pid "${pid_of[$name]}" >text || :
		! grep -q '(certain' text || fail "certain, with who spins: $name"
		# only who asks has a thread stopped
		look "$name" || fail "found without --spinners"
		is_json "$name.json" '.result | .longest_stop_ns == 0 or .registers == "ptrace"'
		stop_all
	done
}

# Readers behind a writer that goes first; what is done once, by others.
test_deadlock_of_turns() {
	start_all hang_threads rwlock-nested rwlock-behind-writer once-circle once-self once-and-lock
	runs_ahead once-circle
	finds once-circle "$(cycle_of 2)"
	is_json once-circle.json '.result.deadlocks[0].edges | map(.event) | sort == ["once control once_first", "once control once_second"]'
	finds once-self '.result.deadlocks | map(.kind) == ["self"]'
	finds once-and-lock "$(cycle_of 2)"
	finds rwlock-nested "$(cycle_of 2)"
	# one lock, and not what stands before it
	is_json rwlock-nested.json '[.result.deadlocks[0].edges[].event] | unique == ["rwlock fair+0x8"]'
	finds rwlock-behind-writer '.result.deadlocks | length == 1 and (.[0] | .kind == "cycle" and (.threads | length) == 3 and .sure == "certain")'
}

test_deadlock_of_processes() {
	local name
	start_all hang_processes philosophers smokers cgi wait-full-pipe full-pipes both-read lock-and-pipe file-locks sysv-semaphores sysv-undo sysv-undo-and-pipe lock-and-close taken-by-others
	for name in cgi wait-full-pipe full-pipes both-read lock-and-pipe file-locks taken-by-others; do
		finds "$name" "$(cycle_of 2)"
	done
	finds philosophers "$(cycle_of 5)"
	finds smokers '.result.deadlocks | length >= 1 and .[0].kind == "cycle" and .[0].sure == "certain"'
	for name in sysv-semaphores sysv-undo sysv-undo-and-pipe; do
		finds "$name" "$(cycle_of 2 probable)"
	done
	# of the owner's two threads one would close the file: its copy says so, and nothing else does
	finds lock-and-close '.result.deadlocks | any(.[]; .kind == "cycle" and (.threads | length) == 2 and
		any(.edges[]; .why == "would" and (.event | test("^the lock on "))))'
	# from one member the others are found
	pid_of[other]=$(jq '.result.deadlocks[0].threads[1].pid' cgi.json)
	finds other "$(cycle_of 2)"
}

# Ends that are opened, queues of messages, buffers that are full on both sides, and a limit of minutes.
test_deadlock_of_channels() {
	local name
	start_all hang_processes cgi-with-limit fifo-opens fifo-open-and-wait mqueues full-mqueues named-mqueues both-write-stream both-write-datagrams
	for name in mqueues full-mqueues both-write-stream both-write-datagrams; do
		finds "$name" "$(cycle_of 2)"
	done
	for name in cgi-with-limit fifo-opens fifo-open-and-wait named-mqueues; do
		finds "$name" "$(cycle_of 2 probable)"
	done
	says cgi-with-limit 'Not for ever: a time limit ends it within'
	says fifo-opens 'a reader who opens a FIFO' 'by the name of the FIFO'
	says named-mqueues 'a message in a queue' 'by the name of the message queue'
}

# What has a name can be reached by a process that was not seen: never certain.
test_deadlock_of_what_has_a_name() {
	local name
	start_all hang_processes fifos named-semaphores
	finds fifos "$(cycle_of 2 probable)"
	says fifos 'probable' 'by the name of the FIFO'
	! grep -q '(certain' text || fail "certain"
	runs_ahead fifos
	finds named-semaphores "$(cycle_of 2 probable)"
	start_all hang_processes abstract-datagrams datagrams-to-paths accept-first greet-before-accept
	for name in abstract-datagrams datagrams-to-paths accept-first; do
		finds "$name" "$(cycle_of 2 probable)"
		says "$name" 'by the name of the socket'
	done
	# who has connected is known, and nobody else can greet him
	finds greet-before-accept "$(cycle_of 2)"
	# whoever comes later ends it
	echo x >to-child
	timeout 60 tail --pid="${pid_of[fifos]}" -f /dev/null || fail "it was a deadlock"
}

# Memory of a file is reached by whoever has, or receives, a descriptor of it; a segment by its number.
test_deadlock_in_memory_of_files() {
	start_all hang_processes memfd-semaphores segment-semaphores
	runs_ahead memfd-semaphores
	finds memfd-semaphores "$(cycle_of 2)"
	finds segment-semaphores "$(cycle_of 2 probable)"
	start_all hang_processes memfd-in-a-message # what is in the message nobody knows: it may be of any of them
	grep -qs '^scm_fds:' /proc/[0-9]*/fdinfo/* || skip "the kernel does not tell of descriptors in messages"
	finds memfd-in-a-message "$(cycle_of 2 probable)"
	longpole deadlock --settle=50ms --pid "${pid_of[memfd-in-a-message]}" >text
	! grep -q 'not ours' text || fail "not ours"
	has text '1 process may have, or receive, what some of them wait for'
}

# A process that descends from them, and may not be looked into, may have what they wait for.
test_deadlock_beside_the_unreadable() {
	start_all hang_processes beside-unreadable
	runs_ahead beside-unreadable
	if ((EUID == 0)); then # all is seen
		finds beside-unreadable "$(cycle_of 2)"
		is_json beside-unreadable.json '.result.processes_not_readable == 0'
		return
	fi
	finds beside-unreadable "$(cycle_of 2 probable)"
	is_json beside-unreadable.json '.result.processes_not_readable == 1'
	says beside-unreadable 'probable' '1 process may have, or receive, what some of them wait for'
	! grep -q 'certain:' text || fail "certain, beside who was not seen"
}

# Processes that are one memory: what is private to it is theirs all the same.
test_deadlock_in_one_memory() {
	start_all hang_processes one-memory
	start_all calm clone-posts
	runs_ahead one-memory
	finds one-memory "$(cycle_of 2)"
	is_json one-memory.json '.result.deadlocks[0].edges | all(.why == "would")'
	until_calm clone-posts '.result.threads == 4'
	is_json clone-posts.json '.result.processes == 2'
}

# Queues of connections that nobody accepts: whoever has the listening socket could make room, and nobody else.
test_deadlock_of_full_listeners() {
	local name
	start_all hang_processes full-listener full-listeners full-listener-by-path full-own-listener full-tcp-listeners
	runs_ahead full-listeners
	for name in full-listener full-listeners full-listener-by-path; do
		finds "$name" "$(cycle_of 2)"
	done
	is_json full-listener.json '.result.deadlocks[0].edges | any(.why == "would" and (.event | startswith("room in the queue of a listening socket")))'
	finds full-own-listener '.result.deadlocks | map([.kind, .sure]) == [["self", "certain"]]'
	finds full-tcp-listeners "$(cycle_of 2 probable)"
	is_json full-tcp-listeners.json '.result.deadlocks[0].ends_within_ns < 128e9'
}

# A limit that no argument of the call says.
test_deadlock_of_socket_limits() {
	start_all hang_processes both-read-for-minutes both-read-for-a-while
	runs_ahead both-read-for-minutes
	finds both-read-for-minutes "$(cycle_of 2 probable)"
	is_json both-read-for-minutes.json '.result.deadlocks[0].ends_within_ns | . > 200e9 and . < 301e9'
	for _ in {1..3}; do
		look both-read-for-a-while || fail "both-read-for-a-while: reported"
	done
}

# start_in_namespace PROGRAM CASE - the same in a PID namespace of its own, where its number is another.
start_in_namespace() {
	local program=$hangs/$1 name=$2
	TMPDIR=$PWD setsid unshare "${unshare[@]}" --pid --fork --kill-child "$program" "$name" >"$name.said" 2>/dev/null </dev/null &
	local outer=$!
	started+=("$outer")
	disown
	trap stop_all EXIT
	for _ in {1..6000}; do
		grep -qs READY "$name.said" && break
		sleep 0.01
	done
	has "$name.said" 'READY 1'
	pid_of[$name]=$(tr -d ' ' <"/proc/$outer/task/$outer/children")
	[[ ${pid_of[$name]} ]] || fail "$name is not there"
}

# Owners in lock words and numbers of children are those of the program's own PID namespace.
test_deadlock_in_a_pid_namespace() {
	local name unshare=()
	unshare --pid --fork true 2>/dev/null || unshare=(--user --map-root-user)
	unshare "${unshare[@]}" --pid --fork true 2>/dev/null || skip "no PID namespaces here"
	for name in circle-normal circle-errorcheck circle-pi circle-robust join-with-lock; do
		start_in_namespace hang_threads "$name"
		finds "$name" "$(cycle_of 2)" --static
	done
	start_in_namespace hang_threads join-circle
	finds join-circle "$(cycle_of 3)" --static
	start_in_namespace hang_processes wait-full-pipe
	finds wait-full-pipe "$(cycle_of 2)"
	for name in slow-sleeping slow-computing waits-for-child shares-locks; do
		start_in_namespace calm "$name"
		for _ in {1..3}; do
			look "$name" || fail "$name: $(jq -r .result.finding "$name.json")"
		done
	done
}

test_deadlock_cxx() {
	[[ -x $hangs/hang_cxx ]] || skip "no C++ compiler when this was built"
	start_all hang_cxx mutexes semaphores statics static-and-lock static-and-once
	finds mutexes "$(cycle_of 2)" --static
	is_json mutexes.json '.result.deadlocks[0].threads[0].frames | any(.function | contains("transfer(")) '
	finds semaphores '.result.deadlocks | length == 1 and .[0].sure == "certain"'
	runs_ahead semaphores
	finds statics "$(cycle_of 2)"
	is_json statics.json '.result.deadlocks[0].edges | map(.event) | sort == ["static object (anonymous namespace)::one()::it", "static object (anonymous namespace)::other()::it"]'
	finds static-and-lock "$(cycle_of 2)"
	finds static-and-once "$(cycle_of 2)"
}

# libc++ has one condition variable for all static objects; who is at one stands in its guard.
test_deadlock_of_libcxx_statics() {
	[[ -x $hangs/hang_cxx ]] || skip "no C++ compiler when this was built"
	start_all hang_cxx statics-of-libcxx static-of-libcxx-and-lock
	((pid_of[statics-of-libcxx])) || skip "no libc++abi.so.1 here"
	finds statics-of-libcxx "$(cycle_of 2)" --static
	is_json statics-of-libcxx.json '.result.deadlocks[0] | (.edges | map(.event) | sort == ["static object (anonymous namespace)::guard_one", "static object (anonymous namespace)::guard_other"]) and
		all(.threads[]; .wait | contains("constructed a static object"))'
	finds static-of-libcxx-and-lock "$(cycle_of 2)" --static
}

# Unmodified Python: its locks are semaphores, so all of it is found by running ahead.
test_deadlock_of_python() {
	command -v python3 >/dev/null || skip "no python3"
	local name program=$LONGPOLE_SOURCE/tests/target/deadlock/hang_python.py
	start_all "$program" locks child pool queues join idle
	runs_ahead locks
	for name in locks child join; do
		finds "$name" "$(cycle_of 2)"
	done
	for name in pool queues; do
		finds "$name" '.result.deadlocks | length == 1 and (.[0] | .sure == "certain" and (.threads | length) == 2)'
	done
	look idle || fail "an idle pool was reported"
	if jq -e '.result.deadlocks[0].threads[0].without_python_frames' locks.json >/dev/null; then
		has locks.json 'Python' # why not
		return
	fi
	is_json locks.json '.result.deadlocks[0].threads | all(.python_frames[0] | .function | test("transfer$"))'
	is_json locks.json "[.result.deadlocks[0].threads[].python_frames[0].line] |
		unique == [$(grep -n 'with wants:' "$program" | cut -d: -f1)]"
	is_json pool.json '.result.deadlocks[0].threads | any(.python_frames | any(.function == "pool" and (.file | endswith("hang_python.py"))))'
	says join 'work() hang_python.py:' '< join() hang_python.py:'
}

test_deadlock_look_alikes() {
	local name names pids=()
	mapfile -t names < <("$hangs/calm")
	start_all calm "${names[@]}"
	for name in "${names[@]}"; do
		pids+=(--pid "${pid_of[$name]}")
	done
	for _ in {1..5}; do
		expect 0 timeout 120 longpole deadlock --json --settle=50ms "${pids[@]}"
		is_json out '.result.deadlocks == [] and .result.threads_asleep > 20'
	done
}

test_deadlock_watch() {
	start_all hang_processes cgi
	start_all hang_threads philosophers
	expect 1 timeout 120 longpole deadlock --watch --json --interval=50ms --threshold=100ms --share=100 --count=2 \
		--pid "${pid_of[cgi]}" --pid "${pid_of[philosophers]}"
	is_json <(jq -s '[.[].result.deadlocks[]] | map(.threads | length) | sort' out) '. == [2, 5]'
	# each is told once, however often it is looked at
	timeout -s INT 3 longpole deadlock --watch --json --interval=50ms --threshold=100ms --share=100 \
		--pid "${pid_of[cgi]}" --pid "${pid_of[philosophers]}" >told 2>err </dev/null
	is_json <(jq -s '[.[].result.deadlocks[]] | map(.threads | length) | sort' told) '. == [2, 5]'
}

# What systemd itself says to the unit, with the program that was built.
test_deadlock_unit() {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	sed "s|^ExecStart=[^ ]*|ExecStart=$work/bin/longpole|" "$LONGPOLE_BUILD/data/longpole-deadlock.service" >longpole-deadlock.service
	grep -q "^ExecStart=$work/bin/longpole deadlock --all --watch" longpole-deadlock.service || fail "no ExecStart"
	local status=0
	timeout 120 systemd-analyze verify --man=no "$PWD/longpole-deadlock.service" >said 2>&1 || status=$?
	if grep -q 'longpole-deadlock' said; then fail "systemd-analyze verify: $(grep -m 1 longpole-deadlock said)"; fi
	# and its options are ours: the one that is not is what is wrong
	# shellcheck disable=SC2046 # words
	set -- $(sed -n 's/^ExecStart=[^ ]* //p' longpole-deadlock.service)
	expect 2 longpole "$@" --interval=never
	has err --interval
	((status == 0)) || skip "systemd-analyze does not run here: $(head -n 1 said)"
}

test_deadlock_of_a_core_file() {
	start_all hang_threads philosophers
	finds philosophers "$(cycle_of 5)" --static
	local core
	if command -v gcore >/dev/null && gcore -o dump "${pid_of[philosophers]}" >/dev/null 2>&1; then
		core=$(echo dump.*)
	else
		skip "no gcore here"
	fi
	expect 1 longpole deadlock --json --core "$core"
	is_json out "$(cycle_of 5)"
	is_json out '.result.deadlocks[0].threads | all(.frames | any(.function == "philosopher"))'
	head -c 5000 "$core" >short
	longpole deadlock --core short >out 2>err
	(($? == 3 || $? == 0)) || fail "a core that was cut short: exit status $?"
	expect 3 longpole deadlock --core "$hangs/hang_threads"
	expect 4 longpole deadlock --core /nonexistent
}

# circles_of SPEC... - of hang_random: each circle's threads, as numbers, by where it is first met; and whether it is certain: all of its waits have
# an owner, or nobody is left who lives.
circles_of() {
	local spec=("$@") i at of step lives=0 circle sure
	local -A in_circle=()
	for ((i = 0; i < $#; i++)); do
		at=$i
		for ((step = 0; step <= $#; step++)); do
			[[ ${spec[at]} == z ]] && { lives=1; break; }
			at=${spec[at]:1}
		done
	done
	for ((i = 0; i < $#; i++)); do
		at=$i
		for ((step = 0; step < $#; step++)); do [[ ${spec[at]} == z ]] || at=${spec[at]:1}; done
		[[ ${spec[at]} == z || ${in_circle[$at]-} ]] && continue
		circle='' sure=certain of=$at
		while [[ ! ${in_circle[$of]-} ]]; do
			in_circle[$of]=1
			circle+="$of "
			[[ ${spec[of]} == [su]* ]] && ((lives)) && sure=probable
			of=${spec[of]:1}
		done
		echo "$sure $(tr ' ' '\n' <<<"$circle" | sort -n | xargs)"
	done | sort
}

# Random programs of mutexes, semaphores and rwlocks, against who waits for whom.
test_deadlock_at_random() {
	local seed=4711 program i n of until kinds=(m s r w u m s z) spec name names=()
	local -A spec_of=()
	RANDOM=$seed
	for ((program = 0; program < 40; program++)); do
		n=$((RANDOM % 5 + 2)) spec=()
		for ((i = 0; i < n; i++)); do
			of=$((RANDOM % n))
			((of == i)) && of=$(((of + 1) % n))
			name=${kinds[RANDOM % 8]}
			[[ $name == z ]] || name+=$of
			spec+=("$name")
		done
		name="${spec[*]}"
		name=${name// /-}
		[[ ${spec_of[$name]-} ]] && continue
		spec_of[$name]="${spec[*]}"
		names+=("$name")
		# shellcheck disable=SC2086 # words
		setsid "$hangs/hang_random" ${spec_of[$name]} >"$name.said" 2>/dev/null </dev/null &
		started+=($!)
		disown
	done
	trap stop_all EXIT
	for name in "${names[@]}"; do
		for _ in {1..6000}; do
			grep -qs READY "$name.said" && break
			sleep 0.01
		done
		pid_of[$name]=$(sed -n 's/^READY //p' "$name.said")
		[[ ${pid_of[$name]} ]] || fail "hang_random $name did not start"
	done
	look "${names[0]}" || is_json "${names[0]}.json" '.result.threads >= 2'
	for name in "${names[@]}"; do
		# shellcheck disable=SC2086 # words
		circles_of ${spec_of[$name]} >want
		until=$((SECONDS + 60))
		while ((SECONDS < until)); do
			look "$name" || (($? == 1)) || fail "$name: exit status"
			jq -r --argjson tids "[$(sed -n 's/^TIDS //p' "$name.said" | tr ' ' ,)]" '.result.deadlocks[] |
				.sure + " " + ([.threads[].tid as $t | $tids | index($t)] | sort | map(tostring) | join(" "))' "$name.json" | sort >got
			cmp -s want got && continue 2
		done
		fail "hang_random ${spec_of[$name]}: $(paste -sd, got) instead of $(paste -sd, want)"
	done
}

# Whoever stops threads to look at them still sees that they have slept on, for two seconds.
test_deadlock_of_a_program_in_doubt() {
	local name
	for name in threads-doubtful threads-timed-beside timed-timed-semaphores timed-timed-mutexes; do
		expect 1 timeout 120 longpole deadlock --settle=50ms -- "$hangs/hang_${name%%-*}" "${name#*-}"
		has out 'Deadlock: 2 threads' 'probable'
	done
	has out 'a time limit ends it within'
}

test_deadlock_of_a_program() {
	expect 1 timeout 120 longpole deadlock --settle=50ms -- "$hangs/hang_threads" circle-normal
	has out 'Deadlock: 2 threads'
	expect 0 timeout 120 longpole deadlock --settle=50ms -- sleep 0.2
	expect 2 longpole deadlock
	expect 2 longpole deadlock --all --pid $$
	expect 2 longpole deadlock --pid 0
}

# all_ended FILE - no process whose number is in the file lives (who ended may wait for its parent).
all_ended() {
	local pid
	while read -r pid; do
		[[ ! -e /proc/$pid || $(<"/proc/$pid/stat") == *') Z '* ]] || fail "process $pid of $1 lives on: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done < <(tr ' ' '\n' <"$1")
}

# What a program started ends with it when it hangs, wherever it went: nobody else holds our output. What others started lives on.
test_deadlock_ends_all_that_hangs() {
	local hang="exec $hangs/hang_threads circle-normal"
	# an orphan in a session of its own, a child with a child, one that ignores what it can
	timeout 120 longpole deadlock --settle=50ms -- sh -c "
		(setsid sh -c 'sleep 600 & echo \$\$ \$! >>pids; wait' &)
		sh -c 'sh -c \"echo \\\$\\\$ >>pids; trap : TERM HUP INT; sleep 600; :\"; :' &
		while [ \"\$(wc -w <pids)\" != 3 ]; do sleep 0.01; done 2>/dev/null
		$hang" 2>err | timeout 60 cat >out
	((PIPESTATUS[1] == 0)) || fail 'somebody still holds the output'
	has out 'Deadlock: 2 threads'
	(($(wc -w <pids) == 3)) || fail 'the program did not start all that it should'
	all_ended pids
	# many, and a circle among processes of which the program is none
	expect 1 timeout 120 longpole deadlock --settle=50ms -- sh -c "for i in \$(seq 150); do sleep 600 & echo \$! >>many; done; $hangs/hang_threads circle-normal & wait"
	all_ended many
	# a reader that is gone
	longpole deadlock --settle=50ms -- sh -c "echo \$\$ >gone; $hang" 2>err | true
	all_ended gone
	# a child of the process that became longpole is not the program's
	expect 1 timeout 120 bash -c "sleep 600 & echo \$! >before; exec longpole deadlock --settle=50ms -- $hangs/hang_threads circle-normal"
	kill "$(cat before)" || fail 'a process was killed that the program did not start'
}

# A daemon that a program left on purpose lives on when the program ends.
test_deadlock_leaves_daemons() {
	expect 0 timeout 120 longpole deadlock --settle=50ms -- sh -c 'setsid sleep 600 >/dev/null 2>&1 & echo $! >daemon'
	kill "$(cat daemon)" || fail 'the daemon was killed'
	expect 4 longpole deadlock -- ./nothing-here
	has err 'starting ./nothing-here'
}

# Locks in opposite order that did not hang: how many circles, and of how many threads.
test_deadlock_potential() {
	local name want
	while read -r name want; do
		rm -f longpole-order.lpt
		timeout 120 longpole deadlock --potential --json -- "$hangs/order" "$name" 2>"$name.err" >/dev/null </dev/null
		longpole deadlock --potential --json longpole-order.lpt >"$name.json" 2>err
		is_json "$name.json" "[.result.potential_deadlocks[].steps | length] == $want"
	done <<-END
		opposite [2]
		three [3]
		joined []
		created []
		alone []
		gated []
		readers []
		tries []
		tries-rwlock []
		tried-first [2]
		timed []
		timed-rwlock []
		timed-first [2]
		initialised-again []
		destroyed []
		freed []
		kept [2]
		writer [2]
	END
	is_json joined.json '.result.one_after_the_other >= 1'
	is_json gated.json '.result.guarded_by_a_lock >= 1'
	is_json opposite.json '[.result.potential_deadlocks[0].steps[] | .has, .takes] | unique == ["mutex a", "mutex b"]'
	is_json opposite.json '.result.potential_deadlocks[0].steps | all(.takes_where | contains("order.c:"))'
	expect 1 longpole deadlock --potential longpole-order.lpt # of "writer", the last one
	has out '1 potential deadlock: 2 threads' 'as a reader'
}

test_deadlock_potential_is_of_a_recording() {
	expect 2 longpole deadlock --potential --pid 1 "$trace"
	has err '--potential is about a recording: --pid does not apply'
	expect 2 longpole deadlock --potential --svg "$trace"
}
