/* SPDX-License-Identifier: Apache-2.0 */
/* kineto_import.c - `import pytorch`: Kineto's events as slices in lanes. */
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/kineto.h"

#include <string.h>

struct kineto {
	struct gpu_trace g;
	uint32_t rank;
	int64_t base_ns; /* of all its times */
	struct base_str text;
	uint64_t nr_known; /* events of a category of the profiler's */
};

/* ---- an event -------------------------------------------------------------------------------- */

static uint32_t kineto_intern(struct kineto *k, struct kineto_text t)
{
	base_str_reset(&k->text);
	format_kineto_add_text(&k->text, t);
	k->g.failed |= k->text.failed;
	return format_gpu_text(&k->g, base_str_text(&k->text));
}

/* A process's or thread's number; of a text that says none, its own: below all that numbers are. */
static int64_t kineto_id(struct kineto *k, struct kineto_text t)
{
	int64_t n = 0;
	if (!t.at || format_kineto_number(t, &n))
		return n;
	return INT64_MIN + kineto_intern(k, t);
}

struct kineto_arguments {
	int64_t correlation, device, stream, on_stream, record, nr_elements;
	struct kineto_text collective, group, ranks;
};

/* The few members of args that matter; numbers that are not there are -1 (correlation: 0). */
static struct kineto_arguments kineto_arguments_of(struct kineto_text rest)
{
	struct kineto_arguments a = {.device = -1, .stream = -1, .on_stream = -1, .record = -1};
	struct kineto_text key, value;
	while (format_kineto_member(&rest, &key, &value)) {
		if (format_kineto_is(key, "correlation"))
			(void)format_kineto_number(value, &a.correlation);
		else if (format_kineto_is(key, "device"))
			(void)format_kineto_number(value, &a.device);
		else if (format_kineto_is(key, "stream"))
			(void)format_kineto_number(value, &a.stream);
		else if (format_kineto_is(key, "wait_on_stream"))
			(void)format_kineto_number(value, &a.on_stream);
		else if (format_kineto_is(key, "wait_on_cuda_event_record_corr_id"))
			(void)format_kineto_number(value, &a.record);
		else if (format_kineto_is(key, "Collective name"))
			a.collective = value;
		else if (format_kineto_is(key, "Process Group Name"))
			a.group = value;
		else if (format_kineto_is(key, "In msg nelems"))
			(void)format_kineto_number(value, &a.nr_elements);
	}
	return a;
}

static bool kineto_begins(struct kineto_text t, const char *word)
{
	size_t n = strlen(word);
	return t.at && t.length >= n && !memcmp(t.at, word, n);
}

static uint8_t kineto_note_of(struct kineto_text name)
{
	return kineto_begins(name, "ProfilerStep#")           ? GPU_NOTE_STEP
	       : kineto_begins(name, "enumerate(DataLoader)") ? GPU_NOTE_DATA
							      : GPU_NOTE_PLAIN;
}

static void kineto_add_device(struct kineto *k, const struct kineto_event *e, struct gpu_slice s)
{
	struct kineto_arguments a = kineto_arguments_of(e->arguments);
	int64_t device = a.device >= 0 ? a.device : kineto_id(k, e->pid);
	int64_t stream = a.stream >= 0 ? a.stream : kineto_id(k, e->tid);
	static const char *const collective[] = {"nccl", "rccl", "hccl", "oneccl"};
	for (size_t i = 0; s.what == GPU_KERNEL && i < BASE_COUNT(collective); i++)
		if (kineto_begins(e->name, collective[i]))
			s.what = GPU_COLLECTIVE;
	if (s.what == GPU_KERNEL && a.collective.at)
		s.what = GPU_COLLECTIVE;
	s.lane = format_gpu_lane(&k->g, true, k->rank, device, stream);
	s.correlation = a.correlation;
	if (s.what == GPU_COLLECTIVE)
		s.more = format_gpu_add_more(&k->g,
			(struct gpu_more){.group = a.group.at ? kineto_intern(k, a.group) : 0,
				.nr_bytes = a.nr_elements});
	format_gpu_add(&k->g, s);
}

/* What a call waited for, said beside it: by its correlation. */
static void kineto_add_sync(struct kineto *k, const struct kineto_event *e)
{
	struct kineto_arguments a = kineto_arguments_of(e->arguments);
	uint32_t more = format_gpu_add_more(&k->g, (struct gpu_more){.device = a.device,
							   .stream = a.stream,
							   .on_stream = a.on_stream,
							   .record = a.record});
	if (!more || !a.correlation)
		return;
	k->g.failed |=
		base_map_put(&k->g.syncs, k->rank, (uint64_t)a.correlation, more - 1) != BASE_OK;
	if (a.on_stream >= 0 && a.stream >= 0 && a.record >= 0)
		k->g.knows_waits = true;
}

static void kineto_add_flow(struct kineto *k, const struct kineto_event *e)
{
	struct gpu_flow f = {.is_end = format_kineto_is(e->phase, "f")};
	if (!format_kineto_is(e->category, "fwdbwd") || !format_kineto_time(e->time, &f.time_ns) ||
		!format_kineto_number(e->id, &f.id))
		return;
	f.time_ns += k->base_ns;
	f.lane = format_gpu_lane(&k->g, false, k->rank, kineto_id(k, e->pid), kineto_id(k, e->tid));
	if (base_grow(&k->g.flow, &k->g.flow_capacity, k->g.nr_flows + 1, sizeof *k->g.flow) !=
		BASE_OK)
		k->g.failed = true;
	else
		k->g.flow[k->g.nr_flows++] = f;
}

