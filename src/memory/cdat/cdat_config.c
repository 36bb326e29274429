/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdat_config.c - the INI file of a machine.
 *
 *	[machine]
 *	nodes = 4
 *	protocol = dir1
 *	mapping = 0:0 0:1 1:0 1:1
 */
#include "memory/cdat/cdat.h"

#include <ini.h>
#include <stdlib.h>
#include <string.h>

static const struct memory_cdat_protocol protocol_table[] = {
#define PROTOCOL(                                                                                  \
	name_, network_, remote_exclusive_, announced_, direct_, exclusive_, owned_, line_)        \
	{.name = #name_,                                                                           \
		.line = line_,                                                                     \
		.network = MEMORY_CDAT_##network_,                                                 \
		.remote_exclusive = (remote_exclusive_),                                           \
		.announced = (announced_),                                                         \
		.direct = (direct_),                                                               \
		.exclusive = (exclusive_),                                                         \
		.owned = (owned_)},
#include "memory/cdat/cdat_protocols.def"
};

const struct memory_cdat_protocol *memory_cdat_protocols(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(protocol_table);
	return protocol_table;
}

static const struct base_parameter parameter_table[] = {
#define PARAM(key, preset, least, most, unit, sentence)                                            \
	{BASE_NUMBER(BASE_INTEGER, struct memory_cdat_config, key, preset, least, most, unit,      \
		sentence)},
#include "memory/cdat/cdat_parameters.def"
};

struct base_parameters memory_cdat_parameters(void)
{
	return (struct base_parameters){parameter_table, BASE_COUNT(parameter_table)};
}

struct memory_cdat_config *memory_cdat_config_new(void)
{
	struct memory_cdat_config *c = base_alloc(sizeof *c);
	if (!c)
		return NULL;
	base_parameters_preset(memory_cdat_parameters(), NULL, c);
	c->protocol = &protocol_table[0];
	c->allocation = MEMORY_CDAT_FIRST_TOUCH;
	return c;
}

