/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_wait.c - loops that only wait go round until what ends them has happened here.
 *
 * A thread that comes to a last poll too early executes a round, and looks again. Then it is taken
 * off the heap until the store is there: what it would execute meanwhile changes nothing, so it is
 * a run of plain instructions, in whole rounds. The last poll begins when the store takes the line
 * away, or less than a round before, and gets it when the store is complete.
 * (So polls between the first one and the last one load nothing; loops that poll by exchanges
 * would.)
 */
#include "slack/machine_private.h"
#include "slack/waits.h"

struct waiting { /* a lane */
	const struct slack_wait_event *next, *end;
	const struct slack_wait_event *on; /* what it waits for; NULL: nothing */
	uint64_t rounds_until;             /* a cycle: it goes round until then; 0: not */
	bool polled, forced;
	bool posts;  /* the item that runs does */
	uint64_t at; /* when */
};
struct slack_waiter {
	const struct slack_waits *waits;
	bool *posted; /* by post */
	bool *taken;  /* by word */
	uint32_t nr_parked;
	struct waiting lane[];
};

enum base_status slack_wait_init(struct slack_machine *m)
{
	const struct slack_waits *w = m->options.waits;
	if (!w)
		return BASE_OK;
	m->waiter = base_alloc(sizeof *m->waiter + (m->nr_lanes + 1) * sizeof(struct waiting));
	if (!m->waiter)
		return BASE_ERR_NOMEM;
	m->waiter->waits = w;
	m->waiter->posted = base_alloc(w->nr_posts + 1);
	m->waiter->taken = base_alloc(w->nr_words + 1);
	for (uint32_t i = 0; i < m->nr_lanes && i < w->nr_threads; i++) {
		m->waiter->lane[i].next = w->thread[i].event;
		m->waiter->lane[i].end =
			w->thread[i].nr ? w->thread[i].event + w->thread[i].nr : NULL;
	}
	return m->waiter->posted && m->waiter->taken ? BASE_OK : BASE_ERR_NOMEM;
}

void slack_wait_fini(struct slack_machine *m)
{
	if (!m->waiter)
		return;
	base_free(m->waiter->posted);
	base_free(m->waiter->taken);
	base_free(m->waiter);
	m->waiter = NULL;
}

