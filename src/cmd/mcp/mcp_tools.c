/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.c - the tools of `longpole mcp`: commands and their options, from the tables of --help. */
#include "base/column.h"
#include "cmd/mcp/mcp.h"

#include <string.h>

static const struct mcp_tool mcp_tools[] = {
#define X(command, document, runs) {#command, document, runs},
#include "cmd/mcp/mcp_tools.def"
#undef X
};

/* Options that say how a terminal shows it, or where it goes: the answer is the result. */
static bool mcp_is_offered(const struct cmd_option *o)
{
	static const char *const not [] = {
		"json", "color", "progress", "quiet", "help", "pager", "html", "watch"};
	for (size_t i = 0; i < BASE_COUNT(not ); i++)
		if (!strcmp(o->name, not [i]))
			return false;
	return o->doc != NULL;
}

static bool mcp_takes_program(const struct cmd_spec *spec)
{
	return spec->flags & (CMD_PROGRAM | CMD_OR_PROGRAM);
}

static json_t *mcp_text_property(const char *doc)
{
	return json_pack("{s:s, s:s}", "type", "string", "description", doc);
}

static json_t *mcp_list_property(const char *doc)
{
	return json_pack("{s:s, s:{s:s}, s:s}", "type", "array", "items", "type", "string",
		"description", doc);
}

static json_t *mcp_option_property(const struct cmd_option *o)
{
	struct base_str doc = {0};
	cmd_add_option_doc(&doc, o);
	json_t *j = o->value ? json_pack("{s:[s, s, s], s:{s:s}, s:s}", "type", "string", "number",
				       "array", "items", "type", "string", "description",
				       base_str_text(&doc))
			     : json_pack("{s:s, s:s}", "type", "boolean", "description",
				       base_str_text(&doc));
	base_str_fini(&doc);
	return j;
}

static json_t *mcp_input_schema(const struct cmd_spec *spec)
{
	json_t *properties = json_object(), *required = json_array();
	const struct cmd_option *o;
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++)
		if (mcp_is_offered(o))
			json_object_set_new(properties, o->name, mcp_option_property(o));
	if (spec->flags & CMD_READS_TRACE)
		json_object_set_new(properties, "trace",
			mcp_text_property(
				"path of the trace; without it the newest *.lpt of the directory"));
	if (mcp_takes_program(spec))
		json_object_set_new(properties, "program",
			mcp_list_property("the program to run, and its arguments"));
	if (spec->flags & CMD_PROGRAM)
		json_array_append_new(required, json_string("program"));
	else
		json_object_set_new(
			properties, "operands", mcp_list_property(spec->details->usage));
	json_object_set_new(properties, "directory",
		mcp_text_property(
			"where the command runs; without it where the server was started"));
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
		"required", required, "additionalProperties", 0);
}

const struct mcp_tool *mcp_tool_find(const char *name, bool read_only)
{
	for (size_t i = 0; i < BASE_COUNT(mcp_tools); i++)
		if (!strcmp(mcp_tools[i].command, name) && !(read_only && mcp_tools[i].runs))
			return &mcp_tools[i];
	return NULL;
}

static json_t *mcp_tool_json(const struct mcp_tool *t)
{
	const struct cmd_spec *spec = cmd_find(t->command);
	const struct base_table *document = cmd_document(t->document);
	struct base_str about = {0};
	base_str_addf(&about, "%s. %s", spec->summary, spec->details->about);
	json_t *j = json_pack("{s:s, s:s, s:o, s:{s:b, s:b, s:b}}", "name", t->command,
		"description", base_str_text(&about), "inputSchema", mcp_input_schema(spec),
		"annotations", "readOnlyHint", !t->runs, "destructiveHint", t->runs,
		"openWorldHint", t->runs);
	if (document)
		json_object_set_new(j, "outputSchema", base_table_schema(document));
	base_str_fini(&about);
	return j;
}

json_t *mcp_tools_list(bool read_only)
{
	json_t *list = json_array();
	for (size_t i = 0; i < BASE_COUNT(mcp_tools); i++)
		if (!(read_only && mcp_tools[i].runs))
			json_array_append_new(list, mcp_tool_json(&mcp_tools[i]));
	return json_pack("{s:o}", "tools", list);
}

/* ---- a call's command line ------------------------------------------------------------------- */

struct mcp_command_line {
	char **word; /* ended by NULL */
	size_t nr, capacity;
	struct base_str *why; /* what is wrong; empty: nothing yet */
};

void mcp_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		base_free(words[i]);
	base_free(words);
}

static void mcp_add(struct mcp_command_line *l, const char *text)
{
	size_t length = strlen(text);
	char *word = base_alloc(length + 1);
	if (word && base_grow(&l->word, &l->capacity, l->nr + 2, sizeof *l->word) == BASE_OK) {
		memcpy(word, text, length + 1);
		l->word[l->nr++] = word;
		l->word[l->nr] = NULL;
		return;
	}
	base_free(word);
	l->why->failed = true;
}

