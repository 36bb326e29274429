/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_kernel.c - known answers: switches and wakes of a whole system, made by hand. */
#include "kernel_fixture.h"
#include "model/model.h"

/* A grace period ends when every processor has passed; who passed last is not why. */
static void grace_period(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "waiter";
	uint32_t waiter = thread(&b, "waiter"), hog = thread(&b, "hog");
	uint32_t name = string(&b, "rcu_exp_gp_kthread_worker"), kernels = ++b.nr_processes;
	PUT(&b, 0, 0, process, .process = kernels, .pid = 17, .name = name); /* no command */
	uint32_t rcu = stream(&b, kernels);
	IN(&b, 0, waiter, 0);
	IN(&b, 0, hog, 1);
	WAKES(&b, 90, waiter, rcu);
	SLEEPS(&b, 100, waiter, 0);
	IN(&b, 100, rcu, 0);
	SLEEPS(&b, 110, rcu, 0);
	WAKES(&b, 500, hog, rcu);
	IN(&b, 500, rcu, 0);
	WAKES(&b, 510, rcu, waiter);
	SLEEPS(&b, 520, rcu, 0);
	IN(&b, 520, waiter, 0);
	SLEEPS(&b, 600, waiter, 0);
	analyse(&b);
	conserved(&b, 600);
	assert_float_equal(on_path_of(&b, "hog", ""), 0, 1e-6);
	assert_float_equal(on_path_of(&b, "waiter", "rcu_exp"), 410, 10.5F);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* One thread works 100, sleeps until a timer wakes it; who was running then has nothing to do with
 * it. */
static void timer_wakes_while_another_runs(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "sleeper";
	uint32_t sleeper = thread(&b, "sleeper"), hog = thread(&b, "hog");
	uint32_t timer = context(&b, TRACE_CONTEXT_timer, 0, "local timer");
	IN(&b, 0, sleeper, 0);
	SLEEPS(&b, 100, sleeper, 0);
	IN(&b, 100, hog, 0);
	WAKES(&b, 1000, timer, sleeper);
	YIELDS(&b, 1010, hog, 0);
	IN(&b, 1010, sleeper, 0);
	SLEEPS(&b, 1200, sleeper, 0);
	analyse(&b);
	conserved(&b, 1200);
	assert_float_equal(on_path(&b, "waiting for a timer"), 900, 1e-6);
	assert_float_equal(on_path_of(&b, "sleeper", "running program sleeper"), 100 + 190, 1e-6);
	assert_float_equal(
		on_path_of(&b, "sleeper", "waiting for a processor that hog had"), 10, 1e-6);
	assert_float_equal(on_path_of(&b, "hog", ""), 0, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* It slept before anything was seen of it, in a call that is known: the wait has its name. */
static void asleep_since_before(void **state)
{
	enum { CLOCK_NANOSLEEP = 230 };
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "sleeper";
	uint32_t sleeper = thread(&b, "sleeper"), hog = thread(&b, "hog");
	uint32_t timer = context(&b, TRACE_CONTEXT_timer, 0, "local timer");
	CALLS(&b, 0, sleeper, CLOCK_NANOSLEEP, .object = 0);
	PUT(&b, 0, sleeper, wait_at, .state = TRACE_SLEEP_interruptible);
	IN(&b, 0, hog, 0);
	WAKES(&b, 1000, timer, sleeper);
	YIELDS(&b, 1010, hog, 0);
	IN(&b, 1010, sleeper, 0);
	RETURNS(&b, 1010, sleeper, CLOCK_NANOSLEEP, .object = 0);
	SLEEPS(&b, 1200, sleeper, 0);
	analyse(&b);
	conserved(&b, 1200);
	assert_float_equal(on_path(&b, "waiting for a timer in clock_nanosleep"), 1000, 1e-6);
	assert_float_equal(on_path(&b, "before it was first seen"), 0, 1e-6);
	assert_float_equal(on_path_of(&b, "hog", ""), 0, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* Client asks, server answers, each asleep meanwhile: the path goes there and back. */
static void wakes_are_followed(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "client";
	uint32_t client = thread(&b, "client"), server = thread(&b, "server");
	IN(&b, 0, client, 0);
	IN(&b, 0, server, 1);
	SLEEPS(&b, 10, server, 1);
	WAKES(&b, 100, client, server);
	SLEEPS(&b, 105, client, 0);
	IN(&b, 120, server, 1);
	WAKES(&b, 620, server, client);
	SLEEPS(&b, 630, server, 1);
	IN(&b, 640, client, 0);
	SLEEPS(&b, 700, client, 0);
	analyse(&b);
	conserved(&b, 700);
	assert_float_equal(on_path_of(&b, "client", "running"), 100 + 60, 1e-6);
	assert_float_equal(on_path_of(&b, "server", "running"), 500, 1e-6);
	assert_float_equal(on_path(&b, "waking up on an idle processor"), 20 + 20, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* The thread goes on as another stream (exec), but records still name the old one for a while: they
 * mean it all the same. */
static void woken_by_its_old_name(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "new";
	uint32_t old = thread(&b, "old"), waker = thread(&b, "waker");
	uint32_t image = ++b.nr_streams;
	PUT(&b, 0, 0, stream, .stream = image, .process = process(&b, "new", 1000),
		.tid = 100 + old);
	IN(&b, 0, old, 0);
	IN(&b, 0, waker, 1);
	SLEEPS(&b, 100, image, 0);
	WAKES(&b, 400, waker, old);
	IN(&b, 410, image, 0);
	SLEEPS(&b, 500, image, 0);
	analyse(&b);
	assert_int_equal(model_health(b.model)->count[TRACE_DIAG_wakes_unseen], 0);
	assert_float_equal(on_path_of(&b, "waker", "running"), 400, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* The high thread waits for the low one's futex; the low one is preempted by a middle one that
 * neither knows. */
static void priority_inversion(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "high";
	uint32_t high = thread(&b, "high"), middle = thread(&b, "middle"), low = thread(&b, "low");
	uint32_t net = context(&b, TRACE_CONTEXT_softirq, 0, "NET_RX");
	IN(&b, 0, low, 0);
	IN(&b, 0, high, 1);
	SLEEPS(&b, 50, high, 1);
	WAKES(&b, 200, net, middle);
	YIELDS(&b, 200, low, 0);
	IN(&b, 200, middle, 0);
	SLEEPS(&b, 1200, middle, 0);
	IN(&b, 1200, low, 0);
	WAKES(&b, 1400, low, high);
	IN(&b, 1405, high, 1);
	SLEEPS(&b, 1500, high, 1);
	analyse(&b);
	conserved(&b, 1500);
	assert_float_equal(on_path_of(&b, "low", "running program low"), 200 + 200, 1e-6);
	assert_float_equal(
		on_path_of(&b, "low", "waiting for a processor that middle had"), 1000, 1e-6);
	assert_float_equal(on_path_of(&b, "high", ""), 100, 1e-6);
	finish(&b);
}

/* Three threads that only compute, on one processor, 100 each in turn. */
static void processor_shortage(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "a";
	uint32_t t[] = {thread(&b, "a"), thread(&b, "b"), thread(&b, "c")};
	size_t nr;
	for (unsigned i = 0; i < 9; i++) {
		IN(&b, i * 100, t[i % 3], 0);
		YIELDS(&b, i * 100 + 100, t[i % 3], 0);
	}
	IN(&b, 900, t[0], 0);
	SLEEPS(&b, 1000, t[0], 0);
	analyse(&b);
	conserved(&b, 1000);
	assert_float_equal(on_path_of(&b, "a", "running program a"), 400, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "waiting for a processor that"), 600, 1e-6);
	const struct model_processor_wait *w = model_processor_waits(b.model, &nr);
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(model_actor(b.model, w[i].waiting)->name, "a"))
			assert_int_equal(w[i].wait_ns, 300); /* of b, and of c */
	finish(&b);
}

/* A wait so long, on a processor so busy, that its beginning is forgotten when it ends: it was
 * busy. */
static void long_processor_shortage(void **state)
{
	enum { TURNS = 400, TURN_NS = 100000, NR = 12 };
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "a";
	uint32_t a = thread(&b, "a"), other[NR];
	for (unsigned i = 0; i < NR;
		i++) { /* more programs than are told apart, one of them more often */
		char name[] = {(char)('b' + (i < 8 ? 0 : i)), 0};
		other[i] = thread(&b, name);
	}
	IN(&b, 0, a, 0);
	YIELDS(&b, TURN_NS, a, 0);
	for (unsigned i = 1; i <= TURNS; i++) {
		IN(&b, i * TURN_NS, other[i % NR], 0);
		YIELDS(&b, (i + 1) * TURN_NS, other[i % NR], 0);
	}
	IN(&b, (TURNS + 1) * TURN_NS, a, 0);
	SLEEPS(&b, (TURNS + 2) * TURN_NS, a, 0);
	analyse(&b);
	conserved(&b, (TURNS + 2) * TURN_NS);
	assert_float_equal(
		on_path_of(&b, "a", "waiting for a processor that b had"), TURNS * TURN_NS, 1e-6);
	finish(&b);
}

/* Its quota is used up while another program keeps the processor busy: it is not that one that it
 * waits for. */
static void throttled(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "a";
	uint32_t a = thread(&b, "a"), other = thread(&b, "other");
	PUT(&b, 0, 0, group, .process = 1, .cgroup = string(&b, "/limited"));
	IN(&b, 0, a, 0);
	PUT(&b, 1000000, a, cpu_out, .processor = 0, .preempted = 3);
	IN(&b, 1000000, other, 0);
	YIELDS(&b, 6000000, other, 0);
	IN(&b, 6000000, a, 0);
	YIELDS(&b, 7000000, a, 0); /* this time it is: */
	IN(&b, 7000000, other, 0);
	YIELDS(&b, 8000000, other, 0);
	IN(&b, 8000000, a, 0);
	SLEEPS(&b, 9000000, a, 0);
	analyse(&b);
	conserved(&b, 9000000);
	assert_float_equal(
		on_path(&b, "not allowed to run (quota of cgroup /limited)"), 5000000, 1e-6);
	assert_float_equal(on_path(&b, "waiting for a processor that other had"), 1000000, 1e-6);
	finish(&b);
}

/* Ready for 5 ms although nobody has its processor: it was not allowed to. */
static void quota(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	uint32_t a = thread(&b, "a"), idle = context(&b, TRACE_CONTEXT_idle, 0, "");
	PUT(&b, 0, 0, group, .process = 1, .cgroup = string(&b, "/limited"));
	IN(&b, 0, a, 0);
	YIELDS(&b, 1000000, a, 0);
	IN(&b, 1000000, idle, 0);
	SLEEPS(&b, 6000000, idle, 0);
	IN(&b, 6000000, a, 0);
	SLEEPS(&b, 7000000, a, 0);
	analyse(&b);
	conserved(&b, 7000000);
	assert_float_equal(on_path(&b, "(quota of cgroup /limited)"), 5000000, 1e-6);
	for (uint32_t i = 0; i < graph_nr_actors(model_graph(b.model)); i++)
		if (!strcmp(model_actor(b.model, i)->name, "a"))
			assert_string_equal(model_actor(b.model, i)->cgroup, "/limited");
	finish(&b);
}

/* Woken just before it left its processor: it never waited. But where it went on and slept later,
 * the waking that came then counts. */
static void woken_before_it_sleeps(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "a";
	uint32_t a = thread(&b, "a"), w = thread(&b, "w");
	IN(&b, 0, a, 0);
	IN(&b, 0, w, 1);
	WAKES(&b, 98, w, a);
	SLEEPS(&b, 100, a, 0);
	IN(&b, 110, a, 0);
	WAKES(&b, 150, w, a); /* for nothing */
	SLEEPS(&b, 200, a, 0);
	WAKES(&b, 600, w, a);
	IN(&b, 620, a, 0);
	SLEEPS(&b, 700, a, 0);
	analyse(&b);
	conserved(&b, 700);
	assert_float_equal(on_path_of(&b, "w", "running"), 600, 1e-6);
	assert_float_equal(on_path_of(&b, "a", "running"), 80, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* The library's records of the same thread win: its lock is what is waited for, and the time counts
 * once; only what it knows no cause of is the waker's. */
static void library_and_kernel(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "a";
	uint32_t a = thread(&b, "a"), w = thread(&b, "w");
	uint32_t lock = object(&b, TRACE_OBJECT_mutex, "big_lock", 0);
	uint32_t peer = object(&b, TRACE_OBJECT_socket, "", 0), fn = site(&b, "worker");
	IN(&b, 0, w, 1);
	IN(&b, 0, a, 0);
	PUT(&b, 10, w, lock_acquire, .object = lock, .site = fn);
	PUT(&b, 50, a, lock_wait, .object = lock, .site = fn);
	CALLS(&b, 52, a, 202);
	SLEEPS(&b, 55, a, 0);
	PUT(&b, 500, w, lock_release, .object = lock, .site = fn);
	WAKES(&b, 502, w, a);
	IN(&b, 510, a, 0);
	RETURNS(&b, 511, a, 202);
	PUT(&b, 512, a, lock_acquire, .object = lock, .site = fn);
	PUT(&b, 600, a, lock_release, .object = lock, .site = fn);
	PUT(&b, 610, a, io_begin, .object = peer, .op = TRACE_IO_read, .n = 10, .site = fn);
	CALLS(&b, 611, a, 0, .object = peer, .n = 10);
	SLEEPS(&b, 612, a, 0);
	WAKES(&b, 900, w, a);
	IN(&b, 905, a, 0);
	RETURNS(&b, 906, a, 0, .object = peer, .result = 10);
	PUT(&b, 907, a, io_end, .object = peer, .op = TRACE_IO_read, .result = 10);
	SLEEPS(&b, 1000, a, 0);
	analyse(&b);
	conserved(&b, 1000);
	/* w: 0-900, with the lock 10-500; a after its second wake */
	assert_float_equal(on_path_of(&b, "w", "holding mutex big_lock"), 490, 1e-6);
	assert_float_equal(on_path_of(&b, "w", ""), 900, 1e-6);
	assert_float_equal(on_path_of(&b, "a", ""), 100, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* Nobody was seen to wake it: that is said. A switch that was lost is borne. */
static void gaps_are_counted(void **state)
{
	(void)state;
	struct bench b;
	struct model_waits waits;
	start(&b, "");
	uint32_t a = thread(&b, "a"), c = thread(&b, "c");
	IN(&b, 0, a, 0);
	SLEEPS(&b, 100, a, 0);
	IN(&b, 400, a, 0);
	IN(&b, 450, c, 0); /* a's leaving is missing */
	SLEEPS(&b, 480, c, 0);
	SLEEPS(&b, 900, a, 1); /* and its coming */
	analyse(&b);
	conserved(&b, 900);
	assert_float_equal(unexplained(&b), 300, 1e-6);
	assert_int_equal(model_health(b.model)->count[TRACE_DIAG_wakes_unseen], 1);
	waits = model_waits(b.model);
	assert_int_equal(waits.nr, 3);
	assert_int_equal(waits.nr_unseen, 1);
	assert_int_equal(waits.nr_hidden, 0);
	size_t nr;
	const struct model_unseen *kind = model_unseen_kinds(b.model, &nr);
	assert_int_equal(nr, 1);
	assert_string_equal(model_state(b.model, kind->state)->name, "asleep, not seen in what");
	assert_int_equal(model_state(b.model, kind->state)->cause, MODEL_CAUSE_asleep_unseen);
	assert_int_equal(model_state(b.model, kind->state)->kind, MODEL_STATE_blocked);
	assert_string_equal(model_actor(b.model, kind->longest_actor)->name, "a");
	assert_int_equal(kind->nr, 1);
	assert_int_equal(kind->total_ns, 300);
	assert_int_equal(kind->longest_begin_ns, 100);
	finish(&b);
}

/* Somebody leaves its processor unseen: whether it sleeps is not known, so that is no wait; who
 * wakes up meanwhile may be its doing. */
static void hidden_waker(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	uint32_t a = thread(&b, "a"), h = thread(&b, "hidden"), c = thread(&b, "c");
	IN(&b, 0, a, 0);
	SLEEPS(&b, 100, a, 0);
	IN(&b, 200, h, 1);
	IN(&b, 250, a, 0); /* who woke it? */
	IN(&b, 300, c, 1);
	PUT(&b, 300, h, cpu_out, .processor = 1, .preempted = 2);
	IN(&b, 400, h, 1);
	SLEEPS(&b, 500, h, 1);
	SLEEPS(&b, 600, a, 0);
	IN(&b, 700, a, 0); /* and now? */
	SLEEPS(&b, 900, a, 0);
	analyse(&b);
	conserved(&b, 900);
	struct model_waits waits = model_waits(b.model);
	assert_int_equal(waits.nr, 4);
	assert_int_equal(waits.nr_unseen, 2);
	assert_int_equal(waits.nr_hidden, 1);
	finish(&b);
}

/* The path of a program is the program's, though the recording began before and ends after it. */
static void of_the_program(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "prog");
	uint32_t other = thread(&b, "other"), prog = thread(&b, "prog");
	IN(&b, 0, other, 0);
	WAKES(&b, 500, other, prog);
	IN(&b, 510, prog, 1);
	SLEEPS(&b, 600, prog, 1);
	WAKES(&b, 900, other, prog);
	IN(&b, 910, prog, 1);
	SLEEPS(&b, 1000, prog, 1);
	SLEEPS(&b, 5000, other, 0);
	analyse(&b);
	conserved(&b, 490);
	assert_float_equal(on_path_of(&b, "other", "running"), 390, 1e-6);
	assert_float_equal(on_path_of(&b, "prog", "running"), 90, 1e-6);
	finish(&b);
}

/* Of a whole system it is that of the process that ran most; else of the one wanted. */
static void whose_path(void **state)
{
	(void)state;
	for (int named = 0; named < 3; named++) {
		struct bench b;
		start(&b, "");
		b.options.process = named == 1 ? "few" : named == 2 ? "1001" : NULL;
		uint32_t few = thread(&b, "few"), much = thread(&b, "much");
		IN(&b, 0, few, 0);
		IN(&b, 0, much, 1);
		SLEEPS(&b, 100, few, 0);
		SLEEPS(&b, 900, much, 1);
		analyse(&b);
		conserved(&b, named == 1 ? 100 : 900);
		finish(&b);
	}
	struct bench b;
	start(&b, "");
	b.options.process = "nobody";
	IN(&b, 0, thread(&b, "few"), 0);
	assert_int_equal(trace_writer_close(b.w, &b.err), BASE_OK);
	assert_int_equal(trace_reader_open(b.path, NULL, &b.reader, &b.err), BASE_OK);
	assert_int_equal(model_run(b.reader, &b.options, &b.model, &b.err), BASE_ERR_NOTFOUND);
	trace_reader_close(b.reader);
	unlink(b.path);
}

/*
 * The last thing that it waits for is a lock of the kernel's, which another program had by chance:
 * the path does not go on in that one, which slept until shortly before. A thread of its own
 * process would be followed.
 */
static void kernel_lock(void **state)
{
	(void)state;
	for (int own = 0; own < 2; own++) {
		struct bench b;
		start(&b, "");
		b.options.process = "program";
		uint32_t of = process(&b, "program", 7);
		uint32_t program = stream(&b, of);
		uint32_t other = own ? stream(&b, of) : thread(&b, "stranger");
		uint32_t lock = object(&b, TRACE_OBJECT_kernel_lock, "i_mmap_rwsem", 0);
		IN(&b, 0, program, 0);
		IN(&b, 0, other, 1);
		PUT(&b, 100, program, kernel_lock_wait, .object = lock);
		SLEEPS(&b, 110, program, 0);
		WAKES(&b, 180, other, program);
		IN(&b, 190, program, 0);
		PUT(&b, 191, program, kernel_lock_acquire, .object = lock);
		SLEEPS(&b, 210, other, 1);
		SLEEPS(&b, 220, program, 0);
		analyse(&b);
		conserved(&b, 220);
		assert_float_equal(
			on_path(&b, "i_mmap_rwsem that stranger had"), (own ? 0 : 70), 1e-6);
		assert_float_equal(on_path(&b, "running"), (own ? 180 + 29 : 100 + 29), 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

/*
 * A writer that a timer wakes every now and then has something (a lock in shared memory) for a
 * moment that the program waits for. A thread that came to wait after the timer met it by chance:
 * the path stays the program's. One that waited while it slept waited for the timer.
 */
static void woken_by_who_slept(void **state)
{
	(void)state;
	for (int by_chance = 0; by_chance < 2; by_chance++) {
		struct bench b;
		start(&b, "");
		b.options.process = "program";
		uint32_t program = thread(&b, "program"), writer = thread(&b, "writer");
		uint32_t timer = context(&b, TRACE_CONTEXT_timer, 1, "local timer");
		uint64_t asleep = by_chance ? 9010 : 8000;
		IN(&b, 0, program, 0);
		IN(&b, 0, writer, 1);
		SLEEPS(&b, 100, writer, 1);
		if (!by_chance)
			SLEEPS(&b, asleep, program, 0);
		WAKES(&b, 9000, timer, writer);
		IN(&b, 9005, writer, 1);
		if (by_chance)
			SLEEPS(&b, asleep, program, 0);
		WAKES(&b, 9050, writer, program);
		IN(&b, 9055, program, 0);
		SLEEPS(&b, 9060, writer, 1);
		SLEEPS(&b, 9500, program, 0);
		analyse(&b);
		conserved(&b, 9500);
		assert_float_equal(
			on_path(&b, "waiting for a timer"), (by_chance ? 0 : 8900), 1e-6);
		assert_float_equal(on_path_of(&b, "program", "waiting for writer, which a timer"),
			(by_chance ? 40 : 0), 1e-6);
		assert_float_equal(
			on_path_of(&b, "program", "running"), (by_chance ? 9010 + 445 : 445), 1e-6);
		assert_float_equal(unexplained(&b), 0, 1e-6);
		finish(&b);
	}
}

/* What the recorder takes from the program is told from what a program of the same name does. */
static void recorder_has_the_processor(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "program";
	uint32_t program = thread(&b, "program"), ours = thread(&b, "longpole");
	uint32_t other = thread(&b, "longpole");
	PUT(&b, 0, 0, context, .stream = ours, .type = TRACE_CONTEXT_recorder);
	IN(&b, 0, program, 0);
	YIELDS(&b, 100, program, 0);
	IN(&b, 100, ours, 0);
	SLEEPS(&b, 150, ours, 0);
	IN(&b, 150, program, 0);
	YIELDS(&b, 200, program, 0);
	IN(&b, 200, other, 0);
	SLEEPS(&b, 220, other, 0);
	IN(&b, 220, program, 0);
	SLEEPS(&b, 300, program, 0);
	analyse(&b);
	conserved(&b, 300);
	assert_float_equal(on_path(&b, "that the recorder (longpole) had"), 50, 1e-6);
	assert_float_equal(on_path(&b, "that longpole had"), 20, 1e-6);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grace_period),
		cmocka_unit_test(timer_wakes_while_another_runs),
		cmocka_unit_test(wakes_are_followed),
		cmocka_unit_test(woken_by_its_old_name),
		cmocka_unit_test(priority_inversion),
		cmocka_unit_test(kernel_lock),
		cmocka_unit_test(woken_by_who_slept),
		cmocka_unit_test(recorder_has_the_processor),
		cmocka_unit_test(processor_shortage),
		cmocka_unit_test(long_processor_shortage),
		cmocka_unit_test(asleep_since_before),
		cmocka_unit_test(quota),
		cmocka_unit_test(throttled),
		cmocka_unit_test(woken_before_it_sleeps),
		cmocka_unit_test(library_and_kernel),
		cmocka_unit_test(gaps_are_counted),
		cmocka_unit_test(hidden_waker),
		cmocka_unit_test(of_the_program),
		cmocka_unit_test(whose_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
