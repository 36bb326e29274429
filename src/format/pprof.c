/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof.c - profile.proto of github.com/google/pprof, compressed by gzip as its readers demand.
 *
 * By waiting: as Go's block and mutex profiles (contentions/count, delay/nanoseconds), a sample a
 * (thread, what was waited for, call path), with the code's addresses, files and lines. By the
 * path: critical_path/nanoseconds; the frames are program, role, state, callers and function. By
 * processor time: samples/count, cpu/nanoseconds, as Go's CPU profiles.
 */
#include "format/private.h"
#include "format/wire.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

enum { /* field numbers */
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	VALUE_TYPE = 1,
	VALUE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_TEXT = 2,
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINED = 10,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILE = 4,
};
enum { DEPTH_MAX = 128, GZIP = 15 + 16, COMPRESSED_BYTES = 1 << 16 };

struct stack { /* locations, leaf first, and labels; identified by their encoding */
	double delay_ns;
	uint64_t nr;
};
struct pprof {
	const struct format_sink *sink;
	const struct format_input *in;
	const struct trace_defs *defs;
	struct base_err *err;
	struct base_strtab *strings; /* ids are the profile's */
	struct base_strtab *stacks;  /* encoded samples without values; no byte of them is 0 */
	struct stack *stack;         /* by id */
	size_t stack_capacity;
	struct base_map functions; /* (name, file) -> id */
	struct base_map locations; /* (0, site), (1, function) or (2, chain) -> id */
	struct format_threads threads;
	struct base_str tables, message, part, label;
	uint64_t nr_functions, nr_locations;
	uint64_t period_ns;
	enum format_weight by;
	bool failed;
};

static uint64_t pprof_string_of(struct pprof *w, const char *text)
{
	uint32_t id = 0;
	struct base_str clean = {0};
	format_clean_add(&clean, text);
	w->failed |= clean.failed || base_strtab_intern(w->strings, base_str_text(&clean),
					     clean.length, &id) != BASE_OK;
	base_str_fini(&clean);
	return id;
}

static uint64_t pprof_function_of(struct pprof *w, const char *name, const char *file)
{
	uint64_t name_id = pprof_string_of(w, *name ? name : "?"),
		 file_id = pprof_string_of(w, file), found;
	if (base_map_get(&w->functions, name_id, file_id, &found))
		return found;
	base_str_reset(&w->message);
	format_wire_number(&w->message, FUNCTION_ID, ++w->nr_functions);
	format_wire_number(&w->message, FUNCTION_NAME, name_id);
	format_wire_number(&w->message, FUNCTION_SYSTEM_NAME, name_id);
	if (file_id)
		format_wire_number(&w->message, FUNCTION_FILE, file_id);
	format_wire_message(&w->tables, PROFILE_FUNCTION, &w->message);
	w->failed |= base_map_put(&w->functions, name_id, file_id, w->nr_functions) != BASE_OK;
	return w->nr_functions;
}

/* w->part gets a location's lines first: of what is inlined, the innermost first. */
static void pprof_add_line(struct pprof *w, uint64_t function, uint64_t line)
{
	base_str_reset(&w->message);
	format_wire_number(&w->message, LINE_FUNCTION, function);
	if (line)
		format_wire_number(&w->message, LINE_LINE, line);
	format_wire_message(&w->part, LOCATION_LINE, &w->message);
}

static uint64_t add_location(struct pprof *w, uint64_t mapping, uint64_t address)
{
	base_str_reset(&w->message);
	format_wire_number(&w->message, LOCATION_ID, ++w->nr_locations);
	if (mapping)
		format_wire_number(&w->message, LOCATION_MAPPING, mapping);
	if (address)
		format_wire_number(&w->message, LOCATION_ADDRESS, address);
	base_str_add_bytes(&w->message, base_str_text(&w->part), w->part.length);
	w->message.failed |= w->part.failed;
	format_wire_message(&w->tables, PROFILE_LOCATION, &w->message);
	base_str_reset(&w->part);
	return w->nr_locations;
}

/* Of a text alone: a state, what was waited for. */
static uint64_t location_of_text(struct pprof *w, const char *text)
{
	uint64_t function = pprof_function_of(w, text, ""), found;
	if (base_map_get(&w->locations, 1, function, &found))
		return found;
	base_str_reset(&w->part);
	pprof_add_line(w, function, 0);
	uint64_t id = add_location(w, 0, 0);
	w->failed |= base_map_put(&w->locations, 1, function, id) != BASE_OK;
	return id;
}

