/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdat_runs.c - pieces of loops, without steps.
 *
 * What comes out is what single steps in their order bring, transaction by transaction. But an
 * access that its own cache satisfies concerns nobody else: it changes at most which line of that
 * cache was used last. So a thread does those as soon as it comes to them, and waits for its turn
 * only with what may cause a transaction. That holds as long as nobody takes the line away
 * meanwhile, and in a piece it is known where everybody stores: an access is *free* when no other
 * thread may change its line in these pieces, and, for a store, no other thread may load it.
 * (An invalidation of another line of the same set leaves the order of the rest as it is.)
 *
 * Nor does it wait with a load that misses, where all threads that may touch the line in these
 * pieces are known to the directory as sharers of it: then nothing but the thread's own cache
 * changes. That takes that no other thread stores anything (it might invalidate what is in the same
 * set, and what has to go would be another line), and that what has to go does so in silence.
 */
#include "memory/cdat/cdat_private.h"
#include "memory/order/order_private.h"

#include "base/heap.h"

struct cdat_part {                      /* an access or a fetch in the body of a loop */
	uint64_t address, stride_bytes; /* the first in iteration 0 */
	uint64_t until;      /* in the iterations before this it stays in its line: hits, as long */
	const uint64_t *way; /* as this way of the cache ... */
	uint64_t seen;       /* ... is as it was */
	uint64_t known;      /* of its way, what does not matter to it: 3 less CDAT_MAY_STORE */
	int64_t room_bytes;  /* of its line behind it, when it is at the beginning; -1: not free */
	int64_t due,
		key_due; /* clocks behind the iteration's beginning: its own; of all up to it */
	uint64_t first_line, last_line; /* that it may touch in the piece */
	uint64_t count;                 /* of a fetch: instructions */
	uint64_t end;                   /* the first iteration without it */
	uint32_t size_bytes;
	uint32_t step_bytes; /* without its sign */
	uint8_t kind;
	bool free;
	bool rests;  /* does not go to another line each time */
	bool absent; /* its line is not in the thread's cache, and a load waits for it */
	bool ahead;  /* a load that may miss ahead of its turn, when its lines' sharers have `units`
		      */
	uint32_t units;      /* whose threads touch these lines */
	struct cdat_misses { /* that it had so, of lines with these sharers, and home: to be counted
			      */
		uint64_t nr;
		uint32_t sharers, home;
	} misses[4]; /* by the home */
};

/* ---- the parts of a piece -------------------------------------------------------------------- */

/* Is a hit the processor's own matter, as far as the machine goes? */
static bool has_own_hits(const struct memory_cdat *c)
{
	const struct memory_cdat_config *k = &c->config;
	return c->one_level && !k->replicate_after && !c->options.nr_usage && !c->options.check;
}

static bool is_simulated(const struct memory_cdat *c, const struct memory_item *t)
{
	if (t->kind == MEMORY_BLOCK)
		return c->config.code_bytes && t->size_bytes;
	return t->kind < MEMORY_BLOCK && t->size_bytes;
}

static inline uint64_t cdat_runs_address_in(const struct cdat_part *p, uint64_t iteration)
{
	return p->address + iteration * p->stride_bytes;
}

static void find_lines(
	const struct memory_cdat *c, struct cdat_part *p, uint64_t begin, uint64_t end)
{
	uint64_t first = cdat_runs_address_in(p, begin), last = cdat_runs_address_in(p, end - 1);
	uint64_t low = first < last ? first : last, high = first < last ? last : first;
	p->first_line = low >> c->line_shift;
	p->last_line = (high + p->size_bytes - 1) >> c->line_shift;
}

/* What a thread executes is no matter of order, either. */
static void cdat_runs_count_instructions(struct memory_cdat *c, const struct memory_piece *p)
{
	uint32_t processor = c->processor_of[p->thread];
	uint64_t sum = 0;
	for (uint32_t i = 0; i < p->nr_items; i++)
		sum += (memory_piece_end(p, i) - memory_piece_begin(p, i)) *
		       p->item[i].instructions;
	c->open->active[processor] += sum;
	c->processor[processor].time_ps += sum * c->config.cycle_ps;
}

