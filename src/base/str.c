/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - growable text and numbers for people. */
#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void base_str_fini(struct base_str *s)
{
	base_free(s->buf);
	*s = (struct base_str){0};
}

void base_str_reset(struct base_str *s)
{
	s->length = 0;
	s->failed = false;
	if (s->buf)
		s->buf[0] = '\0';
}

/* Makes room for `more` bytes and the NUL. After a failure nothing is added until the next reset,
 * so that the text has no hole in its middle. */
static bool str_reserve(struct base_str *s, size_t more)
{
	if (s->failed)
		return false;
	if (more >= BASE_STR_LIMIT_BYTES - s->length ||
		base_grow(&s->buf, &s->capacity, s->length + more + 1, 1) != BASE_OK)
		s->failed = true;
	return !s->failed;
}

void base_str_add_bytes(struct base_str *s, const void *p, size_t length)
{
	if (!str_reserve(s, length))
		return;
	if (length)
		memcpy(s->buf + s->length, p, length);
	s->length += length;
	s->buf[s->length] = '\0';
}

void base_str_add(struct base_str *s, const char *text)
{
	base_str_add_bytes(s, text, strlen(text));
}

static void add_formatted(struct base_str *s, const char *fmt, va_list ap)
{
	va_list again;
	size_t room = s->capacity - s->length;

	va_copy(again, ap);
	int n = base_vformat(s->buf ? s->buf + s->length : NULL, s->buf ? room : 0, fmt, ap);
	if (n < 0)
		s->failed = true;
	else if ((size_t)n < room)
		s->length += (size_t)n;
	else if (str_reserve(s, (size_t)n))
		s->length += (size_t)base_vformat(
			s->buf + s->length, s->capacity - s->length, fmt, again);
	va_end(again);
	/* A first try that did not fit has left its beginning behind. */
	if (s->buf)
		s->buf[s->length] = '\0';
}

void base_str_addf(struct base_str *s, const char *fmt, ...)
{
	va_list ap;

	if (s->failed)
		return;
	va_start(ap, fmt);
	add_formatted(s, fmt, ap);
	va_end(ap);
}

const char *base_str_text(const struct base_str *s)
{
	return s->buf ? s->buf : "";
}

/* ---- numbers for people ---------------------------------------------------------------------- */

/* n / divisor rounded half up, without overflow. */
static uint64_t divide_rounded(uint64_t n, uint64_t divisor)
{
	return n / divisor + (n % divisor >= divisor - n % divisor);
}

/* Three significant digits: "1.23", "12.3", "123", then whole seconds with commas. */
void base_str_add_ns(struct base_str *s, uint64_t duration_ns)
{
	static const struct {
		uint64_t unit_ns;
		const char *name;
	} units[] = {{1000, "us"}, {1000000, "ms"}, {1000000000, "s"}};

	if (duration_ns < 1000) {
		base_str_addf(s, "%" PRIu64 " ns", duration_ns);
		return;
	}
	for (size_t i = 0; i < BASE_COUNT(units); i++) {
		uint64_t unit_ns = units[i].unit_ns;
		/* Rounded first, compared then: 999,999 ns is "1.00 ms", not "1000 us". */
		uint64_t hundredths = divide_rounded(duration_ns, unit_ns / 100);
		uint64_t tenths = divide_rounded(duration_ns, unit_ns / 10);
		uint64_t whole = divide_rounded(duration_ns, unit_ns);

		if (hundredths < 1000)
			base_str_addf(
				s, "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
		else if (tenths < 1000)
			base_str_addf(s, "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
		else if (whole < 1000 || i + 1 == BASE_COUNT(units))
			base_str_add_count(s, whole);
		else
			continue;
		base_str_addf(s, " %s", units[i].name);
		return;
	}
}

void base_str_add_size(struct base_str *s, uint64_t size_bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

	if (size_bytes < 1024) {
		base_str_addf(s, "%" PRIu64 " B", size_bytes);
		return;
	}
	for (unsigned i = 0; i < BASE_COUNT(units); i++) {
		unsigned shift = 10 * (i + 1);
		uint64_t whole = size_bytes >> shift;
		/* The fraction's top bits are enough for one digit and keep its tenfold in range.
		 */
		uint64_t rest = (size_bytes >> (shift - 10)) & 1023;
		uint64_t tenths = whole * 10 + (rest * 10 + 512) / 1024;

		if (tenths >= 10240 && i + 1 < BASE_COUNT(units))
			continue;
		base_str_addf(s, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[i]);
		return;
	}
}

void base_str_add_count(struct base_str *s, uint64_t n)
{
	char digits[32];
	size_t at = sizeof digits;

	for (unsigned nr_digits = 0; n || !nr_digits; n /= 10, nr_digits++) {
		if (nr_digits && nr_digits % 3 == 0)
			digits[--at] = ',';
		digits[--at] = (char)('0' + n % 10);
	}
	base_str_add_bytes(s, digits + at, sizeof digits - at);
}