struct memory_cdat_config *memory_cdat_config_free(struct memory_cdat_config *c)
{
	base_free(c);
	return NULL;
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct base_word allocation_words[] = {
	{"rr1", NULL}, {"rr2", NULL}, {"oracle", NULL}, {"first_touch", NULL}};
static const struct base_word replacement_words[] = {
	{"lru", NULL}, {"fifo", NULL}, {"random", NULL}};
static const struct base_word protocol_words[] = {
#define PROTOCOL(name, network, remote_exclusive, announced, direct, exclusive, owned, line)       \
	{#name, line},
#include "memory/cdat/cdat_protocols.def"
};

/* "0:0 0:1 1:0": node and processor in it, thread by thread. */
static enum base_status set_mapping(
	struct memory_cdat_config *c, const char *value, struct base_err *err)
{
	c->scattered = !strcmp(value, "scatter");
	c->nr_mapped = 0;
	if (c->scattered || !strcmp(value, "fill"))
		return BASE_OK;
	do {
		char *end, *after;
		unsigned long node = strtoul(value, &end, 10);
		unsigned long processor = *end == ':' ? strtoul(end + 1, &after, 10) : 0;
		if (end == value || *end != ':' || after == end + 1 ||
			node >= MEMORY_CDAT_NODES_MAX || processor >= MEMORY_CDAT_PROCESSORS_MAX ||
			c->nr_mapped == MEMORY_CDAT_PROCESSORS_MAX)
			return base_fail(err, BASE_ERR_USAGE,
				"mapping: '%s' is not fill, scatter, or a NODE:PROCESSOR a thread",
				value);
		c->place_of[c->nr_mapped++] =
			(uint32_t)(node * MEMORY_CDAT_PROCESSORS_MAX + processor);
		value = after + strspn(after, " ,\t");
	} while (*value);
	return BASE_OK;
}

/* One of the words that are not numbers; *ret_found is false when the key is none of them. */
static enum base_status cdat_config_set_word(struct memory_cdat_config *c, const char *key,
	const char *value, bool *ret_found, struct base_err *err)
{
	const struct {
		const char *key;
		const struct base_word *words;
		size_t nr;
	} choice[] = {{"protocol", protocol_words, BASE_COUNT(protocol_words)},
		{"allocation", allocation_words, BASE_COUNT(allocation_words)},
		{"replacement", replacement_words, BASE_COUNT(replacement_words)}};
	uint64_t n = 0;
	size_t i = 0;
	while (i < BASE_COUNT(choice) && strcmp(choice[i].key, key) != 0)
		i++;
	*ret_found = i < BASE_COUNT(choice);
	if (!*ret_found)
		return BASE_OK;
	enum base_status s = base_choose(choice[i].words, choice[i].nr, key, value, &n, err);
	if (s != BASE_OK)
		return s;
	if (i == 0)
		c->protocol = &protocol_table[n];
	else if (i == 1)
		c->allocation = (enum memory_cdat_allocation)n;
	else
		c->replacement = (enum memory_cdat_replacement)n;
	return BASE_OK;
}

static enum base_status cdat_config_set(
	struct memory_cdat_config *c, const char *key, const char *value, struct base_err *err)
{
	bool found;
	if (!strcmp(key, "mapping"))
		return set_mapping(c, value, err);
	enum base_status s = cdat_config_set_word(c, key, value, &found, err);
	if (s != BASE_OK || found)
		return s;
	const struct base_parameter *p =
		base_parameter_find(memory_cdat_parameters(), NULL, key, err);
	if (!p)
		return base_cause(err, BASE_ERR_USAGE,
			"'longpole cdat --list-parameters' lists what a machine has");
	return base_parameter_set(p, c, value, err);
}

/* ---- files and assignments ------------------------------------------------------------------- */

enum base_status memory_cdat_config_set(
	struct memory_cdat_config *c, const char *assignment, struct base_err *err)
{
	struct base_assignment a;
	enum base_status s = base_assignment_split(&a, assignment, err);
	return s == BASE_OK ? cdat_config_set(c, a.key, a.value, err) : s;
}

struct reading {
	struct memory_cdat_config *c;
	const char *path;
	struct base_err *err;
	enum base_status status;
	int line;
};

static int cdat_config_on_line(void *ctx, const char *section, const char *key, const char *value)
{
	struct reading *r = ctx;
	r->line++;
	if (strcmp(section, "machine") != 0)
		r->status = base_fail(r->err, BASE_ERR_USAGE,
			"[%s]: a machine has one section, [machine]", section);
	else
		r->status = cdat_config_set(r->c, key, value, r->err);
	return r->status == BASE_OK;
}

enum base_status memory_cdat_config_read(
	struct memory_cdat_config *c, const char *text, const char *path, struct base_err *err)
{
	struct reading r = {.c = c, .path = path, .err = err};
	int bad = ini_parse_string(text, cdat_config_on_line, &r);
	if (r.status != BASE_OK)
		return base_cause(err, r.status, "%s, assignment %d", path, r.line);
	if (bad)
		return base_fail(err, BASE_ERR_USAGE, "%s, line %d is not KEY = VALUE", path, bad);
	return BASE_OK;
}

static bool cdat_config_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* A cache that is simulated smaller than it was said to be would be another machine. */
static enum base_status check_cache(const struct memory_cdat_config *c, const char *name,
	uint64_t size_bytes, uint64_t ways, uint64_t line_bytes, struct base_err *err)
{
	if (!size_bytes)
		return BASE_OK;
	if (size_bytes < c->line_bytes)
		return base_fail(err, BASE_ERR_USAGE, "%s_bytes = %llu is less than a line", name,
			(unsigned long long)size_bytes);
	uint64_t lines = size_bytes / line_bytes;
	uint64_t set_bytes = (ways < lines ? ways : lines) * line_bytes;
	if (!(size_bytes % set_bytes))
		return BASE_OK;
	return base_fail(err, BASE_ERR_USAGE,
		"%s_bytes = %llu is no whole number of sets of %llu {byte|bytes} (%s_ways = %llu, "
		"lines of %llu); the nearest below is %llu",
		name, (unsigned long long)size_bytes, (unsigned long long)set_bytes, name,
		(unsigned long long)ways, (unsigned long long)line_bytes,
		(unsigned long long)(size_bytes - size_bytes % set_bytes));
}

struct memory_cdat_lines memory_cdat_config_lines(const struct memory_cdat_config *c)
{
	struct memory_cdat_lines l;
	l.third = c->third_bytes && c->third_line_bytes ? c->third_line_bytes : c->line_bytes;
	l.second = c->second_bytes && c->second_line_bytes ? c->second_line_bytes : l.third;
	l.data = c->data_line_bytes ? c->data_line_bytes : l.second;
	l.code = c->code_bytes && c->code_line_bytes ? c->code_line_bytes : l.second;
	return l;
}

bool memory_cdat_config_has_parts(const struct memory_cdat_config *c)
{
	struct memory_cdat_lines l = memory_cdat_config_lines(c);
	return l.third != c->line_bytes || l.second != c->line_bytes || l.data != c->line_bytes ||
	       l.code != c->line_bytes;
}

/* A line of one level lies in one of the level behind it. */
static enum base_status check_lines(const struct memory_cdat_config *c, struct base_err *err)
{
	struct memory_cdat_lines l = memory_cdat_config_lines(c);
	const struct {
		const char *name;
		uint64_t own_bytes, behind_bytes;
	} level[] = {{"third", l.third, c->line_bytes}, {"second", l.second, l.third},
		{"data", l.data, l.second}, {"code", l.code, l.second}};
	for (size_t i = 0; i < BASE_COUNT(level); i++)
		if (!cdat_config_power_of_two(level[i].own_bytes) || level[i].own_bytes < 8 ||
			level[i].own_bytes > level[i].behind_bytes)
			return base_fail(err, BASE_ERR_USAGE,
				"%s_line_bytes = %llu: a power of two from 8 to the %llu "
				"{byte|bytes} of "
				"a line behind it",
				level[i].name, (unsigned long long)level[i].own_bytes,
				(unsigned long long)level[i].behind_bytes);
	if (memory_cdat_config_has_parts(c) && !c->inclusive)
		return base_fail(err, BASE_ERR_USAGE,
			"inclusive = 0: levels that hand lines to each other have lines of one "
			"size");
	uint64_t last_bytes = c->third_bytes    ? l.third
			      : c->second_bytes ? l.second
			      : l.data < l.code ? l.data
						: l.code;
	if (c->replacement == MEMORY_CDAT_RANDOM && last_bytes != c->line_bytes)
		return base_fail(err, BASE_ERR_USAGE,
			"replacement = random: the last level's lines are the machine's, or one "
			"part of a line would take another one's place");
	return BASE_OK;
}

enum base_status memory_cdat_config_check(const struct memory_cdat_config *c, struct base_err *err)
{
	if (!cdat_config_power_of_two(c->line_bytes) || !cdat_config_power_of_two(c->page_bytes))
		return base_fail(err, BASE_ERR_USAGE,
			"line_bytes and page_bytes are powers of two, not %llu and %llu",
			(unsigned long long)c->line_bytes, (unsigned long long)c->page_bytes);
	if (c->nodes * c->processors > MEMORY_CDAT_PROCESSORS_MAX)
		return base_fail(err, BASE_ERR_USAGE,
			"%llu {node|nodes} of %llu {processor|processors} are more than %d "
			"processors",
			(unsigned long long)c->nodes, (unsigned long long)c->processors,
			MEMORY_CDAT_PROCESSORS_MAX);
	struct memory_cdat_lines l = memory_cdat_config_lines(c);
	const struct {
		const char *name;
		uint64_t size_bytes, ways, line_bytes;
	} cache[] = {{"data", c->data_bytes, c->data_ways, l.data},
		{"code", c->code_bytes, c->code_ways, l.code},
		{"second", c->second_bytes, c->second_ways, l.second},
		{"third", c->third_bytes, c->third_ways, l.third},
		{"interconnect", c->interconnect_bytes, c->interconnect_ways, c->line_bytes}};
	enum base_status s = check_lines(c, err);
	for (size_t i = 0; i < BASE_COUNT(cache) && s == BASE_OK; i++)
		s = check_cache(c, cache[i].name, cache[i].size_bytes, cache[i].ways,
			cache[i].line_bytes, err);
	if (s != BASE_OK)
		return s;
	if (c->third_bytes && !c->second_bytes)
		return base_fail(
			err, BASE_ERR_USAGE, "a third level needs a second one (second_bytes)");
	if (c->third_shared > 1 && (!c->third_bytes || c->processors % c->third_shared))
		return base_fail(err, BASE_ERR_USAGE,
			"third_shared = %llu: it needs a third level, and divides the %llu "
			"{processor|processors} of a node",
			(unsigned long long)c->third_shared, (unsigned long long)c->processors);
	for (uint32_t t = 0; t < c->nr_mapped; t++) {
		uint32_t node = c->place_of[t] / MEMORY_CDAT_PROCESSORS_MAX;
		uint32_t processor = c->place_of[t] % MEMORY_CDAT_PROCESSORS_MAX;
		if (node >= c->nodes || processor >= c->processors)
			return base_fail(err, BASE_ERR_USAGE,
				"mapping: thread %u is on %u:%u, which the machine has not", t,
				node, processor);
		for (uint32_t k = 0; k < t; k++)
			if (c->place_of[k] == c->place_of[t])
				return base_fail(err, BASE_ERR_USAGE,
					"mapping: threads %u and %u share a processor", k, t);
	}
	return BASE_OK;
}
