/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_live.c - the path of a run without an end: memory stays what it was, the answers too,
 * whatever has come and gone; records that come late are put in order.
 */
#include "live/live.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A server: its main thread (stream 1) starts a thread, waits for its end, and so on. Each thread
 * works 90 us of 100. A second process (stream 2) does something of its own every 50 us.
 */
enum { ROUND_NS = 100000, WORK_NS = 90000 };

struct run {
	struct live *live;
	uint64_t time_ns;
	uint32_t next_string, next_stream;
	uint64_t nr_records, nr_threads;
};
struct seen {
	uint64_t nr_windows, nr_fresh, nr_rows_max;
	uint64_t entries_max[2]; /* first and second half */
	uint64_t half;
	double share_min, explained_min;
	const struct run *run;
	struct live_window last;
};

static void must(enum base_status s)
{
	assert_int_equal(s, BASE_OK);
}

static enum base_status put(struct run *r, struct trace_record rec, uint32_t stream)
{
	rec.stream = stream;
	rec.time_ns = stream ? r->time_ns : 0;
	r->nr_records += stream != 0;
	return live_put(r->live, &rec, NULL);
}

static enum base_status put_text(struct run *r, uint32_t id, const char *text)
{
	return put(r,
		(struct trace_record){.kind = TRACE_string,
			.u.string = {.string = id,
				.text = {.bytes = text, .length = (uint32_t)strlen(text)}}},
		0);
}

static enum base_status put_process(struct run *r, uint32_t id, uint64_t pid, uint32_t name)
{
	return put(r,
		(struct trace_record){.kind = TRACE_process,
			.u.process = {.process = id, .pid = pid, .name = name}},
		0);
}

static enum base_status put_stream(struct run *r, uint32_t id, uint32_t process, uint64_t tid)
{
	char name[32];
	uint32_t text = ++r->next_string;
	snprintf(name, sizeof name, "worker-%u", id); /* each has a name of its own, too */
	enum base_status s = put_text(r, text, name);
	return s ? s
		 : put(r,
			   (struct trace_record){.kind = TRACE_stream,
				   .u.stream = {.stream = id,
					   .process = process,
					   .tid = tid,
					   .name = text}},
			   0);
}

static enum base_status begin(struct run *r)
{
	r->next_string = 2;
	r->next_stream = 2;
	enum base_status s = put_text(r, 1, "server");
	if (!s)
		s = put_text(r, 2, "other");
	if (!s)
		s = put_process(r, 1, 100, 1);
	if (!s)
		s = put_process(r, 2, 200, 2);
	if (!s)
		s = put_stream(r, 1, 1, 100);
	if (!s)
		s = put_stream(r, 2, 2, 200);
	if (!s)
		s = put(r, (struct trace_record){.kind = TRACE_process_begin}, 1);
	return s ? s : put(r, (struct trace_record){.kind = TRACE_process_begin}, 2);
}

/* A thread of 100 us, and `nr_more` pairs of records of it. */
static enum base_status one_round(struct run *r, int nr_more)
{
	uint64_t token = ++r->nr_threads, start = r->time_ns;
	uint32_t id = ++r->next_stream;
	enum base_status s = put_stream(r, id, 1, 1000 + token);
	if (!s)
		s = put(r,
			(struct trace_record){
				.kind = TRACE_thread_create, .u.thread_create = {.token = token}},
			1);
	if (!s)
		s = put(r,
			(struct trace_record){
				.kind = TRACE_join_wait, .u.join_wait = {.handle = token}},
			1);
	r->time_ns = start + 1000;
	if (!s)
		s = put(r,
			(struct trace_record){.kind = TRACE_thread_begin,
				.u.thread_begin = {.token = token, .handle = token}},
			id);
	for (int i = 0; i < nr_more && !s; i++) {
		r->time_ns =
			start + 1000 + (uint64_t)(i + 1) * (WORK_NS - 2000) / (uint64_t)nr_more;
		s = put(r, (struct trace_record){.kind = TRACE_sleep_begin}, 2);
		if (!s)
			s = put(r, (struct trace_record){.kind = TRACE_sleep_end}, 2);
	}
	r->time_ns = start + WORK_NS;
	if (!s)
		s = put(r, (struct trace_record){.kind = TRACE_thread_end}, id);
	r->time_ns = start + WORK_NS + 1000;
	if (!s)
		s = put(r,
			(struct trace_record){
				.kind = TRACE_join_done, .u.join_done = {.handle = token}},
			1);
	r->time_ns = start + ROUND_NS;
	return s;
}

