# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $work comes from run.sh
# slack.sh - longpole slack on programs that are recorded here.

# Two threads, a lock that is held long by one, a barrier; the answer is known but for caches.
make_waiter() {
	cat >waiter.c <<-'END'
		#include <pthread.h>
		static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
		static pthread_barrier_t meet;
		static volatile long shared, own;
		static __attribute__((noinline)) void hold(void)
		{
			for (int i = 0; i < 20000; i++)
				shared++;
		}
		static __attribute__((noinline)) void little(void)
		{
			for (int i = 0; i < 100; i++)
				own++;
		}
		static void *other(void *arg)
		{
			pthread_barrier_wait(&meet);
			little();
			pthread_barrier_wait(&meet);
			return arg;
		}
		int main(void)
		{
			pthread_t t;
			pthread_barrier_init(&meet, 0, 2);
			pthread_create(&t, 0, other, 0);
			pthread_barrier_wait(&meet);
			pthread_mutex_lock(&m);
			hold();
			pthread_mutex_unlock(&m);
			pthread_barrier_wait(&meet);
			pthread_join(t, 0);
			return 0;
		}
	END
	longpole cc -O1 -g waiter.c -o waiter -lpthread 2>err || skip "longpole cc does not build here: $(head -c 200 err)"
	expect 0 longpole record -q --level 3 -o waiter.lpt ./waiter
}

test_slack_names_what_is_critical() {
	make_waiter
	expect 0 longpole slack waiter.lpt
	grep -Eq ' instructions are critical(, half of all could each wait (1 cycle|[0-9]+ cycles) or more)? \(modelled' out || fail "what half could wait: $(head -1 out)"
	has out 'of the critical path is in hold' '100.00% of it is named' 'waiter.c:8' 'NEXT  longpole slack'
	expect 0 longpole slack --json waiter.lpt
	is_json out '.schema == "longpole/slack/1" and .result.end_cycle == .result.critical_cycles'
	is_json out '.result.functions[0].name == "hold" and .result.functions[0].mean_slack_cycles < 10'
	is_json out '.result.functions[] | select(.name == "little") | .mean_slack_cycles > 10000'
	is_json out '.result.processors[1].waited_cycles > 10000 and .result.forced_waits == 0 and .result.bad_calls == 0'
	is_json out '.result.graph | .raw_edges == .kept_raw_edges + .removed_same_store + .removed_in_time + .removed_beyond'
	is_json out '([.result.global_slack[].instructions] | add) == .result.graph.instructions'
	is_json out '.result.diagnostics == []'
	cp out first
	expect 0 longpole slack --json waiter.lpt
	cmp first out || fail "the same trace has two answers"
}

test_slack_machines() {
	make_waiter
	expect 0 longpole slack --json --set=hop_cycles=0 --set=memory_cycles=0 --set=second_cycles=0 --set=contention=0 waiter.lpt
	is_json out '[.result.processors[] | .miss_cycles, .fetch_cycles, .contention_cycles] | max < 100'
	printf '[machine]\nprotocol = dirmosi\nhop_cycles = 5000\n' >slow.ini
	expect 0 longpole slack --json --machine=slow.ini waiter.lpt
	is_json out '.result.protocol == "dirmosi" and .result.end_cycle > 100000'
	expect 2 longpole slack --set=nodes=1 waiter.lpt
	has err 'the trace has 2 threads'
	expect 2 longpole slack --set=no_such=1 waiter.lpt
	expect 2 longpole slack --continuous=7 waiter.lpt
	expect 0 longpole slack --continuous=1 --from-parallel waiter.lpt
	has out 'Only what leads to the end of processor 1'
	make_smait run.2
	expect 2 longpole slack run.2
	has err 'record with --level 3'
}

