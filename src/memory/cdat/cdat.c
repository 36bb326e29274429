/* SPDX-License-Identifier: Apache-2.0 */
/* cdat.c - steps through the simulated machine; phases, flow, time. */
#include "memory/cdat/cdat_private.h"
#include "memory/order/order_private.h"

#include <string.h>

enum { PHASES_MAX = 4096, PREFETCH_STEPS = 12 };
#define MEMORY_LIMIT_DEFAULT (UINT64_C(4) << 30)

/* ---- one access ------------------------------------------------------------------------------ */

static const uint8_t supplier_is_local[] = {[MEMORY_CDAT_FROM_LOCAL_MEMORY] = 1,
	[MEMORY_CDAT_FROM_LOCAL_CACHE] = 1,
	[MEMORY_CDAT_FROM_REMOTE_CACHE] = 0};

static void count_flow(struct memory_cdat_flow *f, const struct memory_cdat_outcome *o)
{
	switch (o->supplier) {
	case MEMORY_CDAT_FROM_SECOND:
		f->second_hits++;
		f->hits++;
		break;
	case MEMORY_CDAT_FROM_THIRD:
		f->third_hits++;
		f->hits++;
		break;
	case MEMORY_CDAT_FROM_CACHE:
		f->hits++;
		break;
	default:
		f->misses++;
		*(supplier_is_local[o->supplier] ? &f->local : &f->remote) += 1;
		f->local_memory += o->supplier == MEMORY_CDAT_FROM_LOCAL_MEMORY;
		f->local_cache += o->supplier == MEMORY_CDAT_FROM_LOCAL_CACHE;
		f->remote_memory += o->supplier == MEMORY_CDAT_FROM_REMOTE_MEMORY;
		f->remote_cache += o->supplier == MEMORY_CDAT_FROM_REMOTE_CACHE;
		break;
	}
	f->upgrades += o->upgrade;
}

static uint64_t latency_ps(const struct memory_cdat *c, const struct memory_cdat_outcome *o)
{
	const struct memory_cdat_config *k = &c->config;
	const uint64_t by_supplier[] = {[MEMORY_CDAT_FROM_CACHE] = 0,
		[MEMORY_CDAT_FROM_SECOND] = k->second_hit_ps,
		[MEMORY_CDAT_FROM_THIRD] = k->third_hit_ps,
		[MEMORY_CDAT_FROM_LOCAL_MEMORY] = k->local_memory_ps,
		[MEMORY_CDAT_FROM_LOCAL_CACHE] = k->local_cache_ps,
		[MEMORY_CDAT_FROM_REMOTE_MEMORY] = k->remote_memory_ps,
		[MEMORY_CDAT_FROM_REMOTE_CACHE] = k->remote_cache_ps};
	return by_supplier[o->supplier] + (o->upgrade ? k->upgrade_ps : 0);
}

/* Found behind the first level: it is taken out there, or stays and was used. */
static void take_up(struct memory_cdat *c, uint32_t processor, uint64_t line)
{
	struct cdat_processor *p = &c->processor[processor];
	struct cdat_unit *u = &c->unit[p->unit];
	struct cdat_cache *level[] = {&p->second, &u->third};
	bool stays[] = {c->config.inclusive, c->config.inclusive || u->nr > 1};
	uint32_t ignored;
	for (size_t i = 0; i < BASE_COUNT(level); i++) {
		if (!stays[i]) {
			(void)memory_cdat_cache_drop(level[i], line, &ignored);
			continue;
		}
		uint64_t part = cdat_part(c, level[i], line);
		uint32_t way = cdat_find(level[i], part);
		if (way < level[i]->ways && c->config.replacement == MEMORY_CDAT_LRU)
			memory_cdat_cache_use(level[i], part, way);
	}
}

/* Looks behind the first level. True: some level of this processor, or of one that shares the last
 * level with it, has the line; now the first has it, too. */
