/* SPDX-License-Identifier: Apache-2.0 */
/* spins.c - rounds of loops, and what they hand on. */
#include "slack/spins.h"

#include <string.h>

struct block { /* static code */
	uint32_t first, nr;
	bool known;
};
struct entry { /* a backward branch that was taken, and when last */
	uint64_t code;
	uint64_t path;     /* of blocks, where its current round begins */
	uint64_t position; /* of instructions */
	uint64_t way;      /* a hash of the last round's */
	uint64_t in_a_row;
	uint64_t taken; /* which of the thread's branches back was its last */
};
struct walker { /* one thread */
	struct entry entry[SLACK_SPINS_TABLE];
	uint32_t nr_entries;
	uint32_t block[SLACK_SPINS_BLOCKS]; /* circular: of those since the table was cleared */
	uint64_t path, position;
	uint64_t word[SLACK_SPINS_WORDS], site[SLACK_SPINS_WORDS]; /* read since the last branch
								      back, and by whom */
	uint32_t nr_words, nr_sites, thread;
	bool more_words;
	size_t last_loop;     /* that a round of spun */
	uint64_t nr_branches; /* back */
};
struct finder {
	struct slack_spins *result;
	bool (*decode)(void *ctx, uint64_t code, struct slack_registers *ret);
	void *decode_ctx;
	struct base_map blocks, loops, ways; /* by address; by branch and thread; by hash */
	struct block *block;
	size_t nr_blocks, blocks_capacity;
	struct slack_registers *code;
	size_t nr_code, code_capacity;
};
enum verdict { WORKS, WAITS, WAITS_BY_EXCHANGE, COUNTS, UNKNOWN };

static enum base_status spins_no_memory(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "no memory for loops that spin");
}

/* ---- static code ----------------------------------------------------------------------------- */

static enum base_status block_of(
	struct finder *f, const struct memory_item *t, uint32_t *ret, struct base_err *err)
{
	uint64_t index, at = t->address;
	if (BASE_LIKELY(base_map_get(&f->blocks, t->count, t->address, &index))) {
		*ret = (uint32_t)index;
		return BASE_OK;
	}
	if (base_grow(&f->block, &f->blocks_capacity, f->nr_blocks + 1, sizeof *f->block) !=
			BASE_OK ||
		base_grow(&f->code, &f->code_capacity, f->nr_code + t->count, sizeof *f->code) !=
			BASE_OK ||
		base_map_put(&f->blocks, t->count, t->address, f->nr_blocks) != BASE_OK)
		return spins_no_memory(err);
	struct block *b = &f->block[f->nr_blocks];
	*b = (struct block){.first = (uint32_t)f->nr_code, .known = true};
	for (uint64_t i = 0; i < t->count && b->known; i++) {
		struct slack_registers *r = &f->code[f->nr_code];
		*r = (struct slack_registers){0};
		b->known = f->decode(f->decode_ctx, at, r) && r->length;
		at += r->length;
		f->nr_code++;
		b->nr++;
	}
	*ret = (uint32_t)f->nr_blocks++;
	return BASE_OK;
}

/* ---- a round --------------------------------------------------------------------------------- */

struct round {
	uint64_t before;  /* registers that were read before they were written */
	uint64_t written; /* in full */
	uint64_t touched; /* at all */
	uint64_t loaded;  /* made of what was read from memory */
	uint64_t set;     /* otherwise than by a step */
	uint64_t used;    /* for more than a step or a comparison */
	unsigned nr_exchanges;
	bool loads, works;
};

static void spins_take(struct round *r, const struct slack_registers *i)
{
	uint64_t full = i->writes & ~i->keeps;
	r->before |= (i->reads | i->keeps) & ~r->written;
	r->works |= i->outside || (i->stores && !i->exchanges) ||
		    (i->exchanges && (i->stored & r->loaded));
	r->nr_exchanges += i->exchanges;
	r->loads |= i->loads;
	if (i->loads || (i->reads & r->loaded))
		r->loaded |= i->writes;
	else
		r->loaded &= ~full;
	r->written |= full;
	r->touched |= i->writes;
	r->set |= i->writes & ~i->steps;
	r->used |= i->compares ? 0 : i->reads & ~i->steps;
}

