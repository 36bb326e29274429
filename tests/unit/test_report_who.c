/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_who.c - actors, coach and histograms: known answers from small traces. Times in us.
 */
#include "report_fixture.h"

#include "report/report.h"

static struct report_run run_of(struct bench *b)
{
	return (struct report_run){.reader = b->reader, .trace_path = "t.lpt"};
}

static const struct report_style style = {.utf8 = true, .columns = 100};

static double ns_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	assert_true(json_is_integer(v));
	return (double)json_integer_value(v);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	assert_non_null(s);
	return s;
}

static json_t *result_of(const json_t *envelope, const char *schema)
{
	assert_non_null(envelope);
	assert_string_equal(text_of(envelope, "schema"), schema);
	return json_object_get(envelope, "result");
}

/* ---- actors ---------------------------------------------------------------------------------- */

static struct report_actors *actors(struct bench *b, const struct report_actors_options *o)
{
	struct report_run run = run_of(b);
	struct report_actors *a = NULL;
	enum base_status s = report_actors_build(&run, o, &a, &b->err);
	if (s != BASE_OK)
		print_message("%s\n", b->err.cause[0]);
	assert_int_equal(s, BASE_OK);
	return a;
}

static const struct report_actor *named(const struct report_actors *a, const char *name)
{
	for (size_t i = 0; i < a->nr_actors - a->nr_empty; i++)
		if (!strcmp(a->actor[i].name, name))
			return &a->actor[i];
	return NULL;
}

/* Each worker holds m 4 x 100 us and waits for the rest; the path is theirs. */
static void actors_taking_turns(void **state)
{
	(void)state;
	struct bench b;
	struct report_actors_options o = {0};
	taking_turns(&b);
	struct report_actors *a = actors(&b, &o);
	const struct report_actor *one = named(a, "prog/work #1"), *two = named(a, "prog/work #2");
	const struct report_actor *prog = named(a, "prog");
	assert_true(one && two && prog);
	assert_near((double)one->active_ns, 402e3, 0);
	assert_near((double)two->active_ns, 401e3, 0);
	assert_near((double)one->waiting_ns, 3 * 102e3, 0);
	assert_near((double)two->waiting_ns, 101e3 + 3 * 102e3, 0);
	assert_near((double)prog->waiting_ns, 808e3, 0);
	assert_int_equal(one->ready_ns, 0);
	double path_ns = 0;
	for (size_t i = 0; i < a->nr_actors; i++) {
		path_ns += a->actor[i].path_ns;
		assert_int_equal(
			a->actor[i].active_ns + a->actor[i].waiting_ns + a->actor[i].ready_ns,
			a->actor[i].total_ns);
	}
	assert_near(path_ns, a->elapsed_ns, 1e-3);
	assert_string_equal(one->state[0].name, "holding mutex m");
	assert_int_equal(one->state[0].total_ns, 400000);
	assert_int_equal(one->state[0].visits, 4);
	assert_string_equal(one->state[0].function[0].name, "fill");
	assert_near(one->state[0].function[0].share, 0.75, 1e-9);
	report_actors_free(a);

	o.groups = true;
	o.pattern = "work";
	a = actors(&b, &o);
	assert_int_equal(a->nr_actors, 1);
	assert_int_equal(a->actor[0].nr_members, 2);
	assert_near((double)a->actor[0].active_ns, 803e3, 0);
	json_t *j = report_actors_json(a);
	json_t *row =
		json_array_get(json_object_get(result_of(j, "longpole/actors/1"), "actors"), 0);
	assert_near(ns_of(row, "active_ns"), 803e3, 0);
	assert_string_equal(text_of(row, "actor"), "prog/work");
	json_decref(j);
	struct base_str text = {0};
	report_actors_text(&text, a, &o, &style);
	assert_non_null(strstr(base_str_text(&text), "holding mutex m"));
	base_str_fini(&text);
	report_actors_free(a);

	struct report_run run = run_of(&b);
	o.pattern = "nobody";
	assert_int_equal(report_actors_build(&run, &o, &a, &b.err), BASE_ERR_NOTFOUND);
	finish(&b);
}

static void assert_fits(const struct base_str *text)
{
	for (const char *p = base_str_text(text); *p;) {
		size_t width = 0;
		for (; *p && *p != '\n'; p++)
			width += ((unsigned char)*p & 0xc0) != 0x80;
		assert_true(width <= style.columns);
		p += *p == '\n';
	}
}