/* A block without an instruction is due with the next one, and what follows it before that one is
 * done in the same turn. So parts that are left out are waited for by the next that is not. */
static void cdat_runs_wait_for(struct cdat_part *p, int64_t *left_out)
{
	p->key_due = *left_out > p->key_due ? *left_out : p->key_due;
	*left_out = INT64_MIN;
}

static void wait_over(struct cdat_run *r, int64_t left_out)
{
	if (left_out == INT64_MIN || !r->nr)
		return;
	left_out -= (int64_t)r->per_iteration;
	cdat_runs_wait_for(&r->part[0], &left_out);
}

/* Does each part wait for a turn that is not before that of the part before it? */
static bool is_in_order(const struct cdat_run *r)
{
	if (r->nr_code || !r->nr)
		return false;
	int64_t before = r->part[r->nr - 1].key_due - (int64_t)r->per_iteration;
	for (uint32_t i = 0; i < r->nr; before = r->part[i++].key_due)
		if (r->part[i].key_due < before)
			return false;
	return true;
}

static void cdat_runs_begin_run(
	struct memory_cdat *c, const struct memory_piece *p, struct cdat_part *part)
{
	struct cdat_run *r = &c->runs.run[p->thread];
	*r = (struct cdat_run){.part = part,
		.processor = c->processor_of[p->thread],
		.iteration = p->begin,
		.end = p->end,
		.clock = p->clock + p->begin * p->per_iteration,
		.per_iteration = p->per_iteration};
	int64_t after = 0, left_out = INT64_MIN;
	for (uint32_t i = 0; i < p->nr_items; i++) {
		const struct memory_item *t = &p->item[i];
		after += t->instructions;
		if (t->kind > MEMORY_BLOCK)
			continue;
		bool is_block = t->kind == MEMORY_BLOCK;
		int64_t due = after - !(is_block && !t->instructions);
		if (!is_simulated(c, t)) {
			left_out = due > left_out ? due : left_out;
			continue;
		}
		uint64_t begin = memory_piece_begin(p, i), end = memory_piece_end(p, i);
		uint64_t stride = is_block ? 0 : (uint64_t)t->stride_bytes;
		uint64_t step = t->stride_bytes < 0 ? -stride : stride;
		struct cdat_part *q = &part[r->nr++];
		*q = (struct cdat_part){.address = t->address,
			.stride_bytes = stride,
			.step_bytes = (uint32_t)step,
			.rests = step < c->config.line_bytes,
			.known = CDAT_SILENT | (t->kind == MEMORY_LOAD ? CDAT_MAY_STORE : 0),
			.due = due,
			.key_due = due,
			.first_line = UINT64_MAX,
			.count = t->count,
			.end = end,
			.size_bytes = t->size_bytes,
			.kind = t->kind};
		r->at += i < p->begin_item;
		r->end_part += i < p->end_item;
		r->nr_code += is_block;
		cdat_runs_wait_for(q, &left_out);
		if (end > begin)
			find_lines(c, q, begin, end);
		r->hits += !is_block && end > begin ? end - begin : 0;
	}
	wait_over(r, left_out);
	r->in_order = is_in_order(r);
}

static bool meets(const struct cdat_part *a, const struct cdat_part *b)
{
	return a->first_line <= b->last_line && b->first_line <= a->last_line;
}

/* May what `one` does end that `other` is free? */
static bool disturbs(const struct cdat_run *run, const struct cdat_part *one,
	const struct cdat_run *other_run, const struct cdat_part *other)
{
	bool store = one->kind == MEMORY_STORE || one->kind == MEMORY_ATOMIC;
	bool other_store = other->kind == MEMORY_STORE || other->kind == MEMORY_ATOMIC;
	if (run == other_run)
		return store && other->kind == MEMORY_BLOCK && meets(one, other);
	return (store || other_store) && meets(one, other);
}

