/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gem5_key.c - the names in annotate.bin. They are a piece of Python:
 *
 *     sms["SM"] = ["NULL", "state", ...]       states of the machines of that name
 *     smNum = ["NULL", (1, "SM", 4711), ...]   machines: system, name, instance
 *     sysNum = ["NULL", "system", ...]
 *     queues = ["NULL", (1, "Q", 4711), ...]
 *     smComb = [s for s in ...]                skipped, as is everything else
 *
 * Nothing is evaluated: these are literals, read one token at a time, no deeper than a list of
 * tuples. The simulator wrote names as they were, quotes and all, so a statement may be broken:
 * what was read of it stays, and reading goes on at the next line.
 */
#include "format/gem5.h"

#include <string.h>

enum token {
	TOKEN_END,
	TOKEN_BAD,
	TOKEN_NEWLINE,
	TOKEN_NAME,
	TOKEN_STRING,
	TOKEN_NUMBER,
	TOKEN_SIGN
};

enum { LIST_MAX = GEM5_IDS, WORD_BYTES = 64 };

struct parser {
	struct gem5_key *k;
	const char *begin, *p, *end;
	unsigned depth; /* of brackets: inside them a newline means nothing */
	enum token token;
	char sign;        /* TOKEN_SIGN */
	const char *word; /* TOKEN_NAME */
	size_t word_length;
	struct base_str string; /* TOKEN_STRING */
	uint64_t number;        /* TOKEN_NUMBER */
	enum base_status status;
};

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool gem5_key_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool gem5_key_is_word(char c)
{
	return gem5_key_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int hex_digit(char c)
{
	return gem5_key_is_digit(c)     ? c - '0'
	       : (c >= 'a' && c <= 'f') ? c - 'a' + 10
	       : (c >= 'A' && c <= 'F') ? c - 'A' + 10
					: -1;
}

/* After a backslash. An escape that Python does not know stands for itself, backslash and all. */
static void escape(struct parser *ps)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	char c = *ps->p++, byte;
	const char *known = c ? strchr(from, c) : NULL;
	if (c == '\n')
		return;
	if (known) {
		byte = to[known - from];
	} else if (c == 'x' && ps->end - ps->p >= 2 && hex_digit(ps->p[0]) >= 0 &&
		   hex_digit(ps->p[1]) >= 0) {
		byte = (char)(hex_digit(ps->p[0]) * 16 + hex_digit(ps->p[1]));
		ps->p += 2;
	} else if (c >= '0' && c <= '7') {
		int v = c - '0';
		for (int i = 0; i < 2 && ps->p < ps->end && *ps->p >= '0' && *ps->p <= '7'; i++)
			v = v * 8 + (*ps->p++ - '0');
		byte = (char)v;
	} else {
		base_str_add(&ps->string, "\\");
		byte = c;
	}
	base_str_add_bytes(&ps->string, &byte, 1);
}

static enum token gem5_string(struct parser *ps)
{
	char quote = *ps->p++;
	base_str_reset(&ps->string);
	while (ps->p < ps->end && *ps->p != quote && *ps->p != '\n') {
		const char *plain = ps->p;
		while (ps->p < ps->end && *ps->p != quote && *ps->p != '\n' && *ps->p != '\\')
			ps->p++;
		base_str_add_bytes(&ps->string, plain, (size_t)(ps->p - plain));
		if (ps->p < ps->end && *ps->p == '\\') {
			ps->p++;
			if (ps->p == ps->end)
				return TOKEN_BAD;
			escape(ps);
		}
	}
	if (ps->p == ps->end || *ps->p != quote)
		return TOKEN_BAD; /* the line ended first */
	ps->p++;
	return TOKEN_STRING;
}

/* Decimal, 0x..., 0o... and 0...; an L may follow. */
static enum token gem5_number(struct parser *ps)
{
	unsigned base = 10;
	uint64_t v = 0;
	if (*ps->p == '0' && ps->end - ps->p > 1) {
		char c = ps->p[1];
		bool lettered = c == 'x' || c == 'X' || c == 'o' || c == 'O';
		base = c == 'x' || c == 'X' ? 16 : lettered || gem5_key_is_digit(c) ? 8 : 10;
		ps->p += lettered ? 2 : 0;
	}
	const char *first = ps->p;
	for (int d; ps->p < ps->end && (d = hex_digit(*ps->p)) >= 0 && (unsigned)d < base; ps->p++)
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
			__builtin_add_overflow(v, (uint64_t)d, &v))
			return TOKEN_BAD;
	if (ps->p == first)
		return TOKEN_BAD;
	if (ps->p < ps->end && (*ps->p == 'L' || *ps->p == 'l'))
		ps->p++;
	ps->number = v;
	return ps->p < ps->end && gem5_key_is_word(*ps->p) ? TOKEN_BAD : TOKEN_NUMBER;
}

