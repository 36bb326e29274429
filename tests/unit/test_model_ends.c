/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_ends.c - processes that a signal ends in the middle of a sleep or a wait. Known
 * answers. */
#include "model/model.h"
#include "model_fixture.h"

enum who { NOBODY, TO_IT, TO_GROUP, TO_ANOTHER, BEFORE, ITSELF };

/*
 * `parent` waits from 502 to 520 for `child`, which sleeps (waits for what does not come) from 30
 * on, and ends without a word at 515. `parent` sent a signal at 500; `other` one to all at 100.
 */
static void killed(struct bench *b, enum who whom, bool sleeps, bool is_told_before)
{
	start(b);
	uint32_t fn = site(b, "parent"), child_fn = site(b, "child"), other_fn = site(b, "other");
	uint32_t p = process_of(b, "parent", 0, 100), c = process_of(b, "child", p, 101),
		 o = process_of(b, "other", p, 102);
	stream(b, p);
	stream(b, c);
	stream(b, o);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 10, 1, process_fork, .token = 1, .site = fn);
	PUT(b, 12, 1, process_fork, .token = 2, .site = fn);
	PUT(b, 20, 2, process_begin, .token = 1);
	PUT(b, 22, 3, process_begin, .token = 2);
	if (whom == BEFORE)
		PUT(b, 25, 1, signal_send, .pid = 101, .number = 15, .site = fn);
	if (sleeps)
		PUT(b, 30, 2, sleep_begin, .duration_ns = 1000000, .site = child_fn);
	else
		PUT(b, 30, 2, poll_begin, .n = 1, .site = child_fn);
	if (is_told_before)
		PUT(b, 100, 3, signal_send, .pid = 0, .number = 10, .site = other_fn);
	if (whom == TO_IT || whom == TO_GROUP || whom == TO_ANOTHER)
		PUT(b, 500, 1, signal_send,
			.pid = whom == TO_IT      ? 101
			       : whom == TO_GROUP ? 0
						  : 102,
			.number = 15, .site = fn);
	if (whom == ITSELF)
		PUT(b, 500, 2, signal_send, .pid = 101, .number = 15, .site = child_fn);
	PUT(b, 502, 1, child_wait, .site = fn);
	PUT(b, 515, 2, process_end, .status = 15);
	PUT(b, 520, 1, child_waited, .pid = 101);
	PUT(b, 590, 3, process_end, .status = 0);
	b->is_otherwise_in_replay = whom == ITSELF;
	end(b, 600);
}

static void who_kills_ends_the_wait(void **state)
{
	(void)state;
	for (int sleeps = 0; sleeps < 2; sleeps++) {
		for (enum who whom = NOBODY; whom <= ITSELF; whom++) {
			const char *wait = sleeps ? "sleeping" : "waiting for";
			const bool is_killed = whom == TO_IT || whom == TO_GROUP;
			struct bench b;
			killed(&b, whom, sleeps, false);
			assert_true(on_path_of(&b, "child", wait) ==
				    (is_killed                          ? 0
					    : whom == ITSELF && !sleeps ? 470
									: 485));
			assert_true(on_path(&b, "running parent") == (is_killed ? 572 : 80));
			finish(&b);
		}
	}
}

/* Of several it was the last one. */
static void the_last_signal_counts(void **state)
{
	(void)state;
	for (enum who whom = NOBODY; whom <= TO_GROUP; whom++) {
		struct bench b;
		killed(&b, whom, true, true);
		assert_true((whom == NOBODY) == (on_path_of(&b, "other", "") > 50));
		assert_true(on_path_of(&b, "child", "sleeping") < 20);
		finish(&b);
	}
}

/* The first thread joins (sleeps) from 20 on; the other runs from 15 on, until all end at 700. */
static void cut(struct bench *b, bool sleeps, bool handles, bool other_waits, int status)
{
	start(b);
	uint32_t fn = site(b, "crunch"), main_fn = site(b, "main");
	spawn(b, 1, fn);
	if (sleeps)
		PUT(b, 20, 1, sleep_begin, .duration_ns = 1000000, .site = main_fn);
	else
		PUT(b, 20, 1, join_wait, .handle = 2000, .site = main_fn);
	if (other_waits)
		PUT(b, 30, 2, poll_begin, .n = 1, .site = fn);
	if (handles) /* raise() */
		PUT(b, 690, 1, signal_send, .handle = 1000, .number = 15, .site = main_fn);
	PUT(b, 700, 1, process_end, .status = status);
	end(b, 700);
}

