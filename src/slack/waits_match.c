/* SPDX-License-Identifier: Apache-2.0 */
/* waits_match.c - locks by how they are used, flags by what was stored between two looks. */
#include "slack/waits_private.h"

#include <stdlib.h>
#include <string.h>

struct stores { /* to a word, by anybody, in order */
	struct seen **store;
	size_t nr;
	uint64_t first_exchange_ns;
	bool exchanged, given, broken;
};
enum role { NO_ROLE, TAKES, GIVES };
enum gap_state { GAP_OPEN, GAP_KNOWN, GAP_SEVERAL };
struct matcher {
	struct collector *c;
	struct slack_waits *r;
	const struct slack_spins *spins;
	struct stores *word;
	struct seen **all;
	struct seen **held;    /* of a thread, by word: its last exchange */
	uint32_t *known;       /* of a thread, by word: the last store that it has seen, plus 1 */
	uint8_t *gap;          /* of a thread: enum gap_state */
	struct base_map locks; /* their addresses */
	struct base_map roles; /* (word, code of an exchange): enum role */
	bool serial;
};

static int in_program_order(const void *x, const void *y)
{
	const struct seen *a = x, *b = y;
	if (a->position != b->position)
		return a->position < b->position ? -1 : 1;
	return (a->kind != SEEN_POLL) - (b->kind != SEEN_POLL);
}

static int waits_match_in_order(const void *x, const void *y)
{
	const struct seen *a = *(struct seen *const *)x, *b = *(struct seen *const *)y;
	if (a->word != b->word)
		return a->word < b->word ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->position < b->position ? -1 : a->position > b->position;
}

static int by_position(const void *x, const void *y)
{
	const struct slack_wait_event *a = x, *b = y;
	if (a->position != b->position)
		return a->position < b->position ? -1 : 1;
	return (int)a->what - (int)b->what;
}

static enum base_status waits_match_add_event(
	struct matcher *m, uint32_t thread, const struct slack_wait_event *e, struct base_err *err)
{
	struct slack_wait_thread *t = &m->r->thread[thread];
	if (base_grow(&t->event, &t->capacity, t->nr + 1, sizeof *t->event) != BASE_OK)
		return slack_waits_no_memory(err);
	t->event[t->nr++] = *e;
	return BASE_OK;
}

/* ---- stores of each word --------------------------------------------------------------------- */

static enum base_status waits_match_gather(struct matcher *m, struct base_err *err)
{
	size_t nr = 0, at = 0;
	for (uint32_t i = 0; i < m->r->nr_threads; i++) {
		struct seen_list *l = &m->c->list[i];
		if (l->nr)
			qsort(l->seen, l->nr, sizeof *l->seen, in_program_order);
		nr += l->nr;
	}
	m->all = base_alloc((nr + 1) * sizeof *m->all);
	if (!m->all || nr > UINT32_MAX / 2)
		return slack_waits_no_memory(err);
	for (uint32_t i = 0; i < m->r->nr_threads; i++)
		for (size_t k = 0; k < m->c->list[i].nr; k++)
			if (m->c->list[i].seen[k].kind != SEEN_POLL)
				m->all[at++] = &m->c->list[i].seen[k];
	if (at)
		qsort(m->all, at, sizeof *m->all, waits_match_in_order);
	for (size_t i = 0; i < at; i++) {
		struct stores *w = &m->word[m->all[i]->word];
		w->store = w->store ? w->store : &m->all[i];
		if (m->all[i]->kind == SEEN_EXCHANGE && !w->exchanged) {
			w->exchanged = true;
			w->first_exchange_ns = m->all[i]->from_ns;
		}
		m->all[i]->index = (uint32_t)w->nr++;
	}
	return BASE_OK;
}

/* ---- locks ----------------------------------------------------------------------------------- */

static enum role waits_match_role_of(const struct matcher *m, const struct seen *s)
{
	uint64_t role = NO_ROLE;
	if (s->kind == SEEN_STORE)
		return GIVES;
	if (s->kind == SEEN_EXCHANGE)
		(void)base_map_get(&m->roles, s->word, s->code, &role);
	return (enum role)role;
}

/* What an exchange is for is told by what the thread did to the word before. */
static enum base_status give_roles(
	struct matcher *m, const struct seen_list *l, struct base_err *err)
{
	memset(m->held, 0, m->r->nr_words * sizeof(struct seen *));
	for (size_t i = 0; i < l->nr; i++) {
		struct seen *s = &l->seen[i], **held = &m->held[s->word];
		enum role role = waits_match_role_of(m, s);
		if (s->kind == SEEN_EXCHANGE && !role) {
			role = *held ? GIVES : TAKES;
			if (base_map_put(&m->roles, s->word, s->code, role) != BASE_OK)
				return slack_waits_no_memory(err);
		}
		if (role)
			*held = role == TAKES ? s : NULL;
	}
	return BASE_OK;
}

