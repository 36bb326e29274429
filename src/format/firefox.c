/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firefox.c - the Firefox Profiler's processed profile, version 48 (firefox-devtools/profiler,
 * CHANGELOG-formats.md; newer profilers upgrade it when they load it).
 *
 * Tables are structs of columns; each thread has its own. A thread's samples become its samples,
 * with stacks by function; its slices become markers, whose categories give them colours. The
 * critical path is a thread of a process of its own. Times are milliseconds.
 */
#include "format/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILE_VERSION = 48, GECKO_VERSION = 29 };
enum { DEPTH_MAX = 128 };

/* Categories are the kinds of slices, in their order, then what the path's steps are. */
static const struct {
	const char *name, *color;
} category[] = {
	[FORMAT_SLICE_none] = {"Running", "green"},
	[FORMAT_SLICE_wait] = {"Waiting", "red"},
	[FORMAT_SLICE_io] = {"Call about a descriptor", "blue"},
	[FORMAT_SLICE_poll] = {"Waiting for readiness", "orange"},
	[FORMAT_SLICE_sleep] = {"Sleeping", "grey"},
	[FORMAT_SLICE_runnable] = {"Waiting for a processor", "yellow"},
	[FORMAT_SLICE_blocked] = {"Blocked, not seen in what", "brown"},
	[FORMAT_SLICE_hold] = {"Holding a lock", "purple"},
	[FORMAT_SLICE_state] = {"Annotated state", "lightblue"},
};

struct sample {
	uint64_t time_ns;
	uint32_t stream, site, stack;
};

/* One thread's tables while they are made. */
struct tables {
	struct base_strtab *strings; /* id 0 is "" */
	struct base_map funcs;       /* string -> func; a frame is a func */
	struct base_map stacks;      /* (prefix + 1, frame) -> stack */
	struct base_str func_name, stack_prefix, stack_frame;
	struct base_str sample_stack, sample_time;
	struct base_str marker_name, marker_begin, marker_end, marker_category, marker_data;
	size_t nr_funcs, nr_stacks, nr_samples, nr_markers;
	bool failed;
};
struct firefox {
	struct format_out out;
	const struct format_input *in;
	const struct format_options *opts;
	const struct trace_defs *defs;
	struct format_threads threads;
	struct format_slices slices;
	struct sample *sample;
	size_t nr_samples, sample_capacity;
	struct tables t;
	struct base_str label;
	uint64_t last_ns;
	bool any_thread;
};

/* ---- columns
 * ------------------------------------------------------------------------------------------- */

static void add_ms(struct base_str *s, uint64_t ns)
{
	base_str_addf(s, "%" PRIu64 ".%06u", ns / 1000000, (unsigned)(ns % 1000000));
}

static void next(struct base_str *column, size_t nr)
{
	if (nr)
		base_str_add(column, ",");
}

static void add_index(struct base_str *column, size_t nr, uint64_t value)
{
	next(column, nr);
	base_str_addf(column, "%" PRIu64, value);
}

static uint32_t string_of(struct tables *t, const char *text)
{
	uint32_t id = 0;
	t->failed |= base_strtab_intern(t->strings, text, strlen(text), &id) != BASE_OK;
	return id;
}

static uint64_t func_of(struct tables *t, const char *name)
{
	uint64_t found = 0;
	uint32_t string = string_of(t, *name ? name : "?");
	if (base_map_get(&t->funcs, 0, string, &found))
		return found;
	add_index(&t->func_name, t->nr_funcs, string);
	t->failed |= base_map_put(&t->funcs, 0, string, t->nr_funcs) != BASE_OK;
	return t->nr_funcs++;
}

static uint64_t stack_of(struct tables *t, uint64_t prefix_plus_1, uint64_t frame)
{
	uint64_t found = 0;
	if (base_map_get(&t->stacks, prefix_plus_1, frame, &found))
		return found;
	next(&t->stack_prefix, t->nr_stacks);
	if (prefix_plus_1)
		base_str_addf(&t->stack_prefix, "%" PRIu64, prefix_plus_1 - 1);
	else
		base_str_add(&t->stack_prefix, "null");
	add_index(&t->stack_frame, t->nr_stacks, frame);
	t->failed |= base_map_put(&t->stacks, prefix_plus_1, frame, t->nr_stacks) != BASE_OK;
	return t->nr_stacks++;
}

static void add_sample(
	struct firefox *w, uint64_t time_ns, uint32_t site, uint32_t stack, const char *instead)
{
	struct tables *t = &w->t;
	const char *frame[DEPTH_MAX];
	size_t nr = stack ? model_stack_frames(w->in->model, stack, frame, DEPTH_MAX) : 0;
	uint64_t at = 0;
	for (size_t i = 0; i < nr; i++)
		at = 1 + stack_of(t, at, func_of(t, frame[i]));
	const char *leaf = site ? model_site_text(w->in->model, site) : instead;
	at = stack_of(t, at, func_of(t, leaf));
	add_index(&t->sample_stack, t->nr_samples, at);
	next(&t->sample_time, t->nr_samples);
	add_ms(&t->sample_time, time_ns);
	t->nr_samples++;
}

