/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_slack.c - the laws of slack on random programs, against a graph that is kept whole; the
 * machine by hand.
 */
#include "slack/slack.h"
#include "memory_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { LOCK_AT = 0x5000, BARRIER_AT = 0x6000, SHARED_AT = 0x10000, OWN_AT = 0x100000 };

/* ---- random programs
 * -------------------------------------------------------------------------------------- */

static void some_access(struct fixture *f, uint32_t t, uint64_t *seed)
{
	static const uint8_t size[] = {1, 4, 8, 8, 16, 64};
	uint32_t r = fixture_random(seed);
	uint64_t address = r % 3 ? OWN_AT + t * 0x10000u + (r >> 8) % 512 * 8
				 : SHARED_AT + (r >> 8) % 40 * 12;
	enum memory_item_kind kind = r % 17 == 0  ? MEMORY_ATOMIC
				     : r % 5 < 2 ? MEMORY_STORE
						 : MEMORY_LOAD;
	fixture_put(f, t,
		(struct memory_item){.kind = (uint8_t)kind,
			.address = address,
			.code = 0x400 + r % 64 * 4,
			.size_bytes = size[(r >> 20) % BASE_COUNT(size)],
			.instructions = (r >> 24) % 8 == 0 ? 0 : 1 + (r >> 27) % 4});
}

static void some_work(struct fixture *f, uint32_t t, uint64_t *seed, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t r = fixture_random(seed);
		if (r % 6 == 0)
			fixture_put(f, t,
				(struct memory_item){.kind = MEMORY_BLOCK,
					.address = 0x400000 + r % 1024 * 64,
					.size_bytes = (uint16_t)(20 + r % 100),
					.count = 5,
					.instructions = (r >> 12) % 5});
		else if (r % 97 == 0)
			fixture_put(f, t,
				(struct memory_item){.kind = r & 1024 ? MEMORY_RANGE_LOAD
								      : MEMORY_RANGE_STORE,
					.address = SHARED_AT + (r >> 12) % 300,
					.count = (r >> 8) % 200});
		else
			some_access(f, t, seed);
	}
}

static struct fixture *random_program(uint32_t nr_threads, uint64_t seed, uint32_t length)
{
	struct fixture *f = fixture_new(nr_threads, MEMORY_SOURCE_INSTRUCTIONS);
	uint32_t rounds = fixture_random(&seed) % 4;
	for (uint32_t i = 1; i < nr_threads; i++) {
		some_work(f, 0, &seed, 5);
		fixture_call(f, 0, MEMORY_CALL_thread_create, i, 0);
	}
	for (uint32_t t = 0; t < nr_threads; t++)
		for (uint32_t k = 0; k <= rounds; k++) {
			some_work(f, t, &seed, fixture_random(&seed) % length);
			uint64_t lock = LOCK_AT + fixture_random(&seed) % 2 * 256;
			fixture_call(f, t, MEMORY_CALL_lock, lock, 0);
			some_work(f, t, &seed, fixture_random(&seed) % 6);
			fixture_call(f, t, MEMORY_CALL_unlock, lock, 0);
			if (k < rounds)
				fixture_call(f, t, MEMORY_CALL_barrier, BARRIER_AT, nr_threads);
		}
	for (uint32_t i = 1; i < nr_threads; i++)
		fixture_call(f, 0, MEMORY_CALL_thread_join, i, 0);
	some_work(f, 0, &seed, 4);
	return f;
}

/* ---- the whole graph
 * -------------------------------------------------------------------------------------- */

struct edge {
	size_t from;
	uint64_t arrival;
};
struct vertex {
	uint64_t start, complete, order;
	uint32_t processor;
	size_t first_edge, nr_edges;
	uint64_t slack, told, local;
	uint8_t instructions;
};
struct whole {
	struct vertex *v;
	size_t nr, capacity;
	struct edge *e;
	size_t nr_edges, edges_capacity;
	size_t last[FIXTURE_THREADS]; /* index + 1 */
	size_t *by_order;             /* index + 1 */
	size_t nr_orders;
	size_t told; /* so many */
};

static void add_edge(struct whole *w, size_t from, uint64_t arrival)
{
	assert_int_equal(base_grow(&w->e, &w->edges_capacity, w->nr_edges + 1, sizeof *w->e), 0);
	w->e[w->nr_edges++] = (struct edge){from, arrival};
	w->v[w->nr - 1].nr_edges++;
}

static struct vertex *add_vertex(struct whole *w, uint32_t processor, uint64_t issue)
{
	assert_int_equal(base_grow(&w->v, &w->capacity, w->nr + 1, sizeof *w->v), 0);
	w->v[w->nr++] = (struct vertex){
		.processor = processor, .start = issue, .first_edge = w->nr_edges};
	if (w->last[processor])
		add_edge(w, w->last[processor] - 1, issue);
	w->last[processor] = w->nr;
	return &w->v[w->nr - 1];
}

static enum base_status whole_run(void *ctx, const struct slack_run *r, struct base_err *err)
{
	(void)err;
	for (uint64_t i = 0; i < r->count; i++) {
		struct vertex *v = add_vertex(ctx, r->processor, r->issue + i);
		v->complete = r->issue + i + 1;
		v->instructions = 1;
	}
	return BASE_OK;
}

