/* SPDX-License-Identifier: Apache-2.0 */
/* fields_build.c - what the in-order machine did becomes ops with edges; branches are predicted. */
#include "slack/fields_private.h"

#include <string.h>

#define MOST_DEFAULT (UINT64_C(1) << 21)

static enum base_status fields_build_no_memory(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "no memory for the out-of-order graph");
}

/* ---- blocks: registers and branches ---------------------------------------------------------- */

static enum base_status fields_build_add_instruction(
	struct slack_fields *f, uint64_t code, struct slack_registers *ret, struct base_err *err)
{
	bool known = f->core.decode && f->core.decode(f->core.decode_ctx, code, ret);
	if (base_grow(&f->registers, &f->registers_capacity, f->nr_registers + 1,
		    sizeof *f->registers) != BASE_OK ||
		base_grow(&f->known, &f->known_capacity, f->nr_registers + 1, sizeof *f->known) !=
			BASE_OK)
		return fields_build_no_memory(err);
	if (!known)
		*ret = (struct slack_registers){0};
	f->registers[f->nr_registers] = *ret;
	f->known[f->nr_registers++] = known;
	return BASE_OK;
}

static enum base_status fields_build_find_block(struct slack_fields *f, uint64_t address,
	uint32_t size_bytes, uint64_t count, uint64_t *ret, struct base_err *err)
{
	if (base_map_get(&f->blocks, 0, address, ret))
		return BASE_OK;
	if (base_grow(&f->block, &f->blocks_capacity, f->nr_blocks + 1, sizeof *f->block) !=
			BASE_OK ||
		base_map_put(&f->blocks, 0, address, f->nr_blocks) != BASE_OK)
		return fields_build_no_memory(err);
	*ret = f->nr_blocks++;
	struct block_template *b = &f->block[*ret];
	*b = (struct block_template){
		.address = address, .size_bytes = size_bytes, .first = (uint32_t)f->nr_registers};
	uint64_t at = address;
	for (uint64_t i = 0; i < count; i++) {
		struct slack_registers r = {0};
		enum base_status s = fields_build_add_instruction(f, at, &r, err);
		if (s != BASE_OK)
			return s;
		b->nr++;
		at += r.length ? r.length : size_bytes; /* the rest of it is not known */
	}
	return BASE_OK;
}

/* Was the branch at the end of the block before predicted? Its table learns. */
static bool is_mispredicted(struct core_state *p, uint64_t to)
{
	uint64_t hash = base_hash_u64(p->last_code);
	if (p->last_branch == SLACK_BRANCH_INDIRECT) {
		uint64_t *target = &p->target[hash % TARGETS], before = *target;
		*target = to;
		return before != to;
	}
	bool taken = to != p->block_end;
	uint8_t *counter = &p->counter[(hash ^ p->history) & ((1u << GSHARE_BITS) - 1)];
	bool predicted = *counter >= 2;
	if (taken && *counter < 3)
		++*counter;
	else if (!taken && *counter)
		--*counter;
	p->history = p->history << 1 | taken;
	return predicted != taken;
}

