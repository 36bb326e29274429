/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - lanes as state machines. A thread is in the state of its innermost slice, a stream in that of the piece of work
 * that it does. A dependence is one unit, with a key of its own, in a queue: its way and its lanes say in which.
 *
 * One more machine ends when all main threads and all streams have: the path ends there, whatever helpers' threads do then.
 */
#include "runtime/gpu/gpu.h"

#include "base/sort.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	LONG_GAP_NS = 30000
}; /* for that, something else is to blame than the device between two pieces of work */

/* At one time in this order: what ends, before what begins. A stream has ended something (put) before it takes what comes next;
 * a thread has waited (take) before its call gives something away (give), and that before the next call sees what is over (look). */
enum gpu_turn {
	GPU_TURN_PUT,
	GPU_TURN_TAKE,
	GPU_TURN_GIVE,
	GPU_TURN_LOOK,
	GPU_TURN_STATE,
	GPU_TURN_WAIT
};
struct gpu_action {
	int64_t time_ns;
	int64_t available_ns; /* of a take: the last to come goes first, it explains the wait */
	uint64_t key;
	uint32_t id;                   /* queue or state */
	uint32_t order : 29, turn : 3; /* (sorts of what is larger than 32 bytes take longer) */
};
struct gpu_writer {
	struct gpu_trace *g;
	struct format_machines *m;
	struct gpu_action *action;
	size_t nr, capacity;
	struct base_map states, queues, transfers;
	struct base_str text;
	uint32_t *queue;                         /* by edge */
	size_t *by_lane, *first_from, *first_to; /* edges by lane: those from it, those to it */
};

/* ---- names ----------------------------------------------------------------------------------- */

static const char *gpu_write_text(struct gpu_writer *w)
{
	w->g->failed |= w->text.failed;
	return base_str_text(&w->text);
}

static void gpu_add_lane_name(struct gpu_writer *w, uint32_t lane)
{
	const struct gpu_lane *l = &w->g->lane[lane];
	const char *name = base_strtab_get(w->g->texts, l->name);
	if (l->is_meeting) {
		base_str_addf(&w->text, *name ? "meetings of group %s" : "meetings", name);
		return;
	}
	if (l->is_stream && l->tid >= 0)
		base_str_addf(&w->text, "stream %" PRId64, l->tid);
	else if (l->is_stream)
		base_str_add(&w->text, "stream");
	else if (*name)
		base_str_add(&w->text, name);
	else if (l->tid >= INT32_MIN)
		base_str_addf(&w->text, "thread %" PRId64, l->tid);
	else
		base_str_add(
			&w->text, base_strtab_get(w->g->texts, (uint32_t)(l->tid - INT64_MIN)));
	if (l->is_stream && l->pid >= 0)
		base_str_addf(&w->text, " of device %" PRId64, l->pid);
	if (w->g->nr_ranks > 1)
		base_str_addf(&w->text, ", rank %" PRId64, w->g->rank[l->rank].number);
}

/* What the engine of backward passes runs is called after what it runs. */
static const char *gpu_short(const char *name)
{
	static const char engine[] = "autograd::engine::evaluate_function: ";
	return strncmp(name, engine, sizeof engine - 1) != 0 ? name : name + sizeof engine - 1;
}

/* The state of doing `name` for `outer`, made when new. */
static uint32_t gpu_state(
	struct gpu_writer *w, enum trace_work_type type, uint32_t name, uint32_t outer)
{
	uint64_t known;
	const char *inner = gpu_short(base_strtab_get(w->g->texts, name)),
		   *around = gpu_short(base_strtab_get(w->g->texts, outer));
	if (base_map_get(&w->states, (uint64_t)type << 32 | name, outer, &known))
		return (uint32_t)known;
	base_str_reset(&w->text);
	base_str_add(&w->text, inner);
	if (!strcmp(inner, around)) /* the operator itself */
		around = "";
	if (*around)
		base_str_addf(&w->text, ", in %s", around);
	uint32_t state = format_machines_state(w->m, gpu_write_text(w));
	format_machines_work(w->m, type, state, 0, inner, around);
	w->g->failed |=
		base_map_put(&w->states, (uint64_t)type << 32 | name, outer, state) != BASE_OK;
	return state;
}