/* Of functions that were inlined in one. */
static uint64_t location_of_chain(struct pprof *w, const char *function, uint32_t chain)
{
	const char *frame[MODEL_FRAMES_MAX];
	uint64_t found;
	if (base_map_get(&w->locations, 2, chain, &found))
		return found;
	unsigned nr = model_chain_frames(w->in->model, chain, frame);
	base_str_reset(&w->part);
	while (nr-- > 0)
		pprof_add_line(w, pprof_function_of(w, frame[nr], ""), 0);
	pprof_add_line(w, pprof_function_of(w, function, ""), 0);
	uint64_t id = add_location(w, 0, 0);
	w->failed |= base_map_put(&w->locations, 2, chain, id) != BASE_OK;
	return id;
}

static uint64_t location_of_site(struct pprof *w, uint32_t site)
{
	const struct trace_defs *d = w->defs;
	uint64_t found;
	if (base_map_get(&w->locations, 0, site, &found))
		return found;
	const struct trace_site *at = site < d->nr_sites ? &d->sites[site] : NULL;
	struct model_frame frame[MODEL_FRAMES_MAX];
	unsigned nr = model_site_frames(w->in->model, site, frame);
	base_str_reset(&w->part);
	if (!nr || !*frame[0].function) {
		nr = 0;
		pprof_add_line(w, pprof_function_of(w, model_site_text(w->in->model, site), ""), 0);
	}
	while (nr-- > 0)
		pprof_add_line(w, pprof_function_of(w, frame[nr].function, frame[nr].file),
			frame[nr].line);
	uint64_t mapping = at && at->module < d->nr_modules ? at->module : 0;
	uint64_t id = add_location(w, mapping, at ? at->offset : 0);
	w->failed |= base_map_put(&w->locations, 0, site, id) != BASE_OK;
	return id;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void pprof_add_label(
	struct pprof *w, struct base_str *sample, const char *key, const char *text)
{
	base_str_reset(&w->part);
	format_wire_number(&w->part, LABEL_KEY, pprof_string_of(w, key));
	format_wire_number(&w->part, LABEL_TEXT, pprof_string_of(w, *text ? text : "?"));
	format_wire_message(sample, SAMPLE_LABEL, &w->part);
}

/* Ends w->label, the encoded sample, and adds to its values. */
static enum base_status pprof_add_value(struct pprof *w, double ns)
{
	uint32_t id = 0;
	enum base_status s = w->label.failed
				     ? BASE_ERR_NOMEM
				     : base_strtab_intern(w->stacks, base_str_text(&w->label),
					       w->label.length, &id);
	if (s == BASE_OK && id >= w->stack_capacity)
		s = base_grow(&w->stack, &w->stack_capacity, (size_t)id + 1, sizeof *w->stack);
	if (s != BASE_OK || w->failed || !w->stack)
		return format_no_memory(w->err);
	w->stack[id].delay_ns += ns;
	w->stack[id].nr++;
	return BASE_OK;
}

/* The callers of a stack, leaf first. */
static void pprof_add_callers(struct pprof *w, struct base_str *sample, uint32_t stack)
{
	const struct trace_defs *d = w->defs;
	for (unsigned i = 0; stack && stack < d->nr_stacks && i < DEPTH_MAX;
		i++, stack = d->stacks[stack].parent)
		format_wire_number(
			sample, SAMPLE_LOCATION, location_of_site(w, d->stacks[stack].site));
}

static bool pprof_is_waiting(enum format_slice_kind k)
{
	return k != FORMAT_SLICE_none && k != FORMAT_SLICE_hold && k != FORMAT_SLICE_state;
}

static enum base_status pprof_add_wait(
	void *ctx, const struct format_slice *s, struct base_err *err)
{
	struct pprof *w = ctx;
	struct base_str what = {0}, sample = {0};
	(void)err;
	if (!pprof_is_waiting(s->kind))
		return BASE_OK;
	format_slice_label(&what, w->defs, s);
	uint32_t stack = s->stack;
	if (!stack && s->site)
		format_wire_number(&sample, SAMPLE_LOCATION, location_of_site(w, s->site));
	pprof_add_callers(w, &sample, stack);
	if (!sample.length)
		format_wire_number(
			&sample, SAMPLE_LOCATION, location_of_text(w, base_str_text(&what)));
	pprof_add_label(w, &sample, "wait", base_str_text(&what));
	base_str_reset(&w->label);
	format_thread_name(&w->label, &w->threads, s->stream);
	pprof_add_label(w, &sample, "thread", base_str_text(&w->label));
	base_str_reset(&w->label);
	base_str_add_bytes(&w->label, base_str_text(&sample), sample.length);
	w->label.failed |= sample.failed || what.failed;
	base_str_fini(&what);
	base_str_fini(&sample);
	return pprof_add_value(w, (double)(s->end_ns - s->begin_ns));
}

/* p NULL: of the state alone. */
static enum base_status add_path_value(struct pprof *w, const struct graph_path_state *at,
	const struct model_call_path *p, double ns)
{
	const struct model_actor *a = model_actor(w->in->model, at->actor);
	struct base_str sample = {0};
	if (p) {
		const char *name = *p->function ? p->function : p->where;
		format_wire_number(&sample, SAMPLE_LOCATION,
			p->chain ? location_of_chain(w, name, p->chain)
				 : location_of_text(w, name));
		pprof_add_callers(w, &sample, p->stack);
	}
	format_wire_number(&sample, SAMPLE_LOCATION,
		location_of_text(w, model_state(w->in->model, at->state)->name));
	format_wire_number(&sample, SAMPLE_LOCATION, location_of_text(w, a->group));
	pprof_add_label(w, &sample, "thread", a->name);
	base_str_reset(&w->label);
	base_str_add_bytes(&w->label, base_str_text(&sample), sample.length);
	w->label.failed |= sample.failed;
	base_str_fini(&sample);
	return pprof_add_value(w, ns);
}

struct pprof_state {
	struct pprof *w;
	const struct graph_path_state *at;
	double running_ns, rest_ns;
	enum base_status status;
};

static bool pprof_add_call_path(void *ctx, const struct model_call_path *p)
{
	struct pprof_state *to = ctx;
	double ns = to->running_ns * p->share;
	to->rest_ns -= ns;
	to->status = add_path_value(to->w, to->at, p, ns);
	return to->status == BASE_OK;
}

static enum base_status pprof_add_path(struct pprof *w)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(w->in->model), 0, &lane, w->err);
	for (size_t i = 0; s == BASE_OK && i < lane.nr_states; i++) {
		const struct graph_path_state *p = &lane.state[i];
		struct pprof_state to = {.w = w,
			.at = p,
			.running_ns = p->path_ns - p->latency_ns - p->unexplained_ns,
			.rest_ns = p->path_ns};
		if (to.running_ns > 0)
			model_each_call_path(w->in->model, p->state, pprof_add_call_path, &to);
		s = to.status;
		if (s == BASE_OK && to.rest_ns >= 1)
			s = add_path_value(w, p, NULL, to.rest_ns);
	}
	return s;
}

