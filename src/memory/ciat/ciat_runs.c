/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ciat_runs.c - pieces of loops as a whole.
 *
 * An access is *steady* when all that it does is to be counted: a load by a thread whose value or
 * copy it is already, a store by the only one who has it. Steady accesses may come in any order,
 * among all threads. So pieces are looked at first: where two threads touch the same page and one
 * of them changes something there, the pieces end before that. What is left, each thread can do
 * on its own: an item that is steady throughout is a number and its places' counts; others are
 * executed one by one. No access of the same thread ends another one's being steady.
 */
#include "memory/ciat/ciat_private.h"

enum { SPAN_LEAST = 16 }; /* places; fewer are not worth an entry */

/* ---- looking --------------------------------------------------------------------------------- */

struct look {
	struct memory_ciat *c;
	uint32_t thread;
	bool store;
	bool settled; /* each access so far was in a page where the thread has */
	uint64_t ok;  /* a state that was found steady */
};

static struct ciat_page *look_page(struct look *l, uint64_t number)
{
	struct memory_ciat *c = l->c;
	struct ciat_page *p = memory_ciat_page(c, number);
	if (!p)
		return NULL;
	if (p->look != c->look.number) {
		p->look = c->look.number;
		p->changes = UINT64_MAX;
		p->thread = (uint16_t)l->thread;
		p->several = false;
	} else if (p->thread != l->thread && !p->several) {
		if (base_grow(&c->look.several, &c->look.several_capacity, c->look.nr_several + 1,
			    sizeof(struct ciat_page *)) != BASE_OK)
			return NULL;
		p->several = true;
		c->look.several[c->look.nr_several++] = p;
	}
	return p;
}

static bool ciat_runs_is_steady(struct look *l, uint64_t state, uint64_t bytes)
{
	uint64_t own = (uint64_t)l->thread + 1;
	if ((state >> STATE_BYTES & bytes) != bytes)
		return false;
	if (l->store)
		return ciat_writer(state) == own && !(uint32_t)state;
	return ciat_writer(state) == own ||
	       memory_sets_has(&l->c->sets, (uint32_t)state, l->thread);
}

/* [offset, offset + size) of one page. */
static inline __attribute__((always_inline)) bool look_part(
	struct look *l, struct ciat_page *p, unsigned offset, unsigned size_bytes)
{
	const struct memory_ciat *c = l->c;
	unsigned shift = c->shape.location_shift, end = offset + size_bytes - 1;
	unsigned whole = (1u << (1u << shift)) - 1, mask = (1u << shift) - 1;
	const uint64_t *state = ciat_state(p);
	if (!c->options.without_lines) {
		for (unsigned i = offset >> c->shape.line_shift; i <= end >> c->shape.line_shift;
			i++) {
			uint32_t holders = ciat_line(&c->shape, p, i)->holders;
			if (l->store ? holders != c->thread[l->thread].alone
				     : !memory_sets_has(&c->sets, holders, l->thread))
				return false;
		}
	}
	if (!((offset | size_bytes) & mask)) {
		for (unsigned g = offset >> shift; g <= end >> shift; g++) {
			if (state[g] == l->ok)
				continue;
			if (!ciat_runs_is_steady(l, state[g], whole))
				return false;
			l->ok = state[g];
		}
		return true;
	}
	for (unsigned g = offset >> shift; g <= end >> shift; g++) {
		unsigned bytes = whole;
		if (g == offset >> shift)
			bytes &= whole << (offset & mask);
		if (g == end >> shift)
			bytes &= whole >> (mask - (end & mask));
		if (!ciat_runs_is_steady(l, state[g], bytes))
			return false;
	}
	return true;
}

/* Is each load that the thread can make in the page steady? */
static bool is_settled(struct look *l, struct ciat_page *p)
{
	const struct memory_ciat *c = l->c;
	unsigned locations = PAGE_BYTES >> c->shape.location_shift,
		 lines = PAGE_BYTES >> c->shape.line_shift;
	unsigned whole = (1u << (1u << c->shape.location_shift)) - 1;
	for (unsigned i = 0; i < lines && !c->options.without_lines; i++)
		if (!memory_sets_has(&c->sets, ciat_line(&c->shape, p, i)->holders, l->thread))
			return false;
	for (unsigned g = 0; g < locations; g++)
		if (!ciat_runs_is_steady(l, ciat_state(p)[g], whole))
			return false;
	return true;
}