/* Main and six threads take turns on one processor, a millisecond each; main waits for them all. */
static void one_processor_for_many(void **state)
{
	enum { THREADS = 6, TURNS = 3 };
	(void)state;
	struct bench b;
	struct report_actors_options o = {0};
	start(&b);
	uint32_t p = process(&b, "program-with-a-long-name"), from = site(&b, "main");
	uint32_t work = site(&b, "work_that_has_quite_a_long_name_as_well");
	begin_threads(&b, p, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++) {
		PUT(&b, 1, 1, thread_create, .token = 1 + i, .site = from);
		PUT(&b, 1, 2 + i, thread_begin, .token = 1 + i, .handle = 2000 + i, .site = work);
		PUT(&b, 1, 2 + i, cpu_out, .processor = 0, .preempted = 1);
	}
	PUT(&b, 1, 1, cpu_out, .processor = 0, .preempted = 1);
	uint64_t at = 1;
	for (unsigned i = 0; i < TURNS * THREADS; i++, at += 1000) {
		uint32_t by = 2 + i % THREADS;
		PUT(&b, at, by, cpu_in, .processor = 0);
		PUT(&b, at + 1000, by, cpu_out, .processor = 0, .preempted = 1);
	}
	PUT(&b, at, 1, cpu_in, .processor = 0);
	end(&b, at);
	struct report_actors *a = actors(&b, &o);
	const struct report_actor *prog = named(a, "program-with-a-long-name");
	assert_non_null(prog);
	assert_int_equal(prog->ready_ns, TURNS * THREADS * 1000000);
	assert_int_equal(prog->nr_had, THREADS);
	for (size_t i = 0; i < prog->nr_had; i++)
		assert_int_equal(prog->had[i].wait_ns, TURNS * 1000000);
	struct base_str text = {0};
	report_actors_text(&text, a, &o, &style);
	assert_non_null(strstr(base_str_text(&text), "ready while the processor ran"));
	assert_fits(&text);
	base_str_fini(&text);
	report_actors_free(a);
	finish(&b);
}

/* ---- coach ----------------------------------------------------------------------------------- */

static struct report_coach *coach(struct bench *b)
{
	struct report_run run = run_of(b);
	struct report_coach *c = NULL;
	enum base_status s = report_coach_build(&run, &c, &b->err);
	if (s != BASE_OK)
		print_message("%s\n", b->err.cause[0]);
	assert_int_equal(s, BASE_OK);
	return c;
}

/* Main and a thread; main sleeps from 100 to 900, the thread runs from 15 to `until`. */
static void sleeper(struct bench *b, uint64_t until)
{
	start(b);
	uint32_t p = process(b, "prog"), poll = site(b, "poll_flag"), from = site(b, "main");
	begin_threads(b, p, 2);
	PUT(b, 10, 1, thread_create, .token = 1, .site = from);
	PUT(b, 15, 2, thread_begin, .token = 1, .handle = 2000, .site = poll);
	PUT(b, 10000, 1, sleep_begin, .duration_ns = 80000000, .site = from);
	PUT(b, until, 2, thread_end);
	PUT(b, 90000, 1, sleep_end);
	end(b, 100000);
}

static void the_low_rate_test(void **state)
{
	(void)state;
	struct bench b;
	sleeper(&b, 89000);
	struct report_coach *c = coach(&b);
	assert_true(c->light);
	assert_near(c->light_share, 0.8, 1e-6);
	assert_true(c->nr >= 1);
	assert_string_equal(c->advice[0].check, "missing_wait");
	assert_string_equal(c->advice[0].severity, "warning");
	assert_string_equal(c->advice[0].actor, "prog/poll_flag");
	assert_near(c->advice[0].total_ns, (89000 - 15) * 1e3, 0);
	struct base_str text = {0};
	report_coach_text(&text, c, 0, &style);
	assert_non_null(strstr(base_str_text(&text), "longpole_wait_empty"));
	assert_null(strstr(base_str_text(&text), "lightly loaded run"));
	base_str_fini(&text);
	report_coach_free(c);
	finish(&b);

	sleeper(&b, 4000); /* so short that it is not worth a word */
	c = coach(&b);
	for (size_t i = 0; i < c->nr; i++)
		assert_string_not_equal(c->advice[i].actor, "prog/poll_flag");
	report_coach_free(c);
	finish(&b);
}

/* A thread blocks for 9 x 80 us outside every recorded call, on the path to main's join; main runs
 * meanwhile. Another blocks longer, but off the path. */