static enum base_status see(void *ctx, const struct live_window *w, struct base_err *err)
{
	struct seen *seen = ctx;
	double work_ns = 0;
	(void)err;
	for (size_t i = 0; i < w->nr_states; i++)
		if (w->state[i].kind == MODEL_STATE_run)
			work_ns += w->state[i].path_ns;
	double share = w->path_ns > 0 ? work_ns / w->path_ns : 0;
	double explained = w->path_ns > 0 ? 1 - w->unexplained_ns / w->path_ns : 0;
	seen->nr_windows++;
	seen->nr_fresh += w->fresh;
	if (w->nr_states > seen->nr_rows_max)
		seen->nr_rows_max = w->nr_states;
	if (share < seen->share_min)
		seen->share_min = share;
	if (explained < seen->explained_min)
		seen->explained_min = explained;
	if (seen->run && seen->run->live) {
		uint64_t entries = live_health(seen->run->live).nr_entries;
		uint64_t *max = &seen->entries_max[w->number >= seen->half];
		if (entries > *max)
			*max = entries;
	}
	assert_true(w->nr_paths == 1);
	assert_true(w->path_ns == (double)(w->to_ns - w->from_ns));
	seen->last = *w;
	return BASE_OK;
}

static uint64_t number_of(const char *variable, uint64_t usual)
{
	const char *text = getenv(variable);
	return text ? strtoull(text, NULL, 10) : usual;
}

/* LIVE_THREADS=100000 LIVE_MORE=48: ten million records. */
static void memory_is_bounded(void **unused)
{
	uint64_t nr_threads = number_of("LIVE_THREADS", 20000);
	int nr_more = (int)number_of("LIVE_MORE", 2);
	struct run r = {0};
	struct seen seen = {.share_min = 1, .explained_min = 1, .run = &r};
	struct live_options o = {.interval_ns = 10000000,
		.hindsight = 1,
		.max_entries = 5000,
		.answer = see,
		.ctx = &seen};
	(void)unused;
	seen.half = nr_threads * ROUND_NS / o.interval_ns / 2;
	must(live_new(&o, &r.live, NULL));
	must(begin(&r));
	for (uint64_t i = 0; i < nr_threads; i++)
		must(one_round(&r, nr_more));
	must(live_finish(r.live, NULL));
	struct live_health h = live_health(r.live);
	assert_int_equal(h.nr_records, r.nr_records);
	assert_int_equal(seen.nr_windows, nr_threads * ROUND_NS / o.interval_ns);
	assert_true(h.nr_models >= nr_threads / 5000);
	assert_in_range(h.nr_models - seen.nr_fresh, 0, 1); /* one may take over at the end */
	/* As much in the second half as in the first; one name, one row. */
	assert_true(seen.entries_max[1] <= seen.entries_max[0] + seen.entries_max[0] / 10);
	assert_true(seen.entries_max[0] < 30000);
	assert_true(seen.nr_rows_max < 20);
	/* What a model is no longer told of, it does not need: the path is the threads' work. */
	assert_true(seen.share_min > 0.9);
	assert_true(seen.explained_min > 0.999);
	if (getenv("LIVE_THREADS"))
		printf("%llu records, %llu models, %llu and %llu entries, %llu bytes at most\n",
			(unsigned long long)h.nr_records, (unsigned long long)h.nr_models,
			(unsigned long long)seen.entries_max[0],
			(unsigned long long)seen.entries_max[1],
			(unsigned long long)h.memory_peak_bytes);
	live_free(r.live);
}

/* ---- records that come late ------------------------------------------------------------------ */

struct sums {
	double path_ns[MODEL_STATE_NR];
	uint64_t nr_windows, nr_late;
};

static enum base_status add_sums(void *ctx, const struct live_window *w, struct base_err *err)
{
	struct sums *sums = ctx;
	(void)err;
	sums->nr_windows++;
	sums->nr_late += w->nr_late;
	for (size_t i = 0; i < w->nr_states; i++)
		sums->path_ns[w->state[i].kind] += w->state[i].path_ns;
	return BASE_OK;
}

enum { KEPT_MAX = 4096, LATE_NS = 2000000 };
struct kept { /* what one_round() put */
	struct trace_record r;
	uint64_t come_ns; /* when it comes */
};