/* Ctrl-C in a join: whom it waits for was at work. Of an own timer it is not known, nor where nobody
 * was. */
static void who_works_when_all_is_cut(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 8; how++) {
		const bool sleeps = how & 1, handles = how & 2, waits = how & 4;
		struct bench b;
		cut(&b, sleeps, handles, waits, 2);
		assert_float_equal(
			on_path_of(&b, "crunch", "running"), (waits ? 0 : 700 - 15), 1e-6);
		finish(&b);
	}
	struct bench b;
	cut(&b, true, false, false, 14 /* SIGALRM */);
	assert_float_equal(on_path_of(&b, "crunch", "running"), 0, 1e-6);
	finish(&b);
}

/* A program is killed, by whoever; so long the run is only when it was somebody outside. */
static void who_ended_the_run(void **state)
{
	enum { NO_SENDER, MAIN, ITS_CHILD, ITS_CHILD_BEFORE };
	static const struct {
		int status, sender, want;
	} row[] = {
		{2, NO_SENDER, 2}, {9, NO_SENDER, 9},
		{15 | 0x80, NO_SENDER, 15}, /* it left a core */
		{15, MAIN, 15},             /* it tidied up before */
		{15, ITS_CHILD, 0}, {15, ITS_CHILD_BEFORE, 15},
		{11, NO_SENDER, 0},               /* its own fault */
		{6, MAIN, 0}, {14, NO_SENDER, 0}, /* a timer */
		{2 << 8, NO_SENDER, 0},           /* exit(2) */
		{-1, NO_SENDER, 0},               /* not known */
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++)
		for (int sleeps = 0; sleeps < 2; sleeps++) {
			struct bench b;
			start(&b);
			b.tick_ns = 1000;
			uint32_t fn = site(&b, "main"), p = process_of(&b, "parent", 0, 100),
				 c = process_of(&b, "child", p, 101);
			stream(&b, p);
			stream(&b, c);
			PUT(&b, 0, 1, process_begin, .token = 0);
			PUT(&b, 10, 1, process_fork, .token = 1, .site = fn);
			PUT(&b, 20, 2, process_begin, .token = 1);
			if (sleeps && row[i].sender != ITS_CHILD_BEFORE)
				PUT(&b, 30, 1, sleep_begin, .duration_ns = 1000000000, .site = fn);
			if (row[i].sender)
				PUT(&b, row[i].sender == ITS_CHILD_BEFORE ? 40 : 60000,
					row[i].sender == MAIN ? 1 : 2, signal_send, .pid = 100,
					.number = row[i].status & 0x7f, .site = fn);
			PUT(&b, 60005, 2, process_end, .status = 9); /* the child is not the run */
			PUT(&b, 60010, 1, process_end, .status = row[i].status);
			end(&b, 60010000);
			assert_int_equal(model_ended_from_outside(b.model), row[i].want);
			finish(&b);
		}
}

/* The recorder counts what it knows of the end: a signal that came through it, that its time was up
 * before the program's. */
static void the_recorder_knows_who_ended_the_run(void **state)
{
	static const struct {
		enum trace_diag diag;
		uint64_t n;
		bool ends; /* the program does */
		int want;
	} row[] = {{TRACE_DIAG_asked_to_end, 15, true, 15},
		{TRACE_DIAG_asked_to_end, 9999, true, 0}, {TRACE_DIAG_killed, 1, true, 0},
		{TRACE_DIAG_ended_before, 1, true, 0},
		{TRACE_DIAG_ended_before, 1, false, MODEL_RECORDING_ENDED},
		{TRACE_DIAG_recorder_killed, 1, false, MODEL_RECORDING_ENDED},
		{TRACE_DIAG_killed, 1, false, 0}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "main");
		stream(&b, process_of(&b, "prog", 0, 100));
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 10, 1, sleep_begin, .duration_ns = 50, .site = fn);
		PUT(&b, 60, 1, sleep_end);
		if (row[i].ends) {
			PUT(&b, 100, 1, thread_end);
			PUT(&b, 100, 1, process_end, .status = 0);
		}
		trace_writer_count(b.w, row[i].diag, row[i].n);
		analyse(&b);
		assert_int_equal(model_ended_from_outside(b.model), row[i].want);
		finish(&b);
	}
}

