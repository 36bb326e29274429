/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manual.c - a man page in scdoc's language. What the tables of commands know is made here: name, synopsis, options,
 * exit status, environment, what is related. doc/man/ has what only a person can write: the description, and examples
 * that a test runs.
 */
#include "cmd/cmd.h"

#include <ctype.h>
#include <string.h>

/* ---- scdoc ----------------------------------------------------------------------------------- */

static void manual_add_char(struct base_str *out, char ch)
{
	if (strchr("\\*_#[]<>~`+", ch))
		base_str_add(out, "\\");
	base_str_add_bytes(out, &ch, 1);
}

static void manual_add_escaped(struct base_str *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		manual_add_char(out, text[i]);
}

static void manual_add_marked(
	struct base_str *out, const char *mark, const char *text, size_t length)
{
	base_str_add(out, mark);
	manual_add_escaped(out, text, length);
	base_str_add(out, mark);
}

static size_t manual_word_length(const char *text)
{
	size_t n = 0;
	while (isalnum((unsigned char)text[n]) || (text[n] && strchr("-_+@", text[n])))
		n++;
	return n;
}

/* What a reader types as it stands is bold, what stands for something else (FILE) is italic. */
static const char *manual_mark_of_usage(const char *word, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (islower((unsigned char)word[i]) || word[i] == '-')
			return "*";
	return "_";
}

static void manual_add_usage(struct base_str *out, const char *usage, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t n = manual_word_length(usage + i);
		n = n < length - i ? n : length - i;
		if (n)
			manual_add_marked(out, manual_mark_of_usage(usage + i, n), usage + i, n);
		else
			manual_add_char(out, usage[i]);
		i += n ? n : 1;
	}
}

/* A sentence of a table: options in it are bold. */
static void manual_add_doc(struct base_str *out, const char *doc)
{
	char before = ' ';
	while (*doc) {
		size_t n = *doc == '-' && strchr(" (", before) ? manual_word_length(doc) : 0;
		if (n > 1)
			manual_add_marked(out, "*", doc, n);
		else
			manual_add_char(out, *doc);
		before = n > 1 ? 'x' : *doc;
		doc += n > 1 ? n : 1;
	}
}

/* ---- sections -------------------------------------------------------------------------------- */

static void manual_page_name(struct base_str *out, const struct cmd_spec *spec)
{
	base_str_add(out, "longpole");
	for (const char *p = spec->name; *p; p++) {
		if (p == spec->name)
			base_str_add(out, "-");
		base_str_add_bytes(out, *p == ' ' ? "-" : p, 1);
	}
}

static void manual_name(struct base_str *out, const struct cmd_spec *spec)
{
	manual_page_name(out, spec);
	base_str_add(out, "(1)\n\n# NAME\n\n");
	manual_page_name(out, spec);
	base_str_add(out, " - ");
	manual_add_doc(out, spec->summary);
	base_str_add(out, "\n\n# SYNOPSIS\n\n");
	if (spec->section)
		base_str_addf(out, "*longpole report %s* [_OPTIONS_] [_TRACE_]++\n", spec->name);
	for (const char *form = spec->details->usage; *form;) {
		size_t length = strcspn(form, "\n");
		base_str_addf(out, "*longpole%s%s* ", *spec->name ? " " : "", spec->name);
		manual_add_usage(out, form, length);
		form += length + (form[length] == '\n');
		base_str_add(out, *form ? "++\n" : "\n");
	}
	if (!*spec->name)
		base_str_add(out, "\n*longpole* _COMMAND_ [...]\n");
	base_str_add(out, "\n");
}

static void manual_option(struct base_str *out, const struct cmd_option *o)
{
	if (o->letter)
		base_str_addf(out, "*-%c*, ", o->letter);
	base_str_addf(out, "*--%s*", o->name);
	if (o->value) {
		bool may_lack = cmd_value_is_optional(o);
		const char *value = o->value + may_lack;
		base_str_add(out, may_lack ? "[=" : "=");
		manual_add_usage(out, value, strlen(value));
	}
	base_str_add(out, "\n\t");
	struct base_str doc = {0};
	cmd_add_option_doc(&doc, o);
	manual_add_doc(out, base_str_text(&doc));
	base_str_fini(&doc);
	base_str_add(out, "\n\n");
}

static void manual_options(struct base_str *out, const struct cmd_spec *spec)
{
	const struct cmd_option *o;
	base_str_add(out, "# OPTIONS\n\n");
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++)
		if (o->doc)
			manual_option(out, o);
}

