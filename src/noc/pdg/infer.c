/* SPDX-License-Identifier: Apache-2.0 */
/* infer.c - all transmits, on all processors; the graph that comes of it. */
#include "noc/pdg/infer_private.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void noc_infer_literal(struct noc_infer_options *o)
{
	*o = (struct noc_infer_options){.window_previous = 1};
}

void noc_infer_robust(struct noc_infer_options *o)
{
	*o = (struct noc_infer_options){.window_previous = 1,
		.ignore_blocked = true,
		.adaptive = true,
		.grade = true,
		.reduce = true,
		.learn = true,
		.tolerance_cycles = NOC_TOLERANCE_AUTO,
		.window_previous_max = 64};
}

/* ---- tasks ----------------------------------------------------------------------------------- */

enum { TASK_TRANSMITS = 4096 };

/* Some transmits of one node. */
struct task {
	uint32_t node, from, to; /* transmits of the node */
	uint32_t *dependency;    /* of all of them, one after the other */
	uint8_t *certainty;
	size_t nr, dependencies_capacity, certainties_capacity;
};

struct job {
	const struct noc_pdg *packets;
	const struct noc_runs *runs;
	const struct noc_infer_options *options;
	struct noc_index index;
	uint32_t tolerance_cycles;
	struct noc_learned *learned; /* by node */
	struct noc_semantics *semantics;
	bool use_semantics;    /* it is whole */
	struct noc_pdg *graph; /* delay_cycles, inputs, by packet */
	uint32_t *nr;          /* dependencies, by packet */
	struct task *task;
	size_t nr_tasks, tasks_capacity;
	atomic_size_t next;
	atomic_int failed; /* a status */
};

static void view_of(struct noc_view *v, const struct job *j, uint32_t node)
{
	const struct noc_index *x = &j->index;
	v->packets = j->packets;
	v->runs = j->runs;
	v->index = x;
	v->options = j->options;
	v->tolerance_cycles = j->tolerance_cycles;
	v->transmit = x->transmits + x->first_transmit[node];
	v->nr_transmits = x->first_transmit[node + 1] - x->first_transmit[node];
	v->reception = x->receptions + x->first_reception[node];
	v->nr_receptions = x->first_reception[node + 1] - x->first_reception[node];
	v->near_reception = 0;
	v->ordered = j->packets->ordered[node] != 0;
	BASE_ASSUME(j->learned);
	v->learned = j->learned[node];
	v->semantics = j->use_semantics ? j->semantics : NULL;
}

static enum base_status add_kept(
	struct task *task, const struct noc_view *v, uint32_t nr, struct base_err *err)
{
	enum base_status s = base_grow(&task->dependency, &task->dependencies_capacity,
		task->nr + nr, sizeof *task->dependency);
	if (s == BASE_OK)
		s = base_grow(&task->certainty, &task->certainties_capacity, task->nr + nr,
			sizeof *task->certainty);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for dependencies");
	for (uint32_t c = 0; c < v->nr_candidates; c++)
		if (v->keep[c]) {
			task->dependency[task->nr] = v->candidate[c];
			task->certainty[task->nr++] = v->certainty[c];
		}
	return BASE_OK;
}

static enum base_status do_task(
	struct job *j, struct task *task, struct noc_view *v, struct base_err *err)
{
	view_of(v, j, task->node);
	for (uint32_t t = task->from; t < task->to; t++) {
		struct noc_gate gate;
		uint32_t packet = v->transmit[t];
		noc_view_prefetch(v, t + NOC_PREFETCH);
		enum base_status s = noc_view_gate(v, t, &gate, err);
		if (s == BASE_OK && gate.nr)
			s = add_kept(task, v, gate.nr, err);
		if (s != BASE_OK)
			return s;
		j->graph->delay_cycles[packet] = gate.delay_cycles;
		j->graph->inputs[packet] = gate.inputs;
		j->nr[packet] = gate.nr;
		v->counts.transmits++;
		v->counts.previous_only += !gate.nr;
		v->counts.empty += gate.empty;
		v->counts.unexplained += !gate.explained;
	}
	return BASE_OK;
}

struct worker {
	struct job *job;
	struct noc_view view;
	struct base_err err;
	pthread_t thread;
	bool started;
};