/* Each thread gives back only what it took; but for the word's beginning. */
static void judge_locks(struct matcher *m, const struct seen_list *l)
{
	memset(m->held, 0, m->r->nr_words * sizeof(struct seen *));
	for (size_t i = 0; i < l->nr; i++) {
		struct seen *s = &l->seen[i], **held = &m->held[s->word];
		struct stores *w = &m->word[s->word];
		enum role role = waits_match_role_of(m, s);
		bool begins = s->kind == SEEN_STORE || s->kind == SEEN_RANGE;
		if (s->kind == SEEN_POLL)
			continue;
		if (role == GIVES && *held)
			w->given = true;
		else if (role != TAKES)
			w->broken |= !begins || !w->exchanged || s->from_ns > w->first_exchange_ns;
		*held = role == TAKES ? s : NULL;
	}
}

static enum base_status use_lock(
	struct matcher *m, const struct seen *s, enum slack_wait_what what, struct base_err *err)
{
	return waits_match_add_event(m, s->thread,
		&(struct slack_wait_event){.position = s->position,
			.address = s->address,
			.object = s->word,
			.word = s->word,
			.what = (uint8_t)what},
		err);
}

static enum base_status use_locks(
	struct matcher *m, const struct seen_list *l, struct base_err *err)
{
	enum base_status s = BASE_OK;
	memset(m->held, 0, m->r->nr_words * sizeof(struct seen *));
	for (size_t i = 0; i < l->nr && s == BASE_OK; i++) {
		struct seen *x = &l->seen[i], **held = &m->held[x->word];
		enum role role = waits_match_role_of(m, x);
		if (!m->r->word[x->word].lock || !role)
			continue;
		if (role == GIVES && *held) {
			s = use_lock(m, *held, SLACK_WAIT_TAKE, err);
			if (s == BASE_OK)
				s = use_lock(m, x, SLACK_WAIT_GIVE, err);
			m->r->locks++;
		}
		*held = role == TAKES ? x : NULL;
	}
	return s;
}

/* ---- flags ----------------------------------------------------------------------------------- */

static enum base_status post_of(struct matcher *m, uint32_t thread, uint64_t position,
	uint64_t address, uint32_t *ret, struct base_err *err)
{
	struct slack_wait_event post = {.position = position,
		.address = address,
		.object = ++m->r->nr_posts,
		.what = SLACK_WAIT_POST};
	*ret = post.object;
	return waits_match_add_event(m, thread, &post, err);
}

/* The thread that stores came last to where all had to come. */
static enum base_status order_arrivals(
	struct matcher *m, const struct seen *poll, const struct seen *store, struct base_err *err)
{
	const struct indivisible *a = &poll->before, *b = &store->before;
	uint32_t post;
	uint64_t lock;
	if (!a->position || !b->position || a->address != b->address || a->ns > b->ns)
		return BASE_OK;
	if (base_map_get(&m->locks, 0, a->address, &lock))
		return BASE_OK;
	enum base_status s = post_of(m, poll->thread, a->position, a->address, &post, err);
	m->r->barriers++;
	return s == BASE_OK ? waits_match_add_event(m, store->thread,
				      &(struct slack_wait_event){.position = b->position,
					      .address = b->address,
					      .object = post,
					      .word = poll->word,
					      .what = SLACK_WAIT_AWAIT},
				      err)
			    : s;
}

static enum base_status known_end(
	struct matcher *m, const struct seen *poll, struct seen *store, struct base_err *err)
{
	enum base_status s = BASE_OK;
	if (!store->post)
		s = post_of(m, store->thread, store->position, store->address, &store->post, err);
	struct slack_wait_event await = {.position = poll->position,
		.address = poll->address,
		.object = store->post,
		.word = poll->word,
		.what = SLACK_WAIT_AWAIT};
	if (s == BASE_OK)
		s = waits_match_add_event(m, poll->thread, &await, err);
	m->r->flags++;
	return s == BASE_OK ? order_arrivals(m, poll, store, err) : s;
}

/* Other threads' stores that the poll may have been the first to read: how many, and one of them.
 */
static size_t choices(struct matcher *m, const struct seen *poll, struct seen **ret)
{
	const struct stores *w = &m->word[poll->word];
	uint32_t from = m->known[poll->word];
	size_t nr = 0;
	if (poll->vain)
		for (uint32_t i = from; i < w->nr && w->store[i]->from_ns < poll->vain_ns; i++)
			if (w->store[i]->to_ns < poll->vain_ns)
				from = i + 1;
	m->known[poll->word] = from;
	for (uint32_t i = from; i < w->nr && w->store[i]->from_ns <= poll->to_ns; i++) {
		bool after = m->serial && w->store[i]->from_ns == poll->to_ns;
		if (w->store[i]->thread == poll->thread || after)
			continue;
		*ret = w->store[i];
		nr++;
	}
	return nr;
}