static void skip_blanks(struct parser *ps)
{
	while (ps->p < ps->end) {
		if (*ps->p == ' ' || *ps->p == '\t' || *ps->p == '\r' || *ps->p == '\f' ||
			(*ps->p == '\n' && ps->depth))
			ps->p++;
		else if (*ps->p == '\\' && ps->end - ps->p > 1 && ps->p[1] == '\n')
			ps->p += 2;
		else if (*ps->p == '#')
			while (ps->p < ps->end && *ps->p != '\n')
				ps->p++;
		else
			break;
	}
}

static enum token gem5_key_next(struct parser *ps)
{
	skip_blanks(ps);
	if (ps->p == ps->end)
		return ps->token = TOKEN_END;
	char c = *ps->p;
	if (c == '"' || c == '\'')
		return ps->token = gem5_string(ps);
	if (gem5_key_is_digit(c))
		return ps->token = gem5_number(ps);
	ps->word = ps->p;
	while (ps->p < ps->end && gem5_key_is_word(*ps->p))
		ps->p++;
	ps->word_length = (size_t)(ps->p - ps->word);
	if (ps->word_length)
		return ps->token = TOKEN_NAME;
	ps->p++;
	if (c == '\n')
		return ps->token = TOKEN_NEWLINE;
	if (c == '(' || c == '[' || c == '{')
		ps->depth++;
	else if ((c == ')' || c == ']' || c == '}') && ps->depth)
		ps->depth--;
	ps->sign = c;
	return ps->token = TOKEN_SIGN;
}

static bool is_sign(const struct parser *ps, char c)
{
	return ps->token == TOKEN_SIGN && ps->sign == c;
}

/* ---- statements ------------------------------------------------------------------------------ */

static uint32_t gem5_text_of(struct parser *ps)
{
	uint32_t id = 0;
	enum base_status s = ps->string.failed
				     ? BASE_ERR_NOMEM
				     : base_strtab_intern(ps->k->text, base_str_text(&ps->string),
					       ps->string.length, &id);
	if (ps->status == BASE_OK)
		ps->status = s;
	return id;
}

static void gem5_key_grow(
	struct parser *ps, void *data, size_t *capacity, size_t need, size_t elem_bytes)
{
	if (ps->status == BASE_OK)
		ps->status = base_grow(data, capacity, need, elem_bytes);
}

/* (system, "name", instance), after its parenthesis. */
static bool tuple(struct parser *ps, struct gem5_thing *ret)
{
	if (gem5_key_next(ps) != TOKEN_NUMBER)
		return false;
	ret->system = ps->number;
	if (gem5_key_next(ps) != TOKEN_SIGN || ps->sign != ',' || gem5_key_next(ps) != TOKEN_STRING)
		return false;
	ret->name = gem5_text_of(ps);
	if (gem5_key_next(ps) != TOKEN_SIGN || ps->sign != ',' || gem5_key_next(ps) != TOKEN_NUMBER)
		return false;
	ret->instance = ps->number;
	gem5_key_next(ps);
	return is_sign(ps, ')');
}

struct list {                       /* where a list's elements go */
	struct gem5_things *things; /* tuples; else texts: */
	uint32_t machine;           /* a machine's states; 0: systems */
};

static void gem5_key_add_text(struct parser *ps, const struct list *l, size_t id)
{
	struct gem5_key *k = ps->k;
	uint32_t text = gem5_text_of(ps);
	if (!id)
		return; /* "NULL" */
	if (l->machine) {
		if (ps->status == BASE_OK)
			ps->status = base_map_put(&k->states, l->machine, id, text);
		return;
	}
	gem5_key_grow(ps, &k->system, &k->system_capacity, id + 1, sizeof *k->system);
	if (ps->status != BASE_OK)
		return;
	k->system[id] = text;
	k->nr_systems = id + 1;
}

static void gem5_key_add_thing(
	struct parser *ps, struct gem5_things *t, size_t id, struct gem5_thing thing)
{
	gem5_key_grow(ps, &t->thing, &t->capacity, id + 1, sizeof *t->thing);
	if (ps->status != BASE_OK)
		return;
	t->thing[id] = thing;
	t->nr = id + 1;
}

/* One element, whose first token was read. Elements of a tuple list that are texts are nobody. */
static bool element(struct parser *ps, const struct list *l, size_t id)
{
	struct gem5_thing thing = {0};
	if (l->things && is_sign(ps, '(')) {
		if (!tuple(ps, &thing))
			return false;
	} else if (ps->token != TOKEN_STRING) {
		return false;
	} else if (!l->things) {
		gem5_key_add_text(ps, l, id);
		return true;
	}
	if (l->things)
		gem5_key_add_thing(ps, l->things, id, thing);
	return true;
}

