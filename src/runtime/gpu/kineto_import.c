/* SPDX-License-Identifier: Apache-2.0 */
/* kineto_import.c - `import pytorch`: Kineto's events as slices in lanes. */
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/kineto.h"

#include "format/unpack.h"

#include <inttypes.h>
#include <string.h>

enum { KINETO_RANKS_MAX = 1 << 16 };

struct kineto {
	struct gpu_trace g;
	uint32_t rank;   /* index of the file */
	int64_t number;  /* of the rank that the file says it is; -1: none */
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
	int64_t correlation, device, stream, on_stream, record;
	int64_t nr_in, nr_out, nr_ranks, source, target, sequence;
	struct kineto_text collective, group, ranks, element;
};

/* The few members of args that matter; numbers that are not there are -1 (correlation: 0). */
static struct kineto_arguments kineto_arguments_of(struct kineto_text rest)
{
#define KINETO_AT(member) offsetof(struct kineto_arguments, member)
	static const struct {
		const char *key;
		size_t at;
		bool is_text;
	} members[] = {
		{"correlation", KINETO_AT(correlation), false},
		{"device", KINETO_AT(device), false},
		{"stream", KINETO_AT(stream), false},
		{"wait_on_stream", KINETO_AT(on_stream), false},
		{"wait_on_cuda_event_record_corr_id", KINETO_AT(record), false},
		{"In msg nelems", KINETO_AT(nr_in), false},
		{"Out msg nelems", KINETO_AT(nr_out), false},
		{"Group size", KINETO_AT(nr_ranks), false},
		{"Src Rank", KINETO_AT(source), false},
		{"Dst Rank", KINETO_AT(target), false},
		{"Seq", KINETO_AT(sequence), false},
		{"Collective name", KINETO_AT(collective), true},
		{"Process Group Name", KINETO_AT(group), true},
		{"Process Group Ranks", KINETO_AT(ranks), true},
		{"dtype", KINETO_AT(element), true},
	};
#undef KINETO_AT
	struct kineto_arguments a = {.device = -1,
		.stream = -1,
		.on_stream = -1,
		.record = -1,
		.nr_in = -1,
		.nr_out = -1,
		.nr_ranks = -1,
		.source = -1,
		.target = -1,
		.sequence = -1};
	struct kineto_text key, value;
	while (format_kineto_member(&rest, &key, &value)) {
		size_t i = 0;
		while (i < BASE_COUNT(members) && !format_kineto_is(key, members[i].key))
			i++;
		if (i == BASE_COUNT(members))
			continue;
		char *to = (char *)&a + members[i].at;
		if (members[i].is_text)
			*(struct kineto_text *)to = value;
		else
			(void)format_kineto_number(value, (int64_t *)to);
	}
	return a;
}

/* Bytes of an element, by what PyTorch calls it; 0: not known. */
static int64_t kineto_element_bytes(struct kineto_text t)
{
	static const struct {
		const char *name;
		int64_t nr_bytes;
	} elements[] = {
#define X(name, nr_bytes) {name, nr_bytes},
#include "runtime/gpu/gpu_elements.def"
	};
	for (size_t i = 0; i < BASE_COUNT(elements); i++)
		if (format_kineto_is(t, elements[i].name))
			return elements[i].nr_bytes;
	return 0;
}

/* The group that meets: a group's name alone may be another group's on other ranks. */
static uint32_t kineto_group(struct kineto *k, const struct kineto_arguments *a)
{
	if (!a->group.at)
		return 0;
	base_str_reset(&k->text);
	format_kineto_add_text(&k->text, a->group);
	if (a->ranks.at && a->ranks.length) {
		base_str_add(&k->text, " ");
		format_kineto_add_text(&k->text, a->ranks);
	}
	k->g.failed |= k->text.failed;
	return format_gpu_text(&k->g, base_str_text(&k->text));
}