static bool may_store(const struct cdat_part *p)
{
	return p->kind == MEMORY_STORE || p->kind == MEMORY_ATOMIC;
}

/* All parts are free but those that meet another thread's store, or their own store's code. */
static void find_free(struct memory_cdat *c, const struct memory_steps *steps)
{
	for (size_t i = 0; i < steps->nr_pieces; i++) {
		const struct cdat_run *r = &c->runs.run[steps->piece[i].thread];
		for (struct cdat_part *p = r->part; p < r->part + r->nr; p++) {
			if (!may_store(p))
				continue;
			for (size_t k = 0; k < steps->nr_pieces; k++) {
				const struct cdat_run *o = &c->runs.run[steps->piece[k].thread];
				for (struct cdat_part *q = o->part; q < o->part + o->nr; q++) {
					if (!disturbs(r, p, o, q))
						continue;
					q->free = false;
					p->free = r == o && p->free;
				}
			}
		}
	}
}

/* Whose threads touch what one part does? */
static uint32_t units_at(
	const struct memory_cdat *c, const struct memory_steps *steps, const struct cdat_part *p)
{
	uint32_t units = 0;
	for (size_t i = 0; i < steps->nr_pieces; i++) {
		const struct cdat_run *r = &c->runs.run[steps->piece[i].thread];
		for (const struct cdat_part *q = r->part; q < r->part + r->nr; q++)
			if (meets(p, q)) {
				units |= UINT32_C(1) << c->processor[r->processor].unit;
				break;
			}
	}
	return units;
}

static void find_ahead(struct memory_cdat *c, const struct memory_steps *steps, uint64_t nr_stores)
{
	for (size_t i = 0; i < steps->nr_pieces; i++) {
		const struct cdat_run *r = &c->runs.run[steps->piece[i].thread];
		uint64_t own_stores = 0;
		for (uint32_t k = 0; k < r->nr; k++)
			own_stores += may_store(&r->part[k]);
		if (nr_stores != own_stores)
			continue;
		for (struct cdat_part *p = r->part; p < r->part + r->nr; p++) {
			p->ahead = p->kind == MEMORY_LOAD && p->free;
			p->units = p->ahead ? units_at(c, steps, p) : 0;
		}
	}
}

/* To look must not take longer than to do it. */
static void look_at_parts(struct memory_cdat *c, const struct memory_steps *steps)
{
	uint64_t nr_parts = 0, nr_stores = 0, nr_accesses = 0;
	for (size_t i = 0; i < steps->nr_pieces; i++) {
		const struct cdat_run *r = &c->runs.run[steps->piece[i].thread];
		nr_parts += r->nr;
		nr_accesses += (r->end - r->iteration) * r->nr;
		for (uint32_t k = 0; k < r->nr; k++)
			nr_stores += may_store(&r->part[k]);
	}
	bool worth = has_own_hits(c) && nr_parts * nr_stores <= nr_accesses;
	for (size_t i = 0; i < nr_parts; i++)
		c->runs.part[i].free = worth;
	if (worth && nr_stores)
		find_free(c, steps);
	for (struct cdat_part *p = c->runs.part; p < c->runs.part + nr_parts; p++)
		p->room_bytes = p->free ? (int64_t)c->config.line_bytes - p->size_bytes : -1;
	if (worth && c->plain && nr_parts * nr_parts <= nr_accesses)
		find_ahead(c, steps, nr_stores);
}

/* ---- running --------------------------------------------------------------------------------- */

static void count_misses(struct memory_cdat *c, const struct cdat_run *r, struct cdat_misses *m)
{
	if (m->nr)
		memory_cdat_count_plainly(c, r->processor, m->sharers, m->home, m->nr);
	m->nr = 0;
}

