/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.h - which message of one run is which of another, when the runs differ (seed 002, section
 * 5.3: shared memory programs send other coherence messages when latencies change).
 *
 * NOC_MATCH_COUNT is the least that the seed's text says: of equal source, destination, type and
 * address, the n-th is the n-th. One message more or less puts all later ones of its kind off by
 * one.
 *
 * NOC_MATCH_ALIGN first takes, for each source, the longest sequence of (destination, type,
 * address) that both runs have in this order, with no message more than `displacement` places of
 * its kind from where it was (Hunt and Szymanski 1977); then of what is left the same for each
 * (source, destination), since a node's answers to several others may come in another order; what
 * is left is matched within its kind by count, if not further away than that, and counted as moved.
 * Needs memory for 20 bytes times the possible matches of one source's messages: few where messages
 * have addresses, up to 2 displacements each where a pair's are all alike.
 *
 * What only the other run has is left out. What only the base run has is *filled out*: it gets the
 * time of its node's latest earlier matched transmit, and the distance that it has in the base run;
 * and the base run's latency. Filled times are marked, and prove nothing to the inference.
 */
#ifndef LONGPOLE_NOC_MATCH_H
#define LONGPOLE_NOC_MATCH_H

#include "noc/pdg/pdg.h"
#include "noc/pdg/replay_ideal.h"

enum noc_match_method { NOC_MATCH_ALIGN, NOC_MATCH_COUNT };
enum { NOC_MATCH_DISPLACEMENT = 64 };

struct noc_match {
	uint32_t *other;          /* by packet of the base run; NOC_PDG_NONE: not there */
	uint64_t in_order, moved; /* matched */
	uint64_t base_only, other_only;
};
enum base_status noc_match(const struct noc_pdg *base, const struct noc_pdg *other,
	enum noc_match_method method, uint32_t displacement, struct noc_match *ret,
	struct base_err *err) BASE_MUST_CHECK;
void noc_match_fini(struct noc_match *m);

/* The other run's times into run r of `runs` (of the base's packets, run 0 filled in already). */
enum base_status noc_fill_out(const struct noc_pdg *base, const struct noc_pdg *other,
	const struct noc_match *m, struct noc_runs *runs, uint32_t r,
	struct base_err *err) BASE_MUST_CHECK;

#endif