static uint32_t gpu_state_named(struct gpu_writer *w, enum trace_work_type type, const char *name)
{
	return gpu_state(w, type, format_gpu_text(w->g, name), 0);
}

static enum trace_work_type gpu_work_of_way(enum gpu_way way)
{
	static const enum trace_work_type work[] = {
		[GPU_WAY_LAUNCH] = TRACE_WORK_launch,
		[GPU_WAY_SYNC] = TRACE_WORK_sync,
		[GPU_WAY_ROOM] = TRACE_WORK_launch,
		[GPU_WAY_EVENT] = TRACE_WORK_gap,
		[GPU_WAY_HAND] = TRACE_WORK_host,
		[GPU_WAY_MEET] = TRACE_WORK_peer,
		[GPU_WAY_END] = TRACE_WORK_idle,
	};
	return work[way];
}

static uint32_t gpu_queue(struct gpu_writer *w, const struct gpu_edge *e)
{
	/* launches come from any thread, and it is of no interest which one synchronises */
	uint32_t from = e->way == GPU_WAY_LAUNCH ? GPU_NONE : e->from;
	uint32_t to = e->way == GPU_WAY_SYNC || e->way == GPU_WAY_ROOM ? GPU_NONE : e->to;
	uint64_t known, hi = (uint64_t)e->way << 32 | from;
	if (base_map_get(&w->queues, hi, to, &known))
		return (uint32_t)known;
	base_str_reset(&w->text);
	switch ((enum gpu_way)e->way) {
	case GPU_WAY_LAUNCH:
		base_str_add(&w->text, "launches for ");
		gpu_add_lane_name(w, e->to);
		break;
	case GPU_WAY_SYNC:
	case GPU_WAY_ROOM:
		base_str_add(
			&w->text, e->way == GPU_WAY_SYNC ? "work of " : "room for launches in ");
		gpu_add_lane_name(w, e->from);
		break;
	case GPU_WAY_EVENT:
	case GPU_WAY_HAND:
	case GPU_WAY_MEET:
	case GPU_WAY_END:
		base_str_add(&w->text, e->way == GPU_WAY_EVENT  ? "event of "
				       : e->way == GPU_WAY_MEET ? "arrival from "
								: "hand-off of ");
		gpu_add_lane_name(w, e->from);
		base_str_add(&w->text, " for ");
		gpu_add_lane_name(w, e->to);
		break;
	}
	uint32_t queue = format_machines_queue(w->m, gpu_write_text(w));
	enum trace_work_type work = gpu_work_of_way(e->way);
	if (e->way == GPU_WAY_EVENT && w->g->lane[e->from].has_collectives)
		work = TRACE_WORK_communication;
	format_machines_work(w->m, work, 0, queue, gpu_write_text(w), "");
	w->g->failed |= base_map_put(&w->queues, hi, to, queue) != BASE_OK;
	return queue;
}

/* ---- actions --------------------------------------------------------------------------------- */

static void gpu_act(struct gpu_writer *w, struct gpu_action a)
{
	if (base_grow(&w->action, &w->capacity, w->nr + 1, sizeof *w->action) != BASE_OK) {
		w->g->failed = true;
		return;
	}
	a.order = (uint32_t)w->nr & ((1u << 29) - 1);
	w->action[w->nr++] = a;
}

static void gpu_enter(struct gpu_writer *w, int64_t time_ns, uint32_t state)
{
	gpu_act(w, (struct gpu_action){.time_ns = time_ns, .id = state, .turn = GPU_TURN_STATE});
}

