/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - the INI file of a platform.
 *
 *	[simulation]                 [system NAME]        [link NAME]           [app NAME]
 *	seed = 1                     bus_gbps = 2         a = NAME  b = NAME    kind = tcp_stream
 *	                                                  rate_gbps = 10        from = NAME
 *	                                                                        to = NAME
 *
 * inih splits lines; what keys there are, parameters.def says.
 */
#include "platform/config.h"

#include <ini.h>
#include <string.h>

static const struct base_parameter parameter_table[] = {
#define PARAM(section, key, preset, least, most, unit, sentence, source_)                          \
	{.group = #section,                                                                        \
		BASE_NUMBER(BASE_REAL, struct platform_##section##_parameters, key, preset, least, \
			most, unit, sentence),                                                     \
		.source = (source_)},
#include "platform/parameters.def"
};

struct base_parameters platform_parameters(void)
{
	return (struct base_parameters){parameter_table, BASE_COUNT(parameter_table)};
}

/* ---- one section ----------------------------------------------------------------------------- */

struct word { /* a key whose value is a word */
	const char *key;
	char *to;
	enum platform_app_kind *kind;
};
enum { WORDS_MAX = 4 };
struct section {
	const char *kind; /* as in parameters.def */
	void *parameters;
	struct word word[WORDS_MAX];
	size_t nr_words;
};

static const char *const app_kind[] = {
	[PLATFORM_APP_tcp_stream] = "tcp_stream",
	[PLATFORM_APP_udp_stream] = "udp_stream",
	[PLATFORM_APP_web] = "web",
};

static void set_presets(const struct section *sec)
{
	base_parameters_preset(platform_parameters(), sec->kind, sec->parameters);
}

static struct section simulation_section(struct platform_config *c)
{
	return (struct section){.kind = "simulation", .parameters = &c->simulation};
}

static struct section system_section(struct platform_system_config *y)
{
	return (struct section){.kind = "system", .parameters = &y->p};
}

static struct section link_section(struct platform_link_config *l)
{
	return (struct section){.kind = "link",
		.parameters = &l->p,
		.word = {{.key = "a", .to = l->a}, {.key = "b", .to = l->b}},
		.nr_words = 2};
}

static struct section app_section(struct platform_app_config *a)
{
	return (struct section){.kind = "app",
		.parameters = &a->p,
		.word = {{.key = "from", .to = a->from}, {.key = "to", .to = a->to},
			{.key = "kind", .kind = &a->kind}},
		.nr_words = 3};
}

/* ---- one assignment -------------------------------------------------------------------------- */

static enum base_status copy_name(
	char *to, const char *name, const char *place, struct base_err *err)
{
	size_t length = strlen(name);
	if (!length || length >= PLATFORM_NAME_MAX)
		return base_fail(err, BASE_ERR_USAGE, "%s: a name has 1 to %d characters, not %zu",
			place, PLATFORM_NAME_MAX - 1, length);
	memcpy(to, name, length + 1);
	return BASE_OK;
}

static enum base_status config_set_word(
	const struct word *w, const char *value, const char *place, struct base_err *err)
{
	if (w->to)
		return copy_name(w->to, value, place, err);
	for (size_t i = 1; i < BASE_COUNT(app_kind); i++) {
		if (strcmp(app_kind[i], value) != 0)
			continue;
		*w->kind = (enum platform_app_kind)i;
		return BASE_OK;
	}
	return base_fail(err, BASE_ERR_USAGE,
		"%s: kind is '%s', which is none of tcp_stream, udp_stream, web", place, value);
}

static enum base_status assign(const struct section *sec, const char *key, const char *value,
	const char *place, struct base_err *err)
{
	for (size_t i = 0; i < sec->nr_words; i++)
		if (!strcmp(sec->word[i].key, key))
			return config_set_word(&sec->word[i], value, place, err);
	const struct base_parameter *p =
		base_parameter_find(platform_parameters(), sec->kind, key, err);
	enum base_status s =
		p ? base_parameter_set(p, sec->parameters, value, err) : BASE_ERR_USAGE;
	return s == BASE_OK ? s : base_cause(err, s, "%s: [%s]", place, sec->kind);
}

/* ---- sections by name ------------------------------------------------------------------------ */

