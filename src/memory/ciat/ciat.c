/* SPDX-License-Identifier: Apache-2.0 */
/* ciat.c - each step changes the state of the locations that it touches. */
#include "memory/ciat/ciat_private.h"

#include <string.h>

/* What is counted beside the states: the loop over steps is made for each. */
enum aside { ASIDE_NOTHING, ASIDE_FUNCTIONS, ASIDE_REUSE };

enum {
	SITES_MAX = 1 << 20,
	ADDRESS_BITS = 47,
	PREFETCH_STEPS = 16,
};
#define MEMORY_LIMIT_DEFAULT (UINT64_C(4) << 30)

static const uint8_t size_class[MEMORY_ACCESS_MAX_BYTES + 1] = {
#define SIZE(name, bytes, line) [bytes] = MEMORY_CIAT_SIZE_##name + 1,
#include "memory/ciat/ciat_sizes.def"
};

/* The class of a size: that of the next size that has a row. */
unsigned memory_ciat_class(unsigned size_bytes)
{
	while (!size_class[size_bytes])
		size_bytes++;
	return size_class[size_bytes] - 1u;
}

const char *memory_ciat_event_name(enum memory_ciat_event e)
{
	static const char *const name[] = {"RAW", "WAR", "WAW", "RAR"};
	return name[e];
}

const char *memory_phase_name(enum memory_phase_kind kind)
{
	static const char *const name[] = {"serial", "parallel", "user"};
	return name[kind];
}

static void set_layout(struct memory_ciat *c)
{
	uint32_t locations = (uint32_t)PAGE_BYTES >> c->shape.location_shift;
	uint32_t lines = (uint32_t)PAGE_BYTES >> c->shape.line_shift;
	uint32_t stride =
		(uint32_t)(sizeof(struct ciat_line) + (locations / lines) * sizeof(uint16_t));
	c->shape.line_stride = (stride + CACHE_LINE_BYTES - 1) & ~(CACHE_LINE_BYTES - 1u);
	if (stride <= CACHE_LINE_BYTES / 2)
		c->shape.line_stride = CACHE_LINE_BYTES / 2;
	c->shape.line_offset = STATE_OFFSET + locations * (uint32_t)sizeof(uint64_t);
	c->page_bytes = c->shape.line_offset + lines * c->shape.line_stride;
}

/* ---- lines: true and false sharing ----------------------------------------------------------- */

/* Holds one of the locations a value of another thread that this one has not read yet? Then a miss
 * on it is true sharing (Torrellas, Lam, Hennessy 1994). */
static bool brings_news(const struct memory_ciat *c, struct ciat_page *p, unsigned first,
	unsigned last, uint32_t thread)
{
	for (unsigned g = first; g <= last; g++) {
		uint64_t st = ciat_state(p)[g];
		uint32_t writer = ciat_writer(st);
		if (writer && writer != thread + 1 &&
			!memory_sets_has(&c->sets, (uint32_t)st, thread))
			return true;
	}
	return false;
}

/* Its index; the line knows the one that was met last. */
static enum base_status find_site(struct memory_ciat *c, const struct memory_step *s,
	struct ciat_line *l, uint64_t line, uint64_t *ret)
{
	uint64_t heap_offset;
	uint32_t heap = memory_ciat_heap_at(c, s->address, &heap_offset);
	uint64_t key = line | (uint64_t)heap << ADDRESS_BITS;
	*ret = l->site - 1ul;
	if (l->site && c->site[*ret].code == s->code && c->site[*ret].heap == heap)
		return BASE_OK;
	if (!base_map_get(&c->site_of, key, s->code, ret)) {
		if (c->nr_sites >= SITES_MAX)
			return BASE_END;
		enum base_status status =
			base_grow(&c->site, &c->sites_capacity, c->nr_sites + 1, sizeof *c->site);
		if (status == BASE_OK)
			status = base_map_put(&c->site_of, key, s->code, c->nr_sites);
		if (status != BASE_OK)
			return status;
		*ret = c->nr_sites++;
		c->site[*ret] = (struct memory_ciat_site){.line = line,
			.code = s->code,
			.thread = s->thread,
			.heap = heap,
			.heap_offset = heap_offset};
	}
	l->site = (uint32_t)*ret + 1;
	return BASE_OK;
}

static enum base_status ciat_add_site(struct memory_ciat *c, const struct memory_step *s,
	struct ciat_line *l, uint64_t line, bool miss, bool true_miss, bool store)
{
	uint64_t index;
	enum base_status status = find_site(c, s, l, line, &index);
	if (status == BASE_END) {
		c->result.sites_left_out++;
		return BASE_OK;
	}
	if (status != BASE_OK)
		return status;
	struct memory_ciat_site *site = &c->site[index];
	site->true_misses += miss && true_miss;
	site->false_misses += miss && !true_miss;
	site->upgrades += !miss;
	site->several |= site->thread != s->thread;
	site->stores |= store;
	uint64_t offset = s->address > line ? s->address - line : 0;
	site->offsets |= UINT64_C(1) << (offset * 64 / c->options.line_bytes & 63);
	return BASE_OK;
}

