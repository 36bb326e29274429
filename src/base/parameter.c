/* SPDX-License-Identifier: Apache-2.0 */
/* parameter.c - configurations that are described by a table. */
#include "base/parameter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *field(const struct base_parameter *p, void *config)
{
	return (char *)config + p->offset;
}

static bool in_group(const struct base_parameter *p, const char *group)
{
	return !group || (p->group && !strcmp(p->group, group));
}

/* ---- defaults -------------------------------------------------------------------------------- */

static void preset_one(const struct base_parameter *p, void *config)
{
	uint64_t integer = p->kind == BASE_CHOICE ? 0 : (uint64_t)p->preset;
	switch (p->kind) {
	case BASE_REAL:
		memcpy(field(p, config), &p->preset, sizeof p->preset);
		return;
	case BASE_TEXT:
		memcpy(field(p, config), p->preset_text, strlen(p->preset_text) + 1);
		return;
	case BASE_INTEGER:
	case BASE_CHOICE:
		memcpy(field(p, config), &integer, sizeof integer);
		return;
	}
}

void base_parameters_preset(struct base_parameters p, const char *group, void *config)
{
	for (size_t i = 0; i < p.nr; i++)
		if (in_group(&p.row[i], group))
			preset_one(&p.row[i], config);
}

/* ---- the nearest word ------------------------------------------------------------------------ */

enum { WORD_MAX = 48 };