static void *infer_work(void *arg)
{
	struct worker *w = arg;
	struct job *j = w->job;
	size_t i;
	while (!atomic_load(&j->failed) && (i = atomic_fetch_add(&j->next, 1)) < j->nr_tasks) {
		enum base_status s = do_task(j, &j->task[i], &w->view, &w->err);
		if (s != BASE_OK)
			atomic_store(&j->failed, (int)s);
	}
	noc_view_fini(&w->view);
	return NULL;
}

static uint32_t count_threads(const struct noc_infer_options *o, size_t nr_tasks)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t nr = o->nr_threads ? o->nr_threads : online > 0 ? (uint32_t)online : 1;
	nr = nr > NOC_THREADS_MAX ? NOC_THREADS_MAX : nr;
	return nr > nr_tasks ? (uint32_t)(nr_tasks ? nr_tasks : 1) : nr;
}

static void infer_add_counts(struct noc_infer_result *to, const struct noc_infer_result *from)
{
	to->transmits += from->transmits;
	to->candidates += from->candidates;
	to->previous_only += from->previous_only;
	to->empty += from->empty;
	to->unexplained += from->unexplained;
	to->blocked += from->blocked;
}

/* Runs the tasks on so many threads; one that cannot be started is done without. */
static enum base_status run_tasks(
	struct job *j, struct noc_infer_result *counts, struct base_err *err)
{
	uint32_t nr = count_threads(j->options, j->nr_tasks);
	struct worker *w = base_alloc(nr * sizeof *w);
	if (!w)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {thread|threads}", nr);
	for (uint32_t i = 0; i < nr; i++)
		w[i].job = j;
	for (uint32_t i = 1; i < nr; i++)
		w[i].started = !pthread_create(&w[i].thread, NULL, infer_work, &w[i]);
	infer_work(&w[0]);
	for (uint32_t i = 1; i < nr; i++)
		if (w[i].started)
			pthread_join(w[i].thread, NULL);
	enum base_status s = (enum base_status)atomic_load(&j->failed);
	for (uint32_t i = 0; i < nr; i++) {
		infer_add_counts(counts, &w[i].view.counts);
		if (s != BASE_OK && w[i].err.status == s && err)
			*err = w[i].err;
	}
	base_free(w);
	return s;
}

static enum base_status make_tasks(struct job *j, struct base_err *err)
{
	for (uint32_t n = 0; n < j->packets->nr_nodes; n++) {
		uint32_t nr = j->index.first_transmit[n + 1] - j->index.first_transmit[n];
		for (uint32_t t = 0; t < nr; t += TASK_TRANSMITS) {
			enum base_status s = base_grow(
				&j->task, &j->tasks_capacity, j->nr_tasks + 1, sizeof *j->task);
			if (s != BASE_OK)
				return base_fail(err, s, "no memory for tasks");
			j->task[j->nr_tasks++] = (struct task){.node = n,
				.from = t,
				.to = nr - t > TASK_TRANSMITS ? t + TASK_TRANSMITS : nr};
		}
	}
	return BASE_OK;
}

/* ---- tolerance ------------------------------------------------------------------------------- */

enum { SPREADS_MAX = 1 << 14 };

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* 99 % quantile of the range of n normal variates (studentized range of infinitely many degrees of
 * freedom), by its median; from 2 on. Of bounded noise it is less, so this leaves none out. */
static const double range_ratio[] = {3.82, 2.60, 2.23, 2.04, 1.93, 1.85, 1.79};

/* Half a per cent of what one thing explains may be refused. */
enum { REFUSED_ONE_IN = 200 };

/* spread[]: ranges of the slacks of nr transmits in nr_runs runs each. Where one thing alone
 * explains a transmit, that is the range of the noise of so many runs; where none does, it is of
 * the size of what was slowed. The quartile is the middle of the better half, and so an estimate of
 * the median range of the noise; what is beyond range_ratio of it is no noise. Of the others almost
 * the largest is the bound of a test: a set of dependencies whose delays differ by more in as many
 * runs does not explain them. */
static uint32_t noise_range(uint32_t *spread, uint32_t nr, uint32_t nr_runs)
{
	if (!nr || nr_runs < 2)
		return 0;
	qsort(spread, nr, sizeof *spread, compare_u32);
	size_t n = nr_runs - 2;
	uint32_t quartile = spread[nr / 4];
	double bound = (double)quartile *
		       range_ratio[n < BASE_COUNT(range_ratio) ? n : BASE_COUNT(range_ratio) - 1];
	uint32_t within = 0;
	while (within < nr && spread[within] <= bound)
		within++;
	return spread[within - 1 - within / REFUSED_ONE_IN];
}

