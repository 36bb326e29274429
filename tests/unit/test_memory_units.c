/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_units.c - pseudo clocks where threads wait for each other: locks, semaphores,
 * signals. */
#include "memory/order/order.h"
#include "memory_fixture.h"
#include "test.h"

#include <ctype.h>
#include <stdio.h>

enum { UNKNOWN = -1, THREADS = 4, STEPS_MAX = 64 };

/* What threads 1 to 3 do. "x": an access, an instruction long, as often as it is there; others are
 * calls at a time in microseconds: "lock@10", "found=3@20" with the number 3. They are of the
 * object A, or B. */
struct row {
	int units; /* of a semaphore that thread 0 makes */
	const char *script[THREADS - 1];
	const char *order; /* of the threads whose accesses come */
};

static const struct {
	const char *name;
	enum memory_call_kind kind;
} names[] = {
	{"lock", MEMORY_CALL_lock},
	{"read", MEMORY_CALL_lock}, /* a reader's */
	{"unlock", MEMORY_CALL_unlock},
	{"enter", MEMORY_CALL_begin_critical},
	{"leave", MEMORY_CALL_end_critical},
	{"wait", MEMORY_CALL_wait},
	{"post", MEMORY_CALL_signal},
	{"made", MEMORY_CALL_semaphore},
	{"found", MEMORY_CALL_signalled},
	{"sent", MEMORY_CALL_sent},
	{"received", MEMORY_CALL_received},
	{"begin", MEMORY_CALL_begin_order},
	{"end", MEMORY_CALL_end_order},
	{"other", MEMORY_CALL_system},
};

static void put_call(struct fixture *f, uint32_t thread, const char *word)
{
	char name[16], object = 'A';
	unsigned number = 0, time_us;
	assert_true(sscanf(word, "%15[a-z]", name) == 1);
	word += strlen(name);
	if (isupper(*word))
		object = *word++;
	if (*word == '=')
		number = (unsigned)strtoul(word + 1, (char **)&word, 10);
	assert_true(sscanf(word, "@%u", &time_us) == 1);
	size_t i = 0;
	while (strcmp(names[i].name, name) != 0)
		assert_true(++i < BASE_COUNT(names));
	uint64_t time_ns = 1000 * (uint64_t)time_us;
	fixture_call_at(f, thread, names[i].kind, 0x100u * (unsigned)object, time_ns, time_ns);
	struct fixture_thread *t = &f->thread[thread];
	t->call[t->nr_calls - 1].argument[1] = !strcmp(name, "read") ? 1 : number;
}

static void put_script(struct fixture *f, uint32_t thread, const char *script)
{
	char text[256], *rest = NULL;
	snprintf(text, sizeof text, "%s", script);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (*word != 'x') {
			put_call(f, thread, word);
			continue;
		}
		for (; *word; word++)
			fixture_access(f, thread, MEMORY_LOAD, 1, 1);
	}
}

static void order_of(const struct row *row, char *ret)
{
	struct fixture *f = fixture_new(THREADS, MEMORY_SOURCE_THREADS);
	struct memory_order_options options = {.disk_latency_ms = -1};
	struct memory_order *o;
	struct memory_steps steps;
	struct base_err err = {0};
	enum base_status s;
	if (row->units != UNKNOWN) {
		char word[32];
		snprintf(word, sizeof word, "made=%d@1", row->units);
		put_call(f, 0, word);
	}
	for (uint32_t t = 1; t < THREADS; t++) {
		fixture_call(f, 0, MEMORY_CALL_thread_create, t, 0);
		if (row->script[t - 1])
			put_script(f, t, row->script[t - 1]);
	}
	assert_int_equal(memory_order_new(&f->source, NULL, &options, &o, &err), BASE_OK);
	while ((s = memory_order_next(o, &steps, &err)) == BASE_OK)
		for (size_t i = 0; i < steps.nr; i++)
			if (steps.step[i].kind == MEMORY_LOAD)
				*ret++ = (char)('0' + steps.step[i].thread);
	assert_int_equal(s, BASE_END);
	*ret = 0;
	memory_order_free(o);
	memory_source_close(&f->source);
}

static void check(const struct row *row, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		char order[STEPS_MAX];
		order_of(&row[i], order);
		if (strcmp(order, row[i].order) != 0)
			fail_msg("row %zu: %s, not %s", i, order, row[i].order);
	}
}