static void manual_reference(struct base_str *out, const struct cmd_spec *to)
{
	base_str_add(out, "*");
	manual_page_name(out, to);
	base_str_add(out, "*(1)\n\t");
	manual_add_doc(out, to->summary);
	base_str_add(out, "\n");
}

/* All commands, in the order and under the titles of `longpole help`. */
static void manual_commands(struct base_str *out)
{
	size_t nr;
	const struct cmd_spec *table = cmd_table(&nr);
	base_str_add(out, "# COMMANDS\n\n");
	for (unsigned g = 0; g < CMD_GROUP_NR; g++) {
		base_str_addf(out, "## %s\n\n", cmd_groups[g].title);
		for (size_t i = 0; i < nr; i++)
			if (table[i].group == g)
				manual_reference(out, &table[i]);
		base_str_add(out, "\n");
	}
}

/* Each is a command, too, with a page of its own. */
static void manual_sections(struct base_str *out, const struct cmd_spec *command)
{
	size_t nr;
	const struct cmd_spec *table = cmd_table(&nr);
	if (command->run != cmd_run_report)
		return;
	base_str_add(out, "# SECTIONS\n\n");
	for (size_t i = 0; i < nr; i++)
		if (table[i].section)
			manual_reference(out, &table[i]);
	base_str_add(out, "\n");
}

static void manual_verbs(struct base_str *out, const struct cmd_spec *command)
{
	size_t nr;
	const struct cmd_spec *verb = cmd_verbs(&nr);
	const char *title = "# VERBS\n\n";
	for (size_t i = 0; i < nr; i++) {
		if (!cmd_is_verb_of(&verb[i], command))
			continue;
		base_str_add(out, title);
		manual_reference(out, &verb[i]);
		title = "";
	}
	if (!*title)
		base_str_add(out, "\n");
}

/* What all commands of a kind have in common. */
static const struct {
	unsigned flag;
	const char *text;
} manual_part[] = {
	{CMD_WINDOW,
		"# THE WINDOW\n\n"
		"With *--from* or *--to* the answer is about a part of the run: its path, sums, "
		"waits and queues. Times count from the start of the recording, percentages are "
		"of its length. What comes before only says what each thread does and holds when "
		"the window begins. What comes after is still read, because it shows what the end "
		"of the window depended on. A hand-off that is under way at *--to* is charged to "
		"the thread that hands over. Predictions change nothing outside the window.\n\n"},
	{CMD_ENDS,
		"# WHERE THE PATH BEGINS AND ENDS\n\n"
		"Without *--start* and *--end* the path reaches from the program's start to its "
		"end. ACTOR and STATE are patterns as in *longpole-whatif*(1). In a recording of "
		"the whole system the path ends with the program that was recorded; where there "
		"was none, with the process that ran most. *--process* names another one; of "
		"several with that name the one that ran most is meant.\n\n"},
	{CMD_READS_TRACE,
		"# THE TRACE\n\n"
		"_TRACE_ is a file that *longpole-record*(1) wrote. Without it the newest \\*.lpt "
		"of the working directory is read, and a note on standard error says which. A "
		"trace that was cut short or damaged is read as far as it goes, and the answer "
		"says how far that is.\n\n"},
};

static void manual_parts(struct base_str *out, const struct cmd_spec *spec)
{
	for (size_t i = 0; *spec->name && i < BASE_COUNT(manual_part); i++)
		if (spec->flags & manual_part[i].flag)
			base_str_add(out, manual_part[i].text);
}

enum { MANUAL_RUNS = CMD_PROGRAM | CMD_OR_PROGRAM | CMD_RAW };

static void manual_exit_status(struct base_str *out, const struct cmd_spec *spec)
{
	bool runs = spec->flags & MANUAL_RUNS, reads = spec->group != CMD_GROUP_HELP;
	base_str_add(out, "# EXIT STATUS\n\n");
	if (runs)
		base_str_addf(out,
			"That of the %s, if one is run; 128 + n when signal n ended it.\n\n"
			"*125*\n\tlongpole itself failed\n"
			"*126*\n\tthe %s was found but cannot be executed\n"
			"*127*\n\tthe %s was not found\n\n",
			spec->flags & CMD_RAW ? "compiler" : "program",
			spec->flags & CMD_RAW ? "compiler" : "program",
			spec->flags & CMD_RAW ? "compiler" : "program");
	if (spec->flags & CMD_RAW)
		return;
	if (runs)
		base_str_add(out, "Otherwise:\n\n");
	base_str_add(out, "*0*\n\tdone\n");
	if (spec->details->gate || !*spec->name) {
		base_str_add(out, "*1*\n\t");
		manual_add_doc(out, *spec->name ? spec->details->gate
						: "a gate failed: a deadlock was found, a budget "
						  "was exceeded");
		base_str_add(out, "\n");
	}
	base_str_add(out, "*2*\n\tthe command was not understood, or nothing matches\n");
	if (reads)
		base_str_add(out, "*3*\n\ta file to be read is damaged, too new, or of another "
				  "format\n"
				  "*4*\n\tthis machine refused something: a file, memory\n");
	base_str_add(out, "\n");
}