static bool find_behind(struct memory_cdat *c, uint32_t processor, uint64_t line, bool code,
	struct memory_cdat_outcome *o, enum base_status *ret)
{
	struct cdat_processor *p = &c->processor[processor];
	struct cdat_cache *other = code ? &p->data : &p->code;
	uint32_t version = 0;
	*ret = BASE_OK;
	if (c->one_level && !code && !cdat_is_code(c, line))
		return false;
	if (!memory_cdat_holds(c, p->unit, line, &version))
		return false;
	o->supplier = cdat_has(&p->second, cdat_part(c, &p->second, line)) ||
				      cdat_has(other, cdat_part(c, other, line))
			      ? MEMORY_CDAT_FROM_SECOND
			      : MEMORY_CDAT_FROM_THIRD;
	/* A cache that may store without asking has the only copy: not any more. */
	if (code || o->supplier == MEMORY_CDAT_FROM_THIRD)
		memory_cdat_clean(c, p->unit, line);
	take_up(c, processor, line);
	*ret = memory_cdat_fill(c, processor, line, code, version);
	return true;
}

/* A load that hits must see the newest version; with the monitor on, it is looked at. */
static enum base_status check_hit(struct memory_cdat *c, uint32_t processor, uint64_t line)
{
	uint32_t home, version = 0, node = c->processor[processor].node;
	const struct cdat_line *l = memory_cdat_line(c, node, line, false, &home);
	if (!l)
		return BASE_ERR_NOMEM;
	(void)memory_cdat_holds_alone(&c->processor[processor], line, &version);
	c->result.checks++;
	if (version == l->version)
		return BASE_OK;
	return base_fail(c->err, BASE_ERR_CORRUPT,
		"%s, clock %llu: processor %u reads version %u of line 0x%llx, the newest is %u",
		c->protocol->name, (unsigned long long)c->clock, processor, version,
		(unsigned long long)line << c->line_shift, l->version);
}

/* way: where the first level has it, as cdat_find() says. */
static enum base_status access_way(struct memory_cdat *c, uint32_t processor, uint64_t line,
	enum memory_item_kind kind, uint32_t way, struct memory_cdat_outcome *o)
{
	struct cdat_processor *p = &c->processor[processor];
	bool code = kind == MEMORY_BLOCK, store = kind == MEMORY_STORE;
	struct cdat_cache *k = code ? &p->code : &p->data;
	enum base_status s = BASE_OK;
	*o = (struct memory_cdat_outcome){.supplier = MEMORY_CDAT_FROM_CACHE, .owner = -1};
	bool hit = way < k->ways;
	if (BASE_LIKELY(hit)) {
		uint64_t part = c->has_parts ? cdat_part(c, k, line) : line;
		bool may_store = cdat_set(k, part)[way] & CDAT_MAY_STORE;
		if (way && c->config.replacement == MEMORY_CDAT_LRU)
			memory_cdat_cache_use(k, part, way);
		if (BASE_LIKELY((!store || may_store) && !c->options.check))
			return BASE_OK;
	}
	c->outcome = o;
	if (!hit)
		hit = find_behind(c, processor, line, code, o, &s);
	if (s != BASE_OK)
		return s;
	if (store)
		return memory_cdat_store(c, processor, line, hit);
	if (!hit)
		return memory_cdat_load_miss(c, processor, line, code);
	return c->options.check ? check_hit(c, processor, line) : BASE_OK;
}

