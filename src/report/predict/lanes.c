/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.c - the longest path with edits, for as many scenarios as anybody asks. Builders that share
 * a pass share what it told the graph (graph/tape.h), from which other scenarios follow without the
 * trace being read again, and the answers: none is made twice.
 */
#include "report/predict/predictor.h"

#include "graph/tape.h"

#include <string.h>

enum { LANES_A_PASS = GRAPH_LANES_MAX - 1 };
#define TAPE_BYTES_MAX    ((size_t)160 << 20)
#define ANSWERS_BYTES_MAX ((size_t)64 << 20)

/* ---- the tape -------------------------------------------------------------------------------- */

enum base_status report_shared_tape(struct report_shared_pass *shared, const struct report_run *run,
	const struct graph_sink *next, const struct graph_sink **ret, struct base_err *err)
{
	shared->tape = graph_tape_free(shared->tape); /* of a pass that failed */
	*ret = next;
	if (run->from_ns || run->to_ns || run->start || run->end || run->connection)
		return BASE_OK;
	enum base_status s = graph_tape_new(next, TAPE_BYTES_MAX, &shared->tape, err);
	if (s == BASE_OK)
		*ret = graph_tape_sink(shared->tape);
	return s;
}

void report_shared_lanes_fini(struct report_shared_pass *shared)
{
	shared->tape = graph_tape_free(shared->tape);
	shared->arena = base_arena_free(shared->arena);
	base_map_fini(&shared->number);
	base_free(shared->lane);
	shared->lane = NULL;
	shared->nr_lanes = shared->lanes_capacity = 0;
}

/* Is the graph that the tape made the one that the pass made? Where a window or a program's start
 * cut it, it is another. */
static enum base_status is_of_pass(
	const struct report_shared_pass *shared, struct graph *g, bool *ret, struct base_err *err)
{
	struct graph_lane_result made, played;
	enum base_status s = graph_lane(model_graph(shared->m), 0, &made, err);
	if (s == BASE_OK)
		s = graph_lane(g, 0, &played, err);
	if (s == BASE_OK)
		*ret = made.found == played.found && made.length_ns == played.length_ns &&
		       made.start_ns == played.start_ns && made.end_ns == played.end_ns &&
		       made.nr_states == played.nr_states;
	return s;
}