/*
 * The first thread is kept from its processor from 1000 to 1303 by one that a sleep (a post) let go
 * on, just then or before. It has been at work for long, or only since after that.
 */
static void who_ticks_is_met_by_chance(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 8; how++) {
		const bool sleeps = how & 1, before = how & 2, waits = how & 4;
		const uint64_t woken = before ? 980 : 1005;
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "ticker"), main_fn = site(&b, "main"),
			 sem = object(&b, TRACE_OBJECT_semaphore, "s", 0);
		spawn(&b, 1, fn);
		if (sleeps)
			PUT(&b, 20, 2, sleep_begin, .duration_ns = 900, .site = fn);
		else
			PUT(&b, 20, 2, token_wait, .object = sem, .n = 1, .site = fn);
		PUT(&b, 21, 2, cpu_out, .processor = 0);
		PUT(&b, 22, 1, cpu_in, .processor = 0);
		PUT(&b, 970, 1, token_give, .object = sem, .n = 1, .site = main_fn);
		if (before)
			PUT(&b, 979, 2, cpu_in, .processor = 1);
		if (before && sleeps)
			PUT(&b, woken, 2, sleep_end);
		else if (before)
			PUT(&b, woken, 2, token_take, .object = sem, .n = 1, .site = fn);
		if (waits) {
			PUT(&b, 985, 1, sleep_begin, .duration_ns = 5, .site = main_fn);
			PUT(&b, 990, 1, sleep_end);
		}
		PUT(&b, 1000, 1, cpu_out, .processor = 0, .preempted = 1);
		if (!before)
			PUT(&b, 1001, 2, cpu_in, .processor = 0);
		if (!before && sleeps)
			PUT(&b, woken, 2, sleep_end);
		else if (!before)
			PUT(&b, woken, 2, token_take, .object = sem, .n = 1, .site = fn);
		PUT(&b, 1300, 2, poll_begin, .n = 1, .site = fn);
		PUT(&b, 1302, 2, cpu_out, .processor = 0);
		PUT(&b, 1303, 1, cpu_in, .processor = 0);
		b.is_otherwise_in_replay = true;
		end(&b, 2000);
		const bool there_first = waits && before;
		assert_true((on_path(&b, "waiting for a processor that") > 300) ==
			    (sleeps && !there_first));
		assert_true((on_path(&b, "sleeping") > 800) == (sleeps && there_first));
		finish(&b);
	}
}

/* A thread waits (sleeps) from 20 on; who started it works until it cancels it at 600 and joins. */
static void who_cancels_ends_the_wait(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		const bool sleeps = how & 1, cancels = how & 2;
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "worker"), main_fn = site(&b, "main");
		spawn(&b, 1, fn);
		if (sleeps)
			PUT(&b, 20, 2, sleep_begin, .duration_ns = 1000000, .site = fn);
		else
			PUT(&b, 20, 2, poll_begin, .n = 1, .site = fn);
		if (cancels)
			PUT(&b, 600, 1, signal_send, .handle = 2000, .number = 32, .site = main_fn);
		PUT(&b, 610, 1, join_wait, .handle = 2000, .site = main_fn);
		PUT(&b, 640, 2, thread_end);
		PUT(&b, 650, 1, join_done, .handle = 2000);
		b.is_otherwise_in_replay = !cancels;
		end(&b, 700);
		assert_true((on_path(&b, sleeps ? "sleeping" : "waiting for") > 500) == !cancels);
		assert_true((on_path(&b, "running") > 500) == cancels);
		finish(&b);
	}
}

/* `crunch | cat` in a shell: all three end, the one that worked first or last, without a status but the
 * shell's. */
