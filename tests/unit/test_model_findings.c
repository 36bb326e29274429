/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_findings.c - each misuse of an annotation is found once, with its place and count;
 * right uses are not found; who had the processor. Times in us. */
#include "report_fixture.h"

#include "model/findings.h"

#define LONGPOLE_DISABLE
#include "longpole/annotate.h"

struct scene {
	struct bench b;
	struct model *m;
	uint32_t queue, other, bounded, machine, second, state;
	uint32_t site[12];
};

static uint32_t queue_def(struct bench *b, const char *name, uint64_t capacity)
{
	uint32_t id = ++b->nr_objects, text = string(b, name);
	PUT(b, 0, 0, object, .object = id, .process = 1, .type = TRACE_OBJECT_queue, .address = id,
		.capacity = capacity, .name = text);
	return id;
}

/* Streams 1 (main) and 2; machines `encoder` and `camera`. */
static void open_scene(struct scene *x)
{
	struct bench *b = &x->b;
	start(b);
	uint32_t p = process(b, "prog");
	for (unsigned i = 0; i < BASE_COUNT(x->site); i++) {
		char name[16];
		snprintf(name, sizeof name, "f%u", i);
		x->site[i] = site(b, name);
	}
	stream(b, p);
	stream(b, p);
	x->queue = queue_def(b, "frames", 0);
	x->other = queue_def(b, "packets", 0);
	x->bounded = queue_def(b, "slots", 4);
	x->machine = 1;
	x->second = 2;
	x->state = 1;
	PUT(b, 0, 0, actor, .actor = 1, .name = string(b, "encoder"));
	PUT(b, 0, 0, actor, .actor = 2, .name = string(b, "camera"));
	PUT(b, 0, 0, state, .state = 1, .name = string(b, "drop frame"), .site = x->site[11]);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	PUT(b, 1, 1, thread_create, .token = 1, .site = x->site[0]);
	PUT(b, 2, 2, thread_begin, .token = 1, .handle = 2000, .site = x->site[0]);
}

static void analyse_scene(struct scene *x, uint64_t at)
{
	end(&x->b, at);
	enum base_status s = model_run(x->b.reader, NULL, &x->m, &x->b.err);
	if (s != BASE_OK)
		print_message("%s\n", x->b.err.cause[0]);
	assert_int_equal(s, BASE_OK);
}

static void close_scene(struct scene *x)
{
	model_free(x->m);
	finish(&x->b);
}

/* NULL: not found. */
static const struct model_finding *finding(const struct scene *x, enum model_check check)
{
	const struct model_finding *found = NULL;
	size_t nr;
	uint64_t more;
	const struct model_finding *f = model_findings(x->m, &nr, &more);
	for (size_t i = 0; i < nr; i++) {
		if (f[i].check != check)
			continue;
		assert_null(found); /* once */
		found = &f[i];
	}
	return found;
}

static size_t nr_findings(const struct scene *x)
{
	size_t nr;
	uint64_t more;
	model_findings(x->m, &nr, &more);
	return nr;
}

static void expect(const struct scene *x, enum model_check check, uint64_t count, uint64_t first_us,
	const char *where, const char *sentence)
{
	const struct model_finding *f = finding(x, check);
	if (!f)
		print_message("%s was not found\n", model_check_name(check));
	assert_non_null(f);
	assert_int_equal(f->count, count);
	assert_int_equal(f->first_ns, first_us * 1000);
	if (!strstr(f->where, where) || strcmp(f->sentence, sentence) != 0)
		print_message("%s: %s (%s)\n", model_check_name(check), f->sentence, f->where);
	assert_non_null(strstr(f->where, where));
	assert_string_equal(f->sentence, sentence);
	assert_null(strchr(f->advice, '{'));
}

