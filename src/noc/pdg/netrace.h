/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netrace.h - Netrace traces, version 1.0 (Hestness, Grot, Keckler: "Netrace: dependency-driven
 * trace-based network-on-chip simulation", NoCArc 2010), read and written.
 *
 * The file is bzip2 data (also read uncompressed), little endian: a header of 72 bytes, notes,
 * regions of 24 bytes, packets of 21 bytes and 4 for each packet that depends on them. It has no
 * delays and no sizes. A packet may be sent when all that it depends on has come *and* its recorded
 * cycle is there.
 *
 * Import: NOC_PDG_NOT_BEFORE and a delay of 1 give just that ("as_recorded"). With delays = true
 * the intrinsic delay is the recorded cycle less the latest arrival of what it depends on, which is
 * taken to be latency_cycles after that one's recorded cycle; nothing else holds it back, so that a
 * faster network shows. Sizes come from the type: 8 or 72 bytes, in flits of width_bits. Nodes are
 * not ordered.
 *
 * Export loses: delays, the order of nodes, inputs that are a previous transmit, sizes but two,
 * bits of addresses beyond 32, dependents of a packet beyond 255, and that several receivers are of
 * one transmit: each becomes a packet that waits for the same. It refuses more than 255 nodes.
 */
#ifndef LONGPOLE_NOC_NETRACE_H
#define LONGPOLE_NOC_NETRACE_H

#include "noc/pdg/input.h"
#include "noc/pdg/pdg.h"

struct noc_netrace_options {
	uint32_t width_bits;     /* of a flit; 128 */
	uint32_t latency_cycles; /* with delays; 8 */
	bool delays;
};
struct noc_netrace_notes {
	uint64_t packets, promised_packets; /* by the header */
	uint64_t missing;                   /* dependents that are not in the file */
	uint64_t elsewhere; /* dependents sent by a node that does not receive the packet */
	uint64_t backwards; /* dependents that are not later */
	bool truncated;     /* ends within a packet, or has fewer than promised */
};
/* ERR_FOREIGN: not such a file. What is left out is counted in the notes. */
enum base_status noc_netrace_read(struct noc_input *in, const struct noc_netrace_options *o,
	struct noc_pdg **ret, struct noc_netrace_notes *ret_notes,
	struct base_err *err) BASE_MUST_CHECK;

struct noc_netrace_losses {
	uint64_t delays, previous, sizes, addresses, dependents;
	uint64_t copies; /* of multicasts: packets of their own */
};
/* The file's bytes, before compression, into `write`. */
enum base_status noc_netrace_write(const struct noc_pdg *g,
	enum base_status (*write)(void *ctx, const void *bytes, size_t nr, struct base_err *err),
	void *ctx, struct noc_netrace_losses *ret, struct base_err *err) BASE_MUST_CHECK;
/* To a file, compressed. */
enum base_status noc_netrace_write_file(const struct noc_pdg *g, const char *path,
	struct noc_netrace_losses *ret, struct base_err *err) BASE_MUST_CHECK;

/* Bytes of a packet of that type; 0: no such type. */
uint32_t noc_netrace_bytes(unsigned type);

#endif