static void unexplained_waits_ranked(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t p = process(&b, "prog"), work = site(&b, "work"), idle = site(&b, "idle");
	uint32_t from = site(&b, "main");
	begin_threads(&b, p, 3);
	PUT(&b, 1, 1, thread_create, .token = 1, .site = from);
	PUT(&b, 2, 2, thread_begin, .token = 1, .handle = 2000, .site = work);
	PUT(&b, 2, 1, thread_create, .token = 2, .site = from);
	PUT(&b, 3, 3, thread_begin, .token = 2, .handle = 2001, .site = idle);
	PUT(&b, 4, 1, cpu_in, .processor = 1);
	PUT(&b, 4, 3, cpu_in, .processor = 2);
	PUT(&b, 5, 3, cpu_out, .processor = 2);
	PUT(&b, 6, 1, join_wait, .handle = 2000, .site = from);
	for (uint64_t t = 100; t < 1000; t += 100) {
		PUT(&b, t, 2, cpu_in, .processor = 0);
		PUT(&b, t + 20, 2, cpu_out, .processor = 0);
	}
	PUT(&b, 1000, 2, cpu_in, .processor = 0);
	PUT(&b, 1010, 2, thread_end);
	PUT(&b, 1012, 1, join_done, .handle = 2000);
	PUT(&b, 1015, 3, cpu_in, .processor = 2);
	PUT(&b, 1015, 3, thread_end);
	end(&b, 1020);
	struct report_coach *c = coach(&b);
	assert_int_equal(c->nr, 2);
	const struct report_advice *first = &c->advice[0], *second = &c->advice[1];
	assert_string_equal(first->check, "unexplained_wait");
	assert_string_equal(first->actor, "prog/work");
	assert_near(first->path_ns, 720e3, 0);
	assert_near(first->total_ns, 720e3, 0);
	assert_int_equal(first->count, 9);
	assert_non_null(strstr(first->what, "720 us in 9 waits"));
	assert_non_null(strstr(first->what, "prog ran (9 of 9 times)"));
	assert_non_null(strstr(first->todo, "longpole_enqueue(\"NAME\", instance, 1, 0) in prog"));
	assert_string_equal(second->actor, "prog/idle");
	assert_near(second->path_ns, 0, 0);
	assert_near(second->total_ns, 1010e3, 0);
	assert_near(c->unexplained_path_ns, 720e3, 0);
	json_t *j = report_coach_json(c);
	json_t *row =
		json_array_get(json_object_get(result_of(j, "longpole/coach/1"), "advice"), 0);
	assert_near(ns_of(row, "path_ns"), 720e3, 0);
	json_decref(j);
	report_coach_free(c);
	finish(&b);
}

static void nothing_to_say(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	struct report_coach *c = coach(&b);
	assert_int_equal(c->nr, 0);
	struct base_str text = {0};
	report_coach_text(&text, c, 0, &style);
	assert_true(!strncmp(base_str_text(&text), "Nothing to annotate", 19));
	base_str_fini(&text);
	report_coach_free(c);
	finish(&b);
}

/* ---- histograms ------------------------------------------------------------------------------ */

static const json_t *histogram_of(const json_t *queue, const char *key)
{
	return json_object_get(json_object_get(queue, "histograms"), key);
}

static uint64_t bucket_sum(const json_t *h, const char *count)
{
	const json_t *list = json_object_get(h, "buckets");
	uint64_t sum = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *bucket = json_array_get(list, i);
		sum += (uint64_t)json_integer_value(json_object_get(bucket, count));
	}
	return sum;
}

