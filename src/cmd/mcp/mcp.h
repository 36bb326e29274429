/* SPDX-License-Identifier: Apache-2.0 */
/* mcp.h - what `longpole mcp` is made of: tools (mcp_tools.c), the program behind a call (mcp_run.c), the protocol (cmd_mcp.c). */
#ifndef LONGPOLE_CMD_MCP_H
#define LONGPOLE_CMD_MCP_H

#include "cmd/cmd.h"

struct mcp_tool {
	const char *command, *document;
	bool runs; /* a program that its caller names */
};

/* What it offers: `tools` of tools/list; without those that run programs if read_only. */
json_t *mcp_tools_list(bool read_only);
/* NULL: there is no such tool. */
const struct mcp_tool *mcp_tool_find(const char *name, bool read_only);

bool mcp_answers_json(const struct mcp_tool *t); /* else what it says is for people */
/* The command line of a call: an array of strings, ended by NULL, that mcp_words_free() frees. NULL:
 * the arguments are wrong, *ret_why says how, in a sentence for the caller. */
char **mcp_words(const struct mcp_tool *t, const json_t *arguments, struct base_str *ret_why);
void mcp_words_free(char **words);

/* What comes in on standard input, a message a line; and whoever tells us to end. */
struct mcp_input {
	struct base_str bytes;
	size_t begin;    /* of what was not taken yet */
	int signals;     /* a signalfd of those that end us */
	bool ended;      /* nothing more comes in */
	bool told_to_go; /* by a signal: what runs ends, too */
};
enum { MCP_LINE_MAX_BYTES = 16 << 20 };
/* The next line, without its end, valid until the next call. NULL: there is no whole one yet. */
const char *mcp_line(struct mcp_input *in);
/* Reads more, if need be waits for it. */
void mcp_read(struct mcp_input *in);

/* Runs it, until it has ended. Meanwhile `is_cancelled` is asked of each line that comes in; what it
 * says yes to ends the program. Returns the content of the result, for which
 * see the protocol's tools/call. */
struct mcp_call {
	struct mcp_input *in;
	bool (*is_cancelled)(const struct mcp_call *call, const char *line);
	const json_t *id;
	const char *directory; /* NULL: ours */
	bool is_json;
};
json_t *mcp_run(const struct mcp_call *call, char *const *words);

#endif