static void add_marker(struct tables *t, const char *name, const char *where, unsigned kind,
	uint64_t begin_ns, uint64_t end_ns)
{
	add_index(&t->marker_name, t->nr_markers, string_of(t, *name ? name : "?"));
	next(&t->marker_begin, t->nr_markers);
	add_ms(&t->marker_begin, begin_ns);
	next(&t->marker_end, t->nr_markers);
	add_ms(&t->marker_end, end_ns);
	add_index(&t->marker_category, t->nr_markers, kind);
	next(&t->marker_data, t->nr_markers);
	base_str_add(&t->marker_data, "{\"type\":\"longpole\",\"where\":");
	format_json_text(&t->marker_data, where);
	base_str_add(&t->marker_data, "}");
	t->nr_markers++;
}

/* ---- writing a thread
 * ---------------------------------------------------------------------------------- */

static void add_column(struct firefox *w, const char *name, const struct base_str *column)
{
	base_str_addf(&w->out.text, "\"%s\":[", name);
	base_str_add(&w->out.text, base_str_text(column));
	base_str_add(&w->out.text, "],");
	w->t.failed |= column->failed;
}

static void add_constant(struct firefox *w, const char *name, const char *value, size_t nr)
{
	base_str_addf(&w->out.text, "\"%s\":[", name);
	for (size_t i = 0; i < nr; i++)
		base_str_addf(&w->out.text, "%s%s", i ? "," : "", value);
	base_str_add(&w->out.text, "],");
}

/* Frames and functions are the same here: the n-th frame is in the n-th function. */
static void add_frames(struct firefox *w)
{
	struct tables *t = &w->t;
	size_t nr = t->nr_funcs;
	base_str_add(&w->out.text, "\"frameTable\":{");
	add_constant(w, "address", "-1", nr);
	add_constant(w, "inlineDepth", "0", nr);
	add_constant(w, "category", "0", nr);
	add_constant(w, "subcategory", "0", nr);
	base_str_add(&w->out.text, "\"func\":[");
	for (size_t i = 0; i < nr; i++)
		base_str_addf(&w->out.text, "%s%zu", i ? "," : "", i);
	base_str_add(&w->out.text, "],");
	add_constant(w, "nativeSymbol", "null", nr);
	add_constant(w, "innerWindowID", "null", nr);
	add_constant(w, "implementation", "null", nr);
	add_constant(w, "line", "null", nr);
	add_constant(w, "column", "null", nr);
	base_str_addf(&w->out.text, "\"length\":%zu},\"funcTable\":{", nr);
	add_column(w, "name", &t->func_name);
	add_constant(w, "isJS", "false", nr);
	add_constant(w, "relevantForJS", "false", nr);
	add_constant(w, "resource", "-1", nr);
	add_constant(w, "fileName", "null", nr);
	add_constant(w, "lineNumber", "null", nr);
	add_constant(w, "columnNumber", "null", nr);
	base_str_addf(&w->out.text, "\"length\":%zu},", nr);
}

static void add_tables(struct firefox *w)
{
	struct tables *t = &w->t;
	add_frames(w);
	base_str_add(&w->out.text, "\"stackTable\":{");
	add_column(w, "prefix", &t->stack_prefix);
	add_column(w, "frame", &t->stack_frame);
	add_constant(w, "category", "0", t->nr_stacks);
	add_constant(w, "subcategory", "0", t->nr_stacks);
	base_str_addf(&w->out.text, "\"length\":%zu},\"samples\":{", t->nr_stacks);
	add_column(w, "stack", &t->sample_stack);
	add_column(w, "time", &t->sample_time);
	base_str_addf(&w->out.text,
		"\"weight\":null,\"weightType\":\"samples\",\"length\":%zu},\"markers\":{",
		t->nr_samples);
	add_column(w, "name", &t->marker_name);
	add_column(w, "startTime", &t->marker_begin);
	add_column(w, "endTime", &t->marker_end);
	add_constant(w, "phase", "1", t->nr_markers); /* an interval */
	add_column(w, "category", &t->marker_category);
	add_column(w, "data", &t->marker_data);
	base_str_addf(&w->out.text, "\"length\":%zu},", t->nr_markers);
	base_str_add(&w->out.text,
		"\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
		"\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
		"\"functionSize\":[]},\"stringArray\":[");
	for (uint32_t i = 0; i < base_strtab_count(t->strings); i++) {
		base_str_add(&w->out.text, i ? "," : "");
		format_json_text(&w->out.text, base_strtab_get(t->strings, i));
	}
	base_str_add(&w->out.text, "]");
}

