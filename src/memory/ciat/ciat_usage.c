/* SPDX-License-Identifier: Apache-2.0 */
/* ciat_usage.c - sums at the end: phases, the memory structure (section 4.5), lines and sites. */
#include "memory/ciat/ciat_private.h"

#include <stdlib.h>
#include <string.h>

enum base_status memory_ciat_phase_init(
	struct memory_ciat_phase *p, uint32_t nr_threads, struct base_err *err)
{
	*p = (struct memory_ciat_phase){
		.thread = base_alloc(nr_threads * sizeof *p->thread),
		.sharing = base_alloc((nr_threads + 1) * sizeof *p->sharing),
		.invalidation = base_alloc((nr_threads + 1) * sizeof *p->invalidation),
	};
	if (p->thread && p->sharing && p->invalidation)
		return BASE_OK;
	memory_ciat_phase_fini(p);
	return base_fail(
		err, BASE_ERR_NOMEM, "no memory for a phase of %u {thread|threads}", nr_threads);
}

void memory_ciat_phase_fini(struct memory_ciat_phase *p)
{
	base_free(p->thread);
	base_free(p->sharing);
	base_free(p->invalidation);
	*p = (struct memory_ciat_phase){0};
}

/* All counters are 64 bits wide, so the whole is an array of them. */
void memory_ciat_counts_add(struct memory_ciat_counts *to, const struct memory_ciat_counts *from)
{
	_Static_assert(sizeof *to % sizeof(uint64_t) == 0, "counters of 64 bits only");
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;
	for (size_t i = 0; i < sizeof *to / sizeof *t; i++)
		t[i] += f[i];
}

/* ---- code ------------------------------------------------------------------------------------ */

static struct ciat_code *ciat_usage_code_of(struct memory_ciat *c, uint64_t number)
{
	struct ciat_page *p = memory_ciat_page(c, number);
	if (!p)
		return NULL;
	if (!p->code) {
		if (c->used_bytes + sizeof *p->code > c->options.memory_limit_bytes)
			return NULL;
		p->code = base_alloc(sizeof *p->code);
		c->used_bytes += p->code ? sizeof *p->code : 0;
	}
	return p->code;
}

static void touch_code(struct ciat_code *code, unsigned offset, uint32_t thread)
{
	if (!code->toucher[offset])
		code->toucher[offset] = (uint16_t)(thread + 1);
	else if (code->toucher[offset] != thread + 1)
		code->shared[offset] = true;
}

/* Instructions are taken to be equally long within a block. */
static enum base_status ciat_usage_add_block(struct memory_ciat *c, const struct ciat_block *b)
{
	for (uint32_t i = 0; i < b->size_bytes; i++) {
		uint64_t at = b->address + i;
		struct ciat_code *code = ciat_usage_code_of(c, at >> PAGE_SHIFT);
		if (!code)
			return BASE_ERR_NOMEM;
		touch_code(code, at & (PAGE_BYTES - 1), b->thread);
	}
	for (uint64_t i = 0; i < b->count; i++) {
		uint64_t at = b->address + i * b->size_bytes / b->count;
		struct ciat_code *code = ciat_usage_code_of(c, at >> PAGE_SHIFT);
		if (!code)
			return BASE_ERR_NOMEM;
		code->count[at & (PAGE_BYTES - 1)] += b->executed;
	}
	return BASE_OK;
}

/* ---- pages ----------------------------------------------------------------------------------- */

struct page_sum {
	struct memory_ciat_page page;
	uint64_t data_bytes, touched_instructions;
	uint32_t toucher; /* + 1 */
	bool shared;
};

struct location { /* all that is known of one */
	unsigned data_mask, code_mask;
	uint32_t toucher;
	bool shared;
	uint64_t data_accesses, code_accesses, instructions;
};

static void add_toucher(uint32_t *toucher, bool *shared, uint32_t who)
{
	if (!who)
		return;
	*shared |= *toucher && *toucher != who;
	*toucher = *toucher ? *toucher : who;
}

