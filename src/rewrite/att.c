/* SPDX-License-Identifier: Apache-2.0 */
/* att.c - AT&T assembly text into statements and operands. */
#include "rewrite/att.h"

#include <string.h>

/* ---- texts ----------------------------------------------------------------------------------- */

static bool att_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

/* A character of a symbol. */
static bool att_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '$' || (unsigned char)c >= 0x80;
}

static bool att_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

struct att_text rewrite_att_trim(struct att_text t)
{
	while (t.length && att_is_blank(*t.at))
		t.at++, t.length--;
	while (t.length && att_is_blank(t.at[t.length - 1]))
		t.length--;
	return t;
}

bool rewrite_att_is(struct att_text t, const char *word)
{
	return t.length == strlen(word) && (!t.length || !memcmp(t.at, word, t.length));
}

bool rewrite_att_begins(struct att_text t, const char *prefix)
{
	size_t n = strlen(prefix);
	return t.length >= n && (!n || !memcmp(t.at, prefix, n));
}

bool rewrite_att_ends(struct att_text t, const char *suffix)
{
	size_t n = strlen(suffix);
	return t.length >= n && (!n || !memcmp(t.at + t.length - n, suffix, n));
}

bool rewrite_att_contains(struct att_text t, const char *word)
{
	return t.length && memmem(t.at, t.length, word, strlen(word)) != NULL;
}

/* ---- statements ------------------------------------------------------------------------------ */

static const char *const prefix_word[] = {"lock", "rep", "repe", "repz", "repne", "repnz",
	"notrack", "bnd", "data16", "addr32", "rex64", "rex.W", "xacquire", "xrelease", "{evex}",
	"{vex}", "{vex2}", "{vex3}", "{disp8}", "{disp32}", "{load}", "{store}"};

static bool is_prefix(struct att_text word)
{
	for (size_t i = 0; i < BASE_COUNT(prefix_word); i++)
		if (rewrite_att_is(word, prefix_word[i]))
			return true;
	return false;
}

static struct att_text first_word(struct att_text t)
{
	size_t n = 0;
	while (n < t.length && !att_is_blank(t.at[n]))
		n++;
	return (struct att_text){t.at, n};
}

static struct att_text behind(struct att_text t, struct att_text word)
{
	size_t n = (size_t)(word.at - t.at) + word.length;
	return rewrite_att_trim((struct att_text){t.at + n, t.length - n});
}

struct att_text rewrite_att_word(const struct att_statement *s)
{
	struct att_text t = s->text, word = first_word(t);
	while (s->kind == ATT_INSTRUCTION && is_prefix(word)) {
		struct att_text rest = behind(t, word);
		if (!rest.length)
			break;
		t = rest;
		word = first_word(t);
	}
	return word;
}

struct att_text rewrite_att_rest(const struct att_statement *s)
{
	return behind(s->text, rewrite_att_word(s));
}

