/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto.c - TrackEvent protobuf (Perfetto's trace_packet.proto, track_event.proto,
 * track_descriptor.proto).
 *
 * Event names are interned: the first use of a name carries its
 * text.
 */
#include "format/private.h"
#include "format/wire.h"

#include <string.h>

enum { /* field numbers */
	TRACE_PACKET = 1,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60,
	INTERNED_EVENT_NAMES = 2,
	EVENT_NAME_IID = 1,
	EVENT_NAME_NAME = 2,
	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PROCESS = 3,
	DESCRIPTOR_THREAD = 4,
	DESCRIPTOR_PARENT = 5,
	DESCRIPTOR_COUNTER = 8,
	COUNTER_UNIT_NAME = 6,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	EVENT_DEBUG_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_TRACK = 11,
	EVENT_COUNTER = 30,
	EVENT_FLOWS = 47,
	EVENT_FLOWS_END = 48,
	ANNOTATION_NAME = 10,
	ANNOTATION_STRING = 6,
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { STATE_CLEARED = 1, STATE_NEEDED = 2 };
enum { SEQUENCE = 1 };
/* Track ids: any distinct numbers. */
#define TRACK_PATH    1
#define TRACK_PROCESS (1ull << 33)
#define TRACK_THREAD  (1ull << 32)
#define TRACK_QUEUE   (1ull << 34)

struct perfetto {
	struct format_out out;
	const struct format_input *in;
	const struct trace_defs *defs;
	struct format_threads threads;
	struct base_strtab *names;
	uint32_t nr_sent; /* names below this id have been sent */
	struct base_str packet, event, part, label, interned;
	uint64_t flow; /* the last arrow's id */
	bool begun;
};

/* ---- packets --------------------------------------------------------------------------------- */

static void send_packet(struct perfetto *w)
{
	format_wire_number(&w->packet, PACKET_SEQUENCE_ID, SEQUENCE);
	format_wire_number(&w->packet, PACKET_SEQUENCE_FLAGS,
		w->begun ? STATE_NEEDED : STATE_CLEARED | STATE_NEEDED);
	w->begun = true;
	format_wire_message(&w->out.text, TRACE_PACKET, &w->packet);
	base_str_reset(&w->packet);
	format_out_check(&w->out);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Begins an event on a track in w->event. */
static void perfetto_begin_event(struct perfetto *w, unsigned type, uint64_t track)
{
	base_str_reset(&w->event);
	format_wire_number(&w->event, EVENT_TYPE, type);
	format_wire_number(&w->event, EVENT_TRACK, track);
}

/* Adds the event's name; its text goes with the packet the first time. */
static void name_event(struct perfetto *w, const char *name)
{
	uint32_t iid;
	enum base_status s = base_strtab_intern(w->names, name, strlen(name), &iid);
	if (s != BASE_OK) {
		if (w->out.status == BASE_OK)
			w->out.status = base_fail(w->out.err, s, "out of memory for names");
		return;
	}
	if (!iid)
		return;
	format_wire_number(&w->event, EVENT_NAME, iid);
	if (iid < w->nr_sent)
		return;
	w->nr_sent = iid + 1;
	base_str_reset(&w->part);
	format_wire_number(&w->part, EVENT_NAME_IID, iid);
	format_wire_text(&w->part, EVENT_NAME_NAME, name);
	base_str_reset(&w->interned);
	format_wire_message(&w->interned, INTERNED_EVENT_NAMES, &w->part);
	format_wire_message(&w->packet, PACKET_INTERNED_DATA, &w->interned);
}

static void annotate_event(struct perfetto *w, const char *name, const char *value)
{
	if (!*value)
		return;
	base_str_reset(&w->part);
	format_wire_text(&w->part, ANNOTATION_NAME, name);
	format_wire_text(&w->part, ANNOTATION_STRING, value);
	format_wire_message(&w->event, EVENT_DEBUG_ANNOTATIONS, &w->part);
}

static void send_event(struct perfetto *w, uint64_t time_ns)
{
	format_wire_number(&w->packet, PACKET_TIMESTAMP, time_ns);
	format_wire_message(&w->packet, PACKET_TRACK_EVENT, &w->event);
	send_packet(w);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static void send_track(struct perfetto *w, uint64_t uuid, uint64_t parent, const char *name,
	unsigned descriptor, const struct base_str *of)
{
	base_str_reset(&w->event);
	format_wire_number(&w->event, DESCRIPTOR_UUID, uuid);
	if (name)
		format_wire_text(&w->event, DESCRIPTOR_NAME, name);
	if (parent)
		format_wire_number(&w->event, DESCRIPTOR_PARENT, parent);
	if (of)
		format_wire_message(&w->event, descriptor, of);
	format_wire_message(&w->packet, PACKET_TRACK_DESCRIPTOR, &w->event);
	send_packet(w);
}

static void send_tracks(struct perfetto *w)
{
	const struct trace_defs *d = w->defs;
	send_track(w, TRACK_PATH, 0, "critical path", 0, NULL);
	for (uint32_t i = 1; i < d->nr_processes; i++) {
		if (!d->processes[i].process)
			continue;
		base_str_reset(&w->part);
		base_str_reset(&w->label);
		format_clean_add(&w->label, trace_text_of(d, d->processes[i].name));
		format_wire_number(&w->part, PROCESS_PID, d->processes[i].pid);
		format_wire_text(&w->part, PROCESS_NAME, format_out_text(&w->out, &w->label));
		send_track(w, TRACK_PROCESS | i, 0, NULL, DESCRIPTOR_PROCESS, &w->part);
	}
	for (uint32_t i = 1; i < d->nr_streams; i++) {
		const struct trace_stream *s = &d->streams[i];
		if (!s->stream || !s->tid)
			continue;
		uint64_t pid = s->process < d->nr_processes ? d->processes[s->process].pid : 0;
		base_str_reset(&w->part);
		base_str_reset(&w->label);
		format_thread_name(&w->label, &w->threads, i);
		format_wire_number(&w->part, THREAD_PID, pid);
		format_wire_number(&w->part, THREAD_TID, s->tid);
		format_wire_text(&w->part, THREAD_NAME, format_out_text(&w->out, &w->label));
		send_track(w, TRACK_THREAD | i, TRACK_PROCESS | s->process, NULL, DESCRIPTOR_THREAD,
			&w->part);
	}
}

static enum base_status send_slice(void *ctx, const struct format_slice *s, struct base_err *err)
{
	struct perfetto *w = ctx;
	(void)err;
	uint64_t track = TRACK_THREAD | s->stream;
	base_str_reset(&w->label);
	format_slice_label(&w->label, w->defs, s);
	perfetto_begin_event(w, TYPE_BEGIN, track);
	name_event(w, format_out_text(&w->out, &w->label));
	if (s->site) {
		base_str_reset(&w->label);
		format_clean_add(&w->label, model_site_text(w->in->model, s->site));
		annotate_event(w, "where", format_out_text(&w->out, &w->label));
	}
	send_event(w, s->begin_ns);
	perfetto_begin_event(w, TYPE_END, track);
	send_event(w, s->end_ns);
	return w->out.status;
}

/* ---- the path -------------------------------------------------------------------------------- */

static void send_hand_over(struct perfetto *w, uint64_t stream, uint64_t time_ns,
	unsigned flow_field, const char *name)
{
	perfetto_begin_event(w, TYPE_INSTANT, TRACK_THREAD | stream);
	name_event(w, name);
	format_wire_fixed64(&w->event, flow_field, w->flow);
	send_event(w, time_ns);
}

static void send_step(struct perfetto *w, const struct format_step *s)
{
	const struct model_state *st = model_state(w->in->model, s->state);
	const struct model_actor *ac = model_actor(w->in->model, s->actor);
	base_str_reset(&w->label);
	format_clean_add(&w->label, ac->name);
	base_str_add(&w->label, ": ");
	format_clean_add(&w->label, st->name);
	perfetto_begin_event(w, TYPE_BEGIN, TRACK_PATH);
	name_event(w, format_out_text(&w->out, &w->label));
	base_str_reset(&w->label);
	format_clean_add(&w->label, st->where);
	annotate_event(w, "where", format_out_text(&w->out, &w->label));
	annotate_event(w, "kind", model_state_kind_text(st->kind));
	send_event(w, s->begin_ns);
	perfetto_begin_event(w, TYPE_END, TRACK_PATH);
	send_event(w, s->end_ns);
}

/* An arrow from where the path leaves a thread to where it enters the next one. Meeting points
 * (barriers) are no threads. */
static void send_path(struct perfetto *w, const struct format_path *p)
{
	uint32_t last = 0;
	uint64_t left_ns = 0;
	for (size_t i = 0; i < p->nr && w->out.status == BASE_OK; i++) {
		const struct format_step *step = &p->step[i];
		uint32_t stream = model_actor_stream(w->in->model, step->actor);
		send_step(w, step);
		if (!stream)
			continue;
		bool latency = model_state(w->in->model, step->state)->kind == MODEL_STATE_latency;
		if (last && stream != last) {
			w->flow++;
			send_hand_over(w, last, left_ns, EVENT_FLOWS, "path leaves");
			send_hand_over(w, stream, latency ? step->end_ns : step->begin_ns,
				EVENT_FLOWS_END, "path enters");
		}
		last = stream;
		left_ns = step->end_ns;
	}
}

/* ---- dependences and queues ------------------------------------------------------------------ */

/* An arrow from the actor that ended a wait to the waiter, each named by what was handed over. */
static void send_dependences(struct perfetto *w, const struct format_options *opts)
{
	const struct format_events *e = w->in->events;
	struct base_str what = {0};
	for (size_t i = 0; e && i < e->nr_dependences && w->out.status == BASE_OK; i++) {
		const struct format_dependence *d = &e->dependence[i];
		uint32_t from, to;
		if (!format_dependence_wanted(w->in, opts, d, &from, &to))
			continue;
		base_str_reset(&what);
		base_str_add(&what, "gives ");
		format_dependence_label(&what, w->in, d);
		w->flow++;
		send_hand_over(
			w, from, d->available_ns, EVENT_FLOWS, format_out_text(&w->out, &what));
		base_str_reset(&what);
		base_str_add(&what, "gets ");
		format_dependence_label(&what, w->in, d);
		send_hand_over(w, to, d->end_ns, EVENT_FLOWS_END, format_out_text(&w->out, &what));
	}
	base_str_fini(&what);
}

static void send_counter_track(struct perfetto *w, uint32_t queue)
{
	base_str_reset(&w->part);
	base_str_reset(&w->label);
	format_clean_add(&w->label, model_queue(w->in->model, queue)->name);
	format_wire_text(&w->part, COUNTER_UNIT_NAME, "units");
	send_track(w, TRACK_QUEUE | queue, 0, format_out_text(&w->out, &w->label),
		DESCRIPTOR_COUNTER, &w->part);
}

static enum base_status send_levels(struct perfetto *w, const struct format_options *opts)
{
	const struct format_events *e = w->in->events;
	struct base_map described = {0};
	enum base_status s = BASE_OK;
	for (size_t i = 0; e && s == BASE_OK && i < e->nr_levels && w->out.status == BASE_OK; i++) {
		const struct format_level *l = &e->level[i];
		uint64_t known;
		if (!format_level_wanted(w->in, opts, l))
			continue;
		if (!base_map_get(&described, 0, l->queue, &known)) {
			send_counter_track(w, l->queue);
			s = base_map_put(&described, 0, l->queue, 1);
			if (s != BASE_OK)
				s = base_fail(w->out.err, s, "out of memory for queues");
		}
		perfetto_begin_event(w, TYPE_COUNTER, TRACK_QUEUE | l->queue);
		format_wire_number(&w->event, EVENT_COUNTER, l->units);
		send_event(w, l->time_ns);
	}
	base_map_fini(&described);
	return s;
}

enum base_status format_export_perfetto(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct perfetto w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.defs = trace_reader_defs(in->reader),
		.names = base_strtab_new(),
	};
	struct format_path path = {0};
	enum base_status s =
		w.names ? format_path_init(&path, in, opts, err) : format_no_memory(err);
	if (s == BASE_OK)
		s = format_threads_init(&w.threads, in, err);
	if (s == BASE_OK) {
		send_tracks(&w);
		send_path(&w, &path);
		s = format_timeline(in, opts, send_slice, &w, err);
	}
	if (s == BASE_OK) {
		send_dependences(&w, opts);
		s = send_levels(&w, opts);
		format_events_note(in);
	}
	enum base_status closed = format_out_close(&w.out);
	format_path_fini(&path);
	format_threads_fini(&w.threads);
	base_strtab_free(w.names);
	struct base_str *texts[] = {&w.packet, &w.event, &w.part, &w.label, &w.interned};
	for (size_t i = 0; i < BASE_COUNT(texts); i++)
		base_str_fini(texts[i]);
	return s != BASE_OK ? s : closed;
}
