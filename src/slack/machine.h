/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - a simulated multiprocessor that runs recorded streams (seed 003, section 2.6.1).
 *
 * One processor a thread: in order, one instruction a cycle, a request blocks it until its data are
 * there. Caches, coherence and homes are cdat's (memory/cdat/cdat.h); this layer adds time: latencies,
 * links that carry one message after another, lines that are on their way. The processor that is
 * first in time goes first, so all accesses have one order that keeps each program's: memory is
 * sequentially consistent.
 *
 * What a thread does is recorded, when it does it is not: threads begin when they are created in
 * the simulated machine, get a lock when its holder there has given it up (first come, first
 * served), leave a barrier when its last thread has come, a join when the other has ended. How long
 * the recorded run waited plays no part. Which path the program took does. A loop that the program
 * itself spins in has the iterations of the recorded run, unless options.waits tells what ends it:
 * then it goes round until that has happened here, and its recorded iterations are left out.
 *
 * What the machine did is told to a sink as nodes of a dependence graph (seed 003, section 2.3.2):
 * an instruction, or a further access of the same instruction. Plain instructions come in runs.
 *
 * Cycles count from 0. Memory grows with the touched footprint of the program.
 */
#ifndef LONGPOLE_SLACK_MACHINE_H
#define LONGPOLE_SLACK_MACHINE_H

#include "memory/cdat/cdat.h"

struct base_parameters slack_parameters(void);

struct slack_machine_config {
#define PARAM(key, preset, least, most, unit, sentence) uint64_t key;
#include "slack/machine_parameters.def"
	struct memory_cdat_config *cdat; /* owned; its latencies are not used */
};
/* Table 2-1 for that many processors, each a node of its own (beyond 32: several a node): MOSI over
 * a broadcast network. NULL: no memory. */
struct slack_machine_config *slack_machine_config_new(uint32_t nr_processors);
struct slack_machine_config *slack_machine_config_free(struct slack_machine_config *c);
/* "key=value", of our table or of cdat's. */
enum base_status slack_machine_config_set(struct slack_machine_config *c, const char *assignment,
	struct base_err *err) BASE_MUST_CHECK;
/* An INI file with "key = value" lines under [machine]. */
enum base_status slack_machine_config_read(struct slack_machine_config *c, const char *text,
	const char *path, struct base_err *err) BASE_MUST_CHECK;

/* ---- what is told ---------------------------------------------------------------------------- */

enum slack_kind {
	SLACK_PLAIN, /* no access */
	SLACK_LOAD,
	SLACK_STORE,
	SLACK_ATOMIC,
	SLACK_UNSEEN, /* a line of a range that unseen code accesses: no instruction of the stream
		       */
	SLACK_LOCK,
	SLACK_UNLOCK,
	SLACK_BARRIER, /* arrives; the last one opens it */
	SLACK_LEAVE,   /* leaves a barrier */
	SLACK_SIGNAL,
	SLACK_WAIT, /* for a signal or a semaphore */
	SLACK_CREATE,
	SLACK_BEGIN,
	SLACK_END,
	SLACK_JOIN,
	SLACK_MARK, /* a marker; address: its number */
	SLACK_KINDS
};
const char *slack_kind_name(enum slack_kind k);

/* Which node a value came from. `order` numbers the nodes that are not plain, in the order in which
 * the machine executed them: it is the node's name. From 1; 0: no node. */
struct slack_producer {
	uint64_t order;
	uint64_t complete; /* the arrival time of the edge from it */
	uint32_t processor;
};

struct slack_node {
	uint64_t order;
	uint64_t ready; /* when the processor was through with the node before */
	uint64_t issue; /* when the program order edge arrives: later when code had to be fetched */
	uint64_t start; /* when the last edge arrives */
	uint64_t complete; /* the next one of this processor is ready */
	uint64_t code;     /* of the instruction, 0: unknown; of a call: within the calling one */
	uint64_t address;  /* of the access, or of the object synchronised on */
	uint32_t processor;
	uint8_t instructions; /* 1, or 0: not the first access of its instruction, or a call record
			       */
	uint8_t kind;         /* enum slack_kind */
	bool first;           /* of its processor: there is no program order edge */
	const struct slack_producer *producer; /* of edges to it, no two of one node */
	uint32_t nr_producers;
};