/* After a load that was: not asked often, as the answer takes as long as some hundred loads. */
static enum base_status ciat_runs_settle(struct look *l, struct ciat_page *p)
{
	enum { LOOKS = 1024 };
	if (++p->looks < LOOKS)
		return BASE_OK;
	p->looks = 0;
	if (!is_settled(l, p))
		return BASE_OK;
	uint32_t threads = p->settled;
	enum base_status s = memory_sets_add(&l->c->sets, &threads, l->thread);
	memory_ciat_settle(l->c, p, threads);
	return s;
}

static enum base_status no_page(const struct memory_ciat *c)
{
	return c->used_bytes + c->page_bytes > c->options.memory_limit_bytes ? BASE_ERR_LIMIT
									     : BASE_ERR_NOMEM;
}

/* How many iterations after this one surely have the item's access in the same page; 0 where they
 * are too few to divide for. */
static inline uint64_t more_in_page(const struct memory_item *t, unsigned offset)
{
	enum { STRIDE_MAX = 64 };
	if (t->stride_bytes <= 0 || t->stride_bytes > STRIDE_MAX)
		return 0;
	return (uint32_t)(PAGE_BYTES - offset - t->size_bytes) / (uint32_t)t->stride_bytes;
}

/* The accesses of one item in a piece; *ret_changes: not all of them are steady. */
static enum base_status look_item(struct look *l, const struct memory_piece *piece, uint32_t i,
	uint64_t after, uint8_t *ret_changes)
{
	const struct memory_item *t = &piece->item[i];
	uint64_t at = memory_piece_begin(piece, i), end = memory_piece_end(piece, i);
	uint64_t address = t->address + at * (uint64_t)t->stride_bytes;
	unsigned size = t->size_bytes;
	struct ciat_page *p = NULL;
	l->ok = UINT64_MAX; /* no state */
	l->settled = !l->store;
	*ret_changes = false;
	if (!t->stride_bytes && end > at)
		end = at + 1;
	for (; at < end; at++, address += (uint64_t)t->stride_bytes) {
		unsigned offset = address & (PAGE_BYTES - 1);
		if (!p || p->number != address >> PAGE_SHIFT)
			p = look_page(l, address >> PAGE_SHIFT);
		if (BASE_UNLIKELY(!p))
			return no_page(l->c);
		struct ciat_page *second = NULL;
		unsigned here = size;
		if (BASE_UNLIKELY(offset + size > PAGE_BYTES)) {
			here = PAGE_BYTES - offset;
			second = look_page(l, (address >> PAGE_SHIFT) + 1);
			if (!second)
				return no_page(l->c);
		}
		if (p->changes < UINT64_MAX && *ret_changes && !second)
			continue; /* it was this item, earlier */
		if (!second && !l->store && memory_sets_has(&l->c->sets, p->settled, l->thread)) {
			uint64_t more = more_in_page(t, offset);
			at += more;
			address += more * (uint64_t)t->stride_bytes;
			continue;
		}
		l->settled = false;
		if (BASE_LIKELY(look_part(l, p, offset, here) &&
				(!second || look_part(l, second, 0, size - here)))) {
			if (!l->store && ciat_runs_settle(l, p) != BASE_OK)
				return BASE_ERR_NOMEM;
			continue;
		}
		*ret_changes = true;
		uint64_t due = memory_item_due(t, after + at * piece->per_iteration);
		p->changes = due < p->changes ? due : p->changes;
		if (second)
			second->changes = due < second->changes ? due : second->changes;
	}
	return BASE_OK;
}