/* The thread's copy of the line is not as the access needs it. */
static enum base_status __attribute__((noinline))
line_miss(struct memory_ciat *c, struct memory_ciat_counts *n, struct ciat_page *p, unsigned line,
	unsigned first, unsigned last, const struct memory_step *s, bool store)
{
	struct ciat_line *l = ciat_line(&c->shape, p, line);
	uint32_t thread = s->thread;
	bool held = memory_sets_has(&c->sets, l->holders, thread);
	bool seen = memory_sets_has(&c->sets, l->seen, thread);
	bool news = !held && seen && brings_news(c, p, first, last, thread);
	enum base_status status = BASE_OK;
	if (held) {
		n->upgrades++;
		l->upgrades++;
	} else if (!seen) {
		n->cold_misses++;
		status = memory_sets_add(&c->sets, &l->seen, thread);
	} else if (news) {
		n->true_misses++;
		l->true_misses++;
	} else {
		n->false_misses++;
		l->false_misses++;
	}
	if (status == BASE_OK && (held || seen))
		status = ciat_add_site(c, s, l,
			(p->number << PAGE_SHIFT) + ((uint64_t)line << c->shape.line_shift), !held,
			news, store);
	if (status == BASE_OK && store)
		l->holders = c->thread[thread].alone;
	else if (status == BASE_OK)
		status = memory_sets_add(&c->sets, &l->holders, thread);
	return status;
}

static enum base_status touch_line(struct memory_ciat *c, struct memory_ciat_counts *n,
	struct ciat_page *p, unsigned first, unsigned last, const struct memory_step *s, bool store)
{
	const struct ciat_shape *y = &c->shape;
	unsigned shift = y->line_shift - y->location_shift;
	for (unsigned line = first >> shift; line <= last >> shift; line++) {
		uint32_t holders = ciat_line(y, p, line)->holders;
		if (store ? holders == c->thread[s->thread].alone
			  : memory_sets_has(&c->sets, holders, s->thread))
			continue;
		unsigned from = line << shift, to = ((line + 1) << shift) - 1;
		enum base_status status = line_miss(c, n, p, line, first > from ? first : from,
			last < to ? last : to, s, store);
		if (status != BASE_OK)
			return status;
	}
	return BASE_OK;
}

/* ---- locations ------------------------------------------------------------------------------- */

struct seen { /* what an access showed in any of its locations */
	bool event[MEMORY_CIAT_EVENTS];
	uint32_t degree;
	uint32_t writer; /* of the first RAW; + 1 */
};

/* A thread loads a location that it has neither stored last nor loaded since. */
static enum base_status __attribute__((noinline))
load_news(struct memory_ciat *c, uint64_t *state, uint32_t thread, struct seen *ret)
{
	uint32_t readers = (uint32_t)*state, writer = ciat_writer(*state);
	uint32_t degree = memory_sets_size(&c->sets, readers);
	if (writer) {
		ret->event[MEMORY_CIAT_RAW] = true;
		ret->writer = ret->writer ? ret->writer : writer;
		if (degree)
			c->sharing[degree]--;
		c->sharing[degree + 1]++;
	} else if (degree) {
		ret->event[MEMORY_CIAT_RAR] = true;
	}
	enum base_status s = memory_sets_add(&c->sets, &readers, thread);
	*state = (*state & ~(uint64_t)UINT32_MAX) | readers;
	return s;
}

/* A store that ends the life of another's value, or of one that others have read. */
static void __attribute__((noinline))
store_over(struct memory_ciat *c, uint64_t state, uint32_t thread, struct seen *ret)
{
	uint32_t readers = (uint32_t)state, writer = ciat_writer(state);
	uint32_t others =
		memory_sets_size(&c->sets, readers) - memory_sets_has(&c->sets, readers, thread);
	if (others) {
		ret->event[MEMORY_CIAT_WAR] = true;
		ret->degree = others > ret->degree ? others : ret->degree;
		c->open->invalidation[others]++;
	} else if (writer && writer != thread + 1) {
		ret->event[MEMORY_CIAT_WAW] = true;
	}
}

static inline uint64_t touched(uint64_t st, uint32_t thread, uint64_t bytes)
{
	uint32_t toucher = ciat_toucher(st);
	st |= bytes << STATE_BYTES;
	if (BASE_UNLIKELY(toucher != thread + 1)) {
		if (!toucher)
			st |= (uint64_t)(thread + 1) << STATE_TOUCHER;
		else
			st |= UINT64_C(1) << STATE_SHARED;
	}
	return st;
}

static inline enum base_status touch_location(struct memory_ciat *c, uint64_t *state,
	uint32_t thread, uint64_t bytes, bool store, struct seen *ret)
{
	uint64_t st = touched(*state, thread, bytes);
	enum base_status s = BASE_OK;
	if (!store) {
		if (ciat_writer(st) != thread + 1 &&
			!memory_sets_has(&c->sets, (uint32_t)st, thread))
			s = load_news(c, &st, thread, ret);
	} else {
		if ((uint32_t)st || ciat_writer(st) != thread + 1) {
			store_over(c, st, thread, ret);
			st &= ~VALUE_MASK;
			st |= (uint64_t)(thread + 1) << STATE_WRITER;
		}
	}
	*state = st;
	return s;
}