/* Does the line in this way belong to the thread's processor, so that the directory hears of its
 * going? */
static bool __attribute__((noinline))
is_owned(const struct memory_cdat *c, const struct cdat_run *r, uint64_t way)
{
	uint64_t line = cdat_line_of(way);
	const struct cdat_chunk *k = cdat_chunk_at(c, line << c->line_shift);
	return k->line[cdat_line_index(c, line)].owner == c->processor[r->processor].unit + 1;
}

/* A load that missed, and all that it does, when that is nobody else's matter. */
static BASE_INLINE bool take_miss(struct memory_cdat *c, struct cdat_run *r, struct cdat_part *p,
	uint64_t address, uint64_t *set, uint32_t ways)
{
	const struct cdat_chunk *k = cdat_chunk_at(c, address);
	uint64_t line = address >> c->line_shift;
	if (!k || k->has_code)
		return false;
	const struct cdat_line *l = &k->line[cdat_line_index(c, line)];
	if (l->owner || l->state != MEMORY_CDAT_SHARED || p->units & ~l->sharers)
		return false;
	uint64_t last = set[ways - 1];
	if (BASE_UNLIKELY(last && !(last & CDAT_SILENT)) && is_owned(c, r, last))
		return false;
	struct cdat_misses *m = &p->misses[k->node % BASE_COUNT(p->misses)];
	if (BASE_UNLIKELY(l->sharers != m->sharers || k->node != m->home)) {
		count_misses(c, r, m);
		m->sharers = l->sharers;
		m->home = k->node;
	}
	m->nr++;
	r->hits--;
	(void)cdat_push(set, ways, line);
	return true;
}

/* Where it goes next, as long as that is this line; in this way. */
static inline void cdat_runs_rest(const struct memory_cdat *c, struct cdat_part *p,
	uint64_t iteration, uint64_t address, const uint64_t *way)
{
	uint32_t at = (uint32_t)(address & (c->config.line_bytes - 1));
	uint32_t room = (int64_t)p->stride_bytes < 0 ? at : (uint32_t)p->room_bytes - at;
	p->until = p->stride_bytes ? iteration + 1 + room / p->step_bytes : UINT64_MAX;
	p->way = way;
	p->seen = *way;
}

/* An access that is nobody else's matter, and all that it does; false: it is none, and nothing is
 * done. k: the thread's own cache. */
static BASE_INLINE bool take_access(struct memory_cdat *c, const struct cdat_cache *k,
	uint32_t ways, struct cdat_run *r, struct cdat_part *p, uint64_t iteration)
{
	if (iteration < p->until && *p->way == p->seen)
		return true;
	uint64_t address = cdat_runs_address_in(p, iteration), line = address >> c->line_shift;
	uint64_t tag = cdat_tag(line);
	uint64_t *w =
		k->way + (k->sets == k->set_mask + 1 ? line & k->set_mask : line % k->sets) * ways;
	p->absent = false;
	if (BASE_UNLIKELY((int64_t)(address & (c->config.line_bytes - 1)) > p->room_bytes))
		return false;
	if ((*w | p->known) != (tag | CDAT_KNOWN)) {
		uint32_t way = cdat_may_have(w, ways, tag) ? 1 : ways;
		for (; way < ways && (w[way] ^ tag) > CDAT_KNOWN; way++)
			;
		if (way >= ways) {
			if (BASE_LIKELY(p->ahead) && take_miss(c, r, p, address, w, ways))
				goto taken;
			p->absent = p->kind == MEMORY_LOAD;
			return false;
		}
		if ((w[way] | p->known) != (tag | CDAT_KNOWN))
			return false;
		if (c->config.replacement == MEMORY_CDAT_LRU)
			memory_cdat_cache_use(k, line, way);
		else
			w += way;
	}
taken:
	if (p->rests)
		cdat_runs_rest(c, p, iteration, address, w);
	return true;
}