#define Q(x, at, by, what, q, nr, where)                                                           \
	PUT(&(x)->b, at, by, note_##what, .object = (q), .n = (nr), .site = (x)->site[where])

/* A machine that does all as it should, with a look that another thread overtook. */
static void right_use_is_not_found(void **state)
{
	(void)state;
	struct scene x;
	open_scene(&x);
	PUT(&x.b, 5, 2, note_begin, .actor = x.machine);
	for (uint64_t t = 10; t < 5000; t += 500) {
		Q(&x, t, 2, wait_empty, x.queue, 1, 1);
		Q(&x, t + 200, 1, enqueue, x.queue, 1, 2);
		Q(&x, t + 210, 2, dequeue, x.queue, 1, 3);
		Q(&x, t + 215, 2, assert, x.queue, 0, 4);
	}
	Q(&x, 6000, 1, enqueue, x.queue, 1, 2);
	Q(&x, 6050, 2, wait_empty, x.queue, 1, 1); /* looked before 6000: in flight */
	Q(&x, 6051, 2, dequeue, x.queue, 1, 3);
	Q(&x, 6100, 1, enqueue, x.bounded, 4, 5);
	Q(&x, 6300, 1, wait_full, x.bounded, 1, 6);
	Q(&x, 6400, 2, dequeue, x.bounded, 1, 7);
	Q(&x, 6401, 1, enqueue, x.bounded, 1, 5);
	Q(&x, 6450, 2, wait_empty, x.queue, 1, 1); /* for either of two */
	Q(&x, 6451, 2, wait_empty, x.other, 1, 8);
	Q(&x, 6500, 1, enqueue, x.queue, 1, 2);
	Q(&x, 6501, 2, dequeue, x.queue, 1, 3);
	PUT(&x.b, 6600, 2, note_identify, .connection = 7);
	Q(&x, 6610, 2, enqueue, x.other, 1, 9);
	PUT(&x.b, 6620, 2, note_identify, .connection = 8);
	Q(&x, 6630, 1, dequeue, x.other, LONGPOLE_ALL, 10);
	PUT(&x.b, 6700, 2, note_end, .actor = x.machine);
	analyse_scene(&x, 7000);
	assert_int_equal(nr_findings(&x), 0);
	close_scene(&x);
}

static void every_misuse_of_a_queue(void **state)
{
	(void)state;
	struct scene x;
	open_scene(&x);
	Q(&x, 10, 2, dequeue, x.queue, 2, 1);
	Q(&x, 11, 2, dequeue, x.queue, 2, 1);
	Q(&x, 12, 2, peek, x.queue, 1, 2);
	Q(&x, 20, 1, enqueue, x.queue, 3, 3);
	Q(&x, 400, 2, wait_empty, x.queue, 2, 4); /* 3 have been there for long */
	Q(&x, 401, 2, dequeue, x.queue, 2, 5);
	Q(&x, 700, 1, wait_full, x.bounded, 1, 6); /* nothing in it */
	Q(&x, 701, 1, enqueue, x.bounded, 4, 7);
	Q(&x, 702, 1, enqueue, x.bounded, 1, 7); /* full */
	Q(&x, 1000, 2, dequeue, x.queue, 1, 5);
	Q(&x, 1010, 2, wait_empty, x.queue, 1, 8);
	Q(&x, 1020, 2, wait_empty, x.queue, 1, 8); /* twice */
	Q(&x, 1030, 1, enqueue, x.queue, 1, 3);
	Q(&x, 1500, 2, wait_empty, x.queue, 1, 8); /* it was there */
	Q(&x, 1510, 2, enqueue, x.other, 1, 9);    /* and never took it */
	Q(&x, 1600, 1, assert, x.queue, 5, 10);
	Q(&x, 1700, 1, wait_empty, x.queue, 9, 11); /* gave up */
	Q(&x, 1710, 1, enqueue, x.other, 1, 9);
	analyse_scene(&x, 2000);
	expect(&x, MODEL_CHECK_take_empty, 2, 10, "f1",
		"2 taken from queue 'frames', which held 0");
	expect(&x, MODEL_CHECK_peek_empty, 1, 12, "f2",
		"1 looked at in queue 'frames', which held 0");
	expect(&x, MODEL_CHECK_wait_has_units, 1, 400, "f4",
		"waited for 2 in queue 'frames', which held 3");
	expect(&x, MODEL_CHECK_wait_has_space, 1, 700, "f6",
		"waited for space for 1 in queue 'slots', which held only 0");
	expect(&x, MODEL_CHECK_put_full, 1, 702, "f7",
		"1 put into queue 'slots', which held 4 and is full");
	expect(&x, MODEL_CHECK_wait_twice, 1, 1020, "f8",
		"waited for queue 'frames' while it already did");
	expect(&x, MODEL_CHECK_wait_again_satisfied, 1, 1500, "f8",
		"waited for queue 'frames' again, although what it had waited for was there");
	expect(&x, MODEL_CHECK_wait_not_taken, 1, 1510, "f8",
		"waited for queue 'frames', got it, and went on without taking it");
	expect(&x, MODEL_CHECK_assert_failed, 1, 1600, "f10",
		"queue 'frames' was claimed to hold 5, and held 1");
	expect(&x, MODEL_CHECK_wait_gave_up, 1, 1710, "f11",
		"waited for queue 'frames' and went on, although what it waited for had not come");
	assert_int_equal(nr_findings(&x), 10);
	assert_int_equal(finding(&x, MODEL_CHECK_take_empty)->of, 2);
	assert_int_equal(finding(&x, MODEL_CHECK_wait_twice)->of, 3);
	assert_string_equal(finding(&x, MODEL_CHECK_take_empty)->queue, "queue 'frames'");
	assert_string_equal(finding(&x, MODEL_CHECK_take_empty)->actor, "prog/f0");
	/* errors first */
	size_t nr;
	uint64_t more;
	const struct model_finding *f = model_findings(x.m, &nr, &more);
	for (size_t i = 1; i < nr; i++)
		assert_true(f[i - 1].severity <= f[i].severity);
	assert_int_equal(more, 0);
	close_scene(&x);
}

/* One stream that speaks for two machines (a simulator) is in order: nothing is in flight, however
 * short its times are. */
static void one_stream_is_in_order(void **state)
{
	(void)state;
	struct scene x;
	open_scene(&x);
	PUT(&x.b, 10, 2, note_act, .actor = x.machine);
	Q(&x, 11, 2, enqueue, x.queue, 1, 1);
	PUT(&x.b, 12, 2, note_act, .actor = x.second);
	Q(&x, 12, 2, wait_empty, x.queue, 1, 2); /* it is there */
	Q(&x, 14, 2, dequeue, x.queue, 1, 3);
	Q(&x, 15, 2, wait_empty, x.other, 1, 4);
	PUT(&x.b, 16, 2, note_act, .actor = x.machine);
	Q(&x, 16, 2, enqueue, x.other, 1, 5);
	PUT(&x.b, 17, 2, note_act, .actor = x.second);
	Q(&x, 17, 2, wait_empty, x.other, 1, 6); /* again, though it has come */
	Q(&x, 18, 2, dequeue, x.other, 1, 7);
	analyse_scene(&x, 100);
	expect(&x, MODEL_CHECK_wait_has_units, 1, 12, "f2",
		"waited for 1 in queue 'frames', which held 1");
	expect(&x, MODEL_CHECK_wait_again_satisfied, 1, 17, "f6",
		"waited for queue 'packets' again, although what it had waited for was there");
	assert_int_equal(nr_findings(&x), 2);
	close_scene(&x);
}

static void every_misuse_of_a_machine(void **state)
{
	(void)state;
	struct scene x;
	open_scene(&x);
	Q(&x, 5, 2, enqueue, x.other, 1, 3);
	PUT(&x.b, 10, 2, note_end, .actor = x.machine); /* none runs */
	PUT(&x.b, 20, 2, note_begin, .actor = x.machine);
	PUT(&x.b, 30, 2, note_begin, .actor = x.second);
	PUT(&x.b, 40, 2, note_end, .actor = x.machine); /* the other one runs */
	PUT(&x.b, 50, 2, note_end, .actor = x.second);
	PUT(&x.b, 60, 2, note_state, .state = x.state, .flags = LONGPOLE_SUSPECT);
	PUT(&x.b, 61, 2, note_state, .state = x.state, .flags = LONGPOLE_SUSPECT);
	PUT(&x.b, 70, 2, note_identify, .connection = 3);
	PUT(&x.b, 71, 2, note_identify, .connection = 4);
	Q(&x, 80, 2, wait_empty, x.queue, 1, 4);
	PUT(&x.b, 90, 2, note_identify, .connection = 5);
	Q(&x, 95, 1, enqueue, x.queue, 5, 6);
	Q(&x, 100, 2, dequeue, x.queue, 1, 5);
	PUT(&x.b, 110, 2, note_end, .actor = x.machine);
	PUT(&x.b, 120, 2, note_begin, .actor = x.second);
	for (unsigned i = 0; i < 3; i++)
		Q(&x, 130 + i, 2, dequeue, x.queue, 1, 7);
	PUT(&x.b, 140, 2, note_end, .actor = x.second);
	analyse_scene(&x, 200);
	expect(&x, MODEL_CHECK_end_without_begin, 1, 10, "f3",
		"'encoder' was ended, but no machine runs here");
	expect(&x, MODEL_CHECK_end_other, 1, 40, "f3",
		"'encoder' was ended while 'camera' is the machine that runs");
	assert_true(finding(&x, MODEL_CHECK_end_other)->near_by);
	expect(&x, MODEL_CHECK_suspect_state, 2, 60, "f11",
		"the state 'drop frame' was reached, which is marked as suspect");
	expect(&x, MODEL_CHECK_connection_unused, 1, 71, "f11",
		"connection 3 was named, then 4, and nothing happened in between");
	expect(&x, MODEL_CHECK_connection_changed, 1, 90, "f4",
		"the connection changed from 4 to 5 while it waited for queue 'frames'");
	expect(&x, MODEL_CHECK_never_waits, 1, 130, "f7",
		"camera took units 3 times and never waited for any");
	assert_int_equal(nr_findings(&x), 6);
	assert_int_equal(model_health(x.m)->count[TRACE_DIAG_note_misnested], 2);
	close_scene(&x);
}

static void begins_without_end(void **state)
{
	(void)state;
	struct scene x;
	open_scene(&x);
	for (unsigned i = 0; i < 40; i++)
		PUT(&x.b, 10 + i, 2, note_begin, .actor = x.machine);
	analyse_scene(&x, 200);
	assert_int_equal(finding(&x, MODEL_CHECK_begin_too_deep)->count, 40 - 32);
	close_scene(&x);
}

/* Distinct findings beyond the limit are counted, and memory stays bounded. */
static void many_findings(void **state)
{
	(void)state;
	struct scene x;
	size_t nr;
	uint64_t more;
	open_scene(&x);
	for (unsigned i = 0; i < 1500; i++) {
		char name[16];
		snprintf(name, sizeof name, "q%u", i);
		uint32_t q = queue_def(&x.b, name, 0);
		Q(&x, 10 + i, 2, dequeue, q, 1, 1);
		Q(&x, 10 + i, 2, dequeue, q, 1, 1);
	}
	analyse_scene(&x, 2000);
	const struct model_finding *f = model_findings(x.m, &nr, &more);
	assert_int_equal(nr, MODEL_FINDINGS_MAX);
	assert_int_equal(more, 500);
	for (size_t i = 0; i < nr; i++)
		assert_true(f[i].count == 2 && f[i].check == MODEL_CHECK_take_empty);
	close_scene(&x);
}

static uint64_t had_ns(const struct scene *x, const char *waiting, const char *had)
{
	size_t nr;
	uint64_t sum = 0;
	const struct model_processor_wait *w = model_processor_waits(x->m, &nr);
	for (size_t i = 0; i < nr; i++) {
		const char *who =
			w[i].had == MODEL_OTHERS ? "others" : model_actor(x->m, w[i].had)->name;
		if (!strcmp(model_actor(x->m, w[i].waiting)->name, waiting) && !strcmp(who, had))
			sum += w[i].wait_ns;
	}
	return sum;
}

/* Main is preempted at 100 on processor 0 and goes on there at 1000; f0 ran there from 150 to 600,
 * somebody else until 650, f0 again until 990. */
static void who_had_the_processor(void **state)
{
	(void)state;
	struct scene x;
	open_scene(&x);
	PUT(&x.b, 5, 1, cpu_in, .processor = 0);
	PUT(&x.b, 100, 1, cpu_out, .processor = 0, .preempted = 1);
	PUT(&x.b, 150, 2, cpu_in, .processor = 0);
	PUT(&x.b, 600, 2, cpu_out, .processor = 0, .preempted = 1);
	PUT(&x.b, 650, 2, cpu_in, .processor = 0);
	PUT(&x.b, 990, 2, cpu_out, .processor = 0, .preempted = 1);
	PUT(&x.b, 1000, 1, cpu_in, .processor = 0);
	PUT(&x.b, 1050, 1, cpu_out, .processor = 0, .preempted = 1);
	PUT(&x.b, 1060, 2, cpu_in, .processor = 1); /* elsewhere: nobody of ours was there */
	PUT(&x.b, 1070, 1, cpu_in, .processor = 1); /* f0 must have left it */
	analyse_scene(&x, 2000);
	near_at((double)had_ns(&x, "prog", "prog/f0"), (450 + 340 + 10) * 1000, 0, __FILE__,
		__LINE__);
	near_at((double)had_ns(&x, "prog", "others"), (50 + 50 + 10 + 10) * 1000, 0, __FILE__,
		__LINE__);
	near_at((double)had_ns(&x, "prog/f0", "others"), (50 + 70) * 1000, 0, __FILE__, __LINE__);
	/* the law: together they are what the graph calls waiting for a processor */
	const struct graph_state_totals *t;
	size_t nr, nr_waits;
	uint64_t ready = 0, charged = 0;
	assert_int_equal(graph_totals(model_graph(x.m), &t, &nr, NULL), BASE_OK);
	for (size_t i = 0; i < nr; i++)
		if (model_state(x.m, t[i].state)->kind == MODEL_STATE_runnable)
			ready += t[i].total_ns;
	const struct model_processor_wait *w = model_processor_waits(x.m, &nr_waits);
	for (size_t i = 0; i < nr_waits; i++)
		charged += w[i].wait_ns;
	assert_int_equal(ready, charged);
	close_scene(&x);
}

/* Thread f0 leaves the processor inside no recorded call; main runs each time before it comes back.
 */
static void who_ran_before(void **state)
{
	(void)state;
	struct scene x;
	uint64_t nr, all;
	open_scene(&x);
	PUT(&x.b, 5, 1, cpu_in, .processor = 1);
	for (uint64_t t = 100; t < 1000; t += 100) {
		PUT(&x.b, t, 2, cpu_in, .processor = 0);
		PUT(&x.b, t + 20, 2, cpu_out, .processor = 0, .preempted = 0);
	}
	PUT(&x.b, 1000, 2, cpu_in, .processor = 0);
	analyse_scene(&x, 2000);
	const struct graph_state_totals *t;
	size_t nr_totals;
	bool found = false;
	assert_int_equal(graph_totals(model_graph(x.m), &t, &nr_totals, NULL), BASE_OK);
	for (size_t i = 0; i < nr_totals; i++) {
		if (model_state(x.m, t[i].state)->kind != MODEL_STATE_blocked)
			continue;
		uint32_t who = model_ran_before(x.m, t[i].actor, t[i].state, &nr, &all);
		assert_string_equal(model_actor(x.m, who)->name, "prog");
		assert_true(nr == 9 && all == 9);
		found = true;
	}
	assert_true(found);
	close_scene(&x);
}

/* While a machine acts for a thread, the thread itself does nothing. */
static void time_of_machines(void **state)
{
	(void)state;
	struct scene x;
	open_scene(&x);
	PUT(&x.b, 100, 2, note_begin, .actor = x.machine);
	PUT(&x.b, 700, 2, note_end, .actor = x.machine);
	PUT(&x.b, 800, 2, note_begin, .actor = x.machine);
	PUT(&x.b, 900, 2, thread_end);
	analyse_scene(&x, 1000);
	const struct graph_state_totals *t;
	size_t nr;
	uint64_t away = 0;
	assert_int_equal(graph_totals(model_graph(x.m), &t, &nr, NULL), BASE_OK);
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(model_actor(x.m, t[i].actor)->name, "prog/f0"))
			away += model_away_ns(x.m, t[i].actor, t[i].state);
	assert_int_equal(away, (600 + 100) * 1000);
	close_scene(&x);
}