static enum base_status att_add(struct att_file *f, struct att_text text, enum att_kind kind,
	unsigned flags, struct base_err *err)
{
	if (f->nr >= ATT_STATEMENTS_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "more than %d assembly statements",
			(int)ATT_STATEMENTS_MAX);
	if (base_grow(&f->statement, &f->capacity, f->nr + 1, sizeof *f->statement) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the assembly's statements");
	struct att_statement *s = &f->statement[f->nr++];
	*s = (struct att_statement){text, (uint8_t)kind, (uint8_t)flags};
	if (kind == ATT_INSTRUCTION && is_prefix(rewrite_att_word(s)))
		s->flags |= ATT_PREFIX_ONLY;
	return BASE_OK;
}

/* The statement that begins at p: to ';', '#' or the end, outside strings. */
static size_t statement_length(const char *p, const char *end)
{
	const char *at = p;
	bool in_string = false;
	for (; at < end; at++) {
		if (in_string && *at == '\\' && at + 1 < end)
			at++;
		else if (*at == '"')
			in_string = !in_string;
		else if (!in_string && (*at == ';' || *at == '#'))
			break;
	}
	return (size_t)(at - p);
}

/* A label's name at the statement's start: a word or a quoted one, then ':'. 0: none. */
static size_t label_length(struct att_text t)
{
	size_t n = 0;
	if (t.length && *t.at == '"') {
		for (n = 1; n < t.length && t.at[n] != '"'; n++)
			;
		n += n < t.length;
	} else {
		while (n < t.length && (att_is_word(t.at[n]) || t.at[n] == '@'))
			n++;
	}
	return n && n < t.length && t.at[n] == ':' ? n : 0;
}

static enum base_status split_line(
	struct att_file *f, const char *p, const char *end, unsigned flags, struct base_err *err)
{
	while (p < end) {
		size_t n = statement_length(p, end);
		struct att_text t = rewrite_att_trim((struct att_text){p, n});
		bool comment = p + n < end && p[n] == '#';
		p += n + 1;
		for (size_t name; (name = label_length(t));) {
			enum base_status s =
				att_add(f, (struct att_text){t.at, name}, ATT_LABEL, flags, err);
			if (s != BASE_OK)
				return s;
			t = rewrite_att_trim(
				(struct att_text){t.at + name + 1, t.length - name - 1});
		}
		if (t.length) {
			bool assigns = memchr(t.at, '=', t.length) && first_word(t).length &&
				       !rewrite_att_contains(first_word(t), "{");
			enum att_kind kind =
				*t.at == '.' || assigns ? ATT_DIRECTIVE : ATT_INSTRUCTION;
			enum base_status s = att_add(f, t, kind, flags, err);
			if (s != BASE_OK)
				return s;
		}
		if (comment)
			break;
	}
	return BASE_OK;
}

enum base_status rewrite_att_split(
	const char *text, size_t size_bytes, struct att_file *ret, struct base_err *err)
{
	const char *p = text, *end = text + size_bytes;
	unsigned flags = 0;
	*ret = (struct att_file){0};
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol ? eol : end;
		/* clang indents #APP and #NO_APP */
		struct att_text line = rewrite_att_trim((struct att_text){p, (size_t)(eol - p)});
		if (rewrite_att_begins(line, "#APP"))
			flags |= ATT_IN_APP;
		else if (rewrite_att_begins(line, "#NO_APP"))
			flags &= ~(unsigned)ATT_IN_APP;
		enum base_status s = split_line(ret, p, eol, flags, err);
		if (s != BASE_OK) {
			rewrite_att_file_fini(ret);
			return s;
		}
		p = eol + 1;
	}
	return BASE_OK;
}

void rewrite_att_file_fini(struct att_file *f)
{
	base_free(f->statement);
	*f = (struct att_file){0};
}

/* ---- operands -------------------------------------------------------------------------------- */

size_t rewrite_att_parts(struct att_text list, struct att_text *ret, size_t max)
{
	size_t nr = 0, from = 0;
	int depth = 0;
	bool in_string = false;
	if (!rewrite_att_trim(list).length)
		return 0;
	for (size_t i = 0; i <= list.length; i++) {
		char c = i < list.length ? list.at[i] : ',';
		if (i < list.length && c == '"')
			in_string = !in_string;
		depth += c == '(' || c == '{';
		depth -= c == ')' || c == '}';
		if (i < list.length && (c != ',' || depth > 0 || in_string))
			continue;
		if (nr < max)
			ret[nr] = rewrite_att_trim((struct att_text){list.at + from, i - from});
		nr++;
		from = i + 1;
	}
	return nr;
}

