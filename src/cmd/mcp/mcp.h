/* SPDX-License-Identifier: Apache-2.0 */
/* mcp.h - what `longpole mcp` is made of: tools (mcp_tools.c), the program behind a call (mcp_run.c), the protocol (cmd_mcp.c). */
#ifndef LONGPOLE_CMD_MCP_H
#define LONGPOLE_CMD_MCP_H

#include "cmd/cmd.h"

struct mcp_server;
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

/* What comes in on standard input, a message a line; and signals to end. */
struct mcp_input {
	struct base_str bytes;
	size_t begin;    /* of what was not taken yet */
	bool skips;      /* the rest of a line that was too long */
	int signals;     /* a signalfd of those that end us */
	bool ended;      /* nothing more comes in */
	bool told_to_go; /* by a signal: what runs ends, too */
};
enum { MCP_LINE_MAX_BYTES = 16 << 20 };
/* A line, without its end. text NULL: it was too long, and is passed over. */
struct mcp_line {
	char *text;
	size_t length; /* bytes */
};
/* The next line, valid until the next call; what ends the input ends a line, too. False: there is no whole one yet. */
bool mcp_next_line(struct mcp_input *in, struct mcp_line *ret);
/* Reads more, if need be waits for it. */
void mcp_read(struct mcp_input *in);

/* What a line that comes in while a program runs is to it. */
enum mcp_meanwhile {
	MCP_LATER,    /* it waits for its turn */
	MCP_ANSWERED, /* it had its answer, and is forgotten */
	MCP_CANCELS,  /* it ends the program */
};

/* Runs it, until it has ended; `meanwhile` sees once each line that comes in. A program that does not end when it is told to is
 * killed after MCP_GRACE_MS. Returns the content of the result, for which see the protocol's tools/call, or NULL: it was cancelled, and nobody waits for one. */
enum { MCP_GRACE_MS = 10000 };
struct mcp_call {
	struct mcp_input *in;
	enum mcp_meanwhile (*meanwhile)(const struct mcp_call *call, const struct mcp_line *line);
	struct mcp_server *server; /* for `meanwhile` */
	const json_t *id;
	const char *directory; /* NULL: ours */
	bool is_json;
};
json_t *mcp_run(const struct mcp_call *call, char *const *words);

#endif