static int by_coming(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;
	return a->come_ns < b->come_ns ? -1 : a->come_ns > b->come_ns;
}

/* Streams are late by up to LATE_NS, each by its own: nothing changes. */
static void late_is_as_in_time(void **unused)
{
	static struct kept kept[KEPT_MAX];
	(void)unused;
	struct sums sums[2] = {{{0}, 0, 0}, {{0}, 0, 0}};
	for (int late = 0; late < 2; late++) {
		struct live_options o = {.interval_ns = 1000000,
			.hindsight = 2,
			.late_ns = late ? LATE_NS : 0,
			.answer = add_sums,
			.ctx = &sums[late]};
		struct run r = {0};
		must(live_new(&o, &r.live, NULL));
		must(begin(&r));
		size_t nr = 0;
		for (uint32_t i = 0; i < 300; i++) { /* a hand-off every 20 us, by turns */
			uint32_t stream = 1 + i % 2;
			uint64_t t = 1000 + i * 20000ull;
			kept[nr].r = (struct trace_record){.kind = TRACE_token_give,
				.stream = stream,
				.time_ns = t,
				.u.token_give = {.object = stream, .n = 1}};
			kept[nr++].come_ns = t + (late && stream == 2 ? LATE_NS - 1 : 0);
			kept[nr].r = (struct trace_record){.kind = TRACE_token_wait,
				.stream = stream,
				.time_ns = t + 10,
				.u.token_wait = {.object = 3 - stream, .n = 1}};
			kept[nr++].come_ns = t + 10 + (late && stream == 2 ? LATE_NS - 1 : 0);
			kept[nr].r = (struct trace_record){.kind = TRACE_token_take,
				.stream = 3 - stream,
				.time_ns = t + 100,
				.u.token_take = {.object = stream, .n = 1}};
			kept[nr++].come_ns = t + 100 + (late && stream == 1 ? LATE_NS - 1 : 0);
		}
		for (uint32_t id = 1; id <= 2; id++)
			must(put(&r,
				(struct trace_record){.kind = TRACE_object,
					.u.object = {.object = id, .type = TRACE_OBJECT_semaphore}},
				0));
		qsort(kept, nr, sizeof *kept, by_coming);
		for (size_t i = 0; i < nr; i++) {
			must(live_put(r.live, &kept[i].r, NULL));
			if (late)
				must(live_advance(r.live, kept[i].come_ns, NULL));
		}
		must(live_finish(r.live, NULL));
		live_free(r.live);
	}
	assert_int_equal(sums[1].nr_late, 0);
	assert_int_equal(sums[0].nr_windows, sums[1].nr_windows);
	assert_memory_equal(sums[0].path_ns, sums[1].path_ns, sizeof sums[0].path_ns);
	assert_true(sums[0].path_ns[MODEL_STATE_run] > 4e6);
}

/* ---- whose paths ----------------------------------------------------------------------------- */

static enum base_status count_paths(void *ctx, const struct live_window *w, struct base_err *err)
{
	uint32_t *max = ctx;
	(void)err;
	if (w->nr_paths + w->nr_asleep > *max)
		*max = w->nr_paths + w->nr_asleep;
	return BASE_OK;
}

/* The server is in /system.slice/server.service, the other one nowhere. */
static void only_those_asked_for(void **unused)
{
	static const struct {
		const char *process, *cgroup;
		uint32_t nr;
	} row[] = {{NULL, NULL, 2}, {"server", NULL, 1}, {"s*r", NULL, 1}, {"200", NULL, 1},
		{"20", NULL, 0}, {NULL, "/system.slice", 1}, {NULL, "/system.slice/", 1},
		{NULL, "/system", 0}, {NULL, "/system.slice/server.service", 1}, {NULL, "/", 2},
		{"other", "/system.slice", 0}};
	(void)unused;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		uint32_t nr = 0;
		struct run r = {0};
		struct live_options o = {.interval_ns = 1000000,
			.whom = LIVE_WHOM_processes,
			.process = row[i].process,
			.cgroup = row[i].cgroup,
			.answer = count_paths,
			.ctx = &nr};
		must(live_new(&o, &r.live, NULL));
		must(begin(&r));
		must(put_text(&r, 90000, "/system.slice/server.service"));
		must(put(&r,
			(struct trace_record){
				.kind = TRACE_group, .u.group = {.process = 1, .cgroup = 90000}},
			0));
		for (int k = 0; k < 50; k++)
			must(one_round(&r, 2));
		must(live_finish(r.live, NULL));
		live_free(r.live);
		assert_int_equal(nr, row[i].nr);
	}
}

