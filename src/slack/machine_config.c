/* SPDX-License-Identifier: Apache-2.0 */
/* machine_config.c - table 2-1 of seed 003, and what is set otherwise. */
#include "slack/machine.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

static const struct slack_parameter parameter_table[] = {
#define PARAM(key_, preset_, least_, most_, unit_, sentence_)                                      \
	{.key = #key_,                                                                             \
		.unit = unit_,                                                                     \
		.sentence = sentence_,                                                             \
		.preset = (preset_),                                                               \
		.least = (least_),                                                                 \
		.most = (most_)},
#include "slack/machine_parameters.def"
};
static const size_t parameter_offset[] = {
#define PARAM(key, preset, least, most, unit, sentence) offsetof(struct slack_machine_config, key),
#include "slack/machine_parameters.def"
};

const struct slack_parameter *slack_parameters(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(parameter_table);
	return parameter_table;
}

static uint64_t *field(struct slack_machine_config *c, size_t i)
{
	return (uint64_t *)(void *)((char *)c + parameter_offset[i]);
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
	for (size_t i = 0; i < BASE_COUNT(parameter_table); i++)
		*field(c, i) = parameter_table[i].preset;
	for (size_t i = 0; i < BASE_COUNT(table_2_1); i++)
		if (memory_cdat_config_set(c->cdat, table_2_1[i], NULL) != BASE_OK)
			return slack_machine_config_free(c);
	uint32_t nr = nr_processors ? nr_processors : 1;
	c->cdat->nodes = nr < MEMORY_CDAT_NODES_MAX ? nr : MEMORY_CDAT_NODES_MAX;
	c->cdat->processors = (nr + c->cdat->nodes - 1) / c->cdat->nodes;
	return c;
}

static enum base_status set_number(
	struct slack_machine_config *c, size_t i, const char *value, struct base_err *err)
{
	const struct slack_parameter *p = &parameter_table[i];
	char *end;
	errno = 0;
	unsigned long long n = strtoull(value, &end, 10);
	if (end == value || *end || errno || *value == '-' || n < p->least || n > p->most)
		return base_fail(err, BASE_ERR_USAGE, "%s = %s: a number from %llu to %llu (%s)",
			p->key, value, (unsigned long long)p->least, (unsigned long long)p->most,
			p->unit);
	*field(c, i) = n;
	return BASE_OK;
}

enum base_status slack_machine_config_set(
	struct slack_machine_config *c, const char *assignment, struct base_err *err)
{
	for (size_t i = 0; i < BASE_COUNT(parameter_table); i++) {
		size_t length = strlen(parameter_table[i].key);
		if (!strncmp(assignment, parameter_table[i].key, length) &&
			assignment[length] == '=')
			return set_number(c, i, assignment + length + 1, err);
	}
	return memory_cdat_config_set(c->cdat, assignment, err);
}

struct reading {
	struct slack_machine_config *c;
	struct base_err *err;
	enum base_status status;
};

static int on_line(void *ctx, const char *section, const char *key, const char *value)
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
	int bad = ini_parse_string(text, on_line, &r);
	if (r.status != BASE_OK)
		return base_cause(err, r.status, "%s", path);
	if (bad)
		return base_fail(err, BASE_ERR_USAGE, "%s, line %d is not KEY = VALUE", path, bad);
	return BASE_OK;
}
