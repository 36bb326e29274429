/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdat.h - configuration dependent analysis: what a described machine would do with the streams
 * (seed 004, section 5 and appendices B, C).
 *
 * A machine is nodes of processors and memory banks. A processor has a data and an instruction
 * cache and perhaps two levels behind them; a node may have an interconnect cache; pages have a
 * home node by an allocation policy; a protocol keeps caches coherent. Transactions are atomic: one
 * request is done before the next begins, in the order of the steps. Unless latencies are given,
 * there is no time but the pseudo clock.
 */
#ifndef LONGPOLE_MEMORY_CDAT_H
#define LONGPOLE_MEMORY_CDAT_H

#include "base/parameter.h"
#include "memory/ciat/ciat.h"
#include "memory/order/order.h"

/* ---- configuration --------------------------------------------------------------------------- */

enum memory_cdat_network { MEMORY_CDAT_DIRECTORY, MEMORY_CDAT_SNOOPING };
enum memory_cdat_allocation {
	MEMORY_CDAT_RR1,
	MEMORY_CDAT_RR2,
	MEMORY_CDAT_ORACLE,
	MEMORY_CDAT_FIRST_TOUCH
};
enum memory_cdat_replacement { MEMORY_CDAT_LRU, MEMORY_CDAT_FIFO, MEMORY_CDAT_RANDOM };

struct memory_cdat_protocol {
	const char *name, *line;
	enum memory_cdat_network network;
	bool remote_exclusive, announced, direct, exclusive, owned;
};
const struct memory_cdat_protocol *memory_cdat_protocols(size_t *ret_nr);

struct base_parameters memory_cdat_parameters(void);

enum { MEMORY_CDAT_PROCESSORS_MAX = 1024, MEMORY_CDAT_NODES_MAX = 32 };
struct memory_cdat_config {
#define PARAM(key, preset, least, most, unit, sentence) uint64_t key;
#include "memory/cdat/cdat_parameters.def"
	const struct memory_cdat_protocol *protocol;
	enum memory_cdat_allocation allocation;
	enum memory_cdat_replacement replacement;
	bool scattered; /* thread t on node t % nodes; else nodes are filled */
	uint32_t place_of[MEMORY_CDAT_PROCESSORS_MAX]; /* of threads: node * 1024 + processor */
	uint32_t nr_mapped;                            /* 0: no explicit mapping */
};

/* All defaults; NULL: no memory. base_free() it. */
struct memory_cdat_config *memory_cdat_config_new(void);
struct memory_cdat_config *memory_cdat_config_free(struct memory_cdat_config *c);
/* An INI file: "key = value" lines under [machine]. Words: protocol, allocation (rr1, rr2, oracle,
 * first_touch), replacement (lru, fifo, random), mapping (fill, scatter, or node:processor ...). */
enum base_status memory_cdat_config_read(struct memory_cdat_config *c, const char *text,
	const char *path, struct base_err *err) BASE_MUST_CHECK;
enum base_status memory_cdat_config_set(
	struct memory_cdat_config *c, const char *assignment, struct base_err *err) BASE_MUST_CHECK;
enum base_status memory_cdat_config_check(
	const struct memory_cdat_config *c, struct base_err *err) BASE_MUST_CHECK;
struct memory_cdat_lines {
	uint64_t data, code, second,
		third; /* bytes; of a level that there is not: of that behind */
};
struct memory_cdat_lines memory_cdat_config_lines(const struct memory_cdat_config *c);
/* Has a level of caches lines of its own, smaller than the machine's? */
bool memory_cdat_config_has_parts(const struct memory_cdat_config *c);

/* ---- transactions ---------------------------------------------------------------------------- */

enum memory_cdat_code {
#define TRANSACTION(name, code, class, line) MEMORY_CDAT_##name = (code),
#include "memory/cdat/cdat_transactions.def"
	MEMORY_CDAT_starts = 91,
	MEMORY_CDAT_idles = 92,
	MEMORY_CDAT_CODES = 96,
};
enum memory_cdat_class {
	MEMORY_CDAT_REQUEST,
	MEMORY_CDAT_RESPONSE,
	MEMORY_CDAT_RETURN,
	MEMORY_CDAT_RECALL,
	MEMORY_CDAT_CACHE,
	MEMORY_CDAT_RECALL_RESPONSE
};
const char *memory_cdat_code_name(unsigned code); /* NULL: none */
enum memory_cdat_class memory_cdat_code_class(unsigned code);

enum memory_cdat_status { /* of a line, as in the traces */
	MEMORY_CDAT_IDLE = 1,
	MEMORY_CDAT_SHARED,
	MEMORY_CDAT_EXCLUSIVE,
	MEMORY_CDAT_DIRTY
};

/* Processors are numbered through all nodes; an I/O processor is -1 - node. */
struct memory_cdat_transaction {
	uint64_t clock, line; /* address of its first byte */
	unsigned code;
	int32_t requester; /* whose request or return caused it */
	int32_t from, to;  /* processors; a memory's side has the home's number in `home`, `bank` */
	uint32_t bank, home;
	enum memory_cdat_status status; /* before; requests, and returns but update_data */
	const uint64_t *sharers;        /* bit map of processors; the same */
};

/* ---- results --------------------------------------------------------------------------------- */

enum memory_cdat_stream {
	MEMORY_CDAT_DATA,
	MEMORY_CDAT_INSTRUCTIONS,
	MEMORY_CDAT_IO,
	MEMORY_CDAT_STREAMS
};