/* Instructions that share a line with the one before are hits. */
static uint64_t fetches_of(const struct cdat_part *p)
{
	uint64_t lines = p->last_line - p->first_line + 1;
	return p->count > lines ? p->count : lines;
}

static bool take_fetch(struct memory_cdat *c, struct cdat_run *r, const struct cdat_part *p)
{
	const struct cdat_cache *k = &c->processor[r->processor].code;
	for (uint64_t line = p->first_line; line <= p->last_line; line++)
		if (!cdat_is_plain_hit(c, k, line, false))
			return false;
	r->code_hits += fetches_of(p);
	r->plain_code++;
	return true;
}

/* Each block of the body was a hit that changed nothing, one after the other: so will all of them
 * be from now on, and the body goes on without. */
static void drop_code(struct cdat_run *r)
{
	uint32_t nr = 0, at = 0, end_part = 0;
	int64_t left_out = INT64_MIN;
	for (uint32_t i = 0; i < r->nr; i++) {
		struct cdat_part *p = &r->part[i];
		uint64_t next = r->iteration + (i < r->at);
		if (p->kind == MEMORY_BLOCK) {
			r->code_hits += p->end > next ? (p->end - next) * fetches_of(p) : 0;
			left_out = p->key_due > left_out ? p->key_due : left_out;
			continue;
		}
		cdat_runs_wait_for(p, &left_out);
		at += i < r->at;
		end_part += i < r->end_part;
		r->part[nr++] = *p;
	}
	r->nr = nr;
	r->at = at;
	r->end_part = end_part;
	r->nr_code = 0;
	wait_over(r, left_out);
	r->in_order = is_in_order(r);
}

/* find_next() of accesses that are in the order of their turns. */
static BASE_INLINE bool go_ahead(
	struct memory_cdat *c, const struct cdat_cache *k, uint32_t ways, struct cdat_run *r)
{
	uint64_t iteration = r->iteration;
	struct cdat_part *p = r->part + r->at;
	for (;; iteration++, p = r->part) {
		const struct cdat_part *end = r->part + (iteration < r->end ? r->nr : r->end_part);
		for (; p < end; p++)
			if (!take_access(c, k, ways, r, p, iteration))
				goto waits;
		if (iteration >= r->end)
			return false;
	}
waits:
	r->at = (uint32_t)(p - r->part);
	r->clock += (iteration - r->iteration) * r->per_iteration;
	r->iteration = iteration;
	int64_t due = (int64_t)r->clock + p->key_due;
	r->due = due > r->due ? due : r->due;
	return true;
}

/* Goes to what has to wait for its turn; false: the piece is over. */
static bool find_next(struct memory_cdat *c, struct cdat_run *r)
{
	struct cdat_cache own = c->processor[r->processor].data, *k = &own;
	for (;;) {
		if (r->nr_code && r->plain_code >= r->nr_code)
			drop_code(r);
		if (r->in_order && k->ways == 8 && k->sets == k->set_mask + 1) {
			k->sets = k->set_mask + 1; /* (so that it need not be asked) */
			return go_ahead(c, k, 8, r);
		}
		if (r->in_order)
			return go_ahead(c, k, k->ways, r);
		if (!r->nr)
			return false;
		if (r->at == r->nr) {
			r->at = 0;
			r->iteration++;
			r->clock += r->per_iteration;
		}
		if (r->iteration >= r->end && (r->at >= r->end_part || r->iteration > r->end))
			return false;
		struct cdat_part *p = &r->part[r->at];
		int64_t due = (int64_t)r->clock + p->key_due;
		r->due = due > r->due ? due : r->due;
		if (!(p->kind == MEMORY_BLOCK ? p->free && take_fetch(c, r, p)
					      : take_access(c, k, k->ways, r, p, r->iteration)))
			return true;
		r->at++;
	}
}