/* From a sample of all transmits that have all runs. */
static enum base_status estimate_tolerance(struct job *j, uint32_t *ret, struct base_err *err)
{
	struct noc_view v = {0};
	struct noc_infer_options options = *j->options;
	uint32_t *spread = base_alloc(SPREADS_MAX * sizeof *spread), nr = 0;
	uint64_t step = j->packets->nr_packets / SPREADS_MAX + 1, seen = 0;
	if (!spread)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to estimate the tolerance");
	for (uint32_t n = 0; n < j->packets->nr_nodes; n++) {
		view_of(&v, j, n);
		v.options = &options;
		for (uint32_t t = 0; t < v.nr_transmits && nr < SPREADS_MAX; t++) {
			if (seen++ % step)
				continue;
			uint32_t s = noc_view_spread(&v, t, err);
			if (s != UINT32_MAX)
				spread[nr++] = s;
		}
	}
	noc_view_fini(&v);
	*ret = noise_range(spread, nr, j->runs->nr_runs);
	base_free(spread);
	return BASE_OK;
}

/* ---- what a node's transmits have in common -------------------------------------------------- */

enum { LEARN_TRANSMITS = 512, LEARN_TYPES_TRANSMITS = 4096 /* of a node */, LEARN_LEAST = 16 };

static int infer_compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void vote(struct noc_pair *p, uint64_t delay_cycles)
{
	p->nr++;
	if (!p->votes)
		p->delay_cycles = delay_cycles;
	p->votes += p->delay_cycles == delay_cycles ? 1u : UINT32_MAX;
}

static void note_semantics(const struct job *j, const struct noc_view *v, uint32_t transmit,
	const struct noc_gate *gate)
{
	const struct noc_pdg *g = j->packets;
	j->semantics->seen[g->type[transmit]]++;
	for (uint32_t c = 0; c < v->nr_candidates; c++)
		if (v->keep[c] && v->certainty[c] == NOC_CONFIRMED)
			vote(noc_pair(j->semantics, g, transmit, v->candidate[c]),
				gate->delay_cycles);
}

static enum base_status learn_node(
	const struct job *j, struct noc_view *v, struct noc_learned *ret, struct base_err *err)
{
	uint64_t delay[LEARN_TYPES_TRANSMITS];
	uint32_t nr = 0, nr_seen = 0, answers = 0,
		 most = j->semantics ? LEARN_TYPES_TRANSMITS : LEARN_TRANSMITS,
		 step = v->nr_transmits / most + 1;
	for (uint32_t t = 0; t < v->nr_transmits && nr < most; t += step) {
		struct noc_gate gate;
		enum base_status s = noc_view_gate(v, t, &gate, err);
		if (s != BASE_OK)
			return s;
		nr_seen += v->nr_usable >= NOC_LEARN_RUNS;
		if (j->semantics && v->nr_usable >= NOC_LEARN_RUNS && gate.explained)
			note_semantics(j, v, v->transmit[t], &gate);
		if (gate.nr != 1 || v->nr_usable < NOC_LEARN_RUNS)
			continue;
		for (uint32_t c = 0; c < v->nr_candidates; c++)
			answers += v->keep[c] && j->packets->source[v->candidate[c]] ==
							 j->packets->destination[v->transmit[t]];
		delay[nr++] = gate.delay_cycles;
	}
	if (nr < LEARN_LEAST)
		return BASE_OK;
	qsort(delay, nr, sizeof *delay, infer_compare_u64);
	ret->delay_cycles = delay[nr / 2];
	ret->answers = 5 * answers >= 4 * nr_seen;
	return BASE_OK;
}