static uint32_t kineto_add_collective(
	struct kineto *k, const struct kineto_event *e, const struct kineto_arguments *a)
{
	int64_t nr = a->nr_in > a->nr_out ? a->nr_in : a->nr_out, nr_bytes = 0;
	bool is_message = a->source >= 0 && a->target >= 0;
	if (nr < 0 || __builtin_mul_overflow(nr, kineto_element_bytes(a->element), &nr_bytes))
		nr_bytes = 0;
	return format_gpu_add_more(&k->g,
		(struct gpu_more){.group = kineto_group(k, a),
			.operation = kineto_intern(k, a->collective.at ? a->collective : e->name),
			.source = is_message ? a->source : -1,
			.target = is_message ? a->target : -1,
			.sequence = is_message ? -1 : a->sequence,
			.nr_bytes = nr_bytes,
			.nr_ranks = a->nr_ranks > 0 ? a->nr_ranks : 0});
}

static void kineto_add_device(struct kineto *k, const struct kineto_event *e, struct gpu_slice s)
{
	struct kineto_arguments a = kineto_arguments_of(e->arguments);
	int64_t device = a.device >= 0 ? a.device : kineto_id(k, e->pid);
	int64_t stream = a.stream >= 0 ? a.stream : kineto_id(k, e->tid);
	if (s.what == GPU_KERNEL &&
		(a.collective.at || format_gpu_is_collective(base_strtab_get(k->g.texts, s.name))))
		s.what = GPU_COLLECTIVE;
	s.lane = format_gpu_lane(&k->g, true, k->rank, device, stream);
	s.correlation = a.correlation;
	if (s.what == GPU_COLLECTIVE)
		s.more = kineto_add_collective(k, e, &a);
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
		s.what = format_gpu_note_of(&k->g, base_strtab_get(k->g.texts, s.name));
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
	struct kineto_text member;
	int64_t n;
	if (format_kineto_is(key, "baseTimeNanoseconds") && format_kineto_number(value, &n) &&
		n > 0)
		k->base_ns = n;
	if (!format_kineto_is(key, "distributedInfo"))
		return;
	while (format_kineto_member(&value, &key, &member))
		if (format_kineto_is(key, "rank") && format_kineto_number(member, &n) && n >= 0)
			k->number = n;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* "rank-3.pt.trace.json": the number behind the last "rank" of the file's name; -1: none. */
static int64_t kineto_rank_of_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *p = slash ? slash + 1 : path;
	int64_t number = -1;
	while ((p = strstr(p, "rank"))) {
		p += 4;
		p += *p == '-' || *p == '_';
		if (*p < '0' || *p > '9')
			continue;
		for (number = 0; *p >= '0' && *p <= '9' && number < KINETO_RANKS_MAX; p++)
			number = 10 * number + (*p - '0');
	}
	return number;
}

/* Index of another file of that rank; nr_ranks: there is none. */
static uint32_t kineto_other(const struct gpu_trace *g, int64_t number, uint32_t but)
{
	uint32_t i = 0;
	while (i < g->nr_ranks && (i == but || g->rank[i].number != number))
		i++;
	return i;
}

/* Each file is of another rank; those that do not say which get the numbers that are free. */
static enum base_status kineto_number_ranks(
	struct gpu_trace *g, uint64_t *ret_nr_unsaid, struct base_err *err)
{
	int64_t next = 0;
	for (uint32_t r = 0; r < g->nr_ranks; r++) {
		uint32_t other =
			g->rank[r].number < 0 ? g->nr_ranks : kineto_other(g, g->rank[r].number, r);
		if (other < g->nr_ranks)
			return base_fail(err, BASE_ERR_FOREIGN,
				"%s and %s are both of rank %" PRId64
				": give one file of each rank, all of the same steps",
				base_strtab_get(g->texts, g->rank[r].name),
				base_strtab_get(g->texts, g->rank[other].name), g->rank[r].number);
	}
	for (uint32_t r = 0; r < g->nr_ranks; r++) {
		if (g->rank[r].number >= 0)
			continue;
		while (kineto_other(g, next, r) < g->nr_ranks)
			next++;
		g->rank[r].number = next;
		++*ret_nr_unsaid;
	}
	return BASE_OK;
}

/* ---- the import ------------------------------------------------------------------------------ */

static void kineto_sum(struct kineto_counts *all, const struct kineto_counts *one)
{
	all->nr_events += one->nr_events;
	all->nr_damaged += one->nr_damaged;
	all->nr_too_long += one->nr_too_long;
	all->is_cut |= one->is_cut;
}

