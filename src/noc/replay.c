/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - who may send when. */
#include "noc/replay.h"

#include "base/heap.h"

#include <math.h>
#include <string.h>

/* A packet whose gate is about to fire. */
struct due {
	uint64_t cycle;
	uint32_t packet;
};

struct replay {
	const struct noc_pdg *g;
	enum noc_replay_mode mode;
	struct noc_network *network;
	struct noc_index index;
	/* by packet */
	uint32_t *waits;        /* inputs that have not come; 1 more until its node's turn */
	uint64_t *fire;         /* latest input so far; then the cycle */
	uint64_t *first_waiter; /* who depends on it: waiter[first_waiter[p] .. [p + 1]) */
	uint32_t *waiter;
	uint32_t *next; /* transmit of the same node */
	/* a heap by (cycle, packet) */
	struct due *due;
	size_t nr_due, due_capacity;
	struct noc_replay_result *result;
};

static bool earlier(const struct due *a, const struct due *b)
{
	return a->cycle != b->cycle ? a->cycle < b->cycle : a->packet < b->packet;
}

static enum base_status replay_push(struct replay *r, uint32_t packet, struct base_err *err)
{
	struct due d = {r->fire[packet], packet};
	enum base_status s = base_grow(&r->due, &r->due_capacity, r->nr_due + 1, sizeof *r->due);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for packets that are about to be sent");
	BASE_HEAP_PUT(r->due, r->nr_due, d, earlier);
	return BASE_OK;
}

static struct due replay_pop(struct replay *r)
{
	struct due top = r->due[0];
	BASE_HEAP_DROP(r->due, r->nr_due, earlier);
	return top;
}

static bool is_ordered(const struct replay *r, uint32_t packet)
{
	return r->g->ordered[r->g->source[packet]] != 0;
}

/* One input of the packet came at `cycle`. */
static enum base_status replay_input(
	struct replay *r, uint32_t packet, uint64_t cycle, struct base_err *err)
{
	r->fire[packet] = cycle > r->fire[packet] ? cycle : r->fire[packet];
	if (--r->waits[packet])
		return BASE_OK;
	r->fire[packet] += r->g->delay_cycles[packet];
	if (r->g->inputs[packet] & NOC_PDG_NOT_BEFORE &&
		r->fire[packet] < r->g->transmit_cycle[packet])
		r->fire[packet] = r->g->transmit_cycle[packet];
	uint32_t before = r->index.previous[packet];
	if (before != NOC_PDG_NONE && is_ordered(r, packet) &&
		r->fire[packet] <= r->result->transmit_cycle[before])
		r->fire[packet] = r->result->transmit_cycle[before] + 1;
	return replay_push(r, packet, err);
}

/* Sent at `cycle`: the node's next transmit has its turn, or one of its inputs. */
static enum base_status replay_sent(
	struct replay *r, uint32_t packet, uint64_t cycle, struct base_err *err)
{
	uint32_t next = r->next[packet], end = noc_pdg_receivers_end(r->g, packet);
	for (uint32_t i = packet; i < end; i++)
		r->result->transmit_cycle[i] = cycle;
	if (next == NOC_PDG_NONE || r->mode == NOC_REPLAY_STRIPPED)
		return BASE_OK;
	bool is_input = r->g->inputs[next] & NOC_PDG_PREVIOUS;
	if (is_input || is_ordered(r, next))
		return replay_input(r, next, is_input ? cycle : 0, err);
	return BASE_OK;
}

/* A multicast's arrivals have the number of its transmit. Receivers ascend. */
static uint32_t replay_number_of(const struct noc_pdg *g, const struct noc_arrival *a)
{
	uint32_t low = (uint32_t)a->id, high = noc_pdg_receivers_end(g, low);
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (g->destination[middle] <= a->destination)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static enum base_status replay_arrived(
	struct replay *r, const struct noc_arrival *a, struct base_err *err)
{
	uint32_t packet = replay_number_of(r->g, a);
	struct noc_replay_result *t = r->result;
	enum base_status s = BASE_OK;
	t->receive_cycle[packet] = a->arrival_cycle;
	t->latency_cycles += a->arrival_cycle - a->created_cycle;
	t->network_latency_cycles += a->arrival_cycle - a->sent_cycle;
	t->hops += a->hops;
	t->packets++;
	if (a->arrival_cycle > t->execution_cycles)
		t->execution_cycles = a->arrival_cycle;
	if (r->mode == NOC_REPLAY_STRIPPED)
		return BASE_OK;
	for (uint64_t w = r->first_waiter[packet]; w < r->first_waiter[packet + 1] && s == BASE_OK;
		w++)
		s = replay_input(r, r->waiter[w], a->arrival_cycle, err);
	return s;
}

/* ---- before the first cycle ------------------------------------------------------------------ */

/* The waiters for each packet: the dependencies the other way round. */
static enum base_status find_waiters(struct replay *r, struct base_err *err)
{
	const struct noc_pdg *g = r->g;
	uint64_t nr = noc_pdg_nr_dependencies(g);
	r->first_waiter = base_alloc(((size_t)g->nr_packets + 2) * sizeof *r->first_waiter);
	r->waiter = base_alloc((nr + 1) * sizeof *r->waiter);
	if (!r->first_waiter || !r->waiter)
		return base_fail(err, BASE_ERR_NOMEM,
			"no memory for %llu {dependency|dependencies}", (unsigned long long)nr);
	uint64_t *at = r->first_waiter + 1; /* ends up one place further, that is: right */
	for (uint64_t d = 0; d < nr; d++)
		at[g->dependency[d] + 1]++;
	for (uint32_t i = 0; i < g->nr_packets; i++)
		at[i + 1] += at[i];
	for (uint32_t i = 0; i < g->nr_packets; i++)
		for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++)
			r->waiter[at[g->dependency[d]]++] = i;
	return BASE_OK;
}

