/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_runs.c - loops that several threads are in at the same time, offered as a whole.
 *
 * An offer reaches up to a clock before which no thread leaves its loop, so it never ends a loop, a
 * batch or a thread: the last instruction of each comes as a step. By recorded times only one
 * thread runs at a time; its loop is offered up to the last iteration.
 */
#include "memory/order/order_private.h"

enum {
	WINDOW_FIRST = 256, /* instructions of a thread */
	WINDOW_MAX = 1 << 16,
	ITEMS_LEAST = 32, /* of a thread; fewer are not worth the looking */
	TURNS_LEAST = 4,
	PAUSE_FIRST = 16,  /* turns of threads until the next question */
	PAUSE_SHORT = 256, /* at most, when loops are short: the next one may be longer */
	PAUSE_MAX = 1 << 14,
};

struct memory_runs {
	uint64_t pause; /* turns to wait after the next refusal */
	uint64_t window, until;
	bool offered; /* and not taken yet */
	size_t nr;
	struct memory_piece piece[];
};

enum base_status memory_order_allow_runs(struct memory_order *o, struct base_err *err)
{
	if (o->runs || o->scheduler || o->source->info.flags & MEMORY_SOURCE_TOTAL_ORDER)
		return BASE_OK;
	o->runs = base_alloc(sizeof *o->runs + o->nr_cpus * sizeof *o->runs->piece);
	if (!o->runs)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for runs of %u {thread|threads}",
			o->nr_cpus);
	o->runs->window = WINDOW_FIRST;
	o->runs->pause = PAUSE_FIRST;
	o->turns = 0;
	return BASE_OK;
}

static uint32_t first_processor(const struct memory_order *o)
{
	return memory_key_cpu(base_turns_least(&o->due));
}

/* ---- positions in a loop --------------------------------------------------------------------- */

/* An iteration's instructions; 0: it has none, or items that are no part of a piece. */
static uint64_t instructions_of(const struct memory_item *item, uint32_t nr)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < nr; i++) {
		if (item[i].kind > MEMORY_PROC_RETURN)
			return 0;
		sum += item[i].instructions;
	}
	return sum;
}

/* Instructions of a body before an item. */
static uint64_t order_runs_before(const struct memory_piece *p, uint32_t item)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < item; i++)
		sum += p->item[i].instructions;
	return sum;
}

static bool order_runs_is_empty(const struct memory_piece *p)
{
	return p->end == p->begin && p->end_item == p->begin_item;
}

/* The piece ends before its first item that is due at `until` or later. */
static void order_runs_cut(struct memory_piece *p, uint64_t until)
{
	uint64_t start = p->clock + p->begin * p->per_iteration;
	/* Iterations that are surely over by then: a block may be due right behind its own. */
	uint64_t whole = until > start ? (until - start) / p->per_iteration : 0;
	whole -= whole != 0;
	uint64_t iteration = p->begin + whole;
	uint32_t i = whole ? 0 : p->begin_item;
	for (;;) {
		uint64_t after = p->clock + iteration * p->per_iteration + order_runs_before(p, i);
		for (; i < p->nr_items; i++) {
			after += p->item[i].instructions;
			if (memory_item_due(&p->item[i], after) >= until) {
				p->end = iteration;
				p->end_item = i;
				return;
			}
		}
		i = 0;
		iteration++;
	}
}

/* ---- offers ---------------------------------------------------------------------------------- */

/* Not worth it, or not wanted: after some turns again. */
static void wait(struct memory_order *o, uint64_t most)
{
	struct memory_runs *r = o->runs;
	o->turns = r->pause < most ? r->pause : most;
	r->pause = r->pause < PAUSE_MAX ? 2 * r->pause : PAUSE_MAX;
}

/* What is left of the loop that a lane is in; false: it is in none that could be a piece. */
static bool order_runs_look_at(const struct memory_order *o, uint32_t cpu, struct memory_piece *ret)
{
	const struct memory_lane *l = o->cpu[cpu].lane;
	const struct memory_cursor *c = &l->cursor;
	if (!c->nr_body || c->batch.item[c->at].count - c->iteration < 2)
		return false;
	*ret = (struct memory_piece){.item = &c->batch.item[c->at + 1],
		.nr_items = (uint32_t)c->nr_body,
		.begin_item = (uint32_t)c->body_at,
		.begin = c->iteration,
		.end = c->batch.item[c->at].count - 1,
		.thread = (uint16_t)cpu,
		.stream = (uint16_t)(l - o->lane)};
	ret->per_iteration = instructions_of(ret->item, ret->nr_items);
	ret->clock = o->cpu[cpu].clock - order_runs_before(ret, ret->begin_item) -
		     c->iteration * ret->per_iteration;
	return ret->per_iteration != 0;
}

