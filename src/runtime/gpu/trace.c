/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - slices and lanes are gathered. */
#include "runtime/gpu/gpu.h"

#include <fnmatch.h>
#include <string.h>

bool format_gpu_trace_init(struct gpu_trace *g)
{
	*g = (struct gpu_trace){.texts = base_strtab_new()};
	g->failed = !g->texts;
	return !g->failed;
}

/* All but lanes, texts and counts: what was written is as large again. */
static void gpu_trace_forget(struct gpu_trace *g)
{
	base_free(g->slice);
	base_free(g->more);
	base_free(g->edge);
	base_free(g->flow);
	base_free(g->need);
	base_free(g->met);
	g->slice = NULL;
	g->more = NULL;
	g->edge = NULL;
	g->flow = NULL;
	g->need = NULL;
	g->met = NULL;
	base_map_fini(&g->by_lane);
	base_map_fini(&g->calls);
	base_map_fini(&g->syncs);
	base_map_fini(&g->strings);
}

void format_gpu_trace_fini(struct gpu_trace *g)
{
	for (size_t i = 0; i < g->nr_lanes; i++)
		base_free(g->lane[i].launch_ns);
	base_strtab_free(g->texts);
	base_free(g->lane);
	base_free(g->rank);
	gpu_trace_forget(g);
}

uint32_t format_gpu_text(struct gpu_trace *g, const char *text)
{
	uint32_t id = 0;
	g->failed |= base_strtab_intern(g->texts, text, strlen(text), &id) != BASE_OK;
	return id;
}

static uint64_t gpu_lane_key(bool is_stream, uint32_t rank, int64_t pid)
{
	return base_hash_u64((uint64_t)pid) ^ ((uint64_t)rank << 1 | is_stream);
}

uint32_t format_gpu_lane_find(
	const struct gpu_trace *g, bool is_stream, uint32_t rank, int64_t pid, int64_t tid)
{
	uint64_t known;
	return base_map_get(&g->by_lane, gpu_lane_key(is_stream, rank, pid), (uint64_t)tid, &known)
		       ? (uint32_t)known
		       : GPU_NONE;
}

static uint32_t gpu_add_lane(struct gpu_trace *g, struct gpu_lane lane)
{
	if (base_grow(&g->lane, &g->lane_capacity, g->nr_lanes + 1, sizeof *g->lane) != BASE_OK) {
		g->failed = true;
		return GPU_NONE;
	}
	g->lane[g->nr_lanes++] = lane;
	return (uint32_t)g->nr_lanes - 1;
}

uint32_t format_gpu_lane_meeting(struct gpu_trace *g, uint32_t group)
{
	return gpu_add_lane(g, (struct gpu_lane){.is_meeting = true, .name = group});
}

void format_gpu_add_rank(struct gpu_trace *g, int64_t number, const char *file)
{
	struct gpu_rank r = {
		.number = number, .name = format_gpu_text(g, file), .main_lane = GPU_NONE};
	if (base_grow(&g->rank, &g->rank_capacity, g->nr_ranks + 1, sizeof *g->rank) != BASE_OK)
		g->failed = true;
	else
		g->rank[g->nr_ranks++] = r;
}

uint32_t format_gpu_lane(
	struct gpu_trace *g, bool is_stream, uint32_t rank, int64_t pid, int64_t tid)
{
	uint32_t known = format_gpu_lane_find(g, is_stream, rank, pid, tid);
	if (known != GPU_NONE)
		return known;
	uint32_t lane = gpu_add_lane(
		g, (struct gpu_lane){.is_stream = is_stream, .rank = rank, .pid = pid, .tid = tid});
	if (lane != GPU_NONE && base_map_put(&g->by_lane, gpu_lane_key(is_stream, rank, pid),
					(uint64_t)tid, lane) != BASE_OK)
		g->failed = true;
	return lane;
}

void format_gpu_add(struct gpu_trace *g, struct gpu_slice s)
{
	g->too_many |= g->nr >= GPU_SLICES_MAX;
	if (g->failed || g->too_many || s.lane == GPU_NONE)
		return;
	if (base_grow(&g->slice, &g->capacity, g->nr + 1, sizeof *g->slice) != BASE_OK)
		g->failed = true;
	else
		g->slice[g->nr++] = s;
}

