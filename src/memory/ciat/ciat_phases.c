/* SPDX-License-Identifier: Apache-2.0 */
/* ciat_phases.c - a phase begins, and ends: whose counts those of a step are. */
#include "memory/ciat/ciat_private.h"

#include <string.h>

enum { PHASE_MEMORY_BYTES = 64 << 20 };

static void end_strings(struct memory_ciat *c)
{
	for (uint32_t i = 0; i < c->result.nr_threads; i++) {
		struct ciat_thread *t = &c->thread[i];
		if (t->string_length)
			t->counts->string[t->string_kind][memory_ciat_string(t->string_length)]++;
		t->string_length = 0;
		t->string_kind = 2;
	}
}

enum base_status memory_ciat_begin_phase(
	struct memory_ciat *c, const struct memory_step *s, struct base_err *err)
{
	struct memory_ciat_result *r = &c->result;
	size_t each = (size_t)r->nr_threads * sizeof(struct memory_ciat_counts);
	bool spill = r->nr_phases >= MEMORY_CIAT_PHASES_MAX ||
		     (r->nr_phases && r->nr_phases * each > PHASE_MEMORY_BYTES);
	struct memory_ciat_phase *p = &c->spilled;
	if (spill) {
		r->phases_left_out++;
		memory_ciat_phase_fini(p);
	} else {
		if (base_grow(&r->phase, &c->phases_capacity, r->nr_phases + 1, sizeof *p) !=
			BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for a phase");
		p = &r->phase[r->nr_phases];
	}
	enum base_status status = memory_ciat_phase_init(p, r->nr_threads, err);
	if (status != BASE_OK)
		return status;
	r->nr_phases += !spill;
	p->kind = (enum memory_phase_kind)s->address;
	p->number = s->count;
	p->begin_clock = s->clock;
	memcpy(p->sharing, c->sharing, (r->nr_threads + 1) * sizeof *p->sharing);
	c->open = p;
	for (uint32_t i = 0; i < r->nr_threads; i++)
		c->thread[i].counts = &p->thread[i];
	return BASE_OK;
}

void memory_ciat_end_phase(struct memory_ciat *c, const struct memory_step *s)
{
	struct memory_ciat_phase *p = c->open, *total = &c->result.total;
	if (!p)
		return;
	end_strings(c);
	p->end_clock = s->clock;
	for (uint32_t i = 0; i < c->result.nr_threads; i++) {
		memory_ciat_counts_add(&p->all, &p->thread[i]);
		memory_ciat_counts_add(&total->thread[i], &p->thread[i]);
	}
	memory_ciat_counts_add(&total->all, &p->all);
	for (uint32_t k = 0; k <= c->result.nr_threads; k++) {
		p->sharing[k] = c->sharing[k] - p->sharing[k];
		total->sharing[k] += p->sharing[k];
		total->invalidation[k] += p->invalidation[k];
	}
	total->end_clock = s->clock;
	c->open = NULL;
}
