/* SPDX-License-Identifier: Apache-2.0 */
/*
 * affinity.c - which processors threads may run on: as records say, else as the thread's maker. The
 * graph does not care; a sink that simulates processors does.
 */
#include "model/model_private.h"

#include <stdlib.h>
#include <string.h>

enum { PROCESSORS_MAX = 4096, WORDS = PROCESSORS_MAX / 64 };

/* "0-3,8"; what makes no sense in it ends it. */
static size_t parse_list(const char *list, uint64_t base, uint64_t bits[WORDS])
{
	size_t nr_words = 0;
	char *end;
	memset(bits, 0, WORDS * sizeof *bits);
	for (const char *at = list; *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
		unsigned long first = strtoul(at, &end, 10), last = first;
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		for (uint64_t n = first;
			n <= last && n < PROCESSORS_MAX && n + base < PROCESSORS_MAX; n++) {
			bits[(n + base) / 64] |= 1ull << (n + base) % 64;
			nr_words = (n + base) / 64 + 1;
		}
	}
	return nr_words;
}

/* That list of that host's processors, as a set of the sink's + 1. */
static uint32_t set_of(struct model *m, uint32_t text, uint64_t base)
{
	uint64_t known, bits[WORDS];
	if (base_map_get(&m->processors.processor_sets, text, base, &known))
		return (uint32_t)known;
	size_t nr_words = parse_list(trace_text_of(m->defs, text), base, bits);
	uint32_t set = 0;
	if (nr_words) {
		set = ++m->processors.nr_processor_sets;
		m->status = m->sink->processor_set(m->sink->ctx, set - 1, bits, nr_words, m->err);
	}
	model_put(m, &m->processors.processor_sets, text, base, set);
	return set;
}

static void limit_one(struct model *m, struct thread *t, uint32_t set)
{
	if (!set || t->cpu.processors == set || m->status != BASE_OK)
		return;
	t->cpu.processors = set;
	m->status = m->sink->affinity(m->sink->ctx, t->actor, set - 1, m->err);
}

/* The stream that first spoke for the image that this one was before an exec; 0: none. */
static uint32_t before_exec(const struct model *m, const struct thread *t)
{
	const struct trace_process *p = trace_def_process(m->defs, t->process);
	uint64_t stream;
	if (!t->life.main_thread || !p->parent ||
		trace_def_process(m->defs, p->parent)->pid != p->pid ||
		!base_map_get(&m->known.handles, MODEL_LEADERS | p->parent, 0, &stream))
		return 0;
	return (uint32_t)stream;
}

/* A process that was another program before (chrt, taskset) may not use more because of that. */
static void limit(struct model *m, struct thread *t, uint32_t set)
{
	enum { EXECS_MAX = 64 };
	limit_one(m, t, set);
	for (unsigned i = 0; i < EXECS_MAX && t; i++) {
		uint32_t before = before_exec(m, t);
		t = before ? &m->thread[before] : NULL;
		if (t)
			limit_one(m, t, set);
	}
}

void model_inherit_affinity(struct model *m, struct thread *t, uint32_t maker, uint64_t token)
{
	uint64_t own;
	if (token && base_map_get(&m->known.handles, MODEL_AFFINITIES | token >> 32,
			     (uint32_t)token, &own))
		limit(m, t, (uint32_t)own);
	else if (maker)
		limit(m, t, m->thread[maker].cpu.processors);
}

/* Whoever it makes with that token begins with these, and not with its process's first thread's. */
void model_pass_affinity(struct model *m, const struct thread *t, uint32_t leader, uint64_t token)
{
	if (token && t->cpu.processors && t->cpu.processors != m->thread[leader].cpu.processors)
		model_put(m, &m->known.handles, MODEL_AFFINITIES | token >> 32, (uint32_t)token,
			t->cpu.processors);
}

uint32_t model_make_processor(struct model *m, uint64_t number)
{
	uint32_t id = model_make_queue(m, 0, 0, MODEL_TYPE_PROCESSOR, NONE, GRAPH_FIFO);
	if (m->status == BASE_OK && m->sink && m->sink->processor)
		m->status = m->sink->processor(m->sink->ctx, id, number, m->err);
	return id;
}

static struct thread *thread_of_tid(struct model *m, const struct thread *t, uint64_t tid)
{
	if (trace_def_stream(m->defs, t->stream)->tid == tid)
		return &m->thread[t->stream];
	for (uint32_t i = m->nr_threads; i-- > 1;)
		if (m->thread[i].seen && trace_def_stream(m->defs, i)->tid == tid &&
			model_host_of(m, i) == model_host_of(m, t->stream))
			return &m->thread[i];
	return NULL;
}

void model_rule_affinity(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_affinity *a = &r->u.affinity;
	struct thread *whose = t;
	uint64_t stream;
	if (!m->sink || !m->sink->affinity || m->status != BASE_OK)
		return;
	uint32_t set = set_of(m, a->processors, model_first_processor(m, t->stream));
	if (a->whose == TRACE_WHOSE_token) {
		model_put(
			m, &m->known.handles, MODEL_AFFINITIES | a->id >> 32, (uint32_t)a->id, set);
		return;
	}
	if (a->whose == TRACE_WHOSE_handle)
		whose = base_map_get(&m->known.handles, t->process, a->id, &stream)
				? &m->thread[stream]
				: NULL;
	else if (a->whose == TRACE_WHOSE_tid)
		whose = thread_of_tid(m, t, a->id);
	if (whose)
		limit(m, whose, set);
}
