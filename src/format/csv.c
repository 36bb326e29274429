/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - RFC 4180: a line a slice of a thread, a step of the critical path, a dependence. The
 * first column says which; a column that means nothing there is empty.
 */
#include "format/private.h"

#include <inttypes.h>
#include <string.h>

struct csv {
	struct format_out out;
	const struct format_input *in;
	const struct trace_defs *defs;
	struct format_threads threads;
	struct base_str label;
};

static void csv_add_field(struct csv *w, const char *text)
{
	struct base_str clean = {0};
	format_clean_add(&clean, text);
	base_str_add(&w->out.text, ",\"");
	for (const char *p = base_str_text(&clean); *p; p++) {
		if (*p == '"')
			base_str_add(&w->out.text, "\"");
		base_str_add_bytes(&w->out.text, p, 1);
	}
	base_str_add(&w->out.text, "\"");
	w->out.text.failed |= clean.failed;
	base_str_fini(&clean);
}

static void csv_add_thread(struct csv *w, uint32_t stream)
{
	const struct trace_stream *s = &w->defs->streams[stream];
	uint64_t pid = s->process < w->defs->nr_processes ? w->defs->processes[s->process].pid : 0;
	base_str_reset(&w->label);
	format_thread_name(&w->label, &w->threads, stream);
	base_str_addf(&w->out.text, ",%" PRIu64 ",%" PRIu64, pid, (uint64_t)s->tid);
	csv_add_field(w, format_out_text(&w->out, &w->label));
}

static void csv_add_times(struct csv *w, uint64_t begin_ns, uint64_t end_ns)
{
	base_str_addf(&w->out.text, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, begin_ns, end_ns,
		end_ns - begin_ns);
}

static void csv_end_line(struct csv *w)
{
	base_str_add(&w->out.text, "\r\n");
	format_out_check(&w->out);
}

static enum base_status csv_add_slice(void *ctx, const struct format_slice *s, struct base_err *err)
{
	struct csv *w = ctx;
	(void)err;
	base_str_add(&w->out.text, "slice");
	csv_add_thread(w, s->stream);
	csv_add_times(w, s->begin_ns, s->end_ns);
	csv_add_field(w, format_slice_kind_name(s->kind));
	base_str_reset(&w->label);
	format_slice_label(&w->label, w->defs, s);
	csv_add_field(w, format_out_text(&w->out, &w->label));
	csv_add_field(w, s->site ? model_site_text(w->in->model, s->site) : "");
	base_str_add(&w->out.text, ",");
	csv_end_line(w);
	return w->out.status;
}

static void csv_add_path(struct csv *w, const struct format_path *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		const struct format_step *step = &p->step[i];
		const struct model_actor *a = model_actor(w->in->model, step->actor);
		const struct model_state *st = model_state(w->in->model, step->state);
		base_str_addf(&w->out.text, "path,%" PRIu64 ",%" PRIu64, a->pid, a->tid);
		csv_add_field(w, a->name);
		csv_add_times(w, step->begin_ns, step->end_ns);
		csv_add_field(w, model_state_kind_name(st->kind));
		csv_add_field(w, st->name);
		csv_add_field(w, st->where);
		base_str_add(&w->out.text, ",");
		csv_end_line(w);
	}
}

/* From the actor that ended a wait (the last column) to the waiter. */
static void add_dependences(struct csv *w, const struct format_options *opts)
{
	const struct format_events *e = w->in->events;
	for (size_t i = 0; e && i < e->nr_dependences; i++) {
		const struct format_dependence *d = &e->dependence[i];
		uint32_t from, to;
		if (!format_dependence_wanted(w->in, opts, d, &from, &to))
			continue;
		base_str_add(&w->out.text, "dependence");
		csv_add_thread(w, to);
		csv_add_times(
			w, d->available_ns < d->end_ns ? d->available_ns : d->end_ns, d->end_ns);
		csv_add_field(w, "hand-off");
		base_str_reset(&w->label);
		format_dependence_label(&w->label, w->in, d);
		csv_add_field(w, format_out_text(&w->out, &w->label));
		csv_add_field(w, "");
		base_str_addf(&w->out.text, ",%" PRIu64, (uint64_t)w->defs->streams[from].tid);
		csv_end_line(w);
	}
	format_events_note(w->in);
}

enum base_status format_export_csv(const struct format_input *in, const struct format_options *opts,
	const struct format_sink *sink, struct base_err *err)
{
	struct csv w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.defs = trace_reader_defs(in->reader),
	};
	struct format_path path = {0};
	enum base_status s = format_path_init(&path, in, opts, err);
	if (s == BASE_OK)
		s = format_threads_init(&w.threads, in, err);
	if (s == BASE_OK) {
		base_str_add(&w.out.text, "what,pid,tid,thread,begin_ns,end_ns,duration_ns,kind,"
					  "label,where,from_tid\r\n");
		csv_add_path(&w, &path);
		s = format_timeline(in, opts, csv_add_slice, &w, err);
	}
	if (s == BASE_OK)
		add_dependences(&w, opts);
	enum base_status closed = format_out_close(&w.out);
	format_path_fini(&path);
	format_threads_fini(&w.threads);
	base_str_fini(&w.label);
	return s != BASE_OK ? s : closed;
}
