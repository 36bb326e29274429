/* SPDX-License-Identifier: Apache-2.0 */
/* cdat_cache.c - sets of ways; the levels of one processor. */
#include "memory/cdat/cdat_private.h"

#include <string.h>

enum base_status memory_cdat_cache_init(struct cdat_cache *k, uint64_t size_bytes, uint64_t ways,
	uint64_t line_bytes, bool versions)
{
	*k = (struct cdat_cache){0};
	if (!size_bytes)
		return BASE_OK;
	uint64_t lines = size_bytes / line_bytes;
	k->ways = (uint32_t)(ways < lines ? ways : lines);
	k->sets = (uint32_t)(lines / k->ways);
	k->set_mask = k->sets & (k->sets - 1) ? 0 : k->sets - 1;
	k->way = base_alloc((size_t)k->sets * k->ways * sizeof *k->way);
	if (versions)
		k->version = base_alloc((size_t)k->sets * k->ways * sizeof *k->version);
	return k->way && (!versions || k->version) ? BASE_OK : BASE_ERR_NOMEM;
}

void memory_cdat_cache_fini(struct cdat_cache *k)
{
	base_free(k->way);
	base_free(k->version);
	*k = (struct cdat_cache){0};
}

static uint32_t *version_set(const struct cdat_cache *k, uint64_t line)
{
	return k->version ? k->version + (cdat_set(k, line) - k->way) : NULL;
}

/* Those before `at` move back by one, and the first way is free. */
static void cdat_cache_move_back(const struct cdat_cache *k, uint64_t line, uint32_t at)
{
	uint64_t *w = cdat_set(k, line);
	uint32_t *v = version_set(k, line);
#pragma GCC unroll 8
	for (uint32_t i = at; i > 0; i--)
		w[i] = w[i - 1];
	if (v)
		memmove(v + 1, v, at * sizeof *v);
}

static void put_first(const struct cdat_cache *k, uint64_t line, uint64_t tag, uint32_t version)
{
	uint32_t *v = version_set(k, line);
	*cdat_set(k, line) = tag;
	if (v)
		*v = version;
}

void memory_cdat_cache_use(const struct cdat_cache *k, uint64_t line, uint32_t way)
{
	uint64_t tag = cdat_set(k, line)[way];
	const uint32_t *v = version_set(k, line);
	uint32_t version = v ? v[way] : 0;
	cdat_cache_move_back(k, line, way);
	put_first(k, line, tag, version);
}

/* A free way, or the one that has to go. */
static uint32_t choose_victim(struct memory_cdat *c, const struct cdat_cache *k, const uint64_t *w)
{
	uint32_t ways = k->ways;
#pragma GCC unroll 8
	for (uint32_t i = 0; i < ways; i++)
		if (!w[i])
			return i;
	if (c->config.replacement != MEMORY_CDAT_RANDOM)
		return ways - 1;
	BASE_ASSERT(ways);
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (uint32_t)(c->random % ways);
}

void memory_cdat_cache_put(struct memory_cdat *c, struct cdat_cache *k, uint64_t line,
	uint32_t version, uint64_t *ret_victim, uint32_t *ret_version)
{
	const uint64_t *w = cdat_set(k, line);
	const uint32_t *v = version_set(k, line);
	uint32_t at = choose_victim(c, k, w);
	*ret_victim = w[at] ? cdat_line_of(w[at]) : UINT64_MAX;
	*ret_version = v ? v[at] : 0;
	cdat_cache_move_back(k, line, at);
	put_first(k, line, cdat_tag(line), version);
}

bool memory_cdat_cache_drop(struct cdat_cache *k, uint64_t line, uint32_t *ret_version)
{
	uint32_t at = cdat_find(k, line);
	if (at >= k->ways)
		return false;
	uint64_t *w = cdat_set(k, line);
	uint32_t *v = version_set(k, line);
	if (v)
		*ret_version = v[at];
	for (; at + 1 < k->ways; at++) { /* free ways are the last ones */
		w[at] = w[at + 1];
		if (v)
			v[at] = v[at + 1];
	}
	w[at] = 0;
	return true;
}

/* ---- lines of the machine, by their parts ---------------------------------------------------- */

void memory_cdat_cache_drop_parts(struct cdat_cache *k, uint64_t line)
{
	uint32_t version;
	for (uint64_t i = 0; k->ways && i < cdat_nr_parts(k); i++)
		(void)memory_cdat_cache_drop(k, (line << k->part_shift) + i, &version);
}

