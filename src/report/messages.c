/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - `longpole messages`: which rank of MPI sends which how much, and who waited for it. */
#include "report/private.h"

#include <stdlib.h>

#include "report/messages.def"

static uint64_t messages_waited_ns(const struct report_way *w)
{
	return w->traffic.late_senders_ns + w->traffic.late_receivers_ns;
}

static int messages_order(const void *pa, const void *pb)
{
	const struct report_way *a = pa, *b = pb;
	uint64_t of_a = messages_waited_ns(a), of_b = messages_waited_ns(b);
	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	if (a->traffic.nr_bytes != b->traffic.nr_bytes)
		return a->traffic.nr_bytes > b->traffic.nr_bytes ? -1 : 1;
	if (a->from_rank != b->from_rank)
		return a->from_rank < b->from_rank ? -1 : 1;
	return (a->to_rank > b->to_rank) - (a->to_rank < b->to_rank);
}

static void messages_sum(struct model_mpi_traffic *to, const struct model_mpi_traffic *more)
{
	to->nr_messages += more->nr_messages;
	to->nr_bytes += more->nr_bytes;
	to->nr_late_senders += more->nr_late_senders;
	to->late_senders_ns += more->late_senders_ns;
	to->nr_late_receivers += more->nr_late_receivers;
	to->late_receivers_ns += more->late_receivers_ns;
}

static const char *messages_rank(struct base_arena *arena, int64_t rank)
{
	struct base_str s = {0};
	if (rank < 0)
		base_str_add(&s, "?");
	else
		base_str_addf(&s, "%lld", (long long)rank);
	return report_keep(arena, &s);
}

static enum base_status messages_collect(struct report_messages *out, struct base_map *ways,
	const struct model *m, struct base_err *err)
{
	struct model_mpi_traffic traffic;
	int64_t from, to;
	size_t nr = 0;
	while (model_mpi_way(m, nr, &from, &to, &traffic))
		nr++;
	out->way = report_array(out->arena, nr, sizeof *out->way);
	if (!out->way)
		return report_no_memory(err);
	for (size_t i = 0; model_mpi_way(m, i, &from, &to, &traffic); i++) {
		uint64_t at;
		if (!traffic.nr_messages && !traffic.nr_late_senders)
			continue; /* (only asked for) */
		if (!base_map_get(ways, (uint64_t)from, (uint64_t)to, &at)) {
			at = out->nr_ways++;
			out->way[at] = (struct report_way){.from_rank = from,
				.to_rank = to,
				.from = messages_rank(out->arena, from),
				.to = messages_rank(out->arena, to)};
			if (!out->way[at].from || !out->way[at].to ||
				base_map_put(ways, (uint64_t)from, (uint64_t)to, at) != BASE_OK)
				return report_no_memory(err);
		}
		messages_sum(&out->way[at].traffic, &traffic);
		messages_sum(&out->all, &traffic);
	}
	qsort(out->way, out->nr_ways, sizeof *out->way, messages_order);
	return BASE_OK;
}

enum base_status report_messages_build(
	const struct report_run *run, struct report_messages **ret, struct base_err *err)
{
	struct report_pass_options opts = {0};
	struct report_messages *out = report_answer_new(sizeof *out);
	struct base_map ways = {0};
	struct model *m = NULL;
	if (!out)
		return report_no_memory(err);
	enum base_status s = report_pass(run, "counting messages", &opts, &m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&out->trace, out->arena, run, m, err);
	if (s == BASE_OK)
		s = messages_collect(out, &ways, m, err);
	if (s == BASE_OK)
		model_link_fit(m, &out->link);
	if (s == BASE_OK && !out->trace.ranks.nr)
		s = base_fail(err, BASE_ERR_NOTFOUND,
			"no rank of MPI is in this trace (longpole queues says which threads wait "
			"for which)");
	base_map_fini(&ways);
	model_free(m);
	if (s != BASE_OK)
		report_messages_free(out);
	else
		*ret = out;
	return s;
}

struct report_messages *report_messages_free(struct report_messages *r)
{
	return report_answer_free(r);
}

/* Where messages of one size differ too much, as on processors that others want, no line says anything. */
static void messages_add_link(struct base_str *out, const struct model_link *l)
{
	const double error_max = 0.5;
	if (!l->nr_messages)
		return;
	if (l->error > error_max) {
		base_str_add_counted(out,
			"How long a message takes on its way is not known: %s {message|messages} "
			"that were waited for took too different times.\n",
			l->nr_messages);
		return;
	}
	base_str_add(out, "A message takes ");
	report_ns(out, l->latency_ns);
	if (l->ns_per_byte > 0)
		base_str_addf(
			out, " and %.3g ns a byte (%.3g GB/s)", l->ns_per_byte, 1 / l->ns_per_byte);
	base_str_add_counted(out,
		" on its way: estimated from %s {message|messages} that were waited for,",
		l->nr_messages);
	base_str_addf(out, " of %u {size|sizes}; half of them are within %.0f %% of it.\n",
		l->nr_sizes, 100 * l->error);
}

void report_messages_text(struct base_str *out, const struct report_messages *r, size_t limit,
	const struct report_style *style)
{
	struct base_layout l = {.table = &messages_way};
	base_str_add_counted(out, "%s {message|messages} between ranks, ", r->all.nr_messages);
	base_str_add_size(out, r->all.nr_bytes);
	base_str_add(out, "; receivers waited ");
	report_ns(out, (double)r->all.late_senders_ns);
	base_str_add(out, " for late senders, senders ");
	report_ns(out, (double)r->all.late_receivers_ns);
	base_str_add(out, " for late receivers (observed). Collective operations are in "
			  "'longpole queues'.\n");
	messages_add_link(out, &r->link);
	base_str_add(out, "\n");
	if (r->nr_ways) {
		base_layout_titles(out, &l);
		base_str_add(out, "\n");
	}
	for (size_t i = 0; i < r->nr_ways && (!limit || i < limit); i++) {
		base_layout_cells(out, &l, &r->way[i]);
		base_str_add(out, "\n");
	}
	if (limit && r->nr_ways > limit)
		base_str_addf(out, "and %zu {other|others} (see --all)\n", r->nr_ways - limit);
	report_trace_text_caveats(out, &r->trace, style);
}

json_t *report_messages_json(const struct report_messages *r)
{
	return report_envelope(report_messages_document.name, &r->trace,
		base_table_json(&report_messages_document, r, r, 0));
}