void memory_ciat_settle(struct memory_ciat *c, struct ciat_page *p, uint32_t threads)
{
	c->unsettled += !threads;
	p->settled = threads;
	for (unsigned i = 0; i < (unsigned)PAGE_BYTES >> c->shape.line_shift; i++)
		ciat_line(&c->shape, p, i)->settled = threads;
}

/* The piece [offset, offset + size) of one page. */
static enum base_status touch_page(struct memory_ciat *c, struct memory_ciat_counts *n,
	struct ciat_page *p, unsigned offset, unsigned size_bytes, const struct memory_step *s,
	bool store, struct seen *ret)
{
	const struct ciat_shape *y = &c->shape;
	unsigned shift = y->location_shift, first = offset >> shift;
	unsigned line_shift = y->line_shift - shift;
	unsigned last = (offset + size_bytes - 1) >> shift;
	enum base_status status = BASE_OK;
	if (store && BASE_UNLIKELY(ciat_line(y, p, first >> line_shift)->settled))
		memory_ciat_settle(c, p, 0);
	if (!c->options.without_lines) {
		status = touch_line(c, n, p, first, last, s, store);
		if (BASE_UNLIKELY(status != BASE_OK))
			return status;
	}
	unsigned whole = (1u << (1u << shift)) - 1, mask = (1u << shift) - 1;
	for (unsigned g = first; g <= last && status == BASE_OK; g++) {
		unsigned bytes = whole;
		if (g == first)
			bytes &= whole << (offset & mask);
		if (g == last)
			bytes &= whole >> (mask - ((offset + size_bytes - 1) & mask));
		status = touch_location(c, &ciat_state(p)[g], s->thread, bytes, store, ret);
	}
	return status;
}

static void report_events(struct memory_ciat *c, struct memory_ciat_counts *n,
	const struct memory_step *s, const struct seen *seen)
{
	for (unsigned e = 0; e < MEMORY_CIAT_EVENTS; e++) {
		if (!seen->event[e] || (e == MEMORY_CIAT_WAW && seen->event[MEMORY_CIAT_WAR]))
			continue;
		n->event[e]++;
		if (c->options.event)
			c->options.event(c->options.event_ctx, s->clock, e, s->thread,
				e == MEMORY_CIAT_WAW   ? 1
				: e == MEMORY_CIAT_WAR ? seen->degree
						       : 0);
	}
	if (seen->writer)
		c->matrix[(size_t)(seen->writer - 1) * c->result.nr_threads + s->thread]++;
}

enum base_status memory_ciat_wrap(
	struct memory_ciat *c, struct ciat_page *p, unsigned location, uint64_t times)
{
	size_t bytes = ((size_t)PAGE_BYTES >> c->shape.location_shift) * sizeof *p->wraps;
	if (!p->wraps) {
		p->wraps = base_alloc(bytes);
		if (!p->wraps)
			return BASE_ERR_NOMEM;
		c->used_bytes += bytes;
	}
	uint64_t sum = p->wraps[location] + times;
	p->wraps[location] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
	return BASE_OK;
}

static enum base_status fail_page(const struct memory_ciat *c)
{
	return c->used_bytes + c->page_bytes > c->options.memory_limit_bytes ? BASE_ERR_LIMIT
									     : BASE_ERR_NOMEM;
}

/* The usual access: within one line, to whole locations, or a part of one, that are new or have
 * been this thread's alone, or are loaded again. Nothing of that is an event, and a thread that has
 * settled in the page stays so: if it is a store, nobody else has. False: the general way has to go
 * over it, and finds what was done here done. */
static inline __attribute__((always_inline)) bool touch_own(struct memory_ciat *c,
	const struct ciat_shape *y, const struct ciat_thread *t, struct ciat_page *p,
	unsigned offset, unsigned size_bytes, uint32_t thread, bool store)
{
	const unsigned location_mask = (1u << y->location_shift) - 1;
	const unsigned line_bytes = 1u << y->line_shift;
	uint64_t bytes = UINT64_C(0xff) >> (8 - (location_mask + 1));
	unsigned nr = size_bytes >> y->location_shift;
	if (BASE_UNLIKELY((offset | size_bytes) & location_mask)) {
		if ((offset & location_mask) + size_bytes > location_mask + 1)
			return false;
		bytes = ((UINT64_C(1) << size_bytes) - 1) << (offset & location_mask);
		nr = 1;
	} else if (BASE_UNLIKELY((offset & (line_bytes - 1)) + size_bytes > line_bytes)) {
		return false;
	}
	struct ciat_line *l = ciat_line(y, p, offset >> y->line_shift);
	const uint32_t alone = t->alone;
	if (!c->options.without_lines) {
		if (!l->seen) {
			l->holders = l->seen = alone;
			t->counts->cold_misses++;
		} else if (store ? l->holders != alone
				 : !memory_sets_has(&c->sets, l->holders, thread)) {
			return false;
		}
	}
	const uint64_t own = (uint64_t)thread + 1;
	uint64_t *state = &ciat_state(p)[offset >> y->location_shift];
	for (; nr; nr--, state++) {
		uint64_t st = *state;
		uint32_t readers = (uint32_t)st, writer = ciat_writer(st);
		bool ours =
			store ? (!readers | (readers == alone)) & (!writer | (writer == own))
			      : !st | (writer == own) || memory_sets_has(&c->sets, readers, thread);
		if (!ours)
			return false;
		/* Of a page that was mapped anew only who touched it before is known. */
		if (BASE_UNLIKELY(!(st & VALUE_MASK)) && st && ciat_toucher(st) != own)
			return false;
		uint64_t first = own << STATE_TOUCHER | (store ? 0 : alone);
		if (store)
			st = (st & ~VALUE_MASK) | own << STATE_WRITER;
		*state = st | bytes << STATE_BYTES | (*state ? 0 : first);
	}
	return true;
}

