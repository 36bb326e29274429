/* SPDX-License-Identifier: Apache-2.0 */
/* tracepoint.c - formats of tracepoints: lines of "field:TYPE NAME; offset:N; size:N; signed:N;".
 */
#include "format/tracepoint.h"

#include <stdlib.h>
#include <string.h>

/* The number after a word in [p, end), 0 if it is not there. */
static uint32_t number_after(const char *p, const char *end, const char *word)
{
	size_t length = strlen(word);
	for (; (size_t)(end - p) > length; p++) {
		if (memcmp(p, word, length) != 0)
			continue;
		uint64_t v = 0;
		for (p += length; p < end && *p >= '0' && *p <= '9'; p++)
			v = v * 10 + (uint64_t)(*p - '0') > UINT32_MAX
				    ? UINT32_MAX
				    : v * 10 + (uint64_t)(*p - '0');
		return (uint32_t)v;
	}
	return 0;
}

static bool tracepoint_has(const char *p, const char *end, const char *word)
{
	size_t length = strlen(word);
	for (; (size_t)(end - p) >= length; p++)
		if (!memcmp(p, word, length))
			return true;
	return false;
}

static bool tracepoint_copy(char to[FORMAT_TRACEPOINT_NAME_MAX], const char *from, size_t length)
{
	if (!length || length >= FORMAT_TRACEPOINT_NAME_MAX)
		return false;
	memcpy(to, from, length);
	to[length] = '\0';
	return true;
}

static bool tracepoint_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* "field:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;" */
static void tracepoint_add_field(struct format_tracepoint *t, const char *line, const char *end)
{
	const char *semicolon = memchr(line, ';', (size_t)(end - line));
	if (!semicolon || t->nr_fields >= FORMAT_TRACEPOINT_FIELDS_MAX)
		return;
	const char *stop = semicolon;
	if (stop > line && stop[-1] == ']')
		while (stop > line && *stop != '[')
			stop--;
	const char *name = stop;
	while (name > line && tracepoint_is_word(name[-1]))
		name--;
	unsigned i = t->nr_fields;
	if (!tracepoint_copy(t->field[i].name, name, (size_t)(stop - name)))
		return;
	t->field[i].offset = number_after(semicolon, end, "offset:");
	t->field[i].size = number_after(semicolon, end, "size:");
	t->field[i].is_signed = number_after(semicolon, end, "signed:") != 0;
	t->field[i].is_dynamic = tracepoint_has(line, name, "__data_loc");
	t->field[i].is_text =
		tracepoint_has(line, name, "char") && (t->field[i].is_dynamic || stop != semicolon);
	t->nr_fields++;
}

bool format_tracepoint_parse(struct format_tracepoint *t, const char *text, size_t length)
{
	const char *end = text + length;
	*t = (struct format_tracepoint){0};
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end, *p = text;
		while (p < stop && (*p == ' ' || *p == '\t'))
			p++;
		if ((size_t)(stop - p) > 6 && !memcmp(p, "name: ", 6))
			(void)tracepoint_copy(t->name, p + 6, (size_t)(stop - p) - 6);
		else if ((size_t)(stop - p) > 4 && !memcmp(p, "ID: ", 4))
			t->id = number_after(p, stop, "ID: ");
		else if ((size_t)(stop - p) > 6 && !memcmp(p, "field:", 6))
			tracepoint_add_field(t, p + 6, stop);
		text = stop + (newline != NULL);
	}
	return *t->name && t->id && t->nr_fields;
}

static uint64_t tracepoint_take(const uint8_t *p, size_t nr_bytes)
{
	uint64_t v = 0;
	for (size_t i = 0; i < nr_bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

bool format_tracepoint_get(
	void *ctx, const char *name, int64_t *ret_number, const char **ret_text, size_t *ret_length)
{
	const struct format_tracepoint_event *e = ctx;
	for (unsigned i = 0; i < e->type->nr_fields; i++) {
		size_t offset = e->type->field[i].offset, size = e->type->field[i].size;
		if (strcmp(e->type->field[i].name, name) != 0)
			continue;
		if (offset > e->size_bytes || size > e->size_bytes - offset)
			return false;
		if (e->type->field[i].is_dynamic) {
			if (size != 4)
				return false;
			uint64_t where = tracepoint_take(e->bytes + offset, 4);
			offset = where & 0xffff;
			size = where >> 16;
			if (offset > e->size_bytes || size > e->size_bytes - offset)
				return false;
		}
		if (e->type->field[i].is_text) {
			*ret_text = (const char *)e->bytes + offset;
			*ret_length = size;
			return true;
		}
		if (!size || size > 8)
			return false;
		uint64_t v = tracepoint_take(e->bytes + offset, size);
		if (e->type->field[i].is_signed && size < 8 && v >> (8 * size - 1))
			v |= UINT64_MAX << 8 * size;
		*ret_number = (int64_t)v;
		return true;
	}
	return false;
}

enum trace_context_type format_tracepoint_flags(int64_t flags)
{
	return flags & FORMAT_TRACEPOINT_NMI       ? TRACE_CONTEXT_nmi
	       : flags & FORMAT_TRACEPOINT_HARDIRQ ? TRACE_CONTEXT_irq
	       : flags & FORMAT_TRACEPOINT_SOFTIRQ ? TRACE_CONTEXT_softirq
						   : TRACE_CONTEXT_none;
}

enum trace_context_type format_tracepoint_context(const struct format_tracepoint_event *e)
{
	int64_t flags = 0;
	const char *text = NULL;
	size_t length;
	if (!format_tracepoint_get((void *)(uintptr_t)e, "common_flags", &flags, &text, &length) ||
		text)
		return TRACE_CONTEXT_none;
	return format_tracepoint_flags(flags);
}