static enum base_status on_block(void *ctx, uint32_t processor, uint64_t address,
	uint32_t size_bytes, uint64_t count, struct base_err *err)
{
	struct slack_fields *f = ctx;
	struct core_state *p = &f->state[processor];
	uint64_t index;
	if (p->last_branch >= SLACK_BRANCH_CONDITIONAL) {
		bool missed = is_mispredicted(p, address);
		if (f->begun && p->nr) {
			f->result.branches++;
			f->result.mispredicted += missed;
			struct op *b = &f->op[p->op[p->nr - 1]];
			if (missed && !f->core.perfect_branches) {
				b->mispredicted = true;
				p->redirect = (uint32_t)(b - f->op);
			}
		}
	}
	enum base_status s = fields_build_find_block(f, address, size_bytes, count, &index, err);
	if (s != BASE_OK)
		return s;
	const struct block_template *b = &f->block[index];
	p->left = b->nr;
	p->block = index;
	p->block_end = address + size_bytes;
	p->last_code = address;
	p->last_branch = b->nr ? f->registers[b->first + b->nr - 1].branch : SLACK_BRANCH_NONE;
	return BASE_OK;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static enum base_status fields_build_add_edge(
	struct slack_fields *f, uint32_t from, struct base_err *err)
{
	struct op *o = &f->op[f->nr - 1];
	for (uint32_t i = 0; i < o->nr_edges; i++)
		if (f->edge[o->first_edge + i] == from)
			return BASE_OK;
	if (from == OP_NONE || o->nr_edges == UINT8_MAX)
		return BASE_OK;
	if (base_grow(&f->edge, &f->edges_capacity, f->nr_edges + 1, sizeof *f->edge) != BASE_OK)
		return fields_build_no_memory(err);
	f->edge[f->nr_edges++] = from;
	o->nr_edges++;
	return BASE_OK;
}

static enum base_status add_op(
	struct slack_fields *f, uint32_t processor, const struct op *o, struct base_err *err)
{
	struct core_state *p = &f->state[processor];
	if (f->nr >= OP_NONE - 1u)
		return base_fail(err, BASE_ERR_LIMIT, "more than %u ops", OP_NONE);
	if (base_grow(&f->op, &f->capacity, f->nr + 1, sizeof *f->op) != BASE_OK ||
		base_grow(&p->op, &p->capacity, p->nr + 1, sizeof *p->op) != BASE_OK)
		return fields_build_no_memory(err);
	struct op *to = &f->op[f->nr];
	*to = *o;
	to->processor = (uint16_t)processor;
	to->first_edge = (uint32_t)f->nr_edges;
	to->number = (uint32_t)p->nr;
	to->redirect = p->redirect;
	p->redirect = to->alone ? (uint32_t)f->nr : OP_NONE;
	p->op[p->nr++] = (uint32_t)f->nr++;
	f->result.instructions += o->counts;
	return BASE_OK;
}

/* The op that was added is the next instruction of its block. */
static enum base_status use_registers(
	struct slack_fields *f, struct core_state *p, struct base_err *err)
{
	uint32_t self = (uint32_t)f->nr - 1;
	enum base_status s = BASE_OK;
	if (!p->left)
		return s;
	const struct block_template *b = &f->block[p->block];
	uint32_t at = b->first + b->nr - p->left--;
	const struct slack_registers *r = &f->registers[at];
	f->result.unknown += !f->known[at];
	for (uint64_t m = r->reads; m && s == BASE_OK; m &= m - 1)
		s = fields_build_add_edge(f, p->writer[__builtin_ctzll(m)], err);
	for (uint64_t m = r->writes; m; m &= m - 1)
		p->writer[__builtin_ctzll(m)] = self;
	return s;
}

/* A further access of the same instruction: what it writes comes from this one. */
static enum base_status follow_on(
	struct slack_fields *f, struct core_state *p, struct base_err *err)
{
	uint32_t self = (uint32_t)f->nr - 1, before = p->nr > 1 ? p->op[p->nr - 2] : OP_NONE;
	for (unsigned i = 0; i < REGISTERS; i++)
		if (p->writer[i] == before)
			p->writer[i] = self;
	return fields_build_add_edge(f, before, err);
}

static bool is_full(struct slack_fields *f)
{
	if (f->result.instructions < f->core.most)
		return false;
	f->result.cut = true;
	return true;
}

static enum base_status on_run(void *ctx, const struct slack_run *r, struct base_err *err)
{
	struct slack_fields *f = ctx;
	struct core_state *p = &f->state[r->processor];
	enum base_status s = BASE_OK;
	for (uint64_t i = 0; i < r->count && f->begun && s == BASE_OK && !is_full(f); i++) {
		struct op o = {.code = r->code, .latency = 1, .kind = SLACK_PLAIN, .counts = true};
		s = add_op(f, r->processor, &o, err);
		if (s == BASE_OK)
			s = use_registers(f, p, err);
	}
	uint64_t end = r->issue + r->count;
	if (f->begun && !f->result.cut && end > f->result.in_order_cycles)
		f->result.in_order_cycles = end;
	return s;
}

static enum base_status add_producers(
	struct slack_fields *f, const struct slack_node *n, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < n->nr_producers && s == BASE_OK; i++) {
		uint64_t order = n->producer[i].order;
		if (order < f->first_order || order - f->first_order >= f->orders ||
			!f->by_order[order - f->first_order])
			continue;
		s = fields_build_add_edge(f, f->by_order[order - f->first_order] - 1, err);
	}
	return s;
}

