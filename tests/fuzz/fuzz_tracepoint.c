/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tracepoint.c - any text as a tracepoint's format, and what follows its first NUL as an
 * event. */
#include "format/tracepoint.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct format_tracepoint type;
	const uint8_t *nul = size_bytes ? memchr(data, 0, size_bytes) : NULL;
	size_t length = nul ? (size_t)(nul - data) : size_bytes;
	if (!format_tracepoint_parse(&type, (const char *)data, length))
		return 0;
	struct format_tracepoint_event e = {.type = &type,
		.bytes = nul ? nul + 1 : data,
		.size_bytes = nul ? size_bytes - length - 1 : 0};
	struct format_sched *s = format_sched_new();
	struct format_sched_fields fields = {.ctx = &e, .get = format_tracepoint_get};
	struct format_sched_event event = {.actor = FORMAT_SCHED_UNKNOWN};
	if (!s)
		return 0;
	BASE_ASSERT(strlen(type.name) < FORMAT_TRACEPOINT_NAME_MAX);
	for (unsigned i = 0; i < type.nr_fields; i++) {
		int64_t number;
		const char *text = NULL;
		size_t nr = 0;
		if (format_tracepoint_get(&e, type.field[i].name, &number, &text, &nr) && text)
			BASE_ASSERT((const uint8_t *)text >= e.bytes &&
				    (const uint8_t *)text + nr <= e.bytes + e.size_bytes);
	}
	(void)format_sched_convert(s, type.name, &fields, &event);
	(void)format_tracepoint_context(&e);
	format_sched_free(s);
	return 0;
}
