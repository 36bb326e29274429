/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.c - which thread had the processor while another was ready (seed 000, section 5.1.4:
 * non-active time), which one ran just before a thread woke up without a known reason, and for how
 * long a thread was represented by an annotated machine. Only looks; the graph hears nothing of it.
 */
#include "model/model_private.h"

#include <stdlib.h>

enum {
	PAIRS_MAX = 1 << 16, /* beyond them: other programs */
	LOOK_AT = 1024,      /* processors where somebody may run that wakes others */
	WOKE_NS = 50 * 1000, /* a thread that left a processor that long ago may have woken
				another */
};

static void processor_no_memory(struct model *m, enum base_status s)
{
	if (m->status == BASE_OK)
		m->status = base_fail(m->err, s, "out of memory for the processors' table");
}

static struct cpu *processor_cpu_of(struct model *m, uint64_t number)
{
	if (number >= MODEL_CPUS_MAX)
		return NULL;
	if (number >= m->processors.nr_cpus) {
		enum base_status s = base_grow(&m->processors.cpu, &m->processors.cpu_capacity,
			number + 1, sizeof *m->processors.cpu);
		if (s != BASE_OK) {
			processor_no_memory(m, s);
			return NULL;
		}
		for (; m->processors.nr_cpus <= number; m->processors.nr_cpus++)
			m->processors.cpu[m->processors.nr_cpus] = (struct cpu){0};
	}
	return &m->processors.cpu[number];
}

/* ---- (actor, actor) -> time ------------------------------------------------------------------ */

static struct model_processor_wait *pair_of(struct model *m, uint32_t waiting, uint32_t had)
{
	uint64_t ix;
	bool known = base_map_get(&m->processors.pairs, waiting, had, &ix);
	if (!known && m->processors.nr_pairs >= PAIRS_MAX) {
		had = MODEL_OTHERS;
		known = base_map_get(&m->processors.pairs, waiting, had, &ix);
	}
	if (known)
		return &m->processors.pair[ix];
	enum base_status s = base_grow(&m->processors.pair, &m->processors.pair_capacity,
		m->processors.nr_pairs + 1, sizeof *m->processors.pair);
	if (s == BASE_OK)
		s = base_map_put(&m->processors.pairs, waiting, had, m->processors.nr_pairs);
	if (s != BASE_OK) {
		processor_no_memory(m, s);
		return NULL;
	}
	m->processors.pair[m->processors.nr_pairs] =
		(struct model_processor_wait){.waiting = waiting, .had = had};
	return &m->processors.pair[m->processors.nr_pairs++];
}

static void processor_charge(struct model *m, uint32_t waiting, uint32_t had, uint64_t wait_ns)
{
	struct model_processor_wait *p = wait_ns ? pair_of(m, waiting, had) : NULL;
	if (!p)
		return;
	p->wait_ns += wait_ns;
	p->nr++;
}

/* Splits a wait that ends now among those who ran on this processor meanwhile. */
static void charge_wait(struct model *m, const struct cpu *c, const struct thread *t,
	uint64_t from_ns, uint64_t to_ns)
{
	uint32_t actor = model_acting(t);
	uint64_t rest = to_ns > from_ns ? to_ns - from_ns : 0;
	uint32_t nr = c->nr < MODEL_CPU_HISTORY ? c->nr : MODEL_CPU_HISTORY;
	for (uint32_t i = 1; i <= nr; i++) {
		const struct cpu_use *u = &c->use[(c->nr - i) % MODEL_CPU_HISTORY];
		uint64_t begin = u->begin_ns > from_ns ? u->begin_ns : from_ns;
		uint64_t end = u->end_ns < to_ns ? u->end_ns : to_ns;
		if (u->end_ns <= from_ns)
			break;
		if (u->stream == t->stream || begin >= end)
			continue;
		processor_charge(m, actor, u->actor, end - begin);
		rest -= end - begin < rest ? end - begin : rest;
	}
	if (!m->is_system && !m->seen.tasks) /* else nobody had it */
		processor_charge(m, actor, MODEL_OTHERS, rest);
}

