/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.c - Trace Event JSON, event after event, through a window of the file. */
#include "runtime/gpu/kineto.h"
#include "format/json.h"

#include <string.h>

enum { PIECE_BYTES = 1 << 20, FRACTION_DIGITS = 3 };

/* ---- values ---------------------------------------------------------------------------------- */

static bool kineto_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *kineto_skip(const char *p, const char *end, bool commas)
{
	while (p < end && (kineto_is_blank(*p) || (commas && *p == ',')))
		p++;
	return p;
}

/* Behind the string whose first quote is at p; NULL: it does not end. */
static const char *kineto_string_end(const char *p, const char *end)
{
	for (p++; p < end; p++) {
		const char *quote = memchr(p, '"', (size_t)(end - p));
		if (!quote)
			return NULL;
		const char *first = quote;
		while (first > p && first[-1] == '\\')
			first--;
		p = quote;
		if ((quote - first) % 2 == 0)
			return quote + 1;
	}
	return NULL;
}

/* Behind the object or list that begins at p; NULL: it does not end. */
static const char *kineto_nested_end(const char *p, const char *end)
{
	unsigned depth = 0;
	while (p < end) {
		char c = *p;
		if (c == '"') {
			p = kineto_string_end(p, end);
			if (!p)
				return NULL;
			continue;
		}
		p++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && !--depth)
			return p;
	}
	return NULL;
}

static const char *kineto_word_end(const char *p, const char *end)
{
	while (p < end && !kineto_is_blank(*p) && *p != ',' && *p != ']' && *p != '}')
		p++;
	return p;
}

/* The value that begins at *p, which moves behind it. False: it does not end. */
static bool kineto_value(const char **p, const char *end, struct kineto_text *ret)
{
	const char *begin = *p, *behind;
	*ret = (struct kineto_text){.at = begin};
	if (begin >= end)
		return false;
	if (*begin == '"') {
		behind = kineto_string_end(begin, end);
		if (!behind)
			return false;
		*ret = (struct kineto_text){begin + 1, (size_t)(behind - begin) - 2, true};
	} else {
		behind = *begin == '{' || *begin == '[' ? kineto_nested_end(begin, end)
							: kineto_word_end(begin, end);
		if (!behind)
			return false;
		ret->length = (size_t)(behind - begin);
	}
	*p = behind;
	return true;
}

bool format_kineto_member(
	struct kineto_text *rest, struct kineto_text *ret_key, struct kineto_text *ret_value)
{
	const char *p = rest->at, *end = p ? p + rest->length : NULL;
	if (!p)
		return false;
	p = kineto_skip(p, end, true);
	if (p < end && *p == '{')
		p = kineto_skip(p + 1, end, true);
	if (p >= end || *p != '"' || !kineto_value(&p, end, ret_key))
		return false;
	p = kineto_skip(p, end, false);
	if (p >= end || *p != ':')
		return false;
	p = kineto_skip(p + 1, end, false);
	if (!kineto_value(&p, end, ret_value))
		return false;
	*rest = (struct kineto_text){.at = p, .length = (size_t)(end - p)};
	return true;
}

bool format_kineto_is(struct kineto_text t, const char *word)
{
	/* asked of each member of each event: most differ in their first letter */
	return t.at && t.length && *t.at == *word && t.length == strlen(word) &&
	       !memcmp(t.at, word, t.length);
}

/* Digits with at most `decimals` behind the point that count; more are cut. */
static bool kineto_decimal(struct kineto_text t, unsigned decimals, int64_t *ret)
{
	const char *p = t.at, *end = p ? p + t.length : NULL;
	int64_t n = 0;
	bool negative = p && p < end && *p == '-', any = false, point = false;
	unsigned nr = 0;
	for (p += negative ? 1 : 0; p && p < end; p++) {
		if (*p == '.' && !point) {
			point = true;
			continue;
		}
		if (*p < '0' || *p > '9')
			return false;
		any = true;
		if (point && nr == decimals)
			continue;
		nr += point;
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
			return false;
	}
	for (; any && nr < decimals; nr++)
		if (__builtin_mul_overflow(n, 10, &n))
			return false;
	*ret = negative ? -n : n;
	return any;
}

bool format_kineto_time(struct kineto_text t, int64_t *ret_ns)
{
	return kineto_decimal(t, FRACTION_DIGITS, ret_ns);
}