/* [address, address + size) within at most two pages, of which the first is p. */
static enum base_status __attribute__((noinline))
touch_any(struct memory_ciat *c, struct memory_ciat_counts *n, const struct memory_step *s,
	struct ciat_page *p, uint64_t address, unsigned size_bytes, bool store)
{
	struct seen seen = {0};
	unsigned offset = address & (PAGE_BYTES - 1);
	unsigned here = PAGE_BYTES - offset < size_bytes ? PAGE_BYTES - offset : size_bytes;
	enum base_status status = touch_page(c, n, p, offset, here, s, store, &seen);
	if (BASE_UNLIKELY(here < size_bytes) && status == BASE_OK) {
		p = memory_ciat_page(c, (address >> PAGE_SHIFT) + 1);
		if (!p)
			return fail_page(c);
		status = touch_page(c, n, p, 0, size_bytes - here, s, store, &seen);
	}
	uint32_t any;
	memcpy(&any, seen.event, sizeof any);
	if (any)
		report_events(c, n, s, &seen);
	return status;
}

static inline __attribute__((always_inline)) enum base_status ciat_touch(struct memory_ciat *c,
	const struct ciat_shape *y, const struct memory_step *s, uint64_t address,
	unsigned size_bytes, bool store, bool counted)
{
	const struct ciat_thread *t = &c->thread[s->thread];
	unsigned offset = address & (PAGE_BYTES - 1);
	struct ciat_page *p = ciat_known_page(c, address >> PAGE_SHIFT);
	if (BASE_UNLIKELY(!p)) {
		p = memory_ciat_page(c, address >> PAGE_SHIFT);
		if (!p)
			return fail_page(c);
	}
	if (counted && BASE_UNLIKELY(!++*ciat_count(y, p, offset >> y->location_shift))) {
		enum base_status status = memory_ciat_wrap(c, p, offset >> y->location_shift, 1);
		if (status != BASE_OK)
			return status;
	}
	if (!store && ciat_line(y, p, offset >> y->line_shift)->settled &&
		offset + size_bytes <= PAGE_BYTES &&
		memory_sets_has(&c->sets, p->settled, s->thread))
		return BASE_OK;
	if (BASE_LIKELY(touch_own(c, y, t, p, offset, size_bytes, s->thread, store)))
		return BASE_OK;
	return touch_any(c, t->counts, s, p, address, size_bytes, store);
}

/* ---- what is counted beside ------------------------------------------------------------------ */

unsigned memory_ciat_string(uint64_t length)
{
	if (length <= MEMORY_CIAT_STRING_EXACT)
		return (unsigned)length;
	unsigned octave = 63 - (unsigned)__builtin_clzll(length) - 6; /* 65 .. 127: 0 */
	unsigned bucket = MEMORY_CIAT_STRING_EXACT + 1 + octave;
	return bucket < MEMORY_CIAT_STRINGS ? bucket : MEMORY_CIAT_STRINGS - 1;
}

static inline void add_to_string(struct ciat_thread *t, unsigned kind)
{
	if (BASE_LIKELY(t->string_kind == kind)) {
		t->string_length++;
		return;
	}
	if (t->string_length)
		t->counts->string[t->string_kind][memory_ciat_string(t->string_length)]++;
	t->string_kind = kind;
	t->string_length = 1;
}

/* Where code, which is mostly met again, is looked for first. */
static inline size_t lookaside_slot(uint64_t code)
{
	return code * UINT64_C(0x9e3779b97f4a7c15) >> (64 - LOOKASIDE_BITS);
}

static enum base_status __attribute__((noinline))
find_function(struct memory_ciat *c, uint64_t code, struct memory_ciat_function **ret)
{
	uint64_t index;
	if (!base_map_get(&c->functions.of, 0, code, &index)) {
		enum base_status s = base_grow(&c->functions.function, &c->functions.capacity,
			c->functions.nr + 1, sizeof *c->functions.function);
		if (s == BASE_OK)
			s = base_map_put(&c->functions.of, 0, code, c->functions.nr);
		if (s != BASE_OK)
			return s;
		index = c->functions.nr++;
		c->functions.function[index] = (struct memory_ciat_function){.code = code};
	}
	c->functions.lookaside[lookaside_slot(code)] = (uint32_t)index;
	*ret = &c->functions.function[index];
	return BASE_OK;
}

