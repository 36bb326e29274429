/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctf.c - Common Trace Format 1.8: a directory with TSDL `metadata` and one stream of packets, all
 * records in the order of time. Each record kind is an event class "longpole:KIND" with the
 * record's fields; each event has the thread in its context; where a field is an id, a text says
 * what it names.
 *
 * Bytes are little-endian and aligned to 8 bits. Field names have an underscore before them
 * (readers take it off): some are words of TSDL.
 */
#include "format/private.h"

#include <inttypes.h>
#include <string.h>

enum {
	CTF_MAGIC = 0xc1fc1fc1,
	PACKET_BYTES_MIN = 1 << 18, /* a packet ends with the event that goes beyond */
	PACKET_HEADER_BYTES = 4 + 4 + 5 * 8,
};

struct ctf {
	struct format_out out;
	const struct format_input *in;
	const struct trace_defs *defs;
	struct base_str packet; /* its events */
	uint64_t begin_ns, end_ns, nr;
};

static const char *c_type(enum trace_field_type t)
{
	return t == TRACE_FIELD_ID    ? "uint32_t"
	       : t == TRACE_FIELD_U64 ? "uint64_t"
	       : t == TRACE_FIELD_S64 ? "int64_t"
				      : "string";
}

/* Is there more to say about the id than its number? */
static bool ctf_has_text(const struct trace_field_desc *f)
{
	return f->type == TRACE_FIELD_ID &&
	       (!strcmp(f->unit, "object") || !strcmp(f->unit, "site") ||
		       !strcmp(f->unit, "string") || !strcmp(f->unit, "state") ||
		       !strcmp(f->unit, "actor"));
}

static void add_metadata(struct ctf *w)
{
	const struct trace_info *info = trace_reader_info(w->in->reader);
	struct base_str *o = &w->out.text;
	unsigned nr;
	const struct trace_kind_desc *kind = trace_kind_table(&nr);
	base_str_add(o, "/* CTF 1.8 */\n"
			"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
			"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
			"typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
			"trace { major = 1; minor = 8; byte_order = le; packet.header := struct { "
			"uint32_t magic; uint32_t stream_id; }; };\n"
			"env { domain = \"ust\"; tracer_name = \"longpole\"; hostname = ");
	format_json_text(o, info->host);
	base_str_add(o, "; command = ");
	format_json_text(o, info->command);
	base_str_addf(o,
		"; };\nclock { name = trace; description = \"ns since the trace's begin\"; "
		"freq = 1000000000; offset_s = %" PRIu64 "; offset = %" PRIu64 "; };\n",
		info->origin_unix_ns / 1000000000, info->origin_unix_ns % 1000000000);
	base_str_add(o, "typealias integer { size = 64; align = 8; signed = false; map = "
			"clock.trace.value; } := stamp_t;\n"
			"stream { id = 0; packet.context := struct { stamp_t timestamp_begin; "
			"stamp_t timestamp_end; uint64_t content_size; uint64_t packet_size; "
			"uint64_t events_discarded; };\n"
			"event.header := struct { uint32_t id; stamp_t timestamp; };\n"
			"event.context := struct { uint32_t _stream; uint64_t _pid; uint64_t _tid; "
			"string _thread; }; };\n");
	for (unsigned k = 0; k < nr; k++) {
		base_str_addf(o,
			"event { name = \"longpole:%s\"; id = %u; stream_id = 0; fields := struct "
			"{ ",
			kind[k].name, kind[k].kind);
		for (unsigned i = 0; i < kind[k].nr_fields; i++) {
			const struct trace_field_desc *f = &kind[k].field[i];
			base_str_addf(o, "%s _%s; ", c_type(f->type), f->name);
			if (ctf_has_text(f))
				base_str_addf(o, "string _%s_text; ", f->name);
		}
		base_str_add(o, "}; };\n");
	}
	format_out_check(&w->out);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void add_le(struct base_str *s, uint64_t v, unsigned nr_bytes)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < nr_bytes; i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	base_str_add_bytes(s, bytes, nr_bytes);
}

static void ctf_add_string(struct base_str *s, const char *text)
{
	format_clean_add(s, text);
	base_str_add_bytes(s, "", 1);
}