static enum base_status whole_node(void *ctx, const struct slack_node *n, struct base_err *err)
{
	struct whole *w = ctx;
	(void)err;
	struct vertex *v = add_vertex(w, n->processor, n->issue);
	v->start = n->start;
	v->complete = n->complete;
	v->order = n->order;
	v->instructions = n->instructions;
	assert_true(n->start >= n->issue && n->complete >= n->start && n->issue >= n->ready);
	for (uint32_t i = 0; i < n->nr_producers; i++) {
		assert_true(n->producer[i].order < n->order);
		add_edge(w, w->by_order[n->producer[i].order] - 1, n->producer[i].complete);
	}
	assert_true(n->order == w->nr_orders + 1);
	w->by_order = realloc(w->by_order, (n->order + 1) * sizeof *w->by_order);
	w->by_order[n->order] = w->nr;
	w->nr_orders = n->order;
	return BASE_OK;
}

/* Figure 2-5. */
static void figure_2_5(struct whole *w, bool continuous, uint32_t endpoint, uint64_t *ret_end)
{
	uint64_t end = 0;
	for (size_t i = 0; i < w->nr; i++)
		end = w->v[i].complete > end ? w->v[i].complete : end;
	if (continuous)
		end = w->v[w->last[endpoint] - 1].complete;
	for (size_t i = 0; i < w->nr; i++)
		w->v[i].slack = w->v[i].local = SLACK_NEVER;
	for (size_t i = w->nr; i-- > 0;) {
		struct vertex *v = &w->v[i];
		if (v->slack == SLACK_NEVER && w->last[v->processor] == i + 1)
			v->slack = !continuous		      ? end - v->complete
				   : v->processor == endpoint ? 0
							      : SLACK_NEVER;
		if (v->local == SLACK_NEVER)
			v->local = v->slack;
		for (size_t k = v->first_edge; k < v->first_edge + v->nr_edges; k++) {
			struct vertex *u = &w->v[w->e[k].from];
			uint64_t l = v->start - w->e[k].arrival;
			u->local = l < u->local ? l : u->local;
			if (v->slack != SLACK_NEVER && l + v->slack < u->slack)
				u->slack = l + v->slack;
		}
	}
	*ret_end = end;
}

/* The end when node `late` starts `by` later, or takes no time at all. */
static uint64_t again(const struct whole *w, size_t late, uint64_t by, bool no_time,
	bool continuous, uint32_t endpoint)
{
	uint64_t *start = calloc(w->nr, sizeof *start), end = 0;
	for (size_t i = 0; i < w->nr; i++) {
		const struct vertex *v = &w->v[i];
		start[i] = v->nr_edges ? 0 : v->start;
		for (size_t k = v->first_edge; k < v->first_edge + v->nr_edges; k++) {
			const struct edge *e = &w->e[k];
			uint64_t length = e->arrival - w->v[e->from].start;
			if (no_time && e->from == late)
				length -= w->v[late].complete - w->v[late].start;
			if (start[e->from] + length > start[i])
				start[i] = start[e->from] + length;
		}
		start[i] += i == late ? by : 0;
		uint64_t done = start[i] + v->complete - v->start;
		if (no_time && i == late)
			done = start[i];
		if ((!continuous || w->last[endpoint] == i + 1) && done > end)
			end = done;
	}
	free(start);
	return end;
}

static void whole_fini(struct whole *w)
{
	base_free(w->v);
	base_free(w->e);
	free(w->by_order);
}

static void tell(void *ctx, const struct slack_node *n, const struct slack_run *r, uint64_t slack)
{
	struct whole *w = ctx;
	for (uint64_t i = 0; i < (r ? r->count : 1); i++) {
		assert_true(w->told < w->nr);
		struct vertex *v = &w->v[w->told++];
		assert_int_equal(v->processor, r ? r->processor : n->processor);
		v->told = slack;
	}
}

static struct slack_machine_config *config_of(uint32_t nr, const char *const *set, size_t nr_set)
{
	struct slack_machine_config *c = slack_machine_config_new(nr);
	for (size_t i = 0; i < nr_set; i++)
		assert_int_equal(slack_machine_config_set(c, set[i], NULL), BASE_OK);
	return c;
}
#define CONFIG(nr, ...)                                                                            \
	config_of(nr, (const char *const[]){__VA_ARGS__},                                          \
		BASE_COUNT(((const char *const[]){__VA_ARGS__})))

