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
#include <string.h>

enum { PROFILE_VERSION = 48, GECKO_VERSION = 29 };

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

/* One thread's tables while they are made. */
struct tables {
	struct base_strtab *strings; /* id 0 is "" */
	struct base_map funcs;       /* (name, file) -> func */
	struct base_map frames;      /* (func << 8 | depth, line) -> frame */
	struct base_map stacks;      /* (prefix + 1, frame) -> stack */
	struct base_str func_name, func_file, frame_func, frame_depth, frame_line;
	struct base_str stack_prefix, stack_frame;
	struct base_str sample_stack, sample_time, sample_cpu;
	struct base_str marker_name, marker_begin, marker_end, marker_category, marker_data;
	size_t nr_funcs, nr_frames, nr_stacks, nr_samples, nr_markers;
	bool failed;
};
struct firefox {
	struct format_out out;
	const struct format_input *in;
	const struct trace_defs *defs;
	struct format_threads threads;
	struct format_slices slices;
	struct format_samples samples;
	struct tables t;
	struct base_str label;
	uint64_t last_ns;
	bool any_thread;
};

/* ---- columns --------------------------------------------------------------------------------- */

static void add_ms(struct base_str *s, uint64_t ns)
{
	base_str_addf(s, "%" PRIu64 ".%06u", ns / 1000000, (unsigned)(ns % 1000000));
}

static void firefox_next(struct base_str *column, size_t nr)
{
	if (nr)
		base_str_add(column, ",");
}

static void firefox_add_index(struct base_str *column, size_t nr, uint64_t value)
{
	firefox_next(column, nr);
	base_str_addf(column, "%" PRIu64, value);
}

/* 0: not known. */
static void add_index_or_null(struct base_str *column, size_t nr, uint64_t value)
{
	if (value)
		firefox_add_index(column, nr, value);
	else
		base_str_add(column, nr ? ",null" : "null");
}

static uint32_t firefox_string_of(struct tables *t, const char *text)
{
	uint32_t id = 0;
	t->failed |= base_strtab_intern(t->strings, text, strlen(text), &id) != BASE_OK;
	return id;
}

static uint64_t func_of(struct tables *t, const char *name, const char *file)
{
	uint64_t found = 0;
	uint32_t name_ix = firefox_string_of(t, *name ? name : "?"),
		 file_ix = firefox_string_of(t, file);
	if (base_map_get(&t->funcs, file_ix, name_ix, &found))
		return found;
	firefox_add_index(&t->func_name, t->nr_funcs, name_ix);
	add_index_or_null(&t->func_file, t->nr_funcs, file_ix);
	t->failed |= base_map_put(&t->funcs, file_ix, name_ix, t->nr_funcs) != BASE_OK;
	return t->nr_funcs++;
}

/* depth: of inlining; 0: the function itself. */
static uint64_t firefox_frame_of(struct tables *t, const struct model_frame *f, unsigned depth)
{
	uint64_t found = 0, func = func_of(t, f->function, f->file);
	if (base_map_get(&t->frames, func << 8 | depth, f->line, &found))
		return found;
	firefox_add_index(&t->frame_func, t->nr_frames, func);
	firefox_add_index(&t->frame_depth, t->nr_frames, depth);
	add_index_or_null(&t->frame_line, t->nr_frames, f->line);
	t->failed |= base_map_put(&t->frames, func << 8 | depth, f->line, t->nr_frames) != BASE_OK;
	return t->nr_frames++;
}

static uint64_t firefox_stack_of(struct tables *t, uint64_t prefix_plus_1, uint64_t frame)
{
	uint64_t found = 0;
	if (base_map_get(&t->stacks, prefix_plus_1, frame, &found))
		return found;
	firefox_next(&t->stack_prefix, t->nr_stacks);
	if (prefix_plus_1)
		base_str_addf(&t->stack_prefix, "%" PRIu64, prefix_plus_1 - 1);
	else
		base_str_add(&t->stack_prefix, "null");
	firefox_add_index(&t->stack_frame, t->nr_stacks, frame);
	t->failed |= base_map_put(&t->stacks, prefix_plus_1, frame, t->nr_stacks) != BASE_OK;
	return t->nr_stacks++;
}

/* cpu_ns: processor time of the thread since its sample before. */
static void firefox_add_sample(
	struct firefox *w, const struct format_sample *sample, const char *instead, uint64_t cpu_ns)
{
	struct tables *t = &w->t;
	struct model_frame frame[FORMAT_FRAMES_MAX];
	size_t nr = format_sample_frames(w->in, sample, frame);
	uint64_t at = 0;
	unsigned depth = 0;
	if (!nr)
		frame[nr++] = (struct model_frame){.function = instead, .file = ""};
	for (size_t i = 0; i < nr; i++) {
		depth = frame[i].inlined ? depth + 1 : 0;
		at = 1 + firefox_stack_of(t, at, firefox_frame_of(t, &frame[i], depth));
	}
	firefox_add_index(&t->sample_stack, t->nr_samples, at - 1);
	firefox_next(&t->sample_time, t->nr_samples);
	add_ms(&t->sample_time, sample->time_ns);
	firefox_add_index(&t->sample_cpu, t->nr_samples, cpu_ns);
	t->nr_samples++;
}