static void tables_fini(struct tables *t)
{
	struct base_str *columns[] = {&t->func_name, &t->stack_prefix, &t->stack_frame,
		&t->sample_stack, &t->sample_time, &t->marker_name, &t->marker_begin,
		&t->marker_end, &t->marker_category, &t->marker_data};
	for (size_t i = 0; i < BASE_COUNT(columns); i++)
		base_str_fini(columns[i]);
	base_strtab_free(t->strings);
	base_map_fini(&t->funcs);
	base_map_fini(&t->stacks);
	*t = (struct tables){0};
}

static bool begin_thread(struct firefox *w)
{
	w->t = (struct tables){.strings = base_strtab_new()};
	return w->t.strings != NULL;
}

static enum base_status end_thread(struct firefox *w, const char *name, const char *process,
	uint64_t pid, uint64_t tid, bool is_main, uint64_t begin_ns, uint64_t end_ns)
{
	base_str_add(&w->out.text, w->any_thread ? ",\n{" : "\n{");
	base_str_add(&w->out.text, "\"name\":");
	format_json_text(&w->out.text, name);
	base_str_add(&w->out.text, ",\"processName\":");
	format_json_text(&w->out.text, process);
	base_str_addf(&w->out.text,
		",\"processType\":\"default\",\"pid\":\"%" PRIu64 "\",\"tid\":%" PRIu64
		",\"isMainThread\":%s,\"registerTime\":",
		pid, tid, is_main ? "true" : "false");
	add_ms(&w->out.text, begin_ns);
	base_str_add(&w->out.text, ",\"unregisterTime\":");
	add_ms(&w->out.text, end_ns);
	base_str_add(&w->out.text, ",\"processStartupTime\":0,\"processShutdownTime\":null,"
				   "\"pausedRanges\":[],");
	add_tables(w);
	base_str_add(&w->out.text, "}");
	w->any_thread = true;
	format_out_check(&w->out);
	bool failed = w->t.failed;
	tables_fini(&w->t);
	return failed ? format_no_memory(w->out.err) : w->out.status;
}

/* ---- what goes in
 * -------------------------------------------------------------------------------------- */