static inline enum base_status function_at(
	struct memory_ciat *c, uint64_t code, struct memory_ciat_function **ret)
{
	uint32_t index = c->functions.lookaside[lookaside_slot(code)];
	if (BASE_UNLIKELY(index >= c->functions.nr || c->functions.function[index].code != code))
		return find_function(c, code, ret);
	*ret = &c->functions.function[index];
	return BASE_OK;
}

enum base_status memory_ciat_function_at(
	struct memory_ciat *c, uint64_t code, struct memory_ciat_function **ret)
{
	return function_at(c, code, ret);
}

static enum base_status count_reuse(struct memory_ciat *c, const struct memory_step *s)
{
	uint64_t line = s->address >> c->shape.line_shift;
	uint64_t last = (s->address + s->size_bytes - 1) >> c->shape.line_shift;
	enum base_status status = BASE_OK;
	for (; line <= last && status == BASE_OK; line++) {
		status = memory_reuse_access(c->shared_reuse, line);
		if (status == BASE_OK)
			status = memory_reuse_access(c->private_reuse[s->thread], line);
	}
	return status;
}

/* What an access adds to its function, and to reuse distances: `raw` events and `misses`. */
static inline __attribute__((always_inline)) enum base_status access_aside(struct memory_ciat *c,
	const struct memory_step *s, enum aside aside, uint64_t raw, uint64_t misses)
{
	enum base_status status = BASE_OK;
	if (aside & ASIDE_FUNCTIONS) {
		struct memory_ciat_function *f;
		status = function_at(c, s->code, &f);
		if (status != BASE_OK)
			return status;
		f->loads += s->kind != MEMORY_STORE;
		f->stores += s->kind != MEMORY_LOAD;
		if (BASE_UNLIKELY(raw | misses)) {
			f->raw += raw;
			f->misses += misses;
		}
	}
	if (aside & ASIDE_REUSE && s->size_bytes)
		status = count_reuse(c, s);
	return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) enum base_status ciat_add_access(struct memory_ciat *c,
	const struct ciat_shape *y, const struct memory_step *s, unsigned kind)
{
	struct ciat_thread *t = &c->thread[s->thread];
	struct memory_ciat_counts *n = t->counts;
	n->access[kind][memory_ciat_class(s->size_bytes)][s->reg]++;
	n->access_bytes[kind] += s->size_bytes;
	add_to_string(t, kind);
	if (BASE_UNLIKELY(!s->size_bytes))
		return BASE_OK;
	return ciat_touch(c, y, s, s->address, s->size_bytes, kind == 1, true);
}

static enum base_status ciat_add_range(
	struct memory_ciat *c, const struct memory_step *s, bool store)
{
	struct memory_ciat_counts *n = c->thread[s->thread].counts;
	uint64_t address = s->address, end = s->address + s->count;
	if (store) {
		n->range_stores++;
		n->range_store_bytes += s->count;
	} else {
		n->range_loads++;
		n->range_load_bytes += s->count;
	}
	while (address < end) {
		uint64_t next = (address | (MEMORY_ACCESS_MAX_BYTES - 1)) + 1;
		next = next < end ? next : end;
		enum base_status status = ciat_touch(
			c, &c->shape, s, address, (unsigned)(next - address), store, false);
		if (status != BASE_OK)
			return status;
		address = next;
	}
	return BASE_OK;
}

static inline size_t block_slot(const struct memory_step *s)
{
	return lookaside_slot(
		(s->address ^ (uint64_t)s->size_bytes << 48 ^ (uint64_t)s->thread << 52));
}

static enum base_status __attribute__((noinline))
find_block(struct memory_ciat *c, const struct memory_step *s, uint32_t *ret)
{
	uint64_t index, hi = (uint64_t)s->thread << 48 | (uint64_t)s->size_bytes << 32 |
			     (s->count & UINT32_MAX);
	if (!base_map_get(&c->block_of, hi, s->address, &index)) {
		enum base_status status = base_grow(
			&c->block, &c->blocks_capacity, c->nr_blocks + 1, sizeof *c->block);
		if (status == BASE_OK)
			status = base_map_put(&c->block_of, hi, s->address, c->nr_blocks);
		if (status != BASE_OK)
			return status;
		index = c->nr_blocks++;
		c->block[index] = (struct ciat_block){.address = s->address,
			.count = s->count,
			.thread = s->thread,
			.size_bytes = s->size_bytes};
	}
	*ret = c->block_lookaside[block_slot(s)] = (uint32_t)index;
	return BASE_OK;
}

static inline enum base_status ciat_add_block(
	struct memory_ciat *c, const struct memory_step *s, uint64_t times)
{
	uint32_t index = c->block_lookaside[block_slot(s)];
	c->thread[s->thread].counts->fetched += s->count * times;
	if (BASE_UNLIKELY(index >= c->nr_blocks || c->block[index].address != s->address ||
			  c->block[index].thread != s->thread ||
			  c->block[index].size_bytes != s->size_bytes ||
			  c->block[index].count != s->count)) {
		enum base_status status = find_block(c, s, &index);
		if (status != BASE_OK)
			return status;
	}
	c->block[index].executed += times;
	return BASE_OK;
}

