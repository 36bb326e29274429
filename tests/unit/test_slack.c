/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_slack.c - the laws of slack on random programs, against a graph that is kept whole; the
 * machine by hand.
 */
#include "slack/slack.h"
#include "memory_fixture.h"
#include "test.h"

enum { LOCK_AT = 0x5000, BARRIER_AT = 0x6000, SHARED_AT = 0x10000, OWN_AT = 0x100000 };

/* ---- random programs ------------------------------------------------------------------------- */

static void some_access(struct fixture *f, uint32_t t, uint64_t *seed)
{
	static const uint8_t size[] = {1, 4, 8, 8, 16, 64};
	uint32_t r = fixture_random(seed);
	uint64_t address =
		r % 3 ? OWN_AT + t * 0x10000u + (r >> 8) % 512 * 8 : SHARED_AT + (r >> 8) % 40 * 12;
	enum memory_item_kind kind = r % 17 == 0 ? MEMORY_ATOMIC
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
				(struct memory_item){
					.kind = r & 1024 ? MEMORY_RANGE_LOAD : MEMORY_RANGE_STORE,
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

/* ---- the whole graph ------------------------------------------------------------------------- */

struct edge {
	size_t from;
	uint64_t arrival;
};
struct vertex {
	uint64_t start, complete, order;
	uint32_t processor;
	size_t first_edge, nr_edges;
	uint64_t slack, told, local, taut;
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
	w->v[w->nr++] =
		(struct vertex){.processor = processor, .start = issue, .first_edge = w->nr_edges};
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
			v->slack = !continuous                ? end - v->complete
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

static void tell(void *ctx, const struct slack_node *n, const struct slack_run *r, uint64_t slack,
	uint64_t taut)
{
	struct whole *w = ctx;
	for (uint64_t i = 0; i < (r ? r->count : 1); i++) {
		assert_true(w->told < w->nr);
		struct vertex *v = &w->v[w->told++];
		assert_int_equal(v->processor, r ? r->processor : n->processor);
		v->told = slack;
		v->taut = taut;
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
	struct slack_sink sink = {.run = whole_run, .node = whole_node, .ctx = w};
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

/* ---- the laws -------------------------------------------------------------------------------- */

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
	assert_int_equal(r->counts.raw_edges, r->counts.kept_edges + r->counts.removed_in_time +
						      r->counts.removed_same_store +
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
	for (size_t i = fixture_random(seed) % 40; i < w.nr; i += 1 + fixture_random(seed) % 60) {
		uint64_t earlier = end - again(&w, i, 0, true, continuous, endpoint);
		if (earlier != w.v[i].taut)
			fail_msg("node %zu of %zu: tautness %llu, the end comes %llu earlier", i,
				w.nr, (unsigned long long)w.v[i].taut, (unsigned long long)earlier);
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
		struct slack_machine_config *c =
			CONFIG(nr, protocol[k % 4], k % 3 ? "contention=1" : "contention=0",
				"data_bytes=4096", "second_bytes=16384");
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

/* ---- by hand --------------------------------------------------------------------------------- */

static void plain(struct fixture *f, uint32_t t, uint32_t nr)
{
	fixture_put(f, t,
		(struct memory_item){.kind = MEMORY_BLOCK,
			.address = 0x400000 + t * 64,
			.size_bytes = 10,
			.count = nr,
			.instructions = nr});
}

/* One thread waits for another, which takes 100 cycles. */
static void test_join(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(2, MEMORY_SOURCE_INSTRUCTIONS);
	struct slack_machine_config *c = CONFIG(2, "code_bytes=0");
	struct slack_analysis *a;
	struct slack_options o = {0};
	fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0); /* [0, 1) */
	plain(f, 0, 10);                                     /* [1, 11) */
	fixture_call(f, 0, MEMORY_CALL_thread_join, 1, 0);   /* [101, 102) */
	plain(f, 1, 100);                                    /* [1, 101) */
	const struct slack_result *r = analyse(c, &f->source, &o, &a);
	assert_int_equal(r->end, 102);
	assert_int_equal(r->endpoint, 0);
	assert_int_equal(r->critical_hops, 2);
	assert_int_equal(r->processor[0].critical_cycles, 2);
	assert_int_equal(r->processor[1].critical_cycles, 100);
	assert_int_equal(r->machine.processor[0].waited_cycles, 90);
	for (size_t i = 0; i < r->nr_code; i++)
		if (r->code[i].code == 0x400000) {
			assert_int_equal(r->code[i].least, 90);
			assert_int_equal(r->code[i].greatest, 90);
			assert_int_equal(r->code[i].alike, 9);
			assert_int_equal(r->code[i].taut_cycles, 0);
		} else if (r->code[i].code == 0x400040) {
			assert_int_equal(r->code[i].critical, 100);
			assert_int_equal(r->code[i].taut_cycles, 1);
		}
	slack_analysis_free(a);
	slack_machine_config_free(c);
	memory_source_close(&f->source);
}

struct seen {
	struct slack_node n[64];
	size_t nr;
	struct slack_processor_result processor[8]; /* copies: the machine's end with it */
};
static enum base_status see_node(void *ctx, const struct slack_node *n, struct base_err *err)
{
	struct seen *s = ctx;
	(void)err;
	assert_true(s->nr < BASE_COUNT(s->n));
	s->n[s->nr++] = *n;
	return BASE_OK;
}

static void run_machine(const struct slack_machine_config *c, struct fixture *f, struct seen *s,
	struct slack_machine_result *ret)
{
	struct slack_sink sink = {.node = see_node, .ctx = s};
	struct slack_machine_options o = {0};
	struct slack_machine *m;
	assert_int_equal(slack_machine_new(c, &f->source, &o, &sink, &m, NULL), BASE_OK);
	while (slack_machine_run(m, 1, NULL) == BASE_OK)
		;
	*ret = *slack_machine_result(m);
	assert_true(ret->nr_processors <= BASE_COUNT(s->processor));
	for (uint32_t i = 0; i < ret->nr_processors; i++)
		s->processor[i] = ret->processor[i];
	ret->processor = s->processor;
	slack_machine_free(m);
}

/* What a request costs, protocol by protocol: the only thread, then one that takes its line. Own
 * memory, the other's memory (first touch), a dirty line of the other, an upgrade. */
static void test_latencies(void **state)
{
	static const struct {
		const char *protocol;
		uint64_t own, remote, dirty, upgrade;
	} row[] = {
		/* 200 + 320 + 200; the same; 200 + 16 + 200; 200 */
		{"protocol=mosi", 720, 720, 416, 200},
		/* 320; 200 + 320 + 200; 200 + 16 + 0 + 16 + 200; 200 + 16 + 200 */
		{"protocol=dirmosi", 320, 720, 432, 416},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		struct fixture *f = fixture_new(2, MEMORY_SOURCE_INSTRUCTIONS);
		struct slack_machine_config *c =
			CONFIG(2, "code_bytes=0", "contention=0", row[i].protocol);
		struct seen s = {0};
		struct slack_machine_result r;
		fixture_access(f, 0, MEMORY_LOAD, 0x1000, 8);
		fixture_access(f, 0, MEMORY_STORE, 0x1040, 8);
		fixture_access(f, 0, MEMORY_LOAD, 0x1048, 8);
		fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
		fixture_access(f, 1, MEMORY_LOAD, 0x1080, 8);
		fixture_access(f, 1, MEMORY_LOAD, 0x1040, 8);
		fixture_access(f, 1, MEMORY_STORE, 0x1040, 8);
		run_machine(c, f, &s, &r);
		assert_int_equal(s.n[0].complete - s.n[0].start, 1 + row[i].own);
		assert_int_equal(s.n[2].complete - s.n[2].start, 1);
		const struct slack_node *remote = NULL, *dirty = NULL, *upgrade = NULL;
		for (size_t k = 0; k < s.nr; k++) {
			if (s.n[k].processor != 1)
				continue;
			remote = s.n[k].address == 0x1080 ? &s.n[k] : remote;
			dirty = s.n[k].address == 0x1040 && s.n[k].kind == SLACK_LOAD ? &s.n[k]
										      : dirty;
			upgrade = s.n[k].kind == SLACK_STORE ? &s.n[k] : upgrade;
		}
		assert_non_null(remote);
		assert_non_null(dirty);
		assert_non_null(upgrade);
		assert_int_equal(remote->complete - remote->start, 1 + row[i].remote);
		assert_int_equal(dirty->complete - dirty->start, 1 + row[i].dirty);
		assert_int_equal(upgrade->complete - upgrade->start, 1 + row[i].upgrade);
		assert_int_equal(dirty->nr_producers, 1);
		slack_machine_config_free(c);
		memory_source_close(&f->source);
	}
}

/* Four threads ask in the same cycle: the broadcast network takes one in 5 cycles. */
static void test_contention(void **state)
{
	(void)state;
	for (unsigned contention = 0; contention < 2; contention++) {
		struct fixture *f = fixture_new(4, MEMORY_SOURCE_INSTRUCTIONS);
		struct slack_machine_config *c =
			CONFIG(4, "code_bytes=0", contention ? "contention=1" : "contention=0");
		struct seen s = {0};
		struct slack_machine_result r;
		for (uint32_t t = 1; t < 4; t++)
			fixture_call(f, 0, MEMORY_CALL_thread_create, t, 0);
		for (uint32_t t = 0; t < 4; t++) {
			fixture_call(f, t, MEMORY_CALL_barrier, 0, 4);
			fixture_access(f, t, MEMORY_LOAD, 0x10000 + t * 0x10000, 8);
		}
		run_machine(c, f, &s, &r);
		uint64_t waited = 0;
		for (uint32_t t = 0; t < 4; t++)
			waited += r.processor[t].contention_cycles;
		/* The barrier's last one leaves a cycle before the others do. */
		assert_int_equal(waited, contention ? 4 + 9 + 14 : 0);
		slack_machine_config_free(c);
		memory_source_close(&f->source);
	}
}

/* A lock goes to the first to come; a waiter starts when it is given back. */
static void test_lock(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(3, MEMORY_SOURCE_INSTRUCTIONS);
	struct slack_machine_config *c = CONFIG(3, "code_bytes=0", "contention=0");
	struct seen s = {0};
	struct slack_machine_result r;
	fixture_call(f, 0, MEMORY_CALL_lock, LOCK_AT, 0);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 2, 0);
	plain(f, 0, 5000);
	fixture_call(f, 0, MEMORY_CALL_unlock, LOCK_AT, 0);
	plain(f, 1, 200);
	plain(f, 2, 100);
	for (uint32_t t = 1; t < 3; t++) {
		fixture_call(f, t, MEMORY_CALL_lock, LOCK_AT, 0);
		plain(f, t, 1000);
		fixture_call(f, t, MEMORY_CALL_unlock, LOCK_AT, 0);
	}
	run_machine(c, f, &s, &r);
	const struct slack_node *lock[3] = {NULL}, *unlock[3] = {NULL};
	for (size_t i = 0; i < s.nr; i++) {
		lock[s.n[i].processor] =
			s.n[i].kind == SLACK_LOCK ? &s.n[i] : lock[s.n[i].processor];
		unlock[s.n[i].processor] =
			s.n[i].kind == SLACK_UNLOCK ? &s.n[i] : unlock[s.n[i].processor];
	}
	for (unsigned t = 0; t < 3; t++) {
		assert_non_null(lock[t]);
		assert_non_null(unlock[t]);
	}
	assert_int_equal(lock[2]->start, unlock[0]->complete);
	assert_int_equal(lock[1]->start, unlock[2]->complete);
	assert_int_equal(lock[2]->complete, lock[2]->start + 416 + 1);
	assert_int_equal(r.processor[2].waited_cycles, lock[2]->start - lock[2]->issue);
	assert_int_equal(r.processor[1].waits, 1);
	slack_machine_config_free(c);
	memory_source_close(&f->source);
}

/* Nobody can go on, or a record names what is not there: that is counted, and the rest goes on. */
static void test_forced(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(3, MEMORY_SOURCE_INSTRUCTIONS);
	struct slack_machine_config *c = CONFIG(3, "code_bytes=0");
	struct seen s = {0};
	struct slack_machine_result r;
	fixture_call(f, 0, MEMORY_CALL_thread_create, 9, 0);
	fixture_call(f, 0, MEMORY_CALL_wait, 0x7000, 0); /* it began at one */
	fixture_call(f, 0, MEMORY_CALL_signal, 0x7000, 0);
	fixture_call(f, 0, MEMORY_CALL_wait, 0x7000, 0);
	fixture_call(f, 0, MEMORY_CALL_barrier, BARRIER_AT, 5);
	fixture_call(f, 0, MEMORY_CALL_thread_join, 77, 0);
	fixture_call(f, 1, MEMORY_CALL_lock, LOCK_AT, 0);
	fixture_call(f, 2, MEMORY_CALL_lock, LOCK_AT, 0);
	plain(f, 2, 7);
	run_machine(c, f, &s, &r);
	assert_int_equal(r.bad_calls, 2);
	assert_int_equal(r.forced, 3);
	assert_int_equal(r.instructions, 7);
	slack_machine_config_free(c);
	memory_source_close(&f->source);
}

/* A condition lets go who waited, a broadcast all; spinning instructions are counted apart. */
static uint64_t every_second(void *ctx, uint32_t thread, uint64_t first, uint64_t count)
{
	uint64_t *asked = ctx;
	*asked += thread == 1 ? count : 0;
	return (first + count + 1) / 2 - (first + 1) / 2;
}

static void test_condition_and_spinning(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(3, MEMORY_SOURCE_INSTRUCTIONS);
	struct slack_machine_config *c = CONFIG(3, "code_bytes=0");
	uint64_t asked = 0;
	fixture_call(f, 0, MEMORY_CALL_thread_create, 1, 0);
	fixture_call(f, 0, MEMORY_CALL_thread_create, 2, 0);
	plain(f, 0, 9000);
	fixture_call(f, 0, MEMORY_CALL_lock, LOCK_AT, 0);
	fixture_call(f, 0, MEMORY_CALL_signal, 0x8000, 0);
	f->thread[0].call[3].start_ns = f->thread[0].call[3].end_ns = 500;
	fixture_call(f, 0, MEMORY_CALL_unlock, LOCK_AT, 0);
	for (uint32_t t = 1; t < 3; t++) {
		fixture_call(f, t, MEMORY_CALL_lock, LOCK_AT, 0);
		fixture_call(f, t, MEMORY_CALL_unlock, LOCK_AT, 0);
		fixture_call(f, t, MEMORY_CALL_wait, 0x8000, 0);
		fixture_call(f, t, MEMORY_CALL_lock, LOCK_AT, 0);
		for (unsigned i = 1; i < 4; i++)
			f->thread[t].call[i].start_ns = 100;
		plain(f, t, 11);
		fixture_call(f, t, MEMORY_CALL_unlock, LOCK_AT, 0);
	}
	struct slack_machine_options o = {.spinning = every_second, .spinning_ctx = &asked};
	struct slack_machine *m;
	assert_int_equal(slack_machine_new(c, &f->source, &o, NULL, &m, NULL), BASE_OK);
	while (slack_machine_run(m, 1000, NULL) == BASE_OK)
		;
	const struct slack_machine_result *r = slack_machine_result(m);
	assert_int_equal(r->forced, 0);
	assert_true(r->processor[1].waited_cycles > 7000 && r->processor[2].waited_cycles > 7000);
	assert_int_equal(asked, 11);
	assert_int_equal(r->processor[1].instructions, 11);
	assert_int_equal(r->processor[1].spinning, 6);
	assert_int_equal(r->spinning, 4500 + 6 + 6);
	slack_machine_free(m);
	slack_machine_config_free(c);
	memory_source_close(&f->source);
}

/* What is waited for has a name: where its heap block came from. */
static void test_heap(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(1, MEMORY_SOURCE_INSTRUCTIONS);
	struct slack_machine_config *c = CONFIG(1, "code_bytes=0");
	struct slack_analysis *a;
	struct slack_options o = {0};
	plain(f, 0, 3);
	fixture_call(f, 0, MEMORY_CALL_allocate, 0x20000, 40); /* by line */
	fixture_access(f, 0, MEMORY_LOAD, 0x20020, 8);
	fixture_put(f, 0,
		(struct memory_item){
			.kind = MEMORY_BLOCK, .address = 0x500000, .size_bytes = 8, .count = 2});
	fixture_call(f, 0, MEMORY_CALL_allocate, 0x30010, 100000); /* by page */
	fixture_access(f, 0, MEMORY_LOAD, 0x30010 + 90000, 8);
	fixture_access(
		f, 0, MEMORY_LOAD, 0x60014, 8); /* no block: who is where in a line matters */
	const struct slack_result *r = analyse(c, &f->source, &o, &a);
	assert_int_equal(r->nr_lines, 3);
	for (size_t i = 0; i < 3; i++) {
		uint64_t at = r->line[i].address;
		assert_int_equal(r->line[i].site, at == 0x20000   ? 0x400009
						  : at == 0x60014 ? 0
								  : 0x500007);
	}
	slack_analysis_free(a);
	slack_machine_config_free(c);
	memory_source_close(&f->source);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void test_config(void **state)
{
	static const char *const bad[] = {"hop_cycles", "hop_cycles=", "hop_cycles=x",
		"hop_cycles=-1", "contention=2", "clock_mhz=0", "protocol=none", "nodes=99"};
	struct slack_machine_config *c = slack_machine_config_new(40);
	struct base_err err = {0};
	(void)state;
	assert_int_equal(c->cdat->nodes * c->cdat->processors, 64);
	for (size_t i = 0; i < BASE_COUNT(bad); i++)
		assert_int_equal(slack_machine_config_set(c, bad[i], NULL), BASE_ERR_USAGE);
	assert_int_equal(
		slack_machine_config_read(c, "[machine]\nhop_cycles = 7\nnodes = 3\n", "x", &err),
		BASE_OK);
	assert_int_equal(c->hop_cycles, 7);
	assert_int_equal(c->cdat->nodes, 3);
	assert_int_equal(
		slack_machine_config_read(c, "[other]\na = 7\n", "x", &err), BASE_ERR_USAGE);
	assert_int_equal(slack_machine_config_read(c, "[machine\n", "x", &err), BASE_ERR_USAGE);
	slack_machine_config_free(c);
}

static void test_no_memory(void **state)
{
	(void)state;
	struct fixture *f = random_program(3, 5, 60);
	struct slack_machine_config *c = slack_machine_config_new(3);
	enum base_status s = BASE_ERR_NOMEM;
	unsigned n = 1;
	for (; s == BASE_ERR_NOMEM || s == BASE_ERR_LIMIT; n++) {
		struct slack_analysis *a = NULL;
		struct slack_options o = {0};
		base_alloc_fail_nth(n);
		s = slack_analyse(c, &f->source, &o, &a, NULL);
		base_alloc_fail_nth(0);
		slack_analysis_free(a);
		f->source.ops->rewind(&f->source, NULL);
	}
	assert_int_equal(s, BASE_OK);
	assert_true(n > 80);
	base_alloc_fail_nth(1);
	assert_null(slack_machine_config_new(3));
	base_alloc_fail_nth(2);
	assert_null(slack_machine_config_new(3));
	base_alloc_fail_nth(0);
	slack_machine_config_free(c);
	memory_source_close(&f->source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_laws),
		cmocka_unit_test(test_keep_all),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_latencies),
		cmocka_unit_test(test_contention),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_forced),
		cmocka_unit_test(test_condition_and_spinning),
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