/* What it gives to others and takes from them. */
static void gpu_act_edges(struct gpu_writer *w, uint32_t lane)
{
	const struct gpu_trace *g = w->g;
	for (size_t i = w->first_from[lane]; i < w->first_from[lane + 1]; i++) {
		size_t ix = w->by_lane[i];
		bool ends = g->lane[lane].is_stream && g->edge[ix].way != GPU_WAY_MEET;
		gpu_act(w, (struct gpu_action){.time_ns = g->edge[ix].from_ns,
				   .id = w->queue[ix],
				   .key = ix + 1,
				   .turn = ends ? GPU_TURN_PUT : GPU_TURN_GIVE});
	}
	for (size_t i = w->first_to[lane]; i < w->first_to[lane + 1]; i++) {
		size_t ix = w->by_lane[g->nr_edges + i];
		const struct gpu_edge *e = &g->edge[ix];
		/* a rank comes to a meeting before the meeting lets it go on */
		bool comes_first = g->lane[lane].is_stream ? e->way == GPU_WAY_MEET
							   : !g->lane[lane].is_meeting;
		bool looks = comes_first && e->wait_ns >= e->to_ns;
		if (e->wait_ns < e->to_ns)
			gpu_act(w, (struct gpu_action){.time_ns = e->wait_ns,
					   .id = w->queue[ix],
					   .turn = GPU_TURN_WAIT});
		gpu_act(w, (struct gpu_action){.time_ns = e->to_ns,
				   .available_ns = e->from_ns,
				   .id = w->queue[ix],
				   .key = ix + 1,
				   .turn = looks ? GPU_TURN_LOOK : GPU_TURN_TAKE});
	}
}

