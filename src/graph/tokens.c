/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c - who holds which pool's tokens, in which states, for how long. */
#include "graph/tokens.h"

enum { HELD_MAX = 4 }; /* pools that one actor holds at a time; one more is not followed */

struct pool {
	bool counts; /* all that was seen of it fits a pool of tokens that come back */
	int64_t free, held, most;
	uint64_t *held_ns; /* by state; tokens times ns */
	size_t capacity;
};
struct held {
	uint32_t queue;
	int64_t n;
};
struct actor {
	uint64_t last_ns;
	uint32_t state;
	bool waits;
	struct held held[HELD_MAX];
};
struct graph_tokens {
	struct graph_sink sink;
	const struct graph_sink *next;
	struct pool *pool; /* by queue */
	size_t nr_pools, pool_capacity;
	bool counts; /* some pool did: before that nobody can hold a token */
	struct actor *actor;
	size_t actor_capacity;
};

static enum base_status tokens_no_memory(enum base_status s, struct base_err *err)
{
	return s == BASE_OK ? s : base_fail(err, s, "no memory for pools of tokens");
}

static enum base_status on_state(void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tokens *)ctx)->next;
	return next && next->state ? next->state(next->ctx, state, executes, err) : BASE_OK;
}

static enum base_status tokens_on_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct graph_tokens *t = ctx;
	bool known = o->initial != GRAPH_UNLIMITED;
	enum base_status s =
		base_grow(&t->pool, &t->pool_capacity, (size_t)queue + 1, sizeof *t->pool);
	if (s != BASE_OK)
		return tokens_no_memory(s, err);
	t->nr_pools = (size_t)queue + 1;
	t->counts |= known && o->discipline == GRAPH_POOL && !o->processor;
	t->pool[queue] = (struct pool){
		.counts = known && o->discipline == GRAPH_POOL && !o->processor,
		.free = known ? (int64_t)o->initial : 0,
		.most = known ? (int64_t)o->initial : 0,
	};
	return t->next ? t->next->queue(t->next->ctx, queue, o, err) : BASE_OK;
}

/* What it did since its last verb it did with all that it holds. */
static enum base_status tokens_charge(
	struct graph_tokens *t, const struct actor *a, uint64_t time_ns, struct base_err *err)
{
	if (a->waits || time_ns <= a->last_ns)
		return BASE_OK;
	for (unsigned i = 0; i < HELD_MAX; i++) {
		if (!a->held[i].n)
			continue;
		struct pool *p = &t->pool[a->held[i].queue];
		enum base_status s = base_grow(
			&p->held_ns, &p->capacity, (size_t)a->state + 1, sizeof *p->held_ns);
		if (s != BASE_OK)
			return tokens_no_memory(s, err);
		p->held_ns[a->state] += (time_ns - a->last_ns) * (uint64_t)a->held[i].n;
	}
	return BASE_OK;
}

/* NULL: it holds none, and (when taking) there is no room. */
static struct held *held_of(struct actor *a, uint32_t queue, bool take)
{
	for (unsigned i = 0; i < HELD_MAX; i++)
		if (a->held[i].n && a->held[i].queue == queue)
			return &a->held[i];
	for (unsigned i = 0; take && i < HELD_MAX; i++) {
		if (!a->held[i].n) {
			a->held[i].queue = queue;
			return &a->held[i];
		}
	}
	return NULL;
}

static void tokens_move(struct pool *p, struct actor *a, uint32_t queue, int64_t taken)
{
	struct held *h = held_of(a, queue, taken > 0);
	if (!h || h->n + taken < 0 || p->free < taken) {
		p->counts = false;
		return;
	}
	h->n += taken;
	p->held += taken;
	p->free -= taken;
}

static void tokens_follow(struct graph_tokens *t, struct actor *a, enum graph_verb_kind kind,
	const struct graph_verb *v)
{
	struct pool *p = &t->pool[v->queue];
	if (!p->counts || v->n < 0) {
		p->counts = false;
		return;
	}
	if (kind == GRAPH_VERB_dequeue)
		tokens_move(p, a, v->queue, v->n);
	else if (kind == GRAPH_VERB_enqueue)
		tokens_move(p, a, v->queue, -v->n);
	else if (kind == GRAPH_VERB_resize)
		p->free = v->n;
	if (p->free + p->held > p->most)
		p->most = p->free + p->held;
}

static bool moves_units(enum graph_verb_kind kind)
{
	return kind == GRAPH_VERB_dequeue || kind == GRAPH_VERB_enqueue ||
	       kind == GRAPH_VERB_resize;
}

static enum base_status follow_verb(struct graph_tokens *t, enum graph_verb_kind kind,
	const struct graph_verb *v, struct base_err *err)
{
	enum base_status s =
		base_grow(&t->actor, &t->actor_capacity, (size_t)v->actor + 1, sizeof *t->actor);
	if (s != BASE_OK)
		return tokens_no_memory(s, err);
	struct actor *a = &t->actor[v->actor];
	bool aside = v->flags & GRAPH_ASIDE;
	if (!aside)
		s = tokens_charge(t, a, v->time_ns, err);
	if (s != BASE_OK)
		return s;
	if (moves_units(kind))
		tokens_follow(t, a, kind, v);
	if (!aside) {
		a->last_ns = v->time_ns;
		a->state = v->state;
		a->waits = kind == GRAPH_VERB_wait || kind == GRAPH_VERB_wait_empty ||
			   kind == GRAPH_VERB_wait_full;
	}
	return BASE_OK;
}