static enum verdict spins_judge(
	const struct finder *f, const struct walker *w, const struct entry *e)
{
	struct round r = {0};
	for (uint64_t p = e->path; p < w->path; p++) {
		const struct block *b = &f->block[w->block[p % SLACK_SPINS_BLOCKS]];
		if (!b->known)
			return UNKNOWN;
		for (uint32_t i = 0; i < b->nr; i++)
			spins_take(&r, &f->code[b->first + i]);
	}
	uint64_t handed_on = r.before & r.touched;
	if (r.works || !r.loads || r.nr_exchanges > 1 || (handed_on & (r.set | r.used)))
		return WORKS;
	if (handed_on)
		return COUNTS;
	return r.nr_exchanges ? WAITS_BY_EXCHANGE : WAITS;
}

static uint64_t spins_hash_of(const struct walker *w, const struct entry *e)
{
	uint64_t h = e->code;
	for (uint64_t p = e->path; p < w->path; p++)
		h = base_hash_u64(h ^ w->block[p % SLACK_SPINS_BLOCKS]) + p - e->path;
	return h;
}

/* The same way is judged once. */
static enum base_status verdict_of(struct finder *f, const struct walker *w, const struct entry *e,
	uint64_t way, enum verdict *ret, struct base_err *err)
{
	uint64_t known;
	if (base_map_get(&f->ways, 0, way, &known)) {
		*ret = (enum verdict)known;
		return BASE_OK;
	}
	*ret = spins_judge(f, w, e);
	return base_map_put(&f->ways, 0, way, (uint64_t)*ret) == BASE_OK ? BASE_OK
									 : spins_no_memory(err);
}

/* ---- what was found -------------------------------------------------------------------------- */

static enum base_status loop_of(struct finder *f, uint32_t thread, uint64_t code, bool counts,
	size_t *ret, struct base_err *err)
{
	struct slack_spins *s = f->result;
	uint64_t index, who = (uint64_t)thread << 1 | counts;
	if (base_map_get(&f->loops, who, code, &index)) {
		*ret = (size_t)index;
		return BASE_OK;
	}
	if (base_grow(&s->loop, &s->loops_capacity, s->nr_loops + 1, sizeof *s->loop) != BASE_OK ||
		base_map_put(&f->loops, who, code, s->nr_loops) != BASE_OK)
		return spins_no_memory(err);
	*ret = s->nr_loops++;
	s->loop[*ret] =
		(struct slack_spin_loop){.branch = code, .thread = thread, .counts = counts};
	return BASE_OK;
}

/* [first, last) joins what ends where it begins, and covers what is within it. Returns how many of
 * its instructions are new. */
static enum base_status spins_add_spin(struct slack_spin **list, size_t *nr, size_t *capacity,
	struct slack_spin s, uint64_t *ret_new, struct base_err *err)
{
	uint64_t covered = 0;
	while (*nr && (*list)[*nr - 1].first >= s.first) {
		const struct slack_spin *inner = &(*list)[--*nr];
		covered += inner->last - inner->first;
	}
	*ret_new = s.last - s.first - covered;
	if (*nr && (*list)[*nr - 1].last >= s.first) {
		struct slack_spin *before = &(*list)[*nr - 1];
		*ret_new -= before->last - s.first;
		before->last = s.last;
		before->loop = s.loop;
		return BASE_OK;
	}
	if (base_grow(list, capacity, *nr + 1, sizeof **list) != BASE_OK)
		return spins_no_memory(err);
	(*list)[(*nr)++] = s;
	return BASE_OK;
}

