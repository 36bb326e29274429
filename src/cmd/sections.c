/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.c - `longpole report SECTION... [TRACE]`. A section is a command that reads a trace (SECTION in commands.def);
 * several together are a command that has the options of all, and prints one answer after the other.
 */
#include "cmd/cmd.h"

#include <string.h>
#include <unistd.h>

/* ---- which ----------------------------------------------------------------------------------- */

static const struct cmd_spec *sections_find(const char *name)
{
	const struct cmd_spec *spec = cmd_find(name);
	return spec && spec->section ? spec : NULL;
}

/* The i-th of all sections; NULL: no more. */
static const struct cmd_spec *sections_at(size_t i)
{
	size_t nr;
	const struct cmd_spec *table = cmd_table(&nr);
	for (size_t k = 0; k < nr; k++)
		if (table[k].section && !i--)
			return &table[k];
	return NULL;
}

static const char *sections_next_name(const void *ctx, size_t i)
{
	(void)ctx;
	const struct cmd_spec *spec = sections_at(i);
	return spec ? spec->name : NULL;
}

void cmd_add_sections(struct base_str *out)
{
	const struct cmd_spec *spec;
	for (size_t i = 0; (spec = sections_at(i)); i++)
		base_str_addf(out, "  %-11s %s\n", spec->name, spec->summary);
}

/* Which word is a section's name and which an option's value can be told before it is known which options there are: an
 * option that takes a value in one section does so in all. */
static bool sections_value_follows(const char *word)
{
	const struct cmd_spec *spec = cmd_find("report");
	for (size_t i = 0; spec; spec = sections_at(i++)) {
		const struct cmd_option *o;
		for (size_t k = 0; (o = cmd_option_at(spec, k)); k++) {
			bool is_it = word[1] == '-' ? !strcmp(o->name, word + 2)
						    : o->letter == word[1] && !word[2];
			if (is_it && o->value && !cmd_value_is_optional(o))
				return true;
		}
	}
	return false;
}

/* Of two sections' options of one name the one that may have a value is the one to parse by. */
static void sections_add_option(struct cmd_sections *s, const struct cmd_option *o)
{
	for (size_t i = 0; i < s->details.nr_options; i++) {
		if (strcmp(s->option[i].name, o->name) != 0)
			continue;
		if (!s->option[i].value)
			s->option[i] = *o;
		return;
	}
	BASE_ASSERT(s->details.nr_options < CMD_SECTION_OPTIONS_MAX);
	s->option[s->details.nr_options++] = *o;
}

/* One command of them: what one of them does not offer (a window, ends) there is not for all together. */
static void sections_make_spec(struct cmd_sections *s)
{
	const struct cmd_spec *report = cmd_find("report"), *first = s->section[0];
	s->details = *first->details;
	s->details.usage = report->details->usage;
	if (s->nr > 1)
		s->details.about =
			"Prints these sections one after another. 'longpole help SECTION' "
			"says more about one.";
	s->details.option = s->option;
	s->details.nr_options = 0;
	s->spec = *report;
	s->spec.details = &s->details;
	s->spec.summary = s->nr > 1 ? "these sections, one after another" : first->summary;
	s->spec.run = cmd_run_section;
	for (size_t i = 0; i < s->nr; i++) {
		const struct cmd_details *d = s->section[i]->details;
		s->spec.flags &= s->section[i]->flags;
		for (size_t k = 0; k < d->nr_options - d->nr_of_program; k++)
			sections_add_option(s, &d->option[k]);
	}
}

static bool sections_has(const struct cmd_sections *s, const struct cmd_spec *section)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->section[i] == section)
			return true;
	return false;
}

static void sections_add(struct cmd_sections *s, const struct cmd_spec *section)
{
	if (sections_has(s, section))
		return;
	BASE_ASSERT(s->nr < CMD_SECTIONS_MAX);
	s->section[s->nr++] = section;
}

