/* SPDX-License-Identifier: Apache-2.0 */
/* fields.c - times of the out-of-order graph forward, slack backward, what the critical path is. */
#include "slack/fields_private.h"

#include <stdlib.h>
#include <string.h>

const char *slack_cause_name(enum slack_cause c)
{
	static const char *const name[] = {
#define CAUSE(name, line) #name,
#include "slack/fields_causes.def"
	};
	return c < SLACK_CAUSES ? name[c] : "?";
}

const char *slack_cause_line(enum slack_cause c)
{
	static const char *const line[] = {
#define CAUSE(name, line) line,
#include "slack/fields_causes.def"
	};
	return c < SLACK_CAUSES ? line[c] : "?";
}

/* ---- edges ----------------------------------------------------------------------------------- */

enum stage { STAGE_D, STAGE_E, STAGE_C };
struct in_edge {
	uint32_t from;
	enum stage stage;
	uint64_t length;
	enum slack_cause cause;
};
enum { FIXED_EDGES_MAX = 4 };

/* The op that is `back` before this one on its processor; OP_NONE: there is none. */
static uint32_t fields_before(const struct slack_fields *f, const struct op *o, uint32_t back)
{
	return o->number >= back ? f->state[o->processor].op[o->number - back] : OP_NONE;
}

static enum slack_cause execution(const struct op *o)
{
	if (o->kind == SLACK_PLAIN)
		return SLACK_CAUSE_plain;
	if (o->kind >= SLACK_LOCK)
		return SLACK_CAUSE_sync;
	return o->latency > 64 ? SLACK_CAUSE_miss : SLACK_CAUSE_cache;
}

static unsigned fields_put(struct in_edge *list, unsigned nr, uint32_t from, enum stage stage,
	uint64_t length, enum slack_cause cause)
{
	if (from == OP_NONE)
		return nr;
	list[nr] = (struct in_edge){from, stage, length, cause};
	return nr + 1;
}

/* Edges to a node, but those of data. The last ones in the list win when times are equal. */
static unsigned fixed_edges(const struct slack_fields *f, const struct op *o, enum stage stage,
	struct in_edge list[FIXED_EDGES_MAX])
{
	uint32_t self = (uint32_t)(o - f->op), last = fields_before(f, o, 1);
	unsigned nr = 0;
	if (stage == STAGE_D) {
		nr = fields_put(list, nr, last, STAGE_D, 0, SLACK_CAUSE_dispatch);
		nr = fields_put(list, nr, fields_before(f, o, f->core.width), STAGE_D, 1,
			SLACK_CAUSE_dispatch);
		nr = fields_put(list, nr, fields_before(f, o, f->core.window), STAGE_C, 0,
			SLACK_CAUSE_window);
		if (o->redirect != OP_NONE) {
			const struct op *r = &f->op[o->redirect];
			nr = fields_put(list, nr, o->redirect, STAGE_E,
				r->latency + (r->mispredicted ? f->core.penalty_cycles : 0),
				r->mispredicted ? SLACK_CAUSE_branch : SLACK_CAUSE_serial);
		}
	} else if (stage == STAGE_E) {
		nr = fields_put(list, nr, self, STAGE_D, 1, SLACK_CAUSE_dispatch);
		if (o->alone)
			nr = fields_put(list, nr, last, STAGE_C, 0, SLACK_CAUSE_serial);
	} else {
		nr = fields_put(list, nr, last, STAGE_C, 0, SLACK_CAUSE_commit);
		nr = fields_put(list, nr, fields_before(f, o, f->core.width), STAGE_C, 1,
			SLACK_CAUSE_commit);
		nr = fields_put(list, nr, self, STAGE_E, o->latency, execution(o));
	}
	return nr;
}

static uint64_t fields_time_of(const struct slack_fields *f, uint32_t op, enum stage stage)
{
	const struct op *o = &f->op[op];
	return stage == STAGE_D ? o->d : stage == STAGE_E ? o->e : o->c;
}

static uint64_t latest(const struct slack_fields *f, const struct op *o, enum stage stage)
{
	struct in_edge list[FIXED_EDGES_MAX];
	uint64_t most = 0;
	for (unsigned i = fixed_edges(f, o, stage, list); i-- > 0;) {
		uint64_t arrives = fields_time_of(f, list[i].from, list[i].stage) + list[i].length;
		most = arrives > most ? arrives : most;
	}
	for (uint32_t i = 0; stage == STAGE_E && i < o->nr_edges; i++) {
		const struct op *p = &f->op[f->edge[o->first_edge + i]];
		most = p->e + p->latency > most ? p->e + p->latency : most;
	}
	return most;
}