static enum base_status replay_start(struct replay *r, struct base_err *err)
{
	const struct noc_pdg *g = r->g;
	size_t nr = (size_t)g->nr_packets + 1;
	r->waits = base_alloc(nr * sizeof *r->waits);
	r->fire = base_alloc(nr * sizeof *r->fire);
	r->next = base_alloc(nr * sizeof *r->next);
	r->result->transmit_cycle = base_alloc(nr * sizeof *r->result->transmit_cycle);
	r->result->receive_cycle = base_alloc(nr * sizeof *r->result->receive_cycle);
	if (!r->waits || !r->fire || !r->next || !r->result->transmit_cycle ||
		!r->result->receive_cycle)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to replay %u {packet|packets}",
			g->nr_packets);
	enum base_status s = noc_index_init(&r->index, g, g->receive_cycle, 1, err);
	if (s == BASE_OK)
		s = find_waiters(r, err);
	if (s != BASE_OK)
		return s;
	for (uint32_t i = 0; i < g->nr_packets; i++)
		r->next[i] = NOC_PDG_NONE;
	for (uint32_t i = 0; i < g->nr_packets; i++)
		if (r->index.previous[i] != NOC_PDG_NONE)
			r->next[r->index.previous[i]] = i;
	for (uint32_t i = 0; i < g->nr_packets && s == BASE_OK; i++) {
		if (noc_pdg_is_copy(g, i))
			continue;
		if (r->mode == NOC_REPLAY_STRIPPED) {
			r->fire[i] = g->transmit_cycle[i];
			s = replay_push(r, i, err);
			continue;
		}
		bool after = r->index.previous[i] != NOC_PDG_NONE &&
			     (is_ordered(r, i) || g->inputs[i] & NOC_PDG_PREVIOUS);
		/* one input more, which comes at once: nothing is left out that has none */
		r->waits[i] = (uint32_t)(g->first[i + 1] - g->first[i]) + after + 1;
		s = replay_input(r, i, 0, err);
	}
	return s;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static enum base_status replay_send_due(struct replay *r, struct base_err *err)
{
	const struct noc_pdg *g = r->g;
	enum base_status s = BASE_OK;
	uint64_t now = noc_network_now_cycle(r->network);
	while (r->nr_due && r->due[0].cycle <= now && s == BASE_OK) {
		uint32_t p = replay_pop(r).packet;
		struct noc_packet packet = {.id = p,
			.source = g->source[p],
			.destination = g->destination[p],
			.size_flits = g->size_flits[p]};
		s = noc_network_send_multicast(r->network, &packet, &g->destination[p],
			noc_pdg_receivers_end(g, p) - p, err);
		if (s == BASE_OK)
			s = replay_sent(r, p, now, err);
	}
	return s;
}

enum { PROGRESS_ARRIVALS = 1 << 14 };

static enum base_status replay_run(struct replay *r, void (*progress)(void *ctx, uint64_t done),
	void *ctx, struct base_err *err)
{
	uint64_t shown = 0;
	while (r->result->packets < r->g->nr_packets) {
		const struct noc_arrival *a;
		size_t nr;
		enum base_status s = replay_send_due(r, err);
		if (s != BASE_OK)
			return s;
		uint64_t until = r->nr_due ? r->due[0].cycle : UINT64_MAX;
		if (until == UINT64_MAX && !noc_network_pending(r->network))
			return base_fail(err, BASE_ERR_CORRUPT,
				"%llu {packet|packets} wait for each other",
				(unsigned long long)(r->g->nr_packets - r->result->packets));
		s = noc_network_run(r->network, until, &a, &nr, err);
		for (size_t i = 0; i < nr && s == BASE_OK; i++)
			s = replay_arrived(r, &a[i], err);
		if (s != BASE_OK)
			return s;
		if (progress && r->result->packets - shown >= PROGRESS_ARRIVALS) {
			shown = r->result->packets;
			progress(ctx, shown);
		}
	}
	return BASE_OK;
}

enum base_status noc_replay(const struct noc_pdg *g, const struct noc_config *config,
	enum noc_replay_mode mode, void (*progress)(void *ctx, uint64_t done), void *ctx,
	struct noc_replay_result *ret, struct base_err *err)
{
	struct replay r = {.g = g, .mode = mode, .result = ret};
	*ret = (struct noc_replay_result){0};
	enum base_status s = noc_network_open(&r.network, config, err);
	if (s != BASE_OK)
		return s;
	ret->network_nodes = noc_network_nodes(r.network);
	if (ret->network_nodes < g->nr_nodes)
		s = base_fail(err, BASE_ERR_USAGE,
			"the network has %u {node|nodes}, the packets have %u", ret->network_nodes,
			g->nr_nodes);
	if (s == BASE_OK)
		s = replay_start(&r, err);
	if (s == BASE_OK)
		s = replay_run(&r, progress, ctx, err);
	noc_network_close(r.network);
	noc_index_fini(&r.index);
	base_free(r.waits);
	base_free(r.fire);
	base_free(r.next);
	base_free(r.first_waiter);
	base_free(r.waiter);
	base_free(r.due);
	if (s != BASE_OK)
		noc_replay_result_fini(ret);
	return s;
}

void noc_replay_result_fini(struct noc_replay_result *r)
{
	base_free(r->transmit_cycle);
	base_free(r->receive_cycle);
	*r = (struct noc_replay_result){0};
}

double noc_replay_mean_latency(const struct noc_replay_result *r)
{
	return r->packets ? (double)r->latency_cycles / (double)r->packets : NAN;
}