static void manual_environment(struct base_str *out, const struct cmd_spec *spec)
{
	if (!(spec->flags & CMD_RAW))
		base_str_add(out,
			"# ENVIRONMENT\n\n"
			"*NO_COLOR*\n\twhen it is not empty: no colours, unless *--color=always*\n"
			"*COLUMNS*\n\tthe width of lines (without a terminal: 120)\n"
			"*TERM*\n\t*dumb*: no colours, no progress bar and no pager\n"
			"*LONGPOLE_PAGER*, *PAGER*\n\twhat shows a long answer on a terminal "
			"(default: "
			"*less*, with *LESS*=FRX if that is not set); empty or *cat*: nothing\n\n");
}

/* ---- what is related ------------------------------------------------------------------------- */

/* Does the text say "longpole NAME" or refer to the page longpole-NAME? */
static bool manual_mentions(const char *text, const struct cmd_spec *spec)
{
	struct base_str command = {0}, page = {0};
	base_str_addf(&command, "longpole %s", spec->name);
	manual_page_name(&page, spec);
	size_t length = page.length;
	bool found = false;
	for (const char *p = text; !found && (p = strstr(p, "longpole")); p++)
		found = (!strncmp(p, base_str_text(&command), length) ||
				!strncmp(p, base_str_text(&page), length)) &&
			!manual_word_length(p + length);
	base_str_fini(&command);
	base_str_fini(&page);
	return found;
}

static void manual_see_also_of(struct base_str *out, const struct cmd_spec *spec,
	const char *written, const struct cmd_spec *table, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (&table[i] == spec || !manual_mentions(written, &table[i]))
			continue;
		base_str_add(out, ", *");
		manual_page_name(out, &table[i]);
		base_str_add(out, "*(1)");
	}
}

static void manual_see_also(struct base_str *out, const struct cmd_spec *spec, const char *written)
{
	size_t nr, nr_verbs;
	const struct cmd_spec *table = cmd_table(&nr), *verb = cmd_verbs(&nr_verbs);
	if (!*spec->name)
		return; /* it lists all of them */
	base_str_add(out, "\n# SEE ALSO\n\n*longpole*(1)");
	manual_see_also_of(out, spec, written, table, nr);
	manual_see_also_of(out, spec, written, verb, nr_verbs);
	base_str_add(out, "\n");
}

/* ---- a page ---------------------------------------------------------------------------------- */

/* What a person wrote, where a backslash in a literal block is one: scdoc hands it on to roff, which takes two for it. */
static void manual_add_written(struct base_str *out, const char *text, size_t length)
{
	bool is_literal = false;
	for (size_t i = 0; i < length; i++) {
		if ((!i || text[i - 1] == '\n') && !strncmp(text + i, "```", 3))
			is_literal = !is_literal;
		base_str_add_bytes(out, text + i, 1);
		if (is_literal && text[i] == '\\')
			base_str_add(out, "\\");
	}
}

bool cmd_manual_page(struct base_str *out, const struct cmd_spec *spec, const char *written)
{
	const char *examples = strstr(written, "# EXAMPLES\n");
	if (!examples)
		return false;
	manual_name(out, spec);
	if (strncmp(written, "# DESCRIPTION\n", strlen("# DESCRIPTION\n")) != 0) {
		base_str_add(out, "# DESCRIPTION\n\n");
		manual_add_doc(out, spec->details->about);
		base_str_add(out, "\n\n");
	}
	manual_add_written(out, written, (size_t)(examples - written));
	if (!*spec->name)
		manual_commands(out);
	manual_verbs(out, spec);
	manual_sections(out, spec);
	manual_options(out, spec);
	manual_parts(out, spec);
	manual_exit_status(out, spec);
	manual_environment(out, spec);
	manual_add_written(out, examples, strlen(examples));
	manual_see_also(out, spec, written);
	return true;
}