static void histograms_of_a_lock(void **state)
{
	(void)state;
	struct bench b;
	struct report_histograms *h = NULL;
	taking_turns(&b);
	struct report_run run = run_of(&b);
	assert_int_equal(report_histograms_build(&run, NULL, 1, &h, &b.err), BASE_OK);
	assert_int_equal(h->nr_rows, 1); /* threads' tokens come after it */
	assert_string_equal(h->queues->queue[0].name, "mutex m");
	json_t *j = report_histograms_json(h);
	json_t *result = result_of(j, "longpole/histograms/1");
	json_t *q = json_array_get(json_object_get(result, "queues"), 0);
	/* eight holds of 100 us, seven of them after a wait and a hand-off of 1 us */
	assert_int_equal(bucket_sum(histogram_of(q, "service"), "count_takes"), 8);
	assert_near(ns_of(histogram_of(q, "service"), "min_ns"), 100e3, 0);
	assert_near(ns_of(histogram_of(q, "service"), "max_ns"), 100e3, 0);
	assert_int_equal(bucket_sum(histogram_of(q, "latency"), "count_waits"), 7);
	assert_near(ns_of(histogram_of(q, "latency"), "p50_ns"), 1e3, 0);
	assert_int_equal(bucket_sum(histogram_of(q, "wait_data"), "count_waits"), 7);
	assert_int_equal(bucket_sum(histogram_of(q, "wait_space"), "count_waits"), 0);
	assert_near((double)bucket_sum(histogram_of(q, "occupancy"), "count_ns"),
		(double)(h->end_ns - h->start_ns) - 3e3, 0); /* from its first use on */
	json_decref(j);
	struct base_str text = {0};
	report_histograms_text(&text, h, &style);
	assert_non_null(strstr(base_str_text(&text), "held: from taking to releasing it"));
	assert_non_null(strstr(base_str_text(&text), "8 takes"));
	assert_fits(&text);
	base_str_fini(&text);
	report_histograms_free(h);
	h = NULL;
	assert_int_equal(
		report_histograms_build(&run, "nothing such", 1, &h, &b.err), BASE_ERR_NOTFOUND);
	finish(&b);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static enum base_status all_three(struct bench *b)
{
	struct report_run run = run_of(b);
	struct report_actors_options o = {0};
	struct report_histograms *h = NULL;
	struct report_actors *a = NULL;
	struct report_coach *c = NULL;
	enum base_status s = report_actors_build(&run, &o, &a, &b->err);
	if (s == BASE_OK)
		s = report_coach_build(&run, &c, &b->err);
	if (s == BASE_OK)
		s = report_histograms_build(&run, NULL, 0, &h, &b->err);
	report_actors_free(a);
	report_coach_free(c);
	report_histograms_free(h);
	return s;
}

/* Machines of one name are one row only where they serve the same connections. */
static void machines_of_one_name(void **state)
{
	(void)state;
	struct bench b;
	static const uint64_t serves[] = {7, 8, 8, 0};
	start(&b);
	uint32_t p = process(&b, "prog"), name = string(&b, "output"), other = string(&b, "card");
	stream(&b, p);
	for (uint32_t i = 1; i <= 4; i++)
		PUT(&b, 0, 0, actor, .actor = i, .name = i < 4 ? name : other, .instance = i);
	PUT(&b, 0, 1, process_begin, .token = 0);
	for (uint32_t i = 1; i <= 3; i++) {
		PUT(&b, 10 * i, 1, note_act, .actor = i);
		PUT(&b, 10 * i, 1, note_identify, .connection = serves[i - 1]);
	}
	for (uint64_t k = 0; k < 2; k++) {
		PUT(&b, 50 + k, 1, note_act, .actor = 4);
		PUT(&b, 50 + k, 1, note_identify, .connection = 7 + k);
	}
	PUT(&b, 60, 1, process_end, .status = 0);
	bench_read(&b);
	struct report_run run = run_of(&b);
	struct report_connections *c = NULL;
	assert_int_equal(report_connections_build(&run, &c, &b.err), BASE_OK);
	static const struct {
		const char *name;
		uint64_t nr_members, connection[2];
		size_t nr;
	} want[] = {{"output 1", 1, {7}, 1}, {"output", 2, {8}, 1}, {"card", 1, {7, 8}, 2}};
	size_t at = 0;
	for (size_t i = 0; i < c->nr_servers; i++) {
		const struct report_server *s = &c->server[i];
		if (!s->nr_connections)
			continue;
		assert_true(at < BASE_COUNT(want));
		assert_non_null(strstr(s->name, want[at].name));
		assert_int_equal(s->nr_members, want[at].nr_members);
		assert_int_equal(s->nr_connections, want[at].nr);
		assert_memory_equal(
			s->connection, want[at].connection, want[at].nr * sizeof *s->connection);
		at++;
	}
	assert_int_equal(at, BASE_COUNT(want));
	report_connections_free(c);
	finish(&b);
}

static void out_of_memory(void **state)
{
	(void)state;
	struct bench b;
	taking_turns(&b);
	SWEEP_ALL_ALLOCATIONS(100, all_three(&b));
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(actors_taking_turns),
		cmocka_unit_test(one_processor_for_many),
		cmocka_unit_test(the_low_rate_test),
		cmocka_unit_test(unexplained_waits_ranked),
		cmocka_unit_test(nothing_to_say),
		cmocka_unit_test(histograms_of_a_lock),
		cmocka_unit_test(machines_of_one_name),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