/* One rank. What was found in a directory may be anything: left out, then. */
static enum base_status kineto_read_rank(struct kineto *k, const struct format_source *from,
	struct kineto_counts *all, uint64_t *nr_others, struct base_err *err)
{
	struct kineto_visitor visitor = {k, kineto_on_header, kineto_on_event};
	struct kineto_counts counts = {0};
	struct format_unpacked u;
	size_t before = k->g.nr;
	k->rank = k->g.nr_ranks;
	k->base_ns = 0;
	k->number = -1;
	format_gpu_add_rank(&k->g, -1, from->name);
	enum base_status s = k->g.failed ? base_fail(err, BASE_ERR_NOMEM, "out of memory")
					 : format_unpack(from, &u, err);
	if (k->g.failed)
		return s;
	if (s == BASE_OK)
		s = format_kineto_read(&u.source, &visitor, &counts, err);
	counts.is_cut |= s == BASE_OK && u.cut;
	format_unpack_fini(&u);
	if (from->is_found && (s == BASE_ERR_FOREIGN || (s == BASE_OK && k->g.nr == before))) {
		k->g.nr_ranks--;
		++*nr_others;
		return BASE_OK;
	}
	if (s == BASE_OK)
		k->g.rank[k->rank].number =
			k->number >= 0 ? k->number : kineto_rank_of_name(from->name);
	kineto_sum(all, &counts);
	return s == BASE_OK || !from->next ? s : base_cause(err, s, "reading %s", from->name);
}

static void kineto_notes(const struct kineto *k, const struct kineto_counts *counts,
	uint64_t nr_others, uint64_t nr_unsaid, struct base_str *notes)
{
	if (counts->is_cut)
		base_str_add(notes,
			k->g.nr_ranks > 1 ? "a file is cut short: imported as far as it goes\n"
					  : "the file is cut short: imported as far as it goes\n");
	format_note_count(notes, counts->nr_damaged,
		"%s {item of the list is no event|items of the list are no events}: left out");
	format_note_count(
		notes, counts->nr_too_long, "%s event is longer than 16 MiB: read no further");
	format_note_count(notes, nr_others,
		"%s {file of the directory is|files of the directory are} of something else: left "
		"out");
	if (k->g.nr_ranks > 1)
		format_note_count(notes, nr_unsaid,
			"%s {file does|files do} not say which rank {it is|they are} of: numbered "
			"in the order of their names");
}

enum base_status format_import_pytorch(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct kineto k = {0};
	struct kineto_counts counts = {0};
	uint64_t nr_others = 0, nr_unsaid = 0;
	enum base_status s = format_gpu_trace_init(&k.g)
				     ? BASE_OK
				     : base_fail(err, BASE_ERR_NOMEM, "out of memory");
	k.g.step = opts->step;
	for (const struct format_source *f = from; f && s == BASE_OK; f = f->next)
		s = kineto_read_rank(&k, f, &counts, &nr_others, err);
	if (s == BASE_OK && !k.g.failed && !k.g.nr)
		s = base_fail(err, BASE_ERR_FOREIGN,
			"none of its %llu {event|events} is of PyTorch's profiler (operator, "
			"runtime call, kernel): if it is another tool's Trace Event JSON, try "
			"'longpole import chrome'",
			(unsigned long long)counts.nr_events);
	if (s == BASE_OK)
		s = kineto_number_ranks(&k.g, &nr_unsaid, err);
	if (s == BASE_OK)
		s = format_gpu_convert(&k.g, from ? from->name : "", to, notes, err);
	if (s == BASE_OK) {
		kineto_notes(&k, &counts, nr_others, nr_unsaid, notes);
		trace_writer_count(to, TRACE_DIAG_import_skipped,
			counts.nr_damaged + k.g.counts.nr_damaged + k.g.counts.nr_negative);
		trace_writer_count(to, TRACE_DIAG_import_cut, counts.is_cut);
	}
	base_str_fini(&k.text);
	format_gpu_trace_fini(&k.g);
	return s;
}
