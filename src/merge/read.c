/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - the inputs: opening, whose they are, all their records in the order of time. */
#include "merge/private.h"

#include <string.h>

/* (A boot id that is not known is nobody else's.) */
static enum base_status read_number_host(
	struct merge *m, struct base_strtab *boots, struct merge_input *in)
{
	uint32_t boot = 0;
	enum base_status status = BASE_OK;
	if (*in->boot)
		status = base_strtab_intern(boots, in->boot, strlen(in->boot), &boot);
	if (status != BASE_OK)
		return base_fail(m->err, status, "no memory for hosts");
	uint64_t number;
	if (boot && base_map_get(&m->boots, 0, boot, &number)) {
		in->host_number = (uint32_t)number;
		return BASE_OK;
	}
	in->host_number = ++m->nr_hosts;
	status = boot ? base_map_put(&m->boots, 0, boot, in->host_number) : BASE_OK;
	return status == BASE_OK ? status : base_fail(m->err, status, "no memory for hosts");
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

/* Inputs of one host together, in the order of hosts. */
static enum base_status read_order_by_host(struct merge *m)
{
	uint32_t *next = base_alloc(((size_t)m->nr_hosts + 2) * sizeof *next);
	if (!next)
		return base_fail(m->err, BASE_ERR_NOMEM, "no memory for hosts");
	for (uint32_t i = 0; i < m->nr_inputs; i++)
		next[m->input[i].host_number + 1]++;
	for (uint32_t host = 1; host <= m->nr_hosts; host++)
		next[host + 1] += next[host];
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		m->input[i].at_host = next[m->input[i].host_number]++;
		m->by_host[m->input[i].at_host] = i;
	}
	base_free(next);
	return BASE_OK;
}

enum base_status merge_open(struct merge *m, const char *const *path)
{
	struct base_strtab *boots = base_strtab_new();
	enum base_status status =
		boots ? BASE_OK : base_fail(m->err, BASE_ERR_NOMEM, "no memory for hosts");
	for (uint32_t i = 0; i < m->nr_inputs && status == BASE_OK; i++) {
		status = read_open_one(m, &m->input[i], path[i]);
		if (status == BASE_OK)
			status = read_number_host(m, boots, &m->input[i]);
	}
	base_strtab_free(boots);
	return status == BASE_OK ? read_order_by_host(m) : status;
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
	base_map_fini(&m->boots);
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
	m->is_queued = false;
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

static bool read_is_before(const struct merge *m, uint32_t a, uint32_t b)
{
	const struct merge_input *x = &m->input[a], *y = &m->input[b];
	return x->head_ns != y->head_ns ? x->head_ns < y->head_ns : a < b;
}

/* The queue's first is perhaps not its earliest: what is below it is in order. */
static void read_sink(struct merge *m, uint32_t at)
{
	const uint32_t input = m->queue[at];
	for (uint32_t child; (child = 2 * at + 1) < m->nr_queued; at = child) {
		if (child + 1 < m->nr_queued &&
			read_is_before(m, m->queue[child + 1], m->queue[child]))
			child++;
		if (read_is_before(m, input, m->queue[child]))
			break;
		m->queue[at] = m->queue[child];
	}
	m->queue[at] = input;
}

static enum base_status read_queue_all(struct merge *m, merge_time_fn *time)
{
	m->nr_queued = 0;
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		enum base_status status = read_fill(m, &m->input[i], time);
		if (status != BASE_OK)
			return status;
		if (m->input[i].has_head)
			m->queue[m->nr_queued++] = i;
	}
	for (uint32_t at = m->nr_queued / 2; at--;)
		read_sink(m, at);
	m->is_queued = true;
	return BASE_OK;
}

/* The trace whose record was given last has another one, or is through. */
static enum base_status read_queue_next(struct merge *m, merge_time_fn *time)
{
	if (!m->nr_queued)
		return BASE_OK;
	struct merge_input *in = &m->input[m->queue[0]];
	enum base_status status = read_fill(m, in, time);
	if (status != BASE_OK)
		return status;
	if (!in->has_head)
		m->queue[0] = m->queue[--m->nr_queued];
	if (m->nr_queued)
		read_sink(m, 0);
	return BASE_OK;
}

enum base_status merge_next(
	struct merge *m, merge_time_fn *time, uint32_t *ret_input, const struct trace_record **ret)
{
	enum base_status status = m->is_queued ? read_queue_next(m, time) : read_queue_all(m, time);
	if (status != BASE_OK)
		return status;
	if (!m->nr_queued)
		return BASE_END;
	struct merge_input *in = &m->input[m->queue[0]];
	*ret_input = m->queue[0];
	*ret = &in->batch.record[in->at++];
	in->has_head = false;
	m->done_records++;
	return BASE_OK;
}
