/* SPDX-License-Identifier: Apache-2.0 */
/* tape.c - verbs as a few bytes each, in the order in which they came, and back. */
#include "graph/tape.h"

#include <string.h>

enum {
	CHUNK_BYTES = 1 << 18,
	ENTRY_BYTES_MAX = 128, /* 12 varints of at most 10 bytes, and the head */
	/* Heads: below GRAPH_VERB_NR a verb's kind, else what is declared. */
	DECLARES_STATE = 14,
	DECLARES_QUEUE = 15,
	HEAD_KIND = 15,
	HEAD_SAME_ACTOR = 16, /* as the verb before */
	HEAD_FLAGS = 32,      /* not 0 */
	HEAD_ONE = 64,        /* n is 1 */
	HEAD_MORE = 128,      /* something of what most verbs lack */
};
_Static_assert((int)GRAPH_VERB_NR <= (int)DECLARES_STATE, "a verb's kind fits its head");

struct chunk {
	struct chunk *next;
	size_t length;
	uint8_t byte[CHUNK_BYTES];
};
struct tape_place { /* what the next entry is told relative to */
	uint64_t time_ns;
	uint32_t actor;
};
struct graph_tape {
	struct graph_sink sink;
	const struct graph_sink *next;
	struct chunk *first, *last;
	struct graph_queue_options *queue; /* in the order of their ids */
	size_t nr_queues, queue_capacity;
	size_t max_bytes, nr_bytes;
	struct tape_place at;
	bool given_up;
};

/* ---- writing --------------------------------------------------------------------------------- */

static void give_up(struct graph_tape *t)
{
	while (t->first) {
		struct chunk *c = t->first;

		t->first = c->next;
		base_free(c);
	}
	t->last = NULL;
	t->nr_bytes = 0;
	t->given_up = true;
}

/* Where the next entry goes; NULL: the tape is given up. */
static uint8_t *tape_room(struct graph_tape *t)
{
	struct chunk *c = t->last;

	if (BASE_LIKELY(c && c->length + ENTRY_BYTES_MAX <= CHUNK_BYTES))
		return c->byte + c->length;
	if (t->given_up)
		return NULL;
	c = t->nr_bytes + sizeof *c <= t->max_bytes ? base_alloc(sizeof *c) : NULL;
	if (!c) {
		give_up(t);
		return NULL;
	}
	t->nr_bytes += sizeof *c;
	if (t->last)
		t->last->next = c;
	else
		t->first = c;
	t->last = c;
	return c->byte;
}

static void tape_wrote(struct graph_tape *t, const uint8_t *end)
{
	t->last->length = (size_t)(end - t->last->byte);
}

static void put_declaration(struct graph_tape *t, uint8_t head)
{
	uint8_t *p = tape_room(t);

	if (!p)
		return;
	*p++ = head;
	tape_wrote(t, p);
}

static void put_verb(struct graph_tape *t, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor)
{
	uint8_t *p = tape_room(t), head = (uint8_t)kind;

	if (!p)
		return;
	bool more = v->tag || v->key || v->came_ns || v->came_state || from_actor;

	head |= (v->actor == t->at.actor ? HEAD_SAME_ACTOR : 0) | (v->flags ? HEAD_FLAGS : 0) |
		(v->n == 1 ? HEAD_ONE : 0) | (more ? HEAD_MORE : 0);
	*p++ = head;
	p = base_put_uvarint(p, base_zigzag((int64_t)(v->time_ns - t->at.time_ns)));
	if (!(head & HEAD_SAME_ACTOR))
		p = base_put_uvarint(p, v->actor);
	p = base_put_uvarint(p, v->state);
	p = base_put_uvarint(p, (uint32_t)(v->queue + 1)); /* (often none: UINT32_MAX) */
	if (head & HEAD_FLAGS)
		p = base_put_uvarint(p, v->flags);
	if (!(head & HEAD_ONE))
		p = base_put_uvarint(p, base_zigzag(v->n));
	if (more) {
		p = base_put_uvarint(p, v->tag);
		p = base_put_uvarint(p, v->key);
		p = base_put_uvarint(p, v->came_ns);
		p = base_put_uvarint(p, v->came_state);
		p = base_put_uvarint(p, from_actor);
	}
	tape_wrote(t, p);
	t->at = (struct tape_place){.time_ns = v->time_ns, .actor = v->actor};
}

/* ---- the sink -------------------------------------------------------------------------------- */

static enum base_status tape_on_state(
	void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	struct graph_tape *t = ctx;

	put_declaration(t, DECLARES_STATE);
	return t->next && t->next->state ? t->next->state(t->next->ctx, state, executes, err)
					 : BASE_OK;
}

static enum base_status tape_on_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct graph_tape *t = ctx;

	if (!t->given_up && base_grow(&t->queue, &t->queue_capacity, t->nr_queues + 1,
				    sizeof *t->queue) != BASE_OK)
		give_up(t);
	if (!t->given_up) {
		t->queue[t->nr_queues++] = *o;
		put_declaration(t, DECLARES_QUEUE);
	}
	return t->next ? t->next->queue(t->next->ctx, queue, o, err) : BASE_OK;
}

static enum base_status tape_on_verb(void *ctx, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	struct graph_tape *t = ctx;

	put_verb(t, kind, v, from_actor);
	return t->next ? t->next->verb(t->next->ctx, kind, v, from_actor, err) : BASE_OK;
}

/* What only the next one hears. */
static enum base_status tape_on_processor(
	void *ctx, uint32_t queue, uint64_t number, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tape *)ctx)->next;

	return next->processor(next->ctx, queue, number, err);
}

