/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - which words are polled, and which threads access them. */
#include "slack/waits_private.h"

#include <stdlib.h>
#include <string.h>

enum { FILTER_BITS = 16, WORD_SHIFT = 3, SITES_MAX = 256, AROUND = 4 };

struct filter { /* most addresses are none of those asked for */
	uint64_t bits[(1u << FILTER_BITS) / 64];
};
struct site {                  /* an instruction that polls */
	uint64_t code, branch; /* which goes round again */
	uint32_t round_instructions;
};
struct pair { /* an exchange, and a word that it accessed */
	uint64_t code, address;
	uint16_t size_bytes;
};
struct candidate { /* a site's last poll */
	struct seen seen;
	bool open, vain; /* nobody knows yet; the loop went round again */
};
struct finder {
	struct collector c;
	struct memory_source *source;
	const struct slack_spins *spins;
	bool (*decode)(void *ctx, uint64_t code, struct slack_registers *ret);
	void *decode_ctx;
	struct site site[SITES_MAX];
	uint32_t nr_sites;
	struct filter sites, words;
	struct base_map words_at, exchanges, pairs; /* (address), (granule, n); code; both */
	struct base_map words_in;                   /* granule to a word, chained by next[] */
	uint32_t *next;
	size_t next_capacity;
	struct pair *pair;
	size_t nr_pairs, pairs_capacity;
	bool serial;
};
struct walker { /* one thread */
	uint32_t thread;
	uint64_t position, time_ns;
	size_t gap;        /* of its spins */
	size_t first_open; /* seen: their ends in time are not known before this one */
	struct indivisible last;
	struct candidate candidate[SITES_MAX];
};

enum base_status slack_waits_no_memory(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "no memory for what ends waits");
}

static uint32_t filter_bit(uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - FILTER_BITS));
}
static void filter_add(struct filter *f, uint64_t key)
{
	f->bits[filter_bit(key) / 64] |= UINT64_C(1) << filter_bit(key) % 64;
}
static inline bool filter_may_have(const struct filter *f, uint64_t key)
{
	return f->bits[filter_bit(key) / 64] >> filter_bit(key) % 64 & 1;
}

/* ---- sites: instructions that poll ----------------------------------------------------------- */

static struct site *waits_site_at(struct finder *f, uint64_t code)
{
	if (BASE_LIKELY(!filter_may_have(&f->sites, code)))
		return NULL;
	for (uint32_t i = 0; i < f->nr_sites; i++)
		if (f->site[i].code == code)
			return &f->site[i];
	return NULL;
}

