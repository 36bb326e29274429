/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_spec.c - the specification of a sweep: an INI file whose values are lists.
 *
 *	[common]
 *	load = 0.05 0.1..0.3/0.05
 *	[grids]
 *	topology = mesh torus
 *	[tree]
 *	topology = fattree
 *	k = 4
 *	n = 3
 *
 * Every section but `common` is a product: a point for each combination of its values and those of
 * `common`. first..last/step is a list, too. `measure` = saturation searches the saturation of each
 * point.
 */
#include "cmd/sweep/sweep.h"

#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 1000, KEYS_MAX = 64, LINES_MAX = 10000 };

/* A line of the file. */
struct setting {
	uint32_t section; /* UINT32_MAX: common */
	char key[SWEEP_KEY_MAX], value[NOC_TEXT_MAX];
	char *list; /* its values, each NUL-terminated */
	size_t nr;
};
struct reading {
	struct sweep_spec *spec;
	struct setting *line;
	size_t nr, capacity;
	struct base_err *err;
	enum base_status status;
};

static enum base_status sweep_spec_find_section(
	struct sweep_spec *s, const char *name, uint32_t *ret)
{
	*ret = UINT32_MAX;
	if (!strcmp(name, "common") || !*name)
		return BASE_OK;
	for (*ret = 0; *ret < s->nr_sections; ++*ret)
		if (!strcmp(s->section[*ret].name, name))
			return BASE_OK;
	enum base_status status = base_grow(
		&s->section, &s->section_capacity, s->nr_sections + 1, sizeof *s->section);
	if (status == BASE_OK)
		memcpy(s->section[s->nr_sections++].name, name, strlen(name) + 1);
	return status;
}