enum { CHILD_NS = 89000, CHILDREN = 10 }; /* a window has so many of them */

/* make (stream 1) forks one child after the other, and waits for each. */
static void one_child(struct run *r, uint64_t nr)
{
	uint64_t start = r->time_ns, pid = 1000 + nr;
	uint32_t id = ++r->next_stream;
	must(put_process(r, id, pid, 2));
	must(put_stream(r, id, id, pid));
	must(put(r,
		(struct trace_record){.kind = TRACE_process_fork, .u.process_fork = {.token = pid}},
		1));
	must(put(r, (struct trace_record){.kind = TRACE_child_wait}, 1));
	r->time_ns = start + 1000;
	must(put(r,
		(struct trace_record){
			.kind = TRACE_process_begin, .u.process_begin = {.token = pid}},
		id));
	r->time_ns += CHILD_NS;
	must(put(r, (struct trace_record){.kind = TRACE_process_end}, id));
	r->time_ns += 1000;
	must(put(r,
		(struct trace_record){.kind = TRACE_child_waited, .u.child_waited = {.pid = pid}},
		1));
	r->time_ns = start + ROUND_NS;
}

/* The children's lives, and make's, which went through all of them. */
static enum base_status are_lives(void *ctx, const struct live_window *w, struct base_err *err)
{
	unsigned *nr_windows = ctx;
	double others_ns = 0, make_ns = 0;
	(void)err;
	for (size_t i = 0; i < w->nr_processes; i++)
		if (!strncmp(w->process[i].process, "other", 5))
			others_ns += w->process[i].path_ns;
		else
			make_ns += w->process[i].path_ns;
	if (!w->number || w->to_the_end)
		return BASE_OK;
	assert_int_equal(w->nr_paths, CHILDREN + 1);
	assert_true(w->path_ns == CHILDREN * (ROUND_NS + CHILD_NS));
	assert_true(others_ns >= 2 * CHILDREN * CHILD_NS);
	assert_true(make_ns + others_ns == w->path_ns);
	++*nr_windows;
	return BASE_OK;
}

/* A child's path begins with all that its parent has done: that is not its own. */
static void children_count_their_lives(void **unused)
{
	unsigned nr_windows = 0;
	struct run r = {0};
	struct live_options o = {.interval_ns = CHILDREN * ROUND_NS,
		.hindsight = 1,
		.whom = LIVE_WHOM_processes,
		.process = "*",
		.answer = are_lives,
		.ctx = &nr_windows};
	(void)unused;
	must(live_new(&o, &r.live, NULL));
	r.next_stream = 2;
	must(put_text(&r, 1, "make"));
	must(put_text(&r, 2, "other"));
	r.next_string = 2;
	must(put_process(&r, 1, 100, 1));
	must(put_stream(&r, 1, 1, 100));
	must(put(&r, (struct trace_record){.kind = TRACE_process_begin}, 1));
	for (uint64_t i = 0; i < 20 * CHILDREN; i++)
		one_child(&r, i);
	must(live_finish(r.live, NULL));
	live_free(r.live);
	assert_true(nr_windows >= 17);
}

static enum base_status short_run(struct base_err *err)
{
	struct seen seen = {.share_min = 1, .explained_min = 1};
	struct run r = {0};
	struct live_options o = {.interval_ns = 1000000,
		.hindsight = 1,
		.max_entries = 60,
		.late_ns = 1000,
		.process = "s*",
		.whom = LIVE_WHOM_program,
		.answer = see,
		.ctx = &seen};
	enum base_status s = live_new(&o, &r.live, err);
	if (s)
		return s;
	s = begin(&r);
	for (int i = 0; i < 60 && !s; i++)
		s = one_round(&r, 2);
	if (!s)
		s = live_finish(r.live, err);
	live_free(r.live);
	return s;
}

static void every_allocation_may_fail(void **unused)
{
	struct base_err err = {0};
	(void)unused;
	SWEEP_ALLOCATIONS(1, short_run(&err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(late_is_as_in_time),
		cmocka_unit_test(only_those_asked_for),
		cmocka_unit_test(children_count_their_lives),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