static bool gem5_key_list(struct parser *ps, const struct list *l)
{
	if (gem5_key_next(ps) != TOKEN_SIGN || ps->sign != '[')
		return false;
	gem5_key_next(ps);
	for (size_t id = 0; !is_sign(ps, ']'); id++) {
		if (id == LIST_MAX || !element(ps, l, id) || ps->status != BASE_OK)
			return false;
		gem5_key_next(ps);
		if (is_sign(ps, ','))
			gem5_key_next(ps);
		else if (!is_sign(ps, ']'))
			return false;
	}
	gem5_key_next(ps);
	return ps->token == TOKEN_NEWLINE || ps->token == TOKEN_END || is_sign(ps, ';');
}

static bool is_name(const struct parser *ps, const char *name)
{
	return ps->token == TOKEN_NAME && ps->word_length == strlen(name) &&
	       !memcmp(ps->word, name, ps->word_length);
}

/* Up to the end of the logical line. False: there is something that is no Python. */
static bool skip_statement(struct parser *ps)
{
	while (ps->token != TOKEN_NEWLINE && ps->token != TOKEN_END && ps->token != TOKEN_BAD &&
		!(is_sign(ps, ';') && !ps->depth))
		gem5_key_next(ps);
	return ps->token != TOKEN_BAD;
}

/* Starting anew after damage: on the next line, whatever was open. */
static void skip_line(struct parser *ps)
{
	const char *p = ps->p > ps->begin && ps->p[-1] == '\n' ? ps->p - 1 : ps->p;
	const char *newline = memchr(p, '\n', (size_t)(ps->end - p));
	ps->p = newline ? newline + 1 : ps->end;
	ps->depth = 0;
}

/* False: damaged. The first token was read. */
static bool statement(struct parser *ps)
{
	struct list l = {0};
	if (is_name(ps, "sms")) {
		gem5_key_next(ps);
		if (!is_sign(ps, '[')) /* sms = {} */
			return skip_statement(ps);
		if (gem5_key_next(ps) != TOKEN_STRING)
			return false;
		l.machine = gem5_text_of(ps);
		gem5_key_next(ps);
		if (!is_sign(ps, ']') || !l.machine)
			return false;
	} else if (is_name(ps, "smNum")) {
		l.things = &ps->k->machines;
	} else if (is_name(ps, "queues")) {
		l.things = &ps->k->queues;
	} else if (!is_name(ps, "sysNum")) {
		return skip_statement(ps);
	}
	gem5_key_next(ps);
	return is_sign(ps, '=') && gem5_key_list(ps, &l);
}

static void note_damage(struct parser *ps, const char *at)
{
	size_t line = 1, length = 0;
	for (const char *p = ps->begin; p < at; p++)
		line += *p == '\n';
	while (at + length < ps->end && length < WORD_BYTES && at[length] != '\n')
		length++;
	if (!ps->k->nr_damaged++)
		base_str_addf(&ps->k->damage, "line %zu, after byte %zu: '%.*s...'", line,
			(size_t)(ps->p - ps->begin), (int)length, at);
}

enum base_status format_gem5_key_parse(
	struct gem5_key *k, const char *text, size_t length, struct base_err *err)
{
	struct parser ps = {.k = k, .begin = text, .p = text, .end = text + length};
	*k = (struct gem5_key){.text = base_strtab_new()};
	if (!k->text)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for the names");
	while (ps.status == BASE_OK && gem5_key_next(&ps) != TOKEN_END) {
		const char *at = ps.token == TOKEN_NAME ? ps.word : ps.p - 1;
		ps.depth = ps.token == TOKEN_SIGN ? ps.depth : 0;
		if (ps.token == TOKEN_NEWLINE || is_sign(&ps, ';') || statement(&ps))
			continue;
		if (ps.status == BASE_OK)
			note_damage(&ps, at);
		skip_line(&ps);
	}
	base_str_fini(&ps.string);
	if (k->damage.failed && ps.status == BASE_OK)
		ps.status = BASE_ERR_NOMEM;
	if (ps.status == BASE_OK)
		return BASE_OK;
	format_gem5_key_fini(k);
	return base_fail(err, ps.status, "out of memory for the key's names");
}

void format_gem5_key_fini(struct gem5_key *k)
{
	base_strtab_free(k->text);
	base_free(k->machines.thing);
	base_free(k->queues.thing);
	base_free(k->system);
	base_map_fini(&k->states);
	base_str_fini(&k->damage);
	*k = (struct gem5_key){0};
}

void format_gem5_key_quote(struct base_str *out, const char *text)
{
	base_str_add(out, "\"");
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			base_str_addf(out, "\\%c", *p);
		else if (*p < 0x20 || *p >= 0x7f)
			base_str_addf(out, "\\x%02x", *p);
		else
			base_str_add_bytes(out, p, 1);
	}
	base_str_add(out, "\"");
}
