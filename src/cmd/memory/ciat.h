/* SPDX-License-Identifier: Apache-2.0 */
/* ciat.h - what `longpole ciat` says of data objects and functions. */
#ifndef LONGPOLE_CMD_CIAT_H
#define LONGPOLE_CMD_CIAT_H

#include "cmd/memory/slack.h"
#include "memory/ciat/ciat.h"

enum ciat_kind {
	CIAT_VARIABLE,
	CIAT_HEAP,
	CIAT_MAPPING,
	CIAT_SECTION, /* of a file: variables that have no name */
	CIAT_UNNAMED,
	CIAT_FUNCTION
};

struct ciat_row { /* a data object, all that one call allocated, or a function */
	char *name;
	enum ciat_kind kind;
	uint64_t accesses;
	uint64_t loads, stores, raw;                  /* functions */
	uint64_t code;                                /* 0: not known */
	uint64_t true_misses, false_misses, upgrades; /* of its lines, from sites */
	uint64_t lines_moved, last_line;              /* lines with any of these */
	uint64_t readers_loads; /* of instructions that loaded what another thread had changed */
	uint64_t blocks, allocated_bytes; /* heap, mapping */
};
struct ciat_table { /* most sharing misses and upgrades first, then most accesses */
	struct ciat_row *row;
	size_t nr, capacity;
	struct base_map by_name;
	struct base_strtab *texts;
};

enum base_status ciat_objects(struct ciat_table *ret, struct cmd_slack_names *n,
	const struct memory_ciat *c, const struct memory_ciat_result *r) BASE_MUST_CHECK;
/* Needs memory_ciat_options.with_functions. */
enum base_status ciat_functions(struct ciat_table *ret, struct cmd_slack_names *n,
	const struct memory_ciat_result *r) BASE_MUST_CHECK;
void ciat_table_fini(struct ciat_table *t);

void ciat_objects_text(struct base_str *out, const struct ciat_table *t, size_t rows);
void ciat_functions_text(struct base_str *out, const struct ciat_table *t, size_t rows);
json_t *ciat_objects_json(const struct ciat_table *t);
json_t *ciat_functions_json(const struct ciat_table *t);
/* The memory that a site's access was in: "counters+0x8", "heap block from make() a.c:3, byte 16".
 * False: it has no name. */
bool ciat_site_object(struct base_str *out, struct cmd_slack_names *n,
	const struct memory_ciat_result *r, const struct memory_ciat_site *site);

/* The same of an address that is in no allocated block. */
bool ciat_data_at(struct base_str *out, struct cmd_slack_names *n, uint64_t address);
/* Code that has no address: "unknown instructions"; in streams of ours, what is not an instruction
 * of the program. */
const char *ciat_unseen_code(const struct cmd_slack_names *n);

#endif