static void who_works_when_a_pipeline_is_cut(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "sh");
		uint32_t p = process_of(&b, "sh", 0, 100), c = process_of(&b, "crunch", p, 101),
			 w = process_of(&b, "cat", p, 102);
		stream(&b, p);
		stream(&b, c);
		stream(&b, w);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 10, 1, process_fork, .token = 1, .site = fn);
		PUT(&b, 12, 1, process_fork, .token = 2, .site = fn);
		PUT(&b, 14, 1, child_wait, .site = fn);
		PUT(&b, 20, 2, process_begin, .token = 1);
		PUT(&b, 22, 3, process_begin, .token = 2);
		PUT(&b, 30, 3, poll_begin, .n = 1, .site = fn);
		PUT(&b, 690, first ? 2 : 3, process_end, .status = -1);
		PUT(&b, 691, first ? 3 : 2, process_end, .status = -1);
		PUT(&b, 700, 1, process_end, .status = 2);
		end(&b, 700);
		assert_in_range((int)on_path_of(&b, "crunch", "running"), 660, 700);
		assert_float_equal(on_path_of(&b, "cat", "waiting"), 0, 1e-6);
		finish(&b);
	}
}

/* What becomes of a vfork's child, which is in its parent's code from 100 to 400. */
enum fate { EXITS, EXECUTES, FAILS, EXECUTES_AT_LAST, FATES_NR };

static void vforked(struct bench *b, enum fate fate, bool switches)
{
	start(b);
	uint32_t fn = site(b, "starts"), p = process_of(b, "parent", 0, 100),
		 c = process_of(b, "child", p, 101);
	stream(b, p);
	stream(b, c);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, cpu_in, .processor = 0);
	PUT(b, 50, 1, process_fork, .token = 0, .site = fn); /* a posix_spawn that fails */
	PUT(b, 60, 1, process_fork, .token = 0, .site = fn);
	PUT(b, 100, 1, process_vfork, .site = fn);
	if (switches) {
		PUT(b, 105, 1, cpu_out, .processor = 0, .preempted = 1);
		PUT(b, 108, 1, cpu_in, .processor = 0);
		PUT(b, 110, 1, cpu_out, .processor = 0);
	}
	if (fate >= FAILS) {
		PUT(b, 200, 1, process_fork, .token = 0, .site = fn);
		PUT(b, 220, 1, process_vfork, .site = fn);
	}
	if (fate == EXECUTES || fate == EXECUTES_AT_LAST)
		PUT(b, 400, 1, process_fork, .token = 0, .site = fn);
	if (switches)
		PUT(b, 430, 1, cpu_in, .processor = 0);
	PUT(b, 440, 1, child_wait, .site = fn);
	if (fate == EXECUTES || fate == EXECUTES_AT_LAST) {
		PUT(b, 500, 2, process_begin, .token = 0);
		PUT(b, 900, 2, process_end, .status = 0);
	}
	PUT(b, 910, 1, child_waited, .pid = 101);
	end(b, 1000);
}

/* Its time is the program's own code; a program starts when the child executes it. */
static void a_vforks_child_is_no_start(void **state)
{
	(void)state;
	static const struct {
		double child_ns, start_ns;
	} known[FATES_NR][2] = {
		[EXITS] = {{340, 0}, {330, 0}},
		[EXECUTES] = {{300, 0}, {300, 0}},
		[FAILS] = {{100 + 220, 0}, {100 + 210, 20}},
		[EXECUTES_AT_LAST] = {{100 + 180, 0}, {100 + 180, 20}},
	};
	for (enum fate fate = EXITS; fate < FATES_NR; fate++) {
		for (int switches = 0; switches < 2; switches++) {
			struct bench b;
			vforked(&b, fate, switches);
			bool starts = fate == EXECUTES || fate == EXECUTES_AT_LAST;
			assert_float_equal(on_path(&b, "in a child before it starts its program"),
				known[fate][switches].child_ns - (switches ? 3 : 0), 1e-6);
			assert_float_equal(on_path(&b, "starting a program"),
				known[fate][switches].start_ns, 1e-6);
			assert_float_equal(on_path(&b, "start of a process"), starts * 100, 1e-6);
			assert_float_equal(on_path_of(&b, "child", "running"), starts * 400, 1e-6);
			assert_float_equal(on_path(&b, "waiting for a child process"),
				(starts ? 0 : 470), 1e-6);
			finish(&b);
		}
	}
}

