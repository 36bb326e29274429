/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_network.c - how long a request takes.
 *
 * Snooping: a request goes to all nodes through one network that orders requests, which one after
 * another take a slot of it; after a hop all have seen it, and the node that has the line sends it
 * point to point. An upgrade is over when its own request has come back. Directory: a request goes
 * to the line's home and from there to its owner, if it is dirty, or to its sharers, if it is
 * stored to; whether a store waits for these is a parameter. Links carry one message after another;
 * a hop's latency includes its own transmission. Messages claim links in the order in which their
 * requests were made.
 */
#include "slack/machine_private.h"

enum base_status slack_network_init(struct network *n, const struct slack_machine_config *c)
{
	size_t nodes = (size_t)c->cdat->nodes;
	uint64_t line = c->cdat->line_bytes + c->header_bytes;
	n->out_free = base_alloc(nodes * sizeof *n->out_free);
	n->in_free = base_alloc(nodes * sizeof *n->in_free);
	/* bytes / (MB/s) = us; times MHz = cycles */
	n->control_cycles =
		(c->control_bytes * c->clock_mhz + c->link_mb_per_s - 1) / c->link_mb_per_s;
	n->data_cycles = (line * c->clock_mhz + c->link_mb_per_s - 1) / c->link_mb_per_s;
	if (!c->contention)
		n->control_cycles = n->data_cycles = 0;
	return n->out_free && n->in_free ? BASE_OK : BASE_ERR_NOMEM;
}

void slack_network_fini(struct network *n)
{
	base_free(n->out_free);
	base_free(n->in_free);
	*n = (struct network){0};
}

struct journey {
	struct network *n;
	const struct slack_machine_config *c;
	uint64_t at, waited;
};

static void machine_network_wait_for(struct journey *j, uint64_t *is_free, uint64_t occupies)
{
	if (*is_free > j->at) {
		j->waited += *is_free - j->at;
		j->at = *is_free;
	}
	*is_free = j->at + occupies;
}

/* A message that leaves now; nothing happens inside a node. */
static void hop(struct journey *j, uint32_t from, uint32_t to, bool data)
{
	uint64_t occupies = data ? j->n->data_cycles : j->n->control_cycles;
	if (from == to)
		return;
	j->n->messages++;
	if (j->c->contention)
		machine_network_wait_for(j, &j->n->out_free[from], occupies);
	j->at += j->c->hop_cycles;
	if (!j->c->contention)
		return;
	/* The in link is busy with the message's last `occupies` cycles. */
	uint64_t begins = j->at > occupies ? j->at - occupies : 0;
	if (j->n->in_free[to] > begins) {
		j->waited += j->n->in_free[to] - begins;
		j->at += j->n->in_free[to] - begins;
	}
	j->n->in_free[to] = j->at;
}

static void broadcast(struct journey *j)
{
	j->n->broadcasts++;
	if (j->c->contention)
		machine_network_wait_for(j, &j->n->order_free, j->n->control_cycles);
	j->at += j->c->hop_cycles;
}

static bool from_a_cache(const struct memory_cdat_outcome *o)
{
	return o->owner >= 0 && (o->supplier == MEMORY_CDAT_FROM_LOCAL_CACHE ||
					o->supplier == MEMORY_CDAT_FROM_REMOTE_CACHE);
}

static void by_snooping(
	struct journey *j, uint32_t node, uint32_t owner_node, const struct memory_cdat_outcome *o)
{
	broadcast(j);
	if (o->upgrade)
		return;
	j->at += from_a_cache(o) ? j->c->second_cycles : j->c->memory_cycles;
	uint32_t from = from_a_cache(o) ? owner_node : o->home;
	if (from != node)
		hop(j, from, node, true);
	else
		j->at += j->c->hop_cycles; /* own memory answers through the same switch */
}

static void by_directory(
	struct journey *j, uint32_t node, uint32_t owner_node, const struct memory_cdat_outcome *o)
{
	uint64_t look = j->c->directory_cycles, memory = j->c->memory_cycles;
	if (o->critical >= 2 && from_a_cache(o) && owner_node == node) {
		j->at += j->c->second_cycles; /* the node's bus answers */
		return;
	}
	hop(j, node, o->home, false);
	if (from_a_cache(o)) {
		j->at += look;
		hop(j, o->home, owner_node, false);
		j->at += j->c->second_cycles;
		if (o->critical >= 4) {
			hop(j, owner_node, o->home, true);
			hop(j, o->home, node, true);
		} else {
			hop(j, owner_node, node, true);
		}
		return;
	}
	if (o->upgrade) {
		j->at += look;
		if (o->critical >= 4 && j->c->acknowledged)
			j->at += 2 * j->c->hop_cycles;
		hop(j, o->home, node, false);
		return;
	}
	uint64_t reads = memory > look ? memory : look; /* side by side */
	/* A clean owner is asked first; copies are told to go, and may have to answer. */
	bool waits = o->critical >= 4 && (j->c->acknowledged || !j->c->cdat->protocol->owned);
	uint64_t rounds = waits ? look + 2 * j->c->hop_cycles : 0;
	j->at += rounds > reads ? rounds : reads;
	hop(j, o->home, node, true);
}

uint64_t slack_network_request(struct network *n, const struct slack_machine_config *c,
	uint32_t processor, uint64_t at, const struct memory_cdat_outcome *o, uint64_t *contention)
{
	uint32_t per_node = (uint32_t)c->cdat->processors, node = processor / per_node;
	struct journey j = {.n = n, .c = c, .at = at};
	if (!o->upgrade) {
		if (o->supplier == MEMORY_CDAT_FROM_CACHE)
			return at;
		if (o->supplier == MEMORY_CDAT_FROM_SECOND)
			return at + c->second_cycles;
		if (o->supplier == MEMORY_CDAT_FROM_THIRD)
			return at + c->third_cycles;
		if (o->supplier == MEMORY_CDAT_FROM_LOCAL_CACHE && o->owner < 0)
			return at + c->second_cycles; /* interconnect cache */
	} else if (o->supplier == MEMORY_CDAT_FROM_SECOND) {
		j.at += c->second_cycles;
	} else if (o->supplier == MEMORY_CDAT_FROM_THIRD) {
		j.at += c->third_cycles;
	}
	uint32_t owner_node = o->owner >= 0 ? (uint32_t)o->owner / per_node : 0;
	if (c->cdat->protocol->network == MEMORY_CDAT_SNOOPING)
		by_snooping(&j, node, owner_node, o);
	else
		by_directory(&j, node, owner_node, o);
	*contention += j.waited;
	return j.at;
}