uint32_t format_gpu_add_more(struct gpu_trace *g, struct gpu_more m)
{
	if (base_grow(&g->more, &g->more_capacity, g->nr_more + 1, sizeof *g->more) != BASE_OK) {
		g->failed = true;
		return 0;
	}
	g->more[g->nr_more++] = m;
	return (uint32_t)g->nr_more;
}

void format_gpu_add_edge(struct gpu_trace *g, struct gpu_edge e)
{
	if (g->failed)
		return;
	if (base_grow(&g->edge, &g->edge_capacity, g->nr_edges + 1, sizeof *g->edge) != BASE_OK)
		g->failed = true;
	else
		g->edge[g->nr_edges++] = e;
}

void format_gpu_add_need(struct gpu_trace *g, struct gpu_need n)
{
	if (g->failed)
		return;
	if (base_grow(&g->need, &g->need_capacity, g->nr_needs + 1, sizeof *g->need) != BASE_OK)
		g->failed = true;
	else
		g->need[g->nr_needs++] = n;
}

uint8_t format_gpu_call_of(const char *name)
{
	static const char *const prefix[] = {"cuda", "hip", "cu", "musa", "mtia", ""};
	static const struct {
		const char *name;
		uint8_t what;
	} calls[] = {
#define X(name, what) {name, what},
#include "runtime/gpu/gpu_calls.def"
	};
	for (size_t i = 0; i < BASE_COUNT(prefix); i++) {
		size_t n = strlen(prefix[i]);
		if (strncmp(name, prefix[i], n) != 0)
			continue;
		for (size_t k = 0; k < BASE_COUNT(calls); k++)
			if (!strcmp(name + n, calls[k].name))
				return calls[k].what;
	}
	return GPU_CALL_OTHER;
}

static bool gpu_begins(const char *text, const char *word)
{
	return !strncmp(text, word, strlen(word));
}

bool format_gpu_is_collective(const char *name)
{
	static const char *const begin[] = {"nccl", "rccl", "hccl", "oneccl", "all-reduce",
		"all-gather", "reduce-scatter", "all-to-all", "collective-"};
	for (size_t i = 0; i < BASE_COUNT(begin); i++)
		if (gpu_begins(name, begin[i]))
			return true;
	return false;
}

uint8_t format_gpu_note_of(const struct gpu_trace *g, const char *name)
{
	if (g->step ? !fnmatch(g->step, name, 0) : gpu_begins(name, "ProfilerStep#"))
		return GPU_NOTE_STEP;
	return gpu_begins(name, "enumerate(DataLoader)") ? GPU_NOTE_DATA : GPU_NOTE_PLAIN;
}

enum base_status format_gpu_convert(struct gpu_trace *g, const char *name, struct trace_writer *to,
	struct base_str *notes, struct base_err *err)
{
	struct format_machines *m = NULL;
	if (g->too_many)
		return base_fail(err, BASE_ERR_LIMIT, "more than %d slices: profile fewer steps",
			GPU_SLICES_MAX);
	m = format_machines_new();
	if (m && !g->failed)
		format_gpu_order(g);
	if (m && !g->failed && !g->stranger)
		format_gpu_write(g, m);
	enum base_status s = BASE_OK;
	if (!m || g->failed)
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory for slices");
	else if (g->stranger)
		s = base_fail(err, BASE_ERR_FOREIGN,
			"%s takes part in no collective with the other files, and its times do not "
			"overlap with those of %s: they are not of one run, or their clocks differ",
			base_strtab_get(g->texts, g->rank[g->stranger - 1].name),
			base_strtab_get(g->texts, g->rank[0].name));
	gpu_trace_forget(g);
	if (s == BASE_OK)
		s = format_machines_write(m, name, to, err);
	if (s == BASE_OK)
		format_gpu_notes(g, notes);
	format_machines_free(m);
	return s;
}