/* It was recorded itself, and is no program that was started: that begins when it is executed. */
static void a_vforks_child_has_records(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "starts"), p = process_of(&b, "parent", 0, 100),
		 before = process_of(&b, "parent", p, 101), c = process_of(&b, "child", p, 101);
	stream(&b, p);
	stream(&b, before);
	stream(&b, c);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 100, 1, process_vfork, .site = fn);
	PUT(&b, 110, 1, cpu_out, .processor = 0);
	PUT(&b, 110, 2, process_begin, .token = 0);
	PUT(&b, 110, 2, cpu_in, .processor = 0);
	PUT(&b, 400, 1, process_fork, .token = 0, .site = fn);
	PUT(&b, 430, 1, cpu_in, .processor = 0);
	PUT(&b, 440, 1, child_wait, .site = fn);
	PUT(&b, 500, 3, process_begin, .token = 0);
	PUT(&b, 900, 3, process_end, .status = 0);
	PUT(&b, 910, 1, child_waited, .pid = 101);
	end(&b, 1000);
	assert_float_equal(on_path(&b, "in a child before it starts its program"), 300, 1e-6);
	assert_float_equal(on_path_of(&b, "child", "running"), 400, 1e-6);
	finish(&b);
}

/* Two recordings in one trace: nobody was seen to start the client, and the server has waited for
 * what it did. */
static void each_recording_begins_by_itself(void **state)
{
	(void)state;
	for (int at_once = 0; at_once < 2; at_once++) {
		struct bench b;
		bench_open(&b, 1,
			&(struct trace_info){.size = sizeof(struct trace_info),
				.flags = TRACE_INFO_MERGED,
				.host = "h",
				.command = "c",
				.tool = "t"});
		uint32_t listens = object(&b, TRACE_OBJECT_listener, "tcp 127.0.0.1:80 -", 0),
			 calls = object(&b, TRACE_OBJECT_socket, "tcp 127.0.0.1:9 127.0.0.1:80", 0);
		uint32_t fn = site(&b, "serve"), calling_fn = site(&b, "call"),
			 c = process_of(&b, "client", 0, 200), p = process_of(&b, "server", 0, 100);
		stream(&b, p);
		stream(&b, c);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, at_once ? 0 : 100, 2, process_begin, .token = 0);
		PUT(&b, 110, 1, io_begin, .object = listens, .op = TRACE_IO_accept, .site = fn);
		PUT(&b, 400, 2, io_begin, .object = calls, .op = TRACE_IO_connect,
			.site = calling_fn);
		PUT(&b, 405, 2, io_end, .object = calls, .op = TRACE_IO_connect);
		PUT(&b, 410, 1, io_end, .object = listens, .op = TRACE_IO_accept);
		PUT(&b, 420, 2, process_end);
		PUT(&b, 500, 1, process_end, .status = 0);
		analyse(&b);
		assert_float_equal(on_path_of(&b, "client", "since before it was first seen"),
			(at_once ? 0 : 100), 1e-6);
		assert_float_equal(on_path_of(&b, "server", "since before"), 0, 1e-6);
		assert_float_equal(
			on_path_of(&b, "client", "running"), (at_once ? 400 : 300), 1e-6);
		assert_float_equal(on_path_of(&b, "server", "running"), 90, 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_kills_ends_the_wait),
		cmocka_unit_test(the_last_signal_counts),
		cmocka_unit_test(who_works_when_all_is_cut),
		cmocka_unit_test(who_ended_the_run),
		cmocka_unit_test(the_recorder_knows_who_ended_the_run),
		cmocka_unit_test(who_ticks_is_met_by_chance),
		cmocka_unit_test(who_cancels_ends_the_wait),
		cmocka_unit_test(who_works_when_a_pipeline_is_cut),
		cmocka_unit_test(a_vforks_child_is_no_start),
		cmocka_unit_test(a_vforks_child_has_records),
		cmocka_unit_test(each_recording_begins_by_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
