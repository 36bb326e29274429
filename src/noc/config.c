/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - the table of parameters: defaults, parsing, printing. */
#include "noc/config.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#define WORD(name_, upper, sentence_) {.name = #name_, .sentence = sentence_},
const struct noc_word noc_topology_words[] = {
#define TOPOLOGY WORD
#include "noc/noc_words.def"
};
const struct noc_word noc_routing_words[] = {
#define ROUTING WORD
#include "noc/noc_words.def"
};
const struct noc_word noc_allocator_words[] = {
#define ALLOCATOR WORD
#include "noc/noc_words.def"
};
const struct noc_word noc_pattern_words[] = {
#define PATTERN WORD
#include "noc/noc_words.def"
};
const struct noc_word noc_injection_words[] = {
#define INJECTION WORD
#include "noc/noc_words.def"
};

/* A choice's default is the first word of its table. */
#define GROUP(g) #g
static const struct noc_parameter parameter_table[] = {
#define INTEGER(group_, key_, preset_, least_, most_, unit_, sentence_)                            \
	{.group = GROUP(group_),                                                                   \
		.key = #key_,                                                                      \
		.unit = unit_,                                                                     \
		.sentence = sentence_,                                                             \
		.kind = NOC_INTEGER,                                                               \
		.preset = (double)(preset_),                                                       \
		.least = (double)(least_),                                                         \
		.most = (double)(most_)},
#define REAL(group_, key_, preset_, least_, most_, unit_, sentence_)                               \
	{.group = GROUP(group_),                                                                   \
		.key = #key_,                                                                      \
		.unit = unit_,                                                                     \
		.sentence = sentence_,                                                             \
		.kind = NOC_REAL,                                                                  \
		.preset = (preset_),                                                               \
		.least = (least_),                                                                 \
		.most = (most_)},
#define CHOICE(group_, key_, preset_, words_, sentence_)                                           \
	{.group = GROUP(group_),                                                                   \
		.key = #key_,                                                                      \
		.unit = "word",                                                                    \
		.sentence = sentence_,                                                             \
		.kind = NOC_CHOICE,                                                                \
		.words = noc_##words_##_words,                                                     \
		.nr_words = BASE_COUNT(noc_##words_##_words)},
#define TEXT(group_, key_, preset_, sentence_)                                                     \
	{.group = GROUP(group_),                                                                   \
		.key = #key_,                                                                      \
		.unit = "text",                                                                    \
		.sentence = sentence_,                                                             \
		.kind = NOC_TEXT},
#include "noc/noc_parameters.def"
};
static const size_t parameter_offset[] = {
#define INTEGER(group, key, preset, least, most, unit, sentence) offsetof(struct noc_config, key),
#define REAL(group, key, preset, least, most, unit, sentence)    offsetof(struct noc_config, key),
#define CHOICE(group, key, preset, words, sentence)              offsetof(struct noc_config, key),
#define TEXT(group, key, preset, sentence)                       offsetof(struct noc_config, key),
#include "noc/noc_parameters.def"
};

const struct noc_parameter *noc_parameters(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(parameter_table);
	return parameter_table;
}

void noc_config_init(struct noc_config *c)
{
	*c = (struct noc_config){
#define INTEGER(group, key_, preset, least, most, unit, sentence) .key_ = (preset),
#define REAL(group, key_, preset, least, most, unit, sentence)    .key_ = (preset),
#define CHOICE(group, key_, preset, words, sentence)              .key_ = 0,
#define TEXT(group, key_, preset, sentence)                       .key_ = preset,
#include "noc/noc_parameters.def"
	};
}

static const void *const_field(const struct noc_config *c, size_t i)
{
	return (const char *)c + parameter_offset[i];
}

/* ---- one setting --------------------------------------------------------------------------- */

static enum base_status set_integer(
	struct noc_config *c, size_t i, const char *value, struct base_err *err)
{
	const struct noc_parameter *p = &parameter_table[i];
	char *end;
	errno = 0;
	unsigned long long v = strtoull(value, &end, 10);
	if (end == value || *end || *value == '-' || errno)
		return base_fail(err, BASE_ERR_USAGE, "%s = %s: not a whole number", p->key, value);
	/* A limit of 2^64 - 1 is no limit; as a double it would round up. */
	if ((double)v < p->least || (p->most < 1.8e19 && (double)v > p->most))
		return base_fail(err, BASE_ERR_USAGE, "%s = %s: it is from %.0f to %.0f %s", p->key,
			value, p->least, p->most, p->unit);
	uint64_t n = v;
	memcpy((char *)c + parameter_offset[i], &n, sizeof n);
	return BASE_OK;
}

static enum base_status set_real(
	struct noc_config *c, size_t i, const char *value, struct base_err *err)
{
	const struct noc_parameter *p = &parameter_table[i];
	char *end;
	double v = strtod(value, &end);
	if (end == value || *end)
		return base_fail(err, BASE_ERR_USAGE, "%s = %s: not a number", p->key, value);
	if (!(v >= p->least && v <= p->most))
		return base_fail(err, BASE_ERR_USAGE, "%s = %s: it is from %g to %g %s", p->key,
			value, p->least, p->most, p->unit);
	memcpy((char *)c + parameter_offset[i], &v, sizeof v);
	return BASE_OK;
}

static enum base_status set_choice(
	struct noc_config *c, size_t i, const char *value, struct base_err *err)
{
	const struct noc_parameter *p = &parameter_table[i];
	struct base_str list = {0};
	for (uint64_t w = 0; w < p->nr_words; w++) {
		if (!strcmp(p->words[w].name, value)) {
			memcpy((char *)c + parameter_offset[i], &w, sizeof w);
			base_str_fini(&list);
			return BASE_OK;
		}
		base_str_addf(&list, "%s%s", w ? ", " : "", p->words[w].name);
	}
	enum base_status s = base_fail(err, BASE_ERR_USAGE, "%s = %s: it is one of %s", p->key,
		value, base_str_text(&list));
	base_str_fini(&list);
	return s;
}

static enum base_status set_text(
	struct noc_config *c, size_t i, const char *value, struct base_err *err)
{
	size_t length = strlen(value);
	if (length >= NOC_TEXT_MAX)
		return base_fail(err, BASE_ERR_USAGE, "%s: longer than %d bytes",
			parameter_table[i].key, NOC_TEXT_MAX - 1);
	memcpy((char *)c + parameter_offset[i], value, length + 1);
	return BASE_OK;
}

static size_t distance(const char *a, const char *b)
{
	size_t same = 0, la = strlen(a), lb = strlen(b);
	while (a[same] && a[same] == b[same])
		same++;
	return (la > lb ? la : lb) - same;
}

static enum base_status set_value(
	struct noc_config *c, const char *key, const char *value, struct base_err *err)
{
	static enum base_status (*const set[])(
		struct noc_config *, size_t, const char *, struct base_err *) = {
		[NOC_INTEGER] = set_integer,
		[NOC_REAL] = set_real,
		[NOC_CHOICE] = set_choice,
		[NOC_TEXT] = set_text,
	};
	size_t nearest = 0, best = SIZE_MAX;
	for (size_t i = 0; i < BASE_COUNT(parameter_table); i++) {
		size_t d = distance(parameter_table[i].key, key);
		if (!d)
			return set[parameter_table[i].kind](c, i, value, err);
		if (d < best) {
			best = d;
			nearest = i;
		}
	}
	return base_fail(err, BASE_ERR_USAGE, "no parameter '%s'; the nearest is '%s'", key,
		parameter_table[nearest].key);
}

enum base_status noc_config_set(struct noc_config *c, const char *setting, struct base_err *err)
{
	const char *equals = strchr(setting, '=');
	if (!equals)
		return base_fail(err, BASE_ERR_USAGE, "'%s' is not KEY=VALUE", setting);
	char key[64], value[NOC_TEXT_MAX];
	const char *begin = setting + strspn(setting, " \t");
	size_t length = (size_t)(equals - begin);
	while (length && strchr(" \t", begin[length - 1]))
		length--;
	if (begin > equals || length >= sizeof key)
		return base_fail(err, BASE_ERR_USAGE, "'%s' is not KEY=VALUE", setting);
	memcpy(key, begin, length);
	key[length] = 0;
	begin = equals + 1 + strspn(equals + 1, " \t");
	length = strlen(begin);
	while (length && strchr(" \t\r\n", begin[length - 1]))
		length--;
	if (length >= sizeof value)
		return base_fail(
			err, BASE_ERR_USAGE, "%s: longer than %d bytes", key, NOC_TEXT_MAX - 1);
	memcpy(value, begin, length);
	value[length] = 0;
	return set_value(c, key, value, err);
}

/* ---- a file -------------------------------------------------------------------------------- */

struct parse {
	struct noc_config *config;
	struct base_err *err;
	enum base_status status;
};

static int on_pair(void *ctx, const char *section, const char *key, const char *value)
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
	int line = ini_parse_string(text, on_pair, &p);
	if (p.status != BASE_OK)
		return base_cause(err, p.status, "%s, line %d", name, line);
	if (line > 0)
		return base_fail(err, BASE_ERR_USAGE, "%s, line %d: not 'key = value'", name, line);
	return line ? base_fail(err, BASE_ERR_NOMEM, "%s", name) : BASE_OK;
}

void noc_config_add_value(struct base_str *out, const struct noc_config *c, size_t i)
{
	const struct noc_parameter *p = &parameter_table[i];
	uint64_t n;
	double v;
	switch (p->kind) {
	case NOC_REAL:
		memcpy(&v, const_field(c, i), sizeof v);
		base_str_addf(out, "%.10g", v);
		return;
	case NOC_TEXT:
		base_str_add(out, const_field(c, i));
		return;
	case NOC_INTEGER:
	case NOC_CHOICE:
		memcpy(&n, const_field(c, i), sizeof n);
		if (p->kind == NOC_CHOICE)
			base_str_add(out, p->words[n].name);
		else
			base_str_addf(out, "%llu", (unsigned long long)n);
		return;
	}
}