enum base_status memory_ciat_block(
	struct memory_ciat *c, const struct memory_step *s, uint64_t times)
{
	return ciat_add_block(c, s, times);
}

#define CALL(name, number, class, line)                                                            \
	_Static_assert((number) < MEMORY_CIAT_CALLS, "each kind has a place in call[]");
#include "memory/stream/calls.def"

static void ciat_add_call(
	struct memory_ciat *c, const struct memory_step *s, const struct memory_call *call)
{
	struct memory_ciat_call_sum *sum = &c->thread[s->thread].counts->call[call->kind];
	sum->count++;
	sum->time_ns += call->end_ns > call->start_ns ? call->end_ns - call->start_ns : 0;
	if (call->kind == MEMORY_CALL_read || call->kind == MEMORY_CALL_write)
		sum->amount += call->argument[1];
}

static enum base_status ciat_add_rare(struct memory_ciat *c, const struct memory_step *s,
	const struct memory_steps *steps, struct base_err *err)
{
	struct memory_ciat_counts *n = c->open ? c->thread[s->thread].counts : NULL;
	if (s->kind == MEMORY_STEP_PHASE_BEGIN)
		return memory_ciat_begin_phase(c, s, err);
	if (s->kind == MEMORY_STEP_ACTIVE || s->kind == MEMORY_STEP_IDLE)
		return BASE_OK;
	BASE_ASSERT(n); /* order.h: nothing happens outside phases */
	switch (s->kind) {
	case MEMORY_STEP_PHASE_END:
		memory_ciat_end_phase(c, s);
		break;
	case MEMORY_BRANCH:
		n->branches++;
		break;
	case MEMORY_PROC_CALL:
		n->branches++;
		n->procedure_calls++;
		break;
	case MEMORY_PROC_START:
		n->procedure_starts++;
		break;
	case MEMORY_PROC_RETURN:
		n->branches++;
		n->returns++;
		break;
	case MEMORY_CALL:
		ciat_add_call(c, s, &steps->call[s->call]);
		return memory_ciat_heap_call(c, &steps->call[s->call]);
	case MEMORY_BLOCK:
		return ciat_add_block(c, s, 1);
	case MEMORY_RANGE_LOAD:
	case MEMORY_STEP_DMA_OUT:
		return ciat_add_range(c, s, false);
	case MEMORY_RANGE_STORE:
	case MEMORY_STEP_DMA_IN:
		return ciat_add_range(c, s, true);
	default:
		break;
	}
	return BASE_OK;
}

static inline __attribute__((always_inline)) enum base_status ciat_add_step(
	struct memory_ciat *c, const struct ciat_shape *y, const struct memory_step *s)
{
	enum base_status status = BASE_OK;
	if (s->kind != MEMORY_STORE)
		status = ciat_add_access(c, y, s, 0);
	if (s->kind != MEMORY_LOAD && status == BASE_OK)
		status = ciat_add_access(c, y, s, 1);
	if (s->kind == MEMORY_ATOMIC)
		c->thread[s->thread].counts->atomics++;
	return status;
}

static inline __attribute__((always_inline)) enum base_status step_aside(struct memory_ciat *c,
	const struct ciat_shape *y, enum aside aside, const struct memory_step *s)
{
	const struct memory_ciat_counts *n = c->thread[s->thread].counts;
	uint64_t raw = n->event[MEMORY_CIAT_RAW], misses = n->true_misses + n->false_misses;
	enum base_status status = ciat_add_step(c, y, s);
	if (BASE_UNLIKELY(status != BASE_OK))
		return status;
	return access_aside(c, s, aside, n->event[MEMORY_CIAT_RAW] - raw,
		n->true_misses + n->false_misses - misses);
}

enum base_status memory_ciat_touch(struct memory_ciat *c, const struct memory_step *s)
{
	struct memory_ciat_counts *n = c->thread[s->thread].counts;
	uint64_t raw = n->event[MEMORY_CIAT_RAW], misses = n->true_misses + n->false_misses;
	enum base_status status = BASE_OK;
	if (s->kind != MEMORY_STORE)
		status = ciat_touch(c, &c->shape, s, s->address, s->size_bytes, false, true);
	if (s->kind != MEMORY_LOAD && status == BASE_OK)
		status = ciat_touch(c, &c->shape, s, s->address, s->size_bytes, true, true);
	if (status == BASE_OK && c->options.with_functions) {
		struct memory_ciat_function *f;
		status = memory_ciat_function_at(c, s->code, &f);
		if (status == BASE_OK) {
			f->raw += n->event[MEMORY_CIAT_RAW] - raw;
			f->misses += n->true_misses + n->false_misses - misses;
		}
	}
	return status;
}

static enum base_status ciat_fail_step(struct memory_ciat *c, const struct memory_step *s,
	enum base_status status, struct base_err *err)
{
	if (status == BASE_ERR_LIMIT)
		return base_fail(err, status,
			"the touched memory needs more than %llu bytes of analysis state (at "
			"clock %llu); allow more with --max-memory",
			(unsigned long long)c->options.memory_limit_bytes,
			(unsigned long long)s->clock);
	return base_fail(err, status, "no memory for the state of touched memory");
}

