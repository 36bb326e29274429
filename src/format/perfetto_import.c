/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_import.c - ftrace's sched events of a Perfetto trace (trace_packet.proto,
 * ftrace_event_bundle.proto, process_tree.proto): whole events, and the compact form that traced
 * writes by default.
 */
#include "format/tracepoint.h"
#include "format/wire.h"

#include <stdlib.h>
#include <string.h>

enum { /* field numbers */
	TRACE_PACKET = 1,
	PACKET_FTRACE = 1,
	PACKET_PROCESS_TREE = 2,
	PACKET_COMPRESSED = 50,
	BUNDLE_CPU = 1,
	BUNDLE_EVENT = 2,
	BUNDLE_LOST = 3,
	BUNDLE_COMPACT = 4,
	EVENT_TIME = 1,
	EVENT_PID = 2,
	EVENT_FLAGS = 5,
	TREE_PROCESS = 1,
	TREE_THREAD = 2,
	PROCESS_PID = 1,
	PROCESS_COMMAND = 3,
	THREAD_TID = 1,
	THREAD_NAME = 2,
	THREAD_PID = 3,
	COMPACT_SWITCH_TIME = 1,
	COMPACT_SWITCH_STATE = 2,
	COMPACT_SWITCH_PID = 3,
	COMPACT_STRING = 5,
	COMPACT_SWITCH_NAME = 6,
	COMPACT_WAKE_TIME = 7,
	COMPACT_WAKE_PID = 8,
	COMPACT_WAKE_NAME = 11,
	COMPACT_WAKE_FLAGS = 12,
	COLUMNS = 13,
};
enum { PACKET_BYTES_MAX = 64 << 20, CHUNK_BYTES = 1 << 20, FIELDS_MAX = 8 };

/* Which events, and what their fields are called in tracefs, by number from 1. */
static const struct {
	uint32_t field;
	const char *name, *member[FIELDS_MAX];
} events[] = {
	{4, "sched_switch",
		{"prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid",
			"next_prio"}},
	{17, "sched_wakeup", {"comm", "pid"}},
	{20, "sched_waking", {"comm", "pid"}},
	{114, "sched_wakeup_new", {"comm", "pid"}},
	{24, "softirq_entry", {"vec"}},
	{25, "softirq_exit", {"vec"}},
	{36, "irq_handler_entry", {"irq", "name"}},
	{37, "irq_handler_exit", {"irq"}},
	{236, "task_rename", {"pid", "oldcomm", "newcomm"}},
	{237, "sched_process_exec", {"filename", "pid"}},
	{238, "sched_process_exit", {"comm", "pid"}},
	{239, "sched_process_fork", {"parent_comm", "parent_pid", "child_comm", "child_pid"}},
	{329, "sys_enter", {"id"}},
	{330, "sys_exit", {"id", "ret"}},
};

struct perfetto_import {
	struct format_sched *sched;
	struct base_err *err;
	enum base_status status;
	uint64_t nr_packets, nr_other, nr_damaged, nr_compressed, nr_bundles;
};

/* ---- whole events ---------------------------------------------------------------------------- */

struct message {
	const char *const *member;
	const uint8_t *p, *end;
};

static bool perfetto_import_get(
	void *ctx, const char *name, int64_t *ret_number, const char **ret_text, size_t *ret_length)
{
	const struct message *m = ctx;
	struct format_wire_field f;
	for (const uint8_t *p = m->p; p && p < m->end;) {
		p = format_wire_next(p, m->end, &f);
		if (!p || f.number > FIELDS_MAX || !m->member[f.number - 1] ||
			strcmp(m->member[f.number - 1], name) != 0)
			continue;
		*ret_number = (int64_t)f.value;
		if (f.type == FORMAT_WIRE_bytes) {
			*ret_text = (const char *)f.bytes;
			*ret_length = (size_t)f.value;
		}
		return true;
	}
	return false;
}

static void perfetto_import_keep(struct perfetto_import *im, const struct format_sched_event *e)
{
	if (im->status == BASE_OK)
		im->status = format_sched_add(im->sched, e, im->err);
}