static enum base_status pprof_add_cpu(struct pprof *w, const struct format_options *opts)
{
	struct format_samples l = {0};
	enum base_status s = format_samples_init(&l, w->in, opts, w->err);
	for (size_t i = 0; s == BASE_OK && i < l.nr; i++) {
		struct base_str sample = {0};
		if (l.sample[i].site)
			format_wire_number(
				&sample, SAMPLE_LOCATION, location_of_site(w, l.sample[i].site));
		pprof_add_callers(w, &sample, l.sample[i].stack);
		base_str_reset(&w->label);
		format_thread_name(&w->label, &w->threads, l.sample[i].stream);
		pprof_add_label(w, &sample, "thread", base_str_text(&w->label));
		base_str_reset(&w->label);
		base_str_add_bytes(&w->label, base_str_text(&sample), sample.length);
		w->label.failed |= sample.failed;
		base_str_fini(&sample);
		s = pprof_add_value(w, (double)w->period_ns);
	}
	format_samples_fini(&l);
	return s;
}

/* ---- the profile ----------------------------------------------------------------------------- */

static void pprof_add_type(
	struct pprof *w, struct base_str *out, unsigned field, const char *type, const char *unit)
{
	base_str_reset(&w->message);
	format_wire_number(&w->message, VALUE_TYPE, pprof_string_of(w, type));
	format_wire_number(&w->message, VALUE_UNIT, pprof_string_of(w, unit));
	format_wire_message(out, field, &w->message);
}

static void add_mappings(struct pprof *w, struct base_str *out)
{
	const struct trace_defs *d = w->defs;
	for (uint32_t i = 1; i < d->nr_modules; i++) {
		base_str_reset(&w->message);
		format_wire_number(&w->message, MAPPING_ID, i);
		format_wire_number(&w->message, MAPPING_START, 0);
		format_wire_number(&w->message, MAPPING_LIMIT, UINT64_MAX);
		format_wire_number(&w->message, MAPPING_FILE,
			pprof_string_of(w, trace_text_of(d, d->modules[i].path)));
		format_wire_number(&w->message, MAPPING_BUILD_ID,
			pprof_string_of(w, trace_text_of(d, d->modules[i].build_id)));
		for (unsigned k = MAPPING_HAS_FUNCTIONS; k <= MAPPING_HAS_INLINED; k++)
			format_wire_number(&w->message, k, 1);
		format_wire_message(out, PROFILE_MAPPING, &w->message);
	}
}

