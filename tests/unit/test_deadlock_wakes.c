/* SPDX-License-Identifier: Apache-2.0 */
/* test_deadlock_wakes.c - how a wake-up is faked in the memory of a copy, for each kind of wait.
 * Known answers. */
#include "deadlock/deadlock.h"
#include "deadlock_copy_calls.h"

#include <errno.h>
#include <linux/futex.h>

/* ---- faked wake-ups -------------------------------------------------------------------------- */

enum { OBJECT = MEMORY + 64, WAYS = 6, WORDS = 5 };

/* What the ways, one after the other, make of the words at the object; 0 ways: cannot be faked. */
struct faked {
	enum deadlock_kind kind;
	unsigned at; /* the awaited word */
	uint32_t before[WORDS];
	unsigned nr_ways;
	uint32_t after[WAYS][WORDS];
};

static const struct faked faked[] = {
	{DEADLOCK_MUTEX, 0, {2, 1, 2, 3}, 1, {{0, 0, 0, 2}}},
	{DEADLOCK_MUTEX, 0, {2, 1, 2, 0}, 1, {{0, 0, 0, 0}}},
	{DEADLOCK_MUTEX, 0, {2, 1, 9, 3}, 1, {{0, 1, 9, 3}}}, /* not as its owner left it */
	{DEADLOCK_LOCK, 0, {2, 1, 2, 3}, 1, {{0, 1, 2, 3}}},
	{DEADLOCK_JOIN, 0, {77, 1}, 1, {{0, 1}}},
	{DEADLOCK_SEMAPHORE, 0, {0, 1}, 2, {{1, 1}, {2, 1}}},
	{DEADLOCK_CONDITION, 2, {0, 0, 4, 1}, 3, {{0, 0, 6, 1}, {0, 0, 1, 1}, {0, 0, 4, 1}}},
	{DEADLOCK_BARRIER, 1, {0, 6, 4}, 2, {{0, 10, 4}, {0, 7, 4}}},
	{DEADLOCK_BARRIER, 1, {0, 6, 0}, 2, {{0, 7, 0}, {0, 7, 0}}},
	{DEADLOCK_ONCE, 0, {1, 5}, 1, {{2, 5}}},
	{DEADLOCK_GUARD, 0, {0x10000, 5}, 1, {{1, 5}}},
	{DEADLOCK_FUTEX, 0, {3, 5}, 5, {{3, 5}, {0, 5}, {4, 5}, {5, 5}, {2, 5}}},
	/* a reader: the phase is its, then the two values of the word */
	{DEADLOCK_RWLOCK_READ, 2, {3 | 8, 0, 1, 1}, 3,
		{{2 | 8, 0, 0, 1}, {2 | 8, 0, 0, 1}, {2 | 8, 0, 1, 1}}},
	/* a writer: readers that wait are handed over to */
	{DEADLOCK_RWLOCK_WRITE, 2, {2 | 16, 0, 0, 1}, 1, {{3, 0, 1, 1}}},
	{DEADLOCK_RWLOCK_WRITE, 2, {2 | 4 | 16, 0, 0, 1}, 1, {{3 + 8, 0, 3, 1}}},
	{DEADLOCK_RWLOCK_WRITE, 3, {2 | 16, 0, 0, 1}, 1, {{16, 0, 0, 0}}},
	{DEADLOCK_RWLOCK_READ, 0, {2 | 4 | 16, 0, 0, 1}, 1, {{16, 0, 0, 1}}},
	{DEADLOCK_POLL, 0, {7}, 0, {{7}}},
};

static void test_faked_wakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(faked); i++) {
		const struct faked *k = &faked[i];
		begin(false);
		f.wait.kind = k->kind;
		f.wait.word = OBJECT + 4 * k->at;
		f.wait.expected = k->before[k->at];
		memcpy(memory(OBJECT), k->before, sizeof k->before);
		assert_int_equal(deadlock_satisfy(&f.copy), 0);
		if (!k->nr_ways)
			assert_ends(DEADLOCK_END_FAILED, "no way");
		for (unsigned way = 0; way < k->nr_ways; way++) {
			if (memcmp(memory(OBJECT), k->after[way], sizeof k->before) != 0)
				fail_msg("row %zu, way %u: %u %u %u %u", i, way, word(OBJECT),
					word(OBJECT + 4), word(OBJECT + 8), word(OBJECT + 12));
			const bool is_last = way + 1 == k->nr_ways && k->nr_ways > 1;
			if (way + 1 < k->nr_ways || is_last)
				assert_int_equal(deadlock_satisfy_again(
							 &f.copy, f.wait.word, k->before[k->at]),
					!is_last);
		}
		f.wait.word = f.wait.object = NOWHERE;
		if (k->nr_ways && k->kind != DEADLOCK_FUTEX) {
			(void)deadlock_satisfy(&f.copy);
			if (k->kind == DEADLOCK_RWLOCK_READ || k->kind == DEADLOCK_MUTEX)
				assert_ends(DEADLOCK_END_FAILED, "cannot be read");
		}
	}
	begin(false);
	f.wait.kind = DEADLOCK_MUTEX_PARKED;
	(void)deadlock_satisfy(&f.copy);
	assert_ends(DEADLOCK_END_BLOCKED, "parked");
}

