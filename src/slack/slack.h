/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slack.h - how long each instruction may be delayed before the program gets slower (seed 003,
 * chapter 2).
 *
 * The graph. Nodes are what the machine (machine.h) executed. An edge's label is the time at which
 * it arrives: program order edges when the next instruction is issued, read-after-write (RAW)
 * edges, within and across processors, when the store is complete. A node starts when its last edge
 * arrives. Edges of synchronisation are RAW edges: from what gives to what takes; at a barrier from
 * all threads to the last one, and from it to all. Registers are not recorded: in an in-order
 * machine with blocking requests an instruction is issued when the one before is complete, so
 * program order covers each dependence through a register.
 *
 * Slack (section 2.4.1). L(e) = start of the target - arrival. L(u) = least L of the edges from u;
 * a node without any: end of all - its own end. G(e) = L(e) + G(v); G(u) = least G of the edges
 * from u. So G(u) is exactly by how much u may start later in this graph, with all else as long as
 * it was.
 *
 * Compression, while the machine runs (section 2.5). Only RAW edges are kept, and of these not
 *	3: (theorem 2-3) those within a processor that arrive in time, when no node between is late;
 *	2: (theorem 2-2) those that arrive in time, when an earlier load of this processor has one
 *	   from the same store and no node between is late;
 *	1: (theorem 2-1) nodes without a kept RAW edge go.
 * (Late: a RAW edge arrives after the program order edge. The seed asks for "less than"; its proofs
 * hold for "at the same time", too, which is what is done.)
 *
 * Beyond the seed: an edge e = (u, v) that arrives in time is dominated whenever any other path
 * leads from u to v. Let n0 = u, n1, ... be its nodes. G(u) <= sum of L(ni, ni+1) + G(v); each L
 * is start(ni+1) - arrival, each arrival is no less than start(ni), the first no less than
 * complete(u): the sum is at most start(v) - complete(u) = L(e), so e is never the least. Theorems
 * 2-2 and 2-3 are special cases, and do not need the condition that no node between is late. A
 * vector clock of each processor knows which nodes lead to it; those that would be kept by the
 * theorems as they stand are counted apart.
 *
 * What is known of earlier loads and of other processors' clocks is bounded; what is forgotten
 * costs an edge, never a wrong answer.
 *
 * Then the kept edges are read backward for slack and critical path, and the machine runs once more
 * to say what each instruction's slack is: no instruction is ever stored. Kept edges beyond
 * options.memory_bytes go to an unlinked temporary file.
 */
#ifndef LONGPOLE_SLACK_SLACK_H
#define LONGPOLE_SLACK_SLACK_H

#include "base/histogram.h"
#include "slack/machine.h"

#include <jansson.h>

#define SLACK_NEVER UINT64_MAX /* slack of what does not lead to the endpoint */

struct slack_options {
	bool continuous;    /* only what leads to the endpoint is in the graph (section 2.4.3) */
	uint32_t endpoint;  /* with continuous: the processor whose last node it is */
	bool from_parallel; /* the graph begins when the first thread is created */
	bool from_marker;   /* it begins at the first marker with this number */
	uint64_t marker;
	bool keep_all;         /* no theorem 2-2 and 2-3; for tests */
	uint64_t memory_bytes; /* of kept edges; 0: 1 GiB */
	struct slack_machine_options machine;
	/* Called now and then; NULL: not. pass 1 or 2. */
	void (*progress)(void *ctx, unsigned pass, uint64_t instructions);
	/* Global slack and tautness of each node or run's instruction, in the order of the machine.
	 * NULL: not asked. */
	void (*tell)(void *ctx, const struct slack_node *node, const struct slack_run *run,
		uint64_t global_slack, uint64_t tautness);
	void *ctx;
};

struct slack_counts {                 /* section 2.5 */
	uint64_t instructions, nodes; /* nodes: and further accesses, unseen lines, call records */
	uint64_t raw_edges, raw_within, raw_late;
	uint64_t removed_same_store; /* theorem 2-2 */
	uint64_t removed_in_time;    /* theorem 2-3 */
	uint64_t removed_beyond;     /* another path leads from store to load; see above */
	uint64_t kept_edges, kept_nodes;
	uint64_t spilled_bytes;
};

struct slack_static { /* a static instruction; plain ones count with the access or block they are in
		       */
	uint64_t code;
	uint64_t executed, outside; /* outside: do not lead to the endpoint */
	uint64_t least, greatest;   /* global slack, cycles */
	double sum, squares;
	uint64_t alike;           /* times within an eighth, or 8 cycles, of the time before */
	uint64_t critical_cycles; /* on the critical path */
	uint64_t critical;        /* times with global slack 0 */
	uint64_t taut_cycles;     /* greatest tautness of one execution */
	uint64_t previous;
	uint8_t kind; /* enum slack_kind */
};
struct slack_line {       /* memory whose misses and waiting are on the critical path */
	uint64_t address; /* of a line in a heap block; elsewhere of 4 bytes: variables share lines
			   */
	uint64_t site;    /* of the heap block that it is in: within the call; 0: unknown */
	uint64_t critical_cycles, times;
};
struct slack_processor {
	uint64_t critical_cycles;
	uint64_t instructions;
};

struct slack_result {
	struct slack_machine_result machine; /* processor[]: borrowed from the analysis */
	struct slack_counts counts;
	uint64_t origin, end;     /* cycles: where the graph begins; its endpoint's end */
	uint32_t endpoint;        /* processor */
	uint64_t critical_hops;   /* edges between processors on the critical path */
	uint64_t critical_cycles; /* named; end - origin when all is explained */
	uint64_t outside;         /* instructions that do not lead to the endpoint */
	struct base_histogram global, local; /* of instructions, cycles */
	struct slack_processor *processor;   /* by thread */
	struct slack_static *code;           /* most critical first */
	size_t nr_code;
	struct slack_line *line; /* most critical first */
	size_t nr_lines;
};

struct slack_analysis;
/* Reads the source twice. On success *ret owns the result; free it. ERR_USAGE: the source cannot be
 * read twice, or what slack_machine_new() says. */
enum base_status slack_analyse(const struct slack_machine_config *config,
	struct memory_source *source, const struct slack_options *options,
	struct slack_analysis **ret, struct base_err *err) BASE_MUST_CHECK;
const struct slack_result *slack_analysis_result(const struct slack_analysis *a);
struct slack_analysis *slack_analysis_free(struct slack_analysis *a);

#endif