static int gpu_by_turn(const void *a, const void *b)
{
	const struct gpu_action *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	if (x->available_ns != y->available_ns)
		return x->available_ns > y->available_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* In order of time; a machine that has taken says anew which state it is in. */
static void gpu_flush(struct gpu_writer *w, uint32_t actor)
{
	uint32_t state = 0;
	base_sort_runs(w->action, w->nr, sizeof *w->action, gpu_by_turn);
	for (size_t i = 0; i < w->nr; i++) {
		const struct gpu_action *a = &w->action[i];
		static const enum format_machine_verb verb[] = {
			[GPU_TURN_PUT] = FORMAT_MACHINE_put,
			[GPU_TURN_TAKE] = FORMAT_MACHINE_take,
			[GPU_TURN_GIVE] = FORMAT_MACHINE_put,
			[GPU_TURN_LOOK] = FORMAT_MACHINE_take,
			[GPU_TURN_STATE] = FORMAT_MACHINE_state,
			[GPU_TURN_WAIT] = FORMAT_MACHINE_wait,
		};
		bool is_last = i + 1 == w->nr || a[1].time_ns != a->time_ns;
		if (a->turn == GPU_TURN_STATE && !is_last && a[1].turn == GPU_TURN_STATE)
			continue; /* of no length */
		if (a->turn == GPU_TURN_STATE)
			state = a->id;
		format_machines_add(
			w->m, (uint64_t)a->time_ns, actor, verb[a->turn], a->id, a->key);
		bool takes = a->turn == GPU_TURN_TAKE || a->turn == GPU_TURN_LOOK;
		if (takes && state &&
			(is_last || a[1].turn == GPU_TURN_GIVE || a[1].turn == GPU_TURN_WAIT))
			format_machines_add(
				w->m, (uint64_t)a->time_ns, actor, FORMAT_MACHINE_state, state, 0);
	}
	w->nr = 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Sizes that begin with the same three digits are one. */
static int64_t gpu_round(int64_t n)
{
	int64_t unit = 1;
	while (n / unit >= 1000)
		unit *= 10;
	return n / unit * unit;
}

/* A collective operation's state says how much it moves: what another link or more ranks would do depends on that. */
static uint32_t gpu_collective(struct gpu_writer *w, const struct gpu_slice *s, uint32_t outer)
{
	struct gpu_trace *g = w->g;
	const struct gpu_more *o = s->more ? &g->more[s->more - 1] : NULL;
	int64_t nr_bytes = o ? gpu_round(o->nr_bytes) : 0;
	uint64_t known;
	if (!nr_bytes)
		return gpu_state(w, TRACE_WORK_communication, s->name, outer);
	base_str_reset(&w->text);
	base_str_addf(&w->text, "%s of ", base_strtab_get(g->texts, s->name));
	base_str_add_size(&w->text, (uint64_t)nr_bytes);
	uint32_t name = format_gpu_text(g, gpu_write_text(w)),
		 state = gpu_state(w, TRACE_WORK_communication, name, outer);
	if (base_map_get(&w->transfers, state, (uint64_t)o->nr_ranks, &known))
		return state;
	g->failed |= base_map_put(&w->transfers, state, (uint64_t)o->nr_ranks, 1) != BASE_OK;
	format_machines_transfer(w->m, state, (uint64_t)nr_bytes, (uint64_t)o->nr_ranks,
		base_strtab_get(g->texts, o->operation));
	return state;
}

static void gpu_write_stream(struct gpu_writer *w, uint32_t lane)
{
	static const enum trace_work_type work[] = {
		[GPU_KERNEL] = TRACE_WORK_compute, [GPU_COPY] = TRACE_WORK_copy};
	struct gpu_trace *g = w->g;
	const struct gpu_lane *l = &g->lane[lane];
	gpu_enter(w, g->begin_ns, gpu_state_named(w, TRACE_WORK_idle, "idle"));
	for (size_t i = l->first; i < l->first + l->nr; i++) {
		const struct gpu_slice *s = &g->slice[i],
				       *call = format_gpu_call(g, l->rank, s->correlation);
		const struct gpu_slice *next = i + 1 < l->first + l->nr ? s + 1 : NULL;
		uint32_t outer = call ? call->outer : 0;
		gpu_enter(w, s->begin_ns,
			s->what == GPU_COLLECTIVE ? gpu_collective(w, s, outer)
						  : gpu_state(w, work[s->what], s->name, outer));
		bool follows = next && next->begin_ns - s->end_ns < LONG_GAP_NS &&
			       format_gpu_call(g, l->rank, next->correlation);
		if (!next || next->begin_ns > s->end_ns)
			gpu_enter(w, s->end_ns,
				follows ? gpu_state_named(
						  w, TRACE_WORK_gap, "between two pieces of work")
					: gpu_state_named(w, TRACE_WORK_idle,
						  next ? "idle, not known why" : "idle"));
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

struct gpu_stack {
	const struct gpu_slice *open[GPU_DEPTH_MAX];
	int64_t end_ns[GPU_DEPTH_MAX]; /* within those around it */
	unsigned nr, nr_data;          /* data: slices that load data */
};

static enum trace_work_type gpu_work_of_call(const struct gpu_trace *g, const struct gpu_slice *s)
{
	(void)g;
	if (s->what >= GPU_CALL_DEVICE && s->what <= GPU_CALL_EVENT)
		return TRACE_WORK_sync;
	return s->more ? TRACE_WORK_launch : TRACE_WORK_host;
}

/* What the thread is at now. Annotations and Python functions are around operators: what is in none is named by the innermost of them. */
static uint32_t gpu_shown(struct gpu_writer *w, const struct gpu_stack *k, bool works)
{
	const struct gpu_slice *s = k->nr ? k->open[k->nr - 1] : NULL;
	enum trace_work_type type = k->nr_data ? TRACE_WORK_data : TRACE_WORK_host;
	if (s && s->kind == GPU_CALL)
		return gpu_state(w, type == TRACE_WORK_data ? type : gpu_work_of_call(w->g, s),
			s->name, s->outer);
	if (s && s->kind == GPU_OP)
		return gpu_state(w, type, s->name, s->outer);
	if (s && s->what != GPU_NOTE_STEP)
		return gpu_state(w, type, s->name, s->outer);
	return works ? gpu_state_named(w, TRACE_WORK_host, "between operators")
		     : gpu_state_named(w, TRACE_WORK_idle, "idle");
}

static void gpu_close_until(struct gpu_writer *w, struct gpu_stack *k, int64_t time_ns, bool works)
{
	while (k->nr && k->end_ns[k->nr - 1] <= time_ns) {
		const struct gpu_slice *s = k->open[--k->nr];
		k->nr_data -= s->kind == GPU_NOTE && s->what == GPU_NOTE_DATA;
		int64_t end_ns = k->end_ns[k->nr];
		if (!k->nr || k->end_ns[k->nr - 1] > end_ns)
			gpu_enter(w, end_ns, gpu_shown(w, k, works));
	}
}

static void gpu_write_thread(struct gpu_writer *w, uint32_t lane)
{
	struct gpu_trace *g = w->g;
	const struct gpu_lane *l = &g->lane[lane];
	bool is_main = g->rank[l->rank].main_lane == lane, works = is_main || l->is_backward;
	struct gpu_stack k = {0};
	gpu_enter(w, g->begin_ns, gpu_shown(w, &k, works));
	for (size_t i = l->first; i < l->first + l->nr; i++) {
		const struct gpu_slice *s = &g->slice[i];
		if (s->begin_ns > g->end_ns)
			break;
		gpu_close_until(w, &k, s->begin_ns, works);
		if (is_main && s->kind == GPU_NOTE && s->what == GPU_NOTE_STEP) {
			const char *name = base_strtab_get(g->texts, s->name);
			uint64_t rank = (uint64_t)g->rank[l->rank].number;
			format_machines_step(w->m, (uint64_t)s->begin_ns, true, name, rank);
			format_machines_step(w->m, (uint64_t)s->end_ns, false, name, rank);
		}
		if (k.nr == GPU_DEPTH_MAX || s->end_ns == s->begin_ns)
			continue;
		int64_t around_ns = k.nr ? k.end_ns[k.nr - 1] : g->end_ns;
		k.end_ns[k.nr] = s->end_ns < around_ns ? s->end_ns : around_ns;
		k.open[k.nr++] = s;
		k.nr_data += s->kind == GPU_NOTE && s->what == GPU_NOTE_DATA;
		gpu_enter(w, s->begin_ns, gpu_shown(w, &k, works));
	}
	gpu_close_until(w, &k, g->end_ns, works);
}

/* The outermost operator around each call and operator; and which calls started something. */
static void gpu_find_outer(struct gpu_trace *g, const struct gpu_lane *l)
{
	int64_t end_ns = INT64_MIN;
	uint32_t outer = 0;
	for (size_t i = l->first; i < l->first + l->nr; i++) {
		struct gpu_slice *s = &g->slice[i];
		if (s->begin_ns >= end_ns)
			outer = 0;
		if (!outer && s->kind == GPU_OP) {
			outer = s->name;
			end_ns = s->end_ns;
		}
		s->outer = outer;
	}
}

static void gpu_mark_launches(struct gpu_trace *g)
{
	uint64_t ix;
	for (size_t i = 0; i < g->nr; i++)
		if (g->slice[i].kind == GPU_DEVICE && g->slice[i].correlation &&
			base_map_get(&g->calls, g->lane[g->slice[i].lane].rank,
				(uint64_t)g->slice[i].correlation, &ix))
			g->slice[ix].more = 1;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Two lists of edges: by their giver, behind it by their taker. */
static bool gpu_list_edges(struct gpu_writer *w)
{
	struct gpu_trace *g = w->g;
	size_t nr = g->nr_edges, lanes = g->nr_lanes + 2;
	w->by_lane = base_alloc((2 * nr + 1) * sizeof *w->by_lane);
	w->queue = base_alloc((nr + 1) * sizeof *w->queue);
	w->first_from = base_alloc(lanes * sizeof *w->first_from);
	w->first_to = base_alloc(lanes * sizeof *w->first_to);
	size_t *fill = base_alloc(2 * lanes * sizeof *fill);
	bool room = w->by_lane && w->queue && w->first_from && w->first_to && fill;
	for (size_t i = 0; room && i < nr; i++) {
		w->queue[i] = gpu_queue(w, &g->edge[i]);
		w->first_from[g->edge[i].from + 1]++;
		w->first_to[g->edge[i].to + 1]++;
	}
	for (size_t i = 1; room && i < lanes; i++) {
		w->first_from[i] += w->first_from[i - 1];
		w->first_to[i] += w->first_to[i - 1];
	}
	for (size_t i = 0; room && i < nr; i++) {
		uint32_t from = g->edge[i].from, to = g->edge[i].to;
		w->by_lane[w->first_from[from] + fill[from]++] = i;
		w->by_lane[nr + w->first_to[to] + fill[lanes + to]++] = i;
	}
	base_free(fill);
	g->failed |= !room;
	return room && !g->failed;
}

/* Edges of later than the end of all that matters say nothing. */
static void gpu_drop_late(struct gpu_trace *g)
{
	size_t nr = 0;
	for (size_t i = 0; i < g->nr_edges; i++)
		if (g->edge[i].to_ns <= g->end_ns && g->edge[i].from_ns <= g->edge[i].to_ns)
			g->edge[nr++] = g->edge[i];
	g->nr_edges = nr;
}

/* When the lane has done all; it counts for the end of the run. */
static int64_t gpu_lane_end(const struct gpu_trace *g, const struct gpu_lane *l)
{
	int64_t last_ns = g->begin_ns;
	for (size_t k = l->first; k < l->first + l->nr; k++)
		last_ns = g->slice[k].end_ns > last_ns ? g->slice[k].end_ns : last_ns;
	return last_ns;
}

/* The machine that ends last. It is the first of all: of those that end at one time that is the path's end. */
static void gpu_write_end(struct gpu_writer *w, uint64_t *next_key)
{
	struct gpu_trace *g = w->g;
	uint32_t actor = format_machines_actor(w->m, "", "end of the run", 0);
	bool waits = false;
	gpu_enter(w, g->begin_ns, gpu_state_named(w, TRACE_WORK_idle, "idle"));
	for (uint32_t i = 0; i < g->nr_lanes; i++) {
		struct gpu_lane *l = &g->lane[i];
		if (!l->nr || (!l->is_stream && g->rank[l->rank].main_lane != i))
			continue;
		int64_t last_ns = gpu_lane_end(g, l);
		base_str_reset(&w->text);
		base_str_add(&w->text, "end of ");
		gpu_add_lane_name(w, i);
		uint32_t queue = format_machines_queue(w->m, gpu_write_text(w));
		format_machines_work(w->m, TRACE_WORK_idle, 0, queue, gpu_write_text(w), "");
		if (last_ns == g->end_ns && !waits)
			gpu_act(w, (struct gpu_action){.time_ns = g->begin_ns,
					   .id = queue,
					   .turn = GPU_TURN_WAIT});
		waits |= last_ns == g->end_ns;
		l->end_ns = last_ns;
		l->end_queue = queue;
		l->end_key = *next_key;
		gpu_act(w, (struct gpu_action){.time_ns = g->end_ns,
				   .available_ns = last_ns,
				   .id = queue,
				   .key = (*next_key)++,
				   .turn = GPU_TURN_TAKE});
	}
	gpu_flush(w, actor);
}

static void gpu_write_met(struct gpu_writer *w, const struct gpu_met *x)
{
	const struct gpu_trace *g = w->g;
	if (x->time_ns > g->end_ns)
		return;
	format_machines_meet(w->m, (uint64_t)x->time_ns,
		&(struct format_meeting){.name = base_strtab_get(g->texts, x->operation),
			.group = base_strtab_get(g->texts, x->group),
			.rank = (uint64_t)g->rank[x->rank].number,
			.last = (uint64_t)g->rank[x->last].number,
			.waited_ns = (uint64_t)x->waited_ns});
}

void format_gpu_write(struct gpu_trace *g, struct format_machines *m)
{
	struct gpu_writer w = {.g = g, .m = m};
	gpu_drop_late(g);
	gpu_mark_launches(g);
	for (size_t i = 0; i < g->nr_lanes; i++)
		if (!g->lane[i].is_stream)
			gpu_find_outer(g, &g->lane[i]);
	uint64_t next_key = g->nr_edges + 1;
	bool room = gpu_list_edges(&w);
	if (room)
		gpu_write_end(&w, &next_key);
	for (uint32_t i = 0; room && i < g->nr_lanes; i++) {
		const struct gpu_lane *l = &g->lane[i];
		if (!l->nr && !l->is_meeting)
			continue;
		base_str_reset(&w.text);
		gpu_add_lane_name(&w, i);
		/* several channels of a group have one name */
		uint32_t actor =
			format_machines_actor(m, "", gpu_write_text(&w), l->is_meeting ? i : 0);
		if (l->is_meeting)
			gpu_enter(&w, g->begin_ns, gpu_state_named(&w, TRACE_WORK_idle, "idle"));
		else if (l->is_stream)
			gpu_write_stream(&w, i);
		else
			gpu_write_thread(&w, i);
		gpu_act_edges(&w, i);
		if (l->end_key)
			gpu_act(&w, (struct gpu_action){.time_ns = l->end_ns,
					    .id = l->end_queue,
					    .key = l->end_key,
					    .turn = GPU_TURN_GIVE});
		gpu_flush(&w, actor);
	}
	for (size_t i = 0; room && i < g->nr_met; i++)
		gpu_write_met(&w, &g->met[i]);
	base_free(w.action);
	base_free(w.queue);
	base_free(w.by_lane);
	base_free(w.first_from);
	base_free(w.first_to);
	base_map_fini(&w.states);
	base_map_fini(&w.queues);
	base_map_fini(&w.transfers);
	base_str_fini(&w.text);
}

static void gpu_notes_of_ranks(const struct gpu_trace *g, struct base_str *notes)
{
	const struct gpu_counts *c = &g->counts;
	base_str_addf(notes,
		"%" PRIu32 " ranks; %" PRIu64
		" collective {operation|operations} in which several of them meet\n",
		g->nr_ranks, c->nr_meetings);
	if (c->nr_meetings)
		base_str_addf(notes,
			"clocks are shifted by up to %.6f s, so that collectives end at one time "
			"for all: nine "
			"in ten then do so within %.1f us\n",
			(double)c->shift_ns / 1e9, (double)c->apart_ns / 1e3);
	format_note_count(notes, c->nr_strangers,
		"%s {rank takes|ranks take} part in no collective with others: {its clock is|their "
		"clocks are} taken as "
		"{it is|they are}");
	format_note_count(notes, c->nr_alone,
		"%s {collective operation has|collective operations have} no counterpart in the "
		"other files: other ranks' "
		"files are not there, or are of other steps");
	format_note_count(notes, c->nr_unlike,
		"%s {time|times} ranks did different operations where one was expected: not taken "
		"as a meeting");
	format_note_count(notes, c->nr_apart,
		"%s {collective operation was|collective operations were} over for one rank before "
		"another one had come: not taken as "
		"a meeting");
}

void format_gpu_notes(const struct gpu_trace *g, struct base_str *notes)
{
	const struct gpu_counts *c = &g->counts;
	size_t nr_streams = 0, nr_device = 0, nr_threads = 0;
	for (size_t i = 0; i < g->nr_lanes; i++) {
		nr_threads += !g->lane[i].is_stream && !g->lane[i].is_meeting;
		nr_streams += g->lane[i].is_stream;
		nr_device += g->lane[i].is_stream ? g->lane[i].nr : 0;
	}
	base_str_addf(notes,
		"%zu {slice|slices} of %zu {thread|threads}, %zu {kernel|kernels} and copies of "
		"%zu {stream|streams}\n",
		g->nr - nr_device, nr_threads, nr_device, nr_streams);
	if (g->nr_ranks > 1)
		gpu_notes_of_ranks(g, notes);
	if (!nr_device)
		base_str_add(notes, "there is no kernel in it: threads alone were profiled\n");
	format_note_count(
		notes, c->nr_damaged, "%s {event has|events have} no sensible time: left out");
	format_note_count(
		notes, c->nr_negative, "%s {event has|events have} a negative duration: left out");
	format_note_count(notes, c->nr_duplicate,
		"%s {correlation id is|correlation ids are} of several calls: the last one of each "
		"counts");
	format_note_count(notes, c->nr_unlaunched,
		"%s {kernel or copy was|kernels or copies were} launched by no call that is in the "
		"file: why they "
		"began when they did is not known");
	format_note_count(notes, c->nr_early,
		"%s {kernel|kernels} began before the calls that launched them: the device's clock "
		"and the "
		"processor's differ");
	format_note_count(notes, c->nr_overlap,
		"%s {piece of work overlaps|pieces of work overlap} the one before on their "
		"stream: taken as one after the "
		"other");
	format_note_count(notes, c->nr_late_sync,
		"%s {time|times} a call that waits for a stream returned before its work had "
		"ended: not "
		"taken as a wait for that stream");
	format_note_count(notes, c->nr_late_event,
		"%s {time|times} a stream went on before the event that it was told to wait for: "
		"not "
		"taken as a wait");
	format_note_count(notes, c->nr_inferred_event,
		"%s {time|times} which stream another one waited for is taken from their times: "
		"the file "
		"does not say it");
	format_note_count(notes, c->nr_inferred_sync,
		"%s {time|times} which stream a thread waited for is taken from their times: the "
		"file "
		"does not say it");
	format_note_count(notes, c->nr_rooms,
		"%s {launch|launches} waited for room in the queue of their stream: taken from how "
		"long "
		"they took");
	format_note_count(notes, c->nr_hand_overs,
		"%s {time|times} a thread ran backward operators while the main one was in none: "
		"taken as "
		"done for it");
}
