/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - cycles of the lock order graph that could have become deadlocks. */
#include "report/locks/order_private.h"

#include "trace/enums.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 4000000 }; /* of the search: dense graphs have cycles without end */

struct search {
	struct order_graph *g;
	struct report_order *out;
	const struct report_run *run;
	uint32_t *head, *next; /* edges by `from`; indices + 1 */
	uint32_t path[REPORT_ORDER_LENGTH_MAX];
	size_t length;
	size_t cycle_capacity;
	uint64_t nr_steps;
	struct base_map seen; /* cycles by their locks and places */
	struct base_err *err;
};

/* ---- may they be at once? -------------------------------------------------------------------- */

/* Had both the same lock, and one of them not as a reader? Then one was waiting for the other
 * long before. */
static bool is_gated(
	const struct order_graph *g, const struct order_edge *a, const struct order_edge *b)
{
	for (uint32_t i = 0; i < a->nr_held; i++) {
		const struct order_held *x = &g->held_pool[a->first_held + i];
		for (uint32_t k = 0; k < b->nr_held; k++) {
			const struct order_held *y = &g->held_pool[b->first_held + k];
			if (x->lock == y->lock && !(x->shared && y->shared))
				return true;
		}
	}
	return false;
}

/* Does the taker of a lock wait for its holder? */
static bool conflicts(const struct order_edge *taker, const struct order_edge *owner)
{
	return !(taker->to_shared && owner->from_shared);
}

enum refusal { ACCEPTED, SAME_THREAD, GATED, ORDERED };