/* A priority-inheriting mutex is handed over: its word is who has it. */
static void test_handed_over(void **state)
{
	(void)state;
	begin(false);
	f.wait.kind = DEADLOCK_MUTEX_PI;
	(void)deadlock_satisfy(&f.copy);
	assert_int_equal(word(OBJECT), getpid() + 1);
	assert_false(deadlock_satisfy_again(&f.copy, OBJECT, 0));
}

/* Other words of the same object are faked twice; and who looks and waits for the same signal anew
 * has found its predicate false. */
static void test_faked_again(void **state)
{
	(void)state;
	begin(false);
	f.wait.kind = DEADLOCK_LOCK;
	(void)deadlock_satisfy(&f.copy);
	set_word(OBJECT + 4, 7);
	assert_true(deadlock_satisfy_again(&f.copy, OBJECT + 4, 7));
	assert_int_equal(word(OBJECT + 4), 0);
	assert_true(deadlock_satisfy_again(&f.copy, OBJECT + 4, 7));
	assert_false(deadlock_satisfy_again(&f.copy, OBJECT + 4, 7));
	begin(false);
	f.wait.kind = DEADLOCK_CONDITION;
	set_word(OBJECT, 10); /* waits so far */
	f.wait.word = OBJECT + 16;
	(void)deadlock_satisfy(&f.copy);
	assert_true(deadlock_satisfy_again(&f.copy, OBJECT + 16, 0));
	set_word(OBJECT, 12);
	assert_false(deadlock_satisfy_again(&f.copy, OBJECT + 16, 0));
	/* in a call: the word changes and the wait is over */
	begin(false);
	f.wait.kind = DEADLOCK_SEMAPHORE;
	(void)deadlock_satisfy(&f.copy);
	assert_int_equal(word(OBJECT), 1);
	set_word(OBJECT, 0); /* another was faster */
	assert_int_equal(DOES(futex, OBJECT, FUTEX_WAIT_PRIVATE, 0), 0);
	assert_int_equal(word(OBJECT), 1);
	set_word(OBJECT, 0);
	(void)DOES(futex, OBJECT, FUTEX_WAIT_PRIVATE, 0);
	assert_ends(DEADLOCK_END_BLOCKED, "futex");
}

/* A reader that waited behind a writer gives its own share back: that is no news. Then one more. */
static void test_gives_up_its_share(void **state)
{
	(void)state;
	begin(false);
	f.wait.kind = DEADLOCK_RWLOCK_READ;
	set_word(OBJECT, 2 | 3 * 8);
	(void)deadlock_satisfy(&f.copy);
	assert_int_equal(word(OBJECT), 3 * 8);
	set_word(OBJECT, 4 * 8); /* it is in */
	deadlock_satisfy_look(&f.copy);
	set_word(OBJECT, 3 * 8); /* and out */
	deadlock_satisfy_look(&f.copy);
	assert_int_equal(f.run.nr_events, 0);
	set_word(OBJECT, 2 * 8);
	deadlock_satisfy_look(&f.copy);
	deadlock_satisfy_look(&f.copy);
	assert_int_equal(f.run.nr_events, 1);
	assert_int_equal(f.run.event[0].count, 1);
}

/* Calls that simply succeed, or are emulated as if what they wait for were there. */
static void test_satisfied_calls(void **state)
{
	const uint64_t signals = 1 << 9 | 1 << 11;
	(void)state;
	static const struct {
		int64_t call, result;
		uint64_t arg[6];
	} call[] = {
		{SYS_flock, 0, {FD_LOCKED}},
		{SYS_fcntl, 0, {0}},
		{SYS_semop, 0, {0}},
		{SYS_semtimedop, 0, {0}},
		{SYS_msgsnd, 0, {0}},
		{SYS_nanosleep, 0, {0}},
		{SYS_clock_nanosleep, 0, {0}},
		{SYS_connect, 0, {0}},
		{SYS_pause, -EINTR, {0}},
		{SYS_rt_sigsuspend, -EINTR, {0}},
		{SYS_rt_sigtimedwait, 10, {AT}},
		{SYS_wait4, 4711, {4711}},
		{SYS_read, 1, {FD_SOCKET, AT, 9}},
	};
	for (size_t i = 0; i < BASE_COUNT(call); i++) {
		begin(false);
		memcpy(memory(AT), &signals, sizeof signals);
		f.wait.kind = DEADLOCK_READ;
		f.wait.call = call[i].call;
		memcpy(f.wait.arg, call[i].arg, sizeof f.wait.arg);
		assert_int_equal(deadlock_satisfy(&f.copy), call[i].result);
		assert_false(f.copy.is_done);
		assert_false(f.copy.is_first);
	}
	begin(false);
	f.wait.kind = DEADLOCK_UNKNOWN;
	f.wait.call = SYS_reboot;
	(void)deadlock_satisfy(&f.copy);
	assert_ends(DEADLOCK_END_FAILED, "no way");
	begin(false);
	f.wait.kind = DEADLOCK_UNKNOWN;
	f.wait.call = -1;
	(void)deadlock_satisfy(&f.copy);
	assert_ends(DEADLOCK_END_FAILED, "no way");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faked_wakes),
		cmocka_unit_test(test_handed_over),
		cmocka_unit_test(test_faked_again),
		cmocka_unit_test(test_gives_up_its_share),
		cmocka_unit_test(test_satisfied_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
