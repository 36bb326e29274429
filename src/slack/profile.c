/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - the machine runs again, and each instruction meets its slack.
 *
 * A node that was not kept has the slack of the place before the next kept node of its processor
 * (theorem 2-1).
 *
 * Tautness (Tune et al., seed 003 section 2.7): by how much the end would be earlier if this node
 * took no time. Each path that does not lead through a node leads, at the node's place in the
 * machine's order, over an edge that spans that place: a program order edge of another processor,
 * or a RAW edge. The longest such path is the end - the least G of these edges, so tautness is the
 * least of them, at most the node's own time; 0 off the critical path.
 */
#include "slack/private.h"

#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_SHIFT = 6, BLOCK_LINES_MAX = 128, BLOCK_PAGES_MAX = 1 << 20 };
enum { RECENT_BITS = 12, ALIKE_CYCLES = 8, ALIKE_SHARE = 8 };

struct pending_local { /* the node before, whose program order edge is not met yet */
	uint64_t local;
	bool is_one, counts;
};

enum base_status slack_profile_init(struct slack_analysis *a, struct base_err *err)
{
	uint32_t nr = a->nr_processors + 1;
	a->pending = base_alloc(nr * sizeof *a->pending);
	a->next = base_alloc(nr * sizeof *a->next);
	a->stretch = base_alloc(nr * sizeof *a->stretch);
	a->has_next = base_alloc(nr * sizeof *a->has_next);
	a->has_stretch = base_alloc(nr * sizeof *a->has_stretch);
	a->recent = base_alloc((1u << RECENT_BITS) * sizeof *a->recent);
	a->result.processor = base_alloc(nr * sizeof *a->result.processor);
	if (!a->pending || !a->next || !a->stretch || !a->has_next || !a->has_stretch ||
		!a->recent || !a->result.processor)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for slack");
	for (uint32_t i = 0; i < a->nr_processors; i++) {
		enum base_status s = slack_stack_pop(&a->known[i], &a->next[i], err);
		a->has_next[i] = s == BASE_OK;
		if (s == BASE_OK || s == BASE_END)
			s = slack_stack_pop(&a->path[i], &a->stretch[i], err);
		a->has_stretch[i] = s == BASE_OK;
		if (s != BASE_OK && s != BASE_END)
			return s;
	}
	enum base_status s = slack_stack_pop(&a->flights, &a->take_off, err);
	a->has_take_off = s == BASE_OK;
	a->begun = !a->options.from_parallel && !a->options.from_marker;
	return s == BASE_END ? BASE_OK : s;
}

