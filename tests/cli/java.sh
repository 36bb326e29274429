# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# java.sh - Java programs in their own words: monitors, locks and queues by class and line, threads by name.

# need_java - a JDK, and the programs of tests/target/java compiled into ./classes.
need_java() {
	type -p java javac >/dev/null || skip 'no JDK here'
	javac -d classes "$LONGPOLE_SOURCE"/tests/target/java/*.java >javac.out 2>&1 || skip "javac: $(head -n 1 javac.out)"
	# where nothing may be asked for its address space, HotSpot does not begin
	java -version >java.out 2>&1 || skip "java: $(head -n 1 java.out)"
}

# record_java CLASS [ARGUMENT...] - in CLASS.lpt and CLASS.txt; with its output and status as they are without us. $options are java's.
record_java() {
	local class=$1 status=0
	# shellcheck disable=SC2086 # several
	java ${options-} -cp classes "$@" >"$class.bare" 2>"$class.bare_err" || status=$?
	# shellcheck disable=SC2086
	longpole record -q -o "$class.lpt" java ${options-} -cp classes "$@" >"$class.out" 2>"$class.err"
	same_status "$status" $?
	cmp -s "$class.bare" "$class.out" || fail "its output is another: $(<"$class.out")"
	cmp -s "$class.bare_err" "$class.err" || fail "on standard error there is: $(<"$class.err")"
	COLUMNS=160 longpole report --full "$class.lpt" >"$class.txt" 2>err || fail "$(<err)"
}

same_status() {
	(($1 == $2)) || fail "status $2, $1 without us"
}

# first CLASS WHAT - what `report` has first is about that.
first() {
	grep -E "^ +#1 .*$2" "$1.txt" >/dev/null || fail "$(<"$1.txt")"
}

# A monitor under which four fifths are done: it is first, by its class and the line that takes it.
test_java_monitor() {
	need_java
	record_java Ladder sleep 40 1
	first Ladder 'monitor Object of Ladder.* Ladder.java:42'
	longpole locks Ladder.lpt >locks.txt
	has locks.txt 'monitor Object of Ladder.sleep (Ladder.java:42)'
	longpole dump Ladder.lpt >dump.txt
	grep -q 'lock_wait .*monitor Object.*site=[0-9]*(Ladder.sleep (Ladder.java:42)) stack=.*< Thread.run' dump.txt || fail 'no Java call path'
	! grep -q 'lock_acquire .*mutex made by os::Platform' dump.txt || fail "the VM's own mutexes are in it"
	longpole whatif --json Ladder.lpt remove 'monitor Object' >whatif.json || fail 'no prediction'
	is_json whatif.json '.result.scenarios[0].edits[0].waited_ns > 0'
}

# The same while its holders compute: samples are named by methods, also those that the compiler put into others.
test_java_compiled() {
	need_java
	record_java Ladder compute 60 1
	has Ladder.txt 'Ladder.burn' 'monitor Object of Ladder.climb (Ladder.java:25)' java/climber
	longpole dump Ladder.lpt >dump.txt
	grep -q 'sample site=[0-9]*(Ladder.burn (Ladder.java:1[0-3]))' dump.txt || fail 'no sample has a line of the method'
}

test_java_lock() {
	need_java
	record_java LockLadder 30 1
	first LockLadder 'lock ReentrantLock of LockL.* LockLadder.java:10'
	longpole dump LockLadder.lpt >dump.txt
	grep -q 'lock_wait .*ReentrantLock.* stack=[0-9]*(.*ReentrantLock.* < LockLadder.climb' dump.txt || fail 'no Java call path'
	! grep -q 'lock_wait .*site=[0-9]*(Parker::park' dump.txt || fail "the VM's parking is in it"
	longpole whatif --json LockLadder.lpt '#1=-50%' >whatif.json || fail 'no prediction'
	# (timing gates nothing: both numbers are for readers of the log)
	longpole record -q -o changed.lpt java -cp classes LockLadder 30 2 >out 2>&1 || fail "$(<out)"
	longpole report --json changed.lpt >changed.json || fail 'no report'
	echo "# held half as long: predicted $(jq -r '.result | (.elapsed_ns / .scenarios[0].best.predicted_speedup / 1e6 | floor)' whatif.json) ms," \
		"made so it took $(jq -r '.result.elapsed_ns / 1e6 | floor' changed.json) ms" >&2
}

# A producer that a slow consumer holds up.
test_java_queue() {
	need_java
	record_java Pipeline 60 10
	first Pipeline 'sleeping +Pipeline.java:9'
	longpole dump Pipeline.lpt >dump.txt
	grep -q 'cond_wait .*blocker ArrayBlockingQueue.put of Pipeline.produce (Pipeline.java:15)' dump.txt || fail 'the producer does not wait where it puts'
	longpole whatif --json Pipeline.lpt '#1=-50%' >whatif.json || fail 'no prediction'
	longpole record -q -o changed.lpt java -cp classes Pipeline 60 5 >out 2>&1 || fail "$(<out)"
	longpole report --json changed.lpt >changed.json || fail 'no report'
	echo "# a consumer twice as fast: predicted $(jq -r '.result | (.elapsed_ns / .scenarios[0].best.predicted_speedup / 1e6 | floor)' whatif.json) ms," \
		"made so it took $(jq -r '.result.elapsed_ns / 1e6 | floor' changed.json) ms" >&2
}

# One slow task of a pool, for which main waits at a latch; the program ends by System.exit(3).
test_java_pool() {
	need_java
	record_java ForkJoin
	first ForkJoin 'sleeping +ForkJoin.java:15'
	has ForkJoin.txt java/pool-1-thread
	longpole dump ForkJoin.lpt >dump.txt
	grep -q 'cond_wait .*blocker CountDownLatch.await of ForkJoin.main (ForkJoin.java:32)' dump.txt || fail 'main does not wait at the latch'
}

test_java_notify() {
	need_java
	record_java PingPong 30
	first PingPong 'sleeping +PingPong.java:14'
	longpole dump PingPong.lpt >dump.txt
	grep -q 'cond_wait .*blocker Object.wait of PingPong.play (PingPong.java:11)' dump.txt || fail 'no wait for notify()'
	grep -q 'cond_signal .*blocker Object.wait of PingPong.play' dump.txt || fail 'no notify()'
	grep -q 'cond_wait .*blocker Thread.join of PingPong.main' dump.txt || fail 'no join'
}

# Most of it is its garbage's: by the thread that stops the others, or by workers, as the collector is.
test_java_garbage() {
	local options
	need_java
	for options in '-Xmx64m -XX:+UseSerialGC' '-Xmx64m -XX:+UseParallelGC'; do
		record_java Garbage 60000
		first Garbage 'collecting garbage'
		longpole dump Garbage.lpt >dump.txt
		grep -q 'note_state state=[0-9]*(collecting garbage)' dump.txt || fail 'nobody says that he collects it'
	done
}

# It ends as without us, however it does, and a daemon that sleeps keeps nobody.
test_java_ends() {
	local how
	need_java
	for how in exit throw halt interrupt plain; do
		record_java Ends "$how"
	done
	longpole record -q -o killed.lpt java -cp classes Ends wait >killed.out 2>killed.err &
	local recorder=$! pid
	for _ in {1..200}; do
		! grep -q waiting killed.out || break
		sleep 0.05
	done
	pid=$(pgrep -P "$recorder" -x java) || fail 'it did not begin'
	kill -KILL "$pid"
	wait "$recorder"
	same_status 137 $?
	[[ ! -s killed.err ]] || fail "$(<killed.err)"
	longpole dump killed.lpt >killed.txt || fail 'nothing of what was killed can be read'
	has killed.txt 'sleep_begin duration_ns=60000000000 site='
	grep -q 'sleep_begin .*(Ends.asleep (Ends.java:6))' killed.txt || fail 'not where it slept'
}

# Its own tables' slots are those of the JDK's header.
test_java_slots() {
	local java include
	type -p java gcc >/dev/null || skip 'no JDK here'
	java=$(readlink -f "$(type -p java)")
	include=${java%/bin/java}/include
	[[ -r $include/jvmti.h ]] || skip "no jvmti.h in $include"
	cat >slots.c <<-'END'
		#include <stddef.h>
		#include <jvmti.h>
		#include <jvmticmlr.h>
		#define X(name, slot) _Static_assert(offsetof(jvmtiInterface_1, name) == (slot) * sizeof(void *), #name);
		SLOTS_OF_JVMTI(X)
		#undef X
		#define X(name, slot) _Static_assert(offsetof(struct JNINativeInterface_, name) == (slot) * sizeof(void *), #name);
		SLOTS_OF_JNI(X)
		#undef X
		#define X(name, number) _Static_assert(JVMTI_EVENT_##name == (number), #name);
		EVENTS(X)
		_Static_assert(offsetof(struct JNIInvokeInterface_, GetEnv) == 6 * sizeof(void *), "GetEnv");
		_Static_assert(sizeof(jvmtiFrameInfo) == 16 && sizeof(jvmtiLineNumberEntry) == 16 && sizeof(jvmtiThreadInfo) == 32, "structs");
	END
	# the lists alone, under names that the JDK's header does not have
	sed -n -e 's/define JVMTI_SLOTS/define SLOTS_OF_JVMTI/' -e 's/define JNI_SLOTS/define SLOTS_OF_JNI/' -e 's/define JVMTI_EVENTS/define EVENTS/' \
		-e '/define [A-Z_]*(X)/,/[^\\]$/p' "$LONGPOLE_SOURCE/src/runtime/java/jvm.h" >lists.h
	gcc -I"$include" -I"$include/linux" -include lists.h -fsyntax-only slots.c 2>err || fail "$(<err)"
}

# A circle of monitors is not seen from outside: the answer says so, and that jstack sees it. No other program's does.
test_java_deadlock() {
	need_java
	java -Xint -cp classes Circle >circle.out 2>&1 &
	local pid=$! i
	for ((i = 0; i < 600; i++)); do
		! grep -x both circle.out >/dev/null || break
		sleep 0.1
	done
	longpole deadlock -p "$pid" >deadlock.txt 2>&1
	longpole deadlock -p "$pid" --json >deadlock.json 2>&1
	kill "$pid"
	grep -F "jstack $pid says them" deadlock.txt >/dev/null || fail "$(<deadlock.txt)"
	jq -e ".result.java_pid == $pid" deadlock.json >/dev/null || fail "$(<deadlock.json)"
	sleep 60 &
	pid=$!
	longpole deadlock -p "$pid" --json >deadlock.json 2>&1
	kill "$pid"
	jq -e '.result.java_pid == 0' deadlock.json >/dev/null || fail "$(<deadlock.json)"
}
