/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.c - collectives of several ranks as meetings. The k-th collective of a group within a step is the same one on all
 * ranks: nobody's can be over before everybody has come. Each rank has a clock of its own. A collective ends at about
 * one time for all, so the median of what ends differ by is what clocks differ by.
 */
#include "runtime/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

enum {
	CLOCKS_NS = 20000
}; /* so far may clocks be apart when they are one: ends of collectives differ by that */

struct gpu_step {
	int64_t begin_ns, end_ns;
	uint32_t name;
};
struct gpu_party { /* a rank's part of a collective */
	size_t slice;
	int64_t begin_ns;
	int64_t source, target, index; /* index: within the step, or the group's own number */
	uint32_t rank, group, operation, step;
};
struct gpu_meeter {
	struct gpu_trace *g;
	struct gpu_party *party;
	size_t nr, capacity;
	struct gpu_step *step;
	size_t nr_steps, step_capacity;
	size_t *first_step; /* by rank, and one more */
};

/* ---- which belong together --------------------------------------------------------------------- */

static void gpu_list_steps(struct gpu_meeter *m)
{
	struct gpu_trace *g = m->g;
	m->first_step = base_alloc((g->nr_ranks + 1) * sizeof *m->first_step);
	g->failed |= !m->first_step;
	for (uint32_t r = 0; r < g->nr_ranks && !g->failed; r++) {
		uint32_t main = g->rank[r].main_lane;
		const struct gpu_lane *l = main == GPU_NONE ? NULL : &g->lane[main];
		for (size_t i = l ? l->first : 0; l && i < l->first + l->nr; i++) {
			const struct gpu_slice *s = &g->slice[i];
			if (s->kind != GPU_NOTE || s->what != GPU_NOTE_STEP)
				continue;
			if (base_grow(&m->step, &m->step_capacity, m->nr_steps + 1,
				    sizeof *m->step) != BASE_OK) {
				g->failed = true;
				return;
			}
			m->step[m->nr_steps++] = (struct gpu_step){s->begin_ns, s->end_ns, s->name};
		}
		m->first_step[r + 1] = m->nr_steps;
	}
}

/* Name of the rank's step at that time; 0: none. */
static uint32_t gpu_step_at(const struct gpu_meeter *m, uint32_t rank, int64_t time_ns)
{
	const size_t first = m->first_step[rank], nr = m->first_step[rank + 1] - first;
	if (!nr)
		return 0;
	const struct gpu_step *s = &m->step[first];
	size_t n = BASE_PARTITION(i, nr, s[i].begin_ns <= time_ns);
	return n && time_ns < s[n - 1].end_ns ? s[n - 1].name : 0;
}

static void gpu_add_party(struct gpu_meeter *m, size_t slice)
{
	struct gpu_trace *g = m->g;
	const struct gpu_slice *s = &g->slice[slice];
	const struct gpu_more *o = &g->more[s->more - 1];
	uint32_t rank = g->lane[s->lane].rank;
	const struct gpu_slice *call = format_gpu_call(g, rank, s->correlation);
	if (base_grow(&m->party, &m->capacity, m->nr + 1, sizeof *m->party) != BASE_OK) {
		g->failed = true;
		return;
	}
	m->party[m->nr++] = (struct gpu_party){.slice = slice,
		.begin_ns = s->begin_ns,
		.source = o->source,
		.target = o->target,
		.index = o->sequence,
		.rank = rank,
		.group = o->group,
		.operation = o->source >= 0 ? 0 : o->operation,
		.step = o->sequence >= 0
				? 0
				: gpu_step_at(m, rank, call ? call->begin_ns : s->begin_ns)};
}

static int gpu_by_channel(const struct gpu_party *x, const struct gpu_party *y)
{
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->target < y->target ? -1 : x->target > y->target;
}

static int gpu_by_rank_and_time(const void *a, const void *b)
{
	const struct gpu_party *x = a, *y = b;
	int c = x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : gpu_by_channel(x, y);
	if (!c)
		c = x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
	return c ? c : x->slice < y->slice ? -1 : x->slice > y->slice;
}