/* The state of what comes a few steps later: irregular accesses wait for memory, not for us. To the
 * first cache alone: what is irregular is not soon met again, and what is is there already.
 * (Inlined by force: gcc 12 takes a function that only prefetches for one without effect.) */
static inline __attribute__((always_inline)) void prefetch(const struct memory_ciat *c,
	const struct ciat_shape *y, enum aside aside, const struct memory_step *s)
{
	if (s->kind == MEMORY_BLOCK && c->nr_blocks)
		__builtin_prefetch(&c->block[c->block_lookaside[block_slot(s)]], 1);
	if (s->kind > MEMORY_ATOMIC)
		return;
	if (aside & ASIDE_FUNCTIONS && c->functions.nr)
		__builtin_prefetch(
			&c->functions.function[c->functions.lookaside[lookaside_slot(s->code)]], 1);
	struct ciat_page *p = ciat_known_page(c, s->address >> PAGE_SHIFT);
	if (!p)
		return;
	unsigned offset = s->address & (PAGE_BYTES - 1), g = offset >> y->location_shift;
	__builtin_prefetch(&ciat_state(p)[g], 1, 0);
	__builtin_prefetch(ciat_line(y, p, offset >> y->line_shift), 1, 0);
}

static inline __attribute__((always_inline)) enum base_status add_steps(struct memory_ciat *c,
	const struct ciat_shape *y, enum aside aside, const struct memory_steps *steps,
	struct base_err *err)
{
	for (size_t i = 0; i < steps->nr; i++) {
		const struct memory_step *s = &steps->step[i];
		enum base_status status;
		if (i + PREFETCH_STEPS < steps->nr)
			prefetch(c, y, aside, s + PREFETCH_STEPS);
		if (BASE_UNLIKELY(s->kind > MEMORY_ATOMIC)) {
			status = s->kind == MEMORY_BLOCK && c->open
					 ? ciat_add_block(c, s, 1)
					 : ciat_add_rare(c, s, steps, err);
			if (s->kind < MEMORY_CALL && status == BASE_OK)
				c->thread[s->thread].counts->instructions += s->instructions;
		} else {
			status = aside ? step_aside(c, y, aside, s) : ciat_add_step(c, y, s);
			c->thread[s->thread].counts->instructions += s->instructions;
		}
		if (BASE_UNLIKELY(status != BASE_OK))
			return ciat_fail_step(c, s, status, err);
	}
	return BASE_OK;
}

/* Locations of 4 bytes, lines of 64: known to the compiler where that is what was asked for. */
static const struct ciat_shape usual_shape = {.location_shift = 2,
	.line_shift = 6,
	.line_offset = STATE_OFFSET + (PAGE_BYTES >> 2) * sizeof(uint64_t),
	.line_stride = 64};

static bool ciat_is_usual(const struct ciat_shape *y)
{
	return !memcmp(y, &usual_shape, sizeof *y);
}

