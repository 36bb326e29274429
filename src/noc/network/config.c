/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - the table of parameters: defaults, parsing, printing. */
#include "noc/network/config.h"

#include <ini.h>
#include <string.h>

#define WORD(name_, upper, sentence_) {.name = #name_, .sentence = sentence_},
const struct base_word noc_topology_words[] = {
#define TOPOLOGY WORD
#include "noc/network/noc_words.def"
};
const struct base_word noc_routing_words[] = {
#define ROUTING WORD
#include "noc/network/noc_words.def"
};
const struct base_word noc_allocator_words[] = {
#define ALLOCATOR WORD
#include "noc/network/noc_words.def"
};
const struct base_word noc_pattern_words[] = {
#define PATTERN WORD
#include "noc/network/noc_words.def"
};
const struct base_word noc_injection_words[] = {
#define INJECTION WORD
#include "noc/network/noc_words.def"
};

#define NUMBER(kind, group_, key, preset, least, most, unit, sentence)                             \
	{.group = #group_,                                                                         \
		BASE_NUMBER(kind, struct noc_config, key, preset, least, most, unit, sentence)},
static const struct base_parameter parameter_table[] = {
#define INTEGER(group, key, preset, least, most, unit, sentence)                                   \
	NUMBER(BASE_INTEGER, group, key, preset, least, most, unit, sentence)
#define REAL(group, key, preset, least, most, unit, sentence)                                      \
	NUMBER(BASE_REAL, group, key, preset, least, most, unit, sentence)
#define CHOICE(group_, key, preset, words_, sentence)                                              \
	{.group = #group_,                                                                         \
		BASE_FIELD(BASE_CHOICE, struct noc_config, key, "word", sentence),                 \
		.words = noc_##words_##_words,                                                     \
		.nr_words = BASE_COUNT(noc_##words_##_words)},
#define TEXT(group_, key, preset, sentence)                                                        \
	{.group = #group_,                                                                         \
		BASE_FIELD(BASE_TEXT, struct noc_config, key, "text", sentence),                   \
		.preset_text = (preset)},
#include "noc/network/noc_parameters.def"
};

struct base_parameters noc_parameters(void)
{
	return (struct base_parameters){parameter_table, BASE_COUNT(parameter_table)};
}

void noc_config_init(struct noc_config *c)
{
	*c = (struct noc_config){0};
	base_parameters_preset(noc_parameters(), NULL, c);
}

static enum base_status set_value(
	struct noc_config *c, const char *key, const char *value, struct base_err *err)
{
	const struct base_parameter *p = base_parameter_find(noc_parameters(), NULL, key, err);
	if (p && !strcmp(key, "topology") && !strcmp(value, "ring"))
		return base_fail(err, BASE_ERR_USAGE,
			"topology = ring: that is a torus of one dimension: topology=torus n=1 "
			"k=ROUTERS");
	return p ? base_parameter_set(p, c, value, err) : BASE_ERR_USAGE;
}

enum base_status noc_config_set(struct noc_config *c, const char *setting, struct base_err *err)
{
	struct base_assignment a;
	enum base_status s = base_assignment_split(&a, setting, err);
	return s == BASE_OK ? set_value(c, a.key, a.value, err) : s;
}

/* ---- a file ---------------------------------------------------------------------------------- */

struct parse {
	struct noc_config *config;
	struct base_err *err;
	enum base_status status;
};

static int config_on_pair(void *ctx, const char *section, const char *key, const char *value)
{
	struct parse *p = ctx;
	(void)section;
	if (p->status == BASE_OK)
		p->status = set_value(p->config, key, value, p->err);
	return p->status == BASE_OK;
}

enum base_status noc_config_parse(
	struct noc_config *c, const char *text, const char *name, struct base_err *err)
{
	struct parse p = {.config = c, .err = err, .status = BASE_OK};
	int line = ini_parse_string(text, config_on_pair, &p);
	if (p.status != BASE_OK)
		return base_cause(err, p.status, "%s, line %d", name, line);
	if (line > 0)
		return base_fail(err, BASE_ERR_USAGE, "%s, line %d: not 'key = value'", name, line);
	return line ? base_fail(err, BASE_ERR_NOMEM, "%s", name) : BASE_OK;
}
