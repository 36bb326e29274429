/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_help.c - help from the tables, for people and as JSON. */
#include "base/column.h"
#include "cmd/cmd.h"

#include "config.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

static const struct cmd_option option[] = {
	{"json", 0, NULL, NULL, "all commands and their options as one JSON document"},
	{"schemas", 0, NULL, NULL, "JSON Schemas of what --json prints, by the documents' names"},
	{"manual", 0, "FILE", "@file",
		NULL}, /* the build makes man pages by it (doc/meson.build) */
};

const struct cmd_details cmd_details_help = {
	.usage = "[COMMAND [VERB]]",
	.about = "Without a command, lists what longpole can do. 'longpole COMMAND --help' says "
		 "the same as 'longpole help COMMAND'; 'man longpole-COMMAND' says more.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole help whatif", "longpole help --json | jq -r '.commands[].name'"},
};

static void wrap(struct base_str *out, const char *text, size_t indent, size_t columns)
{
	size_t at = indent;
	for (bool first = true; *text; first = false) {
		size_t length = strcspn(text, " ");
		if (!first && at + 1 + length > columns) {
			base_str_addf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			base_str_add(out, " ");
			at++;
		}
		base_str_add_bytes(out, text, length);
		at += length;
		text += length;
		text += strspn(text, " ");
	}
	base_str_add(out, "\n");
}

static void cmd_help_title(struct base_str *out, const struct report_style *st, const char *text)
{
	base_str_addf(
		out, "%s%s%s\n", st->color ? "\033[1m" : "", text, st->color ? "\033[0m" : "");
}

/* Is this word of a list somewhere in the text, as a whole? */
static bool cmd_help_says(const char *text, const char *word, size_t length)
{
	for (const char *p = text; *p; p++)
		if (!strncmp(p, word, length) && (p == text || !isalnum((unsigned char)p[-1])) &&
			!isalnum((unsigned char)p[length]))
			return true;
	return false;
}

void cmd_add_option_doc(struct base_str *out, const struct cmd_option *o)
{
	base_str_add(out, o->doc);
	if (!o->choices || *o->choices == '@')
		return;
	bool says_all = true;
	for (const char *p = o->choices; says_all && *p; p += strspn(p, " ")) {
		size_t length = strcspn(p, " ");
		says_all = cmd_help_says(o->doc, p, length);
		p += length;
	}
	const char *lead = says_all ? NULL : "; one of ";
	for (const char *p = o->choices; lead && *p; p += strspn(p, " "), lead = ", ") {
		size_t length = strcspn(p, " ");
		base_str_addf(out, "%s%.*s", lead, (int)length, p);
		p += length;
	}
}

static void option_line(struct base_str *out, const struct cmd_option *o, size_t columns)
{
	enum { DOC_AT = 26 };
	struct base_str left = {0};
	if (o->letter)
		base_str_addf(&left, "  -%c, ", o->letter);
	else
		base_str_add(&left, "      ");
	if (cmd_value_is_optional(o))
		base_str_addf(&left, "--%s[=%s", o->name, o->value + 1);
	else
		base_str_addf(
			&left, "--%s%s%s", o->name, o->value ? "=" : "", o->value ? o->value : "");
	base_str_add(out, base_str_text(&left));
	if (left.length >= DOC_AT)
		base_str_addf(out, "\n%*s", DOC_AT, "");
	else
		base_str_addf(out, "%*s", (int)(DOC_AT - left.length), "");
	base_str_fini(&left);
	struct base_str doc = {0};
	cmd_add_option_doc(&doc, o);
	wrap(out, base_str_text(&doc), DOC_AT, columns);
	base_str_fini(&doc);
}

void cmd_add_verbs(struct base_str *out, const struct cmd_spec *command)
{
	size_t nr;
	const struct cmd_spec *verb = cmd_verbs(&nr);
	for (size_t i = 0; i < nr; i++)
		if (cmd_is_verb_of(&verb[i], command))
			base_str_addf(out, "  %-19s %s\n", verb[i].name, verb[i].summary);
}

/* A usage has a line for each form of the command; every line begins with the command. */
static void cmd_help_add_usage(struct base_str *out, const struct cmd_spec *spec)
{
	const char *lead = "Usage:";
	for (const char *form = spec->details->usage; *form; lead = "      ") {
		size_t length = strcspn(form, "\n");
		base_str_addf(out, "%s longpole %s%s%.*s\n", lead, spec->name,
			*spec->name ? " " : "", (int)length, form);
		form += length + (form[length] == '\n');
	}
	base_str_add(out, "\n");
}

