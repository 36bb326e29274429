/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdat_config.c - the INI file of a machine.
 *
 *	[machine]
 *	nodes = 4
 *	protocol = dir1
 *	mapping = 0:0 0:1 1:0 1:1
 */
#include "memory/cdat.h"

#include <errno.h>
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
#include "memory/cdat_protocols.def"
};

const struct memory_cdat_protocol *memory_cdat_protocols(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(protocol_table);
	return protocol_table;
}

static const struct memory_cdat_parameter parameter_table[] = {
#define PARAM(key_, preset_, least_, most_, unit_, sentence_)                                      \
	{.key = #key_,                                                                             \
		.unit = unit_,                                                                     \
		.sentence = sentence_,                                                             \
		.preset = (preset_),                                                               \
		.least = (least_),                                                                 \
		.most = (most_)},
#include "memory/cdat_parameters.def"
};
static const size_t parameter_offset[] = {
#define PARAM(key, preset, least, most, unit, sentence) offsetof(struct memory_cdat_config, key),
#include "memory/cdat_parameters.def"
};

const struct memory_cdat_parameter *memory_cdat_parameters(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(parameter_table);
	return parameter_table;
}

static uint64_t *field(struct memory_cdat_config *c, size_t i)
{
	return (uint64_t *)(void *)((char *)c + parameter_offset[i]);
}

struct memory_cdat_config *memory_cdat_config_new(void)
{
	struct memory_cdat_config *c = base_alloc(sizeof *c);
	if (!c)
		return NULL;
	for (size_t i = 0; i < BASE_COUNT(parameter_table); i++)
		*field(c, i) = parameter_table[i].preset;
	c->protocol = &protocol_table[0];
	c->allocation = MEMORY_CDAT_FIRST_TOUCH;
	return c;
}

struct memory_cdat_config *memory_cdat_config_free(struct memory_cdat_config *c)
{
	base_free(c);
	return NULL;
}

/* ---- words --------------------------------------------------------------------------------------
 */

static const char *const allocation_name[] = {"rr1", "rr2", "oracle", "first_touch"};
static const char *const replacement_name[] = {"lru", "fifo", "random"};

static enum base_status one_of(const char *const *names, size_t nr, const char *key,
	const char *value, unsigned *ret, struct base_err *err)
{
	struct base_str list = {0};
	for (size_t i = 0; i < nr; i++) {
		if (!strcmp(names[i], value)) {
			*ret = (unsigned)i;
			base_str_fini(&list);
			return BASE_OK;
		}
		base_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
	}
	enum base_status s = base_fail(
		err, BASE_ERR_USAGE, "%s = %s: it is one of %s", key, value, base_str_text(&list));
	base_str_fini(&list);
	return s;
}

static enum base_status set_protocol(
	struct memory_cdat_config *c, const char *value, struct base_err *err)
{
	const char *name[BASE_COUNT(protocol_table)];
	unsigned i = 0;
	for (; i < BASE_COUNT(protocol_table); i++)
		name[i] = protocol_table[i].name;
	enum base_status s = one_of(name, BASE_COUNT(protocol_table), "protocol", value, &i, err);
	if (s == BASE_OK)
		c->protocol = &protocol_table[i];
	return s;
}

/* "0:0 0:1 1:0": node and processor in it, thread by thread. */
static enum base_status set_mapping(
	struct memory_cdat_config *c, const char *value, struct base_err *err)
{
	c->scattered = !strcmp(value, "scatter");
	c->nr_mapped = 0;
	if (c->scattered || !strcmp(value, "fill"))
		return BASE_OK;
	while (*value) {
		char *end, *after;
		unsigned long node = strtoul(value, &end, 10);
		unsigned long processor = *end == ':' ? strtoul(end + 1, &after, 10) : 0;
		if (end == value || *end != ':' || after == end + 1 ||
			node >= MEMORY_CDAT_NODES_MAX || processor >= MEMORY_CDAT_PROCESSORS_MAX ||
			c->nr_mapped == MEMORY_CDAT_PROCESSORS_MAX)
			return base_fail(err, BASE_ERR_USAGE,
				"mapping: '%s' does not begin with a node:processor", value);
		c->place_of[c->nr_mapped++] =
			(uint32_t)(node * MEMORY_CDAT_PROCESSORS_MAX + processor);
		value = after + strspn(after, " ,\t");
	}
	return BASE_OK;
}

