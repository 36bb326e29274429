/* SPDX-License-Identifier: Apache-2.0 */
/* fields_private.h - the out-of-order graph in memory. Private to the layer. */
#ifndef LONGPOLE_SLACK_FIELDS_PRIVATE_H
#define LONGPOLE_SLACK_FIELDS_PRIVATE_H

#include "slack/fields.h"
#include "slack/private.h"

enum { OP_NONE = UINT32_MAX, REGISTERS = 64, GSHARE_BITS = 12, TARGETS = 512 };

struct op {
	uint64_t code;
	uint64_t d, e, c; /* times; then slack of E stays in `slack` */
	uint64_t slack;
	uint32_t first_edge, number; /* number: on its processor */
	uint32_t latency;
	uint32_t redirect; /* the mispredicted branch or lonely op that it follows; OP_NONE */
	uint16_t processor;
	uint8_t kind, nr_edges;
	bool counts, alone, mispredicted;
};
struct block_template {
	uint64_t address;
	uint32_t size_bytes, first, nr; /* in registers[] */
};

struct core_state {   /* a processor */
	uint32_t *op; /* by number */
	size_t nr, capacity;
	uint32_t writer[REGISTERS];
	uint32_t left; /* instructions of the block still to come */
	uint64_t block, block_end, last_code;
	uint8_t last_branch;
	uint32_t history, redirect;
	uint8_t *counter; /* 1 << GSHARE_BITS */
	uint64_t *target;
};

struct slack_fields {
	struct slack_core core;
	struct slack_options options;
	struct slack_fields_result result;
	struct slack_machine *machine;
	struct op *op;
	size_t nr, capacity;
	uint32_t *edge; /* producers */
	size_t nr_edges, edges_capacity;
	uint32_t *by_order; /* + 1 */
	size_t orders, orders_capacity;
	uint64_t first_order, origin; /* of the graph: order and cycle */
	struct core_state *state;
	uint32_t nr_processors;
	struct block_template *block;
	size_t nr_blocks, blocks_capacity;
	struct base_map blocks, codes;
	struct slack_registers *registers;
	bool *known;
	size_t nr_registers, registers_capacity, known_capacity, code_capacity;
	uint64_t *commit_slack, *dispatch_slack; /* while going backward */
	uint64_t end;
	bool begun;
};

/* ---- fields_build.c */
enum base_status slack_fields_build(struct slack_fields *f,
	struct slack_machine_config const *config, struct memory_source *source,
	struct base_err *err);

#endif