static void kineto_add_slice(struct kineto *k, const struct kineto_event *e)
{
	static const struct {
		const char *category;
		uint8_t kind, what;
	} categories[] = {
#define X(category, kind, what) {category, kind, what},
#include "runtime/gpu/gpu_categories.def"
	};
	size_t i = 0;
	while (i < BASE_COUNT(categories) && !format_kineto_is(e->category, categories[i].category))
		i++;
	if (i == BASE_COUNT(categories))
		return;
	struct gpu_slice s = {.kind = categories[i].kind, .what = categories[i].what};
	int64_t duration_ns = 0;
	if (!format_kineto_time(e->time, &s.begin_ns) ||
		(e->duration.at && !format_kineto_time(e->duration, &duration_ns)) ||
		__builtin_add_overflow(s.begin_ns, k->base_ns, &s.begin_ns) ||
		__builtin_add_overflow(s.begin_ns, duration_ns, &s.end_ns) || s.begin_ns < 0) {
		k->g.counts.nr_damaged++;
		return;
	}
	if (duration_ns < 0) {
		k->g.counts.nr_negative++;
		return;
	}
	k->nr_known++;
	s.name = kineto_intern(k, e->name);
	if (s.kind == GPU_DEVICE) {
		kineto_add_device(k, e, s);
		return;
	}
	if (s.kind == GPU_SYNC) {
		kineto_add_sync(k, e);
		return;
	}
	s.lane = format_gpu_lane(&k->g, false, k->rank, kineto_id(k, e->pid), kineto_id(k, e->tid));
	if (s.kind == GPU_NOTE)
		s.what = kineto_note_of(e->name);
	if (s.kind == GPU_CALL) {
		s.what = format_gpu_call_of(base_strtab_get(k->g.texts, s.name));
		s.correlation = kineto_arguments_of(e->arguments).correlation;
	}
	format_gpu_add(&k->g, s);
}

static void kineto_add_name(struct kineto *k, const struct kineto_event *e)
{
	struct kineto_text rest = e->arguments, key, value;
	if (!format_kineto_is(e->name, "thread_name"))
		return;
	uint32_t lane = format_gpu_lane_find(
		&k->g, false, k->rank, kineto_id(k, e->pid), kineto_id(k, e->tid));
	while (lane != GPU_NONE && format_kineto_member(&rest, &key, &value))
		if (format_kineto_is(key, "name"))
			k->g.lane[lane].name = kineto_intern(k, value);
}

static void kineto_on_event(void *ctx, const struct kineto_event *e)
{
	struct kineto *k = ctx;
	if (format_kineto_is(e->phase, "X"))
		kineto_add_slice(k, e);
	else if (format_kineto_is(e->phase, "s") || format_kineto_is(e->phase, "f"))
		kineto_add_flow(k, e);
	else if (format_kineto_is(e->phase, "M"))
		kineto_add_name(k, e);
}

static void kineto_on_header(void *ctx, struct kineto_text key, struct kineto_text value)
{
	struct kineto *k = ctx;
	int64_t n;
	if (format_kineto_is(key, "baseTimeNanoseconds") && format_kineto_number(value, &n) &&
		n > 0)
		k->base_ns = n;
}

/* ---- the import ------------------------------------------------------------------------------ */

static enum base_status kineto_convert(struct kineto *k, const struct format_source *from,
	struct trace_writer *to, struct base_str *notes, struct base_err *err)
{
	struct format_machines *m = format_machines_new();
	enum base_status s = BASE_OK;
	format_gpu_order(&k->g);
	if (m && !k->g.failed)
		format_gpu_write(&k->g, m);
	if (!m || k->g.failed)
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory for slices");
	if (s == BASE_OK)
		s = format_machines_write(m, from->name, to, err);
	if (s == BASE_OK)
		format_gpu_notes(&k->g, notes);
	format_machines_free(m);
	return s;
}

enum base_status format_import_pytorch(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct kineto k = {0};
	struct kineto_visitor visitor = {&k, kineto_on_header, kineto_on_event};
	struct kineto_counts counts = {0};
	(void)opts;
	enum base_status s = format_gpu_trace_init(&k.g)
				     ? format_kineto_read(from, &visitor, &counts, err)
				     : base_fail(err, BASE_ERR_NOMEM, "out of memory");
	k.g.nr_ranks = 1;
	if (s == BASE_OK && k.g.too_many)
		s = base_fail(err, BASE_ERR_LIMIT, "more than %d slices: profile fewer steps",
			GPU_SLICES_MAX);
	if (s == BASE_OK && !k.g.failed && !k.g.nr)
		s = base_fail(err, BASE_ERR_FOREIGN,
			"none of its %llu {event|events} is of PyTorch's profiler (operator, "
			"runtime call, "
			"kernel): "
			"if it is another tool's Trace Event JSON, try 'longpole import chrome'",
			(unsigned long long)counts.nr_events);
	if (s == BASE_OK)
		s = kineto_convert(&k, from, to, notes, err);
	if (s == BASE_OK) {
		uint64_t nr_bad =
			counts.nr_damaged + k.g.counts.nr_damaged + k.g.counts.nr_negative;
		if (counts.is_cut)
			base_str_add(notes, "the file is cut short: imported as far as it goes\n");
		format_note_count(notes, counts.nr_damaged,
			"%s {item of the list is no event|items of the list are no events}: left "
			"out");
		format_note_count(notes, counts.nr_too_long,
			"%s event is longer than 16 MiB: read no further");
		trace_writer_count(to, TRACE_DIAG_import_skipped, nr_bad);
		trace_writer_count(to, TRACE_DIAG_import_cut, counts.is_cut);
	}
	base_str_fini(&k.text);
	format_gpu_trace_fini(&k.g);
	return s;
}