static void add_marker(struct tables *t, const char *name, const char *where, unsigned kind,
	uint64_t begin_ns, uint64_t end_ns)
{
	firefox_add_index(&t->marker_name, t->nr_markers, firefox_string_of(t, *name ? name : "?"));
	firefox_next(&t->marker_begin, t->nr_markers);
	add_ms(&t->marker_begin, begin_ns);
	firefox_next(&t->marker_end, t->nr_markers);
	add_ms(&t->marker_end, end_ns);
	firefox_add_index(&t->marker_category, t->nr_markers, kind);
	firefox_next(&t->marker_data, t->nr_markers);
	base_str_add(&t->marker_data, "{\"type\":\"longpole\",\"where\":");
	format_json_text(&t->marker_data, where);
	base_str_add(&t->marker_data, "}");
	t->nr_markers++;
}

/* ---- writing a thread ------------------------------------------------------------------------ */

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

static void add_frame_table(struct firefox *w)
{
	struct tables *t = &w->t;
	base_str_add(&w->out.text, "\"frameTable\":{");
	add_constant(w, "address", "-1", t->nr_frames);
	add_column(w, "inlineDepth", &t->frame_depth);
	add_constant(w, "category", "0", t->nr_frames);
	add_constant(w, "subcategory", "0", t->nr_frames);
	add_column(w, "func", &t->frame_func);
	add_constant(w, "nativeSymbol", "null", t->nr_frames);
	add_constant(w, "innerWindowID", "null", t->nr_frames);
	add_constant(w, "implementation", "null", t->nr_frames);
	add_column(w, "line", &t->frame_line);
	add_constant(w, "column", "null", t->nr_frames);
	base_str_addf(&w->out.text, "\"length\":%zu},\"funcTable\":{", t->nr_frames);
	add_column(w, "name", &t->func_name);
	add_constant(w, "isJS", "false", t->nr_funcs);
	add_constant(w, "relevantForJS", "false", t->nr_funcs);
	add_constant(w, "resource", "-1", t->nr_funcs);
	add_column(w, "fileName", &t->func_file);
	add_constant(w, "lineNumber", "null", t->nr_funcs);
	add_constant(w, "columnNumber", "null", t->nr_funcs);
	base_str_addf(&w->out.text, "\"length\":%zu},", t->nr_funcs);
}

