/* SPDX-License-Identifier: Apache-2.0 */
/* compress.c - theorems 2-1 to 2-3 of seed 003 while the machine runs. */
#include "slack/private.h"

enum base_status slack_compress_init(struct slack_analysis *a, struct base_err *err)
{
	slack_stack_init(&a->edges, sizeof(struct kept_edge), &a->budget);
	a->earlier = base_alloc((UINT64_C(1) << EARLIER_BITS) * sizeof *a->earlier);
	a->last_late = base_alloc((a->nr_processors + 1) * sizeof *a->last_late);
	a->seen = base_alloc(((size_t)a->nr_processors * a->nr_processors + 1) * sizeof *a->seen);
	a->nr_glances = base_alloc((a->nr_processors + 1) * sizeof *a->nr_glances);
	a->glance_bytes = sizeof(struct glance) + a->nr_processors * sizeof(uint64_t);
	a->glances = base_alloc((size_t)a->nr_processors * GLANCES * a->glance_bytes + 1);
	a->begun = !a->options.from_parallel && !a->options.from_marker;
	return a->earlier && a->last_late && a->seen && a->nr_glances && a->glances
		       ? BASE_OK
		       : base_fail(err, BASE_ERR_NOMEM, "no memory to compress the graph");
}

bool slack_begins(const struct slack_options *o, const struct slack_node *n)
{
	return o->from_parallel ? n->kind == SLACK_CREATE
				: n->kind == SLACK_MARK && n->address == o->marker;
}

enum base_status slack_compress_run(void *ctx, const struct slack_run *r, struct base_err *err)
{
	struct slack_analysis *a = ctx;
	(void)err;
	if (a->begun) {
		a->result.counts.nodes += r->count;
		a->result.counts.instructions += r->count;
	}
	return BASE_OK;
}

static inline struct earlier *earlier_of(
	const struct slack_analysis *a, uint64_t store, uint32_t processor)
{
	return &a->earlier[base_hash_u64(store * 1031 + processor) >> (64 - EARLIER_BITS)];
}

/* ---- what a processor has seen of the others ------------------------------------------------- */

static uint64_t *compress_seen_by(const struct slack_analysis *a, uint32_t processor)
{
	return a->seen + (size_t)processor * a->nr_processors;
}

static struct glance *glance_at(const struct slack_analysis *a, uint32_t processor, uint64_t i)
{
	char *ring = (char *)a->glances + (size_t)processor * GLANCES * a->glance_bytes;
	return (struct glance *)(void *)(ring + i % GLANCES * a->glance_bytes);
}

/* What led to a node of a processor; NULL: it is forgotten, or nothing did. */
static const struct glance *glance_before(
	const struct slack_analysis *a, uint32_t processor, uint64_t order)
{
	uint64_t nr = a->nr_glances[processor];
	for (uint64_t i = nr; i > 0 && nr - i < GLANCES; i--)
		if (glance_at(a, processor, i - 1)->order <= order)
			return glance_at(a, processor, i - 1);
	return NULL;
}

/* An edge is kept: all that leads to its source now leads to its target. */
static void see(
	struct slack_analysis *a, const struct slack_node *n, const struct slack_producer *p)
{
	uint64_t *seen = compress_seen_by(a, n->processor);
	const struct glance *g = glance_before(a, p->processor, p->order);
	for (uint32_t i = 0; g && i < a->nr_processors; i++)
		seen[i] = g->seen[i] > seen[i] ? g->seen[i] : seen[i];
	if (p->order > seen[p->processor])
		seen[p->processor] = p->order;
	struct glance *mine = glance_at(a, n->processor, a->nr_glances[n->processor]++);
	mine->order = n->order;
	for (uint32_t i = 0; i < a->nr_processors; i++)
		mine->seen[i] = seen[i];
}

/* Does another edge make this one, which arrives in time, useless? Counts which theorem says so. */
static bool is_dominated(
	struct slack_analysis *a, const struct slack_node *n, const struct slack_producer *p)
{
	struct slack_counts *k = &a->result.counts;
	struct earlier *e = earlier_of(a, p->order, n->processor);
	bool again = e->store == p->order && e->processor == n->processor;
	bool within = p->processor == n->processor;
	bool known = within || p->order <= compress_seen_by(a, n->processor)[p->processor];
	if (within && p->order >= a->last_late[n->processor]) {
		k->removed_in_time++; /* theorem 2-3 */
		return true;
	}
	if (again && e->load >= a->last_late[n->processor]) {
		k->removed_same_store++; /* theorem 2-2 */
		return true;
	}
	/* The theorems as they stand would keep it, and have it as an earlier load. */
	*e = (struct earlier){.store = p->order, .load = n->order, .processor = n->processor};
	k->removed_beyond += known || again;
	return known || again;
}

static enum base_status compress_keep(struct slack_analysis *a, const struct slack_node *n,
	const struct slack_producer *p, uint64_t issue, struct base_err *err)
{
	struct kept_edge e = {.source = slack_name(p->processor, p->order),
		.target = slack_name(n->processor, n->order),
		.issue = issue,
		.start = n->start,
		.arrival = p->complete};
	*earlier_of(a, p->order, n->processor) =
		(struct earlier){.store = p->order, .load = n->order, .processor = n->processor};
	see(a, n, p);
	a->result.counts.kept_edges++;
	return slack_stack_push(&a->edges, &e, err);
}

enum base_status slack_compress_node(void *ctx, const struct slack_node *n, struct base_err *err)
{
	struct slack_analysis *a = ctx;
	struct slack_counts *k = &a->result.counts;
	uint64_t issue = n->first ? 0 : n->issue;
	enum base_status s = BASE_OK;
	if (BASE_UNLIKELY(!a->begun)) {
		if (!slack_begins(&a->options, n))
			return s;
		a->begun = true;
		a->origin_order = n->order;
		a->result.origin = n->start;
	}
	k->nodes++;
	k->instructions += n->instructions;
	for (uint32_t i = 0; i < n->nr_producers && s == BASE_OK; i++) {
		const struct slack_producer *p = &n->producer[i];
		if (p->order < a->origin_order)
			continue;
		k->raw_edges++;
		k->raw_within += p->processor == n->processor;
		k->raw_late += p->complete > issue;
		if (p->complete > issue || a->options.keep_all || !is_dominated(a, n, p))
			s = compress_keep(a, n, p, issue, err);
	}
	if (n->start > issue)
		a->last_late[n->processor] = n->order;
	return s;
}