struct slack_run { /* plain instructions, a cycle each, from issue on */
	uint64_t ready, issue, count, code;
	uint32_t processor;
	bool first;
};

struct slack_sink {
	enum base_status (*run)(void *ctx, const struct slack_run *r, struct base_err *err);
	enum base_status (*node)(void *ctx, const struct slack_node *n, struct base_err *err);
	void *ctx;
	/* A basic block of `count` instructions begins; what comes next of this processor is in it.
	 */
	enum base_status (*block)(void *ctx, uint32_t processor, uint64_t address,
		uint32_t size_bytes, uint64_t count, struct base_err *err);
	/* A heap block begins to be, at a call that `code` is within. */
	enum base_status (*allocated)(void *ctx, uint64_t address, uint64_t size_bytes,
		uint64_t code, struct base_err *err);
};

/* ---- the machine ----------------------------------------------------------------------------- */

struct slack_spins;
struct slack_waits;
struct slack_machine_options {
	/* How many of `count` instructions of a thread, from its `first` one on (from 0), are known
	 * to only spin: they are counted apart. NULL: not asked. */
	uint64_t (*spinning)(void *ctx, uint32_t thread, uint64_t first, uint64_t count);
	void *spinning_ctx;
	/* Where threads spin, for low power (section 3.5.2.2). NULL: not asked. Must outlive the
	 * machine. */
	const struct slack_spins *spins;
	/* What ends the waits of such loops: they are waited anew. NULL: as they were recorded.
	 * Must outlive the machine. */
	const struct slack_waits *waits;
	uint64_t memory_limit_bytes; /* of coherence and of last writers, each; 0: 4 GiB */
	uint64_t until;              /* stop when all have reached that cycle; 0: at the end */
};

struct slack_processor_result {
	uint64_t begin, end;             /* cycles: its first node issued, its last one completed */
	uint64_t instructions, spinning; /* spinning: of all */
	uint64_t respun, rewaits;   /* of spinning: in rounds of waits that were waited anew; waits
				       that took any */
	uint64_t nodes;             /* that are not plain */
	uint64_t accesses, misses;  /* of data: lines accessed; beyond its own caches */
	uint64_t miss_cycles;       /* waited for lines, contention included */
	uint64_t fetch_cycles;      /* for code */
	uint64_t contention_cycles; /* of both: for links, and for lines on their way */
	uint64_t waited_cycles; /* at locks, barriers, joins, signals: a spinning thread would have
				   executed an instruction in each */
	uint64_t waits;
	/* In loops that only wait, with options.spins. Of these a processor with a load address
	 * cache would be in low power; how often it would leave that because of a store to a line
	 * that it polls, and how often of these the store was to another word of the line. */
	uint64_t spun_cycles;
	uint64_t low_power_cycles, low_power_ends, low_power_false;
};
struct slack_machine_result {
	uint32_t nr_processors;
	struct slack_processor_result *processor; /* by thread */
	uint64_t cycles;                          /* when the last one ended */
	uint64_t instructions, spinning, respun, rewaits, nodes;
	uint64_t parallel_from; /* the first thread was created; 0: never */
	uint64_t forced;        /* waits that were ended because nobody could go on */
	uint64_t bad_calls;     /* call records that make no sense here */
	uint64_t omp_regions;   /* whose ends the workers' streams do not show */
	uint64_t memory_bytes;
	uint64_t messages, broadcasts;
};

struct slack_machine;
/* The source, config and sink's context stay the caller's. ERR_USAGE: a source without
 * instructions, or more threads than processors. */
enum base_status slack_machine_new(const struct slack_machine_config *config,
	struct memory_source *source, const struct slack_machine_options *options,
	const struct slack_sink *sink, struct slack_machine **ret,
	struct base_err *err) BASE_MUST_CHECK;
/* Goes on for about so many nodes. BASE_END: all is done. */
enum base_status slack_machine_run(
	struct slack_machine *m, uint64_t nr_nodes, struct base_err *err) BASE_MUST_CHECK;
/* Valid until _free. */
const struct slack_machine_result *slack_machine_result(struct slack_machine *m);
struct slack_machine *slack_machine_free(struct slack_machine *m);

/* Both ends of a run with the same source: rewinds it and runs all again into another sink; the
 * same nodes get the same numbers. */
enum base_status slack_machine_again(struct slack_machine **m, const struct slack_sink *sink,
	struct base_err *err) BASE_MUST_CHECK;

#endif
