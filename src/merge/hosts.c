/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.c - one clock for all inputs: a spanning tree from the first input (Prim), whose edges are
 * clocks that are known to each other, those with the smallest errors first.
 */
#include "merge/private.h"

#include <inttypes.h>

enum {
	/* Two recordings on one machine: both read CLOCK_MONOTONIC_RAW and the TSC together at
	   their beginning, within this; ... */
	ORIGIN_ERROR_NS = 500,
	/* ... and know the TSC's rate to this. */
	RATE_ERROR_PPB = 5000,
	SPAN_PPB = 1000 * 1000 * 1000,
};

struct edge { /* from an input to one that is in the tree */
	struct merge_clock clock;
	enum merge_how how;
};

/* ---- one kernel ------------------------------------------------------------------------------ */

static int64_t hosts_share_of(int64_t v, uint64_t numerator, uint64_t denominator)
{
	return (int64_t)((__int128)v * (__int128)numerator / (__int128)denominator);
}

/* Both have the same ticks, of which each has its own idea how long one lasts. */
static enum base_status same_kernel(const struct merge_input *child,
	const struct merge_input *parent, int64_t from_ns, int64_t to_ns, struct merge_clock *ret)
{
	size_t capacity = 0;
	int64_t apart = (int64_t)(child->info->origin_mono_ns - parent->info->origin_mono_ns);
	uint64_t hz = child->info->tick_hz, parent_hz = parent->info->tick_hz;
	/* rates that differ by more than clocks do are no rates */
	bool known = hz && parent_hz && hz / 2 < parent_hz && parent_hz / 2 < hz;
	*ret = (struct merge_clock){0};
	enum base_status status = base_grow(&ret->knot, &capacity, 2, sizeof *ret->knot);
	if (status != BASE_OK)
		return status;
	for (int i = 0; i < 2; i++) {
		int64_t at = i ? to_ns : from_ns;
		int64_t scaled = known ? hosts_share_of(at, hz, parent_hz) : at;
		ret->knot[i] = (struct merge_knot){at, apart + scaled - at};
	}
	ret->nr_knots = 2;
	uint64_t span = (uint64_t)(apart < 0 ? -apart : apart),
		 length = known ? 0 : (uint64_t)(to_ns - from_ns);
	ret->error_ns =
		ORIGIN_ERROR_NS + (uint64_t)((__int128)(span + length) * RATE_ERROR_PPB / SPAN_PPB);
	ret->offset_ns = ret->knot[0].add_ns;
	ret->drift_ppb = hosts_share_of(
		ret->knot[1].add_ns - ret->knot[0].add_ns, SPAN_PPB, (uint64_t)(to_ns - from_ns));
	return BASE_OK;
}

/* Do pairs say that it is not one clock after all (a time namespace, a copied boot id)? */
static bool is_contradicted(
	const struct merge_pair_set *s, bool inverse, const struct merge_clock *c)
{
	int64_t slack = c->error_ns > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)c->error_ns;
	for (int back = 0; back < 2; back++) {
		const struct merge_point *p = back ? s->back : s->there;
		size_t nr = back ? s->nr_back : s->nr_there;
		for (size_t i = 0; i < nr; i++) {
			int64_t own = (int64_t)(inverse ? p[i].b_ns : p[i].a_ns),
				other = (int64_t)(inverse ? p[i].a_ns : p[i].b_ns),
				ahead = merge_clock_map(c, own) - other;
			bool is_sender = back == inverse; /* whose clock is mapped, sent it */
			if (is_sender ? ahead > slack : ahead < -slack)
				return true;
		}
	}
	return false;
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* The best that is known of two inputs; error UINT64_MAX: nothing. */
static enum base_status find_edge(struct merge *m, uint32_t child, uint32_t parent, int64_t from_ns,
	int64_t to_ns, struct edge *ret, enum merge_fit *ret_fit)
{
	const struct merge_input *in = &m->input[child], *other = &m->input[parent];
	struct merge_pairs *pairs = merge_pairs_of(m, child, parent);
	struct merge_clock kernel = {.error_ns = UINT64_MAX};
	enum base_status status = BASE_OK;
	*ret = (struct edge){.clock.error_ns = UINT64_MAX, .how = MERGE_HOW_pairs};
	*ret_fit = MERGE_FIT_none;
	if (to_ns <= from_ns)
		to_ns = from_ns + 1;
	if (pairs)
		status = merge_clock_fit(
			&pairs->set, child > parent, from_ns, to_ns, &ret->clock, ret_fit);
	if (status == BASE_OK && merge_same_boot(in, other))
		status = same_kernel(in, other, from_ns, to_ns, &kernel);
	if (status == BASE_OK && kernel.nr_knots && pairs &&
		is_contradicted(&pairs->set, child > parent, &kernel)) {
		m->result->clock_contradicted = true;
		merge_clock_fini(&kernel);
	}
	if (status == BASE_OK && kernel.error_ns < ret->clock.error_ns) {
		merge_clock_fini(&ret->clock);
		*ret = (struct edge){.clock = kernel, .how = MERGE_HOW_kernel};
		kernel = (struct merge_clock){0};
	}
	merge_clock_fini(&kernel);
	if (status != BASE_OK)
		merge_clock_fini(&ret->clock);
	return status;
}

