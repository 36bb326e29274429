/* SPDX-License-Identifier: Apache-2.0 */
/* format.c - "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;" and its like. */
#include "system/format.h"

#include <stdlib.h>
#include <string.h>

/* The number after `key` within [line, end). */
static bool format_number_in(const char *line, const char *end, const char *key, uint32_t *ret)
{
	size_t n = strlen(key);
	for (const char *p = line; p + n < end; p++) {
		if (strncmp(p, key, n) != 0)
			continue;
		char *stop;
		unsigned long long v = strtoull(p + n, &stop, 10);
		if (stop == p + n || v > SYSTEM_FORMAT_RECORD_MAX)
			return false;
		*ret = (uint32_t)v;
		return true;
	}
	return false;
}

/* "type name" or "type name[4]": is it called that? */
static bool is_called(const char *declaration, const char *end, const char *name)
{
	const char *stop = memchr(declaration, '[', (size_t)(end - declaration));
	if (!stop)
		stop = end;
	while (stop > declaration && stop[-1] == ' ')
		stop--;
	size_t n = strlen(name);
	return (size_t)(stop - declaration) > n && !strncmp(stop - n, name, n) &&
	       (stop[-(ptrdiff_t)n - 1] == ' ' || stop[-(ptrdiff_t)n - 1] == '*');
}

static void parse_field(const char *line, const char *end, const char *const *names, unsigned nr,
	struct system_format *ret)
{
	static const char key[] = "field:";
	const char *declaration = line + strspn(line, " \t");
	if ((size_t)(end - declaration) < sizeof key ||
		strncmp(declaration, key, sizeof key - 1) != 0)
		return;
	declaration += sizeof key - 1;
	const char *stop = memchr(declaration, ';', (size_t)(end - declaration));
	struct system_format_field f = {0};
	uint32_t is_signed = 0;
	if (!stop || !format_number_in(stop, end, "offset:", &f.offset) ||
		!format_number_in(stop, end, "size:", &f.size))
		return;
	f.is_signed = format_number_in(stop, end, "signed:", &is_signed) && is_signed;
	for (unsigned i = 0; i < nr; i++)
		if (is_called(declaration, stop, names[i]))
			ret->field[i] = f;
}

bool system_format_parse(
	const char *text, const char *const *names, unsigned nr, struct system_format *ret)
{
	bool has_id = false;
	*ret = (struct system_format){0};
	if (nr > SYSTEM_FORMAT_FIELDS_MAX)
		return false;
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		if (!strncmp(line, "ID:", 3))
			has_id = format_number_in(line, line + length + 1, "ID:", &ret->id);
		else
			parse_field(line, line + length, names, nr, ret);
		line += length + (line[length] == '\n');
	}
	return has_id;
}

uint64_t system_format_get(
	const struct system_format *f, unsigned field, const uint8_t *record, size_t size)
{
	const struct system_format_field *at = &f->field[field];
	uint64_t v = 0;
	size_t n = at->size < sizeof v ? at->size : sizeof v;
	if (!n || at->offset > size || n > size - at->offset)
		return 0;
	memcpy(&v, record + at->offset, n);
	if (at->is_signed && n < sizeof v && v >> (n * 8 - 1))
		v |= ~0ull << (n * 8);
	return v;
}
