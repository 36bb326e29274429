/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_mcp.c - `longpole mcp`: the commands as tools for programs that call tools, by the Model Context Protocol (revisions 2024-11-05
 * to 2025-06-18): JSON-RPC 2.0, a message a line, on standard input and output. One call at a time; a client's
 * notifications/cancelled ends what runs, and so does a signal that
 * ends us.
 */
#include "cmd/mcp/mcp.h"

#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const struct cmd_option option[] = {
	{"read-only", 0, NULL, NULL, "offer no tool that runs a program"},
};

const struct cmd_details cmd_details_mcp = {
	.usage = "[OPTIONS]",
	.about = "Offers longpole's commands as tools to a program that calls tools (an assistant, "
		 "an editor), by the Model Context "
		 "Protocol on standard input and output. Each tool has the options of its command; "
		 "what it answers is what --json "
		 "prints. Tools that record run the program that their caller names, as this user: "
		 "--read-only leaves them out.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole mcp --read-only"},
};

/* As JSON-RPC 2.0 numbers them. */
enum mcp_error {
	MCP_ERROR_parse = -32700,
	MCP_ERROR_request = -32600,
	MCP_ERROR_method = -32601,
	MCP_ERROR_parameters = -32602,
};

struct mcp_server {
	struct mcp_input in;
	bool read_only;
};

/* What answers a request: a new reference, or NULL after mcp_refuse(). */
struct mcp_request {
	struct mcp_server *server;
	const json_t *id, *params;
	json_t *error;
};

static void mcp_refuse(struct mcp_request *r, enum mcp_error code, const char *why)
{
	r->error = json_pack("{s:i, s:s}", "code", (int)code, "message", why);
}

/* Takes `part` over. False: nobody listens. */
static bool mcp_send(const json_t *id, const char *key, json_t *part)
{
	struct base_str line = {0};
	json_t *null = json_null();
	cmd_add_json_line(&line, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id",
					 id ? (json_t *)(uintptr_t)id : null, key, part));
	const char *at = base_str_text(&line);
	bool ok = !line.failed;
	for (size_t left = line.length; ok && left;) {
		ssize_t n = write(STDOUT_FILENO, at, left);
		ok = n > 0;
		at += ok ? n : 0;
		left -= ok ? (size_t)n : 0;
	}
	base_str_fini(&line);
	return ok;
}

/* ---- methods --------------------------------------------------------------------------------- */

static json_t *mcp_initialize(struct mcp_request *r)
{
	static const char *const known[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
	const char *asked = json_string_value(json_object_get(r->params, "protocolVersion")),
		   *version = known[0];
	for (size_t i = 0; asked && i < BASE_COUNT(known); i++)
		version = strcmp(asked, known[i]) ? version : known[i];
	return json_pack("{s:s, s:{s:{}}, s:{s:s, s:s}, s:s}", "protocolVersion", version,
		"capabilities", "tools", "serverInfo", "name", "longpole", "version",
		LONGPOLE_VERSION, "instructions",
		"Record a program with 'record', read what holds it back with 'report', predict a "
		"change with 'whatif'. "
		"Predictions have intervals: say them, too.");
}

static json_t *mcp_ping(struct mcp_request *r)
{
	(void)r;
	return json_object();
}

static json_t *mcp_list(struct mcp_request *r)
{
	return mcp_tools_list(r->server->read_only);
}

/* Is the line this call's end? */
static bool mcp_ends_call(const struct mcp_call *call, const char *line)
{
	json_t *message = json_loads(line, 0, NULL);
	const char *method = json_string_value(json_object_get(message, "method"));
	bool is = method && !strcmp(method, "notifications/cancelled") &&
		  json_equal(json_object_get(json_object_get(message, "params"), "requestId"),
			  call->id);
	json_decref(message);
	return is;
}

static json_t *mcp_call_tool(struct mcp_request *r)
{
	const char *name = json_string_value(json_object_get(r->params, "name"));
	const struct mcp_tool *tool = name ? mcp_tool_find(name, r->server->read_only) : NULL;
	json_t *arguments = json_object_get(r->params, "arguments"), *none = json_object(),
	       *result = NULL;
	struct base_str why = {0};
	char **words = tool ? mcp_words(tool, arguments ? arguments : none, &why) : NULL;
	if (!tool)
		mcp_refuse(r, MCP_ERROR_parameters, "no such tool: tools/list has their names");
	else if (!words)
		mcp_refuse(r, MCP_ERROR_parameters,
			why.failed ? "out of memory" : base_str_text(&why));
	else
		result = mcp_run(&(struct mcp_call){.in = &r->server->in,
					 .is_cancelled = mcp_ends_call,
					 .id = r->id,
					 .directory = json_string_value(
						 json_object_get(arguments, "directory")),
					 .is_json = mcp_answers_json(tool)},
			words);
	mcp_words_free(words);
	json_decref(none);
	base_str_fini(&why);
	return result;
}

static const struct mcp_method {
	const char *name;
	json_t *(*answer)(struct mcp_request *r);
} mcp_methods[] = {
	{"initialize", mcp_initialize},
	{"ping", mcp_ping},
	{"tools/list", mcp_list},
	{"tools/call", mcp_call_tool},
};

/* ---- messages -------------------------------------------------------------------------------- */

static json_t *mcp_answer(struct mcp_request *r, const char *method)
{
	for (size_t i = 0; i < BASE_COUNT(mcp_methods); i++)
		if (!strcmp(mcp_methods[i].name, method))
			return mcp_methods[i].answer(r);
	mcp_refuse(r, MCP_ERROR_method, "no such method: this server offers tools only");
	return NULL;
}

/* False: nobody listens. */
static bool mcp_message(struct mcp_server *s, const char *line)
{
	json_t *message = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	const char *method = json_string_value(json_object_get(message, "method"));
	struct mcp_request r = {.server = s,
		.id = json_object_get(message, "id"),
		.params = json_object_get(message, "params")};
	bool ok = true;
	if (method && !r.id) { /* (a notification: nobody waits for an answer) */
		json_decref(message);
		return true;
	}
	json_t *result = NULL;
	if (!message)
		mcp_refuse(&r, MCP_ERROR_parse, "not JSON, or not one message a line");
	else if (!method)
		mcp_refuse(&r, MCP_ERROR_request, "no request: it has no method");
	else
		result = mcp_answer(&r, method);
	ok = result ? mcp_send(r.id, "result", result) : mcp_send(r.id, "error", r.error);
	json_decref(message);
	return ok;
}

/* Those that end us are read, so that what runs is ended first. */
static int mcp_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

int cmd_run_mcp(struct cmd *c)
{
	struct mcp_server s = {.read_only = cmd_given(c, "read-only")};
	const char *line;
	bool ok = true;
	if (c->nr_operands)
		return cmd_usage(c, "mcp takes no operands: what to do comes in on standard input");
	(void)signal(SIGPIPE, SIG_IGN); /* a client that is gone is no error */
	s.in.signals = mcp_signals();
	while (ok && ((line = mcp_line(&s.in)) || !s.in.ended) && !s.in.told_to_go)
		if (line)
			ok = !*line || mcp_message(&s, line);
		else
			mcp_read(&s.in);
	base_str_fini(&s.in.bytes);
	return CMD_OK;
}