/* *ret stays NULL where there is no tape, or none that tells it all. */
static enum base_status lanes_by_tape(const struct report_run *run, const char *what,
	const struct graph_scenario *lane, size_t nr, struct graph **ret, struct base_err *err)
{
	struct report_shared_pass *shared = run->shared;
	bool same = false;
	if (!shared || !shared->m || !shared->tape || !graph_tape_is_whole(shared->tape))
		return BASE_OK;
	uint64_t all = trace_reader_record_count(run->reader);
	if (run->progress)
		run->progress(run->progress_ctx, what, 0, all);
	struct graph_options o = {.size = sizeof o,
		.scenario = lane,
		.nr_scenarios = (unsigned)nr,
		.max_memory_bytes = run->max_memory_bytes};
	enum base_status s =
		graph_tape_play(shared->tape, &o, model_end_actor(shared->m), ret, err);
	if (s == BASE_OK)
		s = is_of_pass(shared, *ret, &same, err);
	if (s != BASE_OK || same)
		return s == BASE_OK ? s : base_cause(err, s, "while %s", what);
	*ret = graph_free(*ret);
	shared->tape = graph_tape_free(shared->tape);
	return BASE_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

struct lanes_key {
	uint64_t hi, lo;
};

static struct lanes_key lanes_key_of(const struct graph_scenario *lane)
{
	struct lanes_key k = {.hi = lane->nr_edits};
	for (size_t i = 0; i < lane->nr_edits; i++) {
		const struct graph_edit *e = &lane->edit[i];
		uint64_t factor;
		memcpy(&factor, &e->factor, sizeof factor);
		const uint64_t part[] = {(uint64_t)e->kind << 32 | e->id, factor, e->units};
		for (size_t n = 0; n < BASE_COUNT(part); n++) {
			k.hi = base_hash_u64(k.hi ^ part[n]);
			k.lo = base_hash_u64(k.lo + base_hash_u64(part[n] + 0x9e3779b97f4a7c15));
		}
	}
	return k;
}

/* It leaves everything as it is: that is the run itself. */
static bool edits_nothing(const struct graph_scenario *lane)
{
	for (size_t i = 0; i < lane->nr_edits; i++)
		if (lane->edit[i].kind != GRAPH_EDIT_SCALE_STATE || lane->edit[i].factor != 1)
			return false;
	return true;
}

static enum base_status read_lane(struct graph *g, unsigned lane, struct base_arena *arena,
	struct report_lane *ret, struct base_err *err)
{
	struct graph_lane_result r;
	enum base_status s = graph_lane(g, lane, &r, err);
	if (s != BASE_OK)
		return s;
	struct report_lane_state *state = report_array(arena, r.nr_states, sizeof *state);
	if (!state)
		return report_no_memory(err);
	for (size_t i = 0; i < r.nr_states; i++)
		state[i] = (struct report_lane_state){.state = r.state[i].state,
			.path_ns = r.state[i].path_ns,
			.observed_ns = r.state[i].observed_ns};
	*ret = (struct report_lane){
		.length_ns = r.length_ns, .state = state, .nr_states = r.nr_states};
	return BASE_OK;
}

static bool lanes_known(const struct report_shared_pass *shared, const struct graph_scenario *lane,
	struct report_lane *ret)
{
	struct lanes_key k = lanes_key_of(lane);
	uint64_t number;
	if (!shared || !base_map_get(&shared->number, k.hi, k.lo, &number))
		return false;
	*ret = shared->lane[number];
	return true;
}

/* Where answers are kept: with the pass that is shared, while that does not take too much. */
static struct base_arena *lanes_arena(struct report_shared_pass *shared, struct base_arena *own)
{
	if (shared && !shared->arena)
		shared->arena = base_arena_new(0);
	return shared && shared->arena && base_arena_used_bytes(shared->arena) < ANSWERS_BYTES_MAX
		       ? shared->arena
		       : own;
}

static enum base_status lanes_keep(struct report_shared_pass *shared,
	const struct graph_scenario *lane, const struct report_lane *answer, struct base_err *err)
{
	struct lanes_key k = lanes_key_of(lane);
	enum base_status s = base_grow(
		&shared->lane, &shared->lanes_capacity, shared->nr_lanes + 1, sizeof *shared->lane);
	if (s == BASE_OK)
		s = base_map_put(&shared->number, k.hi, k.lo, shared->nr_lanes);
	if (s != BASE_OK)
		return report_no_memory(err);
	shared->lane[shared->nr_lanes++] = *answer;
	return BASE_OK;
}

/* One pass, over the tape or the trace. of[i]: which answer that lane's is. */
static enum base_status lanes_pass(const struct report_run *run, const char *what,
	const struct graph_scenario *lane, const size_t *of, size_t nr, struct report_lane *ret,
	struct base_arena *own, struct base_err *err)
{
	struct report_pass_options opts = {.scenario = lane, .nr_scenarios = (unsigned)nr};
	struct model *m = NULL;
	struct graph *played = NULL;
	enum base_status s = lanes_by_tape(run, what, lane, nr, &played, err);
	if (s == BASE_OK && !played)
		s = report_pass(run, what, &opts, &m, err);
	struct graph *g = played ? played : m ? model_graph(m) : NULL;
	struct base_arena *arena = lanes_arena(run->shared, own);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		s = read_lane(g, (unsigned)i + 1, arena, &ret[of[i]], err);
		if (s == BASE_OK && arena != own)
			s = lanes_keep(run->shared, &lane[i], &ret[of[i]], err);
	}
	graph_free(played);
	model_free(m);
	return s;
}

enum base_status report_lanes(const struct report_run *run, const char *what,
	const struct graph_scenario *lane, size_t nr, struct report_lane *ret,
	struct base_arena *arena, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t at = 0; s == BASE_OK && at < nr;) {
		struct graph_scenario fresh[LANES_A_PASS];
		size_t of[LANES_A_PASS], nr_fresh = 0;
		for (; s == BASE_OK && at < nr && nr_fresh < LANES_A_PASS; at++) {
			if (lanes_known(run->shared, &lane[at], &ret[at]))
				continue;
			if (run->shared && run->shared->m && edits_nothing(&lane[at])) {
				s = read_lane(model_graph(run->shared->m), 0, arena, &ret[at], err);
				continue;
			}
			of[nr_fresh] = at;
			fresh[nr_fresh++] = lane[at];
		}
		if (s == BASE_OK && nr_fresh)
			s = lanes_pass(run, what, fresh, of, nr_fresh, ret, arena, err);
	}
	return s;
}

void report_lane_sums(const struct report_lane *lane, const struct report_index *ix,
	double *topic_ns, double *observed_ns)
{
	for (uint32_t t = 0; t < ix->nr_topics; t++) {
		topic_ns[t] = 0;
		if (observed_ns)
			observed_ns[t] = 0;
	}
	for (size_t i = 0; i < lane->nr_states; i++) {
		const struct report_lane_state *p = &lane->state[i];
		if (p->state >= ix->nr_states)
			continue;
		topic_ns[ix->topic_of[p->state]] += p->path_ns;
		if (observed_ns)
			observed_ns[ix->topic_of[p->state]] += p->observed_ns;
	}
}