/* Loops that poll more words than are listed, and those that count, stay as they were recorded. */
static void list_sites(struct finder *f)
{
	for (size_t i = 0; i < f->spins->nr_loops; i++) {
		const struct slack_spin_loop *l = &f->spins->loop[i];
		uint64_t round = l->rounds ? l->instructions / l->rounds : 0;
		for (uint32_t k = 0; k < l->nr_sites && !l->more_words && !l->counts; k++) {
			if (waits_site_at(f, l->site[k]) || f->nr_sites == SITES_MAX)
				continue;
			f->site[f->nr_sites++] = (struct site){.code = l->site[k],
				.branch = l->branch,
				.round_instructions = round < 1            ? 1
						      : round > UINT32_MAX ? UINT32_MAX
									   : (uint32_t)round};
			filter_add(&f->sites, l->site[k]);
		}
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static enum base_status waits_add_word(
	struct finder *f, const struct slack_wait_word *word, struct base_err *err)
{
	struct slack_waits *r = f->c.result;
	uint64_t first = word->address >> WORD_SHIFT, before;
	uint64_t last = (word->address + word->size_bytes - 1) >> WORD_SHIFT;
	uint64_t number = r->nr_words;
	if (base_map_get(&f->words_at, 0, word->address, &before))
		return BASE_OK;
	if (number >= UINT32_MAX / 2 || last > first + 1)
		return BASE_OK; /* of more than one vector: not looked at */
	if (base_grow(&r->word, &r->words_capacity, r->nr_words + 1, sizeof *r->word) != BASE_OK ||
		base_grow(&f->next, &f->next_capacity, r->nr_words + 1, sizeof *f->next) !=
			BASE_OK ||
		base_map_put(&f->words_at, 0, word->address, number) != BASE_OK)
		return slack_waits_no_memory(err);
	/* listed where it begins; a search for it looks in the granule before, too */
	f->next[number] = base_map_get(&f->words_in, 0, first, &before) ? (uint32_t)before + 1 : 0;
	if (base_map_put(&f->words_in, 0, first, number) != BASE_OK)
		return slack_waits_no_memory(err);
	filter_add(&f->words, first);
	r->word[r->nr_words++] = *word;
	return BASE_OK;
}

/* Is the atomic instruction an exchange? Decoded once. */
static enum base_status is_exchange(
	struct finder *f, uint64_t code, bool *ret, struct base_err *err)
{
	uint64_t known;
	if (!base_map_get(&f->exchanges, 0, code, &known)) {
		struct slack_registers r = {0};
		known = f->decode(f->decode_ctx, code, &r) && r.exchanges;
		if (base_map_put(&f->exchanges, 0, code, known) != BASE_OK)
			return slack_waits_no_memory(err);
	}
	*ret = known;
	return BASE_OK;
}

static enum base_status add_pair(
	struct finder *f, const struct memory_item *t, uint64_t address, struct base_err *err)
{
	uint64_t known;
	bool exchange = false;
	enum base_status s = is_exchange(f, t->code, &exchange, err);
	if (s != BASE_OK || !exchange || base_map_get(&f->pairs, t->code, address, &known))
		return s;
	if (base_grow(&f->pair, &f->pairs_capacity, f->nr_pairs + 1, sizeof *f->pair) != BASE_OK ||
		base_map_put(&f->pairs, t->code, address, f->nr_pairs) != BASE_OK)
		return slack_waits_no_memory(err);
	f->pair[f->nr_pairs++] = (struct pair){t->code, address, t->size_bytes};
	return BASE_OK;
}

static enum base_status look_for_words(struct finder *f, struct walker *w,
	const struct memory_item *t, uint64_t address, struct base_err *err)
{
	enum base_status s = BASE_OK;
	(void)w;
	if (t->kind == MEMORY_ATOMIC)
		s = add_pair(f, t, address, err);
	const struct site *site = t->kind != MEMORY_STORE ? waits_site_at(f, t->code) : NULL;
	if (!site || !t->size_bytes || s != BASE_OK)
		return s;
	return waits_add_word(f,
		&(struct slack_wait_word){.address = address,
			.site = t->code,
			.size_bytes = t->size_bytes,
			.round_instructions = site->round_instructions,
			.exchanges = t->kind == MEMORY_ATOMIC},
		err);
}

/* What one of those instructions accesses that exchange with a polled word may be a lock, too. */
static enum base_status add_relatives(struct finder *f, struct base_err *err)
{
	struct base_map of = {0}; /* code of an exchange to a word that it takes */
	enum base_status s = BASE_OK;
	uint64_t index;
	for (size_t before = SIZE_MAX; before != f->c.result->nr_words && s == BASE_OK;) {
		before = f->c.result->nr_words;
		for (size_t i = 0; i < f->nr_pairs && s == BASE_OK; i++)
			if (base_map_get(&f->words_at, 0, f->pair[i].address, &index) &&
				base_map_put(&of, 0, f->pair[i].code, index) != BASE_OK)
				s = slack_waits_no_memory(err);
		for (size_t i = 0; i < f->nr_pairs && s == BASE_OK; i++) {
			if (!base_map_get(&of, 0, f->pair[i].code, &index))
				continue;
			struct slack_wait_word word = f->c.result->word[index];
			word.address = f->pair[i].address;
			word.size_bytes = f->pair[i].size_bytes;
			s = waits_add_word(f, &word, err);
		}
	}
	base_map_fini(&of);
	return s;
}

/* ---- accesses -------------------------------------------------------------------------------- */

static enum base_status add_seen(
	struct finder *f, struct walker *w, const struct seen *seen, struct base_err *err)
{
	struct seen_list *l = &f->c.list[w->thread];
	if (base_grow(&l->seen, &l->capacity, l->nr + 1, sizeof *l->seen) != BASE_OK)
		return slack_waits_no_memory(err);
	l->seen[l->nr++] = *seen;
	return BASE_OK;
}

/* What was seen since the last time was over at `ns`. */
static void close_times(struct finder *f, struct walker *w, uint64_t ns)
{
	struct seen_list *l = &f->c.list[w->thread];
	for (; w->first_open < l->nr; w->first_open++)
		if (l->seen[w->first_open].to_ns == UINT64_MAX)
			l->seen[w->first_open].to_ns = ns;
	for (uint32_t i = 0; i < f->nr_sites; i++)
		if (w->candidate[i].open && w->candidate[i].seen.to_ns == UINT64_MAX)
			w->candidate[i].seen.to_ns = ns;
}

static struct seen here(const struct finder *f, const struct walker *w, uint64_t address,
	uint32_t word, enum seen_kind kind)
{
	return (struct seen){.position = w->position,
		.address = address,
		.from_ns = w->time_ns,
		.to_ns = f->serial ? w->time_ns : UINT64_MAX,
		.thread = w->thread,
		.word = word,
		.before = w->last,
		.kind = (uint8_t)kind};
}

/* The spin that the walker is in, plus 1; 0: none. */
static uint32_t gap_here(const struct finder *f, struct walker *w)
{
	const struct slack_spin_thread *t = &f->spins->thread[w->thread];
	while (w->gap < t->nr && t->spin[w->gap].last < w->position)
		w->gap++;
	return w->gap < t->nr && t->spin[w->gap].first < w->position ? (uint32_t)w->gap + 1 : 0;
}

/* Was it the last poll of its wait? Yes, as the loop was not gone round again. */
static enum base_status waits_settle(
	struct finder *f, struct walker *w, struct candidate *c, struct base_err *err)
{
	enum base_status s = BASE_OK;
	if (c->open && !c->vain)
		s = add_seen(f, w, &c->seen, err);
	c->open = c->open && c->vain;
	return s;
}

static enum base_status poll(struct finder *f, struct walker *w, const struct site *site,
	uint64_t address, uint32_t word, struct base_err *err)
{
	struct candidate *c = &w->candidate[site - f->site];
	enum base_status s = waits_settle(f, w, c, err);
	struct seen seen = here(f, w, address, word, SEEN_POLL);
	seen.gap = gap_here(f, w);
	if (c->open && c->seen.word == word) { /* in vain, and again */
		seen.vain = true;
		seen.vain_ns = c->seen.from_ns;
		seen.before = c->seen.before;
		seen.gap = seen.gap ? seen.gap : c->seen.gap;
	}
	*c = (struct candidate){.seen = seen, .open = true};
	return s;
}

static enum base_status store(struct finder *f, struct walker *w, const struct memory_item *t,
	uint64_t address, uint32_t word, struct base_err *err)
{
	enum seen_kind kind = t->kind == MEMORY_RANGE_STORE ? SEEN_RANGE : SEEN_STORE;
	enum base_status s = BASE_OK;
	bool exchange = false;
	if (t->kind == MEMORY_ATOMIC) {
		s = is_exchange(f, t->code, &exchange, err);
		kind = exchange ? SEEN_EXCHANGE : SEEN_UPDATE;
	}
	struct seen seen = here(f, w, address, word, kind);
	seen.code = t->code;
	return s == BASE_OK ? add_seen(f, w, &seen, err) : s;
}

static enum base_status waits_touch(struct finder *f, struct walker *w, const struct memory_item *t,
	uint64_t address, uint64_t bytes, uint32_t number, struct base_err *err)
{
	const struct slack_wait_word *word = &f->c.result->word[number];
	const struct site *site = NULL;
	if (word->address >= address + bytes || word->address + word->size_bytes <= address)
		return BASE_OK;
	if (t->kind == MEMORY_LOAD || t->kind == MEMORY_ATOMIC)
		site = word->address == address ? waits_site_at(f, t->code) : NULL;
	enum base_status s = site ? poll(f, w, site, address, number, err) : BASE_OK;
	if (t->kind != MEMORY_LOAD && s == BASE_OK)
		s = store(f, w, t, address, number, err);
	return s;
}

static enum base_status look_at_access(struct finder *f, struct walker *w,
	const struct memory_item *t, uint64_t address, struct base_err *err)
{
	bool range = t->kind == MEMORY_RANGE_STORE;
	uint64_t bytes = range ? t->count : t->size_bytes, number;
	enum base_status s = BASE_OK;
	if (!bytes || (t->kind == MEMORY_LOAD && !waits_site_at(f, t->code)))
		return s;
	uint64_t first = address >> WORD_SHIFT, last = (address + bytes - 1) >> WORD_SHIFT;
	for (uint64_t g = first ? first - 1 : 0; g <= last && s == BASE_OK; g++) {
		if (BASE_LIKELY(!filter_may_have(&f->words, g)) ||
			!base_map_get(&f->words_in, 0, g, &number))
			continue;
		for (uint64_t n = number + 1; n && s == BASE_OK; n = f->next[n - 1])
			s = waits_touch(f, w, t, address, bytes, (uint32_t)(n - 1), err);
	}
	if (t->kind == MEMORY_ATOMIC)
		w->last = (struct indivisible){w->position, address, w->time_ns};
	return s;
}

static void look_at_branch(struct finder *f, struct walker *w, const struct memory_item *t)
{
	if (t->address > t->code)
		return;
	for (uint32_t i = 0; i < f->nr_sites; i++)
		if (f->site[i].branch == t->code)
			w->candidate[i].vain = true;
}

static void look_at_time(struct finder *f, struct walker *w, uint64_t ends_ns, uint64_t begins_ns)
{
	if (f->serial || !ends_ns || begins_ns <= w->time_ns) {
		w->time_ns = begins_ns > w->time_ns ? begins_ns : w->time_ns;
		return;
	}
	close_times(f, w, ends_ns);
	w->time_ns = begins_ns;
}

/* ---- streams --------------------------------------------------------------------------------- */

static enum base_status waits_look_at(struct finder *f, struct walker *w,
	const struct memory_cursor *c, const struct memory_item *t, struct base_err *err)
{
	switch ((enum memory_item_kind)t->kind) {
	case MEMORY_LOAD:
	case MEMORY_STORE:
	case MEMORY_ATOMIC:
	case MEMORY_RANGE_STORE:
		return look_at_access(f, w, t, memory_cursor_address(c, t), err);
	case MEMORY_BRANCH:
		look_at_branch(f, w, t);
		return BASE_OK;
	case MEMORY_CALL: {
		const struct memory_call *call = &c->batch.call[t->address];
		look_at_time(f, w, call->start_ns, call->end_ns);
		return BASE_OK;
	}
	default:
		return BASE_OK;
	}
}

/* Iterations in the midst of a spin are like those around them. */
static void pass_iterations(struct finder *f, struct walker *w, struct memory_cursor *c)
{
	const struct slack_spin_thread *t = &f->spins->thread[w->thread];
	uint64_t instructions, left, within;
	uint32_t gap = gap_here(f, w);
	if (!gap || !memory_cursor_iteration(c, &instructions, &left) || !instructions)
		return;
	within = (t->spin[gap - 1].last - w->position) / instructions;
	left = left < within ? left : within;
	if (left <= AROUND)
		return;
	memory_cursor_pass(c, left - AROUND);
	w->position += (left - AROUND) * instructions;
}

/* Each thread's stream from its beginning to its end; `words`: which there are, else what is done
 * to them. */
static enum base_status waits_walk(
	struct finder *f, struct walker *w, bool words, struct base_err *err)
{
	struct memory_cursor c = {0};
	const struct memory_item *t;
	enum base_status s;
	while ((s = memory_cursor_peek(&c, f->source, (int)w->thread, &t, err)) == BASE_OK && t) {
		if (c.time_ns > w->time_ns)
			look_at_time(f, w, c.time_ns, c.time_ns);
		if (BASE_UNLIKELY(c.nr_body && !c.body_at))
			pass_iterations(f, w, &c);
		w->position += t->instructions;
		if (!words)
			s = waits_look_at(f, w, &c, t, err);
		else if (t->kind <= MEMORY_ATOMIC)
			s = look_for_words(f, w, t, memory_cursor_address(&c, t), err);
		if (s != BASE_OK)
			return s;
		memory_cursor_advance(&c);
	}
	if (s != BASE_END && s != BASE_OK)
		return s;
	s = BASE_OK;
	if (c.time_ns > w->time_ns)
		look_at_time(f, w, c.time_ns, c.time_ns);
	for (uint32_t i = 0; i < f->nr_sites && s == BASE_OK; i++)
		s = waits_settle(f, w, &w->candidate[i], err);
	return s;
}

static enum base_status walk_all(
	struct finder *f, struct walker *w, bool words, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < f->spins->nr_threads && s == BASE_OK; i++) {
		*w = (struct walker){.thread = i};
		s = waits_walk(f, w, words, err);
	}
	return s == BASE_OK ? f->source->ops->rewind(f->source, err) : s;
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum base_status waits_find(struct finder *f, struct walker *w, struct base_err *err)
{
	enum base_status s = BASE_OK;
	list_sites(f);
	if (!f->nr_sites)
		return s;
	s = walk_all(f, w, true, err);
	if (s == BASE_OK)
		s = add_relatives(f, err);
	if (s == BASE_OK)
		s = walk_all(f, w, false, err);
	return s == BASE_OK ? slack_waits_match(&f->c, f->spins, f->serial, err) : s;
}

static void finder_free(struct finder *f)
{
	for (uint32_t i = 0; f->c.list && i < f->spins->nr_threads; i++)
		base_free(f->c.list[i].seen);
	base_free(f->c.list);
	base_map_fini(&f->words_at);
	base_map_fini(&f->words_in);
	base_map_fini(&f->exchanges);
	base_map_fini(&f->pairs);
	base_free(f->next);
	base_free(f->pair);
	base_free(f);
}

enum base_status slack_waits_find(struct memory_source *source, const struct slack_spins *spins,
	bool (*decode)(void *ctx, uint64_t code, struct slack_registers *ret), void *decode_ctx,
	struct slack_waits **ret, struct base_err *err)
{
	uint32_t nr = spins->nr_threads;
	struct finder *f = base_alloc(sizeof *f);
	struct walker *w = base_alloc(sizeof *w);
	struct slack_waits *r = base_alloc(sizeof *r);
	enum base_status s = slack_waits_no_memory(err);
	*ret = NULL;
	if (r)
		r->thread = base_alloc((nr + 1) * sizeof *r->thread);
	if (f && w && r && r->thread) {
		r->nr_threads = nr;
		*f = (struct finder){.c.result = r,
			.c.list = base_alloc((nr + 1) * sizeof *f->c.list),
			.source = source,
			.spins = spins,
			.decode = decode,
			.decode_ctx = decode_ctx,
			.serial = source->info.flags & MEMORY_SOURCE_SERIAL};
		if (f->c.list)
			s = waits_find(f, w, err);
	}
	if (f && f->spins)
		finder_free(f);
	else
		base_free(f);
	base_free(w);
	if (s != BASE_OK) {
		slack_waits_free(r);
		return s;
	}
	*ret = r;
	return BASE_OK;
}

struct slack_waits *slack_waits_free(struct slack_waits *w)
{
	if (!w)
		return NULL;
	for (uint32_t i = 0; w->thread && i < w->nr_threads; i++)
		base_free(w->thread[i].event);
	base_free(w->thread);
	base_free(w->word);
	base_free(w);
	return NULL;
}