static inline enum base_status run_part(struct memory_cdat *c, struct cdat_run *r)
{
	enum { AHEAD = 4 }; /* iterations */
	struct cdat_part *p = &r->part[r->at++];
	int64_t due = (int64_t)r->clock + p->due;
	c->clock = due > 0 ? (uint64_t)due : 0;
	if (p->kind == MEMORY_BLOCK) {
		r->plain_code = 0;
		return memory_cdat_fetch(c, r->processor, p->address, p->size_bytes, p->count);
	}
	if (r->iteration + AHEAD < r->end)
		cdat_prefetch(c, cdat_runs_address_in(p, r->iteration + AHEAD));
	uint64_t address = cdat_runs_address_in(p, r->iteration);
	r->hits--;
	enum base_status s;
	if (p->absent && memory_cdat_load_plainly(c, r->processor, address >> c->line_shift, &s))
		return s;
	return memory_cdat_touch(c, r->processor, address, p->size_bytes,
		p->kind == MEMORY_LOAD ? MEMORY_LOAD : MEMORY_STORE);
}

static uint64_t cdat_runs_key_of(const struct cdat_run *r, uint32_t thread)
{
	return memory_key((uint64_t)r->due, thread);
}

/* One thread's, until another one is due. False: its piece is over. */
static bool cdat_runs_run_until(
	struct memory_cdat *c, uint32_t thread, uint64_t limit, enum base_status *ret)
{
	struct cdat_run *r = &c->runs.run[thread];
	bool more = true;
	do {
		*ret = run_part(c, r);
		more = find_next(c, r);
	} while (*ret == BASE_OK && more && cdat_runs_key_of(r, thread) <= limit);
	return more;
}

static enum base_status make_parts(struct memory_cdat *c, const struct memory_steps *steps)
{
	size_t nr = 0;
	for (size_t i = 0; i < steps->nr_pieces; i++)
		nr += steps->piece[i].nr_items;
	if (base_grow(&c->runs.part, &c->runs.parts_capacity, nr, sizeof *c->runs.part) != BASE_OK)
		return BASE_ERR_NOMEM;
	nr = 0;
	for (size_t i = 0; i < steps->nr_pieces; i++) {
		const struct memory_piece *p = &steps->piece[i];
		cdat_runs_count_instructions(c, p);
		cdat_runs_begin_run(c, p, &c->runs.part[nr]);
		nr += c->runs.run[p->thread].nr;
	}
	look_at_parts(c, steps);
	return BASE_OK;
}

enum base_status memory_cdat_pieces(struct memory_cdat *c, const struct memory_steps *steps)
{
	uint32_t nr = 0;
	memory_order_take(steps->order, steps->until);
	enum base_status s = make_parts(c, steps);
	for (size_t i = 0; i < steps->nr_pieces && s == BASE_OK; i++) {
		uint32_t thread = steps->piece[i].thread;
		if (find_next(c, &c->runs.run[thread]))
			base_keys_put(
				c->runs.turn, &nr, cdat_runs_key_of(&c->runs.run[thread], thread));
	}
	while (nr && s == BASE_OK) {
		uint32_t thread = memory_key_cpu(c->runs.turn[0]);
		if (cdat_runs_run_until(c, thread, base_keys_second(c->runs.turn, nr), &s))
			base_keys_replace(
				c->runs.turn, nr, cdat_runs_key_of(&c->runs.run[thread], thread));
		else
			base_keys_drop(c->runs.turn, &nr);
	}
	for (size_t i = 0; i < steps->nr_pieces; i++) {
		const struct cdat_run *r = &c->runs.run[steps->piece[i].thread];
		for (struct cdat_part *p = r->part; p < r->part + r->nr; p++)
			for (size_t k = 0; k < BASE_COUNT(p->misses); k++)
				count_misses(c, r, &p->misses[k]);
		c->open->flow[MEMORY_CDAT_DATA].hits += r->hits;
		c->open->flow[MEMORY_CDAT_INSTRUCTIONS].hits += r->code_hits;
	}
	return s;
}