static int gpu_by_meeting(const void *a, const void *b)
{
	const struct gpu_party *x = a, *y = b;
	int c = gpu_by_channel(x, y);
	if (c)
		return c;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void gpu_number_parties(struct gpu_meeter *m)
{
	int64_t index = 0;
	if (m->nr)
		qsort(m->party, m->nr, sizeof *m->party, gpu_by_rank_and_time);
	for (size_t i = 0; i < m->nr; i++) {
		struct gpu_party *p = &m->party[i];
		bool goes_on = i && p[-1].rank == p->rank && !gpu_by_channel(&p[-1], p) &&
			       p[-1].step == p->step;
		index = goes_on ? index + 1 : 0;
		if (p->index < 0)
			p->index = index;
	}
	if (m->nr)
		qsort(m->party, m->nr, sizeof *m->party, gpu_by_meeting);
}

/* How many parties from `at` on are one meeting. *ret_alike: all do the same there, each once. */
static size_t gpu_meeting_at(const struct gpu_meeter *m, size_t at, bool *ret_alike)
{
	const struct gpu_party *p = &m->party[at];
	size_t nr = 1;
	*ret_alike = true;
	for (; at + nr < m->nr; nr++) {
		const struct gpu_party *q = &p[nr];
		if (gpu_by_channel(p, q) || q->step != p->step || q->index != p->index)
			break;
		*ret_alike &= q->operation == p->operation && q->rank != q[-1].rank;
	}
	return nr;
}

static void gpu_gather(struct gpu_meeter *m)
{
	struct gpu_trace *g = m->g;
	gpu_list_steps(m);
	for (size_t i = 0; i < g->nr && !g->failed; i++)
		if (g->slice[i].kind == GPU_DEVICE && g->slice[i].what == GPU_COLLECTIVE &&
			g->slice[i].more)
			gpu_add_party(m, i);
	gpu_number_parties(m);
}

static void gpu_meeter_fini(struct gpu_meeter *m)
{
	base_free(m->party);
	base_free(m->step);
	base_free(m->first_step);
}

/* ---- clocks ------------------------------------------------------------------------------------ */

static int gpu_by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* By how much this rank's clock is behind, by every meeting with ranks whose clock is known. */
static size_t gpu_differences(
	const struct gpu_meeter *m, uint32_t rank, const bool *known, int64_t *ret)
{
	const struct gpu_trace *g = m->g;
	size_t nr_found = 0;
	bool alike;
	for (size_t i = 0, nr; i < m->nr; i += nr) {
		nr = gpu_meeting_at(m, i, &alike);
		const struct gpu_party *own = NULL, *other = NULL;
		for (size_t k = i; alike && k < i + nr; k++) {
			if (m->party[k].rank == rank)
				own = &m->party[k];
			else if (known[m->party[k].rank] && !other)
				other = &m->party[k];
		}
		if (own && other)
			ret[nr_found++] = g->slice[other->slice].end_ns +
					  g->rank[other->rank].shift_ns -
					  g->slice[own->slice].end_ns;
	}
	return nr_found;
}

/* The rank that has most to compare by; nr_ranks: there is none. */
static uint32_t gpu_next_clock(const struct gpu_meeter *m, const bool *known, size_t *nr_common)
{
	uint32_t best = m->g->nr_ranks;
	bool alike;
	memset(nr_common, 0, m->g->nr_ranks * sizeof *nr_common);
	for (size_t i = 0, nr; i < m->nr; i += nr) {
		bool has_known = false;
		nr = gpu_meeting_at(m, i, &alike);
		for (size_t k = i; k < i + nr; k++)
			has_known |= known[m->party[k].rank];
		for (size_t k = i; alike && has_known && k < i + nr; k++)
			nr_common[m->party[k].rank]++;
	}
	for (uint32_t r = 0; r < m->g->nr_ranks; r++)
		if (!known[r] && nr_common[r] &&
			(best == m->g->nr_ranks || nr_common[r] > nr_common[best]))
			best = r;
	return best;
}

static void gpu_find_clocks(struct gpu_meeter *m, bool *known)
{
	struct gpu_trace *g = m->g;
	int64_t *difference = base_alloc((m->nr + 1) * sizeof *difference);
	size_t *nr_common = base_alloc((g->nr_ranks + 1) * sizeof *nr_common);
	g->failed |= !difference || !nr_common;
	while (!g->failed) {
		uint32_t next = gpu_next_clock(m, known, nr_common);
		if (next == g->nr_ranks)
			break;
		size_t nr = gpu_differences(m, next, known, difference);
		qsort(difference, nr, sizeof *difference, gpu_by_value);
		g->rank[next].shift_ns = difference[nr / 2];
		known[next] = true;
	}
	base_free(difference);
	base_free(nr_common);
}

/* No time is before 0: what some are shifted below it, all are shifted up. */
static void gpu_shift(struct gpu_trace *g)
{
	int64_t least_ns = 0, most_ns = 0;
	for (size_t i = 0; i < g->nr; i++) {
		const struct gpu_slice *s = &g->slice[i];
		int64_t at_ns = s->begin_ns + g->rank[g->lane[s->lane].rank].shift_ns;
		least_ns = at_ns < least_ns ? at_ns : least_ns;
	}
	for (uint32_t r = 0; r < g->nr_ranks; r++) {
		int64_t by_ns = g->rank[r].shift_ns;
		most_ns = by_ns > most_ns ? by_ns : -by_ns > most_ns ? -by_ns : most_ns;
		g->rank[r].shift_ns -= least_ns;
	}
	g->counts.shift_ns = most_ns;
	for (size_t i = 0; i < g->nr; i++) {
		struct gpu_slice *s = &g->slice[i];
		s->begin_ns += g->rank[g->lane[s->lane].rank].shift_ns;
		s->end_ns += g->rank[g->lane[s->lane].rank].shift_ns;
	}
	for (size_t i = 0; i < g->nr_flows; i++)
		g->flow[i].time_ns += g->rank[g->lane[g->flow[i].lane].rank].shift_ns;
}

struct gpu_span {
	int64_t begin_ns, end_ns;
};

static struct gpu_span gpu_span_of(const struct gpu_trace *g, uint32_t rank)
{
	struct gpu_span x = {INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < g->nr; i++) {
		const struct gpu_slice *s = &g->slice[i];
		if (g->lane[s->lane].rank != rank)
			continue;
		x.begin_ns = s->begin_ns < x.begin_ns ? s->begin_ns : x.begin_ns;
		x.end_ns = s->end_ns > x.end_ns ? s->end_ns : x.end_ns;
	}
	return x;
}

/* A rank that meets nobody keeps its clock: it may be the same one, if the times are. */
static void gpu_find_strangers(struct gpu_trace *g, const bool *known)
{
	struct gpu_span first = gpu_span_of(g, 0);
	for (uint32_t r = 1; r < g->nr_ranks; r++) {
		struct gpu_span x = gpu_span_of(g, r);
		if (known[r] || x.begin_ns > x.end_ns)
			continue;
		g->counts.nr_strangers++;
		if (!g->stranger && (x.begin_ns > first.end_ns || x.end_ns < first.begin_ns))
			g->stranger = r + 1;
	}
}

void format_gpu_meet(struct gpu_trace *g)
{
	struct gpu_meeter m = {.g = g};
	bool *known = base_alloc((g->nr_ranks + 1) * sizeof *known);
	g->failed |= !known;
	if (!g->failed)
		gpu_gather(&m);
	if (!g->failed && g->nr_ranks > 1 && !g->is_one_clock) {
		known[0] = true;
		gpu_find_clocks(&m, known);
		gpu_shift(g);
		gpu_find_strangers(g, known);
	}
	base_free(known);
	gpu_meeter_fini(&m);
}

/* ---- who waits for whom -------------------------------------------------------------------------- */

struct gpu_hub { /* the machine at which a group meets */
	uint32_t lane;
	int64_t since_ns; /* its last meeting */
};

static void gpu_add_met(struct gpu_trace *g, struct gpu_met x)
{
	if (base_grow(&g->met, &g->met_capacity, g->nr_met + 1, sizeof *g->met) != BASE_OK)
		g->failed = true;
	else
		g->met[g->nr_met++] = x;
}

/* All come, the last one at time_ns; then all go on. */
static void gpu_meet_at(struct gpu_trace *g, struct gpu_hub *h, const struct gpu_party *p,
	size_t nr, int64_t time_ns, size_t last)
{
	for (size_t i = 0; i < nr; i++) {
		const struct gpu_slice *s = &g->slice[p[i].slice];
		const struct gpu_more *o = &g->more[s->more - 1];
		int64_t came_ns = s->begin_ns < time_ns ? s->begin_ns : time_ns;
		format_gpu_add_edge(g, (struct gpu_edge){.from = s->lane,
					       .to = h->lane,
					       .from_ns = came_ns,
					       .wait_ns = i == last ? h->since_ns : time_ns,
					       .to_ns = time_ns,
					       .way = GPU_WAY_MEET});
		format_gpu_add_edge(g, (struct gpu_edge){.from = h->lane,
					       .to = s->lane,
					       .from_ns = time_ns,
					       .wait_ns = came_ns,
					       .to_ns = time_ns,
					       .way = GPU_WAY_MEET});
		gpu_add_met(g, (struct gpu_met){.time_ns = time_ns,
				       .waited_ns = time_ns - came_ns,
				       .rank = p[i].rank,
				       .last = p[last].rank,
				       .operation = o->operation,
				       .group = o->group});
	}
	h->since_ns = time_ns;
	g->counts.nr_meetings++;
}

static void gpu_add_meeting(
	struct gpu_trace *g, struct gpu_hub *h, const struct gpu_party *p, size_t nr)
{
	int64_t came_ns = h->since_ns, over_ns = INT64_MAX;
	size_t last = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct gpu_slice *s = &g->slice[p[i].slice];
		if (s->begin_ns > came_ns) {
			came_ns = s->begin_ns;
			last = i;
		}
		over_ns = s->end_ns < over_ns ? s->end_ns : over_ns;
	}
	int64_t time_ns = came_ns < over_ns ? came_ns : over_ns;
	if (came_ns - over_ns > CLOCKS_NS || time_ns < h->since_ns)
		g->counts.nr_apart++;
	else
		gpu_meet_at(g, h, p, nr, time_ns, last);
}