static void add_tables(struct firefox *w)
{
	struct tables *t = &w->t;
	add_frame_table(w);
	base_str_add(&w->out.text, "\"stackTable\":{");
	add_column(w, "prefix", &t->stack_prefix);
	add_column(w, "frame", &t->stack_frame);
	add_constant(w, "category", "0", t->nr_stacks);
	add_constant(w, "subcategory", "0", t->nr_stacks);
	base_str_addf(&w->out.text, "\"length\":%zu},\"samples\":{", t->nr_stacks);
	add_column(w, "stack", &t->sample_stack);
	add_column(w, "time", &t->sample_time);
	add_column(w, "threadCPUDelta", &t->sample_cpu);
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

static void firefox_tables_fini(struct tables *t)
{
	struct base_str *columns[] = {&t->func_name, &t->func_file, &t->frame_func, &t->frame_depth,
		&t->frame_line, &t->stack_prefix, &t->stack_frame, &t->sample_stack,
		&t->sample_time, &t->sample_cpu, &t->marker_name, &t->marker_begin, &t->marker_end,
		&t->marker_category, &t->marker_data};
	for (size_t i = 0; i < BASE_COUNT(columns); i++)
		base_str_fini(columns[i]);
	base_strtab_free(t->strings);
	base_map_fini(&t->funcs);
	base_map_fini(&t->frames);
	base_map_fini(&t->stacks);
	*t = (struct tables){0};
}

static bool firefox_begin_thread(struct firefox *w)
{
	w->t = (struct tables){.strings = base_strtab_new()};
	return w->t.strings != NULL;
}

static enum base_status firefox_end_thread(struct firefox *w, const char *name, const char *process,
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
	firefox_tables_fini(&w->t);
	return failed ? format_no_memory(w->out.err) : w->out.status;
}

/* ---- what goes in ---------------------------------------------------------------------------- */

/* Is the thread off its processor (or in a call that may be) meanwhile? */
static bool firefox_is_off(enum format_slice_kind k)
{
	return k != FORMAT_SLICE_none && k != FORMAT_SLICE_hold && k != FORMAT_SLICE_state;
}

/* What a thread ran of [from, to): all but its waits. *at is its first slice that may matter, and
 * goes on with the time. */
static uint64_t firefox_ran_ns(
	const struct firefox *w, size_t *at, uint32_t stream, uint64_t from_ns, uint64_t to_ns)
{
	const struct format_slices *l = &w->slices;
	uint64_t ran_ns = to_ns > from_ns ? to_ns - from_ns : 0;
	while (*at < l->nr && l->slice[*at].stream == stream && l->slice[*at].end_ns <= from_ns)
		++*at;
	for (size_t i = *at; i < l->nr && l->slice[i].stream == stream; i++) {
		const struct format_slice *s = &l->slice[i];
		uint64_t begin_ns = s->begin_ns > from_ns ? s->begin_ns : from_ns;
		uint64_t end_ns = s->end_ns < to_ns ? s->end_ns : to_ns;
		if (s->begin_ns >= to_ns)
			break;
		if (firefox_is_off(s->kind) && end_ns > begin_ns)
			ran_ns -= end_ns - begin_ns < ran_ns ? end_ns - begin_ns : ran_ns;
	}
	return ran_ns;
}

static void firefox_add_samples(
	struct firefox *w, uint32_t stream, uint64_t begin_ns, size_t *sample, size_t first_slice)
{
	uint64_t before_ns = begin_ns;
	while (first_slice < w->slices.nr && w->slices.slice[first_slice].stream < stream)
		first_slice++;
	for (; *sample < w->samples.nr && w->samples.sample[*sample].stream <= stream; ++*sample) {
		const struct format_sample *at = &w->samples.sample[*sample];
		if (at->stream != stream)
			continue;
		firefox_add_sample(w, at, "?",
			firefox_ran_ns(w, &first_slice, stream, before_ns, at->time_ns));
		before_ns = at->time_ns;
	}
	if (!w->t.nr_samples) /* a thread without any is not shown */
		firefox_add_sample(
			w, &(struct format_sample){.time_ns = begin_ns}, "(no samples)", 0);
}

static enum base_status firefox_add_thread(
	struct firefox *w, uint32_t stream, size_t *sample, size_t *slice)
{
	const struct trace_stream *st = &w->defs->streams[stream];
	uint32_t process = st->process < w->defs->nr_processes ? st->process : 0;
	uint64_t pid = w->defs->nr_processes ? w->defs->processes[process].pid : 0;
	uint32_t actor = model_stream_actor(w->in->model, stream);
	const struct model_actor *a = actor == UINT32_MAX ? NULL : model_actor(w->in->model, actor);
	uint64_t begin_ns = a ? a->begin_ns : 0, end_ns = a ? a->end_ns : w->last_ns;
	if (!firefox_begin_thread(w))
		return format_no_memory(w->out.err);
	firefox_add_samples(w, stream, begin_ns, sample, *slice);
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
	return firefox_end_thread(w, format_out_text(&w->out, &w->label),
		w->defs->nr_processes ? trace_text_of(w->defs, w->defs->processes[process].name)
				      : "",
		pid, st->tid, pid == st->tid, begin_ns, end_ns);
}

static enum base_status firefox_add_path(struct firefox *w, const struct format_path *p)
{
	uint64_t begin_ns = p->nr ? p->step[0].begin_ns : 0;
	if (!firefox_begin_thread(w))
		return format_no_memory(w->out.err);
	firefox_add_sample(
		w, &(struct format_sample){.time_ns = begin_ns}, "(the path has no samples)", 0);
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
	return firefox_end_thread(w, "critical path", "critical path", 0, 0, true, begin_ns,
		p->nr ? p->step[p->nr - 1].end_ns : w->last_ns);
}

static void firefox_add_meta(struct firefox *w)
{
	uint64_t unix_ns = trace_reader_info(w->in->reader)->origin_unix_ns;
	base_str_addf(&w->out.text,
		"{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":1,"
		"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},"
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

enum base_status format_export_firefox(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct firefox w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.defs = trace_reader_defs(in->reader),
		.last_ns = model_last_ns(in->model),
	};
	struct format_path path = {0};
	size_t sample = 0, slice = 0;
	enum base_status s = format_path_init(&path, in, opts, err);
	if (s == BASE_OK)
		s = format_threads_init(&w.threads, in, err);
	if (s == BASE_OK)
		s = format_slices_init(&w.slices, in, opts, err);
	if (s == BASE_OK)
		s = format_samples_init(&w.samples, in, opts, err);
	if (s == BASE_OK) {
		firefox_add_meta(&w);
		s = firefox_add_path(&w, &path);
	}
	for (uint32_t i = 1; s == BASE_OK && i < w.defs->nr_streams; i++)
		if (w.defs->streams[i].stream && w.defs->streams[i].tid)
			s = firefox_add_thread(&w, i, &sample, &slice);
	base_str_add(&w.out.text, "\n]}\n");
	enum base_status closed = format_out_close(&w.out);
	firefox_tables_fini(&w.t);
	format_path_fini(&path);
	format_slices_fini(&w.slices);
	format_threads_fini(&w.threads);
	format_samples_fini(&w.samples);
	base_str_fini(&w.label);
	return s != BASE_OK ? s : closed;
}