enum base_status memory_ciat_add(
	struct memory_ciat *c, const struct memory_steps *steps, struct base_err *err)
{
	enum aside aside = (c->options.with_functions ? ASIDE_FUNCTIONS : 0) |
			   (c->shared_reuse ? ASIDE_REUSE : 0);
	enum base_status s;
	if (!ciat_is_usual(&c->shape))
		s = add_steps(c, &c->shape, aside, steps, err);
	else if (aside == ASIDE_FUNCTIONS)
		s = add_steps(c, &usual_shape, ASIDE_FUNCTIONS, steps, err);
	else
		s = add_steps(c, &usual_shape, aside, steps, err);
	if (s == BASE_OK && steps->nr_pieces) {
		struct memory_step at = {.clock = steps->until};
		s = memory_ciat_pieces(c, steps);
		if (s != BASE_OK)
			return ciat_fail_step(c, &at, s, err);
	}
	return s;
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool is_power_of_two(uint32_t n, uint32_t least, uint32_t most)
{
	return n >= least && n <= most && !(n & (n - 1));
}

static enum base_status check_options(struct memory_ciat_options *p, struct base_err *err)
{
	p->location_bytes = p->location_bytes ? p->location_bytes : 4;
	p->line_bytes = p->line_bytes ? p->line_bytes : 64;
	p->memory_limit_bytes =
		p->memory_limit_bytes ? p->memory_limit_bytes : MEMORY_LIMIT_DEFAULT;
	if (!is_power_of_two(p->location_bytes, 1, 8))
		return base_fail(err, BASE_ERR_USAGE, "a location has 1, 2, 4 or 8 bytes, not %u",
			p->location_bytes);
	if (!is_power_of_two(p->line_bytes, 8, MEMORY_CIAT_LINE_BYTES_MAX))
		return base_fail(err, BASE_ERR_USAGE,
			"a line has 8 to %d bytes, a power of two, not %u",
			MEMORY_CIAT_LINE_BYTES_MAX, p->line_bytes);
	return BASE_OK;
}

static enum base_status init_reuse(struct memory_ciat *c, struct base_err *err)
{
	if (!c->options.with_reuse)
		return BASE_OK;
	double share = c->options.reuse_share > 0 ? c->options.reuse_share : 1;
	c->shared_reuse = memory_reuse_new(share);
	c->private_reuse = base_alloc(c->result.nr_threads * sizeof(struct memory_reuse *));
	bool ok = c->shared_reuse && c->private_reuse;
	for (uint32_t i = 0; ok && i < c->result.nr_threads; i++)
		ok = (c->private_reuse[i] = memory_reuse_new(share)) != NULL;
	return ok ? BASE_OK : base_fail(err, BASE_ERR_NOMEM, "no memory for reuse distances");
}

static enum base_status ciat_init(struct memory_ciat *c, uint32_t nr_threads, struct base_err *err)
{
	enum base_status s = check_options(&c->options, err);
	if (s != BASE_OK)
		return s;
	c->shape.location_shift = (unsigned)__builtin_ctz(c->options.location_bytes);
	c->shape.line_shift = (unsigned)__builtin_ctz(c->options.line_bytes);
	set_layout(c);
	memory_sets_init(&c->sets, nr_threads);
	c->result.nr_threads = nr_threads;
	c->result.location_bytes = c->options.location_bytes;
	c->result.line_bytes = c->options.line_bytes;
	c->top = base_alloc(sizeof *c->top << TOP_BITS);
	c->thread = base_alloc(nr_threads * sizeof *c->thread);
	c->sharing = base_alloc((nr_threads + 1) * sizeof *c->sharing);
	c->matrix = base_alloc((size_t)nr_threads * nr_threads * sizeof *c->matrix);
	if (!c->top || !c->thread || !c->sharing || !c->matrix)
		return base_fail(
			err, BASE_ERR_NOMEM, "no memory for %u {thread|threads}", nr_threads);
	for (uint32_t i = 0; i < nr_threads; i++) {
		c->thread[i].string_kind = 2;
		if (memory_sets_add(&c->sets, &c->thread[i].alone, i) != BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {thread|threads}",
				nr_threads);
	}
	s = memory_ciat_phase_init(&c->result.total, nr_threads, err);
	return s == BASE_OK ? init_reuse(c, err) : s;
}

enum base_status memory_ciat_new(uint32_t nr_threads, const struct memory_ciat_options *options,
	struct memory_ciat **ret, struct base_err *err)
{
	*ret = NULL;
	if (!nr_threads || nr_threads > MEMORY_THREADS_MAX)
		return base_fail(err, BASE_ERR_USAGE, "%u {thread|threads}", nr_threads);
	struct memory_ciat *c = base_alloc(sizeof *c);
	if (!c)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the analysis");
	c->options = *options;
	enum base_status s = ciat_init(c, nr_threads, err);
	if (s != BASE_OK) {
		memory_ciat_free(c);
		return s;
	}
	*ret = c;
	return BASE_OK;
}

void memory_ciat_set_threads(struct memory_ciat *c, uint32_t nr_threads)
{
	uint32_t before = c->result.nr_threads;
	if (nr_threads >= before)
		return;
	for (uint32_t i = 0; i < nr_threads; i++)
		memmove(c->matrix + (size_t)i * nr_threads, c->matrix + (size_t)i * before,
			nr_threads * sizeof *c->matrix);
	for (uint32_t i = nr_threads; c->private_reuse && i < before; i++)
		memory_reuse_free(c->private_reuse[i]);
	c->result.nr_threads = nr_threads;
}

struct memory_ciat *memory_ciat_free(struct memory_ciat *c)
{
	if (!c)
		return NULL;
	memory_ciat_pages_free(c);
	memory_ciat_heap_free(c);
	for (size_t i = 0; i < c->result.nr_phases; i++)
		memory_ciat_phase_fini(&c->result.phase[i]);
	base_free(c->result.phase);
	memory_ciat_phase_fini(&c->spilled);
	memory_ciat_phase_fini(&c->result.total);
	for (uint32_t i = 0; c->private_reuse && i < c->result.nr_threads; i++)
		memory_reuse_free(c->private_reuse[i]);
	base_free(c->private_reuse);
	memory_reuse_free(c->shared_reuse);
	memory_sets_fini(&c->sets);
	base_map_fini(&c->block_of);
	base_map_fini(&c->site_of);
	base_map_fini(&c->functions.of);
	base_free(c->thread);
	base_free(c->sharing);
	base_free(c->block);
	base_free(c->site);
	base_free(c->functions.function);
	base_free(c->matrix);
	base_free(c->usage_page);
	base_free(c->line);
	memory_ciat_spans_fini(c);
	base_free(c->look.stores);
	base_free(c->look.several);
	base_free(c->look.changes);
	base_free(c);
	return NULL;
}

enum base_status memory_ciat_finish(struct memory_ciat *c, uint32_t instruction_bytes,
	const struct memory_ciat_result **ret, struct base_err *err)
{
	enum base_status s = memory_ciat_summarize(c, instruction_bytes, err);
	*ret = &c->result;
	return s;
}