struct memory_cdat_flow { /* section 5's eight, in its order, and what is beside */
	uint64_t hits, misses, local, remote, local_memory, local_cache, remote_memory,
		remote_cache;
	uint64_t upgrades;                /* stores that hit a shared line; hits, too */
	uint64_t second_hits, third_hits; /* among the hits */
	uint64_t interconnect_hits;       /* among local_cache */
};

enum { MEMORY_CDAT_TYPES = 9 }; /* columns of the state table: codes 1 .. 6, 21, 23 (and 22) */
struct memory_cdat_state_table {
	/* [type][home: 0 local, 1 remote][copies: 0 none, 1 local, 2 home, 3 remote][status - 1] */
	uint64_t count[MEMORY_CDAT_TYPES][2][4][4];
	uint64_t remote_shared, remote_sharers; /* lines with copies elsewhere, and their number */
};

struct memory_cdat_phase {
	enum memory_phase_kind kind;
	uint64_t number, begin_clock, end_clock;
	struct memory_cdat_flow flow[MEMORY_CDAT_STREAMS];
	uint64_t transactions[MEMORY_CDAT_CODES];
	uint64_t requests, critical; /* transactions on critical paths of requests */
	uint64_t migrations;
	uint64_t replications,
		collapses; /* pages copied to all nodes that load them; stored to then */
	struct memory_cdat_state_table states;
	uint64_t *active;  /* cycles, per processor */
	uint64_t *time_ps; /* per processor; zero without latencies */
};

struct memory_cdat_result {
	uint32_t nr_processors, nr_threads;
	struct memory_cdat_phase *phase;
	size_t nr_phases;
	uint64_t phases_left_out;
	struct memory_cdat_phase total;
	uint64_t replicated_pages, replicated_written; /* pages; stores to such */
	uint64_t memory_bytes, lines;
	uint64_t checks; /* made by the monitor */
};

/* What one access met; for those who drive a machine of their own (time, criticality). */
enum memory_cdat_supplier {
	MEMORY_CDAT_FROM_CACHE, /* its own */
	MEMORY_CDAT_FROM_SECOND,
	MEMORY_CDAT_FROM_THIRD,
	MEMORY_CDAT_FROM_LOCAL_MEMORY,
	MEMORY_CDAT_FROM_LOCAL_CACHE,
	MEMORY_CDAT_FROM_REMOTE_MEMORY,
	MEMORY_CDAT_FROM_REMOTE_CACHE
};
struct memory_cdat_outcome {
	enum memory_cdat_supplier supplier;
	bool upgrade;
	int32_t owner;       /* processor whose cache supplied it; -1: none */
	uint32_t home;       /* node of the line, when there was a request */
	uint32_t critical;   /* transactions one after another */
	uint64_t latency_ps; /* beyond an instruction's cycle; by the configuration */
};

struct memory_cdat_options {
	const struct memory_ciat_page *usage; /* of the memory usage file: RR2, Oracle */
	size_t nr_usage;
	bool hpux; /* RR1: private addresses are local */
	bool distributed_io;
	bool check; /* the monitor looks at all caches after each transaction, and at each read */
	uint64_t memory_limit_bytes; /* 0: 4 GiB */
	void (*general)(void *ctx, int32_t processor, const struct memory_cdat_transaction *t);
	void (*detailed)(void *ctx, const struct memory_cdat_transaction *t);
	void *trace_ctx;
};

struct memory_cdat;
enum base_status memory_cdat_new(const struct memory_cdat_config *config, uint32_t nr_threads,
	const struct memory_cdat_options *options, struct memory_cdat **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct memory_cdat *memory_cdat_free(struct memory_cdat *c);
enum base_status memory_cdat_add(struct memory_cdat *c, const struct memory_steps *steps,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status memory_cdat_finish(struct memory_cdat *c, const struct memory_cdat_result **ret,
	struct base_err *err) BASE_MUST_CHECK;

/* One access to one line by a processor, outside of add(): kind LOAD, STORE or BLOCK (a fetch). A
 * phase must be open: memory_cdat_begin(). */
enum base_status memory_cdat_begin(struct memory_cdat *c, struct base_err *err) BASE_MUST_CHECK;
enum base_status memory_cdat_access(struct memory_cdat *c, uint32_t processor, uint64_t address,
	enum memory_item_kind kind, uint64_t clock, struct memory_cdat_outcome *ret,
	struct base_err *err) BASE_MUST_CHECK;
/* For tests: what a processor has of a line (0: nothing). */
enum memory_cdat_status memory_cdat_peek(
	const struct memory_cdat *c, uint32_t processor, uint64_t address);

/* ---- cdat_text.c, cdat_json.c ---------------------------------------------------------------- */

/* Records of appendix C, byte for byte, with a newline. */
void memory_cdat_general_line(struct base_str *out, const struct memory_cdat_transaction *t,
	uint32_t processors_per_node, uint32_t nr_processors);
void memory_cdat_detailed_line(struct base_str *out, const struct memory_cdat_transaction *t,
	uint32_t processors_per_node);
void memory_cdat_tags(struct base_str *out, const struct memory_cdat_result *r);
json_t *memory_cdat_json(
	const struct memory_cdat_result *r, const struct memory_cdat_config *config);
double memory_cdat_average_latency(const struct memory_cdat_phase *p);

#endif