/* Levenshtein's distance, with swapped neighbours as one step. */
static unsigned distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);
	unsigned row[3][WORD_MAX + 1];
	if (na > WORD_MAX || nb > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= nb; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *now = row[i % 3];
		const unsigned *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
			best = last[j] + 1 < best ? last[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[na % 3][nb];
}

const char *base_nearest(
	const char *word, const char *(*next)(const void *ctx, size_t i), const void *ctx)
{
	const char *best = NULL, *candidate;
	unsigned least = (unsigned)strlen(word) / 3 + 2; /* below it: near */
	for (size_t i = 0; (candidate = next(ctx, i)); i++) {
		unsigned d = distance(word, candidate);
		if (d < least) {
			least = d;
			best = candidate;
		}
	}
	return best;
}

struct keys {
	struct base_parameters p;
	const char *group;
};

static const char *next_key(const void *ctx, size_t i)
{
	const struct keys *k = ctx;
	for (size_t row = 0; row < k->p.nr; row++)
		if (in_group(&k->p.row[row], k->group) && !i--)
			return k->p.row[row].key;
	return NULL;
}

const struct base_parameter *base_parameter_find(
	struct base_parameters p, const char *group, const char *key, struct base_err *err)
{
	for (size_t i = 0; i < p.nr; i++)
		if (in_group(&p.row[i], group) && !strcmp(p.row[i].key, key))
			return &p.row[i];
	const struct keys k = {.p = p, .group = group};
	const char *near = base_nearest(key, next_key, &k);
	(void)base_fail(err, BASE_ERR_USAGE, "no parameter '%s'%s%s%s", key,
		near ? "; the nearest is '" : "", near ? near : "", near ? "'" : "");
	return NULL;
}

/* ---- one setting ----------------------------------------------------------------------------- */

static enum base_status beyond(
	const struct base_parameter *p, const char *value, struct base_err *err)
{
	struct base_str limits = {0};
	base_parameter_add_limits(&limits, p);
	enum base_status s = base_fail(err, BASE_ERR_USAGE, "%s = %s: must be from %s", p->key,
		value, base_str_text(&limits));
	base_str_fini(&limits);
	return s;
}

static enum base_status set_integer(
	const struct base_parameter *p, void *config, const char *value, struct base_err *err)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(value, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	bool some = end != value && *value >= '0' && *value <= '9';
	if (!some || end[shift != 0])
		return base_fail(err, BASE_ERR_USAGE, "%s = %s: not a whole number (%s)", p->key,
			value, p->unit);
	uint64_t v = (uint64_t)n << shift;
	if (errno || v >> shift != n || (double)v < p->least || (double)v > p->most)
		return beyond(p, value, err);
	memcpy(field(p, config), &v, sizeof v);
	return BASE_OK;
}

static enum base_status set_real(
	const struct base_parameter *p, void *config, const char *value, struct base_err *err)
{
	char *end;
	double v = strtod(value, &end);
	if (end == value || *end || !isfinite(v))
		return base_fail(
			err, BASE_ERR_USAGE, "%s = %s: not a number (%s)", p->key, value, p->unit);
	if (v < p->least || v > p->most)
		return beyond(p, value, err);
	memcpy(field(p, config), &v, sizeof v);
	return BASE_OK;
}

struct words {
	const struct base_word *word;
	size_t nr;
};

static const char *parameter_next_word(const void *ctx, size_t i)
{
	const struct words *w = ctx;
	return i < w->nr ? w->word[i].name : NULL;
}

enum base_status base_choose(const struct base_word *words, size_t nr, const char *key,
	const char *value, uint64_t *ret, struct base_err *err)
{
	struct base_str list = {0};
	for (size_t i = 0; i < nr; i++) {
		if (!strcmp(words[i].name, value)) {
			*ret = i;
			base_str_fini(&list);
			return BASE_OK;
		}
		base_str_addf(&list, "%s%s", i ? ", " : "", words[i].name);
	}
	const struct words all = {.word = words, .nr = nr};
	const char *near = base_nearest(value, parameter_next_word, &all);
	enum base_status s = base_fail(err, BASE_ERR_USAGE, "%s = %s: it is one of %s%s%s%s", key,
		value, base_str_text(&list), near ? "; the nearest is '" : "", near ? near : "",
		near ? "'" : "");
	base_str_fini(&list);
	return s;
}

static enum base_status set_choice(
	const struct base_parameter *p, void *config, const char *value, struct base_err *err)
{
	uint64_t v;
	enum base_status s = base_choose(p->words, p->nr_words, p->key, value, &v, err);
	if (s == BASE_OK)
		memcpy(field(p, config), &v, sizeof v);
	return s;
}

static enum base_status parameter_set_text(
	const struct base_parameter *p, void *config, const char *value, struct base_err *err)
{
	size_t length = strlen(value);
	if (length >= p->size_bytes)
		return base_fail(err, BASE_ERR_USAGE, "%s: longer than %zu bytes", p->key,
			p->size_bytes - 1);
	memcpy(field(p, config), value, length + 1);
	return BASE_OK;
}

enum base_status base_parameter_set(
	const struct base_parameter *p, void *config, const char *value, struct base_err *err)
{
	static enum base_status (*const set[])(
		const struct base_parameter *, void *, const char *, struct base_err *) = {
		[BASE_INTEGER] = set_integer,
		[BASE_REAL] = set_real,
		[BASE_CHOICE] = set_choice,
		[BASE_TEXT] = parameter_set_text,
	};
	return set[p->kind](p, config, value, err);
}

/* `length` bytes from `from` without the blanks around them; false: they do not fit. */
static bool copy_trimmed(char *to, size_t size, const char *from, size_t length)
{
	while (length && strchr(" \t\r\n", from[length - 1]))
		length--;
	while (length && strchr(" \t\r\n", *from)) {
		from++;
		length--;
	}
	if (length >= size)
		return false;
	memcpy(to, from, length);
	to[length] = '\0';
	return true;
}

enum base_status base_assignment_split(
	struct base_assignment *ret, const char *text, struct base_err *err)
{
	const char *equals = strchr(text, '=');
	if (!equals || !copy_trimmed(ret->key, sizeof ret->key, text, (size_t)(equals - text)) ||
		!*ret->key)
		return base_fail(err, BASE_ERR_USAGE, "'%s' is not KEY=VALUE", text);
	if (!copy_trimmed(ret->value, sizeof ret->value, equals + 1, strlen(equals + 1)))
		return base_fail(err, BASE_ERR_USAGE, "%s: longer than %d bytes", ret->key,
			BASE_VALUE_MAX - 1);
	return BASE_OK;
}

/* ---- printing -------------------------------------------------------------------------------- */

void base_parameter_add_value(
	struct base_str *out, const struct base_parameter *p, const void *config)
{
	const char *from = (const char *)config + p->offset;
	uint64_t n;
	double v;
	switch (p->kind) {
	case BASE_REAL:
		memcpy(&v, from, sizeof v);
		base_str_addf(out, "%.15g", v);
		return;
	case BASE_TEXT:
		base_str_add(out, from);
		return;
	case BASE_INTEGER:
		memcpy(&n, from, sizeof n);
		base_str_addf(out, "%llu", (unsigned long long)n);
		return;
	case BASE_CHOICE:
		memcpy(&n, from, sizeof n);
		base_str_add(out, p->words[n].name);
		return;
	}
}

void base_parameter_add_preset(struct base_str *out, const struct base_parameter *p)
{
	if (p->kind == BASE_TEXT)
		base_str_add(out, p->preset_text);
	else if (p->kind == BASE_CHOICE)
		base_str_add(out, p->words[0].name);
	else
		base_str_addf(out, p->kind == BASE_INTEGER ? "%.0f" : "%.10g", p->preset);
}

void base_parameter_add_limits(struct base_str *out, const struct base_parameter *p)
{
	if (p->kind == BASE_INTEGER && p->most >= 0x1p64) /* UINT64_MAX is no double */
		base_str_addf(out, "%.0f to 2^64-1 %s", p->least, p->unit);
	else if (p->kind == BASE_INTEGER)
		base_str_addf(out, "%.0f to %.0f %s", p->least, p->most, p->unit);
	else if (p->kind == BASE_REAL)
		base_str_addf(out, "%g to %g %s", p->least, p->most, p->unit);
}