static struct location location_at(const struct memory_ciat *c, struct ciat_page *p, unsigned g)
{
	uint64_t st = ciat_state(p)[g];
	struct location l = {.data_mask = (unsigned)(st >> STATE_BYTES) & 0xff,
		.toucher = ciat_toucher(st),
		.shared = st >> STATE_SHARED & 1,
		.data_accesses = ciat_accesses(c, p, g)};
	if (!p->code)
		return l;
	unsigned size = 1u << c->shape.location_shift;
	for (unsigned i = 0; i < size; i++) {
		unsigned at = g * size + i;
		if (!p->code->toucher[at])
			continue;
		l.code_mask |= 1u << i;
		l.shared |= p->code->shared[at];
		add_toucher(&l.toucher, &l.shared, p->code->toucher[at]);
		l.code_accesses += p->code->count[at];
		l.instructions += p->code->count[at] != 0;
	}
	return l;
}

static struct page_sum sum_page(const struct memory_ciat *c, struct ciat_page *p)
{
	struct page_sum s = {.page = {.page = p->number}};
	for (unsigned g = 0; g < (unsigned)PAGE_BYTES >> c->shape.location_shift; g++) {
		if (!ciat_state(p)[g] && !p->code)
			continue;
		struct location l = location_at(c, p, g);
		unsigned bytes = (unsigned)__builtin_popcount(l.data_mask | l.code_mask);
		s.page.touched_bytes += bytes;
		s.page.code_bytes += (unsigned)__builtin_popcount(l.code_mask);
		s.data_bytes += (unsigned)__builtin_popcount(l.data_mask);
		s.page.data_accesses += l.data_accesses;
		s.page.code_accesses += l.code_accesses;
		s.touched_instructions += l.instructions;
		if (l.shared) {
			s.page.shared_bytes += bytes;
			s.page.shared_data_accesses += l.data_accesses;
			s.page.shared_code_accesses += l.code_accesses;
		}
		s.shared |= l.shared;
		add_toucher(&s.toucher, &s.shared, l.toucher);
	}
	s.page.owner = s.shared ? -1 : (int32_t)s.toucher - 1;
	return s;
}

static bool is_range_shared(const struct memory_ciat *c, const struct page_sum *s)
{
	uint64_t address = s->page.page << PAGE_SHIFT;
	const struct memory_ciat_options *o = &c->options;
	return s->shared || (o->hpux && !(address >= 0x40000000 && address < 0x80000000)) ||
	       (address >= o->shared_from && address < o->shared_to);
}

static void ciat_usage_add_page(
	struct memory_ciat *c, const struct page_sum *s, uint64_t *instructions)
{
	struct memory_ciat_usage *u = &c->result.usage;
	bool range = is_range_shared(c, s);
	u->touched_pages++;
	u->touched_bytes += s->page.touched_bytes;
	u->data_bytes += s->data_bytes;
	u->code_bytes += s->page.code_bytes;
	u->shared_bytes += s->page.shared_bytes;
	u->data_accesses += s->page.data_accesses;
	u->code_accesses += s->page.code_accesses;
	u->shared_data_accesses += s->page.shared_data_accesses;
	u->shared_code_accesses += s->page.shared_code_accesses;
	*instructions += s->touched_instructions;
	if (s->shared) {
		u->shared_pages++;
		u->page_shared_bytes += s->page.touched_bytes;
		u->page_shared_data_accesses += s->page.data_accesses;
		u->page_shared_code_accesses += s->page.code_accesses;
	}
	if (range) {
		u->range_shared_pages++;
		u->range_shared_bytes += s->page.touched_bytes;
		u->range_shared_data_accesses += s->page.data_accesses;
		u->range_shared_code_accesses += s->page.code_accesses;
	}
}

static int ciat_usage_by_number(const void *a, const void *b)
{
	const struct ciat_page *x = *(struct ciat_page *const *)a,
			       *y = *(struct ciat_page *const *)b;
	return (x->number > y->number) - (x->number < y->number);
}