/* The accesses of one item in a piece. One that stays where it is counts as one, so often. */
static struct ciat_span span_of(const struct memory_piece *piece, uint32_t i, uint64_t *ret_times)
{
	const struct memory_item *t = &piece->item[i];
	uint64_t begin = memory_piece_begin(piece, i), nr = memory_piece_end(piece, i) - begin;
	*ret_times = t->kind == MEMORY_ATOMIC ? 2 : 1;
	if (!t->stride_bytes && nr) {
		*ret_times *= nr;
		nr = 1;
	}
	return (struct ciat_span){.address = t->address + begin * (uint64_t)t->stride_bytes,
		.stride_bytes = (uint64_t)t->stride_bytes,
		.nr = nr,
		.thread = piece->thread,
		.size_bytes = t->size_bytes};
}

/* The pages from its lowest to its highest place. */
static struct ciat_stores pages_of(const struct ciat_span *s)
{
	uint64_t last = s->address + (s->nr - 1) * s->stride_bytes;
	bool up = s->address <= last;
	return (struct ciat_stores){.first_page = (up ? s->address : last) >> PAGE_SHIFT,
		.last_page = ((up ? last : s->address) + s->size_bytes - 1) >> PAGE_SHIFT,
		.thread = s->thread};
}

static bool ciat_runs_is_access(const struct memory_item *t)
{
	return t->kind <= MEMORY_ATOMIC && t->size_bytes;
}

static enum base_status list_stores(struct memory_ciat *c, const struct memory_steps *steps)
{
	c->look.nr_stores = 0;
	for (size_t k = 0; k < steps->nr_pieces; k++) {
		const struct memory_piece *p = &steps->piece[k];
		for (uint32_t i = 0; i < p->nr_items; i++) {
			uint64_t times;
			struct ciat_span s = span_of(p, i, &times);
			if (!ciat_runs_is_access(&p->item[i]) || p->item[i].kind == MEMORY_LOAD ||
				!s.nr)
				continue;
			if (base_grow(&c->look.stores, &c->look.stores_capacity,
				    c->look.nr_stores + 1, sizeof *c->look.stores) != BASE_OK)
				return BASE_ERR_NOMEM;
			c->look.stores[c->look.nr_stores++] = pages_of(&s);
		}
	}
	return BASE_OK;
}

/* May another thread store to one of its pages? */
static bool is_stored_to(const struct memory_ciat *c, const struct ciat_span *s)
{
	struct ciat_stores own = pages_of(s);
	for (size_t i = 0; i < c->look.nr_stores; i++) {
		const struct ciat_stores *o = &c->look.stores[i];
		if (o->thread != own.thread && o->first_page <= own.last_page &&
			own.first_page <= o->last_page)
			return true;
	}
	return false;
}

/* Loads where the thread has settled, and where nobody else stores: no turn matters to them, and
 * they matter to no turn. That is known of the span until some page loses its settled threads. */
static enum base_status look_span(struct look *l, const struct memory_piece *piece, uint32_t i,
	uint64_t after, uint8_t *ret_changes)
{
	enum { STORES_MAX = 64 };
	struct memory_ciat *c = l->c;
	struct ciat_span *known = NULL;
	uint64_t times;
	const struct ciat_span s = span_of(piece, i, &times);
	if (!l->store && s.nr >= SPAN_LEAST && c->look.nr_stores <= STORES_MAX &&
		!is_stored_to(c, &s)) {
		enum base_status status = memory_ciat_span(c, &s, &known);
		if (status != BASE_OK || known->settled == c->unsettled + 1)
			return status;
	}
	enum base_status status = look_item(l, piece, i, after, ret_changes);
	if (known && l->settled)
		known->settled = c->unsettled + 1;
	return status;
}