/* ---- when it cannot be done ------------------------------------------------------------------ */

static enum base_status hosts_refuse(struct merge *m, uint32_t input, const bool in_tree[])
{
	static const char *const why[] = {
		[MERGE_FIT_ok] = "",
		[MERGE_FIT_none] = "nothing passed between them that both recordings show",
		[MERGE_FIT_there_only] = "all that both recordings show went one way",
		[MERGE_FIT_back_only] = "all that both recordings show went one way",
		[MERGE_FIT_contradiction] =
			("what passed between them would have been received before it was sent, by "
			 "any clock"),
	};
	enum merge_fit worst = MERGE_FIT_none;
	const struct merge_input *in = &m->input[input];
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		const struct merge_pairs *p = i == input ? NULL : merge_pairs_of(m, i, input);
		if (!in_tree[i] || !p)
			continue;
		enum merge_fit fit = p->set.sent_there && p->set.sent_back ? MERGE_FIT_contradiction
									   : MERGE_FIT_there_only;
		worst = fit > worst ? fit : worst;
	}
	base_fail(m->err, BASE_ERR_CLOCK, "%s",
		worst == MERGE_FIT_contradiction ? "was a clock set while it was recorded, or are "
						   "these recordings of different runs?"
		: worst == MERGE_FIT_none
			? "record both ends of a connection, from its beginning, at the same time; "
			  "addresses "
			  "that a NAT changes are not recognised"
			: "one way gives one bound only: record with --system --full on both "
			  "machines (packets "
			  "are acknowledged), or let the other side answer now and then");
	return base_cause(m->err, BASE_ERR_CLOCK,
		"the clock of %s (host '%s') cannot be aligned with the others': %s", in->path,
		in->host, why[worst]);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static uint64_t add_errors(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct tree {
	struct merge *m;
	bool has[MERGE_INPUTS_MAX];
	uint64_t error[MERGE_INPUTS_MAX]; /* of the best edge into the tree; UINT64_MAX: none */
};

/* `i` may be reached from `last`, which is in the tree. */
static enum base_status tree_look(struct tree *t, uint32_t i, uint32_t last)
{
	struct edge e = {0};
	enum merge_fit fit;
	if (t->has[i])
		return BASE_OK;
	enum base_status status = find_edge(t->m, i, last, 0, t->m->input[i].last_ns, &e, &fit);
	if (status != BASE_OK)
		return base_fail(t->m->err, status, "no memory for the clocks");
	if (e.clock.error_ns < t->error[i]) {
		t->error[i] = e.clock.error_ns;
		t->m->input[i].parent = last;
	}
	merge_clock_fini(&e.clock);
	return BASE_OK;
}

/* Only what something passed to or from, and what has its kernel: all others have no edge. */
static enum base_status tree_look_around(struct tree *t, uint32_t last)
{
	const struct merge *m = t->m;
	const struct merge_input *in = &m->input[last];
	enum base_status status = BASE_OK;
	for (uint32_t n = in->near_pairs; n && status == BASE_OK;) {
		const struct merge_pairs *p = m->pairs[n - 1];
		const bool is_second = p->input[1] == last;
		status = tree_look(t, p->input[!is_second], last);
		n = p->next[is_second];
	}
	for (int way = -1; way <= 1; way += 2)
		for (uint32_t n = in->at_host + (uint32_t)way;
			n < m->nr_inputs && status == BASE_OK &&
			m->input[m->by_host[n]].host_number == in->host_number;
			n += (uint32_t)way)
			status = tree_look(t, m->by_host[n], last);
	return status;
}

/* The nearest that is not in it. */
static uint32_t tree_nearest(const struct tree *t)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t i = 1; i < t->m->nr_inputs; i++)
		if (!t->has[i] && (best == UINT32_MAX || t->error[i] < t->error[best]))
			best = i;
	return best;
}