test_slack_out_of_order() {
	make_waiter
	expect 0 longpole slack -o waiter.lpt
	has out 'of the out-of-order critical path is' 'longpole slack --out-of-order --window=256' 'of 0 of'
	expect 0 longpole slack -o --json waiter.lpt
	is_json out '.result | ([.cause_cycles[]] | add) == .cycles and .cycles < .in_order_cycles and .not_decoded == 0'
	cp out wide
	expect 0 longpole slack -o --json --window=1 waiter.lpt
	is_json out '.result.cycles > '"$(jq .result.cycles wide)"
	expect 0 longpole slack -o --instructions=1000 waiter.lpt
	has out 'only the first 1000 instructions'
	expect 2 longpole slack -o --window=0 waiter.lpt
	expect 2 longpole slack -o --continuous=0 waiter.lpt
	mv waiter gone # the program is not there any more: no names, no registers, but an answer
	expect 0 longpole slack -o --json waiter.lpt
	is_json out '.result.not_decoded == .result.instructions and .result.cycles > 0'
	expect 0 longpole slack waiter.lpt
	has out '100.00% of it is named'
}

test_slack_finds_what_spins() {
	longpole cc -O2 -g "$LONGPOLE_SOURCE/tests/target/spin_known.c" -o known -lpthread 2>err ||
		skip "longpole cc does not build here: $(head -c 200 err)"
	local kind useful
	expect 0 longpole record -q --level 3 -o work.lpt ./known compute 2 3 20000
	expect 0 longpole slack --spins --json work.lpt
	is_json out '.result.spins.spin_instructions == 0 and .result.spins.rounds_not_told == 0'
	useful=$(jq .result.spins.instructions out)
	# however long they wait, the useful instructions are those of the work
	for kind in flag idle; do
		expect 0 longpole record -q --level 3 -o spin.lpt ./known $kind 2 3 20000
		expect 0 longpole slack --spins --json spin.lpt
		[[ $kind == idle ]] || is_json out "(.result.spins | .instructions - .spin_instructions) / $useful | . > 0.98 and . < 1.02"
		is_json out '.result.spins.anew.several_stores >= 0 and .result.forced_waits == 0'
		expect 0 longpole slack --spins --as-recorded --json spin.lpt
		is_json out '.result.spins.anew == null'
		is_json out '.result.spins.spin_instructions == ([.result.processors[].spinning_instructions] | add)'
		is_json out '.result | ([.processors[].spun_cycles] | add) >= .spins.spin_instructions'
	done
	is_json out '[.result.spins.loops[].name | select(startswith("wait_"))] == [.result.spins.loops[].name]'
	expect 0 longpole slack --spins spin.lpt
	has out 'of the recorded instructions'
	# polling with a counter is a class of its own
	expect 0 longpole record -q --level 3 -o poll.lpt ./known poll 2 3 2000
	expect 0 longpole slack --spins --json poll.lpt
	is_json out '.result.spins | .spin_instructions == 0 and .counting_instructions > .instructions * 0.2 and all(.loops[]; .counts and (.name | startswith("poll_counted")))'
	expect 0 longpole slack --spins poll.lpt
	has out 'poll and count' '; counts'
}

# One of two threads works at a time, whatever was recorded: so the other one spins in the machine.
test_slack_waits_anew() {
	longpole cc -O2 -g "$LONGPOLE_SOURCE/tests/target/spin_known.c" -o known -lpthread 2>err ||
		skip "longpole cc does not build here: $(head -c 200 err)"
	local wait
	for wait in flag mcs; do
		expect 0 longpole record -q --level 3 -o $wait.lpt ./known $wait 2 5 20000
		expect 0 longpole slack --spins --json $wait.lpt
		jq -e '.result.spins.anew | .waits > 0 and .several_stores + .no_store == 0' out >/dev/null || continue # nobody waited in its loop when it was recorded
		is_json out '.result | .forced_waits == 0 and ([.processors[].instructions] | add) - .spins.anew.spin_instructions == .spins.instructions - .spins.spin_instructions'
		is_json out '.result | .end_cycle > 1.5 * (.spins.instructions - .spins.spin_instructions) / 2'
		expect 0 longpole slack --spins $wait.lpt
		has out 'waited anew' 'useful IPC'
	done
}