static enum base_status sum_pages(struct memory_ciat *c, uint32_t instruction_bytes)
{
	struct memory_ciat_usage *u = &c->result.usage;
	uint64_t instructions = 0;
	if (c->nr_pages)
		qsort(c->page, c->nr_pages, sizeof(struct ciat_page *), ciat_usage_by_number);
	c->usage_page = base_alloc((c->nr_pages + 1) * sizeof *c->usage_page);
	if (!c->usage_page)
		return BASE_ERR_NOMEM;
	for (size_t i = 0; i < c->nr_pages; i++) {
		struct page_sum s = sum_page(c, c->page[i]);
		if (!s.toucher)
			continue;
		c->usage_page[c->result.nr_pages++] = s.page;
		ciat_usage_add_page(c, &s, &instructions);
	}
	c->result.page = c->usage_page;
	u->accesses = u->data_accesses + u->code_accesses;
	const struct memory_ciat_counts *n = &c->result.total.all;
	uint64_t bytes = n->access_bytes[0] + n->access_bytes[1];
	if (instruction_bytes)
		instructions = u->code_bytes / instruction_bytes;
	u->data_locality = u->data_bytes ? (double)bytes / (double)u->data_bytes : 0;
	u->code_locality = instructions ? (double)u->code_accesses / (double)instructions : 0;
	return BASE_OK;
}

uint64_t memory_ciat_touched(const struct memory_ciat *c, uint64_t from)
{
	size_t low = BASE_PARTITION(i, c->nr_pages, c->page[i]->number < from >> PAGE_SHIFT);
	for (; low < c->nr_pages; low++) {
		struct ciat_page *p = c->page[low];
		uint64_t start = p->number << PAGE_SHIFT;
		unsigned g = from > start ? (unsigned)(from - start) >> c->shape.location_shift : 0;
		for (; g < (unsigned)PAGE_BYTES >> c->shape.location_shift; g++) {
			uint64_t at = start + ((uint64_t)g << c->shape.location_shift);
			if (ciat_state(p)[g])
				return at > from ? at : from;
		}
	}
	return UINT64_MAX;
}

/* ---- lines and sites ------------------------------------------------------------------------- */

static uint32_t writers_of(const struct memory_ciat *c, struct ciat_page *p, unsigned line)
{
	unsigned shift = c->shape.line_shift - c->shape.location_shift;
	uint32_t nr = 0;
	for (unsigned g = line << shift; g < (line + 1) << shift; g++) {
		uint32_t writer = ciat_writer(ciat_state(p)[g]);
		bool known = !writer;
		for (unsigned k = line << shift; k < g && !known; k++)
			known = ciat_writer(ciat_state(p)[k]) == writer;
		nr += !known;
	}
	return nr;
}

static bool ciat_usage_moved(const struct ciat_line *l)
{
	return l->true_misses || l->false_misses || l->upgrades;
}

static int by_false_misses(const void *a, const void *b)
{
	const struct memory_ciat_line *x = a, *y = b;
	if (x->false_misses != y->false_misses)
		return x->false_misses < y->false_misses ? 1 : -1;
	if (x->true_misses != y->true_misses)
		return x->true_misses < y->true_misses ? 1 : -1;
	return (x->address > y->address) - (x->address < y->address);
}

static int by_line(const void *a, const void *b)
{
	const struct memory_ciat_site *x = a, *y = b;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	uint64_t mx = x->true_misses + x->false_misses, my = y->true_misses + y->false_misses;
	if (mx != my)
		return mx < my ? 1 : -1;
	if (x->code != y->code)
		return x->code < y->code ? -1 : 1;
	return (x->heap > y->heap) - (x->heap < y->heap);
}

static int by_code(const void *a, const void *b)
{
	const struct memory_ciat_function *x = a, *y = b;
	return (x->code > y->code) - (x->code < y->code);
}

