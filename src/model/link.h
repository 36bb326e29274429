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
};
/* False: no message was waited for. */
bool model_link_fit(const struct model *m, struct model_link *ret);

#endif