static enum base_status on_node(void *ctx, const struct slack_node *n, struct base_err *err)
{
	struct slack_fields *f = ctx;
	struct core_state *p = &f->state[n->processor];
	if (!f->begun) {
		if (!slack_begins(&f->options, n))
			return BASE_OK;
		f->begun = true;
	}
	if (is_full(f))
		return BASE_OK;
	if (!f->first_order) {
		f->first_order = n->order;
		f->origin = f->options.from_parallel || f->options.from_marker ? n->start : 0;
	}
	uint64_t latency = n->complete - n->start;
	struct op o = {.code = n->code,
		.latency = latency < UINT32_MAX ? (uint32_t)latency : UINT32_MAX,
		.kind = n->kind,
		.counts = n->instructions != 0,
		.alone = n->kind == SLACK_ATOMIC || n->kind >= SLACK_LOCK};
	enum base_status s = add_op(f, n->processor, &o, err);
	if (s == BASE_OK)
		s = n->instructions           ? use_registers(f, p, err)
		    : n->kind <= SLACK_ATOMIC ? follow_on(f, p, err)
					      : BASE_OK;
	if (s == BASE_OK)
		s = add_producers(f, n, err);
	size_t at = (size_t)(n->order - f->first_order);
	if (s == BASE_OK && base_grow(&f->by_order, &f->orders_capacity, at + 1,
				    sizeof *f->by_order) != BASE_OK)
		s = fields_build_no_memory(err);
	if (s != BASE_OK)
		return s;
	for (size_t i = f->orders; i < at; i++)
		f->by_order[i] = 0;
	f->by_order[at] = (uint32_t)f->nr;
	f->orders = at + 1;
	if (n->complete > f->result.in_order_cycles)
		f->result.in_order_cycles = n->complete;
	return BASE_OK;
}

enum base_status slack_fields_build(struct slack_fields *f,
	struct slack_machine_config const *config, struct memory_source *source,
	struct base_err *err)
{
	struct slack_sink sink = {.run = on_run, .node = on_node, .block = on_block, .ctx = f};
	f->nr_processors = source->info.nr_threads;
	f->core.most = f->core.most ? f->core.most : MOST_DEFAULT;
	f->state = base_alloc((f->nr_processors + 1) * sizeof *f->state);
	if (!f->state)
		return fields_build_no_memory(err);
	for (uint32_t i = 0; i < f->nr_processors; i++) {
		struct core_state *p = &f->state[i];
		p->counter = base_alloc(1u << GSHARE_BITS);
		p->target = base_alloc(TARGETS * sizeof *p->target);
		if (!p->counter || !p->target)
			return fields_build_no_memory(err);
		p->redirect = OP_NONE;
		for (unsigned k = 0; k < REGISTERS; k++)
			p->writer[k] = OP_NONE;
	}
	f->begun = !f->options.from_parallel && !f->options.from_marker;
	enum base_status s =
		slack_machine_new(config, source, &f->options.machine, &sink, &f->machine, err);
	while (s == BASE_OK && !f->result.cut)
		s = slack_machine_run(f->machine, 1 << 14, err);
	f->machine = slack_machine_free(f->machine);
	if (s != BASE_OK && s != BASE_END)
		return s;
	if (!f->begun)
		return base_fail(err, BASE_ERR_USAGE, "the graph cannot begin where it should");
	if (f->result.in_order_cycles > f->origin)
		f->result.in_order_cycles -= f->origin;
	f->result.ops = f->nr;
	f->result.edges = f->nr_edges;
	return BASE_OK;
}