static void keep_whole(
	struct whole *w, const struct slack_machine_config *c, struct memory_source *s)
{
	struct slack_sink sink = {whole_run, whole_node, w};
	struct slack_machine_options o = {0};
	struct slack_machine *m;
	struct base_err err = {0};
	if (slack_machine_new(c, s, &o, &sink, &m, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	enum base_status status;
	while ((status = slack_machine_run(m, 100, &err)) == BASE_OK)
		;
	assert_int_equal(status, BASE_END);
	assert_int_equal(slack_machine_result(m)->forced, 0);
	assert_int_equal(slack_machine_result(m)->bad_calls, 0);
	slack_machine_free(m);
	assert_int_equal(s->ops->rewind(s, NULL), BASE_OK);
}

static const struct slack_result *analyse(const struct slack_machine_config *c,
	struct memory_source *s, const struct slack_options *o, struct slack_analysis **ret)
{
	struct base_err err = {0};
	if (slack_analyse(c, s, o, ret, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	return slack_analysis_result(*ret);
}

/* ---- the laws
 * --------------------------------------------------------------------------------------------- */

static void laws_of(const struct slack_machine_config *c, struct fixture *f, bool continuous,
	uint32_t endpoint, uint64_t *seed)
{
	struct whole w = {0};
	struct slack_analysis *a;
	uint64_t end, at_zero = 0, within = 0;
	keep_whole(&w, c, &f->source);
	figure_2_5(&w, continuous, endpoint, &end);
	struct slack_options o = {.continuous = continuous,
		.endpoint = endpoint,
		.tell = tell,
		.memory_bytes = 1,
		.ctx = &w};
	const struct slack_result *r = analyse(c, &f->source, &o, &a);
	assert_int_equal(w.told, w.nr);
	assert_int_equal(r->end, end);
	assert_int_equal(r->counts.nodes, w.nr);
	for (size_t i = 0; i < w.nr; i++) {
		if (w.v[i].told != w.v[i].slack)
			fail_msg("node %zu of %zu (processor %u): compressed %llu, whole %llu", i,
				w.nr, w.v[i].processor, (unsigned long long)w.v[i].told,
				(unsigned long long)w.v[i].slack);
		at_zero += w.v[i].instructions && !w.v[i].slack;
		within += w.v[i].instructions && !w.v[i].local;
	}
	uint64_t low, high;
	assert_int_equal(base_histogram_bucket(&r->global, 0, &low, &high), at_zero);
	if (!continuous) {
		assert_int_equal(base_histogram_bucket(&r->local, 0, &low, &high), within);
		assert_int_equal(r->critical_cycles, end);
	}
	assert_int_equal(r->counts.raw_edges,
		r->counts.kept_edges + r->counts.removed_in_time + r->counts.removed_same_store +
			r->counts.removed_beyond);
	for (unsigned k = 0; k < 12 && w.nr; k++) {
		size_t i = fixture_random(seed) % w.nr;
		uint64_t g = w.v[i].slack;
		if (g == SLACK_NEVER) {
			assert_int_equal(again(&w, i, 12345, false, continuous, endpoint), end);
			continue;
		}
		assert_int_equal(again(&w, i, g, false, continuous, endpoint), end);
		assert_int_equal(again(&w, i, g + 1, false, continuous, endpoint), end + 1);
	}
	slack_analysis_free(a);
	assert_int_equal(f->source.ops->rewind(&f->source, NULL), BASE_OK);
	whole_fini(&w);
}

static void test_laws(void **state)
{
	static const char *const protocol[] = {
		"protocol=mosi", "protocol=dirmosi", "protocol=dir1", "protocol=moesi"};
	uint64_t seed = 7;
	(void)state;
	for (unsigned k = 0; k < 120; k++) {
		uint32_t nr = 1 + k % 6;
		struct fixture *f = random_program(nr, k + 1, 10 + k);
		struct slack_machine_config *c = CONFIG(nr, protocol[k % 4],
			k % 3 ? "contention=1" : "contention=0", "data_bytes=4096",
			"second_bytes=16384");
		laws_of(c, f, false, 0, &seed);
		laws_of(c, f, true, fixture_random(&seed) % nr, &seed);
		slack_machine_config_free(c);
		memory_source_close(&f->source);
	}
}

/* What the three theorems and the spilling of edges leave out changes nothing that is said. */
static void test_keep_all(void **state)
{
	(void)state;
	struct fixture *f = random_program(5, 99, 20000);
	struct slack_machine_config *c = slack_machine_config_new(5);
	struct slack_analysis *a[2];
	const struct slack_result *r[2];
	for (unsigned i = 0; i < 2; i++) {
		struct slack_options o = {.keep_all = i, .memory_bytes = i ? 1 : 0};
		r[i] = analyse(c, &f->source, &o, &a[i]);
		f->source.ops->rewind(&f->source, NULL);
	}
	assert_true(r[0]->counts.kept_edges < r[1]->counts.kept_edges);
	assert_true(r[1]->counts.spilled_bytes > 0);
	assert_int_equal(r[0]->nr_code, r[1]->nr_code);
	for (size_t i = 0; i < r[0]->nr_code; i++)
		assert_memory_equal(&r[0]->code[i], &r[1]->code[i], sizeof r[0]->code[i]);
	assert_int_equal(r[0]->critical_cycles, r[1]->critical_cycles);
	assert_int_equal(r[0]->critical_hops, r[1]->critical_hops);
	slack_analysis_free(a[0]);
	slack_analysis_free(a[1]);
	slack_machine_config_free(c);
	memory_source_close(&f->source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_laws),
		cmocka_unit_test(test_keep_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
