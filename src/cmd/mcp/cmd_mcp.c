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

/* What answers a request: a new reference. NULL after mcp_refuse(), or where nobody waits for an answer. */
struct mcp_request {
	struct mcp_server *server;
	const json_t *id, *params;
	json_t *error;
};

static void mcp_refuse(struct mcp_request *r, enum mcp_error code, const char *why)
{
	r->error = json_pack("{s:i, s:s}", "code", (int)code, "message", why);
}

/* Takes `message` over. False: nobody listens. */
static bool mcp_send(json_t *message)
{
	struct base_str line = {0};
	cmd_add_json_line(&line, message);
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

static json_t *mcp_answer(struct mcp_server *s, const json_t *message);

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

static json_t *mcp_parse(const struct mcp_line *line)
{
	return json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
}

static bool mcp_is(const json_t *message, const char *method)
{
	const char *is = json_string_value(json_object_get(message, "method"));
	return is && !strcmp(is, method);
}

/* Is the line this call's end? Or one of those who ask whether we are there, which a call of hours does not keep waiting? */
static enum mcp_meanwhile mcp_meanwhile(const struct mcp_call *call, const struct mcp_line *line)
{
	json_t *message = mcp_parse(line);
	enum mcp_meanwhile is = MCP_LATER;
	if (mcp_is(message, "notifications/cancelled")) {
		const json_t *which =
			json_object_get(json_object_get(message, "params"), "requestId");
		is = which && json_equal(which, call->id) ? MCP_CANCELS : MCP_LATER;
	} else if (mcp_is(message, "ping")) {
		json_t *answer = mcp_answer(call->server, message);
		if (answer)
			(void)mcp_send(answer);
		is = MCP_ANSWERED;
	}
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
					 .meanwhile = mcp_meanwhile,
					 .server = r->server,
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

static json_t *mcp_ask(struct mcp_request *r, const char *method)
{
	for (size_t i = 0; i < BASE_COUNT(mcp_methods); i++)
		if (!strcmp(mcp_methods[i].name, method))
			return mcp_methods[i].answer(r);
	mcp_refuse(r, MCP_ERROR_method, "no such method: this server offers tools only");
	return NULL;
}

/* The message that answers r: its result, or its error; takes `result` over. NULL: nobody waits for one. */
static json_t *mcp_reply(struct mcp_request *r, json_t *result)
{
	json_t *part = result ? result : r->error, *null = json_null();
	if (!part)
		return NULL;
	return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id",
		r->id ? (json_t *)(uintptr_t)r->id : null, result ? "result" : "error", part);
}

static json_t *mcp_refusal(enum mcp_error code, const char *why)
{
	struct mcp_request r = {0};
	mcp_refuse(&r, code, why);
	return mcp_reply(&r, NULL);
}

/* What answers one message, or NULL: a notification has no answer, and neither has an answer. */
static json_t *mcp_answer(struct mcp_server *s, const json_t *message)
{
	const json_t *method = json_object_get(message, "method"),
		     *id = json_object_get(message, "id");
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	struct mcp_request r = {.server = s, .params = json_object_get(message, "params")};
	if (!json_is_object(message))
		mcp_refuse(&r, MCP_ERROR_request, "no request: it is no object");
	else if (id && !json_is_string(id) && !json_is_number(id))
		mcp_refuse(&r, MCP_ERROR_request, "no request: its id is no string and no number");
	else if (!method &&
		 (json_object_get(message, "result") || json_object_get(message, "error")))
		return NULL;
	else if (!json_is_string(method))
		mcp_refuse(&r, MCP_ERROR_request, "no request: it has no method");
	else if (!version || strcmp(version, "2.0") != 0)
		mcp_refuse(&r, MCP_ERROR_request, "no request: 'jsonrpc' is not \"2.0\"");
	else if (!id)
		return NULL;
	if (json_is_string(id) || json_is_number(id))
		r.id = id;
	return mcp_reply(&r, r.error ? NULL : mcp_ask(&r, json_string_value(method)));
}

/* The answers of a batch (JSON-RPC 2.0, section 6; the revision 2025-03-26 has them), or NULL: there is none. */
static json_t *mcp_answer_batch(struct mcp_server *s, const json_t *batch)
{
	if (!json_array_size(batch))
		return mcp_refusal(MCP_ERROR_request, "no request: the list is empty");
	json_t *answers = json_array(), *one;
	size_t i;
	json_array_foreach(batch, i, one)
	{
		json_t *answer = mcp_answer(s, one);
		if (answer)
			json_array_append_new(answers, answer);
	}
	if (json_array_size(answers))
		return answers;
	json_decref(answers);
	return NULL;
}

/* False: nobody listens. */
static bool mcp_message(struct mcp_server *s, const struct mcp_line *line)
{
	if (line->text && strspn(line->text, " \t\r") == line->length)
		return true;
	json_t *message = line->text ? mcp_parse(line) : NULL, *answer;
	char why[80];
	if (!line->text) {
		base_format(why, sizeof why, "the message is longer than %d MiB",
			MCP_LINE_MAX_BYTES >> 20);
		answer = mcp_refusal(MCP_ERROR_request, why);
	} else if (!message) {
		answer = mcp_refusal(MCP_ERROR_parse, "not JSON, or not one message a line");
	} else {
		answer = json_is_array(message) ? mcp_answer_batch(s, message)
						: mcp_answer(s, message);
	}
	json_decref(message);
	return !answer || mcp_send(answer);
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
	struct mcp_line line;
	bool ok = true;
	if (c->nr_operands)
		return cmd_usage(c, "mcp takes no operands: what to do comes in on standard input");
	(void)signal(SIGPIPE, SIG_IGN); /* a client that is gone is no error */
	s.in.signals = mcp_signals();
	while (ok && !s.in.told_to_go) {
		if (mcp_next_line(&s.in, &line))
			ok = mcp_message(&s, &line);
		else if (s.in.ended)
			break;
		else
			mcp_read(&s.in);
	}
	base_str_fini(&s.in.bytes);
	return CMD_OK;
}
