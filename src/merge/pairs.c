/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - the pass that gathers pairs, whatever their source. */
#include "merge/private.h"

enum { TELL_EVERY = 1 << 14 };

static uint64_t pairs_key(uint32_t a, uint32_t b)
{
	return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

struct merge_pairs *merge_pairs_of(const struct merge *m, uint32_t a, uint32_t b)
{
	uint64_t i;
	return base_map_get(&m->by_inputs, 0, pairs_key(a, b), &i) ? m->pairs[i] : NULL;
}

/* NULL: no memory. */
static struct merge_pairs *pairs_new(struct merge *m, uint32_t a, uint32_t b)
{
	struct merge_pairs *p = base_alloc(sizeof *p);
	if (!p || base_grow(&m->pairs, &m->pairs_capacity, m->nr_pairs + 1, sizeof *m->pairs) !=
			  BASE_OK) {
		base_free(p);
		return NULL;
	}
	*p = (struct merge_pairs){
		.input = {a, b}, .next = {m->input[a].near_pairs, m->input[b].near_pairs}};
	m->pairs[m->nr_pairs++] = p;
	m->input[a].near_pairs = m->input[b].near_pairs = (uint32_t)m->nr_pairs;
	bool is_known = base_map_put(&m->by_inputs, 0, pairs_key(a, b), m->nr_pairs - 1) == BASE_OK;
	return is_known ? p : NULL;
}

void merge_pairs_free(struct merge *m)
{
	for (size_t i = 0; i < m->nr_pairs; i++) {
		merge_pair_set_fini(&m->pairs[i]->set);
		base_free(m->pairs[i]);
	}
	base_free(m->pairs);
	base_map_fini(&m->by_inputs);
}

enum base_status merge_add_pair(struct merge *m, struct merge_end from, uint64_t sent_ns,
	struct merge_end to, uint64_t received_ns, enum merge_source source)
{
	if (from.input == to.input)
		return BASE_OK;
	bool back = from.input > to.input;
	uint32_t a = back ? to.input : from.input, b = back ? from.input : to.input;
	struct merge_pairs *p = merge_pairs_of(m, a, b);
	p = p ? p : pairs_new(m, a, b);
	if (!p)
		return BASE_ERR_NOMEM;
	p->nr[source]++;
	return merge_pair_add(&p->set, back, sent_ns, received_ns);
}

static void pairs_tell(struct merge *m)
{
	if (m->opts->progress && m->done_records % TELL_EVERY == 0)
		m->opts->progress(
			m->opts->progress_ctx, "comparing clocks", m->done_records, m->all_records);
}

enum base_status merge_find_pairs(struct merge *m)
{
	struct merge_packets *packets = merge_packets_new(m);
	struct merge_bytes *bytes = packets ? merge_bytes_new(m) : NULL;
	enum base_status status = bytes ? BASE_OK : BASE_ERR_NOMEM;
	bool is_read_error = false;
	while (status == BASE_OK) {
		const struct trace_record *r;
		uint32_t input;
		status = merge_next(m, merge_wall_time, &input, &r);
		is_read_error = status != BASE_OK && status != BASE_END;
		if (status == BASE_OK)
			status = merge_packets_record(packets, input, r);
		if (status == BASE_OK)
			status = merge_bytes_record(bytes, input, r);
		if (status == BASE_OK)
			status = merge_messages_record(m->messages, input, r);
		pairs_tell(m);
	}
	if (status == BASE_END) {
		merge_packets_count(packets, m->result);
		status = merge_rewind(m);
	} else if (!is_read_error) {
		base_fail(m->err, status, "no memory for what passed between the machines");
	}
	merge_bytes_free(bytes);
	merge_packets_free(packets);
	return status;
}
