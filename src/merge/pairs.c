/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - the pass that gathers pairs, whatever their source. */
#include "merge/private.h"

enum { TELL_EVERY = 1 << 14 };

enum base_status merge_add_pair(struct merge *m, struct merge_end from, uint64_t sent_ns,
	struct merge_end to, uint64_t received_ns, enum merge_source source)
{
	if (from.input == to.input)
		return BASE_OK;
	bool back = from.input > to.input;
	uint32_t a = back ? to.input : from.input, b = back ? from.input : to.input;
	struct merge_pairs **p = &m->pairs[a * m->nr_inputs + b];
	if (!*p)
		*p = base_alloc(sizeof **p);
	if (!*p)
		return BASE_ERR_NOMEM;
	(*p)->nr[source]++;
	return merge_pair_add(&(*p)->set, back, sent_ns, received_ns);
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
