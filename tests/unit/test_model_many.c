/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of many short lives: what the model does for each does not grow with how many there
 * were. Counted in what it tells the graph, and in allocations: no clock. */
#include "model/model.h"
#include "model_fixture.h"

enum { FEW = 100, FACTOR = 8 };

static enum base_status count_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	(void)queue, (void)o, (void)err;
	++*(uint64_t *)ctx;
	return BASE_OK;
}

static enum base_status count_verb(void *ctx, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor, struct base_err *err)
{
	(void)kind, (void)v, (void)from_actor, (void)err;
	++*(uint64_t *)ctx;
	return BASE_OK;
}

struct lives {
	struct bench b;
	uint32_t shell, where;
	uint64_t now;
};

/* A command of the shell's (stream 1): its process is forked, then executes another program. */
static void command(struct lives *l, unsigned i)
{
	struct bench *b = &l->b;
	uint32_t child = process_of(b, "sh", l->shell, 200 + i);
	uint32_t image = process_of(b, "command", child, 200 + i);
	uint32_t before = stream(b, child), after = stream(b, image);
	uint32_t lock = object(b, TRACE_OBJECT_mutex, "lock", 0);
	uint32_t pipe = object(b, TRACE_OBJECT_pipe, "", 4096);
	PUT(b, l->now, 1, process_fork, .token = i + 1, .site = l->where);
	PUT(b, l->now + 1, 1, io_begin, .object = pipe, .op = TRACE_IO_write, .site = l->where);
	PUT(b, l->now + 2, 1, io_end, .object = pipe, .op = TRACE_IO_write, .result = 10);
	PUT(b, l->now + 3, 1, child_wait, .site = l->where);
	PUT(b, l->now + 10, before, process_begin, .token = i + 1);
	PUT(b, l->now + 20, before, process_exec, .site = l->where);
	PUT(b, l->now + 30, after, process_begin, .token = 0);
	PUT(b, l->now + 30, after, thread_begin, .token = 0);
	PUT(b, l->now + 40, after, io_begin, .object = pipe, .op = TRACE_IO_read);
	PUT(b, l->now + 41, after, io_end, .object = pipe, .op = TRACE_IO_read, .result = 10);
	PUT(b, l->now + 50, after, lock_acquire, .object = lock, .site = l->where);
	PUT(b, l->now + 60, after, process_end, .status = 0);
	PUT(b, l->now + 70, 1, child_waited, .pid = 200 + i);
	l->now += 80;
}

/* A process that stays, and sends its group a signal. */
static void member(struct lives *l, unsigned i)
{
	struct bench *b = &l->b;
	uint32_t one = stream(b, process_of(b, "member", l->shell, 200 + i));
	PUT(b, l->now, 1, process_fork, .token = i + 1, .site = l->where);
	PUT(b, l->now + 10, one, process_begin, .token = i + 1);
	PUT(b, l->now + 20, one, poll_begin, .n = 0, .site = l->where);
	PUT(b, l->now + 30, 1, signal_send, .number = 10, .site = l->where);
	PUT(b, l->now + 40, one, poll_end, .result = -4);
	l->now += 50;
}

static void thread(struct lives *l, unsigned i)
{
	struct bench *b = &l->b;
	uint32_t one = stream(b, l->shell), lock = object(b, TRACE_OBJECT_mutex, "lock", 0);
	PUT(b, l->now, 1, thread_create, .token = i + 1, .site = l->where);
	PUT(b, l->now + 1, 1, join_wait, .handle = 2000 + i, .site = l->where);
	PUT(b, l->now + 10, one, thread_begin, .token = i + 1, .handle = 2000 + i,
		.site = l->where);
	PUT(b, l->now + 20, one, lock_acquire, .object = lock, .site = l->where);
	PUT(b, l->now + 30, one, lock_release, .object = lock, .site = l->where);
	PUT(b, l->now + 40, one, thread_end);
	PUT(b, l->now + 50, 1, join_done, .handle = 2000 + i);
	l->now += 60;
}

static uint64_t verbs_of(void (*life)(struct lives *l, unsigned i), unsigned nr)
{
	uint64_t nr_verbs = 0;
	struct lives l = {.now = 10};
	struct graph_sink sink = {.ctx = &nr_verbs, .queue = count_queue, .verb = count_verb};
	start(&l.b);
	l.where = site(&l.b, "main");
	l.shell = process_of(&l.b, "sh", 0, 100);
	stream(&l.b, l.shell);
	l.b.options.sink = &sink;
	PUT(&l.b, 0, 1, process_begin, .token = 0);
	PUT(&l.b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	for (unsigned i = 0; i < nr; i++)
		life(&l, i);
	end(&l.b, l.now);
	finish(&l.b);
	return nr_verbs;
}

/* Twice as many lives are twice the work. */
static void work_is_linear(void **state)
{
	(void)state;
	static void (*const life[])(struct lives * l, unsigned i) = {command, member, thread};
	for (size_t k = 0; k < BASE_COUNT(life); k++) {
		uint64_t few = verbs_of(life[k], FEW), many = verbs_of(life[k], FACTOR * FEW);
		print_message("kind %zu: %llu verbs for %d lives, %llu for %d\n", k,
			(unsigned long long)few, (int)FEW, (unsigned long long)many,
			(int)(FACTOR * FEW));
		assert_true(few >= FEW);
		assert_true(many <= FACTOR * few);
	}
}

/* A signal to a group ends the wait of whoever waits then, wherever it comes from; one that was
 * sent before somebody was born does not; and of two the last one counts. */
static void a_group_has_who_is_there(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 4; how++) {
		struct bench b;
		start(&b);
		uint32_t fn = site(&b, "kick"), main_fn = site(&b, "main");
		uint32_t p = process_of(&b, "parent", 0, 100), c = process_of(&b, "child", p, 101);
		stream(&b, p);
		stream(&b, c);
		PUT(&b, 0, 1, process_begin, .token = 0);
		PUT(&b, 0, 1, thread_begin, .token = 0, .handle = 1000);
		PUT(&b, 10, 1, process_fork, .token = 1, .site = main_fn);
		PUT(&b, 20, 2, process_begin, .token = 1);
		if (how == 2) /* before the wait */
			PUT(&b, 25, 2, signal_send, .number = 10, .site = fn);
		PUT(&b, 30, 1, poll_begin, .n = 0, .site = main_fn);
		if (how == 1)
			PUT(&b, 300, 2, signal_send, .pid = 100, .number = 10, .site = fn);
		if (how == 3) {
			PUT(&b, 290, 2, signal_send, .pid = 100, .number = 10, .site = fn);
			PUT(&b, 300, 2, signal_send, .number = 10, .site = fn);
		}
		if (how == 0)
			PUT(&b, 300, 2, signal_send, .number = 10, .site = fn);
		PUT(&b, 310, 1, poll_end, .result = -4);
		end(&b, 400);
		/* told at 300: the child ran until then, and 10 are the signal's way */
		if (how != 2) {
			assert_float_equal(on_path_of(&b, "child", "running"), 280, 1e-6);
			assert_float_equal(on_path(&b, "waiting for a signal"), 0, 1e-6);
		} else {
			assert_float_equal(on_path(&b, "waiting for a signal"), 280, 1e-6);
		}
		finish(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_is_linear),
		cmocka_unit_test(a_group_has_who_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