static void mcp_add_option(
	struct mcp_command_line *l, const struct cmd_option *o, const json_t *value)
{
	struct base_str word = {0};
	base_str_addf(&word, "--%s", o->name);
	if (o->value && json_is_string(value))
		base_str_addf(&word, "=%s", json_string_value(value));
	else if (o->value && json_is_integer(value))
		base_str_addf(&word, "=%lld", (long long)json_integer_value(value));
	else if (o->value && json_is_real(value))
		base_str_addf(&word, "=%.15g", json_real_value(value));
	else if (o->value || !json_is_boolean(value))
		base_str_addf(
			l->why, "'%s' is not of the type that the tool's schema says", o->name);
	if (o->value || json_is_true(value))
		mcp_add(l, base_str_text(&word));
	l->why->failed |= word.failed;
	base_str_fini(&word);
}

/* All strings of a list; `is_free`: they may look like options. */
static void mcp_add_list(
	struct mcp_command_line *l, const char *name, const json_t *list, bool is_free)
{
	size_t i;
	const json_t *item;
	if (!json_is_array(list))
		base_str_addf(l->why, "'%s' must be a list of strings", name);
	json_array_foreach((json_t *)(uintptr_t)list, i, item)
	{
		const char *text = json_string_value(item);
		if (!text)
			base_str_addf(l->why, "'%s' must be a list of strings", name);
		else if (!is_free && *text == '-')
			base_str_addf(l->why,
				"'%s' looks like an option: those have names of their own here",
				text);
		else
			mcp_add(l, text);
	}
}

static bool mcp_is_operand(const char *key)
{
	return !strcmp(key, "trace") || !strcmp(key, "operands") || !strcmp(key, "program") ||
	       !strcmp(key, "directory");
}

static const struct cmd_option *mcp_option_of(const struct cmd_spec *spec, const char *name)
{
	const struct cmd_option *o;
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++)
		if (!strcmp(o->name, name) && mcp_is_offered(o))
			return o;
	return NULL;
}

static void mcp_add_options(
	struct mcp_command_line *l, const struct cmd_spec *spec, const json_t *arguments)
{
	const char *key;
	json_t *value, *one;
	size_t i;
	json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
	{
		const struct cmd_option *o = mcp_option_of(spec, key);
		if (o && o->value && json_is_array(value))
			json_array_foreach(value, i, one) mcp_add_option(l, o, one);
		else if (o)
			mcp_add_option(l, o, value);
		else if (!mcp_is_operand(key))
			base_str_addf(l->why, "'%s' has no argument '%s'", spec->name, key);
	}
}

static void mcp_add_operands(
	struct mcp_command_line *l, const struct cmd_spec *spec, const json_t *arguments)
{
	const json_t *trace = json_object_get(arguments, "trace"),
		     *list = json_object_get(arguments, "operands"),
		     *program = json_object_get(arguments, "program");
	if (trace && !(spec->flags & CMD_READS_TRACE))
		base_str_addf(l->why, "'%s' reads no trace", spec->name);
	else if (trace && (!json_is_string(trace) || *json_string_value(trace) == '-'))
		base_str_add(l->why,
			"'trace' must be the path of a file (./-x if it begins with a dash)");
	else if (trace)
		mcp_add(l, json_string_value(trace));
	if (list)
		mcp_add_list(l, "operands", list, false);
	if (program && !mcp_takes_program(spec))
		base_str_addf(l->why, "'%s' runs no program", spec->name);
	else if (program) {
		mcp_add(l, "--");
		mcp_add_list(l, "program", program, true);
	} else if (spec->flags & CMD_PROGRAM) {
		base_str_addf(l->why, "'%s' needs a program", spec->name);
	}
}

bool mcp_answers_json(const struct mcp_tool *t)
{
	const struct cmd_spec *spec = cmd_find(t->command);
	const struct cmd_option *o;
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++)
		if (!strcmp(o->name, "json"))
			return true;
	return false;
}

char **mcp_words(const struct mcp_tool *t, const json_t *arguments, struct base_str *ret_why)
{
	const struct cmd_spec *spec = cmd_find(t->command);
	struct mcp_command_line l = {.why = ret_why};
	mcp_add(&l, "longpole");
	mcp_add(&l, t->command);
	if (mcp_answers_json(t))
		mcp_add(&l, "--json");
	if (json_is_object(arguments)) {
		mcp_add_options(&l, spec, arguments);
		mcp_add_operands(&l, spec, arguments);
	} else {
		base_str_add(l.why, "the arguments must be an object");
	}
	if (!ret_why->length && !ret_why->failed)
		return l.word;
	mcp_words_free(l.word);
	return NULL;
}