/* Whatever allocation fails, the run says so or goes on; nothing leaks or crashes. */
static void out_of_memory(void **state)
{
	(void)state;
	struct scene x;
	bool through = false;
	open_scene(&x);
	PUT(&x.b, 3, 2, cpu_in, .processor = 0);
	PUT(&x.b, 5, 2, note_begin, .actor = x.machine);
	Q(&x, 10, 2, dequeue, x.queue, 2, 1);
	Q(&x, 12, 2, wait_empty, x.queue, 1, 2);
	PUT(&x.b, 13, 2, note_state, .state = x.state, .flags = LONGPOLE_SUSPECT);
	PUT(&x.b, 14, 2, cpu_out, .processor = 0, .preempted = 1);
	PUT(&x.b, 16, 2, cpu_in, .processor = 0);
	PUT(&x.b, 20, 2, note_end, .actor = x.second);
	end(&x.b, 30);
	for (uint64_t n = 1; n < 3000 && !through; n++) {
		x.m = NULL;
		assert_int_equal(trace_reader_rewind(x.b.reader, &x.b.err), BASE_OK);
		enum base_status s = WITHOUT_NTH(n, model_run(x.b.reader, NULL, &x.m, &x.b.err));
		through = s == BASE_OK && nr_findings(&x) == 4;
		if (s == BASE_OK)
			model_free(x.m);
	}
	assert_true(through);
	finish(&x.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_use_is_not_found),
		cmocka_unit_test(every_misuse_of_a_queue),
		cmocka_unit_test(one_stream_is_in_order),
		cmocka_unit_test(every_misuse_of_a_machine),
		cmocka_unit_test(begins_without_end),
		cmocka_unit_test(many_findings),
		cmocka_unit_test(who_had_the_processor),
		cmocka_unit_test(who_ran_before),
		cmocka_unit_test(time_of_machines),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
