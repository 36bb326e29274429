/* SPDX-License-Identifier: Apache-2.0 */
/* test_model.c - known answers: small hand-made traces whose critical path is known beforehand. */
#include "model/model.h"
#include "model_fixture.h"

/* ---- known answers --------------------------------------------------------------------------- */

static void mutex_hand_over(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "worker"), main_fn = site(&b, "main");
	uint32_t lock = object(&b, TRACE_OBJECT_mutex, "big_lock", 0);
	spawn(&b, 2, fn);
	PUT(&b, 100, 2, lock_acquire, .object = lock, .site = fn);
	PUT(&b, 150, 3, lock_wait, .object = lock, .site = fn);
	PUT(&b, 160, 1, join_wait, .handle = 2001, .site = main_fn);
	PUT(&b, 500, 2, lock_release, .object = lock, .site = fn);
	PUT(&b, 504, 3, lock_acquire, .object = lock, .site = fn);
	PUT(&b, 510, 2, thread_end);
	PUT(&b, 900, 3, lock_release, .object = lock, .site = fn);
	PUT(&b, 910, 3, thread_end);
	PUT(&b, 920, 1, join_done, .handle = 2001);
	end(&b, 1000);
	/* 0-10 main, 5 start, 15-100 worker 1, held 400 + 396, hand-off 4, worker 2 10, join 10,
	 * main 80 */
	assert_float_equal(on_path(&b, "holding mutex big_lock"), 796, 1e-6);
	assert_float_equal(on_path(&b, "hand-off of mutex big_lock"), 4, 1e-6);
	assert_float_equal(on_path(&b, "start of a thread"), 5, 1e-6);
	assert_float_equal(on_path(&b, "end of a thread or process"), 10, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* The process ends with its last thread, whatever the first one did before. */
static void main_leaves_the_others_alone(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "worker");
	spawn(&b, 3, fn);
	PUT(&b, 60, 1, thread_end);
	PUT(&b, 100, 2, thread_end);
	PUT(&b, 900, 4, thread_end);
	PUT(&b, 500, 3, thread_end);
	PUT(&b, 910, 1, process_end, .status = 0);
	analyse(&b);
	conserved(&b, 910);
	/* 0-30 main (since 10 where it creates), 5 start, 35-900 the third worker */
	assert_float_equal(on_path(&b, "running worker"), 20 + 865, 1e-6);
	assert_float_equal(on_path(&b, "start of a thread"), 5, 1e-6);
	assert_float_equal(on_path(&b, "end of a thread or process"), 10, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* exit() waits for nobody. */
static void threads_that_never_end(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "worker");
	spawn(&b, 2, fn);
	PUT(&b, 60, 2, thread_end);
	PUT(&b, 80, 1, thread_end);
	PUT(&b, 100, 1, process_end, .status = 0);
	analyse(&b);
	conserved(&b, 100);
	assert_float_equal(on_path(&b, "waiting"), 0, 1e-6);
	assert_float_equal(on_path(&b, "running"), 100, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

static void condition_variable(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t consumer = site(&b, "consume"), producer = site(&b, "produce");
	uint32_t lock = object(&b, TRACE_OBJECT_mutex, "m", 0),
		 cond = object(&b, TRACE_OBJECT_cond, "c", 0);
	spawn(&b, 1, producer);
	PUT(&b, 20, 1, lock_acquire, .object = lock, .site = consumer);
	PUT(&b, 30, 1, cond_wait, .object = cond, .mutex = lock, .site = consumer);
	PUT(&b, 800, 2, lock_acquire, .object = lock, .site = producer); /* 785 ns of producing */
	PUT(&b, 810, 2, cond_signal, .object = cond, .site = producer);
	PUT(&b, 830, 2, lock_release, .object = lock,
		.site = producer); /* later than the signal: this decides */
	PUT(&b, 850, 1, cond_wake, .object = cond, .mutex = lock, .site = consumer);
	PUT(&b, 860, 1, lock_release, .object = lock, .site = consumer);
	end(&b, 900);
	assert_float_equal(on_path(&b, "running produce"), 785, 1e-6);
	assert_float_equal(on_path(&b, "hand-off of mutex m"), 20, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	assert_int_equal(model_health(b.model)->count[TRACE_DIAG_signal_unmatched], 0);
	finish(&b);
}

static void barrier_waits_for_the_last(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fast = site(&b, "fast"), slow = site(&b, "slow");
	uint32_t bar = object(&b, TRACE_OBJECT_barrier, "meet", 0);
	spawn(&b, 1, slow);
	PUT(&b, 20, 1, token_set, .object = bar, .n = 2);
	uint64_t t = 20;
	for (int phase = 0; phase < 3; phase++, t += 200) {
		PUT(&b, t + 50, 1, barrier_arrive, .object = bar, .site = fast);
		PUT(&b, t + 190, 2, barrier_arrive, .object = bar, .site = slow);
		PUT(&b, t + 192, 2, barrier_leave, .object = bar, .site = slow);
		PUT(&b, t + 198, 1, barrier_leave, .object = bar, .site = fast);
	}
	end(&b, 700);
	/* thread 2: 15-210, then 212-410, 412-610; main leaves 8 later, runs to 700 */
	assert_float_equal(on_path(&b, "running slow"), 195 + 198 + 198, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* OpenMP's threads run tasks while they wait at a barrier: who did comes once more, and the last of
 * these, not the last thread to come, opens it. */
static void barrier_waits_for_tasks(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fast = site(&b, "fast"), slow = site(&b, "slow"), task = site(&b, "task");
	uint32_t bar = object(&b, TRACE_OBJECT_barrier, "of OpenMP", 2);
	uint32_t tasks = object(&b, TRACE_OBJECT_team, "tasks", 0);
	spawn(&b, 1, slow);
	PUT(&b, 20, 1, token_set, .object = bar, .n = 0); /* not known, whatever it was once */
	uint64_t t = 20;
	for (int phase = 0; phase < 3; phase++, t += 200) {
		PUT(&b, t + 10, 2, token_give, .object = tasks, .n = 1, .site = slow);
		PUT(&b, t + 50, 1, barrier_arrive, .object = bar, .site = fast);
		PUT(&b, t + 60, 1, token_take, .object = tasks, .n = 1, .site = task);
		PUT(&b, t + 100, 2, barrier_arrive, .object = bar, .site = slow);
		PUT(&b, t + 180, 1, barrier_arrive, .object = bar, .site = task);
		PUT(&b, t + 185, 2, barrier_leave, .object = bar, .site = slow);
		PUT(&b, t + 190, 1, barrier_leave, .object = bar, .site = fast);
	}
	end(&b, 700);
	assert_float_equal(on_path(&b, "running task"), 3 * 120, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

static void writer_waits_for_readers(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t reader = site(&b, "read_side"), writer = site(&b, "write_side");
	uint32_t rw = object(&b, TRACE_OBJECT_rwlock, "table", 0);
	spawn(&b, 2, reader);
	PUT(&b, 30, 2, shared_acquire, .object = rw, .site = reader);
	PUT(&b, 35, 3, shared_acquire, .object = rw, .site = reader);
	PUT(&b, 40, 1, lock_wait, .object = rw, .site = writer);
	PUT(&b, 300, 3, shared_release, .object = rw, .site = reader);
	PUT(&b, 600, 2, shared_release, .object = rw, .site = reader); /* the last one out */
	PUT(&b, 605, 1, lock_acquire, .object = rw, .site = writer);
	PUT(&b, 610, 2, shared_wait, .object = rw, .site = reader);
	PUT(&b, 700, 1, lock_release, .object = rw, .site = writer);
	PUT(&b, 706, 2, shared_acquire, .object = rw, .site = reader);
	PUT(&b, 710, 2, shared_release, .object = rw, .site = reader);
	PUT(&b, 720, 2, thread_end);
	PUT(&b, 721, 1, join_wait, .handle = 2000, .site = writer);
	PUT(&b, 721, 1, join_done, .handle = 2000);
	end(&b, 800);
	assert_float_equal(on_path(&b, "reading under rwlock table"), 570, 1e-6);
	assert_float_equal(on_path(&b, "holding rwlock table"), 95, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

static void pipe_between_processes(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t parent_fn = site(&b, "parent"), child_fn = site(&b, "child");
	uint32_t p = process_of(&b, "parent", 0, 100), c = process_of(&b, "child", p, 101);
	uint32_t pipe_id = object(&b, TRACE_OBJECT_pipe, "", 65536);
	stream(&b, p);
	stream(&b, c);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 10, 1, process_fork, .token = 7, .site = parent_fn);
	PUT(&b, 40, 2, process_begin, .token = 7);
	PUT(&b, 50, 1, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = 4096,
		.site = parent_fn);
	PUT(&b, 500, 2, io_begin, .object = pipe_id, .op = TRACE_IO_write, .n = 100,
		.site = child_fn);
	PUT(&b, 503, 2, io_end, .object = pipe_id, .op = TRACE_IO_write, .result = 100);
	PUT(&b, 520, 1, io_end, .object = pipe_id, .op = TRACE_IO_read, .result = 100);
	PUT(&b, 530, 1, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = 4096,
		.site = parent_fn);
	PUT(&b, 900, 2, process_end, .status = 0);
	PUT(&b, 920, 1, io_end, .object = pipe_id, .op = TRACE_IO_read,
		.result = 0); /* end of file */
	PUT(&b, 930, 1, child_wait, .site = parent_fn);
	PUT(&b, 931, 1, child_waited, .pid = 101);
	end(&b, 1000);
	/* 10 parent, 30 fork, child 40-500-503-900, 20 hand-off of the end of file, parent to 1000
	 */
	assert_float_equal(on_path(&b, "hand-off of pipe"), 20, 1e-6);
	assert_float_equal(on_path(&b, "running child"), 397, 1e-6); /* after its write */
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* It leaves twice; its parents end at once. Its work is the path only if all were waited for. */
static void daemon_ends_the_path(void **state)
{
	(void)state;
	for (int all = 0; all < 2; all++) {
		struct bench b;
		struct trace_info info = {.size = sizeof info,
			.host = "h",
			.command = "c",
			.tool = "t",
			.flags = all ? TRACE_INFO_WAIT_ALL : 0};
		bench_open(&b, 1, &info);
		uint32_t fn = site(&b, "leave");
		uint32_t p = process_of(&b, "first", 0, 100);
		uint32_t c = process_of(&b, "second", p, 101);
		uint32_t d = process_of(&b, "daemon", c, 102);
		stream(&b, p);
		stream(&b, c);
		stream(&b, d);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 10, 1, process_fork, .token = 7, .site = fn);
		PUT(&b, 20, 1, process_end, .status = 0);
		PUT(&b, 30, 2, process_begin, .token = 7);
		PUT(&b, 40, 2, process_fork, .token = 8, .site = fn);
		PUT(&b, 50, 2, process_end, .status = 0);
		PUT(&b, 60, 3, process_begin, .token = 8);
		PUT(&b, 900, 3, process_end, .status = 0);
		analyse(&b);
		conserved(&b, all ? 900 : 20);
		/* 10 of the first, 10 of the second, 840 of the daemon */
		assert_int_equal((long)on_path(&b, "running"), all ? 10 + 10 + 840 : 20);
		assert_float_equal(on_path(&b, "waiting"), 0, 1e-6);
		finish(&b);
	}
}

/* The end of file has waited for the last closing before it, not for what the writer does then. */
static void last_closing_is_the_end_of_file(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t w = site(&b, "feed"), r = site(&b, "digest");
	uint32_t pipe_id = object(&b, TRACE_OBJECT_pipe, "", 100);
	spawn(&b, 1, w);
	PUT(&b, 20, 2, io_begin, .object = pipe_id, .op = TRACE_IO_write, .n = 10, .site = w);
	PUT(&b, 22, 2, io_end, .object = pipe_id, .op = TRACE_IO_write, .result = 10);
	PUT(&b, 24, 1, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = 100, .site = r);
	PUT(&b, 26, 1, io_end, .object = pipe_id, .op = TRACE_IO_read, .result = 10);
	PUT(&b, 30, 1, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = 100, .site = r);
	PUT(&b, 100, 2, io_close, .object = pipe_id, .ends = 2, .site = w); /* one of two */
	PUT(&b, 400, 2, io_close, .object = pipe_id, .ends = 2, .site = w);
	PUT(&b, 420, 1, io_end, .object = pipe_id, .op = TRACE_IO_read, .result = 0);
	PUT(&b, 450, 1, io_close, .object = pipe_id, .ends = 1, .site = r);
	PUT(&b, 800, 2, thread_end);
	end(&b, 1000);
	assert_float_equal(on_path(&b, "running feed"), (400 - 22) + (20 - 15), 1e-6);
	assert_float_equal(on_path(&b, "hand-off of pipe"), 20, 1e-6);
	assert_float_equal(on_path(&b, "running digest"), 1000 - 420, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

#define CALL(b, begin_ns, end_ns, thread, object_, op_, n_, site_)                                 \
	do {                                                                                       \
		PUT(b, begin_ns, thread, io_begin, .object = (object_), .op = (op_), .n = (n_),    \
			.site = (site_));                                                          \
		PUT(b, end_ns, thread, io_end, .object = (object_), .op = (op_), .result = (n_));  \
	} while (0)

/* A writer that waits for room goes on while the read that made it has not returned yet. */
static void room_is_made_by_a_read_that_goes_on(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t w = site(&b, "feed"), r = site(&b, "digest");
	uint32_t pipe_id = object(&b, TRACE_OBJECT_pipe, "", 100);
	spawn(&b, 1, w);
	CALL(&b, 20, 22, 1, pipe_id, TRACE_IO_write, 100, w);
	CALL(&b, 24, 26, 2, pipe_id, TRACE_IO_read, 100, r);
	CALL(&b, 30, 32, 1, pipe_id, TRACE_IO_write, 100, w); /* it is full */
	PUT(&b, 40, 1, io_begin, .object = pipe_id, .op = TRACE_IO_write, .n = 50, .site = w);
	PUT(&b, 700, 2, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = 60, .site = r);
	PUT(&b, 703, 1, io_end, .object = pipe_id, .op = TRACE_IO_write, .result = 50);
	PUT(&b, 705, 2, io_end, .object = pipe_id, .op = TRACE_IO_read, .result = 60);
	CALL(&b, 710, 712, 2, pipe_id, TRACE_IO_read, 90, r); /* all that is left */
	PUT(&b, 800, 2, thread_end);
	end(&b, 1000);
	assert_float_equal(on_path(&b, "running digest"), 700 - 26, 1e-6);
	assert_float_equal(on_path(&b, "waiting for space"), 0, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	assert_int_equal(model_health(b.model)->count[TRACE_DIAG_queue_underflow], 0);
	finish(&b);
}

/* A thread that looks for room with poll() waits for the reader, whether its read has returned or
 * not, and whether the size of what holds the bytes is known (a pipe's) or not (a socket's). */
static void poll_waits_for_room(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		struct bench b;
		start(&b);
		uint32_t w = site(&b, "feed"), r = site(&b, "digest");
		uint32_t pipe_id = object(&b, TRACE_OBJECT_pipe, "", k & 1 ? 100 : 0);
		spawn(&b, 1, w);
		CALL(&b, 20, 22, 1, pipe_id, TRACE_IO_write, 100, w);
		CALL(&b, 24, 26, 2, pipe_id, TRACE_IO_read, 50, r);
		PUT(&b, 30, 1, io_begin, .object = pipe_id, .op = TRACE_IO_write, .n = 100,
			.site = w);
		PUT(&b, 32, 1, io_end, .object = pipe_id, .op = TRACE_IO_write, .result = 50);
		PUT(&b, 40, 1, poll_begin, .n = 2, .site = w);
		PUT(&b, 700, 2, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = 60,
			.site = r);
		if (k & 2)
			PUT(&b, 702, 2, io_end, .object = pipe_id, .op = TRACE_IO_read,
				.result = 60);
		PUT(&b, 706, 1, poll_end, .object = pipe_id, .writable = 1, .result = 1);
		if (!(k & 2))
			PUT(&b, 708, 2, io_end, .object = pipe_id, .op = TRACE_IO_read,
				.result = 60);
		CALL(&b, 710, 712, 1, pipe_id, TRACE_IO_write, 50, w);
		PUT(&b, 800, 2, thread_end);
		b.is_otherwise_in_replay = true;
		end(&b, 1000);
		assert_float_equal(on_path(&b, "running digest"), 700 - 26, 1e-6);
		assert_float_equal(on_path(&b, "waiting for readiness"), 0, 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		assert_int_equal(model_health(b.model)->count[TRACE_DIAG_queue_underflow], 0);
		finish(&b);
	}
}

/* The same of one long read that takes more than the pipe holds, piece by piece: fread(). */
static void a_long_read_takes_in_pieces(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t w = site(&b, "feed"), r = site(&b, "digest");
	uint32_t pipe_id = object(&b, TRACE_OBJECT_pipe, "", 100);
	spawn(&b, 1, w);
	PUT(&b, 30, 2, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = 400, .site = r);
	CALL(&b, 100, 140, 1, pipe_id, TRACE_IO_write, 300, w);
	CALL(&b, 200, 202, 1, pipe_id, TRACE_IO_write, 100, w);
	PUT(&b, 205, 2, io_end, .object = pipe_id, .op = TRACE_IO_read, .result = 400);
	PUT(&b, 900, 2, thread_end);
	end(&b, 1000);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	assert_int_equal(model_health(b.model)->count[TRACE_DIAG_queue_underflow], 0);
	finish(&b);
}

static void transfer(struct bench *b, uint64_t time_ns, uint32_t from, uint32_t to, uint32_t object)
{
	const uint32_t at[] = {site(b, "put"), site(b, "get")};
	PUT(b, time_ns, to, io_begin, .object = object, .op = TRACE_IO_read, .n = 10,
		.site = at[1]);
	PUT(b, time_ns + 10, from, io_begin, .object = object, .op = TRACE_IO_write, .n = 10,
		.site = at[0]);
	PUT(b, time_ns + 12, from, io_end, .object = object, .op = TRACE_IO_write, .result = 10);
	PUT(b, time_ns + 15, to, io_end, .object = object, .op = TRACE_IO_read, .result = 10);
}

/* A shell makes `tar | gzip | wc` and closes its own ends at one place: each pipe is called after
 * those who use it; two that the same use have their numbers, too. */
static void pipes_are_called_after_their_users(void **state)
{
	(void)state;
	static const char *const program[] = {"sh", "tar", "gzip", "wc"};
	static const char *const called[] = {
		" from tar to gzip", "pipe from gzip to wc", " from tar to gzip"};
	struct bench b;
	start(&b);
	uint32_t closes = site(&b, "close_all"), forks = site(&b, "fork"), pipe_id[3], sh = 0;
	for (unsigned i = 0; i < 4; i++) {
		uint32_t p = process_of(&b, program[i], sh, 100 + i);
		stream(&b, p);
		sh = sh ? sh : p;
	}
	PUT(&b, 0, 1, process_begin, .token = 0);
	for (unsigned i = 1; i < 4; i++) {
		PUT(&b, 10 * i, 1, process_fork, .token = i, .site = forks);
		PUT(&b, 10 * i + 5, 1 + i, process_begin, .token = i);
	}
	for (unsigned i = 0; i < 3; i++) {
		pipe_id[i] = object(&b, TRACE_OBJECT_pipe, "", 100);
		PUT(&b, 40 + i, 1, io_close, .object = pipe_id[i], .ends = 2, .site = closes);
	}
	transfer(&b, 100, 2, 3, pipe_id[0]);
	transfer(&b, 200, 3, 4, pipe_id[1]);
	transfer(&b, 300, 2, 3, pipe_id[2]);
	end(&b, 1000);
	for (unsigned i = 0; i < 3; i++) {
		char number[64];
		const char *name = NULL;
		for (uint32_t q = 0; q < graph_nr_queues(model_graph(b.model)); q++)
			if (model_queue(b.model, q)->object == pipe_id[i])
				name = model_queue(b.model, q)->name;
		assert_non_null(name);
		snprintf(number, sizeof number, "pipe %u%s", 64 * pipe_id[i], called[i]);
		assert_string_equal(name, i == 1 ? called[i] : number);
	}
	finish(&b);
}

/* Two clients, one of them refused first, and one from outside; poll sees the second. */
static void accept_waits_for_the_client(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t c = site(&b, "call"), s = site(&b, "answer");
	spawn(&b, 1, c);
	uint32_t door = object(&b, TRACE_OBJECT_listener, "tcp 0.0.0.0:80 -", 0);
	uint32_t one = object(&b, TRACE_OBJECT_socket, "tcp 10.0.0.1:5000 127.0.0.1:80", 0),
		 two = object(&b, TRACE_OBJECT_socket, "tcp 10.0.0.1:5001 127.0.0.1:80", 0),
		 away = object(&b, TRACE_OBJECT_socket, "tcp 10.0.0.1:5002 127.0.0.1:81", 0);
	PUT(&b, 18, 2, io_begin, .object = one, .op = TRACE_IO_connect, .site = c);
	PUT(&b, 19, 2, io_end, .object = one, .op = TRACE_IO_connect, .result = -111);
	PUT(&b, 20, 1, io_begin, .object = door, .op = TRACE_IO_accept, .site = s);
	PUT(&b, 30, 2, io_begin, .object = away, .op = TRACE_IO_connect, .site = c);
	PUT(&b, 40, 2, io_end, .object = away, .op = TRACE_IO_connect, .result = 0);
	PUT(&b, 200, 2, io_begin, .object = one, .op = TRACE_IO_connect, .site = c);
	PUT(&b, 202, 2, io_end, .object = one, .op = TRACE_IO_connect, .result = -115);
	PUT(&b, 210, 1, io_end, .object = door, .op = TRACE_IO_accept, .result = 0);
	PUT(&b, 215, 2, io_begin, .object = one, .op = TRACE_IO_connect, .site = c); /* well? */
	PUT(&b, 216, 2, io_end, .object = one, .op = TRACE_IO_connect, .result = 0);
	PUT(&b, 220, 1, poll_begin, .n = 1, .site = s);
	PUT(&b, 500, 2, io_begin, .object = two, .op = TRACE_IO_connect, .site = c);
	PUT(&b, 503, 2, io_end, .object = two, .op = TRACE_IO_connect, .result = 0);
	PUT(&b, 506, 1, poll_end, .object = door, .result = 1);
	PUT(&b, 507, 1, io_begin, .object = door, .op = TRACE_IO_accept, .site = s);
	PUT(&b, 508, 1, io_end, .object = door, .op = TRACE_IO_accept, .result = 0);
	PUT(&b, 510, 1, io_begin, .object = door, .op = TRACE_IO_accept, .site = s);
	PUT(&b, 590, 1, io_end, .object = door, .op = TRACE_IO_accept, .result = 0); /* outside */
	PUT(&b, 600, 2, thread_end);
	end(&b, 1000);
	/* the second call's path: the first call is an event on the way, its answer is not */
	assert_float_equal(on_path(&b, "hand-off of listening socket"), 506 - 500, 1e-6);
	assert_float_equal(on_path(&b, "running call"), 500 - 18 - 1 - 10 - 2 - 1 + 3, 1e-6);
	assert_float_equal(on_path(&b, "running answer"), 1 + 2 + 410, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	unsigned nr_calls = 0; /* all connections to one service are one */
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b.model)); i++)
		if (!strncmp(
			    model_state(b.model, i)->name, "connect of socket tcp 127.0.0.1:8", 33))
			nr_calls++;
	assert_int_equal(nr_calls, 2);
	finish(&b);
}

static void full_pipe_holds_the_writer(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t w = site(&b, "feed"), r = site(&b, "digest");
	uint32_t pipe_id = object(&b, TRACE_OBJECT_pipe, "", 100);
	spawn(&b, 1, r);
	PUT(&b, 20, 1, io_begin, .object = pipe_id, .op = TRACE_IO_write, .n = 100, .site = w);
	PUT(&b, 22, 1, io_end, .object = pipe_id, .op = TRACE_IO_write, .result = 100);
	PUT(&b, 30, 1, io_begin, .object = pipe_id, .op = TRACE_IO_write, .n = 100, .site = w);
	PUT(&b, 500, 2, io_begin, .object = pipe_id, .op = TRACE_IO_read, .n = 100,
		.site = r); /* busy until 500 */
	PUT(&b, 502, 2, io_end, .object = pipe_id, .op = TRACE_IO_read, .result = 100);
	PUT(&b, 510, 1, io_end, .object = pipe_id, .op = TRACE_IO_write, .result = 100);
	end(&b, 600);
	assert_float_equal(on_path(&b, "running digest"), 485, 1e-6);
	assert_float_equal(on_path(&b, "hand-off of pipe"), 8, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

static void preempted_by_a_sibling(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "other");
	spawn(&b, 1, fn);
	PUT(&b, 20, 2, cpu_out, .processor = 0, .preempted = 1); /* thread 2 ran there ... */
	PUT(&b, 21, 1, cpu_out, .processor = 1, .preempted = 1); /* main is put out by thread 2 */
	PUT(&b, 22, 2, cpu_in, .processor = 1);
	PUT(&b, 400, 2, cpu_out, .processor = 1, .preempted = 1);
	PUT(&b, 403, 1, cpu_in, .processor = 1);
	b.is_otherwise_in_replay = true;
	end(&b, 500);
	/* main waited 382 for the processor; thread 2 ran 22-400 meanwhile, and is on the path */
	assert_true(on_path(&b, "running other") >= 370);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

static void unseen_wait_is_unexplained(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	site(&b, "f");
	spawn(&b, 0, 0);
	PUT(&b, 100, 1, cpu_out, .processor = 0, .preempted = 0);
	PUT(&b, 400, 1, cpu_in, .processor = 0);
	end(&b, 1000);
	assert_float_equal(unexplained(&b), 300, 1e-6);
	assert_int_equal(model_health(b.model)->count[TRACE_DIAG_futex_unseen], 1);
	finish(&b);
}

/* ---- law: any records whatever are survived, and time is conserved --------------------------- */

static uint64_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return *s >> 33;
}

/* One stream speaks for two machines; the first calls the second, which calls back: the path goes
 * through both, and each goes on in the state that it was in. */
static void machines_in_turn_are_linked(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	stream(&b, process_of(&b, "sim", 0, 100));
	for (uint32_t i = 1; i <= 2; i++) {
		PUT(&b, 0, 0, actor, .actor = i, .name = string(&b, i == 1 ? "caller" : "callee"));
		PUT(&b, 0, 0, state, .state = i, .name = string(&b, i == 1 ? "asks" : "answers"));
	}
	PUT(&b, 0, 1, note_act, .actor = 1);
	PUT(&b, 0, 1, note_state, .state = 1);
	PUT(&b, 100, 1, note_link, .actor = 2);
	PUT(&b, 100, 1, note_act, .actor = 2);
	PUT(&b, 100, 1, note_state, .state = 2);
	PUT(&b, 400, 1, note_link, .actor = 1);
	PUT(&b, 450, 1, note_act, .actor = 1);
	PUT(&b, 450, 1, note_state, .state = 1);
	analyse(&b);
	conserved(&b, 450);
	assert_float_equal(on_path(&b, "asks"), 150, 1e-6);
	assert_float_equal(on_path(&b, "answers"), 300, 1e-6);
	finish(&b);
}

/* What a runtime says that a thread does whenever it runs stays so whatever it calls, until it says that
 * this is over. */
static void a_kept_state_stays(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	stream(&b, process_of(&b, "java", 0, 100));
	PUT(&b, 0, 0, object, .object = 1, .type = TRACE_OBJECT_semaphore, .address = 0x1000);
	PUT(&b, 0, 0, state, .state = 1, .name = string(&b, "collecting garbage"));
	PUT(&b, 0, 1, token_set, .object = 1, .n = 1);
	PUT(&b, 0, 1, note_state, .state = 1, .flags = TRACE_NOTE_KEPT);
	PUT(&b, 100, 1, token_take, .object = 1, .n = 1);
	PUT(&b, 300, 1, note_state, .state = 0, .flags = TRACE_NOTE_KEPT);
	PUT(&b, 450, 1, token_give, .object = 1, .n = 1);
	analyse(&b);
	conserved(&b, 450);
	assert_float_equal(on_path(&b, "collecting garbage"), 300, 1e-6);
	finish(&b);
}

static void analyse_window(struct bench *b, uint64_t from_ns, uint64_t to_ns)
{
	struct model_options o = {.size = sizeof o, .from_ns = from_ns, .to_ns = to_ns};
	b->model = model_free(b->model);
	assert_int_equal(trace_reader_rewind(b->reader, &b->err), BASE_OK);
	assert_int_equal(model_run(b->reader, &o, &b->model, &b->err), BASE_OK);
}

/* Main waits in join all the time; the window's path is its threads', who pass a lock on. */
static void window_of_a_run(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t fn = site(&b, "worker"), main_fn = site(&b, "main");
	uint32_t lock = object(&b, TRACE_OBJECT_mutex, "big_lock", 0);
	spawn(&b, 2, fn);
	PUT(&b, 30, 1, join_wait, .handle = 2000, .site = main_fn);
	PUT(&b, 40, 2, lock_acquire, .object = lock, .site = fn);
	PUT(&b, 50, 3, lock_wait, .object = lock, .site = fn);
	PUT(&b, 540, 2, lock_release, .object = lock, .site = fn);
	PUT(&b, 550, 3, lock_acquire, .object = lock, .site = fn);
	PUT(&b, 600, 2, thread_end);
	PUT(&b, 610, 1, join_done, .handle = 2000);
	PUT(&b, 620, 1, join_wait, .handle = 2001, .site = main_fn);
	PUT(&b, 950, 3, lock_release, .object = lock, .site = fn);
	PUT(&b, 960, 3, thread_end);
	PUT(&b, 970, 1, join_done, .handle = 2001);
	end(&b, 1000);
	double held = on_path(&b, "holding mutex big_lock");
	assert_float_equal(held, 500 + 400, 1e-6);
	analyse_window(&b, 100, 300); /* the lock was taken before it */
	conserved(&b, 200);
	assert_float_equal(on_path(&b, "holding mutex big_lock"), 200, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	analyse_window(&b, 500, 700); /* hand-off inside */
	conserved(&b, 200);
	assert_float_equal(on_path(&b, "holding mutex big_lock"), 40 + 150, 1e-6);
	analyse_window(&b, 800, 0);
	conserved(&b, 200);
	assert_float_equal(on_path(&b, "holding mutex big_lock"), 150, 1e-6);
	struct model_options o = {.size = sizeof o, .from_ns = 1001};
	struct model *none = NULL;
	assert_int_equal(trace_reader_rewind(b.reader, &b.err), BASE_OK);
	assert_int_equal(model_run(b.reader, &o, &none, &b.err), BASE_ERR_NOTFOUND);
	assert_null(none);
	finish(&b);
}

/* vfork() and posix_spawn() hold the caller until the child has begun its program. */
static void spawning_is_no_unknown_wait(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t spawns = site(&b, "spawn_all"), p = process_of(&b, "make", 0, 100);
	stream(&b, p);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 100, 1, process_fork, .token = 0, .site = spawns);
	PUT(&b, 110, 1, cpu_out, .processor = 0);
	PUT(&b, 400, 1, cpu_in, .processor = 0);
	PUT(&b, 500, 1, cpu_out, .processor = 0); /* and this is another thing */
	PUT(&b, 570, 1, cpu_in, .processor = 0);
	end(&b, 1000);
	assert_float_equal(on_path(&b, "starting a program"), 290, 1e-6);
	assert_float_equal(on_path(&b, "blocked outside every recorded call"), 70, 1e-6);
	assert_float_equal(unexplained(&b), 70, 1e-6);
	finish(&b);
}

/* Calls of which only the long ones are recorded have a state of their own, and name nothing
 * that comes after them: whether they are there is chance. */
static void looking_files_up_begins_nothing(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t opens = site(&b, "read_config"), p = process_of(&b, "prog", 0, 100);
	stream(&b, p);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 100, 1, io_begin, .op = TRACE_IO_look, .site = opens);
	PUT(&b, 110, 1, cpu_out, .processor = 0);
	PUT(&b, 300, 1, cpu_in, .processor = 0);
	PUT(&b, 310, 1, io_end, .op = TRACE_IO_look);
	end(&b, 1000);
	assert_float_equal(on_path(&b, "looking files up (stat, readdir)"), 210, 1e-6);
	assert_float_equal(on_path(&b, "running from its start"), 790, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* A thread that left its processor in a page fault, or while its program was loaded, waited for
 * files; for what one waits that only left it, nobody knows. */
static void a_fault_waits_for_the_disk(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process_of(&b, "prog", 0, 100);
	stream(&b, p);
	PUT(&b, 0, 1, process_begin, .token = 0);
	PUT(&b, 0, 1, cpu_in, .processor = 0);
	PUT(&b, 10, 1, cpu_out, .processor = 0, .preempted = 5);
	PUT(&b, 60, 1, cpu_in, .processor = 0);
	PUT(&b, 100, 1, cpu_out, .processor = 0, .preempted = 4);
	PUT(&b, 400, 1, cpu_in, .processor = 0);
	PUT(&b, 500, 1, cpu_out, .processor = 0);
	PUT(&b, 570, 1, cpu_in, .processor = 0);
	PUT(&b, 600, 1, poll_begin, .n = 1); /* a call's own wait stays the call's */
	PUT(&b, 610, 1, cpu_out, .processor = 0, .preempted = 4);
	PUT(&b, 690, 1, cpu_in, .processor = 0);
	PUT(&b, 700, 1, poll_end, .result = 0);
	end(&b, 1000);
	assert_float_equal(on_path(&b, "loading the program (exec, dynamic loader)"), 50, 1e-6);
	assert_float_equal(on_path(&b, "reading pages from disk (page faults)"), 300, 1e-6);
	assert_float_equal(on_path(&b, "blocked outside every recorded call"), 70, 1e-6);
	assert_float_equal(unexplained(&b), 70, 1e-6);
	finish(&b);
}

static void any_records_conserve_time(void **state)
{
	(void)state;
	unsigned nr_kinds;
	const struct trace_kind_desc *kinds = trace_kind_table(&nr_kinds);
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct bench b;
		start(&b);
		uint64_t s = seed;
		uint32_t fn = site(&b, "f");
		for (unsigned type = TRACE_OBJECT_mutex; type < TRACE_OBJECT_NR; type++)
			object(&b, (enum trace_object_type)type, type & 1 ? "named" : "",
				rnd(&s) % 3 * 100);
		spawn(&b, 3, fn);
		uint64_t t = 100;
		for (int i = 0; i < 300; i++) {
			const struct trace_kind_desc *k = &kinds[rnd(&s) % nr_kinds];
			if (k->kind < 32 || k->kind == TRACE_process_end ||
				k->kind == TRACE_thread_end)
				continue;
			struct trace_record r = {
				.kind = k->kind, .stream = 1 + (uint32_t)(rnd(&s) % 4)};
			r.time_ns = t += rnd(&s) % 50;
			for (unsigned f = 0; f < k->nr_fields; f++) {
				char *at = (char *)&r + k->field[f].offset;
				uint64_t v = rnd(&s) % 24;
				if (k->field[f].type == TRACE_FIELD_ID)
					*(uint32_t *)(void *)at = (uint32_t)v;
				else
					*(uint64_t *)(void *)at = v;
			}
			put(&b, r);
		}
		PUT(&b, t + 10, 1, thread_end);
		PUT(&b, t + 10, 1, process_end, .status = 0);
		analyse(&b);
		path_is_whole(&b, (double)(t + 10));
		finish(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutex_hand_over),
		cmocka_unit_test(main_leaves_the_others_alone),
		cmocka_unit_test(threads_that_never_end),
		cmocka_unit_test(condition_variable),
		cmocka_unit_test(barrier_waits_for_the_last),
		cmocka_unit_test(barrier_waits_for_tasks),
		cmocka_unit_test(writer_waits_for_readers),
		cmocka_unit_test(pipe_between_processes),
		cmocka_unit_test(daemon_ends_the_path),
		cmocka_unit_test(room_is_made_by_a_read_that_goes_on),
		cmocka_unit_test(poll_waits_for_room),
		cmocka_unit_test(a_long_read_takes_in_pieces),
		cmocka_unit_test(last_closing_is_the_end_of_file),
		cmocka_unit_test(pipes_are_called_after_their_users),
		cmocka_unit_test(accept_waits_for_the_client),
		cmocka_unit_test(full_pipe_holds_the_writer),
		cmocka_unit_test(preempted_by_a_sibling),
		cmocka_unit_test(unseen_wait_is_unexplained),
		cmocka_unit_test(machines_in_turn_are_linked),
		cmocka_unit_test(a_kept_state_stays),
		cmocka_unit_test(window_of_a_run),
		cmocka_unit_test(spawning_is_no_unknown_wait),
		cmocka_unit_test(a_fault_waits_for_the_disk),
		cmocka_unit_test(looking_files_up_begins_nothing),
		cmocka_unit_test(any_records_conserve_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
