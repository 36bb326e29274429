/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp.c - OpenTelemetry's traces in OTLP's JSON encoding (opentelemetry-proto, trace.proto): a
 * resource a process; a span a thread, with its slices as children; a span for the critical path,
 * with its steps as children; a link from a wait to what the other thread did when it ended the
 * wait.
 *
 * Ids depend on the trace only: the trace's from its name and origin, a thread's span from its
 * stream, a slice's from its place among them.
 */
#include "format/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum span_class { SPAN_ROOT = 1, SPAN_THREAD, SPAN_SLICE, SPAN_STEP };
enum { KIND_INTERNAL = 1 };

struct otlp {
	struct format_out out;
	const struct format_input *in;
	const struct format_options *opts;
	const struct trace_defs *defs;
	struct format_threads threads;
	struct format_slices slices;
	struct base_map links; /* slice -> index + 1 of its dependence */
	struct base_str label;
	char trace_id[33];
	uint64_t origin_ns, last_ns;
	bool any_resource, any_span;
};

static uint64_t span_id(enum span_class c, uint64_t n)
{
	return (uint64_t)c << 56 | (n + 1);
}

static void set_trace_id(struct otlp *w)
{
	uint64_t a = base_hash_u64(w->origin_ns + 1), b = a;
	for (const char *p = w->in->name; *p; p++)
		b = base_hash_u64(b ^ (unsigned char)*p);
	snprintf(w->trace_id, sizeof w->trace_id, "%016" PRIx64 "%016" PRIx64, a, b | 1);
}

static void add_attribute(struct otlp *w, bool first, const char *key, const char *value)
{
	base_str_addf(&w->out.text,
		"%s{\"key\":\"%s\",\"value\":{\"stringValue\":", first ? "" : ",", key);
	format_json_text(&w->out.text, value);
	base_str_add(&w->out.text, "}}");
}

static void otlp_add_number(struct otlp *w, const char *key, uint64_t value)
{
	base_str_addf(&w->out.text, ",{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRIu64 "\"}}",
		key, value);
}

static void begin_resource(struct otlp *w, const char *service, uint64_t pid)
{
	base_str_addf(
		&w->out.text, "%s{\"resource\":{\"attributes\":[", w->any_resource ? ",\n" : "\n");
	add_attribute(w, true, "service.name", service);
	if (pid)
		otlp_add_number(w, "process.pid", pid);
	base_str_add(
		&w->out.text, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"longpole\"},\"spans\":[");
	w->any_resource = true;
	w->any_span = false;
}

static void end_resource(struct otlp *w)
{
	base_str_add(&w->out.text, "]}]}");
}

/* Opens a span; its attributes' list is open, too. */
static void begin_span(struct otlp *w, uint64_t id, uint64_t parent, const char *name,
	uint64_t begin_ns, uint64_t end_ns, const char *kind)
{
	base_str_addf(&w->out.text, "%s{\"traceId\":\"%s\",\"spanId\":\"%016" PRIx64 "\"",
		w->any_span ? ",\n" : "\n", w->trace_id, id);
	if (parent)
		base_str_addf(&w->out.text, ",\"parentSpanId\":\"%016" PRIx64 "\"", parent);
	base_str_add(&w->out.text, ",\"name\":");
	format_json_text(&w->out.text, name);
	base_str_addf(&w->out.text,
		",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64
		"\",\"attributes\":[",
		KIND_INTERNAL, w->origin_ns + begin_ns, w->origin_ns + end_ns);
	add_attribute(w, true, "longpole.kind", kind);
	w->any_span = true;
}

static void end_span(struct otlp *w)
{
	base_str_add(&w->out.text, "}");
	format_out_check(&w->out);
}

/* ---- links ----------------------------------------------------------------------------------- */

static enum base_status find_links(struct otlp *w)
{
	const struct format_events *e = w->in->events;
	enum base_status s = BASE_OK;
	for (size_t i = 0; e && s == BASE_OK && i < e->nr_dependences; i++) {
		const struct format_dependence *d = &e->dependence[i];
		uint32_t from, to;
		if (!format_dependence_wanted(w->in, w->opts, d, &from, &to))
			continue;
		const struct format_slice *waited = format_slices_at(&w->slices, to, d->end_ns);
		if (waited)
			s = base_map_put(&w->links, 0, (uint64_t)(waited - w->slices.slice), i + 1);
	}
	return s == BASE_OK ? s : base_fail(w->out.err, s, "out of memory for links");
}

