/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome.c - Trace Event JSON ("Trace Event Format", as chrome://tracing reads it): complete events
 * for slices, flow events for dependences, counters for queues, the critical path as a process of
 * its own. A legacy format: for small traces and for tools that read nothing else.
 *
 * ts and dur are microseconds with three decimals: whole nanoseconds.
 */
#include "format/private.h"

#include <inttypes.h>
#include <string.h>

enum { PATH_PID = 0, PATH_TID = 1 };

struct chrome {
	struct format_out out;
	const struct format_input *in;
	const struct trace_defs *defs;
	struct format_threads threads;
	struct base_str label;
	uint64_t flow;
	bool any;
};

static void chrome_add_time(struct base_str *s, const char *key, uint64_t ns)
{
	base_str_addf(s, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void chrome_begin_event(struct chrome *w, const char *phase, uint64_t pid, uint64_t tid)
{
	base_str_addf(&w->out.text, "%s{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64,
		w->any ? ",\n" : "\n", phase, pid, tid);
	w->any = true;
}

static void chrome_add_text(struct chrome *w, const char *key, const char *text)
{
	base_str_addf(&w->out.text, ",\"%s\":", key);
	format_json_text(&w->out.text, text);
}

static void end_event(struct chrome *w)
{
	base_str_add(&w->out.text, "}");
	format_out_check(&w->out);
}

static void add_name_of(
	struct chrome *w, const char *what, uint64_t pid, uint64_t tid, const char *name)
{
	chrome_begin_event(w, "M", pid, tid);
	chrome_add_text(w, "name", what);
	base_str_add(&w->out.text, ",\"args\":{\"name\":");
	format_json_text(&w->out.text, name);
	base_str_add(&w->out.text, "}");
	end_event(w);
}

static uint64_t chrome_pid_of(const struct chrome *w, uint32_t stream)
{
	uint32_t process = w->defs->streams[stream].process;
	return process < w->defs->nr_processes ? w->defs->processes[process].pid : 0;
}

static void add_names(struct chrome *w)
{
	const struct trace_defs *d = w->defs;
	add_name_of(w, "process_name", PATH_PID, PATH_TID, "critical path");
	add_name_of(w, "thread_name", PATH_PID, PATH_TID, "critical path");
	for (uint32_t i = 1; i < d->nr_processes; i++)
		if (d->processes[i].process)
			add_name_of(w, "process_name", d->processes[i].pid, d->processes[i].pid,
				trace_text_of(d, d->processes[i].name));
	for (uint32_t i = 1; i < d->nr_streams; i++) {
		if (!d->streams[i].stream || !d->streams[i].tid)
			continue;
		base_str_reset(&w->label);
		format_thread_name(&w->label, &w->threads, i);
		add_name_of(w, "thread_name", chrome_pid_of(w, i), d->streams[i].tid,
			format_out_text(&w->out, &w->label));
	}
}

static void add_complete(struct chrome *w, uint64_t pid, uint64_t tid, const char *name,
	const char *category, const char *where, uint64_t begin_ns, uint64_t end_ns)
{
	chrome_begin_event(w, "X", pid, tid);
	chrome_add_text(w, "name", name);
	chrome_add_text(w, "cat", category);
	chrome_add_time(&w->out.text, "ts", begin_ns);
	chrome_add_time(&w->out.text, "dur", end_ns - begin_ns);
	if (*where) {
		base_str_add(&w->out.text, ",\"args\":{\"where\":");
		format_json_text(&w->out.text, where);
		base_str_add(&w->out.text, "}");
	}
	end_event(w);
}

static enum base_status chrome_add_slice(
	void *ctx, const struct format_slice *s, struct base_err *err)
{
	struct chrome *w = ctx;
	(void)err;
	base_str_reset(&w->label);
	format_slice_label(&w->label, w->defs, s);
	add_complete(w, chrome_pid_of(w, s->stream), w->defs->streams[s->stream].tid,
		format_out_text(&w->out, &w->label), format_slice_kind_name(s->kind),
		s->site ? model_site_text(w->in->model, s->site) : "", s->begin_ns, s->end_ns);
	return w->out.status;
}

static void chrome_add_path(struct chrome *w, const struct format_path *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		const struct model_state *st = model_state(w->in->model, p->step[i].state);
		base_str_reset(&w->label);
		base_str_add(&w->label, model_actor(w->in->model, p->step[i].actor)->name);
		base_str_add(&w->label, ": ");
		base_str_add(&w->label, st->name);
		add_complete(w, PATH_PID, PATH_TID, format_out_text(&w->out, &w->label),
			model_state_kind_name(st->kind), st->where, p->step[i].begin_ns,
			p->step[i].end_ns);
	}
}

static void chrome_add_flow(struct chrome *w, const char *phase, uint32_t stream, uint64_t time_ns)
{
	chrome_begin_event(w, phase, chrome_pid_of(w, stream), w->defs->streams[stream].tid);
	chrome_add_text(w, "name", format_out_text(&w->out, &w->label));
	chrome_add_text(w, "cat", "dependence");
	base_str_addf(&w->out.text, ",\"id\":%" PRIu64, w->flow);
	chrome_add_time(&w->out.text, "ts", time_ns);
	if (*phase == 'f')
		chrome_add_text(w, "bp", "e");
	end_event(w);
}

static void chrome_add_events(struct chrome *w, const struct format_options *opts)
{
	const struct format_events *e = w->in->events;
	for (size_t i = 0; e && i < e->nr_dependences; i++) {
		uint32_t from, to;
		if (!format_dependence_wanted(w->in, opts, &e->dependence[i], &from, &to))
			continue;
		base_str_reset(&w->label);
		format_dependence_label(&w->label, w->in, &e->dependence[i]);
		w->flow++;
		chrome_add_flow(w, "s", from, e->dependence[i].available_ns);
		chrome_add_flow(w, "f", to, e->dependence[i].end_ns);
	}
	for (size_t i = 0; e && i < e->nr_levels; i++) {
		const struct format_level *l = &e->level[i];
		if (!format_level_wanted(w->in, opts, l))
			continue;
		chrome_begin_event(w, "C", PATH_PID, PATH_TID);
		chrome_add_text(w, "name", model_queue(w->in->model, l->queue)->name);
		base_str_addf(&w->out.text, ",\"id\":%" PRIu32, l->queue);
		chrome_add_time(&w->out.text, "ts", l->time_ns);
		base_str_addf(&w->out.text, ",\"args\":{\"units\":%" PRIu64 "}", l->units);
		end_event(w);
	}
	format_events_note(w->in);
}

enum base_status format_export_chrome(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct chrome w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.defs = trace_reader_defs(in->reader),
	};
	struct format_path path = {0};
	enum base_status s = format_path_init(&path, in, opts, err);
	if (s == BASE_OK)
		s = format_threads_init(&w.threads, in, err);
	if (s == BASE_OK) {
		base_str_add(&w.out.text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"tool\":");
		format_json_text(&w.out.text, in->tool);
		base_str_add(&w.out.text, ",\"trace\":");
		format_json_text(&w.out.text, in->name);
		base_str_add(&w.out.text, "},\"traceEvents\":[");
		add_names(&w);
		chrome_add_path(&w, &path);
		s = format_timeline(in, opts, chrome_add_slice, &w, err);
	}
	if (s == BASE_OK) {
		chrome_add_events(&w, opts);
		base_str_add(&w.out.text, "\n]}\n");
		if (in->notes)
			base_str_add(in->notes, "this format is for small traces; larger ones open "
						"faster as --format=perfetto\n");
	}
	enum base_status closed = format_out_close(&w.out);
	format_path_fini(&path);
	format_threads_fini(&w.threads);
	base_str_fini(&w.label);
	return s != BASE_OK ? s : closed;
}