/* False: there is no room. */
static bool add_once(uint64_t *list, uint32_t *nr, uint64_t value)
{
	for (uint32_t i = 0; i < *nr; i++)
		if (list[i] == value)
			return true;
	if (*nr == SLACK_SPINS_WORDS)
		return false;
	list[(*nr)++] = value;
	return true;
}

static enum base_status note_spin(struct finder *f, struct walker *w, struct entry *e,
	uint64_t begins, enum verdict v, struct base_err *err)
{
	struct slack_spin_thread *t = &f->result->thread[w->thread];
	struct slack_spin spin = {.first = e->position, .last = w->position};
	uint64_t nr = 0;
	size_t at = 0;
	enum base_status s = loop_of(f, w->thread, e->code, v == COUNTS, &at, err);
	if (s != BASE_OK)
		return s;
	spin.loop = (uint32_t)at;
	if (v == COUNTS)
		s = spins_add_spin(&t->count, &t->nr_counts, &t->counts_capacity, spin, &nr, err);
	else
		s = spins_add_spin(&t->spin, &t->nr, &t->capacity, spin, &nr, err);
	struct slack_spin_loop *l = &f->result->loop[at];
	w->last_loop = at;
	l->begins = begins;
	l->rounds++;
	l->instructions += nr;
	l->waits += !e->in_a_row++;
	l->longest_rounds = e->in_a_row > l->longest_rounds ? e->in_a_row : l->longest_rounds;
	l->exchanges |= v == WAITS_BY_EXCHANGE;
	memcpy(l->word, w->word, sizeof l->word);
	l->nr_words = w->nr_words;
	l->more_words = w->more_words;
	for (uint32_t i = 0; i < w->nr_sites; i++)
		l->more_words |= !add_once(l->site, &l->nr_sites, w->site[i]);
	*(v == COUNTS ? &t->counting : &t->spinning) += nr;
	return s;
}

/* What spins does not count, too: a loop around one that counts may spin. */
static void leave_out_spins(struct slack_spin_thread *t)
{
	size_t k = 0;
	t->counting = 0;
	for (size_t i = 0; i < t->nr_counts; i++) {
		const struct slack_spin *c = &t->count[i];
		t->counting += c->last - c->first;
		while (k < t->nr && t->spin[k].last <= c->first)
			k++;
		for (size_t n = k; n < t->nr && t->spin[n].first < c->last; n++) {
			const struct slack_spin *x = &t->spin[n];
			t->counting -= (x->last < c->last ? x->last : c->last) -
				       (x->first > c->first ? x->first : c->first);
		}
	}
}

/* ---- a thread's stream ----------------------------------------------------------------------- */

static struct entry *spins_entry_of(struct walker *w, uint64_t code)
{
	for (uint32_t i = w->nr_entries; i--;)
		if (w->entry[i].code == code)
			return &w->entry[i];
	return NULL;
}

static enum base_status branch_back(
	struct finder *f, struct walker *w, const struct memory_item *t, struct base_err *err)
{
	enum base_status s = BASE_OK;
	struct entry *e = spins_entry_of(w, t->code);
	w->nr_branches++;
	if (!e) {
		if (w->nr_entries == SLACK_SPINS_TABLE)
			memmove(w->entry, w->entry + 1, --w->nr_entries * sizeof *w->entry);
		e = &w->entry[w->nr_entries++];
		*e = (struct entry){.code = t->code};
	} else if (w->path - e->path <= SLACK_SPINS_BLOCKS) {
		enum verdict v;
		uint64_t way = spins_hash_of(w, e);
		s = verdict_of(f, w, e, way, &v, err);
		f->result->unknown += v == UNKNOWN;
		if (v != WORKS && v != UNKNOWN && way == e->way && s == BASE_OK)
			s = note_spin(f, w, e, t->address, v, err);
		else
			e->in_a_row = 0;
		e->way = way;
	} else {
		e->way = e->in_a_row = 0;
	}
	e->path = w->path;
	e->position = w->position;
	e->taken = w->nr_branches;
	w->nr_words = w->nr_sites = 0;
	w->more_words = false;
	return s;
}