static bool att_number(struct att_text t, int64_t *ret)
{
	char buf[32];
	size_t n = t.length;
	if (!n || n >= sizeof buf)
		return false;
	memcpy(buf, t.at, n);
	buf[n] = 0;
	const char *p = buf;
	bool negative = *p == '-';
	p += *p == '-' || *p == '+';
	uint64_t v = 0;
	bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	p += hex ? 2 : 0;
	if (!*p)
		return false;
	if (!hex && p[0] == '0' && p[1])
		return false; /* octal: nobody writes it; let the assembler see the text */
	for (; *p; p++) {
		int digit = att_is_digit(*p)                ? *p - '0'
			    : hex && *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
			    : hex && *p >= 'A' && *p <= 'F' ? *p - 'A' + 10
							    : -1;
		if (digit < 0 || v > UINT64_MAX / 16 - 16)
			return false;
		v = v * (hex ? 16 : 10) + (uint64_t)digit;
	}
	*ret = (int64_t)(negative ? 0 - v : v);
	return true;
}

/* "sym+8" -> "sym", 8; a number alone -> "", it; anything else stays whole. */
static void split_displacement(struct att_text t, struct rewrite_att_memory *ret)
{
	ret->symbol = (struct att_text){t.at, 0};
	ret->number = 0;
	if (!t.length || att_number(t, &ret->number))
		return;
	ret->symbol = t;
	for (size_t i = t.length; i-- > 1;) {
		if (t.at[i] != '+' && t.at[i] != '-') {
			if (!att_is_word(t.at[i]))
				return;
			continue;
		}
		struct att_text tail = {t.at + i, t.length - i};
		if (att_number(tail, &ret->number))
			ret->symbol = rewrite_att_trim((struct att_text){t.at, i});
		return;
	}
}

bool rewrite_att_memory(struct att_text t, struct rewrite_att_memory *ret)
{
	*ret = (struct rewrite_att_memory){0};
	t = rewrite_att_trim(t);
	if (t.length && *t.at == '*')
		t = rewrite_att_trim((struct att_text){t.at + 1, t.length - 1});
	/* {1to8}, {%k1} behind it */
	while (t.length && t.at[t.length - 1] == '}') {
		size_t i = t.length;
		while (i && t.at[i - 1] != '{')
			i--;
		if (!i)
			return false;
		t = rewrite_att_trim((struct att_text){t.at, i - 1});
	}
	if (t.length > 4 && *t.at == '%') {
		const char *colon = memchr(t.at, ':', t.length);
		if (!colon)
			return false;
		ret->segment = (struct att_text){t.at + 1, (size_t)(colon - t.at) - 1};
		t = rewrite_att_trim(
			(struct att_text){colon + 1, t.length - (size_t)(colon + 1 - t.at)});
	}
	if (!t.length || *t.at == '$' || *t.at == '%')
		return false;
	if (t.at[t.length - 1] == ')') {
		size_t i = t.length;
		while (i && t.at[i - 1] != '(')
			i--;
		if (!i)
			return false;
		if (i < t.length && (t.at[i] == '%' || t.at[i] == ',')) {
			ret->inside = (struct att_text){t.at + i - 1, t.length - i + 1};
			t = rewrite_att_trim((struct att_text){t.at, i - 1});
		}
	}
	split_displacement(t, ret);
	return true;
}

void rewrite_att_symbols(
	struct att_text t, void (*visit)(void *ctx, struct att_text symbol), void *ctx)
{
	for (size_t i = 0; i < t.length;) {
		char c = t.at[i];
		if (c == '"') {
			size_t from = i++;
			while (i < t.length && t.at[i] != '"')
				i++;
			i += i < t.length;
			visit(ctx, (struct att_text){t.at + from, i - from});
			continue;
		}
		if (c == '%' || c == '@' || !att_is_word(c)) {
			bool skip = c == '%' || c == '@'; /* a register, a relocation */
			for (i++; skip && i < t.length && att_is_word(t.at[i]); i++)
				;
			continue;
		}
		size_t from;
		i += c == '$'; /* an immediate */
		from = i;
		while (i < t.length && att_is_word(t.at[i]))
			i++;
		if (i > from && !att_is_digit(t.at[from]))
			visit(ctx, (struct att_text){t.at + from, i - from});
		else if (i == from)
			i++;
	}
}
