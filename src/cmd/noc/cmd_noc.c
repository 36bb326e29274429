/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc.c - `longpole noc VERB`: the verbs' table, and what they share. */
#include "cmd/noc/noc.h"

#include <math.h>
#include <string.h>

enum { CONFIG_LIMIT_BYTES = 1 << 20 };

static const struct cmd_option option[] = {NOC_OPTION_LIST};

const struct cmd_details cmd_details_noc = {
	.usage = "VERB [OPTION...] [OPERAND...]",
	.about = "Simulates on-chip networks flit by flit and cycle by cycle: routers with "
		 "virtual channels and credits. It also makes, infers and replays graphs that "
		 "say which packet waited for which. 'longpole noc VERB --help' and 'man "
		 "longpole-noc-VERB' say more.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole noc sim topology=torus k=8 load=0.2",
		"longpole noc sim --saturation traffic=transpose",
		"longpole noc --list-parameters"},
};

/* ---- parameters ------------------------------------------------------------------------------ */

int cmd_noc_list_parameters(struct cmd *c)
{
	struct base_str text = {0};
	if (cmd_given(c, "json"))
		return cmd_write_parameters(c, noc_parameters(), NULL, NULL);
	cmd_add_parameters(&text, noc_parameters(), NULL);
	return cmd_write(c, &text);
}

int cmd_noc_config(struct cmd *c, size_t first, struct noc_config *ret)
{
	const char *path = cmd_value(c, "config");
	enum base_status s = BASE_OK;
	noc_config_init(ret);
	if (path) {
		char *text = cmd_read_file(c, path, CONFIG_LIMIT_BYTES);
		if (!text)
			return CMD_ENVIRONMENT;
		s = noc_config_parse(ret, text, path, &c->err);
		base_free(text);
	}
	for (size_t i = first; s == BASE_OK && i < c->nr_operands; i++)
		s = noc_config_set(ret, c->operand[i], &c->err);
	return s == BASE_OK ? CMD_OK : cmd_fail(c, s);
}

void cmd_noc_add_number(struct base_str *out, double x, int width, int decimals)
{
	if (isnan(x))
		base_str_addf(out, "%*s", width, "-");
	else
		base_str_addf(out, "%*.*f", width, decimals, x);
}

void cmd_noc_add_error(struct base_str *out, double x, int width, int decimals)
{
	if (isnan(x))
		base_str_addf(out, "%*s  ", width, "-");
	else
		base_str_addf(out, "%+*.*f %%", width, decimals, 100 * x);
}

json_t *cmd_noc_config_json(const struct noc_config *config)
{
	const struct base_parameters p = noc_parameters();
	json_t *object = json_object();
	for (size_t i = 0; i < p.nr; i++) {
		struct base_str value = {0};
		base_parameter_add_value(&value, &p.row[i], config);
		json_object_set_new(object, p.row[i].key, json_string(base_str_text(&value)));
		base_str_fini(&value);
	}
	return object;
}

static void add_shape(struct base_str *out, const struct noc_config *k)
{
	if (*k->dims) {
		base_str_add(out, k->dims);
		return;
	}
	for (uint64_t d = 0; d < k->n; d++)
		base_str_addf(out, "%s%llu", d ? "x" : "", (unsigned long long)k->k);
}

void cmd_noc_describe(struct base_str *out, const struct noc_config *k)
{
	const char *name = noc_topology_words[k->topology].name;
	if (k->topology == NOC_TOPOLOGY_FATTREE) {
		base_str_addf(out, "%llu-ary %llu-tree", (unsigned long long)k->k,
			(unsigned long long)k->n);
	} else if (k->topology == NOC_TOPOLOGY_TORUS && k->n == 1 && !*k->dims) {
		base_str_addf(out, "ring of %llu {router|routers}", (unsigned long long)k->k);
	} else if (k->topology == NOC_TOPOLOGY_FLATFLY && k->n == 1 && !*k->dims) {
		base_str_addf(
			out, "%llu fully connected {router|routers}", (unsigned long long)k->k);
	} else if (k->topology == NOC_TOPOLOGY_GRAPH) {
		base_str_addf(out, "graph %s", k->graph);
	} else if (k->topology == NOC_TOPOLOGY_IDEAL) {
		base_str_add(out, "ideal network");
	} else {
		add_shape(out, k);
		base_str_addf(out, " %s", name);
	}
}

/* ---- without a verb -------------------------------------------------------------------------- */

int cmd_run_noc(struct cmd *c)
{
	if (cmd_given(c, "list-parameters"))
		return cmd_noc_list_parameters(c);
	if (!c->nr_operands) {
		struct base_str text = {0};
		if (cmd_given(c, "json"))
			return cmd_usage(c, "--json: with --list-parameters, or after a verb");
		cmd_add_verbs(&text, c->spec);
		return cmd_write(c, &text);
	}
	if (cmd_find_verb(c->spec, c->operand[0]))
		return cmd_usage(
			c, "noc: the verb comes first: longpole noc %s ...", c->operand[0]);
	struct base_str words = {0};
	size_t nr;
	const struct cmd_spec *verb = cmd_verbs(&nr);
	for (size_t i = 0; i < nr; i++)
		if (cmd_is_verb_of(&verb[i], c->spec))
			base_str_addf(&words, " %s", verb[i].name + strlen(c->spec->name) + 1);
	cmd_usage_choice(c, "noc", c->operand[0], base_str_text(&words));
	base_str_fini(&words);
	return CMD_USAGE;
}