struct model_had model_had_processor(const struct model *m, const struct thread *t, uint64_t number,
	uint64_t from_ns, uint64_t to_ns)
{
	struct {
		uint32_t role;
		uint64_t ns;
	} had[MODEL_HAD_MAX];
	struct model_had ret = {.role = NONE, .known_ns = to_ns - from_ns};
	uint32_t nr_had = 0, best = 0;
	if (number >= m->processors.nr_cpus || !m->processors.cpu[number].use)
		return ret;
	const struct cpu *c = &m->processors.cpu[number];
	uint32_t nr = c->nr < MODEL_CPU_HISTORY ? c->nr : MODEL_CPU_HISTORY;
	const struct cpu_use now = {
		.stream = c->stream, .begin_ns = c->since_ns, .end_ns = c->stream ? to_ns : 0};
	for (uint32_t i = 0; i <= nr; i++) {
		const struct cpu_use *u = i ? &c->use[(c->nr - i) % MODEL_CPU_HISTORY] : &now;
		uint64_t begin = u->begin_ns > from_ns ? u->begin_ns : from_ns;
		uint64_t end = u->end_ns < to_ns ? u->end_ns : to_ns;
		uint32_t k = 0, role = m->thread[u->stream].role;
		if (i && u->end_ns <= from_ns)
			break;
		if (i == nr && c->nr > nr && u->begin_ns > from_ns && u->begin_ns < to_ns)
			ret.known_ns = to_ns - u->begin_ns; /* the ones before are forgotten */
		if (u->stream == t->stream || begin >= end)
			continue;
		ret.had_ns += end - begin;
		while (k < nr_had && had[k].role != role)
			k++;
		if (k == MODEL_HAD_MAX)
			continue;
		if (k == nr_had) {
			had[nr_had].role = role;
			had[nr_had++].ns = 0;
		}
		had[k].ns += end - begin;
	}
	for (uint32_t k = 1; k < nr_had; k++)
		if (had[k].ns > had[best].ns)
			best = k;
	if (nr_had)
		ret.role = had[best].role;
	return ret;
}

/* ---- on and off ------------------------------------------------------------------------------ */

static void processor_leave(struct model *m, struct cpu *c, uint64_t time_ns)
{
	if (!c->use) {
		c->use = base_alloc(MODEL_CPU_HISTORY * sizeof *c->use);
		if (!c->use) {
			processor_no_memory(m, BASE_ERR_NOMEM);
			return;
		}
	}
	if (c->stream && time_ns > c->since_ns)
		c->use[c->nr++ % MODEL_CPU_HISTORY] = (struct cpu_use){.stream = c->stream,
			.actor = model_acting(&m->thread[c->stream]),
			.begin_ns = c->since_ns,
			.end_ns = time_ns};
	if (c->stream) {
		c->last = c->stream;
		c->last_ns = time_ns;
	}
	c->stream = 0;
}

void model_processor_out(
	struct model *m, struct thread *t, uint64_t number, uint64_t time_ns, bool preempted)
{
	struct cpu *c = processor_cpu_of(m, number);
	if (c && c->stream == t->stream)
		processor_leave(m, c, time_ns);
	t->cpu.ready_ns = preempted ? time_ns : 0;
}

/* A recorded thread that runs elsewhere, or left this processor just now: which other could have
 * woken it? */
static uint32_t ran_before(
	const struct model *m, const struct cpu *c, const struct thread *t, uint64_t time_ns)
{
	uint32_t found = 0;
	if (c->last && c->last != t->stream && time_ns - c->last_ns <= WOKE_NS)
		return c->last;
	for (size_t i = 0; i < m->processors.nr_cpus && i < LOOK_AT; i++) {
		uint32_t stream = m->processors.cpu[i].stream;
		if (!stream || stream == t->stream || m->thread[stream].ended)
			continue;
		if (found && found != stream)
			return 0; /* several: nobody can tell */
		found = stream;
	}
	return found;
}

static void note_waker(struct model *m, const struct thread *t, uint32_t stream)
{
	uint64_t n = 0, who = stream ? model_acting(&m->thread[stream]) : MODEL_OTHERS;
	uint64_t hi = (uint64_t)t->graph_state << 32 | model_acting(t);
	if (!base_map_get(&m->processors.wakers, hi, who, &n) &&
		m->processors.wakers.nr_used >= PAIRS_MAX)
		return;
	enum base_status s = base_map_put(&m->processors.wakers, hi, who, n + 1);
	if (s != BASE_OK)
		processor_no_memory(m, s);
}

bool model_processor_of(const struct model *m, const struct thread *t, uint64_t *number)
{
	for (*number = 0; *number < m->processors.nr_cpus; ++*number)
		if (m->processors.cpu[*number].stream == t->stream)
			return true;
	return false;
}

void model_processor_in(struct model *m, struct thread *t, uint64_t number, uint64_t time_ns)
{
	struct cpu *c = processor_cpu_of(m, number);
	if (!c)
		return;
	if (c->stream) { /* it left unseen: at its end, or just now */
		const struct thread *before = &m->thread[c->stream];
		processor_leave(m, c, before->ended ? before->life.end_ns : time_ns);
	}
	if (t->mode == MODE_RUNNABLE && t->cpu.ready_ns)
		charge_wait(m, c, t, t->cpu.ready_ns, time_ns);
	if (t->mode == MODE_BLOCKED && !m->is_system)
		note_waker(m, t, ran_before(m, c, t, time_ns));
	c->stream = t->stream;
	c->since_ns = time_ns;
}