static void add_text_of(struct ctf *w, const struct trace_field_desc *f, uint32_t id)
{
	const struct trace_defs *d = w->defs;
	const char *text = "";
	if (!strcmp(f->unit, "string"))
		text = trace_text_of(d, id);
	else if (!strcmp(f->unit, "object") && id < d->nr_objects)
		text = trace_text_of(d, d->objects[id].name);
	else if (!strcmp(f->unit, "state") && id < d->nr_states)
		text = trace_text_of(d, d->states[id].name);
	else if (!strcmp(f->unit, "actor") && id < d->nr_actors)
		text = trace_text_of(d, d->actors[id].name);
	else if (!strcmp(f->unit, "site") && id < d->nr_symbols)
		text = trace_text_of(d, d->symbols[id].function);
	ctf_add_string(&w->packet, text);
}

static void ctf_add_field(
	struct ctf *w, const struct trace_record *r, const struct trace_field_desc *f)
{
	const uint8_t *at = (const uint8_t *)r + f->offset;
	uint32_t id;
	uint64_t number;
	if (f->type == TRACE_FIELD_ID) {
		memcpy(&id, at, sizeof id);
		add_le(&w->packet, id, 4);
		if (ctf_has_text(f))
			add_text_of(w, f, id);
	} else if (f->type == TRACE_FIELD_TEXT) {
		ctf_add_string(&w->packet, ""); /* definitions are no events */
	} else {
		memcpy(&number, at, sizeof number);
		add_le(&w->packet, number, 8);
	}
}

static void end_packet(struct ctf *w)
{
	uint64_t bits = (PACKET_HEADER_BYTES + (uint64_t)w->packet.length) * 8;
	struct base_str *o = &w->out.text;
	o->failed |= w->packet.failed;
	if (!w->packet.length)
		return;
	add_le(o, CTF_MAGIC, 4);
	add_le(o, 0, 4);
	add_le(o, w->begin_ns, 8);
	add_le(o, w->end_ns, 8);
	add_le(o, bits, 8);
	add_le(o, bits, 8);
	add_le(o, 0, 8);
	base_str_add_bytes(o, w->packet.buf, w->packet.length);
	base_str_reset(&w->packet);
	format_out_check(&w->out);
}

static void ctf_add_event(struct ctf *w, const struct trace_record *r)
{
	const struct trace_kind_desc *kind = trace_kind_find(r->kind);
	const struct trace_defs *d = w->defs;
	const struct trace_stream *st = &d->streams[r->stream < d->nr_streams ? r->stream : 0];
	const struct trace_process *p =
		&d->processes[st->process < d->nr_processes ? st->process : 0];
	if (!kind) { /* of a newer version: not in the metadata */
		w->nr++;
		return;
	}
	if (!w->packet.length)
		w->begin_ns = r->time_ns;
	w->end_ns = r->time_ns;
	add_le(&w->packet, r->kind, 4);
	add_le(&w->packet, r->time_ns, 8);
	add_le(&w->packet, r->stream, 4);
	add_le(&w->packet, p->pid, 8);
	add_le(&w->packet, st->tid, 8);
	ctf_add_string(&w->packet, trace_text_of(d, st->name) && *trace_text_of(d, st->name)
					   ? trace_text_of(d, st->name)
					   : trace_text_of(d, p->name));
	for (unsigned i = 0; i < kind->nr_fields; i++)
		ctf_add_field(w, r, &kind->field[i]);
	if (w->packet.length >= PACKET_BYTES_MIN)
		end_packet(w);
}

enum base_status format_export_ctf(const struct format_input *in, const struct format_options *opts,
	const struct format_sink *sink, struct base_err *err)
{
	struct ctf w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.defs = trace_reader_defs(in->reader),
	};
	(void)opts;
	enum base_status s = sink->begin(sink->ctx, "metadata", err);
	if (s == BASE_OK) {
		add_metadata(&w);
		s = format_out_close(&w.out);
	}
	if (s == BASE_OK)
		s = sink->begin(sink->ctx, "records", err);
	if (s == BASE_OK)
		s = trace_reader_rewind(in->reader, err);
	struct trace_batch b;
	while (s == BASE_OK && (s = trace_reader_next(in->reader, &b, err)) == BASE_OK) {
		for (size_t i = 0; i < b.nr; i++)
			ctf_add_event(&w, &b.record[i]);
		s = w.out.status;
	}
	s = s == BASE_END ? BASE_OK : s;
	end_packet(&w);
	format_note_count(in->notes, w.nr,
		"%s {record of kinds that this version does not know is|records of kinds that this "
		"version does not know are} left out");
	enum base_status closed = format_out_close(&w.out);
	base_str_fini(&w.packet);
	return s != BASE_OK ? s : closed;
}