/* By recorded times: the thread whose turn it is. */
static uint64_t offer_one(struct memory_order *o)
{
	struct memory_runs *r = o->runs;
	uint32_t cpu = first_processor(o);
	if (!order_runs_look_at(o, cpu, &r->piece[0]))
		return 0;
	struct memory_piece *p = &r->piece[0];
	r->nr = 1;
	r->until = UINT64_MAX;
	if (p->end - p->begin > WINDOW_MAX)
		p->end = p->begin + WINDOW_MAX;
	return (p->end - p->begin) * p->nr_items;
}

static uint64_t offer_all(struct memory_order *o)
{
	struct memory_runs *r = o->runs;
	uint64_t first = base_turns_least(&o->due) >> KEY_BITS, until = first + r->window,
		 items = 0;
	r->nr = 0;
	for (uint32_t i = 0; i < base_turns_nr(&o->due); i++) {
		uint32_t cpu = memory_key_cpu(base_turns_at(&o->due, i));
		struct memory_piece *p = &r->piece[r->nr];
		/* In no loop: its next item. */
		uint64_t last = base_turns_at(&o->due, i) >> KEY_BITS;
		if (order_runs_look_at(o, cpu, p)) {
			/* The loop's last instruction is not in the piece. */
			last = p->clock + (p->end + 1) * p->per_iteration - 1;
			r->nr++;
		}
		until = last < until ? last : until;
	}
	if (until <= first)
		return 0;
	for (size_t i = 0; i < r->nr; i++) {
		order_runs_cut(&r->piece[i], until);
		items += (r->piece[i].end - r->piece[i].begin) * r->piece[i].nr_items;
	}
	r->until = until;
	return items;
}

bool memory_order_offer(struct memory_order *o, struct memory_steps *ret)
{
	struct memory_runs *r = o->runs;
	bool one = o->options.mode == MEMORY_ORDER_TIME;
	if (!r) {
		o->turns = UINT64_MAX;
		return false;
	}
	if (r->offered) {
		r->offered = false;
		r->window = WINDOW_FIRST;
		wait(o, PAUSE_MAX);
		return false;
	}
	o->turns = TURNS_LEAST;
	if (!o->phase_open || !o->cpu[first_processor(o)].lane->cursor.nr_body)
		return false;
	o->turns = 0;
	uint64_t items = one ? offer_one(o) : offer_all(o);
	if (items < (uint64_t)ITEMS_LEAST * (one ? 1 : base_turns_nr(&o->due))) {
		wait(o, PAUSE_SHORT);
		return false;
	}
	r->offered = true;
	ret->piece = r->piece;
	ret->nr_pieces = r->nr;
	ret->until = r->until;
	ret->order = o;
	return true;
}

/* ---- taken ----------------------------------------------------------------------------------- */

static void order_runs_move(struct memory_order *o, const struct memory_piece *p)
{
	struct memory_cpu *cpu = &o->cpu[p->thread];
	struct memory_cursor *c = &cpu->lane->cursor;
	c->iteration = p->end;
	c->body_at = p->end_item;
	cpu->clock = p->clock + p->end * p->per_iteration + order_runs_before(p, p->end_item);
}

static uint64_t key_now(void *order, uint64_t key)
{
	const struct memory_order *o = order;
	uint32_t cpu = memory_key_cpu(key);
	return memory_order_lane_key(o, cpu, memory_cursor_item(&o->cpu[cpu].lane->cursor));
}

void memory_order_take(struct memory_order *o, uint64_t until)
{
	struct memory_runs *r = o->runs;
	bool shorter = until < r->until;
	uint64_t taken = 0;
	for (size_t i = 0; i < r->nr; i++) {
		struct memory_piece *p = &r->piece[i];
		if (shorter)
			order_runs_cut(p, until);
		taken += (p->end - p->begin) * p->nr_items;
		if (!order_runs_is_empty(p))
			order_runs_move(o, p);
	}
	base_turns_renew(&o->due, key_now, o);
	if (taken < ITEMS_LEAST)
		return;
	r->offered = false;
	r->pause = PAUSE_FIRST;
	r->window *= shorter ? 1 : 2;
	r->window = r->window < WINDOW_MAX ? r->window : WINDOW_MAX;
}