void slack_profile_fini(struct slack_analysis *a)
{
	base_free(a->pending);
	base_free(a->next);
	base_free(a->stretch);
	base_free(a->has_next);
	base_free(a->has_stretch);
	base_free(a->recent);
	base_free(a->air);
	base_map_fini(&a->code);
	base_map_fini(&a->lines);
	base_map_fini(&a->heap);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static enum base_status add_code(
	struct slack_analysis *a, uint64_t code, uint64_t *ret, struct base_err *err)
{
	struct slack_result *r = &a->result;
	if (base_map_get(&a->code, 0, code, ret))
		return BASE_OK;
	if (base_grow(&r->code, &a->code_capacity, r->nr_code + 1, sizeof *r->code) != BASE_OK ||
		base_map_put(&a->code, 0, code, r->nr_code) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM,
			"no memory for %zu static {instruction|instructions}", r->nr_code);
	*ret = r->nr_code;
	r->code[r->nr_code++] =
		(struct slack_static){.code = code, .least = UINT64_MAX, .previous = SLACK_NEVER};
	return BASE_OK;
}

/* NULL: no memory. */
static inline struct slack_static *profile_code_of(
	struct slack_analysis *a, uint64_t code, struct base_err *err)
{
	uint64_t *slot = &a->recent[base_hash_u64(code) >> (64 - RECENT_BITS)], index;
	if (BASE_LIKELY(*slot && a->result.code[*slot - 1].code == code))
		return &a->result.code[*slot - 1];
	if (add_code(a, code, &index, err) != BASE_OK)
		return NULL;
	*slot = index + 1;
	return &a->result.code[index];
}

static enum base_status profile_add_line(
	struct slack_analysis *a, uint64_t address, uint64_t cycles, struct base_err *err)
{
	struct slack_result *r = &a->result;
	uint64_t index, line = address >> LINE_SHIFT, site = 0;
	bool heap = base_map_get(&a->heap, 1, line, &site) ||
		    base_map_get(&a->heap, 0, address >> PAGE_SHIFT, &site);
	/* Variables share lines. */
	uint64_t from = heap ? line << LINE_SHIFT : address & ~UINT64_C(3);
	if (!base_map_get(&a->lines, 0, from, &index)) {
		index = r->nr_lines;
		if (base_grow(&r->line, &a->lines_capacity, r->nr_lines + 1, sizeof *r->line) !=
				BASE_OK ||
			base_map_put(&a->lines, 0, from, index) != BASE_OK)
			return base_fail(
				err, BASE_ERR_NOMEM, "no memory for %zu {line|lines}", r->nr_lines);
		r->line[r->nr_lines++] = (struct slack_line){.address = from, .site = site};
	}
	r->line[index].critical_cycles += cycles;
	r->line[index].times++;
	return BASE_OK;
}

/* Where heap blocks come from: small ones by line, others by page; the last one there counts.
 * Beyond 4 GiB the rest of a block has no name. */
enum base_status slack_profile_allocated(
	void *ctx, uint64_t address, uint64_t size_bytes, uint64_t code, struct base_err *err)
{
	struct slack_analysis *a = ctx;
	if (!size_bytes || address >= MEMORY_ADDRESS_LIMIT ||
		size_bytes > MEMORY_ADDRESS_LIMIT - address)
		return BASE_OK;
	uint64_t last = address + size_bytes - 1;
	bool small = (last >> LINE_SHIFT) - (address >> LINE_SHIFT) < BLOCK_LINES_MAX;
	unsigned shift = small ? LINE_SHIFT : PAGE_SHIFT;
	uint64_t from = address >> shift, to = last >> shift;
	to = to - from < BLOCK_PAGES_MAX ? to : from + BLOCK_PAGES_MAX;
	for (uint64_t i = from; i <= to; i++)
		if (base_map_put(&a->heap, small, i, code) != BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for the heap's names");
	return BASE_OK;
}

static void count_static(struct slack_static *c, uint64_t slack, uint64_t count)
{
	c->executed += count;
	if (slack == SLACK_NEVER) {
		c->outside += count;
		return;
	}
	uint64_t before = c->previous, room = before / ALIKE_SHARE;
	room = room > ALIKE_CYCLES ? room : ALIKE_CYCLES;
	c->least = slack < c->least ? slack : c->least;
	c->greatest = slack > c->greatest ? slack : c->greatest;
	c->sum += (double)slack * (double)count;
	c->squares += (double)slack * (double)slack * (double)count;
	c->critical += slack ? 0 : count;
	c->alike += count - 1;
	if (before != SLACK_NEVER)
		c->alike += (slack > before ? slack - before : before - slack) <= room;
	c->previous = slack;
}

/* ---- the critical path ----------------------------------------------------------------------- */

/* How much of [from, to) of a processor is on it; from never goes back. */
static uint64_t critical_part(struct slack_analysis *a, uint32_t processor, uint64_t from,
	uint64_t to, enum base_status *s, struct base_err *err)
{
	uint64_t sum = 0;
	struct stretch *x = &a->stretch[processor];
	*s = BASE_OK;
	while (a->has_stretch[processor]) {
		uint64_t begin = x->from > from ? x->from : from, end = x->to < to ? x->to : to;
		sum += end > begin ? end - begin : 0;
		if (x->to > to)
			break;
		*s = slack_stack_pop(&a->path[processor], x, err);
		a->has_stretch[processor] = *s == BASE_OK;
	}
	*s = *s == BASE_END ? BASE_OK : *s;
	return sum;
}

/* ---- edges that span a place ----------------------------------------------------------------- */

static bool is_tighter(const struct flight *a, const struct flight *b)
{
	return a->slack < b->slack;
}

static enum base_status put_flight(
	struct slack_analysis *a, const struct flight *f, struct base_err *err)
{
	if (base_grow(&a->air, &a->air_capacity, a->nr_air + 1, sizeof *a->air) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for edges on their way");
	BASE_HEAP_PUT(a->air, a->nr_air, *f, is_tighter);
	return BASE_OK;
}

/* Edges from nodes before this one are on their way. */
static enum base_status take_off(struct slack_analysis *a, uint64_t order, struct base_err *err)
{
	enum base_status s = BASE_OK;
	while (a->has_take_off && a->take_off.source < order && s == BASE_OK) {
		s = put_flight(a, &a->take_off, err);
		if (s != BASE_OK)
			return s;
		s = slack_stack_pop(&a->flights, &a->take_off, err);
		a->has_take_off = s == BASE_OK;
	}
	while (a->nr_air && a->air[0].target <= order)
		BASE_HEAP_DROP(a->air, a->nr_air, is_tighter);
	return s == BASE_END ? BASE_OK : s;
}

/* Least G of the edges that span the place reached. */
static uint64_t least_around(const struct slack_analysis *a, uint32_t processor)
{
	uint64_t least = a->nr_air ? a->air[0].slack : SLACK_NEVER;
	for (uint32_t i = 0; i < a->nr_processors; i++) {
		if (i == processor || !a->pending[i].counts)
			continue;
		uint64_t g = a->has_next[i] ? a->next[i].before : a->at_end[i];
		least = g < least ? g : least;
	}
	return least;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The program order edge from the node before is met: its local slack is known. */
static enum base_status settle_local(struct slack_analysis *a, uint32_t processor, uint64_t late)
{
	struct pending_local *p = &a->pending[processor];
	if (!p->is_one)
		return BASE_OK;
	return base_histogram_add(&a->result.local, p->local < late ? p->local : late, 1);
}

static enum base_status profile_no_memory(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "no memory for the distribution of slack");
}

static uint64_t tautness(
	const struct slack_analysis *a, uint32_t processor, uint64_t slack, uint64_t latency)
{
	uint64_t around = slack ? 0 : least_around(a, processor);
	return around < latency ? around : latency;
}

struct one { /* node or run */
	uint64_t code, slack, from, to, count, taut;
	uint32_t processor;
	uint8_t kind;
};

static enum base_status profile_add_one(
	struct slack_analysis *a, const struct one *o, struct base_err *err)
{
	enum base_status s;
	uint64_t cycles = critical_part(a, o->processor, o->from, o->to, &s, err);
	struct slack_static *c = profile_code_of(a, o->code, err);
	if (!c)
		return BASE_ERR_NOMEM;
	if (o->count) {
		count_static(c, o->slack, o->count);
		a->result.processor[o->processor].instructions += o->count;
		if (o->slack == SLACK_NEVER)
			a->result.outside += o->count;
		else if (base_histogram_add(&a->result.global, o->slack, o->count) != BASE_OK)
			return profile_no_memory(err);
	}
	if (o->kind != SLACK_PLAIN)
		c->kind = o->kind;
	c->taut_cycles = o->taut > c->taut_cycles ? o->taut : c->taut_cycles;
	c->critical_cycles += cycles;
	a->result.processor[o->processor].critical_cycles += cycles;
	a->result.critical_cycles += cycles;
	return s;
}

enum base_status slack_profile_run(void *ctx, const struct slack_run *r, struct base_err *err)
{
	struct slack_analysis *a = ctx;
	uint32_t p = r->processor;
	if (!a->begun)
		return BASE_OK;
	struct one o = {.code = r->code,
		.slack = a->has_next[p] ? a->next[p].before : a->at_end[p],
		.from = r->ready,
		.to = r->issue + r->count,
		.count = r->count,
		.processor = p};
	o.taut = tautness(a, p, o.slack, 1);
	if (settle_local(a, p, 0) != BASE_OK ||
		(r->count > 1 && base_histogram_add(&a->result.local, 0, r->count - 1) != BASE_OK))
		return profile_no_memory(err);
	a->pending[p] =
		(struct pending_local){.local = SLACK_NEVER, .is_one = true, .counts = true};
	if (a->options.tell)
		a->options.tell(a->options.ctx, NULL, r, o.slack, o.taut);
	return profile_add_one(a, &o, err);
}

enum base_status slack_profile_node(void *ctx, const struct slack_node *n, struct base_err *err)
{
	struct slack_analysis *a = ctx;
	uint32_t p = n->processor;
	if (BASE_UNLIKELY(!a->begun)) {
		if (n->order != a->origin_order)
			return BASE_OK;
		a->begun = true;
	}
	bool kept = a->has_next[p] && a->next[p].order == n->order;
	struct known_node *k = &a->next[p];
	uint64_t late = kept ? k->late : 0, local = kept ? k->local : SLACK_NEVER;
	struct one o = {.code = n->code,
		.slack = kept             ? k->global
			 : a->has_next[p] ? k->before
					  : a->at_end[p],
		.from = n->ready,
		.to = n->complete,
		.count = n->instructions,
		.processor = p,
		.kind = n->kind};
	enum base_status s = settle_local(a, p, late) == BASE_OK ? BASE_OK : profile_no_memory(err);
	a->pending[p] = (struct pending_local){
		.local = local, .is_one = n->instructions != 0, .counts = n->kind != SLACK_END};
	if (s == BASE_OK && kept) {
		s = slack_stack_pop(&a->known[p], k, err);
		a->has_next[p] = s == BASE_OK;
		s = s == BASE_END ? BASE_OK : s;
	}
	if (s == BASE_OK)
		s = take_off(a, n->order, err);
	o.taut = tautness(a, p, o.slack, n->complete - n->start);
	if (a->options.tell)
		a->options.tell(a->options.ctx, n, NULL, o.slack, o.taut);
	uint64_t before = a->result.processor[p].critical_cycles;
	if (s == BASE_OK)
		s = profile_add_one(a, &o, err);
	uint64_t cycles = a->result.processor[p].critical_cycles - before;
	if (s == BASE_OK && cycles > 1 && n->address)
		s = profile_add_line(a, n->address, cycles, err);
	return s;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int profile_by_cycles(const void *x, const void *y)
{
	const struct slack_static *a = x, *b = y;
	if (a->critical_cycles != b->critical_cycles)
		return a->critical_cycles < b->critical_cycles ? 1 : -1;
	return a->code < b->code ? -1 : a->code > b->code;
}

static int by_line_cycles(const void *x, const void *y)
{
	const struct slack_line *a = x, *b = y;
	if (a->critical_cycles != b->critical_cycles)
		return a->critical_cycles < b->critical_cycles ? 1 : -1;
	return a->address < b->address ? -1 : a->address > b->address;
}

enum base_status slack_profile_finish(struct slack_analysis *a, struct base_err *err)
{
	struct slack_result *r = &a->result;
	for (uint32_t i = 0; i < a->nr_processors; i++)
		if (settle_local(a, i, a->at_end[i] == SLACK_NEVER ? 0 : a->at_end[i]) != BASE_OK)
			return profile_no_memory(err);
	if (r->nr_code)
		qsort(r->code, r->nr_code, sizeof *r->code, profile_by_cycles);
	if (r->nr_lines)
		qsort(r->line, r->nr_lines, sizeof *r->line, by_line_cycles);
	return BASE_OK;
}