static enum base_status infer_learn(struct job *j, struct base_err *err)
{
	struct noc_view v = {0};
	enum base_status s = BASE_OK;
	for (uint32_t n = 0; n < j->packets->nr_nodes && s == BASE_OK; n++) {
		struct noc_learned learned = {0};
		view_of(&v, j, n);
		s = learn_node(j, &v, &learned, err);
		j->learned[n] = learned;
	}
	j->use_semantics = j->semantics != NULL;
	noc_view_fini(&v);
	return s;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static void base_times(const struct job *j)
{
	const size_t stride = j->runs->stride;
	for (uint32_t i = 0; i < j->graph->nr_packets; i++) {
		j->graph->transmit_cycle[i] = j->runs->transmit_cycle[i * stride];
		j->graph->receive_cycle[i] = j->runs->receive_cycle[i * stride];
	}
}

/* Dependencies from the tasks' arrays to their places. */
static enum base_status infer_assemble(
	struct job *j, struct noc_infer_result *counts, struct base_err *err)
{
	struct noc_pdg *g = j->graph;
	uint64_t nr = 0;
	if (!g->nr_packets)
		return BASE_OK;
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		g->first[i] = nr;
		nr += j->nr[i];
	}
	g->first[g->nr_packets] = nr;
	counts->dependencies = nr;
	g->dependency = base_alloc((nr + 1) * sizeof *g->dependency);
	g->certainty = base_alloc(nr + 1);
	if (!g->dependency || !g->certainty)
		return base_fail(err, BASE_ERR_NOMEM,
			"no memory for %llu {dependency|dependencies}", (unsigned long long)nr);
	g->dependencies_capacity = nr + 1;
	for (size_t k = 0; k < j->nr_tasks; k++) {
		const struct task *task = &j->task[k];
		const uint32_t *transmit = j->index.transmits + j->index.first_transmit[task->node];
		size_t from = 0;
		for (uint32_t t = task->from; t < task->to; t++) {
			uint32_t packet = transmit[t];
			for (uint32_t d = 0; d < j->nr[packet]; d++, from++) {
				g->dependency[g->first[packet] + d] = task->dependency[from];
				g->certainty[g->first[packet] + d] = task->certainty[from];
				counts->certainty[task->certainty[from]]++;
			}
		}
	}
	return BASE_OK;
}

/* The graph once more, every packet as long under way as in its base run. */
static enum base_status check_base(const struct noc_pdg *g, const struct noc_index *x,
	struct noc_base_check *ret, struct base_err *err)
{
	uint64_t *transmit = base_alloc(((size_t)g->nr_packets + 1) * sizeof *transmit);
	if (!transmit)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to check the graph");
	*ret = (struct noc_base_check){.done = true};
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		uint32_t before = x->previous[i];
		uint64_t previous = before == NOC_PDG_NONE ? 0 : transmit[before];
		uint64_t t = g->inputs[i] & NOC_PDG_PREVIOUS ? previous : 0;
		for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++) {
			uint32_t on = g->dependency[d];
			uint64_t arrival =
				transmit[on] + g->receive_cycle[on] - g->transmit_cycle[on];
			t = arrival > t ? arrival : t;
		}
		t += g->delay_cycles[i];
		if (before != NOC_PDG_NONE && g->ordered[g->source[i]] && t <= previous)
			t = previous + 1;
		transmit[i] = noc_pdg_is_copy(g, i) ? transmit[i - 1] : t;
		uint64_t end = transmit[i] + g->receive_cycle[i] - g->transmit_cycle[i];
		ret->moved += !noc_pdg_is_copy(g, i) && t != g->transmit_cycle[i];
		ret->replayed_cycle = end > ret->replayed_cycle ? end : ret->replayed_cycle;
		ret->end_cycle =
			g->receive_cycle[i] > ret->end_cycle ? g->receive_cycle[i] : ret->end_cycle;
	}
	base_free(transmit);
	return BASE_OK;
}

double noc_base_error(const struct noc_base_check *b)
{
	if (!b->done || !b->end_cycle)
		return (double)NAN;
	return (double)b->replayed_cycle / (double)b->end_cycle - 1;
}