bool format_kineto_number(struct kineto_text t, int64_t *ret)
{
	return kineto_decimal(t, 0, ret);
}

static unsigned kineto_hexadecimal(const char *p, const char *end)
{
	unsigned n = 0;
	for (unsigned i = 0; i < 4 && p + i < end; i++) {
		char c = p[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
				 : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
							: 0;
		n = n << 4 | digit;
	}
	return n;
}

/* UTF-8 of a character. Half a surrogate pair is what a text cut in the middle of one leaves. */
static void kineto_add_code(struct base_str *out, unsigned code)
{
	char b[4];
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	if (code >> 11 == 0xd800 >> 11) {
		base_str_add(out, "\xef\xbf\xbd");
		return;
	}
	for (size_t i = n; i-- > 1; code >>= 6)
		b[i] = (char)(0x80 | (code & 0x3f));
	b[0] = (char)(n == 1 ? code : (0xf00 >> n & 0xff) | code);
	base_str_add_bytes(out, b, n);
}

/* What an escape of a UTF-16 unit, or of two that are a pair, says; returns where it ends. */
static const char *kineto_add_units(struct base_str *out, const char *p, const char *end)
{
	enum { UNIT_BYTES = 6 };
	unsigned code = kineto_hexadecimal(p + 2, end), low = 0;
	p = end - p > UNIT_BYTES ? p + UNIT_BYTES : end;
	if (code >> 10 == 0xd800 >> 10 && end - p >= UNIT_BYTES && p[0] == '\\' && p[1] == 'u')
		low = kineto_hexadecimal(p + 2, end);
	if (low >> 10 == 0xdc00 >> 10) {
		code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
		p += UNIT_BYTES;
	}
	kineto_add_code(out, code);
	return p;
}

void format_kineto_add_text(struct base_str *out, struct kineto_text t)
{
	const char *p = t.at, *end = p ? p + t.length : NULL;
	while (p && p < end) {
		const char *escape = t.is_quoted ? memchr(p, '\\', (size_t)(end - p)) : NULL;
		const char *to = escape ? escape : end;
		base_str_add_bytes(out, p, (size_t)(to - p));
		p = to;
		if (!escape || end - p < 2)
			break;
		if (p[1] == 'u') {
			p = kineto_add_units(out, p, end);
		} else {
			if (p[1] && !strchr("nrtbf\"\\/", p[1])) /* it escapes nothing */
				base_str_add(out, "\\");
			base_str_add_bytes(out, p[1] && strchr("nrtbf", p[1]) ? " " : p + 1, 1);
			p += 2;
		}
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

struct kineto_window { /* bytes [at - (nr - used), at) of the file, from `used` on not yet read */
	const struct format_source *from;
	uint64_t at;
	char *bytes;
	size_t nr, used, capacity;
	struct base_err *err;
	enum base_status status;
};

/* More bytes behind those that are there; false: there are no more, or status says why. */
static bool kineto_more(struct kineto_window *w)
{
	uint64_t left = w->from->size_bytes - w->at;
	size_t wanted = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
	if (!wanted || w->status != BASE_OK)
		return false;
	if (w->used && w->bytes) {
		memmove(w->bytes, w->bytes + w->used, w->nr - w->used);
		w->nr -= w->used;
		w->used = 0;
	}
	if (base_grow(&w->bytes, &w->capacity, w->nr + wanted, 1) != BASE_OK) {
		w->status = base_fail(w->err, BASE_ERR_NOMEM, "out of memory for an event");
		return false;
	}
	w->status = w->from->read(w->from->ctx, w->at, w->bytes + w->nr, wanted, w->err);
	if (w->status != BASE_OK)
		return false;
	w->at += wanted;
	w->nr += wanted;
	return true;
}

/* The next byte that is neither blank nor (if asked) a comma; 0: the end. It is not used up. */
static char kineto_peek(struct kineto_window *w, bool commas)
{
	do {
		while (w->used < w->nr) {
			char c = w->bytes[w->used];
			if (!kineto_is_blank(c) && !(commas && c == ','))
				return c;
			w->used++;
		}
	} while (kineto_more(w));
	return 0;
}

/* The value that begins here; it is used up. False: the file ends within it, or it is too long (then *ret_long). */
static bool kineto_take(struct kineto_window *w, struct kineto_text *ret, bool *ret_long)
{
	*ret_long = false;
	for (;;) {
		const char *p = w->bytes + w->used, *end = w->bytes + w->nr;
		bool is_whole = kineto_value(&p, end, ret);
		/* a word may go on behind the window */
		if (is_whole && (p < end || ret->is_quoted || *ret->at == '{' || *ret->at == '[')) {
			w->used = (size_t)(p - w->bytes);
			return true;
		}
		if (w->nr - w->used > KINETO_EVENT_BYTES_MAX) {
			*ret_long = true;
			w->used = w->nr;
			return false;
		}
		if (!kineto_more(w))
			return false;
	}
}

static void kineto_fill(struct kineto_event *e, struct kineto_text key, struct kineto_text value)
{
	static const struct {
		const char *key;
		size_t at;
	} members[] = {
		{"ph", offsetof(struct kineto_event, phase)},
		{"cat", offsetof(struct kineto_event, category)},
		{"name", offsetof(struct kineto_event, name)},
		{"pid", offsetof(struct kineto_event, pid)},
		{"tid", offsetof(struct kineto_event, tid)},
		{"ts", offsetof(struct kineto_event, time)},
		{"dur", offsetof(struct kineto_event, duration)},
		{"id", offsetof(struct kineto_event, id)},
		{"args", offsetof(struct kineto_event, arguments)},
	};
	for (size_t i = 0; i < BASE_COUNT(members); i++)
		if (format_kineto_is(key, members[i].key))
			*(struct kineto_text *)((char *)e + members[i].at) = value;
}

static void kineto_events(
	struct kineto_window *w, const struct kineto_visitor *to, struct kineto_counts *counts)
{
	for (;;) {
		char c = kineto_peek(w, true);
		bool is_long = false;
		struct kineto_text value = {0}, key = {0}, member = {0};
		if (c == ']') {
			w->used++;
			return;
		}
		if (!c || c == '}' || c == ':' || !kineto_take(w, &value, &is_long)) {
			counts->nr_too_long += c && is_long;
			counts->is_cut = true;
			return;
		}
		if (c != '{') {
			counts->nr_damaged++;
			continue;
		}
		struct kineto_event e = {0};
		while (format_kineto_member(&value, &key, &member))
			kineto_fill(&e, key, member);
		counts->nr_events++;
		to->event(to->ctx, &e);
	}
}

/* An object with the list in it, or the list itself. True: there was one. */
static bool kineto_file(
	struct kineto_window *w, const struct kineto_visitor *to, struct kineto_counts *counts)
{
	bool is_long;
	if (kineto_peek(w, false))
		w->used += format_json_mark_bytes(w->bytes + w->used, w->nr - w->used);
	bool found = kineto_peek(w, false) == '[';
	if (found) {
		w->used++;
		kineto_events(w, to, counts);
		return true;
	}
	if (kineto_peek(w, false) != '{')
		return false;
	w->used++;
	while (kineto_peek(w, true) == '"') {
		struct base_str name = {0};
		struct kineto_text key = {0}, value = {0};
		if (!kineto_take(w, &key, &is_long))
			break;
		base_str_add_bytes(&name, key.at, key.length); /* the window moves */
		struct kineto_text own = {base_str_text(&name), name.length, true};
		bool is_events = format_kineto_is(own, "traceEvents");
		bool more = kineto_peek(w, false) == ':';
		w->used += more;
		if (more && kineto_peek(w, false) == '[' && is_events) {
			w->used++;
			found = true;
			kineto_events(w, to, counts);
		} else if (more) {
			more = kineto_peek(w, false) && kineto_take(w, &value, &is_long);
			if (more)
				to->header(to->ctx, own, value);
		}
		base_str_fini(&name);
		if (!more || counts->is_cut)
			break;
	}
	return found;
}

enum base_status format_kineto_read(const struct format_source *from,
	const struct kineto_visitor *to, struct kineto_counts *ret, struct base_err *err)
{
	struct kineto_window w = {.from = from, .err = err};
	*ret = (struct kineto_counts){0};
	bool found = kineto_file(&w, to, ret);
	base_free(w.bytes);
	if (w.status != BASE_OK)
		return w.status;
	return found ? BASE_OK
		     : base_fail(err, BASE_ERR_FOREIGN,
			       "has no traceEvents: it is no file of PyTorch's profiler");
}