void model_processor_taken_over(
	struct model *m, const struct thread *before, const struct thread *now, uint64_t time_ns)
{
	struct cpu *c = processor_cpu_of(m, before->k.processor);
	if (!c || c->stream != before->stream)
		return;
	processor_leave(m, c, time_ns);
	c->stream = now->stream;
	c->since_ns = time_ns;
}

/* ---- who may run how much -------------------------------------------------------------------- */

uint32_t model_cgroup(const struct model *m, uint32_t process)
{
	enum { GENERATIONS_MAX = 64 };
	const struct trace_defs *d = m->defs;
	uint32_t of = process;
	for (unsigned i = 0; of && i < GENERATIONS_MAX; i++) {
		if (trace_def_group(d, of)->cgroup)
			return trace_def_group(d, of)->cgroup;
		of = trace_def_process(d, of)->parent;
	}
	for (uint32_t i = 1; i < d->nr_contexts; i++) {
		of = trace_def_stream(d, i)->process;
		if (d->contexts[i].type == TRACE_CONTEXT_recorder && trace_def_group(d, of)->cgroup)
			return trace_def_group(d, of)->cgroup;
	}
	return 0;
}

/* ---- represented by a machine ---------------------------------------------------------------- */

void model_away(struct model *m, uint32_t actor, uint32_t state, uint64_t duration_ns)
{
	uint64_t sum = 0;
	if (!duration_ns)
		return;
	base_map_get(&m->processors.away, actor, state, &sum);
	enum base_status s = base_map_put(&m->processors.away, actor, state, sum + duration_ns);
	if (s != BASE_OK)
		processor_no_memory(m, s);
}

/* The thread ends inside them. */
void model_forget_machines(struct model *m, struct thread *t, uint64_t time_ns)
{
	while (t->nr_machines) {
		const struct machine *k = &t->machine[--t->nr_machines];
		model_away(m, model_acting(t), k->below_state, time_ns - k->begin_ns);
	}
}

uint64_t model_away_ns(const struct model *m, uint32_t actor, uint32_t state)
{
	uint64_t sum = 0;
	base_map_get(&m->processors.away, actor, state, &sum);
	return sum;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int processor_longest_first(const void *pa, const void *pb)
{
	const struct model_processor_wait *a = pa, *b = pb;
	if (a->waiting != b->waiting)
		return a->waiting < b->waiting ? -1 : 1;
	if (a->wait_ns != b->wait_ns)
		return a->wait_ns > b->wait_ns ? -1 : 1;
	return a->had < b->had ? -1 : a->had > b->had;
}

void model_sort_processor_waits(struct model *m)
{
	if (m->processors.nr_pairs)
		qsort(m->processors.pair, m->processors.nr_pairs, sizeof *m->processors.pair,
			processor_longest_first);
}

const struct model_processor_wait *model_processor_waits(const struct model *m, size_t *ret_nr)
{
	*ret_nr = m->processors.nr_pairs;
	return m->processors.pair;
}

struct best_waker {
	uint64_t key, most, all;
	uint32_t actor;
};

static bool processor_look(void *ctx, uint64_t key_hi, uint64_t key_lo, uint64_t value)
{
	struct best_waker *b = ctx;
	if (key_hi != b->key)
		return true;
	b->all += value;
	bool better = value > b->most || (value == b->most && (uint32_t)key_lo < b->actor);
	if (key_lo != MODEL_OTHERS && better) {
		b->most = value;
		b->actor = (uint32_t)key_lo;
	}
	return true;
}

uint32_t model_ran_before(
	const struct model *m, uint32_t actor, uint32_t state, uint64_t *ret_nr, uint64_t *ret_all)
{
	struct best_waker b = {.key = (uint64_t)state << 32 | actor, .actor = MODEL_OTHERS};
	base_map_each(&m->processors.wakers, processor_look, &b);
	*ret_nr = b.most;
	*ret_all = b.all;
	return b.actor;
}

void model_free_processors(struct model *m)
{
	for (size_t i = 0; i < m->processors.nr_cpus; i++)
		base_free(m->processors.cpu[i].use);
	base_free(m->processors.cpu);
	base_free(m->processors.pair);
	base_map_fini(&m->processors.pairs);
	base_map_fini(&m->processors.wakers);
	base_map_fini(&m->processors.away);
}