/* No store without asking any more. */
static void cdat_cache_clean(struct cdat_cache *k, uint64_t line)
{
	for (uint64_t i = 0; i < cdat_nr_parts(k); i++) {
		uint64_t part = (line << k->part_shift) + i;
		uint32_t at = cdat_find(k, part);
		if (at < k->ways)
			cdat_set(k, part)[at] &= ~(uint64_t)CDAT_MAY_STORE;
	}
}

bool memory_cdat_cache_has(const struct cdat_cache *k, uint64_t line, uint32_t *ret_version)
{
	for (uint64_t i = 0; k->ways && i < cdat_nr_parts(k); i++) {
		uint64_t part = (line << k->part_shift) + i;
		uint32_t at = cdat_find(k, part);
		if (at >= k->ways)
			continue;
		const uint32_t *v = version_set(k, part);
		*ret_version = v ? v[at] : 0;
		return true;
	}
	return false;
}

/* ---- the levels of a processor --------------------------------------------------------------- */

bool memory_cdat_holds_alone(const struct cdat_processor *p, uint64_t line, uint32_t *ret_version)
{
	return memory_cdat_cache_has(&p->data, line, ret_version) ||
	       memory_cdat_cache_has(&p->code, line, ret_version) ||
	       memory_cdat_cache_has(&p->second, line, ret_version);
}

bool memory_cdat_holds(
	const struct memory_cdat *c, uint32_t unit, uint64_t line, uint32_t *ret_version)
{
	const struct cdat_unit *u = &c->unit[unit];
	for (uint32_t i = u->first; i < u->first + u->nr; i++)
		if (memory_cdat_holds_alone(&c->processor[i], line, ret_version))
			return true;
	return memory_cdat_cache_has(&u->third, line, ret_version);
}

static void drop_alone(struct cdat_processor *p, uint64_t line)
{
	memory_cdat_cache_drop_parts(&p->data, line);
	memory_cdat_cache_drop_parts(&p->code, line);
	memory_cdat_cache_drop_parts(&p->second, line);
}

static void drop_from_all(struct memory_cdat *c, const struct cdat_unit *u, uint64_t line)
{
	for (uint32_t i = u->first; i < u->first + u->nr; i++)
		drop_alone(&c->processor[i], line);
}

void memory_cdat_invalidate(struct memory_cdat *c, uint32_t unit, uint64_t line)
{
	drop_from_all(c, &c->unit[unit], line);
	memory_cdat_cache_drop_parts(&c->unit[unit].third, line);
}

void memory_cdat_clean(struct memory_cdat *c, uint32_t unit, uint64_t line)
{
	const struct cdat_unit *u = &c->unit[unit];
	for (uint32_t i = u->first; i < u->first + u->nr; i++)
		cdat_cache_clean(&c->processor[i].data, line);
}

void memory_cdat_alone(struct memory_cdat *c, uint32_t processor, uint64_t line)
{
	const struct cdat_unit *u = &c->unit[c->processor[processor].unit];
	for (uint32_t i = u->first; i < u->first + u->nr; i++)
		if (i != processor)
			drop_alone(&c->processor[i], line);
}

enum base_status memory_cdat_left(struct memory_cdat *c, uint32_t unit, uint64_t line)
{
	uint32_t version;
	if (line == UINT64_MAX)
		return BASE_OK;
	if ((!c->one_level || cdat_is_code(c, line)) && memory_cdat_holds(c, unit, line, &version))
		return BASE_OK;
	return memory_cdat_replaced(c, unit, line);
}

/* Inclusive: the levels behind get it first; what they give up, the levels before give up, too. */
static enum base_status fill_inclusive(struct memory_cdat *c, uint32_t processor, uint64_t line,
	struct cdat_cache *first, uint32_t version)
{
	struct cdat_processor *p = &c->processor[processor];
	struct cdat_unit *u = &c->unit[p->unit];
	struct cdat_cache *level[] = {&u->third, &p->second, first};
	for (size_t i = 0; i < BASE_COUNT(level); i++) {
		uint64_t victim;
		uint32_t ignored;
		if (!level[i]->ways || cdat_has(level[i], line))
			continue;
		memory_cdat_cache_put(c, level[i], line, version, &victim, &ignored);
		if (victim == UINT64_MAX)
			continue;
		if (i == 0) {
			drop_from_all(c, u, victim);
		} else if (i == 1) {
			(void)memory_cdat_cache_drop(&p->data, victim, &ignored);
			(void)memory_cdat_cache_drop(&p->code, victim, &ignored);
		}
		enum base_status s = memory_cdat_left(c, p->unit, victim);
		if (s != BASE_OK)
			return s;
	}
	return BASE_OK;
}

