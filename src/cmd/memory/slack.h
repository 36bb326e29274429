/* SPDX-License-Identifier: Apache-2.0 */
/* slack.h - what `longpole slack` prints; names of code and data from the program's files. */
#ifndef LONGPOLE_CMD_SLACK_H
#define LONGPOLE_CMD_SLACK_H

#include "cmd/memory/streams.h"
#include "slack/fields.h"
#include "slack/slack.h"
#include "slack/spins.h"
#include "slack/waits.h"
#include "symbol/symbol.h"

#include <jansson.h>

struct cmd_slack_named { /* sums by name */
	char *name;
	uint64_t critical_cycles, executed, least, taut_cycles, alike;
	double sum;
};
struct cmd_slack_file {
	char *path;
	struct symbol_file *symbols;
};
struct cmd_slack_image {  /* a file where it is mapped */
	const char *path; /* the source's */
	uint64_t bias;    /* mapped minus linked addresses */
	struct symbol_file *symbols;
};
/* What instructions do to registers: ctx of cmd_slack_decode(). */
struct cmd_slack_decoder {
	const struct memory_source *source;
	struct cmd_slack_code *file;
	size_t nr_files, files_capacity;
};
bool cmd_slack_decode(void *ctx, uint64_t code, struct slack_registers *ret);
/* The program's code there, as its file has it; NULL: it has not. */
const uint8_t *cmd_slack_bytes(
	struct cmd_slack_decoder *d, const struct memory_linked *at, size_t *ret_size);
void cmd_slack_decoder_fini(struct cmd_slack_decoder *d);

struct cmd_slack_type {              /* of what a call allocates */
	struct symbol_file *symbols; /* NULL: not known */
	struct symbol_type type;
};
struct cmd_slack_names {
	const struct memory_source *source;
	struct cmd_slack_file *file;
	size_t nr_files, files_capacity;
	struct cmd_slack_image *image;
	size_t nr_images, images_capacity, nr_modules; /* of the source, that are in image[] */
	struct cmd_slack_decoder decoder;
	struct base_map type_of; /* code that allocates -> index */
	struct cmd_slack_type *type;
	size_t nr_types, types_capacity;
};
void cmd_slack_names_fini(struct cmd_slack_names *n);

enum cmd_slack_by { CMD_SLACK_FUNCTION, CMD_SLACK_LINE, CMD_SLACK_INSTRUCTION, CMD_SLACK_DATA };
/* "function", "file:line", "function+0x12 file:line", "object"; addresses where there is no name.
 */
void cmd_slack_name(
	struct cmd_slack_names *n, enum cmd_slack_by by, uint64_t address, struct base_str *out);
/* The data object at an address, "object+0x8"; false: it has no name. */
bool cmd_slack_data_at(struct cmd_slack_names *n, uint64_t address, struct base_str *out);
/* The same for sections, "prog .bss"; the name without its file's is borrowed likewise. */
bool cmd_slack_section(struct cmd_slack_names *n, uint64_t address, struct symbol_variable *ret,
	const char **ret_path);
/* Adds "prog .bss". */
void cmd_slack_section_name(struct base_str *out, const char *path, const char *section);
/* "heap block from make() prog.c:31", by the call that allocated it. */
void cmd_slack_heap(struct cmd_slack_names *n, uint64_t site, struct base_str *out);
/* ---- slack_types.c: "stats[3].hits", of what is `offset` bytes into a block of `block_bytes` that
 * the call at `site` allocates: when a variable that is given the block says what it points to.
 * False: none does. */
bool cmd_slack_heap_member(struct cmd_slack_names *n, uint64_t site, uint64_t block_bytes,
	uint64_t offset, struct base_str *out);
void cmd_slack_types_fini(struct cmd_slack_names *n);
/* Where code is linked, and its file's symbols; NULL: not known. */
struct symbol_file *cmd_slack_symbols(
	struct cmd_slack_names *n, uint64_t code, struct memory_linked *ret);
/* The first variable that ends behind `address`, of any module: it covers it, or is the next one.
 * Its address and size are as mapped; the name is borrowed until fini. False: none. */
bool cmd_slack_variable(struct cmd_slack_names *n, uint64_t address, struct symbol_variable *ret);
/* A name for memory_names; its texts are borrowed until fini. */
bool cmd_slack_place(void *names, uint64_t address, bool code, struct memory_place *ret);
/* Sums over static instructions or lines, most critical first. NULL: nothing, or no memory. */
struct cmd_slack_named *cmd_slack_group(struct cmd_slack_names *n, const struct slack_result *r,
	enum cmd_slack_by by, size_t *ret_nr);
void cmd_slack_group_free(struct cmd_slack_named *g, size_t nr);

struct cmd_slack_view {
	const char *trace;
	const struct memory_source *source;
	const struct slack_machine_config *config;
	const struct slack_options *options;
	bool is_in_order;
	const struct slack_result *result;        /* NULL: out of order */
	const struct slack_fields_result *fields; /* NULL: in order */
	const struct slack_core *core;
	const struct slack_spins *spins; /* NULL: not asked for */
	const struct slack_waits *waits; /* NULL: loops go round as they were recorded */
	struct cmd_slack_names *names;
	size_t rows;
};
void cmd_slack_text(struct base_str *out, const struct cmd_slack_view *v);
json_t *cmd_slack_json(const struct cmd_slack_view *v);
extern const struct base_table cmd_slack_document;
/* ---- slack_spins.c: nothing when v->spins is NULL */
void cmd_slack_spins_text(struct base_str *out, const struct cmd_slack_view *v);
/* Those with most instructions first; the caller frees the list. NULL: no memory. */
const struct slack_spin_loop **cmd_slack_loops(const struct slack_spins *s);
/* ---- slack_fields.c: of the out-of-order model */
void cmd_slack_fields_text(struct base_str *out, const struct cmd_slack_view *v);

#endif
