/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.c - what each rank of MPI, or each thread where there is no MPI, spends in some states,
 * and by how much that of each must change so that all take their mean. A rank that spends nothing
 * in them has no part in it: nothing says what it would take.
 */
#include "report/private.h"

#include <math.h>

struct balance_unit {
	uint32_t actor; /* the first of them */
	double ns;
};
struct balance {
	struct base_map units; /* (process of a rank, or actor; which) -> unit */
	struct balance_unit *unit;
	size_t nr, capacity;
	uint32_t *unit_of; /* by state: + 1; 0: nobody was in it */
	bool has_ranks;
};

static enum base_status balance_find(
	struct balance *b, struct model *m, uint32_t actor, uint64_t *ret, struct base_err *err)
{
	uint32_t process = model_rank_process(m, actor);
	if (base_map_get(&b->units, process != 0, process ? process : actor, ret))
		return BASE_OK;
	enum base_status s = base_grow(&b->unit, &b->capacity, b->nr + 1, sizeof *b->unit);
	if (s == BASE_OK)
		s = base_map_put(&b->units, process != 0, process ? process : actor, b->nr);
	if (s != BASE_OK)
		return report_no_memory(err);
	b->unit[b->nr] = (struct balance_unit){.actor = actor};
	*ret = b->nr++;
	return BASE_OK;
}

static enum base_status balance_add(struct balance *b, struct model *m,
	const struct graph_state_totals *t, double share, struct base_err *err)
{
	uint64_t unit;
	if (share <= 0 || !t->total_ns || (b->has_ranks && !model_rank_process(m, t->actor)))
		return BASE_OK;
	enum base_status s = balance_find(b, m, t->actor, &unit, err);
	if (s != BASE_OK || !b->unit)
		return s;
	if (b->unit_of[t->state] && b->unit_of[t->state] != unit + 1)
		return base_fail(err, BASE_ERR_USAGE,
			"'%s' is one state of several %s in this trace, so that no part of it can "
			"be changed alone%s",
			model_state(m, t->state)->name, b->has_ranks ? "ranks" : "threads",
			b->has_ranks ? ": record each rank by itself (mpirun ... longpole record)"
				     : "");
	b->unit_of[t->state] = (uint32_t)unit + 1;
	b->unit[unit].ns += (double)t->total_ns * share;
	return BASE_OK;
}

static void balance_result(const struct balance *b, struct report_balance *ret)
{
	double all_ns = 0;
	ret->nr = (uint32_t)b->nr;
	ret->of_ranks = b->has_ranks;
	for (size_t i = 0; i < b->nr; i++) {
		all_ns += b->unit[i].ns;
		if (b->unit[i].ns <= ret->most_ns)
			continue;
		ret->most_ns = b->unit[i].ns;
		ret->most_actor = b->unit[i].actor;
	}
	ret->mean_ns = b->nr ? all_ns / (double)b->nr : 0;
}

enum base_status report_balance(struct model *m, const double *share, uint32_t nr_states,
	double *ret_factor, struct report_balance *ret, struct base_err *err)
{
	const struct graph_state_totals *total;
	struct balance b = {0};
	size_t nr_worlds, nr;
	*ret = (struct report_balance){0};
	model_mpi_worlds(m, &nr_worlds);
	b.has_ranks = nr_worlds > 0;
	b.unit_of = base_alloc(((size_t)nr_states + 1) * sizeof *b.unit_of);
	enum base_status s =
		b.unit_of ? graph_totals(model_graph(m), &total, &nr, err) : report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		if (total[i].state < nr_states)
			s = balance_add(&b, m, &total[i], share[total[i].state], err);
	if (s == BASE_OK)
		balance_result(&b, ret);
	for (uint32_t i = 0; s == BASE_OK && i < nr_states; i++)
		ret_factor[i] =
			b.unit && b.unit_of[i] ? ret->mean_ns / b.unit[b.unit_of[i] - 1].ns : 1;
	base_map_fini(&b.units);
	base_free(b.unit);
	base_free(b.unit_of);
	return s;
}

/* ---- the report's line ----------------------------------------------------------------------- */

enum { IMBALANCE_PERCENT = 5 }; /* of the run, from which it is said */

/* What somebody may move to another rank. */
static bool balance_is_work(const struct report_part *p)
{
	static const enum model_state_kind works[] = {MODEL_STATE_run, MODEL_STATE_hold,
		MODEL_STATE_sleep, MODEL_STATE_io, MODEL_STATE_annotated};
	for (size_t i = 0; i < BASE_COUNT(works); i++)
		if (p->kind == works[i])
			return p->is_lock || p->cause != MODEL_CAUSE_mpi_call;
	return false;
}

static enum base_status balance_of_part(struct report_balance *ret, struct model *m,
	const struct report_part *p, double *share, double *factor, uint32_t nr,
	struct base_err *err)
{
	for (uint32_t s = 0; s < nr; s++)
		share[s] = 0;
	for (size_t i = 0; i < p->nr_states; i++)
		if (p->state[i].state < nr && !p->state[i].follows)
			share[p->state[i].state] = p->state[i].share;
	enum base_status s = report_balance(m, share, nr, factor, ret, err);
	if (s == BASE_ERR_USAGE) /* (states that several ranks share) */
		*ret = (struct report_balance){0};
	return s == BASE_ERR_USAGE ? BASE_OK : s;
}

enum base_status report_fill_imbalance(struct report *r, struct model *m, struct base_err *err)
{
	uint32_t nr = graph_nr_states(model_graph(m));
	double *share = report_array(r->arena, nr, sizeof *share);
	double *factor = report_array(r->arena, nr, sizeof *factor);
	size_t nr_worlds;
	double most_ns = r->elapsed_ns * IMBALANCE_PERCENT / 100;
	model_mpi_worlds(m, &nr_worlds);
	if (!share || !factor)
		return report_no_memory(err);
	for (size_t i = 0; nr_worlds && i < r->parts.nr && i < REPORT_PARTS_DEFAULT; i++) {
		struct report_balance b;
		if (!balance_is_work(&r->parts.part[i]))
			continue;
		enum base_status s =
			balance_of_part(&b, m, &r->parts.part[i], share, factor, nr, err);
		if (s != BASE_OK)
			return s;
		if (b.nr < 2 || b.most_ns - b.mean_ns < most_ns)
			continue;
		most_ns = b.most_ns - b.mean_ns;
		r->imbalance = b;
		r->imbalance_part = i + 1;
		r->imbalance_most = report_clean(r->arena, model_actor(m, b.most_actor)->name);
		if (!r->imbalance_most)
			return report_no_memory(err);
	}
	return BASE_OK;
}

void report_imbalance_words(struct base_str *out, const struct report *r)
{
	const struct report_balance *b = &r->imbalance;
	base_str_addf(out, "Load imbalance in #%zu: ", r->imbalance_part);
	base_str_addf(out, "%u {rank|ranks} spend ", b->nr);
	report_ns(out, b->mean_ns);
	base_str_addf(out, " each on average, %s ", r->imbalance_most);
	report_ns(out, b->most_ns);
	base_str_addf(out, ". What even shares would buy: longpole whatif %s balance '#%zu'",
		r->trace.path, r->imbalance_part);
}
