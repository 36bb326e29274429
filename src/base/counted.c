/* SPDX-License-Identifier: Apache-2.0 */
/* counted.c - one and many: formats with counted nouns, and tables' sentences about n things. */
#include "base/base.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { COUNTED_FORMAT_MAX = 2048 };

/* "{one|many}": of a format of JSON it differs by its "|" and by having no quotation mark. */
struct counted_noun {
	const char *one, *many, *end; /* of its parts: where they begin; the bracket */
};

static bool counted_noun_at(const char *at, struct counted_noun *ret)
{
	static const char stops[] = "{}|%\"";
	if (*at != '{')
		return false;
	ret->one = at + 1;
	ret->many = ret->one + strcspn(ret->one, stops);
	if (*ret->many++ != '|')
		return false;
	ret->end = ret->many + strcspn(ret->many, stops);
	return *ret->end == '}';
}

static size_t counted_noun_bytes(const struct counted_noun *n, bool one, const char **ret_word)
{
	*ret_word = one ? n->one : n->many;
	return (size_t)(one ? n->many - 1 - n->one : n->end - n->many);
}

/* ---- formats --------------------------------------------------------------------------------- */

/* The arguments of a format, one after another, and whether the last count among them is one. */
struct counted_arguments {
	va_list ap;
	bool one;
};

/* Whether a text is a number as base_str_add_count() writes it. */
static bool counted_is_number(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if ((text[i] < '0' || text[i] > '9') && text[i] != ',')
			return false;
	}
	return length > 0;
}

static void counted_take_text(struct counted_arguments *a, int precision)
{
	const char *text = va_arg(a->ap, const char *);
	size_t length = !text ? 0 : precision < 0 ? strlen(text) : strnlen(text, (size_t)precision);
	if (counted_is_number(text, length))
		a->one = length == 1 && *text == '1';
}

/* Takes the argument of the conversion after the "%" at `at`; returns what follows it. */
static const char *counted_take(struct counted_arguments *a, const char *at)
{
	int precision = -1;
	bool is_long = false;

	for (at++; *at && strchr("-+ #0123456789.*'hlzjtL", *at); at++) {
		if (*at == '.')
			precision = 0;
		else if (*at == '*' && precision < 0)
			(void)va_arg(a->ap, int);
		else if (*at == '*')
			precision = va_arg(a->ap, int);
		else if (precision >= 0 && *at >= '0' && *at <= '9')
			precision = precision * 10 + (*at - '0');
		else if (strchr("lzjt", *at))
			is_long = true;
	}
	if (*at && strchr("diu", *at))
		a->one = is_long ? va_arg(a->ap, long long) == 1 : va_arg(a->ap, int) == 1;
	else if (*at && strchr("xXoc", *at))
		(void)(is_long ? va_arg(a->ap, long long) : va_arg(a->ap, int));
	else if (*at && strchr("eEfFgG", *at))
		(void)va_arg(a->ap, double);
	else if (*at == 's')
		counted_take_text(a, precision);
	else if (*at == 'p')
		(void)va_arg(a->ap, void *);
	return *at ? at + 1 : at;
}

static bool counted_has_noun(const char *fmt)
{
	struct counted_noun n;
	/* (most formats end here, and some are used for every record of a trace) */
	if (!strchr(fmt, '|'))
		return false;
	while ((fmt = strchr(fmt, '{')) && !counted_noun_at(fmt, &n))
		fmt++;
	return fmt;
}

/* The format with each noun in the form that the count before it asks for. */
static void counted_choose(
	char ret[COUNTED_FORMAT_MAX], const char *fmt, struct counted_arguments *a)
{
	struct counted_noun noun;
	BASE_ASSERT(strlen(fmt) < COUNTED_FORMAT_MAX);
	while (*fmt) {
		const char *from = fmt, *next = fmt + 1;
		size_t length = 1;
		if (counted_noun_at(fmt, &noun)) {
			length = counted_noun_bytes(&noun, a->one, &from);
			next = noun.end + 1;
		} else if (*fmt == '%') {
			next = counted_take(a, fmt);
			length = (size_t)(next - fmt);
		}
		memcpy(ret, from, length);
		ret += length;
		fmt = next;
	}
	*ret = '\0';
}

int base_vformat(char *ret, size_t size_bytes, const char *fmt, va_list ap)
{
	char plain[COUNTED_FORMAT_MAX];
	struct counted_arguments a = {0};

	if (!counted_has_noun(fmt))
		return vsnprintf(ret, size_bytes, fmt, ap);
	va_copy(a.ap, ap);
	counted_choose(plain, fmt, &a);
	va_end(a.ap);
	return vsnprintf(ret, size_bytes, plain, ap);
}

int base_format(char *ret, size_t size_bytes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = base_vformat(ret, size_bytes, fmt, ap);
	va_end(ap);
	return n;
}

/* ---- sentences of tables --------------------------------------------------------------------- */

void base_str_add_sentence(struct base_str *s, const char *sentence, const char *count, bool one)
{
	struct counted_noun noun;
	while (*sentence) {
		size_t plain = strcspn(sentence, "{%");

		base_str_add_bytes(s, sentence, plain);
		sentence += plain;
		if (counted_noun_at(sentence, &noun)) {
			const char *word;
			size_t length = counted_noun_bytes(&noun, one, &word);
			base_str_add_bytes(s, word, length);
			sentence = noun.end + 1;
		} else if (*sentence == '%') {
			base_str_add(s, count);
			sentence += strlen("%s");
		} else if (*sentence) {
			base_str_add_bytes(s, sentence++, 1);
		}
	}
}

void base_str_add_counted(struct base_str *s, const char *sentence, uint64_t n)
{
	struct base_str count = {0};

	base_str_add_count(&count, n);
	base_str_add_sentence(s, sentence, base_str_text(&count), n == 1);
	s->failed |= count.failed;
	base_str_fini(&count);
}