static enum base_status tape_on_processor_set(
	void *ctx, uint32_t set, const uint64_t *bits, size_t nr_words, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tape *)ctx)->next;

	return next->processor_set(next->ctx, set, bits, nr_words, err);
}

static enum base_status tape_on_affinity(
	void *ctx, uint32_t actor, uint32_t set, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tape *)ctx)->next;

	return next->affinity(next->ctx, actor, set, err);
}

static enum base_status tape_on_recording(
	void *ctx, uint32_t actor, uint64_t ns, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tape *)ctx)->next;

	return next->recording(next->ctx, actor, ns, err);
}

static enum base_status tape_on_late(void *ctx, uint32_t actor, int64_t ns, struct base_err *err)
{
	const struct graph_sink *next = ((struct graph_tape *)ctx)->next;

	return next->late(next->ctx, actor, ns, err);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

enum base_status graph_tape_new(const struct graph_sink *next, size_t max_bytes,
	struct graph_tape **ret, struct base_err *err)
{
	struct graph_tape *t = *ret = base_alloc(sizeof *t);

	if (!t)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the graph's verbs");
	t->next = next;
	t->max_bytes = max_bytes;
	t->sink = (struct graph_sink){.ctx = t,
		.counts = next && next->counts,
		.state = tape_on_state,
		.queue = tape_on_queue,
		.verb = tape_on_verb,
		.processor = next && next->processor ? tape_on_processor : NULL,
		.processor_set = next && next->processor_set ? tape_on_processor_set : NULL,
		.affinity = next && next->affinity ? tape_on_affinity : NULL,
		.recording = next && next->recording ? tape_on_recording : NULL,
		.late = next && next->late ? tape_on_late : NULL};
	return BASE_OK;
}

struct graph_tape *graph_tape_free(struct graph_tape *t)
{
	if (!t)
		return NULL;
	give_up(t);
	base_free(t->queue);
	base_free(t);
	return NULL;
}

const struct graph_sink *graph_tape_sink(struct graph_tape *t)
{
	return &t->sink;
}

bool graph_tape_is_whole(const struct graph_tape *t)
{
	return !t->given_up;
}

size_t graph_tape_bytes(const struct graph_tape *t)
{
	return t->nr_bytes + t->queue_capacity * sizeof *t->queue;
}

/* ---- playing --------------------------------------------------------------------------------- */

static enum base_status play_actors(struct graph *g, uint32_t actor, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint32_t id;

	while (!s && graph_nr_actors(g) <= actor)
		s = graph_add_actor(g, &id, err);
	return s;
}

static inline uint64_t next_number(const uint8_t **p)
{
	uint64_t v = 0;
	unsigned shift = 0;

	while (**p & 0x80) { /* (of ours: no need to look for mistakes) */
		v |= (uint64_t)(*(*p)++ & 0x7f) << shift;
		shift += 7;
	}
	return v | (uint64_t) * (*p)++ << shift;
}

static enum base_status play_verb(
	struct graph *g, const uint8_t **p, struct tape_place *at, struct base_err *err)
{
	uint8_t head = *(*p)++;
	uint32_t from = 0;
	struct graph_verb v = {.n = 1};

	v.time_ns = at->time_ns + (uint64_t)base_unzigzag(next_number(p));
	v.actor = head & HEAD_SAME_ACTOR ? at->actor : (uint32_t)next_number(p);
	v.state = (uint32_t)next_number(p);
	v.queue = (uint32_t)next_number(p) - 1;
	if (head & HEAD_FLAGS)
		v.flags = (uint32_t)next_number(p);
	if (!(head & HEAD_ONE))
		v.n = base_unzigzag(next_number(p));
	if (head & HEAD_MORE) {
		v.tag = (uint32_t)next_number(p);
		v.key = next_number(p);
		v.came_ns = next_number(p);
		v.came_state = (uint32_t)next_number(p);
		from = (uint32_t)next_number(p);
	}
	*at = (struct tape_place){.time_ns = v.time_ns, .actor = v.actor};
	uint32_t most = from > v.actor ? from : v.actor;

	if (BASE_UNLIKELY(most >= graph_nr_actors(g))) {
		enum base_status s = play_actors(g, most, err);

		if (s)
			return s;
	}
	return graph_apply(g, (enum graph_verb_kind)(head & HEAD_KIND), &v, from, err);
}

static enum base_status play_all(const struct graph_tape *t, struct graph *g, struct base_err *err)
{
	struct tape_place at = {0};
	size_t nr_queues = 0;
	uint32_t id;
	enum base_status s = BASE_OK;

	for (const struct chunk *c = t->first; c && !s; c = c->next) {
		const uint8_t *p = c->byte, *end = c->byte + c->length;

		while (p < end && !s) {
			if ((*p & HEAD_KIND) == DECLARES_STATE) {
				p++;
				s = graph_add_state(g, &id, err);
			} else if ((*p & HEAD_KIND) == DECLARES_QUEUE) {
				p++;
				s = graph_add_queue(g, &t->queue[nr_queues++], &id, err);
			} else {
				s = play_verb(g, &p, &at, err);
			}
		}
	}
	return s;
}

enum base_status graph_tape_play(const struct graph_tape *t, const struct graph_options *o,
	uint32_t end_actor, struct graph **ret, struct base_err *err)
{
	struct graph *g = NULL;

	BASE_ASSERT(!t->given_up);
	enum base_status s = graph_new(o, &g, err);

	if (s || !g)
		return s;
	s = play_all(t, g, err);
	if (!s)
		s = graph_finish(g, end_actor, err);
	if (s)
		graph_free(g);
	else
		*ret = g;
	return s;
}