static enum base_status access_line(struct memory_cdat *c, uint32_t processor, uint64_t line,
	enum memory_item_kind kind, struct memory_cdat_outcome *o)
{
	const struct cdat_processor *p = &c->processor[processor];
	const struct cdat_cache *k = kind == MEMORY_BLOCK ? &p->code : &p->data;
	uint32_t way = cdat_find(k, c->has_parts ? cdat_part(c, k, line) : line);
	return access_way(c, processor, line, kind, way, o);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Where the first level's lines are parts of the machine's: part by part. *ret_nr: so many. */
static enum base_status touch_parts(struct memory_cdat *c, uint32_t processor, uint64_t address,
	uint64_t size_bytes, enum memory_item_kind kind, uint64_t *ret_nr)
{
	struct cdat_processor *p = &c->processor[processor];
	const bool code = kind == MEMORY_BLOCK;
	struct memory_cdat_flow *f =
		&c->open->flow[code ? MEMORY_CDAT_INSTRUCTIONS : MEMORY_CDAT_DATA];
	unsigned shift = c->line_shift - (code ? &p->code : &p->data)->part_shift;
	uint64_t part = address >> shift, last = (address + size_bytes - 1) >> shift;
	*ret_nr = last - part + 1;
	for (; part <= last; part++) {
		struct memory_cdat_outcome o;
		c->at = part << shift;
		enum base_status s = access_line(c, processor, c->at >> c->line_shift, kind, &o);
		if (s != BASE_OK)
			return s;
		count_flow(f, &o);
		if (c->config.cycle_ps)
			p->time_ps += latency_ps(c, &o);
	}
	return BASE_OK;
}

enum base_status memory_cdat_touch(struct memory_cdat *c, uint32_t processor, uint64_t address,
	uint64_t size_bytes, enum memory_item_kind kind)
{
	uint64_t nr_parts;
	if (BASE_UNLIKELY(c->has_parts))
		return touch_parts(c, processor, address, size_bytes, kind, &nr_parts);
	uint64_t line = address >> c->line_shift;
	uint64_t last = (address + size_bytes - 1) >> c->line_shift;
	struct memory_cdat_flow *f = &c->open->flow[MEMORY_CDAT_DATA];
	const struct cdat_cache *k = &c->processor[processor].data;
	for (; line <= last; line++) {
		if (cdat_is_plain_hit(c, k, line, kind != MEMORY_LOAD)) {
			f->hits++;
			continue;
		}
		struct memory_cdat_outcome o;
		enum base_status s = BASE_OK;
		uint32_t way = cdat_find(k, line);
		if (way >= k->ways && kind == MEMORY_LOAD &&
			memory_cdat_load_plainly(c, processor, line, &s)) {
			if (BASE_UNLIKELY(s != BASE_OK))
				return s;
			continue;
		}
		s = access_way(c, processor, line, kind, way, &o);
		if (BASE_UNLIKELY(s != BASE_OK))
			return s;
		count_flow(f, &o);
		if (c->config.cycle_ps)
			c->processor[processor].time_ps += latency_ps(c, &o);
	}
	return BASE_OK;
}

enum base_status memory_cdat_fetch(struct memory_cdat *c, uint32_t processor, uint64_t address,
	uint64_t size_bytes, uint64_t instructions)
{
	struct memory_cdat_flow *f = &c->open->flow[MEMORY_CDAT_INSTRUCTIONS];
	if (!c->config.code_bytes || !size_bytes)
		return BASE_OK;
	uint64_t line = address >> c->line_shift, lines = 0;
	uint64_t last = (address + size_bytes - 1) >> c->line_shift;
	if (BASE_UNLIKELY(c->has_parts)) {
		enum base_status s =
			touch_parts(c, processor, address, size_bytes, MEMORY_BLOCK, &lines);
		f->hits += s == BASE_OK && instructions > lines ? instructions - lines : 0;
		return s;
	}
	for (; line <= last; line++, lines++) {
		if (cdat_is_plain_hit(c, &c->processor[processor].code, line, false)) {
			f->hits++;
			continue;
		}
		struct memory_cdat_outcome o;
		enum base_status s = access_line(c, processor, line, MEMORY_BLOCK, &o);
		if (s != BASE_OK)
			return s;
		count_flow(f, &o);
		if (c->config.cycle_ps)
			c->processor[processor].time_ps += latency_ps(c, &o);
	}
	f->hits += instructions > lines ? instructions - lines : 0;
	return BASE_OK;
}

static enum base_status dma(
	struct memory_cdat *c, uint32_t processor, const struct memory_step *step, bool in)
{
	uint32_t node = c->options.distributed_io ? c->processor[processor].node : 0;
	if (!step->count)
		return BASE_OK;
	uint64_t line = step->address >> c->line_shift;
	uint64_t last = (step->address + step->count - 1) >> c->line_shift;
	for (; line <= last; line++) {
		struct memory_cdat_outcome o = {.owner = -1};
		c->outcome = &o;
		enum base_status s = memory_cdat_dma(c, node, line, in);
		if (s != BASE_OK)
			return s;
		count_flow(&c->open->flow[MEMORY_CDAT_IO], &o);
	}
	return BASE_OK;
}

static enum base_status range(
	struct memory_cdat *c, uint32_t processor, const struct memory_step *step, bool store)
{
	return step->count ? memory_cdat_touch(c, processor, step->address, step->count,
				     store ? MEMORY_STORE : MEMORY_LOAD)
			   : BASE_OK;
}

static void tell_status(struct memory_cdat *c, uint32_t processor, bool active)
{
	if (!c->options.general)
		return;
	memset(c->bits, 0, (c->nr_processors + 63) / 64 * sizeof *c->bits);
	struct memory_cdat_transaction t = {.clock = c->clock,
		.code = active ? MEMORY_CDAT_starts : MEMORY_CDAT_idles,
		.requester = (int32_t)processor,
		.from = (int32_t)processor,
		.home = c->processor[processor].node,
		.status = MEMORY_CDAT_IDLE,
		.sharers = c->bits};
	c->options.general(c->options.trace_ctx, (int32_t)processor, &t);
}

/* After a barrier or a spawn all go on when the last one is there. */
static void cdat_meet(struct memory_cdat *c, uint32_t processor)
{
	uint64_t most = 0;
	for (uint32_t i = 0; c->config.cycle_ps && i < c->nr_processors; i++)
		most = c->processor[i].time_ps > most ? c->processor[i].time_ps : most;
	c->processor[processor].time_ps = c->config.cycle_ps ? most : 0;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void phase_fini(struct memory_cdat_phase *p)
{
	base_free(p->active);
	base_free(p->time_ps);
	*p = (struct memory_cdat_phase){0};
}

static enum base_status phase_init(
	struct memory_cdat_phase *p, uint32_t nr_processors, struct base_err *err)
{
	*p = (struct memory_cdat_phase){.active = base_alloc(nr_processors * sizeof *p->active),
		.time_ps = base_alloc(nr_processors * sizeof *p->time_ps)};
	if (p->active && p->time_ps)
		return BASE_OK;
	phase_fini(p);
	return base_fail(err, BASE_ERR_NOMEM, "no memory for a phase");
}

static enum base_status cdat_begin_phase(struct memory_cdat *c, enum memory_phase_kind kind,
	uint64_t number, uint64_t clock, struct base_err *err)
{
	struct memory_cdat_result *r = &c->result;
	struct memory_cdat_phase *p = &c->spilled;
	bool spill = r->nr_phases >= PHASES_MAX;
	if (spill) {
		phase_fini(p);
		r->phases_left_out++;
	} else {
		if (base_grow(&r->phase, &c->phases_capacity, r->nr_phases + 1, sizeof *p) !=
			BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for a phase");
		p = &r->phase[r->nr_phases];
	}
	enum base_status s = phase_init(p, c->nr_processors, err);
	if (s != BASE_OK)
		return s;
	r->nr_phases += !spill;
	p->kind = kind;
	p->number = number;
	p->begin_clock = clock;
	BASE_ASSERT(p->time_ps && c->processor);
	for (uint32_t i = 0; i < c->nr_processors; i++)
		p->time_ps[i] = c->processor[i].time_ps;
	c->open = p;
	return BASE_OK;
}

static void cdat_add_words(void *to, const void *from, size_t size_bytes)
{
	uint64_t *t = to;
	const uint64_t *f = from;
	for (size_t i = 0; i < size_bytes / sizeof *t; i++)
		t[i] += f[i];
}

static void end_phase(struct memory_cdat *c, uint64_t clock)
{
	struct memory_cdat_phase *p = c->open, *all = &c->result.total;
	if (!p)
		return;
	p->end_clock = all->end_clock = clock;
	if (c->config.cycle_ps) {
		uint64_t most = 0;
		for (uint32_t i = 0; i < c->nr_processors; i++)
			most = c->processor[i].time_ps > most ? c->processor[i].time_ps : most;
		for (uint32_t i = 0; i < c->nr_processors; i++)
			c->processor[i].time_ps = most;
	}
	for (uint32_t i = 0; i < c->nr_processors; i++) {
		p->time_ps[i] = c->processor[i].time_ps - p->time_ps[i];
		all->time_ps[i] += p->time_ps[i];
		all->active[i] += p->active[i];
	}
	cdat_add_words(all->flow, p->flow, sizeof p->flow);
	cdat_add_words(all->transactions, p->transactions, sizeof p->transactions);
	cdat_add_words(&all->states, &p->states, sizeof p->states);
	all->requests += p->requests;
	all->critical += p->critical;
	all->migrations += p->migrations;
	all->replications += p->replications;
	all->collapses += p->collapses;
	c->open = NULL;
}

static enum base_status cdat_add_rare(struct memory_cdat *c, uint32_t processor,
	const struct memory_step *s, struct base_err *err)
{
	switch (s->kind) {
	case MEMORY_STEP_PHASE_BEGIN:
		return cdat_begin_phase(
			c, (enum memory_phase_kind)s->address, s->count, s->clock, err);
	case MEMORY_STEP_PHASE_END:
		end_phase(c, s->clock);
		break;
	case MEMORY_STEP_ACTIVE:
		cdat_meet(c, processor);
		tell_status(c, processor, true);
		break;
	case MEMORY_STEP_IDLE:
		tell_status(c, processor, false);
		break;
	case MEMORY_STEP_DMA_IN:
		return dma(c, processor, s, true);
	case MEMORY_STEP_DMA_OUT:
		return dma(c, processor, s, false);
	case MEMORY_RANGE_LOAD:
		return range(c, processor, s, false);
	case MEMORY_RANGE_STORE:
		return range(c, processor, s, true);
	case MEMORY_BLOCK:
		return memory_cdat_fetch(c, processor, s->address, s->size_bytes, s->count);
	default:
		break;
	}
	return BASE_OK;
}

static enum base_status cdat_fail_step(
	struct memory_cdat *c, enum base_status s, struct base_err *err)
{
	if (err && err->nr_causes && err->status == s)
		return s;
	if (s == BASE_ERR_LIMIT)
		return base_fail(err, s,
			"the directory needs more than %llu bytes; allow more with --max-memory",
			(unsigned long long)c->options.memory_limit_bytes);
	return base_fail(err, s, "no memory for the directory");
}

/* ---- all ------------------------------------------------------------------------------------- */

enum base_status memory_cdat_add(
	struct memory_cdat *c, const struct memory_steps *steps, struct base_err *err)
{
	c->err = err;
	for (size_t i = 0; i < steps->nr; i++) {
		const struct memory_step *s = &steps->step[i];
		uint32_t processor = c->processor_of[s->thread];
		enum base_status status = BASE_OK;
		c->clock = s->clock;
		if (i + PREFETCH_STEPS < steps->nr && s[PREFETCH_STEPS].kind <= MEMORY_ATOMIC)
			cdat_prefetch(c, s[PREFETCH_STEPS].address);
		if (BASE_UNLIKELY(s->kind > MEMORY_ATOMIC)) {
			status = cdat_add_rare(c, processor, s, err);
			if (s->kind >= MEMORY_CALL && status == BASE_OK)
				continue;
		} else if (BASE_LIKELY(s->size_bytes)) {
			/* An atomic is one access that needs the line for itself. */
			status = memory_cdat_touch(c, processor, s->address, s->size_bytes,
				s->kind == MEMORY_LOAD ? MEMORY_LOAD : MEMORY_STORE);
		}
		if (BASE_UNLIKELY(status != BASE_OK))
			return cdat_fail_step(c, status, err);
		c->open->active[processor] += s->instructions;
		c->processor[processor].time_ps += s->instructions * c->config.cycle_ps;
	}
	if (!steps->nr_pieces)
		return BASE_OK;
	enum base_status status = memory_cdat_pieces(c, steps);
	return status == BASE_OK ? BASE_OK : cdat_fail_step(c, status, err);
}

enum base_status memory_cdat_begin(struct memory_cdat *c, struct base_err *err)
{
	return cdat_begin_phase(c, MEMORY_PHASE_PARALLEL, 0, 0, err);
}

enum base_status memory_cdat_access(struct memory_cdat *c, uint32_t processor, uint64_t address,
	enum memory_item_kind kind, uint64_t clock, struct memory_cdat_outcome *ret,
	struct base_err *err)
{
	BASE_ASSERT(c->open && processor < c->nr_processors && address < MEMORY_ADDRESS_LIMIT);
	c->err = err;
	c->clock = clock;
	c->at = address;
	enum base_status s = access_line(c, processor, address >> c->line_shift, kind, ret);
	if (s != BASE_OK)
		return cdat_fail_step(c, s, err);
	ret->latency_ps = latency_ps(c, ret);
	count_flow(
		&c->open->flow[kind == MEMORY_BLOCK ? MEMORY_CDAT_INSTRUCTIONS : MEMORY_CDAT_DATA],
		ret);
	return BASE_OK;
}

enum memory_cdat_status memory_cdat_peek(
	const struct memory_cdat *c, uint32_t processor, uint64_t address)
{
	uint64_t line = address >> c->line_shift;
	uint32_t version;
	uint32_t unit = c->processor[processor].unit;
	if (!memory_cdat_holds(c, unit, line, &version))
		return 0;
	const struct cdat_line *l = &cdat_chunk_at(c, address)->line[cdat_line_index(c, line)];
	if (l->owner != unit + 1)
		return MEMORY_CDAT_SHARED;
	return l->dirty ? MEMORY_CDAT_DIRTY : MEMORY_CDAT_EXCLUSIVE;
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum base_status init_level(struct memory_cdat *c, struct cdat_cache *k, uint64_t size_bytes,
	uint64_t ways, uint64_t line_bytes, bool is_last)
{
	enum base_status s =
		memory_cdat_cache_init(k, size_bytes, ways, line_bytes, c->options.check);
	k->part_shift = (uint8_t)(c->line_shift - (unsigned)__builtin_ctzll(line_bytes));
	k->is_last = is_last;
	c->has_parts |= size_bytes && k->part_shift;
	return s;
}

static enum base_status init_processors(struct memory_cdat *c, struct base_err *err)
{
	const struct memory_cdat_config *k = &c->config;
	struct memory_cdat_lines lines = memory_cdat_config_lines(k);
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < c->nr_processors && s == BASE_OK; i++) {
		struct cdat_processor *p = &c->processor[i];
		bool only = !k->second_bytes && !k->third_bytes;
		p->node = i / (uint32_t)k->processors;
		p->unit = i / (uint32_t)k->third_shared;
		s = init_level(c, &p->data, k->data_bytes, k->data_ways, lines.data, only);
		if (s == BASE_OK)
			s = init_level(c, &p->code, k->code_bytes, k->code_ways, lines.code, only);
		if (s == BASE_OK)
			s = init_level(c, &p->second, k->second_bytes, k->second_ways, lines.second,
				!k->third_bytes);
	}
	for (uint32_t i = 0; i < c->nr_units && s == BASE_OK; i++) {
		struct cdat_unit *u = &c->unit[i];
		u->nr = (uint32_t)k->third_shared;
		u->first = i * u->nr;
		u->node = c->processor[u->first].node;
		if (!c->sets.wide)
			c->units_of[u->node] |= UINT32_C(1) << i;
		s = init_level(c, &u->third, k->third_bytes, k->third_ways, lines.third, true);
	}
	if (s == BASE_OK && k->interconnect_bytes) {
		c->interconnect = base_alloc(k->nodes * sizeof *c->interconnect);
		s = c->interconnect ? BASE_OK : BASE_ERR_NOMEM;
		for (uint32_t i = 0; i < k->nodes && s == BASE_OK; i++)
			s = memory_cdat_cache_init(&c->interconnect[i], k->interconnect_bytes,
				k->interconnect_ways, k->line_bytes, c->options.check);
	}
	return s == BASE_OK ? s : base_fail(err, s, "no memory for the caches of the machine");
}

static enum base_status map_threads(struct memory_cdat *c, struct base_err *err)
{
	const struct memory_cdat_config *k = &c->config;
	uint32_t per_node = (uint32_t)k->processors, nodes = (uint32_t)k->nodes;
	if (k->nr_mapped && c->nr_threads > k->nr_mapped)
		return base_fail(err, BASE_ERR_USAGE,
			"the trace has %u {thread|threads}, mapping says where %u of them are; it "
			"needs a "
			"NODE:PROCESSOR for each",
			c->nr_threads, k->nr_mapped);
	if (c->nr_threads > c->nr_processors)
		return base_fail(err, BASE_ERR_USAGE,
			"the trace has %u {thread|threads}, the machine has %u "
			"{processor|processors}; give it more "
			"nodes or processors (with nodes = %u, processors = %u or more)",
			c->nr_threads, c->nr_processors, nodes,
			(c->nr_threads + nodes - 1) / nodes);
	for (uint32_t t = 0; t < c->nr_threads; t++) {
		uint32_t at = t;
		if (k->nr_mapped)
			at = k->place_of[t] / MEMORY_CDAT_PROCESSORS_MAX * per_node +
			     k->place_of[t] % MEMORY_CDAT_PROCESSORS_MAX;
		else if (k->scattered)
			at = t % nodes * per_node + t / nodes;
		c->processor_of[t] = (uint16_t)at;
	}
	return BASE_OK;
}

static enum base_status cdat_init(struct memory_cdat *c, struct base_err *err)
{
	c->line_shift = (unsigned)__builtin_ctzll(c->config.line_bytes);
	c->chunk_mask = (CHUNK_BYTES >> c->line_shift) - 1u;
	c->page_shift = (unsigned)__builtin_ctzll(c->config.page_bytes);
	c->nr_processors = (uint32_t)(c->config.nodes * c->config.processors);
	c->result.nr_processors = c->nr_processors;
	c->result.nr_threads = c->nr_threads;
	c->protocol = c->config.protocol;
	c->random = 88172645463325252u;
	c->nr_units = c->nr_processors / (uint32_t)c->config.third_shared;
	memory_sets_init(&c->sets, c->nr_units);
	c->one_level = !c->config.second_bytes && !c->config.third_bytes &&
		       !memory_cdat_config_has_parts(&c->config);
	c->plain = c->one_level && !c->sets.wide && !c->options.nr_usage &&
		   !c->config.interconnect_bytes && !c->config.migrate_after &&
		   !c->config.replicate_after && !c->options.check && !c->options.general &&
		   !c->options.detailed && c->config.replacement != MEMORY_CDAT_RANDOM &&
		   c->protocol->network == MEMORY_CDAT_DIRECTORY;
	if (!c->options.memory_limit_bytes)
		c->options.memory_limit_bytes = MEMORY_LIMIT_DEFAULT;
	c->processor = base_alloc(c->nr_processors * sizeof *c->processor);
	c->unit = base_alloc(c->nr_units * sizeof *c->unit);
	c->processor_of = base_alloc((c->nr_threads + 1) * sizeof *c->processor_of);
	c->bits = base_alloc((c->nr_processors + 63) / 64 * sizeof *c->bits);
	c->runs.run = base_alloc((c->nr_threads + 1) * sizeof *c->runs.run);
	c->runs.turn = base_alloc((c->nr_threads + 1) * sizeof *c->runs.turn);
	if (!c->processor || !c->unit || !c->processor_of || !c->bits || !c->runs.run ||
		!c->runs.turn)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the machine");
	enum base_status s = phase_init(&c->result.total, c->nr_processors, err);
	if (s == BASE_OK)
		s = map_threads(c, err);
	if (s == BASE_OK)
		s = init_processors(c, err);
	return s == BASE_OK ? memory_cdat_homes_init(c, err) : s;
}

enum base_status memory_cdat_new(const struct memory_cdat_config *config, uint32_t nr_threads,
	const struct memory_cdat_options *options, struct memory_cdat **ret, struct base_err *err)
{
	*ret = NULL;
	enum base_status s = memory_cdat_config_check(config, err);
	if (s != BASE_OK)
		return s;
	struct memory_cdat *c = base_alloc(sizeof *c);
	if (!c)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the machine");
	c->config = *config;
	c->options = *options;
	c->nr_threads = nr_threads;
	s = cdat_init(c, err);
	if (s != BASE_OK) {
		memory_cdat_free(c);
		return s;
	}
	*ret = c;
	return BASE_OK;
}

struct memory_cdat *memory_cdat_free(struct memory_cdat *c)
{
	if (!c)
		return NULL;
	for (uint32_t i = 0; c->processor && i < c->nr_processors; i++) {
		memory_cdat_cache_fini(&c->processor[i].data);
		memory_cdat_cache_fini(&c->processor[i].code);
		memory_cdat_cache_fini(&c->processor[i].second);
	}
	for (uint32_t i = 0; c->unit && i < c->nr_units; i++)
		memory_cdat_cache_fini(&c->unit[i].third);
	for (uint32_t i = 0; c->interconnect && i < c->config.nodes; i++)
		memory_cdat_cache_fini(&c->interconnect[i]);
	for (size_t i = 0; i < c->result.nr_phases; i++)
		phase_fini(&c->result.phase[i]);
	phase_fini(&c->spilled);
	phase_fini(&c->result.total);
	memory_cdat_homes_fini(c);
	memory_sets_fini(&c->sets);
	base_free(c->interconnect);
	base_free(c->result.phase);
	base_free(c->processor);
	base_free(c->unit);
	base_free(c->processor_of);
	base_free(c->bits);
	base_free(c->runs.run);
	base_free(c->runs.part);
	base_free(c->runs.turn);
	base_free(c);
	return NULL;
}

static uint64_t ways_of(const struct cdat_cache *k)
{
	return (uint64_t)k->sets * k->ways;
}

enum base_status memory_cdat_finish(
	struct memory_cdat *c, const struct memory_cdat_result **ret, struct base_err *err)
{
	(void)err;
	end_phase(c, c->clock);
	const struct memory_cdat_config *k = &c->config;
	uint64_t lines = ways_of(&c->processor->data) + ways_of(&c->processor->code) +
			 ways_of(&c->processor->second);
	lines = lines * c->nr_processors + ways_of(&c->unit->third) * c->nr_units +
		k->interconnect_bytes / k->line_bytes * k->nodes;
	c->result.memory_bytes = c->used_bytes + memory_sets_bytes(&c->sets) + lines * 8;
	*ret = &c->result;
	return BASE_OK;
}
