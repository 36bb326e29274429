/* SPDX-License-Identifier: Apache-2.0 */
/* slack_json.c - the answer of `longpole slack` as JSON: counts and cycles, longpole/slack/1. */
#include "cmd/memory/slack.h"
#include "base/json.h"

#include <math.h>

enum { SLACK_IN_ORDER = 1 }; /* .needs */
struct slack_bucket {
	uint64_t low, high, nr;
};
struct slack_instruction {
	struct slack_static of;
	const char *name;
	uint64_t least;
	double mean, deviation; /* of those that lead to the end */
};

static json_t *slack_json_histogram(const struct base_histogram *h, const struct base_table *table)
{
	json_t *list = json_array();
	for (unsigned i = 0; h->count && i < BASE_HISTOGRAM_BUCKETS; i++) {
		struct slack_bucket b;
		b.nr = base_histogram_bucket(h, i, &b.low, &b.high);
		if (b.nr)
			json_array_append_new(list, base_table_json(table, &b, NULL, 0));
	}
	return list;
}

static json_t *slack_json_group(
	const struct cmd_slack_view *v, enum cmd_slack_by by, const struct base_table *table)
{
	size_t nr;
	struct cmd_slack_named *g = cmd_slack_group(v->names, v->result, by, &nr);
	json_t *list = base_table_json_list(table, g, nr, NULL, 0);
	cmd_slack_group_free(g, nr);
	return list;
}

static json_t *slack_json_name(
	const struct cmd_slack_view *v, enum cmd_slack_by by, uint64_t address)
{
	struct base_str name = {0};
	cmd_slack_name(v->names, by, address, &name);
	json_t *j = json_string(base_str_text(&name));
	base_str_fini(&name);
	return j;
}

static json_t *slack_json_instructions(
	const struct cmd_slack_view *v, const struct base_table *table)
{
	const struct slack_static *code = v->is_in_order ? v->result->code : v->fields->code;
	size_t nr = v->is_in_order ? v->result->nr_code : v->fields->nr_code;
	json_t *list = json_array();
	for (size_t i = 0; i < nr; i++) {
		const struct slack_static *c = &code[i];
		uint64_t inside = c->executed - c->outside;
		struct base_str name = {0};
		if (!c->executed)
			continue;
		double mean = inside ? c->sum / (double)inside : 0;
		double variance = inside ? c->squares / (double)inside - mean * mean : 0;
		cmd_slack_name(v->names, CMD_SLACK_INSTRUCTION, c->code, &name);
		struct slack_instruction x = {.of = *c,
			.name = base_str_text(&name),
			.least = inside ? c->least : 0,
			.mean = mean,
			.deviation = variance > 0 ? sqrt(variance) : 0};
		json_array_append_new(list,
			base_table_json(table, &x, NULL, v->is_in_order ? SLACK_IN_ORDER : 0));
		base_str_fini(&name);
	}
	return list;
}

static json_t *slack_json_diagnostics(const struct memory_source *s)
{
	json_t *list = json_array();
	for (unsigned d = 0; d < MEMORY_DIAG_NR; d++)
		if (s->diags.count[d])
			json_array_append_new(
				list, json_pack("{s:s, s:o}", "name", memory_diag_name(d), "count",
					      base_json_u64(s->diags.count[d])));
	return list;
}

static json_t *slack_json_words(const struct cmd_slack_view *v, const struct slack_spin_loop *l)
{
	json_t *words = json_array();
	for (uint32_t i = 0; i < l->nr_words; i++)
		json_array_append_new(words, slack_json_name(v, CMD_SLACK_DATA, l->word[i]));
	return words;
}

static json_t *slack_json_loops(const struct cmd_slack_view *v, const struct base_table *table)
{
	json_t *loops = json_array();
	const struct slack_spin_loop **list = cmd_slack_loops(v->spins);
	for (size_t i = 0; list && i < v->spins->nr_loops; i++)
		json_array_append_new(loops, base_table_json(table, list[i], v, 0));
	base_free(list);
	return loops;
}

#include "cmd/memory/slack.def"

json_t *cmd_slack_json(const struct cmd_slack_view *v)
{
	return base_table_json(&cmd_slack_document, v, v, 0);
}
