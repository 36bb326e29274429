/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed.h - the closed loop: recorded programs on the coherence simulation of memory/cdat/cdat.h, whose
 * messages travel through a network, so that the network's delay feeds back into the program (what
 * GEMS was to seed 002, section 5.3). This is the reference that inferred graphs are measured
 * against.
 *
 * Thread t runs on processor t of node t; a node has one processor, its cache, and a part of
 * memory. A processor executes one instruction a cycle, in order, and waits for each of its misses.
 * State of caches and directory changes when a miss is issued (cdat's transactions are atomic); its
 * messages then go out in the order of the protocol: a recall after the request has come, a
 * response after the request and all answers to recalls, an answer after its recall. Messages
 * inside a node take no time. Barriers, locks, thread creation and joining, as recorded, are obeyed
 * in simulated time, by means of lines: a waiting thread has a copy of a line, spins on it without
 * any message, and looks again when the copy is taken away. A lock is a store to its line, and
 * another one when it is given up; a barrier is a store to its count by each, and the last one's to
 * the line on which the others wait.
 */
#ifndef LONGPOLE_NOC_CLOSED_H
#define LONGPOLE_NOC_CLOSED_H

#include "memory/cdat/cdat.h"
#include "memory/stream/source.h"
#include "noc/network/network.h"
#include "noc/pdg/pdg.h"

enum { NOC_CLOSED_NODES_MAX = MEMORY_CDAT_NODES_MAX };

struct noc_closed_options {
	const struct memory_cdat_config *machine; /* nodes = threads, one processor each */
	const struct noc_config *network;         /* of as many nodes, or more */
	uint32_t short_flits, long_flits;         /* messages without and with a line's data */
	uint32_t directory_cycles, memory_cycles,
		cache_cycles; /* before a home or a cache sends on */
	/* topology=ideal: what slows it down; set[node] == slow_set: all that the node sends, by so
	 * many cycles */
	const uint32_t *set;
	uint32_t slow_set, slow_cycles;
	uint64_t accesses_max; /* stop the program after so many, all threads together; 0: never */
};
/* network and machine NULL, nothing slow, 1 and 5 flits, 6, 50 and 4 cycles. */
void noc_closed_options_init(struct noc_closed_options *o);

struct noc_closed_result {
	/* Messages with types (cdat's codes) and addresses, and what each waited for in this run:
	 * at a home or cache the messages before it in the protocol, at a processor the data of the
	 * miss before. What a run would do in another order (who gets a lock, whose copy is taken
	 * away) no graph of it can say: this one is the best that inference can reach. */
	struct noc_pdg *trace;
	uint64_t execution_cycles; /* last thread's end */
	uint64_t accesses, misses;
	bool stopped; /* by accesses_max */
};
/* The source is read to its end; ERR_USAGE: more threads than nodes, or threads that wait for each
 * other. noc_closed_result_fini(). */
enum base_status noc_closed_run(struct memory_source *program, const struct noc_closed_options *o,
	struct noc_closed_result *ret, struct base_err *err) BASE_MUST_CHECK;
void noc_closed_result_fini(struct noc_closed_result *r);

#endif