static enum base_status set_number(
	struct memory_cdat_config *c, size_t i, const char *value, struct base_err *err)
{
	const struct memory_cdat_parameter *p = &parameter_table[i];
	char *end;
	errno = 0;
	unsigned long long n = strtoull(value, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	end += shift != 0;
	if (end == value || *end || errno || *value == '-' || n > UINT64_MAX >> shift ||
		n << shift < p->least || n << shift > p->most)
		return base_fail(err, BASE_ERR_USAGE, "%s = %s: a number from %llu to %llu (%s)",
			p->key, value, (unsigned long long)p->least, (unsigned long long)p->most,
			p->unit);
	*field(c, i) = n << shift;
	return BASE_OK;
}

static enum base_status set(
	struct memory_cdat_config *c, const char *key, const char *value, struct base_err *err)
{
	unsigned i = 0;
	enum base_status s;
	for (size_t k = 0; k < BASE_COUNT(parameter_table); k++)
		if (!strcmp(parameter_table[k].key, key))
			return set_number(c, k, value, err);
	if (!strcmp(key, "protocol"))
		return set_protocol(c, value, err);
	if (!strcmp(key, "mapping"))
		return set_mapping(c, value, err);
	if (!strcmp(key, "allocation")) {
		s = one_of(allocation_name, BASE_COUNT(allocation_name), key, value, &i, err);
		if (s == BASE_OK)
			c->allocation = i;
		return s;
	}
	if (!strcmp(key, "replacement")) {
		s = one_of(replacement_name, BASE_COUNT(replacement_name), key, value, &i, err);
		if (s == BASE_OK)
			c->replacement = i;
		return s;
	}
	return base_fail(err, BASE_ERR_USAGE,
		"a machine has no '%s'; 'longpole cdat --list-parameters' lists what it has", key);
}

/* ---- files and assignments ----------------------------------------------------------------------
 */

enum { KEY_MAX = 64, VALUE_MAX = 8192 };

enum base_status memory_cdat_config_set(
	struct memory_cdat_config *c, const char *assignment, struct base_err *err)
{
	const char *equals = strchr(assignment, '=');
	char key[KEY_MAX] = {0};
	size_t length = equals ? (size_t)(equals - assignment) : KEY_MAX;
	if (length >= KEY_MAX)
		return base_fail(err, BASE_ERR_USAGE, "'%s' is not KEY=VALUE", assignment);
	memcpy(key, assignment, length);
	return set(c, key, equals + 1, err);
}

struct reading {
	struct memory_cdat_config *c;
	const char *path;
	struct base_err *err;
	enum base_status status;
	int line;
};

static int on_line(void *ctx, const char *section, const char *key, const char *value)
{
	struct reading *r = ctx;
	r->line++;
	if (strcmp(section, "machine") != 0)
		r->status = base_fail(r->err, BASE_ERR_USAGE,
			"[%s]: a machine has one section, [machine]", section);
	else
		r->status = set(r->c, key, value, r->err);
	return r->status == BASE_OK;
}

enum base_status memory_cdat_config_read(
	struct memory_cdat_config *c, const char *text, const char *path, struct base_err *err)
{
	struct reading r = {.c = c, .path = path, .err = err};
	int bad = ini_parse_string(text, on_line, &r);
	if (r.status != BASE_OK)
		return base_cause(err, r.status, "%s, assignment %d", path, r.line);
	if (bad)
		return base_fail(err, BASE_ERR_USAGE, "%s, line %d is not KEY = VALUE", path, bad);
	return BASE_OK;
}

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

enum base_status memory_cdat_config_check(const struct memory_cdat_config *c, struct base_err *err)
{
	if (!power_of_two(c->line_bytes) || !power_of_two(c->page_bytes))
		return base_fail(err, BASE_ERR_USAGE,
			"line_bytes and page_bytes are powers of two, not %llu and %llu",
			(unsigned long long)c->line_bytes, (unsigned long long)c->page_bytes);
	if (c->nodes * c->processors > MEMORY_CDAT_PROCESSORS_MAX)
		return base_fail(err, BASE_ERR_USAGE,
			"%llu nodes of %llu processors are more than %d processors",
			(unsigned long long)c->nodes, (unsigned long long)c->processors,
			MEMORY_CDAT_PROCESSORS_MAX);
	const struct {
		const char *key;
		uint64_t size_bytes;
	} cache[] = {{"data_bytes", c->data_bytes}, {"code_bytes", c->code_bytes},
		{"second_bytes", c->second_bytes}, {"third_bytes", c->third_bytes},
		{"interconnect_bytes", c->interconnect_bytes}};
	for (size_t i = 0; i < BASE_COUNT(cache); i++)
		if (cache[i].size_bytes && cache[i].size_bytes < c->line_bytes)
			return base_fail(err, BASE_ERR_USAGE, "%s = %llu is less than a line",
				cache[i].key, (unsigned long long)cache[i].size_bytes);
	if (c->third_bytes && !c->second_bytes)
		return base_fail(
			err, BASE_ERR_USAGE, "a third level needs a second one (second_bytes)");
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