static int by_stream(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static enum base_status read_samples(struct firefox *w, struct base_err *err)
{
	enum base_status s = trace_reader_rewind(w->in->reader, err);
	struct trace_batch b;
	while (s == BASE_OK && (s = trace_reader_next(w->in->reader, &b, err)) == BASE_OK)
		for (size_t i = 0; s == BASE_OK && i < b.nr; i++) {
			const struct trace_record *r = &b.record[i];
			if (r->kind != TRACE_sample || r->time_ns < w->opts->from_ns ||
				(w->opts->to_ns && r->time_ns >= w->opts->to_ns))
				continue;
			s = base_grow(&w->sample, &w->sample_capacity, w->nr_samples + 1,
				sizeof *w->sample);
			if (s != BASE_OK)
				return format_no_memory(err);
			w->sample[w->nr_samples++] = (struct sample){.time_ns = r->time_ns,
				.stream = r->stream,
				.site = r->u.sample.site,
				.stack = r->u.sample.stack};
		}
	if (s == BASE_END && w->nr_samples)
		qsort(w->sample, w->nr_samples, sizeof *w->sample, by_stream);
	return s == BASE_END ? BASE_OK : s;
}

static enum base_status add_thread(
	struct firefox *w, uint32_t stream, size_t *sample, size_t *slice)
{
	const struct trace_stream *st = &w->defs->streams[stream];
	uint32_t process = st->process < w->defs->nr_processes ? st->process : 0;
	uint64_t pid = w->defs->nr_processes ? w->defs->processes[process].pid : 0;
	uint32_t actor = model_stream_actor(w->in->model, stream);
	const struct model_actor *a = actor == UINT32_MAX ? NULL : model_actor(w->in->model, actor);
	uint64_t begin_ns = a ? a->begin_ns : 0, end_ns = a ? a->end_ns : w->last_ns;
	if (!begin_thread(w))
		return format_no_memory(w->out.err);
	for (; *sample < w->nr_samples && w->sample[*sample].stream <= stream; ++*sample)
		if (w->sample[*sample].stream == stream)
			add_sample(w, w->sample[*sample].time_ns, w->sample[*sample].site,
				w->sample[*sample].stack, "");
	if (!w->t.nr_samples) /* a thread without any is not shown */
		add_sample(w, begin_ns, 0, 0, "(no samples)");
	for (; *slice < w->slices.nr && w->slices.slice[*slice].stream <= stream; ++*slice) {
		const struct format_slice *s = &w->slices.slice[*slice];
		if (s->stream != stream)
			continue;
		base_str_reset(&w->label);
		format_slice_label(&w->label, w->defs, s);
		add_marker(&w->t, format_out_text(&w->out, &w->label),
			s->site ? model_site_text(w->in->model, s->site) : "", s->kind, s->begin_ns,
			s->end_ns);
	}
	base_str_reset(&w->label);
	format_thread_name(&w->label, &w->threads, stream);
	return end_thread(w, format_out_text(&w->out, &w->label),
		w->defs->nr_processes ? trace_text_of(w->defs, w->defs->processes[process].name)
				      : "",
		pid, st->tid, pid == st->tid, begin_ns, end_ns);
}

static enum base_status add_path(struct firefox *w, const struct format_path *p)
{
	uint64_t begin_ns = p->nr ? p->step[0].begin_ns : 0;
	if (!begin_thread(w))
		return format_no_memory(w->out.err);
	add_sample(w, begin_ns, 0, 0, "(the path has no samples)");
	for (size_t i = 0; i < p->nr; i++) {
		const struct model_state *st = model_state(w->in->model, p->step[i].state);
		bool waits = model_state_kind_waits(st->kind);
		base_str_reset(&w->label);
		base_str_add(&w->label, model_actor(w->in->model, p->step[i].actor)->name);
		base_str_add(&w->label, ": ");
		base_str_add(&w->label, st->name);
		add_marker(&w->t, format_out_text(&w->out, &w->label), st->where,
			waits ? FORMAT_SLICE_wait : FORMAT_SLICE_none, p->step[i].begin_ns,
			p->step[i].end_ns);
	}
	return end_thread(w, "critical path", "critical path", 0, 0, true, begin_ns,
		p->nr ? p->step[p->nr - 1].end_ns : w->last_ns);
}

static void add_meta(struct firefox *w)
{
	uint64_t unix_ns = trace_reader_info(w->in->reader)->origin_unix_ns;
	base_str_addf(&w->out.text,
		"{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":1,"
		"\"processType\":0,\"stackwalk\":1,\"debug\":false,\"startTime\":%" PRIu64
		".%06u,\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
		"\"doesNotUseFrameImplementation\":true,\"sourceCodeIsNotOnSearchfox\":true,"
		"\"extensions\":{\"length\":0,\"id\":[],\"name\":[],\"baseURL\":[]},\"product\":",
		GECKO_VERSION, PROFILE_VERSION, unix_ns / 1000000, (unsigned)(unix_ns % 1000000));
	format_json_text(&w->out.text, w->in->name);
	base_str_add(&w->out.text, ",\"importedFrom\":");
	format_json_text(&w->out.text, w->in->tool);
	base_str_add(&w->out.text, ",\"categories\":[");
	for (size_t i = 0; i < BASE_COUNT(category); i++)
		base_str_addf(&w->out.text,
			"%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
			i ? "," : "", category[i].name, category[i].color);
	base_str_add(&w->out.text,
		"],\"markerSchema\":[{\"name\":\"longpole\",\"display\":[\"marker-chart\","
		"\"marker-table\",\"timeline-overview\"],\"chartLabel\":\"{marker.name}\","
		"\"tooltipLabel\":\"{marker.name}\",\"tableLabel\":\"{marker.data.where}\","
		"\"data\":[{\"key\":\"where\",\"label\":\"where\",\"format\":\"string\","
		"\"searchable\":true}]}]},\"libs\":[],\"pages\":[],\"counters\":[],"
		"\"profilerOverhead\":[],\"threads\":[");
}

enum base_status format_export_firefox(const struct format_desc *f, const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct firefox w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.opts = opts,
		.defs = trace_reader_defs(in->reader),
		.last_ns = model_last_ns(in->model),
	};
	struct format_path path = {0};
	size_t sample = 0, slice = 0;
	(void)f;
	enum base_status s = format_path_init(&path, in, opts, err);
	if (s == BASE_OK)
		s = format_threads_init(&w.threads, in, err);
	if (s == BASE_OK)
		s = format_slices_init(&w.slices, in, opts, err);
	if (s == BASE_OK)
		s = read_samples(&w, err);
	if (s == BASE_OK) {
		add_meta(&w);
		s = add_path(&w, &path);
	}
	for (uint32_t i = 1; s == BASE_OK && i < w.defs->nr_streams; i++)
		if (w.defs->streams[i].stream && w.defs->streams[i].tid)
			s = add_thread(&w, i, &sample, &slice);
	base_str_add(&w.out.text, "\n]}\n");
	enum base_status closed = format_out_close(&w.out);
	tables_fini(&w.t);
	format_path_fini(&path);
	format_slices_fini(&w.slices);
	format_threads_fini(&w.threads);
	base_free(w.sample);
	base_str_fini(&w.label);
	return s != BASE_OK ? s : closed;
}
