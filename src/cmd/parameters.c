/* SPDX-License-Identifier: Apache-2.0 */
/* parameters.c - tables of parameters as users see them. */
#include "cmd/cmd.h"

#include <string.h>

static void parameters_add_heading(
	struct base_str *out, const char *group, const char *single_group)
{
	base_str_addf(out, "%s[%s%s]\n", out->length ? "\n" : "", group,
		single_group && strcmp(group, single_group) != 0 ? " NAME" : "");
}

static void parameters_add_one(struct base_str *out, const struct base_parameter *p)
{
	base_str_addf(out, "%s = ", p->key);
	base_parameter_add_preset(out, p);
	base_str_addf(out, "\n\t%s", p->sentence);
	if (p->kind == BASE_INTEGER || p->kind == BASE_REAL) {
		base_str_add(out, " (");
		base_parameter_add_limits(out, p);
		base_str_add(out, ")");
	}
	if (p->source)
		base_str_addf(out, "; source: %s", p->source);
	base_str_add(out, "\n");
	for (size_t w = 0; w < p->nr_words; w++)
		base_str_addf(out, "\t  %-10s %s\n", p->words[w].name, p->words[w].sentence);
}

void cmd_add_parameters(struct base_str *out, struct base_parameters p, const char *single_group)
{
	const char *group = "";
	for (size_t i = 0; i < p.nr; i++) {
		if (p.row[i].group && strcmp(group, p.row[i].group) != 0) {
			group = p.row[i].group;
			parameters_add_heading(out, group, single_group);
		}
		parameters_add_one(out, &p.row[i]);
	}
}

static json_t *words_json(const struct base_parameter *p)
{
	json_t *words = json_array();
	for (size_t w = 0; w < p->nr_words; w++)
		json_array_append_new(words, json_pack("{s:s, s:s}", "word", p->words[w].name,
						     "sentence", p->words[w].sentence));
	return words;
}

static json_t *preset_json(const struct base_parameter *p)
{
	struct base_str text = {0};
	if (p->kind == BASE_INTEGER)
		return json_integer((json_int_t)p->preset);
	if (p->kind == BASE_REAL)
		return json_real(p->preset);
	base_parameter_add_preset(&text, p);
	json_t *preset = json_string(base_str_text(&text));
	base_str_fini(&text);
	return preset;
}

static json_t *rows_json(struct base_parameters p)
{
	json_t *list = json_array();
	for (size_t i = 0; i < p.nr; i++) {
		const struct base_parameter *q = &p.row[i];
		json_array_append_new(list,
			json_pack("{s:s*, s:s, s:s, s:o, s:f, s:f, s:s, s:s*, s:o}", "group",
				q->group, "key", q->key, "unit", q->unit, "default", preset_json(q),
				"least", q->least, "most", q->most, "sentence", q->sentence,
				"source", q->source, "words", words_json(q)));
	}
	return list;
}

int cmd_write_parameters(struct cmd *c, struct base_parameters p, const char *key, json_t *more)
{
	json_t *result = json_pack("{s:o}", "parameters", rows_json(p));
	if (more)
		json_object_set_new(result, key, more);
	return cmd_write_result(c, "longpole/parameters/1", result);
}
