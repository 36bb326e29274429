/* SPDX-License-Identifier: Apache-2.0 */
/* noc_graph.h - what the verbs of `longpole noc` about packet dependency graphs share. */
#ifndef LONGPOLE_CMD_NOC_GRAPH_H
#define LONGPOLE_CMD_NOC_GRAPH_H

#include "cmd/noc/noc.h"
#include "noc/pdg/infer.h"
#include "noc/pdg/pdg.h"

#include <string.h>

/* Operands after the verb: those with a '=' are settings, the others files. */
static inline bool cmd_noc_is_setting(const char *operand)
{
	return strchr(operand, '=') != NULL;
}
/* The i-th file (from 0) after the verb; NULL: no more. */
static inline const char *cmd_noc_file(const struct cmd *c, size_t i)
{
	for (size_t k = 1; k < c->nr_operands; k++)
		if (!cmd_noc_is_setting(c->operand[k]) && !i--)
			return c->operand[k];
	return NULL;
}

/* The value of the setting KEY=VALUE, the last one given; NULL: not given. */
const char *cmd_noc_setting(const struct cmd *c, const char *key);
/* A whole number from least to most; *ret is left alone when not given. False: a message was
 * printed. */
bool cmd_noc_number(struct cmd *c, const char *key, uint64_t least, uint64_t most, uint64_t *ret);
/* One of the words; *ret: which. */
bool cmd_noc_word(
	struct cmd *c, const char *key, const char *const *word, size_t nr, unsigned *ret);
/* Refuses settings that are none of these keys. False: a message was printed. */
bool cmd_noc_only(struct cmd *c, const char *const *key, size_t nr);

/* Are packet i of both of the same nodes, for all i? */
bool cmd_noc_same_packets(const struct noc_pdg *a, const struct noc_pdg *b);
/* A line, where nobody asked for networks (on=) and not all noc_standards() come with so many
 * nodes.
 */
void cmd_noc_say_left_out(struct cmd *c, struct base_str *out, uint32_t nr_nodes);
/* Is the network among those of on=a,b,c? (All are, when that is not given.) */
bool cmd_noc_is_wanted(const struct cmd *c, const char *name);
/* Refuses names in on= that no standard network of so many nodes has. False: a message was printed.
 */
bool cmd_noc_check_networks(struct cmd *c, uint32_t nr_nodes);
/* How well an inferred graph gives its own base run; nothing where that was not checked. */
void cmd_noc_add_base_check(struct base_str *out, const struct noc_base_check *b);
/* Reads a graph or trace; NULL: a message was printed, and c->err says why. */
struct noc_pdg *cmd_noc_read(struct cmd *c, const char *path);

#endif
