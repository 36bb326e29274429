/* SPDX-License-Identifier: Apache-2.0 */
/* tracepoint.h - formats of tracepoints as tracefs describes them (events/GROUP/NAME/format), and
 * what they say of an event's bytes. */
#ifndef LONGPOLE_FORMAT_TRACEPOINT_H
#define LONGPOLE_FORMAT_TRACEPOINT_H

#include "format/kernel.h"

enum {
	FORMAT_TRACEPOINT_FIELDS_MAX = 24,
	FORMAT_TRACEPOINT_NAME_MAX = 48,
	/* common_flags */
	FORMAT_TRACEPOINT_HARDIRQ = 0x08,
	FORMAT_TRACEPOINT_SOFTIRQ = 0x10,
	FORMAT_TRACEPOINT_NMI = 0x40,
};
struct format_tracepoint {
	char name[FORMAT_TRACEPOINT_NAME_MAX];
	uint32_t id;
	unsigned nr_fields;
	struct {
		char name[FORMAT_TRACEPOINT_NAME_MAX];
		uint32_t offset, size;
		bool is_signed, is_text, is_dynamic; /* dynamic: offset and length are there */
	} field[FORMAT_TRACEPOINT_FIELDS_MAX];
};
/* False: the text is no format. Fields beyond the last place are left out. */
bool format_tracepoint_parse(struct format_tracepoint *t, const char *text, size_t length);
/* For format_sched_fields: ctx is a struct format_tracepoint_event. */
struct format_tracepoint_event {
	const struct format_tracepoint *type;
	const uint8_t *bytes;
	size_t size_bytes;
};
bool format_tracepoint_get(void *ctx, const char *name, int64_t *ret_number, const char **ret_text,
	size_t *ret_length);
/* The actor, as common_flags say: an interrupt, or (none) the thread. */
enum trace_context_type format_tracepoint_flags(int64_t common_flags);
enum trace_context_type format_tracepoint_context(const struct format_tracepoint_event *e);

#endif
