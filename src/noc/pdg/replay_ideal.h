/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_ideal.h - runs of a graph on the network of the seed's base trace: fully connected, every
 * packet under way for one cycle, no contention; and on that network with some packets slowed down,
 * which is what samples are. No network is simulated: one sweep in the order of the numbers, which
 * is a topological one.
 */
#ifndef LONGPOLE_NOC_REPLAY_IDEAL_H
#define LONGPOLE_NOC_REPLAY_IDEAL_H

#include "noc/pdg/pdg.h"

/* Times of several runs of the same packets: of packet p in run r at [p * stride + r]. Run 0 is the
 * base run. nr_runs <= stride: later ones may be still to come. */
struct noc_runs {
	uint32_t nr_runs, stride, nr_packets;
	uint64_t *transmit_cycle, *receive_cycle;
	uint8_t *filled; /* 1: this packet was not seen in this run (match.h); NULL: all were */
};
enum { NOC_RUNS_MAX = 64 };
enum base_status noc_runs_init(struct noc_runs *r, uint32_t nr_runs, uint32_t nr_packets,
	struct base_err *err) BASE_MUST_CHECK;
void noc_runs_fini(struct noc_runs *r);

/* A packet is kept at its receiver until `cycles` after another one has come there. The other is
 * of the same window (see sample.h), or the wait could be one for itself. */
struct noc_hold {
	uint32_t packet, after, cycles;
};

struct noc_plan {
	const uint32_t *extra_cycles; /* by packet, on top of the one cycle; NULL: none */
	/* Those of transmit i, in this order, before it is looked at: hold[first_hold[i] ..
	 * first_hold[i + 1]). NULL: none. */
	const struct noc_hold *hold;
	const uint64_t *first_hold;
	/* Delays differ from D by -noise .. +noise, uniform, in each run (but stay 1 at least). */
	uint32_t noise_cycles;
	uint64_t seed;
};

/* Replays g into run `run` of r. plan NULL: nothing is slow. x: index of the base run. */
void noc_ideal_replay(const struct noc_pdg *g, const struct noc_index *x,
	const struct noc_plan *plan, struct noc_runs *r, uint32_t run);

/* Cycle of the last reception of a run. */
uint64_t noc_runs_end(const struct noc_runs *r, uint32_t run);

#endif