/* Names are of all kinds together, so that --set needs the name only. */
static bool config_find_section(struct platform_config *c, const char *name, struct section *ret)
{
	if (!strcmp(name, "simulation")) {
		*ret = simulation_section(c);
		return true;
	}
	for (size_t i = 0; i < c->nr_systems; i++)
		if (!strcmp(c->system[i].name, name))
			return *ret = system_section(&c->system[i]), true;
	for (size_t i = 0; i < c->nr_links; i++)
		if (!strcmp(c->link[i].name, name))
			return *ret = link_section(&c->link[i]), true;
	for (size_t i = 0; i < c->nr_apps; i++)
		if (!strcmp(c->app[i].name, name))
			return *ret = app_section(&c->app[i]), true;
	return false;
}

/* "system tx": finds it or makes it. */
static enum base_status open_section(struct platform_config *c, const char *head, const char *place,
	struct section *ret, struct base_err *err)
{
	const char *blank = strchr(head, ' '), *name = blank ? blank + strspn(blank, " ") : "";
	size_t length = blank ? (size_t)(blank - head) : strlen(head);
	struct section found;
	char *to = NULL;
	if (length == 10 && !strncmp(head, "simulation", length) && !*name) {
		*ret = simulation_section(c);
		return BASE_OK;
	}
	bool is_system = length == 6 && !strncmp(head, "system", length);
	bool is_link = length == 4 && !strncmp(head, "link", length);
	bool is_app = length == 3 && !strncmp(head, "app", length);
	if (!is_system && !is_link && !is_app)
		return base_fail(err, BASE_ERR_USAGE,
			"%s: [%s] is none of [simulation], [system NAME], [link NAME], [app NAME]",
			place, head);
	if (!*name)
		return base_fail(err, BASE_ERR_USAGE, "%s: [%s] has no name; write [%s NAME]",
			place, head, head);
	if (config_find_section(c, name, &found)) {
		if (strncmp(found.kind, head, length) != 0)
			return base_fail(err, BASE_ERR_USAGE, "%s: '%s' is the name of a %s", place,
				name, found.kind);
		*ret = found;
		return BASE_OK;
	}
	size_t limit = is_system ? PLATFORM_SYSTEMS_MAX : is_link ? 1 : PLATFORM_APPS_MAX;
	size_t *nr = is_system ? &c->nr_systems : is_link ? &c->nr_links : &c->nr_apps;
	if (*nr == limit)
		return base_fail(err, BASE_ERR_USAGE, "%s: more than %zu sections [%.*s ...]",
			place, limit, (int)length, head);
	if (is_system) {
		*ret = system_section(&c->system[*nr]);
		to = c->system[*nr].name;
	} else if (is_link) {
		*ret = link_section(&c->link[*nr]);
		to = c->link[*nr].name;
	} else {
		*ret = app_section(&c->app[*nr]);
		to = c->app[*nr].name;
	}
	enum base_status s = copy_name(to, name, place, err);
	if (s != BASE_OK)
		return s;
	set_presets(ret);
	++*nr;
	return BASE_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

enum { LINE_MAX_BYTES = 180 }; /* inih cuts lines at 200 */

struct reading {
	struct platform_config *c;
	const char *path, *at;
	unsigned line;
	enum base_status status;
	struct base_err *err;
};

/* "[system tx]": there is one from here on, also without a key; of these inih says nothing. */
static void open_headed(struct reading *r, const char *line)
{
	char head[LINE_MAX_BYTES + 1];
	size_t length = strcspn(line, "]\n");
	struct section sec;
	struct base_str place = {0};
	if (*line != '[' || line[length] != ']')
		return;
	memcpy(head, line + 1, length - 1);
	head[length - 1] = '\0';
	base_str_addf(&place, "%s:%u", r->path, r->line);
	r->status = open_section(r->c, head, base_str_text(&place), &sec, r->err);
	base_str_fini(&place);
}

/* inih asks for lines; the count of them is what it does not tell its handler. */
static char *config_next_line(char *to, int max, void *ctx)
{
	struct reading *r = ctx;
	size_t length = strcspn(r->at, "\n"), copied = length;
	if (!*r->at || r->status != BASE_OK)
		return NULL;
	r->line++;
	if (length > LINE_MAX_BYTES || length + 2 > (size_t)max) {
		r->status = base_fail(r->err, BASE_ERR_USAGE, "%s:%u: longer than %d bytes",
			r->path, r->line, LINE_MAX_BYTES);
		return NULL;
	}
	memcpy(to, r->at, copied);
	r->at += length;
	if (*r->at) {
		to[copied++] = '\n';
		r->at++;
	}
	to[copied] = '\0';
	open_headed(r, to);
	return r->status == BASE_OK ? to : NULL;
}

static int take_pair(void *ctx, const char *head, const char *key, const char *value)
{
	struct reading *r = ctx;
	struct section sec;
	struct base_str place = {0};
	if (r->status != BASE_OK)
		return 0;
	base_str_addf(&place, "%s:%u", r->path, r->line);
	if (!*head)
		r->status = base_fail(r->err, BASE_ERR_USAGE,
			"%s: '%s' stands before the first section", base_str_text(&place), key);
	if (r->status == BASE_OK)
		r->status = open_section(r->c, head, base_str_text(&place), &sec, r->err);
	if (r->status == BASE_OK)
		r->status = assign(&sec, key, value, base_str_text(&place), r->err);
	base_str_fini(&place);
	return r->status == BASE_OK;
}

struct platform_config *platform_config_new(void)
{
	struct platform_config *c = base_alloc(sizeof *c);
	if (!c)
		return NULL;
	struct section sec = simulation_section(c);
	set_presets(&sec);
	return c;
}

struct platform_config *platform_config_free(struct platform_config *c)
{
	base_free(c);
	return NULL;
}

enum base_status platform_config_read(
	struct platform_config *c, const char *text, const char *path, struct base_err *err)
{
	struct reading r = {.c = c, .path = path, .at = text, .err = err};
	int line = ini_parse_stream(config_next_line, &r, take_pair, &r);
	if (r.status != BASE_OK)
		return r.status;
	if (line < 0)
		return base_fail(err, BASE_ERR_NOMEM, "%s: out of memory", path);
	if (line)
		return base_fail(err, BASE_ERR_USAGE, "%s:%d: neither [section] nor key = value",
			path, line);
	return BASE_OK;
}

enum base_status platform_config_set(
	struct platform_config *c, const char *assignment, struct base_err *err)
{
	struct base_assignment a;
	char *dot = NULL;
	if (base_assignment_split(&a, assignment, NULL) == BASE_OK)
		dot = strchr(a.key, '.');
	if (!dot || dot == a.key || !dot[1])
		return base_fail(err, BASE_ERR_USAGE, "'%s' is not section.key=value", assignment);
	*dot = '\0';
	struct section sec;
	if (!config_find_section(c, a.key, &sec))
		return base_fail(err, BASE_ERR_USAGE,
			"'%s': the configuration has no section named '%s'", assignment, a.key);
	return assign(&sec, dot + 1, a.value, "--set", err);
}

/* ---- does it hang together? ------------------------------------------------------------------ */

static bool is_system(const struct platform_config *c, const char *name)
{
	for (size_t i = 0; i < c->nr_systems; i++)
		if (!strcmp(c->system[i].name, name))
			return true;
	return false;
}

static enum base_status check_ends(const struct platform_config *c, const char *kind,
	const char *name, const char *const end[2], const char *const key[2], struct base_err *err)
{
	for (int i = 0; i < 2; i++)
		if (!is_system(c, end[i]))
			return base_fail(err, BASE_ERR_USAGE,
				"[%s %s]: %s = '%s', but there is no [system %s]", kind, name,
				key[i], end[i], *end[i] ? end[i] : "NAME");
	if (!strcmp(end[0], end[1]))
		return base_fail(err, BASE_ERR_USAGE, "[%s %s]: %s and %s are the same system",
			kind, name, key[0], key[1]);
	return BASE_OK;
}

enum base_status platform_config_check(const struct platform_config *c, struct base_err *err)
{
	if (c->nr_systems != 2 || !c->nr_links || !c->nr_apps)
		return base_fail(err, BASE_ERR_USAGE,
			"a platform has two [system NAME], a [link NAME] and at least one [app "
			"NAME], "
			"not %zu, %zu and %zu",
			c->nr_systems, c->nr_links, c->nr_apps);
	const struct platform_link_config *l = &c->link[0];
	enum base_status s = check_ends(c, "link", l->name, (const char *const[]){l->a, l->b},
		(const char *const[]){"a", "b"}, err);
	for (size_t i = 0; i < c->nr_apps && s == BASE_OK; i++) {
		const struct platform_app_config *a = &c->app[i];
		s = check_ends(c, "app", a->name, (const char *const[]){a->from, a->to},
			(const char *const[]){"from", "to"}, err);
		if (s == BASE_OK && a->kind == PLATFORM_APP_none)
			s = base_fail(err, BASE_ERR_USAGE,
				"[app %s] has no kind: tcp_stream, udp_stream or web", a->name);
		if (s == BASE_OK && a->p.file_least_bytes > a->p.file_most_bytes)
			s = base_fail(err, BASE_ERR_USAGE,
				"[app %s]: file_least_bytes is above file_most_bytes", a->name);
	}
	return s;
}