/* ---- levels with lines of their own sizes: inclusive, always --------------------------------- */

/* Lines of `inner` that are in one of a level behind it. */
static void drop_within(
	struct cdat_cache *inner, const struct cdat_cache *outer, uint64_t outer_line)
{
	unsigned shift = inner->part_shift - outer->part_shift;
	uint32_t version;
	for (uint64_t i = 0; inner->ways && i < UINT64_C(1) << shift; i++)
		(void)memory_cdat_cache_drop(inner, (outer_line << shift) + i, &version);
}

/* `k` had to give up one of its lines. From the last level the machine's line goes as a whole, and
 * with it all that the levels before have of it. */
static enum base_status part_left(
	struct memory_cdat *c, struct cdat_processor *p, struct cdat_cache *k, uint64_t victim)
{
	struct cdat_unit *u = &c->unit[p->unit];
	uint64_t line = victim >> k->part_shift;
	if (k == &p->second && !k->is_last) {
		drop_within(&p->data, k, victim);
		drop_within(&p->code, k, victim);
	}
	if (!k->is_last)
		return BASE_OK;
	memory_cdat_cache_drop_parts(k, line);
	if (k == &u->third)
		drop_from_all(c, u, line);
	else if (k == &p->second)
		drop_alone(p, line);
	return memory_cdat_left(c, p->unit, line);
}

static enum base_status cdat_cache_put_part(struct memory_cdat *c, struct cdat_processor *p,
	struct cdat_cache *k, uint64_t part, uint32_t version)
{
	uint64_t victim;
	uint32_t ignored;
	if (cdat_has(k, part))
		return BASE_OK;
	memory_cdat_cache_put(c, k, part, version, &victim, &ignored);
	return victim == UINT64_MAX ? BASE_OK : part_left(c, p, k, victim);
}

/* The last level gets all of the line, those before it the part that was asked for. */
static enum base_status fill_parts(struct memory_cdat *c, uint32_t processor, uint64_t line,
	struct cdat_cache *first, uint32_t version)
{
	struct cdat_processor *p = &c->processor[processor];
	struct cdat_cache *level[] = {&c->unit[p->unit].third, &p->second, first};
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < BASE_COUNT(level) && s == BASE_OK; i++) {
		struct cdat_cache *k = level[i];
		if (!k->ways)
			continue;
		if (!k->is_last) {
			s = cdat_cache_put_part(c, p, k, cdat_part(c, k, line), version);
			continue;
		}
		for (uint64_t n = 0; n < cdat_nr_parts(k) && s == BASE_OK; n++)
			s = cdat_cache_put_part(c, p, k, (line << k->part_shift) + n, version);
	}
	return s;
}

/* Not inclusive: what one level gives up goes to the next. */
static enum base_status fill_victims(struct memory_cdat *c, uint32_t processor, uint64_t line,
	struct cdat_cache *first, uint32_t version)
{
	struct cdat_processor *p = &c->processor[processor];
	struct cdat_cache *level[] = {first, &p->second, &c->unit[p->unit].third};
	for (size_t i = 0; i < BASE_COUNT(level) && line != UINT64_MAX; i++)
		if (level[i]->ways && !cdat_has(level[i], line))
			memory_cdat_cache_put(c, level[i], line, version, &line, &version);
		else if (level[i]->ways)
			line = UINT64_MAX;
	return memory_cdat_left(c, p->unit, line);
}

enum base_status memory_cdat_fill(
	struct memory_cdat *c, uint32_t processor, uint64_t line, bool code, uint32_t version)
{
	struct cdat_processor *p = &c->processor[processor];
	struct cdat_cache *first = code && p->code.ways ? &p->code : &p->data;
	if (code) /* (its directory's entry was looked at when it came) */
		cdat_chunk_at(c, line << c->line_shift)->has_code = true;
	if (c->one_level && !code) {
		memory_cdat_cache_put(c, first, line, version, &line, &version);
		return memory_cdat_left(c, p->unit, line);
	}
	if (c->has_parts)
		return fill_parts(c, processor, line, first, version);
	return c->config.inclusive ? fill_inclusive(c, processor, line, first, version)
				   : fill_victims(c, processor, line, first, version);
}