static enum refusal order_refuse(const struct search *s, const struct order_edge *e)
{
	enum refusal why = ACCEPTED;
	for (size_t i = 0; i < s->length; i++) {
		const struct order_edge *p = &s->g->edge[s->path[i]];
		if (p->thread == e->thread)
			return SAME_THREAD;
		if (is_gated(s->g, p, e))
			why = GATED;
		else if (!report_order_concurrent(s->g, p->segment, e->segment) && why == ACCEPTED)
			why = ORDERED;
	}
	return why;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *keep_site(struct search *s, uint32_t site)
{
	const struct trace_defs *d = trace_reader_defs(s->run->reader);
	const struct trace_symbol *y = trace_def_symbol(d, site);
	const char *function = trace_text_of(d, y->function), *file = trace_text_of(d, y->file);
	const char *slash = strrchr(file, '/');
	struct base_str raw = {0}, clean = {0};
	if (*function)
		base_str_add(&raw, function);
	if (*file)
		base_str_addf(&raw, *function ? " (%s:%llu)" : "%s:%llu", slash ? slash + 1 : file,
			(unsigned long long)y->line);
	if (!raw.length)
		base_str_addf(&raw, "0x%llx", (unsigned long long)trace_def_site(d, site)->offset);
	report_clean_add(&clean, base_str_text(&raw));
	clean.failed |= raw.failed;
	base_str_fini(&raw);
	return report_keep(s->out->arena, &clean);
}

static const char *keep_lock(struct search *s, uint32_t lock)
{
	const struct trace_defs *d = trace_reader_defs(s->run->reader);
	const struct trace_object *o = trace_def_object(d, s->g->object_of[lock]);
	const char *name = trace_text_of(d, o->name);
	struct base_str raw = {0}, clean = {0};
	base_str_addf(&raw, "%s ", trace_object_type_text(o->type));
	if (*name)
		base_str_add(&raw, name);
	else
		base_str_addf(&raw, "0x%llx", (unsigned long long)o->address);
	report_clean_add(&clean, base_str_text(&raw));
	clean.failed |= raw.failed;
	base_str_fini(&raw);
	return report_keep(s->out->arena, &clean);
}

static const char *keep_thread(struct search *s, uint32_t thread)
{
	const struct trace_defs *d = trace_reader_defs(s->run->reader);
	const struct trace_stream *t = trace_def_stream(d, s->g->thread[thread].stream);
	struct base_str raw = {0}, clean = {0};
	base_str_addf(&raw, "thread %llu", (unsigned long long)t->tid);
	report_clean_add(&clean, trace_text_of(d, t->name));
	if (clean.length)
		base_str_addf(&raw, " (%s)", base_str_text(&clean));
	base_str_fini(&clean);
	return report_keep(s->out->arena, &raw);
}

/* ---- cycles ---------------------------------------------------------------------------------- */

static uint64_t print_of(const struct search *s)
{
	uint64_t all = s->length;
	for (size_t i = 0; i < s->length; i++) {
		const struct order_edge *e = &s->g->edge[s->path[i]];
		uint64_t h = base_hash_u64((uint64_t)e->from << 32 | e->to);
		all += base_hash_u64(h ^ ((uint64_t)e->from_site << 32 | e->to_site));
	}
	return all;
}

static enum base_status add_cycle(struct search *s)
{
	struct report_order *out = s->out;
	uint64_t print = print_of(s), unused;
	if (base_map_get(&s->seen, 0, print, &unused))
		return BASE_OK;
	if (out->nr_cycles == REPORT_ORDER_CYCLES_MAX) {
		out->cut = true;
		return BASE_OK;
	}
	enum base_status st =
		base_grow(&out->cycle, &s->cycle_capacity, out->nr_cycles + 1, sizeof *out->cycle);
	if (st == BASE_OK)
		st = base_map_put(&s->seen, 0, print, 1);
	if (st != BASE_OK)
		return st;
	struct report_order_cycle *c = &out->cycle[out->nr_cycles];
	*c = (struct report_order_cycle){.nr_steps = s->length};
	for (size_t i = 0; i < s->length; i++) {
		const struct order_edge *e = &s->g->edge[s->path[i]];
		c->step[i] = (struct report_order_step){.thread = keep_thread(s, e->thread),
			.has = keep_lock(s, e->from),
			.has_where = keep_site(s, e->from_site),
			.takes = keep_lock(s, e->to),
			.takes_where = keep_site(s, e->to_site),
			.has_shared = e->from_shared,
			.takes_shared = e->to_shared,
			.times = e->times};
		const struct report_order_step *p = &c->step[i];
		if (!p->thread || !p->has || !p->has_where || !p->takes || !p->takes_where)
			return BASE_ERR_NOMEM;
	}
	out->nr_cycles++;
	return BASE_OK;
}

/* The path goes on by e, or is closed by it. Cycles begin at their smallest lock. */
static enum base_status order_step(struct search *s, uint32_t at, bool *ret_deeper)
{
	const struct order_edge *e = &s->g->edge[at], *first = &s->g->edge[s->path[0]];
	*ret_deeper = false;
	if (!conflicts(&s->g->edge[s->path[s->length - 1]], e) || e->to < first->from)
		return BASE_OK;
	bool closes = e->to == first->from && conflicts(e, first);
	enum refusal why = order_refuse(s, e);
	if (why != ACCEPTED) {
		s->out->nr_gated += closes && why == GATED;
		s->out->nr_ordered += closes && why == ORDERED;
		return BASE_OK;
	}
	s->path[s->length++] = at;
	if (closes) {
		enum base_status st = add_cycle(s);
		s->length--;
		return st;
	}
	*ret_deeper = e->to != first->from && s->length < REPORT_ORDER_LENGTH_MAX;
	s->length -= !*ret_deeper;
	return BASE_OK;
}

/* Depth first, with the place in each lock's list as the stack. */
static enum base_status search_from(struct search *s, uint32_t edge)
{
	uint32_t cursor[REPORT_ORDER_LENGTH_MAX + 1] = {0};
	enum base_status st = BASE_OK;
	s->path[0] = edge;
	s->length = 1;
	cursor[1] = s->head[s->g->edge[edge].to];
	while (st == BASE_OK && s->length) {
		bool deeper;
		uint32_t at = cursor[s->length];
		if (!at || ++s->nr_steps > STEPS_MAX) {
			s->length--;
			continue;
		}
		cursor[s->length] = s->next[at - 1];
		st = order_step(s, at - 1, &deeper);
		if (deeper)
			cursor[s->length] = s->head[s->g->edge[at - 1].to];
	}
	s->out->cut |= s->nr_steps > STEPS_MAX;
	return st;
}

static int order_by_length(const void *a, const void *b)
{
	const struct report_order_cycle *x = a, *y = b;
	if (x->nr_steps != y->nr_steps)
		return x->nr_steps < y->nr_steps ? -1 : 1;
	return strcmp(x->step[0].has, y->step[0].has);
}

static enum base_status order_search_all(struct search *s)
{
	struct order_graph *g = s->g;
	s->head = base_alloc((g->nr_locks + 1) * sizeof *s->head);
	s->next = base_alloc((g->nr_edges + 1) * sizeof *s->next);
	if (!s->head || !s->next)
		return BASE_ERR_NOMEM;
	for (size_t i = g->nr_edges; i-- > 0;) {
		s->next[i] = s->head[g->edge[i].from];
		s->head[g->edge[i].from] = (uint32_t)i + 1;
	}
	enum base_status st = BASE_OK;
	for (uint32_t i = 0; st == BASE_OK && i < g->nr_edges; i++)
		st = search_from(s, i);
	if (s->out->nr_cycles)
		qsort(s->out->cycle, s->out->nr_cycles, sizeof *s->out->cycle, order_by_length);
	return st;
}

enum base_status report_order_build(
	const struct report_run *run, struct report_order **ret, struct base_err *err)
{
	struct report_order *out = base_alloc(sizeof *out);
	struct order_graph g = {0};
	struct search s = {.g = &g, .out = out, .run = run, .err = err};
	*ret = NULL;
	if (!out)
		return report_no_memory(err);
	out->arena = g.arena = base_arena_new(run->max_memory_bytes);
	out->trace_path = run->trace_path;
	enum base_status st = out->arena ? report_order_read(&g, run, err) : report_no_memory(err);
	if (st == BASE_OK && (st = order_search_all(&s)) != BASE_OK)
		st = report_no_memory(err);
	out->nr_edges = g.nr_edges;
	out->nr_locks = g.nr_locks;
	out->nr_tried = g.nr_tried;
	out->nr_acquired = g.nr_acquired;
	out->nr_threads = g.nr_threads;
	out->nr_lost = g.nr_lost;
	base_free(s.head);
	base_free(s.next);
	base_map_fini(&s.seen);
	report_order_read_fini(&g);
	if (st == BASE_OK)
		*ret = out;
	else
		report_order_free(out);
	return st;
}

struct report_order *report_order_free(struct report_order *o)
{
	if (!o)
		return NULL;
	base_free(o->cycle);
	return report_answer_free(o);
}
