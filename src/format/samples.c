/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - where threads were when they were sampled. */
#include "format/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int samples_by_stream(const void *a, const void *b)
{
	const struct format_sample *x = a, *y = b;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

enum base_status format_samples_init(struct format_samples *l, const struct format_input *in,
	const struct format_options *opts, struct base_err *err)
{
	enum base_status s = trace_reader_rewind(in->reader, err);
	struct trace_batch b;
	while (s == BASE_OK && (s = trace_reader_next(in->reader, &b, err)) == BASE_OK)
		for (size_t i = 0; s == BASE_OK && i < b.nr; i++) {
			const struct trace_record *r = &b.record[i];
			if (r->kind != TRACE_sample || r->time_ns < opts->from_ns ||
				(opts->to_ns && r->time_ns >= opts->to_ns))
				continue;
			s = base_grow(&l->sample, &l->capacity, l->nr + 1, sizeof *l->sample);
			if (s != BASE_OK)
				return format_no_memory(err);
			l->sample[l->nr++] = (struct format_sample){.time_ns = r->time_ns,
				.stream = r->stream,
				.site = r->u.sample.site,
				.stack = r->u.sample.stack};
		}
	if (s == BASE_END && l->nr)
		qsort(l->sample, l->nr, sizeof *l->sample, samples_by_stream);
	return s == BASE_END ? BASE_OK : s;
}

void format_samples_fini(struct format_samples *l)
{
	base_free(l->sample);
	*l = (struct format_samples){0};
}

size_t format_sample_frames(const struct format_input *in, const struct format_sample *sample,
	struct model_frame ret[static FORMAT_FRAMES_MAX])
{
	struct model_frame site[MODEL_FRAMES_MAX];
	unsigned nr_site = sample->site ? model_site_frames(in->model, sample->site, site) : 0;
	size_t nr = model_stack_frames(
		in->model, sample->stack, ret, FORMAT_FRAMES_MAX - MODEL_FRAMES_MAX);
	if (sample->site && (!nr_site || !*site[0].function)) {
		site[0] = (struct model_frame){
			.function = model_site_text(in->model, sample->site), .file = ""};
		nr_site = 1;
	}
	for (unsigned i = 0; i < nr_site; i++)
		ret[nr++] = site[i];
	return nr;
}

uint64_t format_sample_period_ns(const struct format_input *in)
{
	const uint64_t usual_ns = 1000000; /* of traces that do not say */
	const struct trace_defs *d = trace_reader_defs(in->reader);
	unsigned long long hz = 0;
	for (uint32_t i = 1; i < d->nr_costs; i++)
		if (!strcmp(trace_text_of(d, d->costs[i].name), TRACE_COST_SAMPLES) &&
			sscanf(trace_text_of(d, d->costs[i].method), TRACE_COST_SAMPLES_METHOD,
				&hz) != 1)
			hz = 0;
	return hz ? 1000000000 / hz : usual_ns;
}