static int sweep_spec_on_pair(void *ctx, const char *section, const char *key, const char *value)
{
	struct reading *r = ctx;
	uint32_t index;
	if (strlen(section) >= SWEEP_KEY_MAX || strlen(key) >= SWEEP_KEY_MAX ||
		strlen(value) >= NOC_TEXT_MAX || r->nr == LINES_MAX) {
		r->status = base_fail(r->err, BASE_ERR_LIMIT, "%.40s: too long", key);
		return 0;
	}
	r->status = sweep_spec_find_section(r->spec, section, &index);
	if (r->status == BASE_OK)
		r->status = base_grow(&r->line, &r->capacity, r->nr + 1, sizeof *r->line);
	if (r->status != BASE_OK) {
		r->status = base_fail(r->err, r->status, "a sweep");
		return 0;
	}
	struct setting *l = &r->line[r->nr++];
	l->section = index;
	memcpy(l->key, key, strlen(key) + 1);
	memcpy(l->value, value, strlen(value) + 1);
	return 1;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void sweep_spec_add_value(struct base_str *out, size_t *nr, const char *text, size_t length)
{
	base_str_add_bytes(out, text, length);
	base_str_add_bytes(out, "", 1);
	++*nr;
}

/* "0.1..0.3/0.05"; false: it is not one. */
static bool sweep_spec_add_range(struct base_str *out, size_t *nr, const char *word)
{
	char *end;
	double first = strtod(word, &end), last, step = 1;
	const char *dots = strstr(word, "..");
	if (!dots || dots == word)
		return false;
	/* strtod takes the first of the two dots of "1..4". */
	if (end != dots && end != dots + 1)
		return false;
	last = strtod(dots + 2, &end);
	if (end == dots + 2)
		return false;
	if (*end == '/') {
		const char *at = end + 1;
		step = strtod(at, &end);
		if (end == at)
			return false;
	}
	if (*end || !(step > 0) || !(last >= first) || (last - first) / step > VALUES_MAX)
		return false;
	for (unsigned i = 0; first + i * step <= last + step * 1e-9; i++) {
		struct base_str number = {0};
		base_str_addf(&number, "%.10g", first + i * step);
		sweep_spec_add_value(out, nr, base_str_text(&number), number.length);
		base_str_fini(&number);
	}
	return true;
}

static enum base_status sweep_spec_split(struct setting *l, struct base_err *err)
{
	struct base_str list = {0};
	const char *at = l->value;
	for (;;) {
		at += strspn(at, " \t");
		size_t length = strcspn(at, " \t");
		if (!length)
			break;
		char word[NOC_TEXT_MAX];
		memcpy(word, at, length);
		word[length] = 0;
		if (!sweep_spec_add_range(&list, &l->nr, word))
			sweep_spec_add_value(&list, &l->nr, word, length);
		at += length;
	}
	if (!l->nr)
		sweep_spec_add_value(&list, &l->nr, "", 0);
	if (list.failed || l->nr > VALUES_MAX) {
		bool failed = list.failed;
		base_str_fini(&list);
		return failed ? base_fail(err, BASE_ERR_NOMEM, "a sweep")
			      : base_fail(err, BASE_ERR_LIMIT, "%s: more than %d values", l->key,
					VALUES_MAX);
	}
	l->list = list.buf;
	return BASE_OK;
}

static const char *nth(const struct setting *l, size_t n)
{
	const char *at = l->list;
	while (n--)
		at += strlen(at) + 1;
	return at;
}

/* ---- products -------------------------------------------------------------------------------- */

static enum base_status set_one(
	struct sweep_point *p, const char *key, const char *value, struct base_err *err)
{
	if (!strcmp(key, "measure")) {
		p->saturation = !strcmp(value, "saturation");
		return p->saturation || !strcmp(value, "latency")
			       ? BASE_OK
			       : base_fail(err, BASE_ERR_USAGE,
					 "measure = %s: it is one of latency, saturation", value);
	}
	struct base_str text = {0};
	base_str_addf(&text, "%s=%s", key, value);
	enum base_status s = text.failed ? base_fail(err, BASE_ERR_NOMEM, "a sweep")
					 : noc_config_set(&p->config, base_str_text(&text), err);
	if (s != BASE_OK && strchr(value, ','))
		s = base_cause(err, s, "a list has spaces between its values, no commas");
	base_str_fini(&text);
	return s;
}

/* Lines that count in a section: its own, and those of `common` that it does not repeat. The last
 * one of a key wins. */
static size_t lines_of(const struct reading *r, uint32_t section, struct setting **ret)
{
	size_t nr = 0;
	for (size_t i = 0; i < r->nr; i++) {
		struct setting *l = &r->line[i];
		if (l->section != section && l->section != UINT32_MAX)
			continue;
		size_t at = 0;
		while (at < nr && strcmp(ret[at]->key, l->key) != 0)
			at++;
		if (at < nr && l->section == UINT32_MAX && ret[at]->section == section)
			continue;
		if (at == KEYS_MAX)
			return KEYS_MAX + 1;
		ret[at] = l;
		nr = at == nr ? nr + 1 : nr;
	}
	return nr;
}

static enum base_status product(struct reading *r, uint32_t section)
{
	struct sweep_spec *s = r->spec;
	struct setting *line[KEYS_MAX];
	size_t nr = lines_of(r, section, line), at[KEYS_MAX] = {0};
	if (nr > KEYS_MAX)
		return base_fail(r->err, BASE_ERR_LIMIT, "more than %d keys", KEYS_MAX);
	for (bool more = true; more;) {
		if (s->nr_points == SWEEP_POINTS_MAX)
			return base_fail(
				r->err, BASE_ERR_LIMIT, "more than %d points", SWEEP_POINTS_MAX);
		enum base_status status =
			base_grow(&s->point, &s->capacity, s->nr_points + 1, sizeof *s->point);
		if (status != BASE_OK)
			return base_fail(r->err, status, "%zu {point|points}", s->nr_points);
		struct sweep_point *p = &s->point[s->nr_points];
		*p = (struct sweep_point){.section = section};
		noc_config_init(&p->config);
		for (size_t i = 0; i < nr; i++) {
			status = set_one(p, line[i]->key, nth(line[i], at[i]), r->err);
			if (status != BASE_OK)
				return base_cause(
					r->err, status, "section [%s]", s->section[section].name);
		}
		s->nr_points++;
		/* The last key counts fastest. */
		more = false;
		for (size_t i = nr; i-- > 0 && !more;) {
			more = ++at[i] < line[i]->nr;
			at[i] = more ? at[i] : 0;
		}
	}
	return BASE_OK;
}

static enum base_status find_varied(struct sweep_spec *s, struct base_err *err)
{
	const struct base_parameters q = noc_parameters();
	s->varied = base_alloc(q.nr * sizeof *s->varied);
	if (!s->varied)
		return base_fail(err, BASE_ERR_NOMEM, "a sweep");
	for (size_t i = 0; i < q.nr; i++) {
		struct base_str first = {0};
		base_parameter_add_value(&first, &q.row[i], &s->point[0].config);
		for (size_t p = 1; p < s->nr_points && !s->varied[i]; p++) {
			struct base_str other = {0};
			base_parameter_add_value(&other, &q.row[i], &s->point[p].config);
			s->varied[i] = strcmp(base_str_text(&first), base_str_text(&other)) != 0;
			base_str_fini(&other);
		}
		base_str_fini(&first);
	}
	return BASE_OK;
}

enum base_status sweep_spec_parse(struct sweep_spec *s, const char *text, const char *name,
	char *const *setting, size_t nr_settings, struct base_err *err)
{
	struct reading r = {.spec = s, .err = err, .status = BASE_OK};
	int line = ini_parse_string(text, sweep_spec_on_pair, &r);
	if (r.status == BASE_OK && line)
		r.status = base_fail(err, BASE_ERR_USAGE, "line %d: not 'key = values'", line);
	for (size_t i = 0; r.status == BASE_OK && i < nr_settings; i++) {
		char key[SWEEP_KEY_MAX];
		size_t length = strcspn(setting[i], "=");
		if (!setting[i][length] || length >= sizeof key) {
			r.status = base_fail(
				err, BASE_ERR_USAGE, "'%s' is not KEY=VALUES", setting[i]);
			break;
		}
		memcpy(key, setting[i], length);
		key[length] = 0;
		/* What the command line says holds for every section. */
		for (size_t k = 0; k < r.nr; k++)
			if (!strcmp(r.line[k].key, key))
				r.line[k].section = UINT32_MAX - 1;
		sweep_spec_on_pair(&r, "common", key, setting[i] + length + 1);
	}
	for (size_t i = 0; r.status == BASE_OK && i < r.nr; i++)
		r.status = sweep_spec_split(&r.line[i], err);
	uint32_t only;
	if (r.status == BASE_OK && !s->nr_sections)
		r.status = sweep_spec_find_section(s, "sweep", &only);
	for (uint32_t i = 0; r.status == BASE_OK && i < s->nr_sections; i++)
		r.status = product(&r, i);
	if (r.status == BASE_OK)
		r.status = find_varied(s, err);
	else
		r.status = base_cause(err, r.status, "%s", name);
	for (size_t i = 0; i < r.nr; i++)
		base_free(r.line[i].list);
	base_free(r.line);
	return r.status;
}

void sweep_spec_fini(struct sweep_spec *s)
{
	base_free(s->point);
	base_free(s->section);
	base_free(s->varied);
	*s = (struct sweep_spec){0};
}

void sweep_point_key(struct base_str *out, const struct sweep_point *p)
{
	const struct base_parameters q = noc_parameters();
	base_str_add(out, p->saturation ? "measure=saturation" : "measure=latency");
	for (size_t i = 0; i < q.nr; i++) {
		if (p->saturation && !strcmp(q.row[i].key, "load"))
			continue;
		base_str_addf(out, ";%s=", q.row[i].key);
		base_parameter_add_value(out, &q.row[i], &p->config);
	}
}

void sweep_point_series(
	struct base_str *out, const struct sweep_spec *s, const struct sweep_point *p)
{
	size_t begin = out->length;
	const struct base_parameters q = noc_parameters();
	for (size_t i = 0; i < q.nr; i++) {
		if (!s->varied[i] || !strcmp(q.row[i].key, "load") || !strcmp(q.row[i].key, "seed"))
			continue;
		base_str_addf(out, "%s%s=", out->length > begin ? " " : "", q.row[i].key);
		base_parameter_add_value(out, &q.row[i], &p->config);
	}
	if (out->length == begin)
		base_str_add(out, noc_topology_words[p->config.topology].name);
}