static void pprof_add_samples(struct pprof *w, struct base_str *out)
{
	uint32_t nr = w->stack ? base_strtab_count(w->stacks) : 0;
	for (uint32_t id = 1; id < nr; id++) {
		long long ns = llround(w->stack[id].delay_ns);
		if (ns <= 0)
			continue;
		base_str_reset(&w->message);
		base_str_add(&w->message, base_strtab_get(w->stacks, id));
		if (w->by != FORMAT_WEIGHT_path)
			format_wire_number(&w->message, SAMPLE_VALUE, w->stack[id].nr);
		format_wire_number(&w->message, SAMPLE_VALUE, (uint64_t)ns);
		format_wire_message(out, PROFILE_SAMPLE, &w->message);
	}
}

static const struct pprof_weight { /* what its values are called; count NULL: has none */
	const char *count, *time, *period, *period_unit;
} pprof_weight[] = {
	[FORMAT_WEIGHT_path] = {NULL, "critical_path", "critical_path", "nanoseconds"},
	[FORMAT_WEIGHT_wait] = {"contentions", "delay", "contentions", "count"},
	[FORMAT_WEIGHT_cpu] = {"samples", "cpu", "cpu", "nanoseconds"},
};

static void pprof_assemble(struct pprof *w, struct base_str *out)
{
	const struct pprof_weight *by = &pprof_weight[w->by];
	uint64_t origin_ns = trace_reader_info(w->in->reader)->origin_unix_ns;
	if (by->count)
		pprof_add_type(w, out, PROFILE_SAMPLE_TYPE, by->count, "count");
	pprof_add_type(w, out, PROFILE_SAMPLE_TYPE, by->time, "nanoseconds");
	pprof_add_samples(w, out);
	add_mappings(w, out);
	base_str_add_bytes(out, base_str_text(&w->tables), w->tables.length);
	format_wire_number(out, PROFILE_TIME, origin_ns);
	format_wire_number(out, PROFILE_DURATION, model_last_ns(w->in->model));
	pprof_add_type(w, out, PROFILE_PERIOD_TYPE, by->period, by->period_unit);
	format_wire_number(out, PROFILE_PERIOD, w->by == FORMAT_WEIGHT_cpu ? w->period_ns : 1);
	format_wire_number(out, PROFILE_COMMENT, pprof_string_of(w, w->in->tool));
	for (uint32_t i = 0; i < base_strtab_count(w->strings); i++)
		format_wire_text(out, PROFILE_STRING, base_strtab_get(w->strings, i));
	out->failed |= w->tables.failed || w->message.failed || w->failed;
}

static enum base_status write_compressed(struct pprof *w, const struct base_str *profile)
{
	static const char *const none = "";
	uint8_t *buffer = base_alloc(COMPRESSED_BYTES);
	z_stream z = {0};
	if (!buffer || deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8,
			       Z_DEFAULT_STRATEGY) != Z_OK) {
		base_free(buffer);
		return format_no_memory(w->err);
	}
	z.next_in = (Bytef *)(uintptr_t)(profile->length ? profile->buf : none);
	z.avail_in = (uInt)profile->length; /* below BASE_STR_LIMIT_BYTES */
	enum base_status s = BASE_OK;
	int state = Z_OK;
	while (s == BASE_OK && state == Z_OK) {
		z.next_out = buffer;
		z.avail_out = COMPRESSED_BYTES;
		state = deflate(&z, Z_FINISH);
		size_t nr = COMPRESSED_BYTES - z.avail_out;
		if (nr)
			s = w->sink->write(w->sink->ctx, buffer, nr, w->err);
	}
	deflateEnd(&z);
	base_free(buffer);
	return s;
}

enum base_status format_export_pprof(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct pprof w = {
		.sink = sink,
		.in = in,
		.defs = trace_reader_defs(in->reader),
		.err = err,
		.strings = base_strtab_new(),
		.stacks = base_strtab_new(),
		.by = opts->weight,
		.period_ns = format_sample_period_ns(in),
	};
	struct base_str profile = {0};
	enum base_status s = !w.strings || !w.stacks ? format_no_memory(err)
						     : format_threads_init(&w.threads, in, err);
	if (s == BASE_OK)
		s = w.by == FORMAT_WEIGHT_path ? pprof_add_path(&w)
		    : w.by == FORMAT_WEIGHT_cpu
			    ? pprof_add_cpu(&w, opts)
			    : format_timeline(in, opts, pprof_add_wait, &w, err);
	if (s == BASE_OK) {
		pprof_assemble(&w, &profile);
		s = profile.failed ? format_no_memory(err) : write_compressed(&w, &profile);
	}
	base_str_fini(&profile);
	base_strtab_free(w.strings);
	base_strtab_free(w.stacks);
	base_free(w.stack);
	base_map_fini(&w.functions);
	base_map_fini(&w.locations);
	format_threads_fini(&w.threads);
	struct base_str *texts[] = {&w.tables, &w.message, &w.part, &w.label};
	for (size_t i = 0; i < BASE_COUNT(texts); i++)
		base_str_fini(texts[i]);
	return s;
}