enum base_status noc_infer(const struct noc_pdg *packets, const struct noc_runs *runs,
	const struct noc_infer_options *o, struct noc_pdg **ret,
	struct noc_infer_result *ret_result, struct base_err *err)
{
	struct job j = {.packets = packets, .runs = runs, .options = o};
	struct noc_infer_result counts = {0};
	*ret = NULL;
	BASE_ASSERT(runs->nr_packets == packets->nr_packets);
	if (!o->window_previous || o->window_previous > NOC_WINDOW_PREVIOUS_MAX ||
		o->window_previous_max > NOC_WINDOW_PREVIOUS_MAX)
		return base_fail(err, BASE_ERR_USAGE, "a window is 1 to %d previous transmits",
			NOC_WINDOW_PREVIOUS_MAX);
	enum base_status s =
		noc_index_init(&j.index, packets, runs->receive_cycle, runs->stride, err);
	if (s != BASE_OK)
		return s;
	j.graph = noc_pdg_copy(packets);
	j.nr = base_alloc(((size_t)packets->nr_packets + 1) * sizeof *j.nr);
	j.learned = base_alloc(packets->nr_nodes * sizeof *j.learned);
	if (o->learn && packets->has_addresses)
		j.semantics = base_alloc(sizeof *j.semantics);
	if (!j.graph || !j.nr || !j.learned || (o->learn && packets->has_addresses && !j.semantics))
		s = base_fail(err, BASE_ERR_NOMEM, "no memory for the graph");
	if (s == BASE_OK)
		s = make_tasks(&j, err);
	j.tolerance_cycles = o->tolerance_cycles;
	if (s == BASE_OK && o->tolerance_cycles == NOC_TOLERANCE_AUTO)
		s = estimate_tolerance(&j, &j.tolerance_cycles, err);
	counts.tolerance_cycles = j.tolerance_cycles;
	if (s == BASE_OK && o->learn && o->adaptive)
		s = infer_learn(&j, err);
	if (s == BASE_OK)
		s = run_tasks(&j, &counts, err);
	if (s == BASE_OK)
		s = infer_assemble(&j, &counts, err);
	if (s == BASE_OK) {
		base_times(&j);
		s = check_base(j.graph, &j.index, &counts.base, err);
	}
	if (s == BASE_OK) {
		j.graph->has_graph = true;
		*ret = j.graph;
		*ret_result = counts;
	} else {
		noc_pdg_free(j.graph);
	}
	for (size_t k = 0; k < j.nr_tasks; k++) {
		base_free(j.task[k].dependency);
		base_free(j.task[k].certainty);
	}
	base_free(j.task);
	base_free(j.nr);
	base_free(j.learned);
	base_free(j.semantics);
	noc_index_fini(&j.index);
	return s;
}

/* ---- compare --------------------------------------------------------------------------------- */

static bool infer_has(const struct noc_pdg *g, uint32_t i, uint32_t on)
{
	for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++)
		if (g->dependency[d] == on)
			return true;
	return false;
}

enum { IMPLIED_DISTANCE_MAX = 16 };

/* An earlier transmit of the same ordered node waits for it, and so long that this one cannot be
 * earlier than the dependency would allow. */
static bool implied(const struct noc_pdg *reference, const struct noc_pdg *inferred,
	const struct noc_index *x, uint32_t i, uint32_t on)
{
	uint64_t distance = 1;
	if (!reference->ordered[reference->source[i]])
		return false;
	for (uint32_t p = x->previous[i]; p != NOC_PDG_NONE && distance <= IMPLIED_DISTANCE_MAX;
		p = x->previous[p], distance++)
		if (infer_has(inferred, p, on) &&
			inferred->delay_cycles[p] + distance >= reference->delay_cycles[i])
			return true;
	return false;
}

void noc_infer_compare(const struct noc_pdg *reference, const struct noc_pdg *inferred,
	const struct noc_index *x, struct noc_match_counts *ret)
{
	struct noc_match_counts c = {0};
	BASE_ASSERT(reference->nr_packets == inferred->nr_packets);
	for (uint32_t i = 0; i < reference->nr_packets; i++) {
		uint64_t nr = reference->first[i + 1] - reference->first[i], present = 0,
			 by_order = 0;
		if (noc_pdg_is_copy(reference, i))
			continue;
		c.packets++;
		for (uint64_t d = reference->first[i]; d < reference->first[i + 1]; d++) {
			uint32_t on = reference->dependency[d];
			if (infer_has(inferred, i, on))
				present++;
			else if (implied(reference, inferred, x, i, on))
				by_order++;
		}
		uint64_t quasi = inferred->first[i + 1] - inferred->first[i] - present;
		c.reference += nr;
		c.found += present + by_order;
		c.implied += by_order;
		c.quasi += quasi;
		c.delays_right += reference->delay_cycles[i] == inferred->delay_cycles[i];
		c.exact_packets += present == nr && !quasi;
	}
	c.missed = c.reference - c.found;
	*ret = c;
}