void cmd_help_text(struct base_str *out, const struct cmd_spec *spec, const struct report_style *st)
{
	const struct cmd_details *d = spec->details;
	size_t columns = st->columns < 100 ? st->columns : 100;
	base_str_addf(
		out, "longpole %s%s%s\n\n", spec->name, *spec->name ? " - " : "- ", spec->summary);
	cmd_help_add_usage(out, spec);
	wrap(out, d->about, 0, columns);
	struct base_str verbs = {0};
	cmd_add_verbs(&verbs, spec);
	if (verbs.length) {
		base_str_add(out, "\n");
		cmd_help_title(out, st, "Verbs");
		base_str_add(out, base_str_text(&verbs));
	}
	base_str_fini(&verbs);
	if (spec->run == cmd_run_report) {
		base_str_add(out, "\n");
		cmd_help_title(out, st, "Sections");
		cmd_add_sections(out);
	}
	base_str_add(out, "\n");
	cmd_help_title(out, st, "Options");
	const struct cmd_option *o;
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++)
		if (o->doc)
			option_line(out, o, columns);
	base_str_add(out, "\n");
	cmd_help_title(out, st, "Examples");
	for (size_t i = 0; i < BASE_COUNT(d->example) && d->example[i]; i++)
		base_str_addf(out, "  %s\n", d->example[i]);
}

/* They are commands, too, but each is found under `report`. */
static void cmd_help_sections_line(struct base_str *out, const struct cmd_spec *table, size_t nr)
{
	enum { INDENT = 2, COLUMNS = 98 };
	struct base_str text = {0};
	base_str_add(&text, "report SECTION, or SECTION alone:");
	for (size_t i = 0; i < nr; i++)
		if (table[i].section)
			base_str_addf(&text, " %s", table[i].name);
	base_str_addf(out, "%*s", INDENT, "");
	wrap(out, base_str_text(&text), INDENT, COLUMNS);
	base_str_fini(&text);
}

static void group_lines(
	struct base_str *out, const struct report_style *st, unsigned group, bool all)
{
	size_t nr;
	const struct cmd_spec *table = cmd_table(&nr);
	bool brief = cmd_groups[group].brief && !all;
	if (!brief) {
		base_str_add(out, "\n");
		cmd_help_title(out, st, cmd_groups[group].title);
	} else {
		base_str_addf(out, "%s%-12s%s", st->color ? "\033[1m" : "", cmd_groups[group].title,
			st->color ? "\033[0m" : "");
	}
	for (size_t i = 0; i < nr; i++)
		if (table[i].group == group && !table[i].section)
			base_str_addf(out, brief ? "  %s" : "  %-11s %s\n", table[i].name,
				table[i].summary);
	if (brief)
		base_str_add(out, "\n");
	else if (group == CMD_GROUP_ANALYSE)
		cmd_help_sections_line(out, table, nr);
}

void cmd_help_overview(struct base_str *out, const struct report_style *st, bool all)
{
	base_str_add(out, "longpole finds what decides how long a parallel program takes, and "
			  "predicts what a fix "
			  "would buy.\n\n");
	base_str_add(out, "Usage: longpole [OPTIONS] PROG [ARG...]    record it, then the answer\n"
			  "       longpole COMMAND [...]\n");
	for (unsigned g = 0; g < CMD_GROUP_NR; g++) {
		if (!all && cmd_groups[g].brief && !(g && cmd_groups[g - 1].brief))
			base_str_add(out, "\n");
		group_lines(out, st, g, all);
	}
	base_str_add(out, "\n");
	cmd_help_title(out, st, "Examples");
	base_str_add(out,
		"  longpole ./server --threads 8\n"
		"  longpole whatif longpole-server.lpt scale 'cache_mutex'=-50%\n"
		"  longpole export --format=perfetto -o server.pftrace longpole-server.lpt\n"
		"\n'longpole help' lists all commands, 'longpole COMMAND --help' says more about "
		"one.\n"
		"A program with the name of a command: longpole -- PROG\n");
}