static bool may_go(const struct slack_waiter *w, const struct slack_wait_event *e)
{
	return e->what == SLACK_WAIT_TAKE ? !w->taken[e->object] : w->posted[e->object];
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* One round: its poll, and what else is in it. */
static enum base_status go_round(struct slack_machine *m, struct lane *l,
	const struct slack_wait_event *e, struct base_err *err)
{
	const struct slack_wait_word *word = &m->waiter->waits->word[e->word];
	struct slack_access a = {.address = word->address,
		.code = word->site,
		.bytes = word->size_bytes,
		.kind = word->exchanges ? SLACK_ATOMIC : SLACK_LOAD,
		.instructions = 1,
		.loads = true,
		.stores = word->exchanges};
	l->respins = true;
	enum base_status s = slack_machine_node(m, l, &a, NULL, err);
	if (s == BASE_OK)
		s = slack_machine_plain(m, l, word->round_instructions - 1, word->site, err);
	l->respins = false;
	return s;
}

/* Whole rounds, as many as end before the cycle at which it was let go. */
static enum base_status go_on_round(
	struct slack_machine *m, struct lane *l, struct waiting *p, struct base_err *err)
{
	uint64_t round = m->waiter->waits->word[p->on->word].round_instructions;
	uint64_t until = p->rounds_until, nr = 0;
	p->rounds_until = 0;
	if (until > l->issue)
		nr = (until - l->issue) / round;
	l->respins = true;
	enum base_status s = slack_machine_plain(
		m, l, nr * round, m->waiter->waits->word[p->on->word].site, err);
	l->respins = false;
	return s;
}

/* It went round until `until`; nothing happens before `now`. */
static void let_go(struct slack_machine *m, struct lane *l, uint64_t until, uint64_t now)
{
	struct waiting *p = &m->waiter->lane[l - m->lane];
	p->rounds_until = until > l->issue ? until : l->issue;
	p->polled = false;
	m->waiter->nr_parked--;
	slack_machine_start(m, l, p->rounds_until > now ? p->rounds_until : now);
}

/* What is to be done before the event's item runs. */
static enum base_status machine_wait_wait_for(struct slack_machine *m, struct lane *l,
	struct waiting *p, const struct slack_wait_event *e, enum slack_wait_turn *ret,
	struct base_err *err)
{
	struct slack_processor_result *r = &m->result.processor[l - m->lane];
	enum base_status s = BASE_OK;
	*ret = SLACK_WAIT_AGAIN;
	if (p->rounds_until) {
		s = go_on_round(m, l, p, err);
	} else if (may_go(m->waiter, e) || p->forced) {
		if (p->on && m->spinner)
			slack_spin_ended(m, l);
		if (e->what == SLACK_WAIT_TAKE)
			m->waiter->taken[e->object] = true;
		p->on = NULL;
		p->polled = p->forced = false;
		*ret = SLACK_WAIT_RUN;
	} else if (!p->polled) {
		const struct slack_wait_word *word = &m->waiter->waits->word[e->word];
		r->rewaits += !p->on;
		if (!p->on && m->spinner)
			slack_spin_entered(m, l, word->address, word->round_instructions);
		p->on = e;
		p->polled = true;
		s = go_round(m, l, e, err);
	} else {
		l->state = LANE_SPINS;
		m->waiter->nr_parked++;
		*ret = SLACK_WAIT_PARKED;
	}
	return s;
}

/* ---- items ----------------------------------------------------------------------------------- */

static uint64_t position(const struct lane *l)
{
	return l->executed + l->ahead + l->tail;
}

bool slack_wait_skips(const struct slack_machine *m, const struct lane *l)
{
	const struct waiting *p = &m->waiter->lane[l - m->lane];
	for (const struct slack_wait_event *e = p->next; e != p->end; e++) {
		if (e->position > position(l))
			return false;
		if (e->what == SLACK_WAIT_SKIP && e->address > position(l))
			return true;
	}
	return false;
}

/* Leaves out what comes next, up to `until`: all iterations of a loop that are within at once. What
 * the block before still has to do is not of it. */
static enum base_status machine_wait_pass(struct slack_machine *m, struct lane *l,
	const struct memory_item *t, uint64_t from, uint64_t until, struct base_err *err)
{
	uint64_t instructions, left, tail = l->tail;
	l->tail = 0;
	enum base_status s = slack_machine_plain(m, l, tail, l->tail_code, err);
	if (memory_cursor_iteration(&l->cursor, &instructions, &left) && instructions) {
		uint64_t nr = (until - from) / instructions;
		nr = nr < left ? nr : left;
		if (nr > 1) {
			memory_cursor_pass(&l->cursor, nr - 1);
			l->ahead += (nr - 1) * instructions;
		}
	}
	l->ahead += t->instructions;
	return s;
}

static bool machine_wait_is_of(
	const struct slack_wait_event *e, const struct memory_item *t, uint64_t address)
{
	bool stores = e->what >= SLACK_WAIT_POST;
	return t->kind <= MEMORY_ATOMIC && e->address == address &&
	       t->kind != (stores ? MEMORY_LOAD : MEMORY_STORE);
}

enum base_status slack_wait_before(struct slack_machine *m, struct lane *l,
	const struct memory_item *t, enum slack_wait_turn *ret, struct base_err *err)
{
	struct waiting *p = &m->waiter->lane[l - m->lane];
	uint64_t from = position(l), to = from + t->instructions;
	enum base_status s = BASE_OK;
	*ret = SLACK_WAIT_RUN;
	p->posts = false;
	for (; p->next != p->end && s == BASE_OK && *ret == SLACK_WAIT_RUN; p->next++) {
		const struct slack_wait_event *e = p->next;
		if (e->what == SLACK_WAIT_SKIP ? e->position > from : e->position > to)
			break;
		if (e->what == SLACK_WAIT_SKIP && from < e->address) {
			s = machine_wait_pass(m, l, t, from, e->address, err);
			*ret = SLACK_WAIT_PASS;
			break;
		}
		if (e->what == SLACK_WAIT_SKIP || e->position < to)
			continue; /* it is behind us */
		if (!machine_wait_is_of(e, t, memory_cursor_address(&l->cursor, t)))
			break; /* of another item that ends here */
		if (e->what >= SLACK_WAIT_POST) {
			p->posts = true;
			p->at = to > from ? l->issue + t->instructions - 1 : l->issue;
			break;
		}
		s = machine_wait_wait_for(m, l, p, e, ret, err);
		if (*ret != SLACK_WAIT_RUN)
			break;
	}
	return s;
}

static void wake_those(struct slack_machine *m, uint64_t at, uint64_t now)
{
	for (uint32_t i = 0; i < m->nr_lanes && m->waiter->nr_parked; i++)
		if (m->lane[i].state == LANE_SPINS && may_go(m->waiter, m->waiter->lane[i].on))
			let_go(m, &m->lane[i], at, now);
}

void slack_wait_after(struct slack_machine *m, struct lane *l)
{
	struct waiting *p = &m->waiter->lane[l - m->lane];
	if (BASE_LIKELY(!p->posts))
		return;
	uint64_t at = p->next->position, address = p->next->address;
	for (; p->next != p->end && p->next->position == at && p->next->address == address;
		p->next++) {
		if (p->next->what == SLACK_WAIT_POST)
			m->waiter->posted[p->next->object] = true;
		else if (p->next->what == SLACK_WAIT_GIVE)
			m->waiter->taken[p->next->object] = false;
	}
	p->posts = false;
	wake_those(m, p->at, l->time);
}

bool slack_wait_force(struct slack_machine *m)
{
	struct lane *best = NULL;
	for (uint32_t i = 0; m->waiter && i < m->nr_lanes; i++)
		if (m->lane[i].state == LANE_SPINS && (!best || m->lane[i].issue < best->issue))
			best = &m->lane[i];
	if (!best)
		return false;
	m->waiter->lane[best - m->lane].forced = true;
	m->result.forced++;
	let_go(m, best, best->issue, best->issue);
	return true;
}
