/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - what a message needs from one rank of MPI to another, fitted to those that were waited for. */
#ifndef LONGPOLE_MODEL_LINK_H
#define LONGPOLE_MODEL_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct model;

/*
 * A message of n bytes is there latency_ns + n * ns_per_byte after its sender began to send it: what
 * LogGP (A. Alexandrov et al., SPAA 1995) calls L + 2o and G. Of each size the median of those that
 * their receivers stood and waited for; then the line with the least relative squares.
 */
struct model_link {
	uint64_t nr_messages;           /* that it is fitted to */
	uint32_t nr_sizes;              /* that they had; 1: ns_per_byte is not known and 0 */
	double latency_ns, ns_per_byte; /* of all pairs of ranks together */
	double error;                   /* half of the messages are within that part of it */
	double overhead_ns; /* o: a send call that waited for nobody, the median; 0: there was none */
};
/* False: no message was waited for. */
bool model_link_fit(const struct model *m, struct model_link *ret);

/* How much of what a state took (that of a communicator's messages and meetings on their way) was the
 * network's latency L, or the transmission of bytes, by the fit: of all in the run, by their sizes. */
struct model_link_share {
	double latency, latency_low, latency_high; /* of the state's time; less than 1 by 2o */
	double bytes, bytes_low, bytes_high;
};
/* False: it is no such state, or nothing was on its way in it. */
bool model_link_share(const struct model *m, uint32_t state, const struct model_link *l,
	struct model_link_share *ret);

#endif