static enum base_status tokens_on_verb(void *ctx, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	struct graph_tokens *t = ctx;
	enum base_status s = t->counts ? follow_verb(t, kind, v, err) : BASE_OK;
	if (s != BASE_OK)
		return s;
	return t->next ? t->next->verb(t->next->ctx, kind, v, from_actor, err) : BASE_OK;
}

/* ---- what only the next one hears ------------------------------------------------------------ */

static enum base_status on_processor(
	void *ctx, uint32_t queue, uint64_t number, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tokens *)ctx)->next;
	return next->processor ? next->processor(next->ctx, queue, number, err) : BASE_OK;
}

static enum base_status on_processor_set(
	void *ctx, uint32_t set, const uint64_t *bits, size_t nr_words, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tokens *)ctx)->next;
	return next->processor_set(next->ctx, set, bits, nr_words, err);
}

static enum base_status on_affinity(void *ctx, uint32_t actor, uint32_t set, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tokens *)ctx)->next;
	return next->affinity(next->ctx, actor, set, err);
}

static enum base_status on_recording(void *ctx, uint32_t actor, uint64_t ns, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tokens *)ctx)->next;
	return next->recording(next->ctx, actor, ns, err);
}

static enum base_status on_late(void *ctx, uint32_t actor, int64_t ns, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tokens *)ctx)->next;
	return next->late(next->ctx, actor, ns, err);
}

enum base_status graph_tokens_new(
	const struct graph_sink *next, struct graph_tokens **ret, struct base_err *err)
{
	struct graph_tokens *t = *ret = base_alloc(sizeof *t);
	if (!t)
		return tokens_no_memory(BASE_ERR_NOMEM, err);
	t->next = next;
	t->sink = (struct graph_sink){.ctx = t,
		.counts = next && next->counts,
		.state = on_state,
		.queue = tokens_on_queue,
		.verb = tokens_on_verb};
	if (next && next->affinity) {
		t->sink.processor = on_processor;
		t->sink.processor_set = on_processor_set;
		t->sink.affinity = on_affinity;
	}
	if (next && next->recording)
		t->sink.recording = on_recording;
	if (next && next->late)
		t->sink.late = on_late;
	return BASE_OK;
}

struct graph_tokens *graph_tokens_free(struct graph_tokens *t)
{
	for (size_t i = 0; t && i < t->nr_pools; i++)
		base_free(t->pool[i].held_ns);
	if (t) {
		base_free(t->pool);
		base_free(t->actor);
	}
	base_free(t);
	return NULL;
}

const struct graph_sink *graph_tokens_sink(struct graph_tokens *t)
{
	return &t->sink;
}

/* ---- the bound ------------------------------------------------------------------------------- */

static double tokens_factor_of(const struct graph_scenario *edits, uint32_t state)
{
	double factor = 1;
	for (size_t i = 0; edits && i < edits->nr_edits; i++) {
		const struct graph_edit *e = &edits->edit[i];
		if (e->id != state)
			continue;
		if (e->kind == GRAPH_EDIT_SCALE_STATE)
			factor *= e->factor;
		else if (e->kind == GRAPH_EDIT_ELIDE_STATE)
			factor = 0;
	}
	return factor;
}

/* 0: as many as anybody wants. */
static double tokens_of(const struct pool *p, const struct graph_scenario *edits, uint32_t queue)
{
	double nr = (double)p->most;
	for (size_t i = 0; edits && i < edits->nr_edits; i++) {
		const struct graph_edit *e = &edits->edit[i];
		bool of_queue = e->id == queue;
		if (of_queue && e->kind == GRAPH_EDIT_RESIZE_QUEUE)
			nr += (double)e->units;
		else if (of_queue && (e->kind == GRAPH_EDIT_UNBOUND_QUEUE ||
					     e->kind == GRAPH_EDIT_IGNORE_QUEUE))
			return 0;
	}
	return nr;
}

struct graph_tokens_bound graph_tokens_bound(
	const struct graph_tokens *t, const struct graph_scenario *edits)
{
	struct graph_tokens_bound best = {0};
	for (uint32_t q = 0; q < t->nr_pools; q++) {
		const struct pool *p = &t->pool[q];
		struct graph_tokens_bound b = {.queue = q};
		double nr = p->counts ? tokens_of(p, edits, q) : 0;
		for (uint32_t k = 0; nr > 0 && k < p->capacity; k++) {
			double ns = p->held_ns[k] ? (double)p->held_ns[k] *
							    tokens_factor_of(edits, k) / nr
						  : 0;
			b.length_ns += ns;
			if (ns > b.state_ns) {
				b.state_ns = ns;
				b.state = k;
			}
		}
		if (b.length_ns > best.length_ns)
			best = b;
	}
	return best;
}