static void spins_clear(struct walker *w)
{
	w->nr_entries = 0;
}

static void spins_note_load(struct walker *w, const struct memory_item *t)
{
	w->more_words |= !add_once(w->word, &w->nr_words, t->address) ||
			 !add_once(w->site, &w->nr_sites, t->code);
}

static enum base_status item(
	struct finder *f, struct walker *w, const struct memory_item *t, struct base_err *err)
{
	enum base_status s = BASE_OK;
	switch ((enum memory_item_kind)t->kind) {
	case MEMORY_BLOCK:
		s = block_of(f, t, &w->block[w->path % SLACK_SPINS_BLOCKS], err);
		w->path++;
		w->position += t->instructions;
		return s;
	case MEMORY_LOAD:
	case MEMORY_ATOMIC: /* its instruction says whether it is an exchange */
		spins_note_load(w, t);
		w->position += t->instructions;
		return s;
	case MEMORY_BRANCH:
		w->position += t->instructions;
		return t->address <= t->code ? branch_back(f, w, t, err) : s;
	case MEMORY_STAMP:
	case MEMORY_PROC_START:
		break;
	default:
		spins_clear(w);
		break;
	}
	w->position += t->kind == MEMORY_STAMP ? 0 : t->instructions;
	return s;
}

struct spun { /* instructions of a thread */
	uint64_t spinning, counting;
};

static struct spun spun_of(const struct slack_spin_thread *t)
{
	return (struct spun){t->spinning, t->counting};
}

/* An iteration did what the one before did: so do those up to the last. They are so many that no
 * round around all of them is told, so the blocks on their way are not needed. */
static void skip_alike(struct finder *f, struct walker *w, uint64_t began, struct spun spun,
	uint64_t branches, uint64_t nr)
{
	uint64_t path = nr * SLACK_SPINS_BLOCKS, both = spun.spinning + spun.counting;
	struct slack_spin_thread *t = &f->result->thread[w->thread];
	uint64_t length = w->position - began;
	if (both) {
		struct slack_spin_loop *l = &f->result->loop[w->last_loop];
		if (spun.spinning)
			t->spin[t->nr - 1].last += nr * length;
		else
			t->count[t->nr_counts - 1].last += nr * length;
		t->spinning += nr * spun.spinning;
		t->counting += nr * spun.counting;
		l->instructions += nr * both;
		l->rounds += nr * branches;
	}
	for (uint32_t i = 0; i < w->nr_entries; i++) {
		struct entry *e = &w->entry[i];
		if (e->taken <= w->nr_branches - branches)
			continue;
		e->position += nr * length;
		e->path += path;
		e->in_a_row += e->in_a_row ? nr : 0;
		if (both && e->in_a_row > f->result->loop[w->last_loop].longest_rounds)
			f->result->loop[w->last_loop].longest_rounds = e->in_a_row;
	}
	w->position += nr * length;
	w->path += path;
}

static enum base_status spins_repeat(struct finder *f, struct walker *w,
	const struct memory_item *body, size_t nr, uint64_t count, struct base_err *err)
{
	const struct slack_spin_thread *t = &f->result->thread[w->thread];
	enum base_status s = BASE_OK;
	struct spun last = {UINT64_MAX, UINT64_MAX};
	for (uint64_t n = 0; n < count && s == BASE_OK; n++) {
		uint64_t began = w->position, branches = w->nr_branches;
		struct spun spun = spun_of(t);
		for (size_t i = 0; i < nr && s == BASE_OK; i++)
			s = item(f, w, &body[i], err);
		spun.spinning = t->spinning - spun.spinning;
		spun.counting = t->counting - spun.counting;
		branches = w->nr_branches - branches;
		/* all or nothing, twice: the others will be the same */
		uint64_t all = spun.spinning ? spun.spinning : spun.counting;
		bool alike = spun.spinning == last.spinning && spun.counting == last.counting &&
			     (!all || (all == w->position - began && branches == 1));
		if (alike && n > 2 && n + SLACK_SPINS_BLOCKS < count) {
			skip_alike(f, w, began, spun, branches, count - n - 2);
			n = count - 2;
		}
		last = spun;
	}
	return s;
}

