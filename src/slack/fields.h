/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h - the same streams on out-of-order processors: the graph of B. Fields et al. ("Focusing
 * processor policies via critical-path prediction", ISCA 2001; seed 003, section 2.3.1), with edges
 * between processors.
 *
 * Each instruction is three nodes: dispatch D, execute E, commit C. Edges, and their lengths in
 * cycles:
 *	D(i-1) > D(i)       0                  in-order dispatch
 *	D(i-width) > D(i)   1                  finite width
 *	C(i-window) > D(i)  0                  finite reorder buffer
 *	E(b) > D(i)         latency + penalty  i follows the mispredicted branch b
 *	D(i) > E(i)         1
 *	E(p) > E(i)         latency of p       i reads a register or memory that p wrote
 *	E(i) > C(i)         latency
 *	C(i-1) > C(i)       0                  in-order commit
 *	C(i-width) > C(i)   1                  finite width
 * Atomic accesses and calls of synchronisation execute alone: C(i-1) > E(i) 0, E(i) > D(i+1)
 * latency.
 *
 * What comes from the in-order machine (machine.h): the latency of each access, and the writer of
 * each value read; so caches and network are those of the in-order run's interleaving. An
 * instruction without an access takes a cycle. Functional units and issue bandwidth are unlimited.
 * Memory stays sequentially consistent in the way that speculative processors keep it: accesses
 * overlap, commit is in order and waits for stores.
 *
 * Registers come from decode(), which reads the program's code; without it there are only memory
 * dependences, and the times are too good.
 *
 * The graph is kept whole, so its length is limited: the first `most` instructions after the
 * beginning of the graph, 60 bytes and 8 for each edge.
 */
#ifndef LONGPOLE_SLACK_FIELDS_H
#define LONGPOLE_SLACK_FIELDS_H

#include "slack/slack.h"

enum slack_branch {
	SLACK_BRANCH_NONE,
	SLACK_BRANCH_DIRECT, /* and return: predicted rightly */
	SLACK_BRANCH_CONDITIONAL,
	SLACK_BRANCH_INDIRECT
};
struct slack_registers {        /* of one static instruction */
	uint64_t reads, writes; /* a bit a register, as decode() likes */
	uint64_t keeps;         /* written in part, or maybe not: the rest stays (spins.h) */
	uint64_t stored;        /* of an exchange: registers that what it stores is made of */
	uint64_t steps;         /* the register that it changes by a constant; 0: it does not */
	uint8_t length;         /* bytes */
	uint8_t branch;         /* enum slack_branch */
	bool loads, stores;     /* accesses memory */
	bool exchanges;         /* with one word of memory: xchg, cmpxchg */
	bool compares;          /* registers and constants, and nothing else */
	bool outside;           /* does or reads something else: calls, time stamps, devices */
};

struct slack_core {
	uint32_t window; /* instructions in the reorder buffer, 1 or more */
	uint32_t width;  /* dispatched in a cycle; the same for commit */
	uint32_t penalty_cycles;
	uint64_t most; /* instructions; 0: 2^21 */
	/* What the instruction at `code` (an address of the streams) reads and writes. False: not
	 * known. NULL: nothing is. */
	bool (*decode)(void *ctx, uint64_t code, struct slack_registers *ret);
	void *decode_ctx;
	/* Branches: gshare with 2^12 counters of 2 bits, a last target for each indirect one. */
	bool perfect_branches;
};

enum slack_cause { /* what the critical path's cycles are; rows of fields_causes.def */
#define CAUSE(name, line) SLACK_CAUSE_##name,
#include "slack/fields_causes.def"
	SLACK_CAUSES
};
const char *slack_cause_name(enum slack_cause c);
const char *slack_cause_line(enum slack_cause c);

struct slack_fields_result {
	uint64_t instructions, ops, edges;
	uint64_t cycles;          /* of the out-of-order processors, these instructions */
	uint64_t in_order_cycles; /* of the in-order machine, the same */
	uint64_t branches, mispredicted, unknown; /* unknown: instructions not decoded */
	uint64_t cause_cycles[SLACK_CAUSES];      /* add up to `cycles` */
	bool cut;                                 /* there were more instructions */
	struct base_histogram slack;              /* of E, of instructions */
	struct slack_static *code; /* least, greatest, sum, squares, critical, executed, alike,
				      critical_cycles; most critical first */
	size_t nr_code;
};

struct slack_fields;
/* Runs the machine once. options: from_parallel, from_marker, machine, progress count. */
enum base_status slack_fields_new(const struct slack_machine_config *config,
	struct memory_source *source, const struct slack_options *options,
	const struct slack_core *core, struct slack_fields **ret,
	struct base_err *err) BASE_MUST_CHECK;
const struct slack_fields_result *slack_fields_result(const struct slack_fields *f);
/* For tests: the graph again, with E of one op `by` cycles later: its end. *ret_slack: of that E.
 */
uint64_t slack_fields_again(struct slack_fields *f, uint64_t op, uint64_t by, uint64_t *ret_slack);
struct slack_fields *slack_fields_free(struct slack_fields *f);

#endif