static enum base_status look_piece(
	struct memory_ciat *c, const struct memory_piece *piece, uint8_t *changes)
{
	struct look l = {.c = c, .thread = piece->thread};
	uint64_t after = piece->clock;
	for (uint32_t i = 0; i < piece->nr_items; i++) {
		const struct memory_item *t = &piece->item[i];
		after += t->instructions;
		changes[i] = false;
		if (!ciat_runs_is_access(t))
			continue;
		l.store = t->kind != MEMORY_LOAD;
		enum base_status s = look_span(&l, piece, i, after, &changes[i]);
		if (s != BASE_OK)
			return s;
	}
	return BASE_OK;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* The places of an item that is steady: its pages are there. */
static enum base_status count_places(
	struct memory_ciat *c, const struct memory_piece *piece, uint32_t i)
{
	uint64_t times;
	const struct ciat_span s = span_of(piece, i, &times);
	if (s.nr < SPAN_LEAST)
		return memory_ciat_count_span(c, &s, times);
	struct ciat_span *span;
	enum base_status status = memory_ciat_span(c, &s, &span);
	if (status == BASE_OK)
		memory_ciat_span_add(c, span, times);
	return status;
}

static struct memory_step step_of(const struct memory_piece *piece, uint32_t i, uint64_t iteration)
{
	const struct memory_item *t = &piece->item[i];
	bool access = t->kind <= MEMORY_ATOMIC;
	return (struct memory_step){
		.address = t->address + (access ? iteration * (uint64_t)t->stride_bytes : 0),
		.code = t->code,
		.count = access ? 0 : t->count,
		.size_bytes = t->size_bytes,
		.thread = piece->thread,
		.stream = piece->stream,
		.kind = t->kind,
		.reg = t->reg};
}

static enum base_status count_accesses(struct memory_ciat *c, struct memory_ciat_counts *n,
	const struct memory_item *t, uint64_t times)
{
	unsigned class = memory_ciat_class(t->size_bytes);
	bool load = t->kind != MEMORY_STORE, store = t->kind != MEMORY_LOAD;
	n->access[0][class][t->reg] += load ? times : 0;
	n->access[1][class][t->reg] += store ? times : 0;
	n->access_bytes[0] += load ? times * t->size_bytes : 0;
	n->access_bytes[1] += store ? times * t->size_bytes : 0;
	n->atomics += load && store ? times : 0;
	if (!c->options.with_functions)
		return BASE_OK;
	struct memory_ciat_function *f;
	enum base_status s = memory_ciat_function_at(c, t->code, &f);
	if (s == BASE_OK) {
		f->loads += load ? times : 0;
		f->stores += store ? times : 0;
	}
	return s;
}

/* All that an item adds but for what it does to places. */
static enum base_status count_item(
	struct memory_ciat *c, const struct memory_piece *piece, uint32_t i)
{
	struct memory_ciat_counts *n = c->thread[piece->thread].counts;
	const struct memory_item *t = &piece->item[i];
	uint64_t times = memory_piece_end(piece, i) - memory_piece_begin(piece, i);
	if (!times)
		return BASE_OK;
	n->instructions += times * t->instructions;
	switch ((enum memory_item_kind)t->kind) {
	case MEMORY_LOAD:
	case MEMORY_STORE:
	case MEMORY_ATOMIC:
		return count_accesses(c, n, t, times);
	case MEMORY_BLOCK: {
		struct memory_step s = step_of(piece, i, 0);
		return memory_ciat_block(c, &s, times);
	}
	case MEMORY_BRANCH:
		n->branches += times;
		break;
	case MEMORY_PROC_CALL:
		n->branches += times;
		n->procedure_calls += times;
		break;
	case MEMORY_PROC_START:
		n->procedure_starts += times;
		break;
	case MEMORY_PROC_RETURN:
		n->branches += times;
		n->returns += times;
		break;
	default:
		break;
	}
	return BASE_OK;
}

/* ---- strings --------------------------------------------------------------------------------- */

static void ciat_runs_string_of(struct ciat_thread *t, unsigned kind, uint64_t times)
{
	if (t->string_kind == kind) {
		t->string_length++;
		return;
	}
	if (t->string_length)
		t->counts->string[t->string_kind][memory_ciat_string(t->string_length)] += times;
	t->string_kind = kind;
	t->string_length = 1;
}

/* Items from .. to - 1 of an iteration; strings that end there have ended that many times. */
static void strings_of(struct ciat_thread *t, const struct memory_piece *p, uint32_t from,
	uint32_t to, uint64_t times)
{
	for (uint32_t i = from; i < to; i++) {
		if (p->item[i].kind == MEMORY_LOAD || p->item[i].kind == MEMORY_ATOMIC)
			ciat_runs_string_of(t, 0, times);
		if (p->item[i].kind == MEMORY_STORE || p->item[i].kind == MEMORY_ATOMIC)
			ciat_runs_string_of(t, 1, times);
	}
}

/* From the second iteration on a body that has both kinds does the same each time; one that has
 * only one makes its string longer. */
static void count_strings(struct ciat_thread *t, const struct memory_piece *p)
{
	uint64_t whole = p->end - p->begin, accesses[2] = {0};
	if (!whole) {
		strings_of(t, p, p->begin_item, p->end_item, 1);
		return;
	}
	for (uint32_t i = 0; i < p->nr_items; i++) {
		accesses[0] += p->item[i].kind == MEMORY_LOAD || p->item[i].kind == MEMORY_ATOMIC;
		accesses[1] += p->item[i].kind == MEMORY_STORE || p->item[i].kind == MEMORY_ATOMIC;
	}
	strings_of(t, p, p->begin_item, p->nr_items, 1);
	if (whole > 1)
		strings_of(t, p, 0, p->nr_items, 1);
	if (whole > 2 && accesses[0] && accesses[1])
		strings_of(t, p, 0, p->nr_items, whole - 2);
	else if (whole > 2)
		t->string_length += (whole - 2) * (accesses[0] + accesses[1]);
	strings_of(t, p, 0, p->end_item, 1);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Items that change states, in the order of the program. */
static enum base_status run_changes(
	struct memory_ciat *c, const struct memory_piece *p, const uint8_t *changes)
{
	enum base_status s = BASE_OK;
	uint32_t first = 0, last = p->nr_items;
	while (first < last && !changes[first])
		first++;
	while (last > first && !changes[last - 1])
		last--;
	if (first == last)
		return s;
	for (uint64_t at = p->begin; at <= p->end && s == BASE_OK; at++)
		for (uint32_t i = first; i < last && s == BASE_OK; i++) {
			if (!changes[i] || at < memory_piece_begin(p, i) ||
				at >= memory_piece_end(p, i))
				continue;
			struct memory_step step = step_of(p, i, at);
			s = memory_ciat_touch(c, &step);
		}
	return s;
}

static enum base_status take_piece(
	struct memory_ciat *c, const struct memory_piece *p, const uint8_t *changes)
{
	enum base_status s = BASE_OK;
	count_strings(&c->thread[p->thread], p);
	for (uint32_t i = 0; i < p->nr_items && s == BASE_OK; i++) {
		s = count_item(c, p, i);
		if (s == BASE_OK && ciat_runs_is_access(&p->item[i]) && !changes[i])
			s = count_places(c, p, i);
	}
	return s == BASE_OK ? run_changes(c, p, changes) : s;
}

enum base_status memory_ciat_pieces(struct memory_ciat *c, const struct memory_steps *steps)
{
	size_t nr_items = 0;
	uint64_t until = steps->until;
	for (size_t i = 0; i < steps->nr_pieces; i++)
		nr_items += steps->piece[i].nr_items;
	enum base_status s = base_grow(&c->look.changes, &c->look.changes_capacity, nr_items, 1);
	c->look.number++;
	c->look.nr_several = 0;
	uint8_t *changes = c->look.changes;
	if (s == BASE_OK)
		s = list_stores(c, steps);
	for (size_t i = 0; i < steps->nr_pieces && s == BASE_OK; i++) {
		s = look_piece(c, &steps->piece[i], changes);
		changes += steps->piece[i].nr_items;
	}
	if (s != BASE_OK)
		return s;
	for (size_t i = 0; i < c->look.nr_several; i++)
		until = c->look.several[i]->changes < until ? c->look.several[i]->changes : until;
	memory_order_take(steps->order, until);
	changes = c->look.changes;
	for (size_t i = 0; i < steps->nr_pieces && s == BASE_OK; i++) {
		s = take_piece(c, &steps->piece[i], changes);
		changes += steps->piece[i].nr_items;
	}
	return s;
}