static uint64_t forward(struct slack_fields *f, uint64_t late, uint64_t by)
{
	uint64_t end = 0;
	for (size_t i = 0; i < f->nr; i++) {
		struct op *o = &f->op[i];
		o->d = latest(f, o, STAGE_D);
		o->e = latest(f, o, STAGE_E) + (i == late ? by : 0);
		o->c = latest(f, o, STAGE_C);
		end = o->c > end ? o->c : end;
	}
	return end;
}

/* ---- slack ----------------------------------------------------------------------------------- */

static void fields_push(
	struct slack_fields *f, const struct in_edge *e, uint64_t target, uint64_t slack)
{
	uint64_t *to = e->stage == STAGE_D   ? &f->dispatch_slack[e->from]
		       : e->stage == STAGE_E ? &f->op[e->from].slack
					     : &f->commit_slack[e->from];
	uint64_t g = slack + target - fields_time_of(f, e->from, e->stage) - e->length;
	*to = g < *to ? g : *to;
}

static void push_fixed(struct slack_fields *f, const struct op *o, enum stage stage,
	uint64_t target, uint64_t slack)
{
	struct in_edge list[FIXED_EDGES_MAX];
	for (unsigned i = fixed_edges(f, o, stage, list); i-- > 0;)
		fields_push(f, &list[i], target, slack);
}

static void backward(struct slack_fields *f)
{
	for (size_t i = 0; i < f->nr; i++)
		f->op[i].slack = f->commit_slack[i] = f->dispatch_slack[i] = UINT64_MAX;
	for (size_t i = f->nr; i-- > 0;) {
		struct op *o = &f->op[i];
		if (f->commit_slack[i] == UINT64_MAX || f->end - o->c < f->commit_slack[i])
			f->commit_slack[i] = f->end - o->c;
		push_fixed(f, o, STAGE_C, o->c, f->commit_slack[i]);
		push_fixed(f, o, STAGE_E, o->e, o->slack);
		for (uint32_t k = 0; k < o->nr_edges; k++) {
			uint32_t from = f->edge[o->first_edge + k];
			fields_push(f,
				&(struct in_edge){
					from, STAGE_E, f->op[from].latency, SLACK_CAUSE_plain},
				o->e, o->slack);
		}
		push_fixed(f, o, STAGE_D, o->d, f->dispatch_slack[i]);
	}
}

/* ---- critical path --------------------------------------------------------------------------- */

/* The last-arriving edge; false: the node is where all begins. */
static bool last_arriving(const struct slack_fields *f, const struct op *o, enum stage stage,
	uint64_t time, struct in_edge *ret)
{
	struct in_edge list[FIXED_EDGES_MAX];
	unsigned nr = fixed_edges(f, o, stage, list);
	for (uint32_t i = 0; stage == STAGE_E && i < o->nr_edges; i++) {
		uint32_t from = f->edge[o->first_edge + i];
		const struct op *p = &f->op[from];
		*ret = (struct in_edge){from, STAGE_E, p->latency, execution(p)};
		if (p->e + p->latency == time)
			return true;
	}
	for (unsigned i = nr; i-- > 0;) {
		*ret = list[i];
		if (fields_time_of(f, list[i].from, list[i].stage) + list[i].length == time)
			return true;
	}
	return false;
}

/* NULL: no memory. */
static struct slack_static *fields_code_of(struct slack_fields *f, uint64_t code)
{
	struct slack_fields_result *r = &f->result;
	uint64_t index;
	if (base_map_get(&f->codes, 0, code, &index))
		return &r->code[index];
	if (base_grow(&r->code, &f->code_capacity, r->nr_code + 1, sizeof *r->code) != BASE_OK ||
		base_map_put(&f->codes, 0, code, r->nr_code) != BASE_OK)
		return NULL;
	r->code[r->nr_code] = (struct slack_static){.code = code, .least = UINT64_MAX};
	return &r->code[r->nr_code++];
}

static enum base_status no_code(struct base_err *err)
{
	return base_fail(err, BASE_ERR_NOMEM, "no memory for the instructions");
}