static json_t *cmd_help_text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *command_json(const struct cmd_spec *spec)
{
	json_t *options = json_array(), *examples = json_array();
	const struct cmd_option *o;
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++) {
		char letter[2] = {o->letter, 0};
		if (!o->doc)
			continue;
		json_array_append_new(
			options, json_pack("{s:s, s:o, s:o, s:o, s:s}", "name", o->name, "letter",
					 cmd_help_text_or_null(o->letter ? letter : NULL), "value",
					 cmd_help_text_or_null(o->value), "choices",
					 cmd_help_text_or_null(o->choices), "doc", o->doc));
	}
	for (size_t i = 0; i < BASE_COUNT(spec->details->example) && spec->details->example[i]; i++)
		json_array_append_new(examples, json_string(spec->details->example[i]));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "name", spec->name, "group",
		cmd_groups[spec->group].title, "summary", spec->summary, "usage",
		spec->details->usage, "about", spec->details->about, "options", options, "examples",
		examples);
}

/* Each is beside the code that prints it, which alone uses it. */
#define X(table) extern const struct base_table table;
#include "cmd/documents.def"
#undef X
static const struct base_table *const help_document[] = {
#define X(table) &table,
#if !LONGPOLE_X86_64
#define X_X86(table)
#endif
#include "cmd/documents.def"
#undef X
};

const struct base_table *cmd_document(const char *schema)
{
	for (size_t i = 0; i < BASE_COUNT(help_document); i++)
		if (!strcmp(help_document[i]->name, schema))
			return help_document[i];
	return NULL;
}

/* What doc/meson.build puts into the page of documents. */
static int help_documents(struct cmd *c)
{
	struct base_str out = {0};
	for (size_t i = 0; i < BASE_COUNT(help_document); i++)
		base_table_page(&out, help_document[i]);
	return cmd_write(c, &out);
}

static int help_schemas(struct cmd *c)
{
	json_t *all = json_object();
	for (size_t i = 0; i < BASE_COUNT(help_document); i++)
		if (help_document[i]->from)
			json_object_set_new(
				all, help_document[i]->name, base_table_schema(help_document[i]));
	return cmd_write_json(c, all);
}

static int cmd_help_manual(struct cmd *c, const struct cmd_spec *spec, const char *path)
{
	enum { WRITTEN_MAX_BYTES = 1 << 20 };
	struct base_str out = {0};
	struct stat st;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) /* nobody may ever write into a FIFO */
		return cmd_usage(c, "--manual=%s: not a regular file", path);
	char *written = cmd_read_file(c, path, WRITTEN_MAX_BYTES);
	if (!written)
		return CMD_BAD_TRACE;
	bool made = cmd_manual_page(&out, spec, written);
	base_free(written);
	if (made)
		return cmd_write(c, &out);
	base_str_fini(&out);
	return cmd_usage(c, "%s: a page needs '# EXAMPLES'", path);
}

int cmd_run_help(struct cmd *c)
{
	size_t nr, nr_verbs;
	const struct cmd_spec *table = cmd_table(&nr), *verb = cmd_verbs(&nr_verbs);
	struct report_style st = cmd_style(c);
	struct base_str out = {0};
	if (cmd_given(c, "schemas"))
		return help_schemas(c);
	if (cmd_given(c, "json")) {
		json_t *list = json_array();
		json_array_append_new(list, command_json(&cmd_default_spec));
		for (size_t i = 0; i < nr; i++)
			json_array_append_new(list, command_json(&table[i]));
		for (size_t i = 0; i < nr_verbs; i++)
			json_array_append_new(list, command_json(&verb[i]));
		return cmd_write_json(
			c, json_pack("{s:s, s:s, s:o}", "schema", "longpole/help/1", "tool",
				   "longpole " LONGPOLE_VERSION, "commands", list));
	}
	if (c->nr_operands == 1 && !strcmp(c->operand[0], "documents"))
		return help_documents(c);
	const char *written = cmd_value(c, "manual");
	if (written && !c->nr_operands)
		return cmd_help_manual(c, &cmd_default_spec, written);
	const struct cmd_spec *spec = c->nr_operands ? cmd_find(c->operand[0]) : NULL;
	if (spec && c->nr_operands == 2 && cmd_find_verb(spec, c->operand[1]))
		spec = cmd_find_verb(spec, c->operand[1]);
	else if (c->nr_operands > 1)
		return cmd_usage(c, "help on one command at a time");
	if (!c->nr_operands) {
		cmd_help_overview(&out, &st, true);
		return cmd_write(c, &out);
	}
	if (!spec) {
		const char *near = cmd_nearest(c->operand[0]);
		return near ? cmd_usage(
				      c, "no command '%s'; did you mean '%s'?", c->operand[0], near)
			    : cmd_usage(c, "no command '%s'; 'longpole help' lists them",
				      c->operand[0]);
	}
	if (written)
		return cmd_help_manual(c, spec, written);
	cmd_help_text(&out, spec, &st);
	return cmd_write(c, &out);
}