/* Nine in ten meetings end within that, on one clock. */
static void gpu_find_apart(struct gpu_meeter *m)
{
	struct gpu_trace *g = m->g;
	int64_t *apart = base_alloc((m->nr + 1) * sizeof *apart);
	size_t nr_found = 0;
	bool alike;
	g->failed |= !apart;
	for (size_t i = 0, nr; i < m->nr && apart; i += nr) {
		int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
		nr = gpu_meeting_at(m, i, &alike);
		for (size_t k = i; k < i + nr; k++) {
			int64_t end_ns = g->slice[m->party[k].slice].end_ns;
			first_ns = end_ns < first_ns ? end_ns : first_ns;
			last_ns = end_ns > last_ns ? end_ns : last_ns;
		}
		if (alike && nr > 1)
			apart[nr_found++] = last_ns - first_ns;
	}
	if (apart && nr_found) {
		qsort(apart, nr_found, sizeof *apart, gpu_by_value);
		g->counts.apart_ns = apart[nr_found * 9 / 10];
	}
	base_free(apart);
}

static int gpu_by_begin(const void *a, const void *b)
{
	const struct gpu_party *x = *(const struct gpu_party *const *)a,
			       *y = *(const struct gpu_party *const *)b;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* Meetings of a group in the order of time: names of steps are in none. */
static size_t gpu_channel_meetings(
	const struct gpu_meeter *m, size_t at, const struct gpu_party **ret, size_t *ret_end)
{
	size_t nr = 0, end = at;
	bool alike;
	for (; end < m->nr && !gpu_by_channel(&m->party[at], &m->party[end]);
		end += gpu_meeting_at(m, end, &alike))
		ret[nr++] = &m->party[end];
	qsort(ret, nr, sizeof *ret, gpu_by_begin);
	*ret_end = end;
	return nr;
}

/* Without groups all ranks are taken for one. That is a guess: one thing that does not fit, and there is no such group. */
static bool gpu_is_group(const struct gpu_meeter *m, const struct gpu_party **meeting, size_t nr)
{
	for (size_t k = 0; k < nr && !meeting[k]->group; k++) {
		const struct gpu_party *p = meeting[k];
		int64_t came_ns = INT64_MIN, over_ns = INT64_MAX;
		bool alike;
		size_t parties = gpu_meeting_at(m, (size_t)(p - m->party), &alike);
		for (size_t i = 0; i < parties; i++) {
			const struct gpu_slice *s = &m->g->slice[p[i].slice];
			came_ns = s->begin_ns > came_ns ? s->begin_ns : came_ns;
			over_ns = s->end_ns < over_ns ? s->end_ns : over_ns;
		}
		if (!alike || came_ns - over_ns > CLOCKS_NS)
			return false;
	}
	return true;
}

void format_gpu_add_meetings(struct gpu_trace *g)
{
	struct gpu_meeter m = {.g = g};
	if (g->nr_ranks < 2)
		return;
	gpu_gather(&m);
	const struct gpu_party **meeting = base_alloc((m.nr + 1) * sizeof *meeting);
	g->failed |= !meeting;
	for (size_t i = 0, end; i < m.nr && !g->failed; i = end) {
		size_t nr = gpu_channel_meetings(&m, i, meeting, &end);
		if (!gpu_is_group(&m, meeting, nr)) {
			g->counts.nr_unlike += nr;
			continue;
		}
		struct gpu_hub h = {format_gpu_lane_meeting(g, m.party[i].group), g->begin_ns};
		for (size_t k = 0; k < nr && !g->failed; k++) {
			bool alike;
			size_t parties = gpu_meeting_at(&m, (size_t)(meeting[k] - m.party), &alike);
			g->counts.nr_alone += parties == 1;
			g->counts.nr_unlike += parties > 1 && !alike;
			if (parties > 1 && alike)
				gpu_add_meeting(g, &h, meeting[k], parties);
		}
	}
	if (!g->failed)
		gpu_find_apart(&m);
	base_free(meeting);
	gpu_meeter_fini(&m);
}