static void test_locks(void **state)
{
	(void)state;
	static const struct row row[] = {
		/* One at a time; the clocks say who is first, not the recorded times. */
		{0, {"lock@50 xxx unlock@55 x", "lock@10 xxx unlock@15 x"}, "11112222"},
		{0, {"lock@50 xxx unlock@55 x", "lockB@10 xxx unlockB@15 x"}, "12121212"},
		{0, {"enter@50 xxx leave@55 x", "enter@10 xxx leave@15 x"}, "11112222"},
		{0, {"lock@50 xxx unlock@55 x", "enter@10 xxx leave@15 x"}, "12121212"},
		/* Of those that wait, who came first by the clocks. */
		{0, {"lock@10 xxxx unlock@15", "xx lock@20 x unlock@21", "x lock@30 x unlock@31"},
			"123121132"},
		/* Taken again by its holder. */
		{0, {"lock@10 x lock@11 x unlock@12 x unlock@13 x", "lock@20 x"}, "11112"},
		/* Readers are side by side; a writer waits for all of them, and they for it. */
		{0, {"read@10 xx unlock@15", "read@20 xx unlock@25", "lock@30 x unlock@35"},
			"12123"},
		{0, {"lock@10 xx unlock@15 x", "read@20 xx unlock@25", "read@30 xx unlock@35"},
			"1112323"},
		/* Given up where nobody saw it: who has it is past the time when it was free. */
		{0, {"lock@10 xx other@30 xx", "lock@20 xx"}, "111212"},
		{0, {"read@10 xx other@30 xx", "lock@20 xx"}, "111212"},
		{0, {"lock@10 x lock@30 x lock@40 xx", "lock@20 xx"}, "121211"},
		/* Or it has ended. Or there is nobody who could: first who had his first. */
		{0, {"lock@30 xx", "lock@20 x"}, "112"},
		{0, {"lock@30 xx lockB@31 x", "lockB@10 x lock@11 x unlock@12 unlockB@13"},
			"12121"},
		/* A thread that has not got it cannot give it up. */
		{0, {"lock@10 xxx unlock@15", "unlock@20 x", "lock@30 x"}, "12113"},
	};
	check(row, BASE_COUNT(row));
}

static void test_semaphores(void **state)
{
	(void)state;
	static const struct row row[] = {
		/* As many as were given. */
		{0, {"wait@20 x wait@30 x", "xx post@15 xx post@25 x"}, "2212212"},
		{1, {"wait@20 x wait@30 x", "xx post@15 xx post@25 x"}, "1221222"},
		{0, {"x post@10 post@11 xxx", "wait@20 x wait@21 x"}, "121211"},
		/* Several at once, of a channel. */
		{2, {"received=3@20 x", "x sent=2@10 x"}, "212"},
		{2, {"received=3@20 x received=2@30 x", "x sent=2@10 x sent=9@25"}, "2121"},
		/* One that nobody saw made is left alone. */
		{UNKNOWN, {"wait@20 x wait@30 x", "xx post@15 xx post@25 x"}, "1212222"},
		/* As a lock; who had it first then does not matter. */
		{1, {"wait@50 xx post@55", "wait@10 xx post@15"}, "1122"},
		/* What was given where nobody saw it: all others are past that, */
		{0, {"wait@20 x", "x other@30 x"}, "212"},
		/* (but for the clocks of two processors, which are not quite the same) */
		{0, {"wait@20 x", "x other@21 x post@21 x"}, "2212"},
		/* and have not got it themselves. */
		{1, {"wait@50 x other@60 x post@70 x", "wait@20 x"}, "1112"},
		/* Nobody gives: one after the other. */
		{0, {"wait@20 x", "wait@30 x"}, "12"},
	};
	check(row, BASE_COUNT(row));
}

static void test_signals(void **state)
{
	(void)state;
	static const struct row row[] = {
		/* It need not wait, for it had been signalled. */
		{UNKNOWN, {"found=1@20 lock@20 x unlock@21", "xx post@10 x"}, "2212"},
		{UNKNOWN, {"found=2@20 x", "x post@10 x post@15 x"}, "2212"},
		{UNKNOWN, {"found=0@20 x", "x post@30 x"}, "122"},
		/* Signals that are missing: all others are past that; from then on they count. */
		{UNKNOWN, {"found=7@20 x found=8@40 x", "x other@30 x post@35 x"}, "21212"},
		/* Sections in the order of a loop. */
		{UNKNOWN, {"begin=1@20 x end@21", "xx begin=0@10 x end@11 x"}, "22212"},
	};
	check(row, BASE_COUNT(row));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_semaphores),
		cmocka_unit_test(test_signals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