/* To what the other thread was seen doing then; else to its own span. */
static void otlp_add_link(struct otlp *w, uint64_t slice)
{
	uint64_t found;
	if (!base_map_get(&w->links, 0, slice, &found))
		return;
	const struct format_dependence *d = &w->in->events->dependence[found - 1];
	uint32_t from = model_actor_stream(w->in->model, d->from_actor);
	const struct format_slice *other = format_slices_at(&w->slices, from, d->available_ns);
	uint64_t id = other ? span_id(SPAN_SLICE, (uint64_t)(other - w->slices.slice))
			    : span_id(SPAN_THREAD, from);
	base_str_addf(&w->out.text,
		",\"links\":[{\"traceId\":\"%s\",\"spanId\":\"%016" PRIx64 "\",\"attributes\":[",
		w->trace_id, id);
	base_str_reset(&w->label);
	format_dependence_label(&w->label, w->in, d);
	add_attribute(w, true, "longpole.queue", format_out_text(&w->out, &w->label));
	otlp_add_number(w, "longpole.available_unix_nano", w->origin_ns + d->available_ns);
	base_str_add(&w->out.text, "]}]");
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void otlp_add_thread(struct otlp *w, uint32_t stream, size_t *at)
{
	struct format_slice *slice = w->slices.slice;
	uint32_t actor = model_stream_actor(w->in->model, stream);
	const struct model_actor *a = actor == UINT32_MAX ? NULL : model_actor(w->in->model, actor);
	uint64_t end_ns = a && a->end_ns > a->begin_ns ? a->end_ns : w->last_ns;
	base_str_reset(&w->label);
	format_thread_name(&w->label, &w->threads, stream);
	begin_span(w, span_id(SPAN_THREAD, stream), span_id(SPAN_ROOT, 0),
		format_out_text(&w->out, &w->label), a ? a->begin_ns : 0, end_ns, "thread");
	otlp_add_number(w, "thread.id", w->defs->streams[stream].tid);
	base_str_add(&w->out.text, "]");
	end_span(w);
	while (*at < w->slices.nr && slice[*at].stream < stream)
		++*at;
	for (; *at < w->slices.nr && slice[*at].stream == stream; ++*at) {
		const struct format_slice *s = &slice[*at];
		base_str_reset(&w->label);
		format_slice_label(&w->label, w->defs, s);
		begin_span(w, span_id(SPAN_SLICE, *at), span_id(SPAN_THREAD, stream),
			format_out_text(&w->out, &w->label), s->begin_ns, s->end_ns,
			format_slice_kind_name(s->kind));
		if (s->site)
			add_attribute(
				w, false, "longpole.where", model_site_text(w->in->model, s->site));
		base_str_add(&w->out.text, "]");
		otlp_add_link(w, *at);
		end_span(w);
	}
}

static void otlp_add_path(struct otlp *w, const struct format_path *p)
{
	begin_resource(w, "critical path", 0);
	begin_span(w, span_id(SPAN_ROOT, 0), 0, "critical path", p->nr ? p->step[0].begin_ns : 0,
		p->nr ? p->step[p->nr - 1].end_ns : w->last_ns, "path");
	base_str_add(&w->out.text, "]");
	end_span(w);
	for (size_t i = 0; i < p->nr; i++) {
		const struct format_step *step = &p->step[i];
		const struct model_state *st = model_state(w->in->model, step->state);
		base_str_reset(&w->label);
		base_str_add(&w->label, model_actor(w->in->model, step->actor)->name);
		base_str_add(&w->label, ": ");
		base_str_add(&w->label, st->name);
		begin_span(w, span_id(SPAN_STEP, i), span_id(SPAN_ROOT, 0),
			format_out_text(&w->out, &w->label), step->begin_ns, step->end_ns,
			model_state_kind_name(st->kind));
		if (*st->where)
			add_attribute(w, false, "longpole.where", st->where);
		base_str_add(&w->out.text, "]");
		end_span(w);
	}
	end_resource(w);
}

static void add_processes(struct otlp *w)
{
	const struct trace_defs *d = w->defs;
	for (uint32_t process = 1; process < d->nr_processes; process++) {
		size_t at = 0;
		bool any = false;
		for (uint32_t i = 1; i < d->nr_streams; i++) {
			if (!d->streams[i].stream || !d->streams[i].tid ||
				d->streams[i].process != process)
				continue;
			if (!any)
				begin_resource(w, trace_text_of(d, d->processes[process].name),
					d->processes[process].pid);
			any = true;
			otlp_add_thread(w, i, &at);
		}
		if (any)
			end_resource(w);
	}
}

enum base_status format_export_otlp(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct otlp w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.opts = opts,
		.defs = trace_reader_defs(in->reader),
		.origin_ns = trace_reader_info(in->reader)->origin_unix_ns,
		.last_ns = model_last_ns(in->model),
	};
	struct format_path path = {0};
	set_trace_id(&w);
	enum base_status s = format_path_init(&path, in, opts, err);
	if (s == BASE_OK)
		s = format_threads_init(&w.threads, in, err);
	if (s == BASE_OK)
		s = format_slices_init(&w.slices, in, opts, err);
	if (s == BASE_OK)
		s = find_links(&w);
	if (s == BASE_OK) {
		base_str_add(&w.out.text, "{\"resourceSpans\":[");
		otlp_add_path(&w, &path);
		add_processes(&w);
		base_str_add(&w.out.text, "\n]}\n");
		format_events_note(in);
	}
	enum base_status closed = format_out_close(&w.out);
	format_path_fini(&path);
	format_slices_fini(&w.slices);
	format_threads_fini(&w.threads);
	base_map_fini(&w.links);
	base_str_fini(&w.label);
	return s != BASE_OK ? s : closed;
}