static void perfetto_import_read_event(
	struct perfetto_import *im, const uint8_t *p, const uint8_t *end, uint16_t cpu)
{
	struct format_sched_event e = {.cpu = cpu, .actor = FORMAT_SCHED_UNKNOWN};
	struct format_wire_field f, body = {0};
	const char *name = NULL;
	uint64_t flags = 0;
	struct message m = {0};
	while (p < end) {
		p = format_wire_next(p, end, &f);
		if (!p) {
			im->nr_damaged++;
			return;
		}
		if (f.number == EVENT_TIME)
			e.time_ns = f.value;
		else if (f.number == EVENT_PID)
			e.actor = (uint32_t)f.value;
		else if (f.number == EVENT_FLAGS)
			flags = f.value;
		for (size_t i = 0; f.type == FORMAT_WIRE_bytes && i < BASE_COUNT(events); i++)
			if (events[i].field == f.number) {
				name = events[i].name;
				m.member = events[i].member;
				body = f;
			}
	}
	m.p = body.bytes;
	m.end = body.bytes ? body.bytes + body.value : NULL;
	struct format_sched_fields fields = {.ctx = &m, .get = perfetto_import_get};
	if (!name || !format_sched_convert(im->sched, name, &fields, &e)) {
		im->nr_other++;
		return;
	}
	if (e.kind != FORMAT_SCHED_context_begin && e.kind != FORMAT_SCHED_context_end)
		e.context = (uint8_t)format_tracepoint_flags((int64_t)flags);
	perfetto_import_keep(im, &e);
}

/* ---- the compact form: columns, times as differences ----------------------------------------- */

struct column {
	const uint8_t *p, *end;
};