static enum base_status sum_lines(struct memory_ciat *c)
{
	size_t nr = 0;
	unsigned per_page =
		c->options.without_lines ? 0 : (unsigned)PAGE_BYTES >> c->shape.line_shift;
	for (size_t i = 0; i < c->nr_pages; i++)
		for (unsigned l = 0; l < per_page; l++)
			nr += ciat_usage_moved(ciat_line(&c->shape, c->page[i], l));
	c->line = base_alloc((nr + 1) * sizeof *c->line);
	if (!c->line)
		return BASE_ERR_NOMEM;
	for (size_t i = 0; i < c->nr_pages; i++) {
		struct ciat_page *p = c->page[i];
		for (unsigned l = 0; l < per_page; l++) {
			const struct ciat_line *line = ciat_line(&c->shape, p, l);
			if (!ciat_usage_moved(line))
				continue;
			c->line[c->result.nr_lines++] = (struct memory_ciat_line){
				.address = (p->number << PAGE_SHIFT) +
					   ((uint64_t)l << c->shape.line_shift),
				.true_misses = line->true_misses,
				.false_misses = line->false_misses,
				.upgrades = line->upgrades,
				.writers = writers_of(c, p, l)};
		}
	}
	qsort(c->line, nr, sizeof *c->line, by_false_misses);
	c->result.line = c->line;
	if (c->nr_sites)
		qsort(c->site, c->nr_sites, sizeof *c->site, by_line);
	c->result.site = c->site;
	c->result.nr_sites = c->nr_sites;
	if (c->functions.nr)
		qsort(c->functions.function, c->functions.nr, sizeof *c->functions.function,
			by_code);
	c->result.function = c->functions.function;
	c->result.nr_functions = c->functions.nr;
	return BASE_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void sum_curves(struct memory_ciat *c)
{
	struct memory_ciat_result *r = &c->result;
	if (!c->shared_reuse)
		return;
	r->has_reuse = true;
	r->shared_curve = *memory_reuse_curve_of(c->shared_reuse);
	r->private_curve.sampled_share = r->shared_curve.sampled_share;
	r->memory_bytes += memory_reuse_bytes(c->shared_reuse);
	for (uint32_t i = 0; i < r->nr_threads; i++) {
		const struct memory_reuse_curve *one = memory_reuse_curve_of(c->private_reuse[i]);
		r->private_curve.accesses += one->accesses;
		r->private_curve.cold += one->cold;
		r->private_curve.sampled_lines += one->sampled_lines;
		for (unsigned b = 0; b < MEMORY_REUSE_BUCKETS; b++)
			r->private_curve.count[b] += one->count[b];
		r->memory_bytes += memory_reuse_bytes(c->private_reuse[i]);
	}
}

enum base_status memory_ciat_summarize(
	struct memory_ciat *c, uint32_t instruction_bytes, struct base_err *err)
{
	enum base_status s = memory_ciat_spans_give(c);
	for (size_t i = 0; i < c->nr_blocks && s == BASE_OK; i++)
		s = ciat_usage_add_block(c, &c->block[i]);
	if (s == BASE_OK)
		s = sum_pages(c, instruction_bytes);
	if (s == BASE_OK)
		s = sum_lines(c);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory to sum up %zu {page|pages}", c->nr_pages);
	struct memory_ciat_result *r = &c->result;
	r->matrix = c->matrix;
	r->lines_known = !c->options.without_lines;
	r->memory_bytes = c->used_bytes + memory_sets_bytes(&c->sets) +
			  c->blocks_capacity * sizeof *c->block +
			  c->sites_capacity * sizeof *c->site +
			  c->functions.capacity * sizeof *c->functions.function +
			  (c->block_of.capacity + c->site_of.capacity + c->functions.of.capacity) *
				  sizeof(struct base_map_slot);
	memory_ciat_heap_finish(c);
	sum_curves(c);
	return BASE_OK;
}
