/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - the inputs: opening, whose they are, all their records in the order of time. */
#include "merge/private.h"

#include <string.h>

static uint32_t host_of(struct merge *m, const struct merge_input *in)
{
	for (uint32_t i = 0; *in->boot && &m->input[i] != in; i++)
		if (!strcmp(m->input[i].boot, in->boot))
			return m->input[i].host_number;
	return ++m->nr_hosts;
}

static enum base_status read_open_one(struct merge *m, struct merge_input *in, const char *path)
{
	enum base_status status = trace_reader_open(path, NULL, &in->reader, m->err);
	if (status != BASE_OK)
		return status;
	in->path = path;
	in->info = trace_reader_info(in->reader);
	in->defs = trace_reader_defs(in->reader);
	if (in->info->flags & TRACE_INFO_MERGED)
		return base_fail(m->err, BASE_ERR_USAGE,
			"%s is a merged trace already: merge the recordings that it was made of, "
			"all "
			"at once",
			path);
	in->boot = trace_text_of(in->defs, trace_def_host(in->defs, 1)->boot);
	in->host = in->info->host ? in->info->host : "";
	uint64_t last_ns = trace_reader_last_ns(in->reader);
	in->last_ns = (int64_t)(last_ns < MERGE_TIME_MAX_NS ? last_ns : MERGE_TIME_MAX_NS);
	in->object = base_alloc(((size_t)in->defs->nr_objects + 1) * sizeof *in->object);
	in->string = base_alloc(((size_t)in->defs->nr_texts + 1) * sizeof *in->string);
	if (!in->object || !in->string)
		return base_fail(m->err, BASE_ERR_NOMEM, "%s: no memory for its names", path);
	for (uint32_t i = 0; i < in->defs->nr_objects; i++)
		in->object[i].first_ns = UINT64_MAX;
	m->all_records += trace_reader_record_count(in->reader);
	return BASE_OK;
}

enum base_status merge_open(struct merge *m, const char *const *path)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		enum base_status status = read_open_one(m, &m->input[i], path[i]);
		if (status != BASE_OK)
			return status;
		m->input[i].host_number = host_of(m, &m->input[i]);
	}
	for (uint32_t host = 1; host <= m->nr_hosts; host++)
		for (uint32_t i = 0; i < m->nr_inputs; i++)
			if (m->input[i].host_number == host)
				m->by_host[n++] = i;
	return BASE_OK;
}

void merge_close(struct merge *m)
{
	for (uint32_t i = 0; m->input && i < m->nr_inputs; i++) {
		trace_reader_close(m->input[i].reader);
		base_free(m->input[i].object);
		base_free(m->input[i].string);
		merge_clock_fini(&m->input[i].clock);
	}
	base_free(m->input);
}

enum base_status merge_rewind(struct merge *m)
{
	enum base_status status = BASE_OK;
	for (uint32_t i = 0; status == BASE_OK && i < m->nr_inputs; i++) {
		struct merge_input *in = &m->input[i];
		in->batch = (struct trace_batch){0};
		in->at = 0;
		in->at_end = in->has_head = false;
		status = trace_reader_rewind(in->reader, m->err);
	}
	m->done_records = 0;
	return status;
}

int64_t merge_wall_time(const struct merge *m, const struct merge_input *in, uint64_t time_ns)
{
	(void)m;
	__int128 at = (__int128)time_ns + in->info->origin_unix_ns;
	return at > INT64_MAX ? INT64_MAX : (int64_t)at;
}

static enum base_status read_fill(struct merge *m, struct merge_input *in, merge_time_fn *time)
{
	if (in->has_head || in->at_end)
		return BASE_OK;
	if (in->at == in->batch.nr) {
		enum base_status status = trace_reader_next(in->reader, &in->batch, m->err);
		in->at = 0;
		in->at_end = status == BASE_END;
		if (status != BASE_OK)
			return in->at_end ? BASE_OK : status;
	}
	in->head_ns = time(m, in, in->batch.record[in->at].time_ns);
	in->has_head = true;
	return BASE_OK;
}

enum base_status merge_next(
	struct merge *m, merge_time_fn *time, uint32_t *ret_input, const struct trace_record **ret)
{
	struct merge_input *best = NULL;
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		struct merge_input *in = &m->input[i];
		enum base_status status = read_fill(m, in, time);
		if (status != BASE_OK)
			return status;
		if (in->has_head && (!best || in->head_ns < best->head_ns))
			best = in;
	}
	if (!best)
		return BASE_END;
	*ret_input = (uint32_t)(best - m->input);
	*ret = &best->batch.record[best->at++];
	best->has_head = false;
	m->done_records++;
	return BASE_OK;
}
