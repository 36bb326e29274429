/* SPDX-License-Identifier: Apache-2.0 */
/* tracecmd_import.c - trace.dat of trace-cmd, through libtracecmd and libtraceevent, which know its
 * versions, its compression and the kernel's ring buffers; in a process of their own. */
#include "format/apart.h"
#include "format/tracepoint.h"

#include "config.h"

#if LONGPOLE_TRACECMD

#include <sched.h> /* before the others, which use it */

#include <event-parse.h>
#include <string.h>
#include <trace-cmd/trace-cmd.h>

struct tracecmd_import {
	struct format_sched *sched;
	struct base_err *err;
	enum base_status status;
	uint64_t nr_other;
};
struct event {
	struct tep_event *type;
	const struct tep_record *record;
};

static bool tracecmd_import_get(
	void *ctx, const char *name, int64_t *ret_number, const char **ret_text, size_t *ret_length)
{
	const struct event *e = ctx;
	struct tep_format_field *f = tep_find_any_field(e->type, name);
	unsigned long long number;
	if (!f || f->offset < 0 || f->size < 0 || e->record->size < f->offset + f->size)
		return false;
	if (!(f->flags & TEP_FIELD_IS_STRING)) {
		if (tep_read_number_field(f, e->record->data, &number))
			return false;
		*ret_number = (int64_t)number;
		if (f->flags & TEP_FIELD_IS_SIGNED && f->size == 4)
			*ret_number = (int32_t)(uint32_t)number;
		return true;
	}
	size_t offset = (size_t)f->offset, length = (size_t)f->size;
	if (f->flags & TEP_FIELD_IS_DYNAMIC) {
		if (tep_read_number_field(f, e->record->data, &number))
			return false;
		offset = number & 0xffff;
		length = number >> 16 & 0xffff;
	}
	if (offset + length > (size_t)e->record->size)
		return false;
	*ret_text = (const char *)e->record->data + offset;
	*ret_length = length;
	return true;
}

static int tracecmd_import_hear(
	struct tracecmd_input *in, struct tep_record *record, int cpu, void *ctx)
{
	struct tracecmd_import *im = ctx;
	struct event event = {
		.type = tep_find_event_by_record(tracecmd_get_tep(in), record), .record = record};
	struct format_sched_event e = {
		.time_ns = record->ts, .cpu = (uint16_t)cpu, .actor = FORMAT_SCHED_UNKNOWN};
	struct format_sched_fields fields = {.ctx = &event, .get = tracecmd_import_get};
	int64_t number = 0;
	const char *text = NULL;
	size_t length = 0;
	if (!event.type) {
		im->nr_other++;
		return 0;
	}
	if (tracecmd_import_get(&event, "common_pid", &number, &text, &length) && !text &&
		number >= 0)
		e.actor = (uint32_t)number;
	if (!format_sched_convert(im->sched, event.type->name, &fields, &e)) {
		im->nr_other++;
		return 0;
	}
	if (e.kind != FORMAT_SCHED_context_begin && e.kind != FORMAT_SCHED_context_end &&
		tracecmd_import_get(&event, "common_flags", &number, &text, &length) && !text)
		e.context = (uint8_t)format_tracepoint_flags(number);
	if (record->missed_events > 0) {
		struct format_sched_event lost = {.kind = FORMAT_SCHED_lost,
			.time_ns = UINT64_MAX,
			.actor = FORMAT_SCHED_UNKNOWN,
			.value = (uint64_t)record->missed_events};
		im->status = format_sched_add(im->sched, &lost, im->err);
	}
	if (im->status == BASE_OK)
		im->status = format_sched_add(im->sched, &e, im->err);
	return im->status == BASE_OK ? 0 : 1;
}

static enum base_status read_tracecmd(struct format_sched *to, const char *path,
	uint64_t count[static FORMAT_APART_COUNTS], struct base_err *err)
{
	struct tracecmd_import im = {.sched = to, .err = err};
	tracecmd_set_loglevel(TEP_LOG_NONE);
	struct tracecmd_input *in = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	enum base_status s = BASE_OK;
	if (!in)
		s = base_fail(err, BASE_ERR_FOREIGN, "libtracecmd cannot read it as a trace.dat");
	if (s == BASE_OK && tracecmd_iterate_events(in, NULL, 0, tracecmd_import_hear, &im) < 0 &&
		im.status == BASE_OK)
		s = base_fail(err, BASE_ERR_FOREIGN, "libtracecmd cannot read its events");
	if (s == BASE_OK)
		s = im.status;
	if (in)
		tracecmd_close(in);
	count[0] = im.nr_other;
	return s;
}

enum base_status format_import_tracecmd(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	uint64_t count[FORMAT_APART_COUNTS] = {0};
	struct format_sched *sched = format_sched_new();
	const struct format_apart a = {
		.library = "libtracecmd", .path = from->path, .read = read_tracecmd};
	(void)opts;
	enum base_status s = sched ? format_read_apart(&a, sched, count, err)
				   : base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	if (s == BASE_OK)
		s = format_sched_write(sched, to, notes, err);
	if (s == BASE_OK)
		format_note_count(notes, count[0],
			"%s {event says|events say} nothing of scheduling: left out");
	format_sched_free(sched);
	return s;
}

#else

enum base_status format_import_tracecmd(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	(void)from, (void)to, (void)opts, (void)notes;
	return base_fail(
		err, BASE_ERR_ENV, "this longpole was built without libtracecmd (libtracecmd-dev)");
}

#endif
