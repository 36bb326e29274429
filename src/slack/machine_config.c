/* SPDX-License-Identifier: Apache-2.0 */
/* machine_config.c - table 2-1 of seed 003, and what is set otherwise. */
#include "slack/machine.h"

#include <ini.h>
#include <string.h>

static const struct base_parameter parameter_table[] = {
#define PARAM(key, preset, least, most, unit, sentence)                                            \
	{BASE_NUMBER(BASE_INTEGER, struct slack_machine_config, key, preset, least, most, unit,    \
		sentence)},
#include "slack/machine_parameters.def"
};

struct base_parameters slack_parameters(void)
{
	return (struct base_parameters){parameter_table, BASE_COUNT(parameter_table)};
}

struct slack_machine_config *slack_machine_config_free(struct slack_machine_config *c)
{
	if (c)
		memory_cdat_config_free(c->cdat);
	base_free(c);
	return NULL;
}

struct slack_machine_config *slack_machine_config_new(uint32_t nr_processors)
{
	static const char *const table_2_1[] = {"data_bytes=128K", "data_ways=4", "code_bytes=128K",
		"code_ways=4", "second_bytes=4M", "second_ways=4", "line_bytes=64",
		"protocol=mosi"};
	struct slack_machine_config *c = base_alloc(sizeof *c);
	if (!c)
		return NULL;
	c->cdat = memory_cdat_config_new();
	if (!c->cdat)
		return slack_machine_config_free(c);
	base_parameters_preset(slack_parameters(), NULL, c);
	for (size_t i = 0; i < BASE_COUNT(table_2_1); i++)
		if (memory_cdat_config_set(c->cdat, table_2_1[i], NULL) != BASE_OK)
			return slack_machine_config_free(c);
	uint32_t nr = nr_processors ? nr_processors : 1;
	c->cdat->nodes = nr < MEMORY_CDAT_NODES_MAX ? nr : MEMORY_CDAT_NODES_MAX;
	c->cdat->processors = (nr + c->cdat->nodes - 1) / c->cdat->nodes;
	return c;
}

enum base_status slack_machine_config_set(
	struct slack_machine_config *c, const char *assignment, struct base_err *err)
{
	struct base_assignment a;
	enum base_status s = base_assignment_split(&a, assignment, err);
	if (s != BASE_OK)
		return s;
	const struct base_parameter *p = base_parameter_find(slack_parameters(), NULL, a.key, NULL);
	return p ? base_parameter_set(p, c, a.value, err)
		 : memory_cdat_config_set(c->cdat, assignment, err);
}

struct reading {
	struct slack_machine_config *c;
	struct base_err *err;
	enum base_status status;
};

static int machine_config_on_line(
	void *ctx, const char *section, const char *key, const char *value)
{
	struct reading *r = ctx;
	struct base_str assignment = {0};
	if (strcmp(section, "machine") != 0) {
		r->status = base_fail(r->err, BASE_ERR_USAGE,
			"[%s]: a machine has one section, [machine]", section);
		return 0;
	}
	base_str_addf(&assignment, "%s=%s", key, value);
	r->status = assignment.failed
			    ? base_fail(r->err, BASE_ERR_NOMEM, "no memory for a parameter")
			    : slack_machine_config_set(r->c, base_str_text(&assignment), r->err);
	base_str_fini(&assignment);
	return r->status == BASE_OK;
}

enum base_status slack_machine_config_read(
	struct slack_machine_config *c, const char *text, const char *path, struct base_err *err)
{
	struct reading r = {.c = c, .err = err};
	int bad = ini_parse_string(text, machine_config_on_line, &r);
	if (r.status != BASE_OK)
		return base_cause(err, r.status, "%s", path);
	if (bad)
		return base_fail(err, BASE_ERR_USAGE, "%s, line %d is not KEY = VALUE", path, bad);
	return BASE_OK;
}