static void mark_gap(struct matcher *m, const struct seen *poll, enum gap_state state)
{
	if (poll->gap && m->gap[poll->gap - 1] < state)
		m->gap[poll->gap - 1] = (uint8_t)state;
}

static enum base_status end_of_wait(
	struct matcher *m, const struct seen *poll, struct base_err *err)
{
	struct seen *store = NULL;
	const struct stores *w = &m->word[poll->word];
	if (m->r->word[poll->word].lock) {
		mark_gap(m, poll, GAP_KNOWN);
		return BASE_OK;
	}
	size_t nr = choices(m, poll, &store);
	if (nr == 1 && store->kind != SEEN_RANGE) {
		mark_gap(m, poll, GAP_KNOWN);
		m->known[poll->word] = store->index + 1;
		return known_end(m, poll, store, err);
	}
	if (nr)
		mark_gap(m, poll, GAP_SEVERAL);
	for (uint32_t i = m->known[poll->word]; i < w->nr && w->store[i]->to_ns < poll->from_ns;
		i++)
		m->known[poll->word] = i + 1;
	return BASE_OK;
}

/* Rounds whose end is known need not be executed as they were recorded. */
static enum base_status skip_gaps(struct matcher *m, uint32_t thread, struct base_err *err)
{
	const struct slack_spin_thread *t = &m->spins->thread[thread];
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < t->nr && s == BASE_OK; i++) {
		m->r->several += m->gap[i] == GAP_SEVERAL;
		m->r->unseen += m->gap[i] == GAP_OPEN;
		if (m->gap[i] != GAP_KNOWN)
			continue;
		m->r->skipped += t->spin[i].last - t->spin[i].first;
		s = waits_match_add_event(m, thread,
			&(struct slack_wait_event){.position = t->spin[i].first,
				.address = t->spin[i].last,
				.what = SLACK_WAIT_SKIP},
			err);
	}
	return s;
}

static enum base_status match_thread(struct matcher *m, uint32_t thread, struct base_err *err)
{
	const struct seen_list *l = &m->c->list[thread];
	enum base_status s = use_locks(m, l, err);
	memset(m->known, 0, m->r->nr_words * sizeof *m->known);
	memset(m->gap, 0, m->spins->thread[thread].nr);
	for (size_t i = 0; i < l->nr && s == BASE_OK; i++) {
		const struct seen *x = &l->seen[i];
		if (x->kind == SEEN_POLL)
			s = end_of_wait(m, x, err);
		else if (x->index >= m->known[x->word])
			m->known[x->word] = x->index + 1;
	}
	return s == BASE_OK ? skip_gaps(m, thread, err) : s;
}

static enum base_status match_all(struct matcher *m, struct base_err *err)
{
	struct slack_waits *r = m->r;
	enum base_status s = waits_match_gather(m, err);
	for (uint32_t i = 0; i < r->nr_threads && s == BASE_OK; i++)
		s = give_roles(m, &m->c->list[i], err);
	for (uint32_t i = 0; i < r->nr_threads && s == BASE_OK; i++)
		judge_locks(m, &m->c->list[i]);
	for (size_t i = 0; i < r->nr_words && s == BASE_OK; i++) {
		r->word[i].lock = m->word[i].given && !m->word[i].broken;
		if (r->word[i].lock && base_map_put(&m->locks, 0, r->word[i].address, i) != BASE_OK)
			s = slack_waits_no_memory(err);
	}
	for (uint32_t i = 0; i < r->nr_threads && s == BASE_OK; i++)
		s = match_thread(m, i, err);
	for (uint32_t i = 0; i < r->nr_threads && s == BASE_OK; i++)
		if (r->thread[i].nr)
			qsort(r->thread[i].event, r->thread[i].nr, sizeof *r->thread[i].event,
				by_position);
	return s;
}

enum base_status slack_waits_match(
	struct collector *c, const struct slack_spins *spins, bool serial, struct base_err *err)
{
	struct matcher m = {.c = c, .r = c->result, .spins = spins, .serial = serial};
	size_t nr = c->result->nr_words, most = 0;
	for (uint32_t i = 0; i < spins->nr_threads; i++)
		most = spins->thread[i].nr > most ? spins->thread[i].nr : most;
	m.word = base_alloc((nr + 1) * sizeof *m.word);
	m.held = base_alloc((nr + 1) * sizeof(struct seen *));
	m.known = base_alloc((nr + 1) * sizeof *m.known);
	m.gap = base_alloc(most + 1);
	enum base_status s = m.word && m.held && m.known && m.gap ? match_all(&m, err)
								  : slack_waits_no_memory(err);
	base_map_fini(&m.locks);
	base_map_fini(&m.roles);
	base_free(m.word);
	base_free(m.held);
	base_free(m.known);
	base_free(m.gap);
	base_free(m.all);
	return s;
}