static enum base_status thread(
	struct finder *f, struct memory_source *source, struct walker *w, struct base_err *err)
{
	struct memory_batch b;
	enum base_status s;
	while ((s = memory_source_next(source, (int)w->thread, &b, err)) == BASE_OK && b.nr) {
		for (size_t i = 0; i < b.nr && s == BASE_OK; i++) {
			const struct memory_item *t = &b.item[i];
			if (t->kind == MEMORY_REPEAT) {
				s = spins_repeat(f, w, t + 1, (size_t)t->address, t->count, err);
				i += (size_t)t->address;
			} else {
				s = item(f, w, t, err);
			}
		}
		if (s != BASE_OK)
			return s;
	}
	f->result->thread[w->thread].instructions = w->position;
	leave_out_spins(&f->result->thread[w->thread]);
	return s == BASE_END ? BASE_OK : s;
}

enum base_status slack_spins_find(struct memory_source *source,
	bool (*decode)(void *ctx, uint64_t code, struct slack_registers *ret), void *decode_ctx,
	struct slack_spins **ret, struct base_err *err)
{
	struct finder f = {.decode = decode, .decode_ctx = decode_ctx};
	struct walker *w = base_alloc(sizeof *w);
	struct slack_spins *spins = base_alloc(sizeof *spins);
	uint32_t nr = source->info.nr_threads;
	enum base_status s = BASE_OK;
	*ret = NULL;
	if (spins)
		spins->thread = base_alloc((nr + 1) * sizeof *spins->thread);
	if (!w || !spins || !spins->thread)
		s = spins_no_memory(err);
	f.result = spins;
	for (uint32_t i = 0; i < nr && s == BASE_OK; i++) {
		BASE_ASSUME(w && spins && spins->thread);
		spins->nr_threads = nr;
		*w = (struct walker){.thread = i};
		s = thread(&f, source, w, err);
		spins->instructions += spins->thread[i].instructions;
		spins->spinning += spins->thread[i].spinning;
		spins->counting += spins->thread[i].counting;
	}
	if (s == BASE_OK)
		s = source->ops->rewind
			    ? source->ops->rewind(source, err)
			    : base_fail(err, BASE_ERR_USAGE, "it can be read only once");
	base_map_fini(&f.blocks);
	base_map_fini(&f.loops);
	base_map_fini(&f.ways);
	base_free(f.block);
	base_free(f.code);
	base_free(w);
	if (s != BASE_OK) {
		slack_spins_free(spins);
		return s;
	}
	*ret = spins;
	return BASE_OK;
}

struct slack_spins *slack_spins_free(struct slack_spins *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->nr_threads; i++) {
		base_free(s->thread[i].spin);
		base_free(s->thread[i].count);
	}
	base_free(s->thread);
	base_free(s->loop);
	base_free(s);
	return NULL;
}

uint64_t slack_spins_count(void *ctx, uint32_t thread, uint64_t first, uint64_t count)
{
	struct slack_spins *s = ctx;
	struct slack_spin_thread *t = &s->thread[thread];
	uint64_t last = first + count, nr = 0;
	while (t->at && t->spin[t->at - 1].last > first)
		t->at--;
	while (t->at < t->nr && t->spin[t->at].last <= first)
		t->at++;
	for (size_t i = t->at; i < t->nr && t->spin[i].first < last; i++) {
		uint64_t from = t->spin[i].first > first ? t->spin[i].first : first;
		uint64_t to = t->spin[i].last < last ? t->spin[i].last : last;
		nr += to - from;
	}
	return nr;
}