static enum base_status trace_back(struct slack_fields *f, struct base_err *err)
{
	uint32_t at = OP_NONE;
	enum stage stage = STAGE_C;
	struct in_edge e;
	for (size_t i = f->nr; i-- > 0 && at == OP_NONE;)
		if (f->op[i].c == f->end)
			at = (uint32_t)i;
	while (at != OP_NONE) {
		uint64_t time = fields_time_of(f, at, stage);
		if (!time || !last_arriving(f, &f->op[at], stage, time, &e))
			break;
		struct slack_static *c = fields_code_of(f, f->op[e.from].code);
		if (!c)
			return no_code(err);
		f->result.cause_cycles[e.cause] += e.length;
		c->critical_cycles += e.length;
		at = e.from;
		stage = e.stage;
	}
	return BASE_OK;
}

static int fields_by_cycles(const void *x, const void *y)
{
	const struct slack_static *a = x, *b = y;
	if (a->critical_cycles != b->critical_cycles)
		return a->critical_cycles < b->critical_cycles ? 1 : -1;
	return a->code < b->code ? -1 : a->code > b->code;
}

static enum base_status fields_sum_up(struct slack_fields *f, struct base_err *err)
{
	struct slack_fields_result *r = &f->result;
	for (size_t i = 0; i < f->nr; i++) {
		const struct op *o = &f->op[i];
		if (!o->counts)
			continue;
		struct slack_static *c = fields_code_of(f, o->code);
		if (!c)
			return no_code(err);
		c->executed++;
		c->kind = o->kind ? o->kind : c->kind;
		c->least = o->slack < c->least ? o->slack : c->least;
		c->greatest = o->slack > c->greatest ? o->slack : c->greatest;
		c->sum += (double)o->slack;
		c->squares += (double)o->slack * (double)o->slack;
		c->critical += !o->slack;
		if (base_histogram_add(&r->slack, o->slack, 1) != BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for the distribution");
	}
	if (r->nr_code)
		qsort(r->code, r->nr_code, sizeof *r->code, fields_by_cycles);
	return BASE_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum base_status fields_analyse(struct slack_fields *f, struct base_err *err)
{
	f->commit_slack = base_alloc((f->nr + 1) * sizeof *f->commit_slack);
	f->dispatch_slack = base_alloc((f->nr + 1) * sizeof *f->dispatch_slack);
	if (!f->commit_slack || !f->dispatch_slack)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the out-of-order graph");
	f->end = f->result.cycles = forward(f, UINT64_MAX, 0);
	backward(f);
	enum base_status s = trace_back(f, err);
	return s == BASE_OK ? fields_sum_up(f, err) : s;
}

enum base_status slack_fields_new(const struct slack_machine_config *config,
	struct memory_source *source, const struct slack_options *options,
	const struct slack_core *core, struct slack_fields **ret, struct base_err *err)
{
	*ret = NULL;
	if (!core->window || !core->width)
		return base_fail(err, BASE_ERR_USAGE, "window and width are at least 1");
	struct slack_fields *f = base_alloc(sizeof *f);
	if (!f)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the out-of-order graph");
	f->core = *core;
	f->options = *options;
	enum base_status s = slack_fields_build(f, config, source, err);
	if (s == BASE_OK)
		s = fields_analyse(f, err);
	if (s != BASE_OK) {
		slack_fields_free(f);
		return s;
	}
	*ret = f;
	return BASE_OK;
}

const struct slack_fields_result *slack_fields_result(const struct slack_fields *f)
{
	return &f->result;
}

uint64_t slack_fields_again(struct slack_fields *f, uint64_t op, uint64_t by, uint64_t *ret_slack)
{
	BASE_ASSERT(op < f->nr);
	*ret_slack = f->op[op].slack;
	return forward(f, op, by);
}

struct slack_fields *slack_fields_free(struct slack_fields *f)
{
	if (!f)
		return NULL;
	slack_machine_free(f->machine);
	for (uint32_t i = 0; f->state && i < f->nr_processors; i++) {
		base_free(f->state[i].op);
		base_free(f->state[i].counter);
		base_free(f->state[i].target);
	}
	base_free(f->state);
	base_free(f->op);
	base_free(f->edge);
	base_free(f->by_order);
	base_free(f->block);
	base_free(f->registers);
	base_free(f->known);
	base_free(f->commit_slack);
	base_free(f->dispatch_slack);
	base_map_fini(&f->blocks);
	base_map_fini(&f->codes);
	base_histogram_fini(&f->result.slack);
	base_free(f->result.code);
	base_free(f);
	return NULL;
}