/* In the order of joining; a parent comes before its children. */
static enum base_status grow_tree(struct merge *m, uint32_t order[MERGE_INPUTS_MAX])
{
	struct tree t = {.m = m, .has = {true}};
	for (uint32_t i = 0; i < m->nr_inputs; i++)
		t.error[i] = UINT64_MAX;
	order[0] = 0;
	for (uint32_t n = 1; n < m->nr_inputs; n++) {
		enum base_status status = tree_look_around(&t, order[n - 1]);
		if (status != BASE_OK)
			return status;
		order[n] = tree_nearest(&t);
		if (t.error[order[n]] == UINT64_MAX)
			return hosts_refuse(m, order[n], t.has);
		t.has[order[n]] = true;
	}
	return BASE_OK;
}

/* The parent's clock must be right for all times that its children have. */
static void hosts_widen(struct merge *m, const struct merge_input *in)
{
	struct merge_input *up = &m->input[in->parent];
	int64_t from_ns = merge_clock_map(&in->clock, in->from_ns),
		to_ns = merge_clock_map(&in->clock, in->to_ns);
	up->from_ns = from_ns < up->from_ns ? from_ns : up->from_ns;
	up->to_ns = to_ns > up->to_ns ? to_ns : up->to_ns;
}

enum base_status merge_align(struct merge *m)
{
	uint32_t order[MERGE_INPUTS_MAX] = {0};
	uint64_t largest = 0, second = 0;
	enum base_status status = grow_tree(m, order);
	for (uint32_t i = 0; i < m->nr_inputs; i++) {
		m->input[i].from_ns = 0;
		m->input[i].to_ns = m->input[i].last_ns;
	}
	for (uint32_t n = m->nr_inputs; status == BASE_OK && --n;) {
		struct merge_input *in = &m->input[order[n]];
		struct edge e = {0};
		enum merge_fit fit;
		status = find_edge(m, order[n], in->parent, in->from_ns, in->to_ns, &e, &fit);
		if (status != BASE_OK)
			return base_fail(m->err, status, "no memory for the clocks");
		in->clock = e.clock;
		in->how = e.how;
		hosts_widen(m, in);
	}
	for (uint32_t n = 1; status == BASE_OK && n < m->nr_inputs; n++) {
		struct merge_input *in = &m->input[order[n]];
		in->error_ns = add_errors(in->clock.error_ns, m->input[in->parent].error_ns);
		if (in->error_ns > largest) {
			second = largest;
			largest = in->error_ns;
		} else if (in->error_ns > second) {
			second = in->error_ns;
		}
	}
	if (status == BASE_OK)
		m->result->error_ns = add_errors(largest, second);
	return status;
}

int64_t merge_first_time(const struct merge *m, const struct merge_input *in, int64_t time_ns)
{
	while (in != m->input) {
		time_ns = merge_clock_map(&in->clock, time_ns);
		in = &m->input[in->parent];
	}
	return time_ns;
}