static bool perfetto_import_next(struct column *c, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0; c->p < c->end && shift < 70; shift += 7) {
		uint8_t b = *c->p++;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static uint32_t interned(
	struct perfetto_import *im, const uint8_t *p, const uint8_t *end, uint64_t index)
{
	struct format_wire_field f;
	while (p && p < end) {
		p = format_wire_next(p, end, &f);
		if (p && f.number == COMPACT_STRING && f.type == FORMAT_WIRE_bytes && !index--)
			return format_sched_name(im->sched, (const char *)f.bytes, (size_t)f.value);
	}
	return 0;
}

static void read_compact(
	struct perfetto_import *im, const uint8_t *p, const uint8_t *end, uint16_t cpu)
{
	struct column column[COLUMNS] = {0};
	struct format_wire_field f;
	const uint8_t *start = p;
	while (p < end) {
		p = format_wire_next(p, end, &f);
		if (!p) {
			im->nr_damaged++;
			break;
		}
		if (f.number < COLUMNS && f.type == FORMAT_WIRE_bytes)
			column[f.number] = (struct column){.p = f.bytes, .end = f.bytes + f.value};
	}
	struct format_sched_event e = {.cpu = cpu, .actor = FORMAT_SCHED_UNKNOWN};
	uint64_t delta, value;
	while (im->status == BASE_OK &&
		perfetto_import_next(&column[COMPACT_SWITCH_TIME], &delta)) {
		e.kind = FORMAT_SCHED_switch;
		e.time_ns += delta;
		e.runnable = perfetto_import_next(&column[COMPACT_SWITCH_STATE], &value) &&
			     (!value || value & 0x100);
		e.tid = perfetto_import_next(&column[COMPACT_SWITCH_PID], &value) ? (uint32_t)value
										  : 0;
		e.name = perfetto_import_next(&column[COMPACT_SWITCH_NAME], &value)
				 ? interned(im, start, end, value)
				 : 0;
		perfetto_import_keep(im, &e);
	}
	e = (struct format_sched_event){.cpu = cpu, .actor = FORMAT_SCHED_UNKNOWN};
	while (im->status == BASE_OK && perfetto_import_next(&column[COMPACT_WAKE_TIME], &delta)) {
		e.kind = FORMAT_SCHED_waking;
		e.time_ns += delta;
		e.tid = perfetto_import_next(&column[COMPACT_WAKE_PID], &value) ? (uint32_t)value
										: 0;
		e.name = perfetto_import_next(&column[COMPACT_WAKE_NAME], &value)
				 ? interned(im, start, end, value)
				 : 0;
		e.context = perfetto_import_next(&column[COMPACT_WAKE_FLAGS], &value)
				    ? (uint8_t)format_tracepoint_flags((int64_t)value)
				    : 0;
		perfetto_import_keep(im, &e);
	}
}

static void read_bundle(struct perfetto_import *im, const uint8_t *p, const uint8_t *end)
{
	struct format_wire_field f;
	uint16_t cpu = 0;
	im->nr_bundles++;
	for (const uint8_t *q = p; q && q < end;) {
		q = format_wire_next(q, end, &f);
		if (q && f.number == BUNDLE_CPU && f.type == FORMAT_WIRE_varint)
			cpu = (uint16_t)f.value;
	}
	while (p < end && im->status == BASE_OK) {
		p = format_wire_next(p, end, &f);
		if (!p) {
			im->nr_damaged++;
			return;
		}
		if (f.number == BUNDLE_EVENT && f.type == FORMAT_WIRE_bytes) {
			perfetto_import_read_event(im, f.bytes, f.bytes + f.value, cpu);
		} else if (f.number == BUNDLE_COMPACT && f.type == FORMAT_WIRE_bytes) {
			read_compact(im, f.bytes, f.bytes + f.value, cpu);
		} else if (f.number == BUNDLE_LOST && f.value) {
			struct format_sched_event lost = {.kind = FORMAT_SCHED_lost,
				.time_ns = UINT64_MAX,
				.actor = FORMAT_SCHED_UNKNOWN,
				.value = 1};
			perfetto_import_keep(im, &lost);
		}
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

static void read_task(
	struct perfetto_import *im, const uint8_t *p, const uint8_t *end, bool process)
{
	struct format_wire_field f;
	struct format_sched_event e = {
		.kind = FORMAT_SCHED_name, .time_ns = UINT64_MAX, .actor = FORMAT_SCHED_UNKNOWN};
	while (p && p < end) {
		p = format_wire_next(p, end, &f);
		if (!p)
			break;
		if (f.number == (process ? PROCESS_PID : THREAD_TID) &&
			f.type == FORMAT_WIRE_varint)
			e.tid = (uint32_t)f.value;
		if (f.number == THREAD_PID && !process && f.type == FORMAT_WIRE_varint)
			e.pid = (uint32_t)f.value;
		if (f.number == (process ? PROCESS_COMMAND : THREAD_NAME) &&
			f.type == FORMAT_WIRE_bytes && !e.name) {
			const char *text = (const char *)f.bytes;
			size_t length = (size_t)f.value, base = length;
			while (process && base > 0 && text[base - 1] != '/')
				base--;
			base = process ? base : 0;
			e.name = format_sched_name(im->sched, text + base, length - base);
		}
	}
	if (process)
		e.pid = e.tid;
	if (e.tid)
		perfetto_import_keep(im, &e);
}

static void read_tree(struct perfetto_import *im, const uint8_t *p, const uint8_t *end)
{
	struct format_wire_field f;
	while (p && p < end && im->status == BASE_OK) {
		p = format_wire_next(p, end, &f);
		if (p && f.type == FORMAT_WIRE_bytes &&
			(f.number == TREE_PROCESS || f.number == TREE_THREAD))
			read_task(im, f.bytes, f.bytes + f.value, f.number == TREE_PROCESS);
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

static void perfetto_import_read_packet(
	struct perfetto_import *im, const uint8_t *p, const uint8_t *end)
{
	struct format_wire_field f;
	im->nr_packets++;
	while (p < end && im->status == BASE_OK) {
		p = format_wire_next(p, end, &f);
		if (!p) {
			im->nr_damaged++;
			return;
		}
		if (f.type != FORMAT_WIRE_bytes)
			continue;
		if (f.number == PACKET_FTRACE)
			read_bundle(im, f.bytes, f.bytes + f.value);
		else if (f.number == PACKET_PROCESS_TREE)
			read_tree(im, f.bytes, f.bytes + f.value);
		im->nr_compressed += f.number == PACKET_COMPRESSED;
	}
}

/* The tag and length of the packet at `at`: one byte and a varint. 0: that is none. */
static size_t packet_header(const uint8_t *p, size_t nr, uint64_t *ret_length)
{
	struct column c = {.p = p + 1, .end = p + nr};
	if (nr < 2 || p[0] != (TRACE_PACKET << 3 | FORMAT_WIRE_bytes) ||
		!perfetto_import_next(&c, ret_length))
		return 0;
	return (size_t)(c.p - p);
}

static enum base_status perfetto_import_read_packets(struct perfetto_import *im,
	const struct format_source *from, const struct format_import_options *opts, bool *ret_cut)
{
	uint8_t *bytes = NULL;
	size_t capacity = 0;
	uint64_t at = 0, size = from->size_bytes, told = 0;
	enum base_status s = BASE_OK;
	while (s == BASE_OK && at < size && im->status == BASE_OK) {
		uint8_t head[11];
		size_t nr = size - at < sizeof head ? (size_t)(size - at) : sizeof head;
		uint64_t length = 0;
		s = from->read(from->ctx, at, head, nr, im->err);
		size_t header = s == BASE_OK ? packet_header(head, nr, &length) : 0;
		if (s == BASE_OK && (!header || length > PACKET_BYTES_MAX)) {
			if (!im->nr_packets)
				s = base_fail(im->err, BASE_ERR_FOREIGN,
					"does not begin with a packet of a Perfetto trace");
			*ret_cut = true;
			break;
		}
		if (s != BASE_OK)
			break;
		if (length > size - at - header) {
			*ret_cut = true;
			if (!im->nr_packets)
				s = base_fail(im->err, BASE_ERR_FOREIGN,
					"its first packet is longer than the file");
			break;
		}
		if (base_grow(&bytes, &capacity, (size_t)length + 1, 1) != BASE_OK) {
			s = base_fail(im->err, BASE_ERR_NOMEM, "out of memory for a packet");
			break;
		}
		if (length)
			s = from->read(from->ctx, at + header, bytes, (size_t)length, im->err);
		if (s == BASE_OK)
			perfetto_import_read_packet(im, bytes, bytes + length);
		at += header + length;
		if (opts->progress && at - told > CHUNK_BYTES) {
			told = at;
			opts->progress(opts->progress_ctx, at, size);
		}
	}
	base_free(bytes);
	return s == BASE_OK ? im->status : s;
}

enum base_status format_import_perfetto(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct perfetto_import im = {.sched = format_sched_new(), .err = err};
	bool cut = false;
	enum base_status s = im.sched ? perfetto_import_read_packets(&im, from, opts, &cut)
				      : base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	if (s == BASE_OK && im.nr_compressed && !im.nr_bundles)
		s = base_fail(err, BASE_ERR_FOREIGN,
			"its packets are compressed: decompress it with traceconv "
			"decompress_packets");
	if (s == BASE_OK)
		s = format_sched_write(im.sched, to, notes, err);
	if (s == BASE_OK) {
		format_note_count(notes, im.nr_other,
			"%s {event says|events say} nothing of scheduling: left out");
		format_note_count(
			notes, im.nr_damaged, "%s {message is|messages are} damaged: left out");
		format_note_count(
			notes, im.nr_compressed, "%s compressed {packet is|packets are} left out");
		if (cut)
			base_str_add(notes,
				"the file ends in the middle of a packet: imported as far "
				"as it goes\n");
		trace_writer_count(to, TRACE_DIAG_import_skipped, im.nr_damaged + im.nr_compressed);
		trace_writer_count(to, TRACE_DIAG_import_cut, cut);
	}
	format_sched_free(im.sched);
	return s;
}