bool cmd_sections_choose(struct cmd_sections *ret, int *argc, char **argv)
{
	int nr_kept = 0;
	bool more = true; /* until "--" */
	ret->nr = 0;
	for (int i = 0; i < *argc; i++) {
		const struct cmd_spec *section = more ? sections_find(argv[i]) : NULL;
		if (section) {
			sections_add(ret, section);
			continue;
		}
		argv[nr_kept++] = argv[i];
		more = more && strcmp(argv[i], "--") != 0;
		if (more && *argv[i] == '-' && sections_value_follows(argv[i]) && i + 1 < *argc)
			argv[nr_kept++] = argv[++i];
	}
	argv[nr_kept] = NULL;
	*argc = nr_kept;
	if (ret->nr)
		sections_make_spec(ret);
	return ret->nr > 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* A section's name with a trace's beside it: a user who means the file has to say so. */
static void sections_tell_files(struct cmd *c, const struct cmd_sections *s)
{
	for (size_t i = 0; i < s->nr; i++)
		if (!c->nr_operands && !access(s->section[i]->name, F_OK))
			cmd_note(c, "'%s' is a section; the file of that name is ./%s",
				s->section[i]->name, s->section[i]->name);
}

bool cmd_sections_mistyped(struct cmd *c)
{
	for (size_t i = 0; i < c->nr_operands; i++) {
		const char *word = c->operand[i], *near = NULL;
		if (access(word, F_OK) != 0)
			near = base_nearest(word, sections_next_name, NULL);
		if (!near)
			continue;
		cmd_usage(
			c, "'%s' is neither a section nor a file; did you mean '%s'?", word, near);
		return true;
	}
	return false;
}

/* {"result": {"queues": {...}, "actors": {...}}} in what the first one said of the trace. */
static json_t *sections_join_json(json_t *all, const char *name, json_t *one)
{
	json_t *result = json_incref(json_object_get(one, "result"));
	const char *schema = json_string_value(json_object_get(one, "schema"));
	if (!all) {
		all = json_copy(one);
		json_object_set_new(all, "schema", json_string("longpole/sections/1"));
		json_object_set_new(all, "schemas", json_object());
		json_object_set_new(all, "result", json_object());
	}
	json_object_set_new(json_object_get(all, "schemas"), name, json_string(schema));
	json_object_set_new(json_object_get(all, "result"), name, result);
	json_decref(one);
	return all;
}

static void sections_add_heading(
	struct base_str *out, const struct cmd_spec *section, const struct report_style *st)
{
	base_str_addf(out, "%s%s%s: %s%s\n\n", out->length ? "\n" : "", st->color ? "\033[1m" : "",
		section->name, section->summary, st->color ? "\033[0m" : "");
}

/* One of several that has no answer: the others have theirs. The error is said now, and its exit status comes last. */
static int sections_fail(struct cmd *c, const struct cmd_spec *section, enum base_status s)
{
	int exit_status = cmd_fail(c, base_cause(&c->err, s, "in the section '%s'", section->name));
	c->err = (struct base_err){0};
	return exit_status;
}

/* All of them into one answer, which has those that there are. Returns the first failure's exit status. */
static int sections_answer(
	struct cmd *c, struct report_run *run, const struct cmd_sections *s, struct cmd_answer *all)
{
	int first_failure = CMD_OK;
	*all = cmd_answer_begin(c, BASE_ERR_NOTFOUND);
	for (size_t i = 0; i < s->nr; i++) {
		struct cmd_answer one;
		s->section[i]->section(c, run, &one);
		if (one.as == CMD_AS_NOTHING) {
			int exit_status = sections_fail(c, s->section[i], one.status);
			first_failure = first_failure ? first_failure : exit_status;
			continue;
		}
		if (one.as == CMD_AS_JSON)
			all->json = sections_join_json(all->json, s->section[i]->name, one.json);
		if (one.as == CMD_AS_TEXT) {
			sections_add_heading(&all->text, s->section[i], &one.style);
			base_str_add_bytes(&all->text, base_str_text(&one.text), one.text.length);
		}
		base_str_fini(&one.text);
		all->as = one.as;
	}
	return first_failure;
}

/* What several have to say, unless none has anything. */
static int sections_run(struct cmd *c, struct report_run *run, const struct cmd_sections *s)
{
	struct cmd_answer a;
	int failure = sections_answer(c, run, s, &a), exit_status = CMD_OK;
	if (a.as == CMD_AS_NOTHING)
		cmd_close(c, run);
	else
		exit_status = cmd_answer_end(c, &a, run);
	return failure ? failure : exit_status;
}

int cmd_run_section(struct cmd *c)
{
	const struct cmd_sections *s = c->sections;
	struct report_run run;
	struct cmd_answer a;
	int exit_status = CMD_OK;
	if (s && cmd_sections_mistyped(c))
		return CMD_USAGE;
	if (s)
		sections_tell_files(c, s);
	for (size_t i = 0; s && i < s->nr && exit_status == CMD_OK; i++)
		exit_status = s->section[i]->section(c, NULL, NULL);
	if (!s)
		exit_status = c->spec->section(c, NULL, NULL);
	if (exit_status == CMD_OK)
		exit_status = cmd_open_operand(c, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	if (!s)
		c->spec->section(c, &run, &a);
	else if (s->nr == 1)
		s->section[0]->section(c, &run, &a);
	else
		return sections_run(c, &run, s);
	return cmd_answer_end(c, &a, &run);
}
