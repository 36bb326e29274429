/* SPDX-License-Identifier: Apache-2.0 */
/* priv.h - what the files of src/graph share. Not for other layers (tests may
 * set the arena's size). */
#ifndef LONGPOLE_GRAPH_PRIV_H
#define LONGPOLE_GRAPH_PRIV_H

#include "graph/graph.h"
#include "graph/histogram.h"

#include <math.h>
#include <string.h>

#define NONE    UINT32_MAX
#define NO_PATH (-INFINITY)

enum {
	LANE_STEP = 4,      /* lanes are padded to whole vectors */
	SLOT_PAGE = 64,     /* states a page of an actor's slot table */
	ARENA_NODES = 16384 /* at least so many nodes between two collections: fits the
			      L2 cache */
};

/* ---- nodes ----------------------------------------------------------------------------------- */

/* What a node's two edges weigh; in the top bits of node.weight. w = the other
 * bits. */
enum kind {
	KIND_RUN,         /* own w, dependence 0 */
	KIND_UNEXPLAINED, /* own w, a wait; no dependence */
	KIND_EXPLAINED,   /* own 0, a wait; dependence w, communication latency */
	KIND_NEEDLESS,    /* own w and dependence w: a wait for what was there already */
	KIND_CHAIN,       /* own: no edge at all, the same moment's previous dependence;
			     dependence w */
	KIND_START,       /* neither; w = the time at which the path starts */
	KIND_PAIR /* own w, then another one of the same actor: `dep` ns, charged to dep_slot */
};

enum { WEIGHT_BITS = 61 };
#define WEIGHT_MAX ((UINT64_C(1) << WEIGHT_BITS) - 1)

/* One moment of one actor. Lane l's path came over `dep` when bit l of took_dep
 * is set, else over `prev`. */
struct node {
	uint32_t prev, dep;
	uint32_t took_dep;
	uint32_t zero;           /* lanes in which w counts as 0: the wait was on a queue that
				  * the lane drops
				  */
	uint32_t slot, dep_slot; /* the actor that the edges are charged to; NONE: nobody */
	uint64_t weight;
};

static inline uint64_t node_weight(enum kind kind, uint64_t w)
{
	return (uint64_t)kind << WEIGHT_BITS | w;
}

static inline enum kind node_kind(const struct node *n)
{
	return (enum kind)(n->weight >> WEIGHT_BITS);
}

/* Beside each node, only when the path itself is wanted. */
struct node_extra {
	uint64_t time_ns;
	uint32_t queue; /* of the dependence */
	uint32_t actor;
};

/* The collector's scratch, one a node. */
struct mark {
	uint32_t live;   /* lanes in which a tip reaches this node */
	uint32_t ends;   /* of them: where a folded run must end (a tip, or several ways
			    on) */
	uint32_t new_id; /* of a tip: + 1; 0: not a tip */
	union {
		uint32_t segment; /* + 1: of a live node */
		uint32_t fold;    /* single lane: that ends there */
	};
};

/* Nodes that are passed by the same lanes, all the same way: what they weigh is summed once. */
struct segment {
	uint32_t first, last; /* last: the oldest */
	uint32_t lanes;
	uint32_t first_sum, nr_sums; /* in segment_sum; none: to be added node by node */
	uint32_t base;               /* where the tree nodes of the first one's `ends` are noted */
};

/* ---- folded histories ------------------------------------------------------------------------ */

struct sum {
	uint32_t slot;
	uint64_t path_ns, unexplained_ns, latency_ns, visits;
};

struct fold {            /* a run of edges, summed */
	uint32_t parent; /* the run before it; NONE: from the start */
	uint32_t first_sum, nr_sums;
	uint32_t new_index; /* collector's scratch */
	uint64_t start_ns;  /* when parent is NONE */
	bool live, end;     /* collector's scratch */
};

struct folds {
	struct fold *fold;
	size_t nr_folds, fold_capacity;
	struct sum *sum;
	size_t nr_sums, sum_capacity;
};

struct step { /* an edge of lane 0's path, kept with keep_path */
	uint32_t prev;
	uint32_t slot;  /* charged, except by a link */
	uint32_t queue; /* NONE: within the actor, or a link */
	uint32_t actor; /* at its end */
	uint64_t end_ns;
	uint64_t weight;     /* of this edge alone */
	bool crosses, chain; /* a dependence edge; an edge without extent */
};

/* ---- actors and queues ----------------------------------------------------------------------- */

enum wait { WAIT_NO, WAIT_DATA, WAIT_SPACE, WAIT_UNKNOWN };
#define ROW_OF_PLACE (UINT32_C(1) << 31)

struct item;

struct slot_page {
	size_t number;            /* its states: number * SLOT_PAGE + ... */
	uint32_t slot[SLOT_PAGE]; /* + 1; 0: none yet */
};

/* What every verb looks at comes first. (16: its size is a power of two then, and to find it a
 * shift.) */
struct actor {
	_Alignas(16) uint64_t t_last; /* its last verb; also when the wait began */
	uint32_t state, slot;
	uint32_t tip;
	uint32_t epoch; /* raised by links: within one, lengths only grow */
	uint32_t wait_queue;
	uint32_t open; /* its tip, while nobody else refers to it and a pair may become of it */
	uint32_t id;  /* (not beside the tip: read together with what was just written, it waits) */
	uint8_t wait; /* enum wait */
	bool started;
	uint32_t mark; /* the listener's, of its last moment */
	/* A hash table by number: an actor is in few of all states. nr_pages: 0, a power of two */
	struct slot_page **page;
	size_t nr_pages, nr_pages_used;
	uint32_t elided; /* lanes without its last wait: it had its processor all the time */
	/* Lanes that elided its last wait on this queue: nor does it need more of the same. */
	uint32_t needless, needless_queue;
	bool needless_space;
	/* What its wait is for: a queue, or the place of a wait on no known one (ROW_OF_PLACE);
	 * NONE: nothing that another one could be for, too. */
	uint32_t wait_row;
	/* Its path without the sleeps of a row of waits for the same that time limits ended
	 * (awake.c); NULL, or its node NONE: it is in no such row. */
	struct awake *awake;
	uint32_t awake_row;
	bool forgets;                  /* has been told to: nobody starts a path for it */
	uint32_t dep_index, dep_epoch; /* graph_take: this actor's dependence of `stamp` */
	uint64_t stamp;
	uint64_t came_ns; /* of the verbs of this moment; 0: not known */
	uint32_t came_state;
};

struct lane_edit {
	uint32_t id, lane;
	enum graph_edit_kind kind;
	double factor;
	uint64_t units;
};

struct item { /* units in a queue, or free space in one */
	uint64_t time_ns, nr_units;
	uint32_t node;
	uint32_t actor; /* NONE: produced by nobody */
	uint32_t epoch;
	uint32_t tag, mark;
	uint64_t key;
	double length[]; /* the producer's path, every lane */
};

struct awake { /* see actor.awake */
	/* A tick is what it does between two sleeps of the row. When the last one began, and the
	 * last one that gave what somebody waited for (0: none did). */
	uint64_t tick_ns, served_tick_ns;
	uint32_t nr_ticks, nr_served;
	bool takes; /* in this moment what was waited for, though not what the row waits for */
	struct item path;
};

struct ring {
	unsigned char *buf;
	uint32_t head, nr_items, capacity; /* capacity: a power of two, or 0 */
	uint64_t nr_units;
};

/*
 * A lane with k units more takes, instead of the unit that was taken, the one k units before it. So
 * the last ones taken are remembered.
 */
struct more {
	uint32_t lanes;
	uint64_t units;
};
struct past {
	struct ring taken; /* the newest last; at least `most` units when there were so many */
	uint64_t most;
	struct more *more; /* by distinct number of units, ascending */
	size_t nr_more;
	uint32_t lanes; /* of all */
};

struct queue { /* what every put and take looks at comes first */
	struct ring data;
	uint64_t t_units; /* when stats.units_time was brought up to date */
	uint64_t capacity;
	struct past *past;             /* NULL: no lane has more of this queue's units */
	struct graph_watch_row *watch; /* its histograms; NULL: nobody looks */
	enum graph_discipline discipline;
	bool unlimited, exchangeable, processor;
	bool tracks_space; /* capacity unknown, but somebody waited for space */
	struct graph_queue_stats stats;
	uint32_t latency_state;
	uint32_t drop_data, drop_space; /* lanes without these dependences */
	struct ring space;
	uint64_t space_debt;    /* units put beyond the capacity */
	struct item *last_take; /* tracks_space: the last dequeue */
};

/* One dependence of the moment that is being closed. */
struct dep {
	uint64_t available_ns;
	const double *length; /* NULL: link_length row */
	uint32_t link_row;
	uint32_t node, queue, actor;
	uint32_t order;
	uint32_t drop; /* lanes in which another unit is taken */
	uint32_t mark; /* for the listener */
	bool space, optional, link;
};

struct take { /* where from, and how */
	uint32_t queue, flags;
	bool space, keep;
	uint64_t key;
};

struct put { /* to do when the moment is closed: its node is what is put */
	uint32_t queue, tag;
	bool space, nobody; /* nobody: as if nobody had put it */
	uint64_t nr_units, key;
};

struct slot { /* an (actor, state) that occurred; or, of that, one crossing; but for its totals */
	uint32_t base; /* the (actor, state)'s; itself unless a crossing */
	uint32_t from_actor, queue;
	bool is_crossing, space, link;
};

struct lane_cache {
	struct graph_lane_result result;
	struct graph_crossing *crossing;
	size_t nr_crossings;
	bool ready;
};

struct end { /* where a path ends (graph_end) */
	uint64_t time_ns;
	uint32_t node;           /* NONE: no path leads there */
	uint32_t bound;          /* after finish: the tip's number */
	struct lane_cache *lane; /* [tracks]; after finish */
};

/* window.c: what is kept at the cut. */
struct window {
	bool early; /* until graph_restart(): no path is remembered */
	bool cut;
	/* [2 actor]: its path up to the cut; [2 actor + 1]: up to its last verb; then units */
	struct end *anchor;
	double *anchor_length;
	size_t nr_anchors, nr_actor_anchors, anchor_capacity, anchor_length_capacity;
	struct graph_state_totals *totals; /* [slot], as they were */
	size_t nr_totals, totals_capacity;
	struct graph_queue_stats *stats; /* [queue] */
	size_t nr_stats, stats_capacity;
	size_t nr_before; /* graph_turn(): anchors of the last one */
	uint32_t *birth;  /* graph_birth(): nodes at which a run of a path ends */
	size_t nr_births, birth_capacity;
};

/* The moment that GRAPH_MORE collects (verbs.c). */
struct graph_open_moment {
	struct dep *dep;
	size_t nr_deps, dep_capacity;
	uint32_t dep_order;
	struct put *put;
	size_t nr_puts, put_capacity;
	double *link_length; /* rows of links */
	size_t nr_links, link_capacity;
	bool pending;
	struct graph_verb pending_verb; /* the last of them */
};

/* Which nodes a live tip can reach, and what the others came to (collect.c). */
struct graph_collector {
	struct mark *mark;
	size_t mark_capacity;
	struct folds folds, next_folds;
	uint32_t *bound, *next_bound; /* [boundary id][track] -> fold */
	size_t bound_capacity, next_bound_capacity;
	uint32_t *tip;  /* ids of tips, each once */
	uint64_t *ends; /* single lane: a bit a node at which a run ends */
	size_t ends_words;
	struct segment *segment; /* descending */
	struct sum *segment_sum;
	size_t nr_tips, tip_capacity, nr_segments, segment_capacity;
	size_t nr_segment_sums, segment_sum_capacity;
	uint32_t *end_fold;
	size_t end_capacity;
	struct sum *dense; /* [slot] */
	size_t dense_capacity;
	uint32_t *touched;
	size_t nr_touched, touched_capacity;
	struct step *step;
	size_t nr_steps, step_capacity, nr_steps_kept;
	uint32_t *bound_step, *next_bound_step; /* [boundary id] -> step */
	size_t bound_step_capacity, next_bound_step_capacity;
	uint64_t nr_collections;
	uint32_t nr_bounds, min_nodes;
	struct base_map crossing_slots; /* (to, from; queue, space, state) -> slot */
};

/* What the path came to (result.c). */
struct graph_result {
	struct end *end;
	double *end_length; /* [end][stride] */
	size_t nr_ends, ends_capacity, end_length_capacity;
	struct graph_path_edge *path;
	size_t nr_path, path_capacity;
	uint32_t path_end; /* whose `path` is */
	struct graph_state_totals *totals;
	size_t nr_totals, totals_capacity;
};

/* The scenarios that are followed side by side (lanes.c). */
struct graph_lanes {
	unsigned nr_lanes;  /* 1 + scenarios */
	unsigned nr_tracks; /* + 1 with the runner-up, which is track nr_lanes */
	unsigned stride;    /* padded */
	uint32_t lane_bits; /* of all tracks */
	uint32_t rank_bit;  /* in took_dep: the runner-up continues as lane 0 of that predecessor */
	void (*lane_add)(double *length, const double *scale, double w, unsigned n);
	uint32_t (*lane_merge)(double *length, const double *scale, double w, const double *dep,
		const double *dep_scale, double dep_w, unsigned n, bool dep_wins_ties);
	struct lane_edit *edit; /* by id: a scenario may name a state of every thread */
	size_t nr_edits;
	double *ones, *scratch; /* rows: ones; scratch for drops (3 rows) */
};

struct graph_listening {
	const struct graph_listener *listener;
	struct graph_dependence *told; /* scratch for it */
	size_t told_capacity;
};

struct graph_limits {
	size_t max_memory_bytes, memory_bytes;
	uint32_t max_queued;
};

/* Room in the arrays of struct graph, in elements. */
struct graph_capacities {
	size_t actor_capacity, length_capacity;
	size_t scale_capacity, elides_capacity;
	size_t queue_capacity;
	size_t slot_capacity, slot_totals_capacity;
	size_t node_capacity, extra_capacity;
};

struct graph {
	/* hot */
	uint64_t now, since_ns; /* since: nothing before it weighs anything (graph_restart) */
	uint64_t told_ns;       /* a window's begin or end: what lies before is settled */
	struct actor *actor;
	double *length; /* [actor][stride] */
	struct node *node;
	struct node_extra *extra; /* NULL unless keep_path */
	uint32_t next, collect_at;
	struct graph_lanes lanes;
	size_t item_size;
	bool runner_up, keep_path, crossings, finished, has_elisions;
	bool one_lane;    /* and nobody listens */
	bool pairs;       /* nor is the path wanted edge by edge: two of them may be one node */
	bool attention;   /* failed, pending or finished: begin() looks closer */
	double *scale;    /* [state][stride] */
	uint32_t *elides; /* [state]: lanes that elide it; NULL: no lane elides any */
	struct queue *queue;
	struct graph_state_totals *slot_totals; /* [slot]: all that every verb needs of one */
	struct slot *slot;
	struct graph_watch *watch; /* NULL: no queue has histograms */

	struct graph_open_moment moment;
	uint64_t stamp;

	size_t nr_actors, nr_states, nr_queues, nr_slots;
	struct graph_capacities capacity;
	enum base_status failed;

	struct graph_collector collector;
	struct graph_listening listening;
	struct graph_limits limit;
	struct graph_result result;
	struct window window;
};

/* graph.c: memory. Sizes are elements; a failure leaves the array as it was. */
enum base_status graph_mem_resize(struct graph *g, void *data /* T ** */, size_t *capacity,
	size_t want, size_t elem_size_bytes, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_mem_need(struct graph *g, void *data /* T ** */, size_t *capacity,
	size_t need, size_t elem_size_bytes, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_slot_add(struct graph *g, struct actor *a, uint32_t state,
	uint32_t *ret_slot, struct base_err *err) BASE_MUST_CHECK;
/* ... without the actor's knowing it. */
enum base_status graph_slot_append(struct graph *g, const struct actor *a, uint32_t state,
	const struct slot *slot, uint32_t *ret_slot, struct base_err *err) BASE_MUST_CHECK;
/* Tests: collect after so few nodes. */
void graph_set_arena_nodes(struct graph *g, uint32_t nr_nodes);

/* lanes.c */
void graph_lanes_choose(struct graph *g, bool vectors);

/* queue.c */
enum base_status graph_ring_push(struct graph *g, struct ring *r, uint64_t t, uint64_t nr_units,
	const struct actor *a /* NULL: nobody */, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_take(struct graph *g, const struct take *take, uint64_t t, uint64_t n,
	struct base_err *err) BASE_MUST_CHECK;
uint64_t graph_take_back(struct graph *g, struct queue *q, uint64_t t, uint64_t n);
enum base_status graph_put(struct graph *g, const struct put *put, uint64_t t,
	const struct actor *a, struct base_err *err) BASE_MUST_CHECK;
void graph_queue_fini(struct graph *g, struct queue *q);

/* moment.c: closes the actor's edge with these dependences (they are
 * reordered). */
enum base_status graph_close(struct graph *g, const struct graph_verb *v, uint64_t t,
	struct dep *dep, size_t nr_deps, struct base_err *err) BASE_MUST_CHECK;
/* The actor's path as it is at t: copies its lengths to `row`, returns its node. */
uint32_t graph_path_now(struct graph *g, struct actor *a, uint64_t t, double *row);
enum base_status graph_link_dep(
	struct graph *g, struct actor *from, uint64_t t, struct base_err *err) BASE_MUST_CHECK;
/* GRAPH_ASIDE: puts with the path that the actor would have had it run until
 * now. */
enum base_status graph_put_aside(struct graph *g, const struct put *put, uint64_t t,
	struct actor *a, struct base_err *err) BASE_MUST_CHECK;

/* moment.c: an edge without dependence, from *tip on. `explained`: needs none, wait or not. */
void graph_own_edge(struct graph *g, const struct actor *a, uint64_t t, bool explained,
	double *length, uint32_t *tip);
/* awake.c: a moment of the actor is to be closed with these dependences, in several lanes. Needs up
 * to one node. */
enum base_status graph_awake(struct graph *g, struct actor *a, const struct graph_verb *v,
	uint64_t t, const struct dep *dep, size_t nr_deps, struct base_err *err) BASE_MUST_CHECK;
void graph_awake_end(struct actor *a);
/* Did the actor's wait that this ended meet the other one by chance, in a tick as most of which
 * nobody waits for? Then no lane waits longer than the run did. To be asked once a wait. */
bool graph_awake_met_tick(struct graph *g, const struct actor *a, const struct dep *dep);

/* listen.c: tells the listener of a moment, before it is closed. `pathless`: until now. */
enum base_status graph_tell(struct graph *g, struct actor *a, const struct graph_verb *v,
	uint64_t t, bool pathless, const struct dep *dep, size_t nr_deps,
	struct base_err *err) BASE_MUST_CHECK;

/* verbs.c: closes the moment that GRAPH_MORE left open. */
enum base_status graph_flush(struct graph *g, struct base_err *err) BASE_MUST_CHECK;

/* crossing.c: the slot of a dependence that a path crosses. */
enum base_status graph_crossing_slot(struct graph *g, struct actor *a, uint32_t state,
	const struct dep *d, uint32_t *ret_slot, struct base_err *err) BASE_MUST_CHECK;

/* resize.c: queues of which lanes have more units. */
/* The edits of what has that id (a state, or a queue: see their kinds), *ret_nr of them. */
const struct lane_edit *graph_edits_of(const struct graph *g, uint32_t id, size_t *ret_nr);
enum base_status graph_past_init(
	struct graph *g, uint32_t queue, struct base_err *err) BASE_MUST_CHECK;
void graph_past_fini(struct past *p);
/* Remembers k units of an item that are being taken. */
enum base_status graph_past_add(
	struct graph *g, struct past *p, const struct item *it, uint64_t k, struct base_err *err);
/* n units have just been taken: the lanes' dependences on others. */
enum base_status graph_past_deps(
	struct graph *g, const struct take *take, uint64_t n, struct base_err *err) BASE_MUST_CHECK;
/* The shift is of space when the capacity is known and units are no tokens. */
static inline bool past_is_of_space(const struct queue *q)
{
	return q->capacity && q->discipline != GRAPH_POOL;
}

/* collect.c */
enum base_status graph_collect(
	struct graph *g, bool only_ends /* of all tips */, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_reserve_nodes(
	struct graph *g, size_t nr, struct base_err *err) BASE_MUST_CHECK;

/* window.c: ends that lie beyond the cut come to lie on it. */
void graph_window_finish(struct graph *g);
/* part.c: of the anchors and statistics as they are after a collection. */
struct graph_part;
enum base_status graph_part_make(struct graph *g, uint64_t from_ns, size_t nr_before,
	struct graph_part **ret, struct base_err *err) BASE_MUST_CHECK;
void graph_window_fini(struct graph *g);

/* ---- inline: once or more a verb ------------------------------------------------------------- */

static inline struct item *ring_item(const struct graph *g, const struct ring *r, uint32_t i)
{
	return (struct item *)(r->buf + (size_t)((r->head + i) & (r->capacity - 1)) * g->item_size);
}

static inline void ring_pop_front(struct ring *r)
{
	r->head = (r->head + 1) & (r->capacity - 1);
	r->nr_items--;
}

static inline uint64_t add_product(uint64_t a, uint64_t x, uint64_t y)
{
	uint64_t r;

	if (BASE_UNLIKELY(__builtin_mul_overflow(x, y, &r) || __builtin_add_overflow(a, r, &r)))
		return UINT64_MAX;
	return r;
}

/* How much of [from, t] is in the window. */
static inline uint64_t since(const struct graph *g, uint64_t t, uint64_t from)
{
	return t - (from > g->since_ns ? from : g->since_ns);
}

/* The occupancy so far, before it changes. */
static inline void count_occupancy(struct queue *q, uint64_t t)
{
	if (q->data.nr_units)
		q->stats.units_time =
			add_product(q->stats.units_time, q->data.nr_units, t - q->t_units);
	if (BASE_UNLIKELY(q->watch != NULL))
		graph_watch_occupied(q->watch, q->data.nr_units, t - q->t_units);
	q->t_units = t;
}

static inline void count_taken(
	const struct graph *g, struct queue *q, const struct item *it, uint64_t k, uint64_t t)
{
	q->stats.dequeued += k;
	q->stats.residence_ns = add_product(q->stats.residence_ns, k, since(g, t, it->time_ns));
	if (BASE_UNLIKELY(q->watch != NULL))
		graph_watch_taken(q->watch, t, k, since(g, t, it->time_ns));
}

static inline double *actor_length(const struct graph *g, const struct actor *a)
{
	return g->length + (size_t)a->id * g->lanes.stride;
}

static inline struct slot_page *actor_page(const struct actor *a, size_t number)
{
	for (size_t at = number; a->nr_pages; at++) {
		struct slot_page *page = a->page[at & (a->nr_pages - 1)];

		if (BASE_LIKELY(!page || page->number == number))
			return page;
	}
	return NULL;
}

static inline enum base_status actor_slot(
	struct graph *g, struct actor *a, uint32_t state, uint32_t *ret, struct base_err *err)
{
	const struct slot_page *page = actor_page(a, state / SLOT_PAGE);

	if (BASE_LIKELY(page != NULL)) {
		uint32_t s = page->slot[state % SLOT_PAGE];

		if (BASE_LIKELY(s != 0)) {
			*ret = s - 1;
			return BASE_OK;
		}
	}
	return graph_slot_add(g, a, state, ret, err);
}

/* A node of the actor's moment t. The caller has reserved room. */
static inline struct node *add_node(
	struct graph *g, const struct actor *a, uint64_t t, uint32_t queue, uint32_t *ret_id)
{
	uint32_t id = g->next++;

	if (g->extra)
		g->extra[id] = (struct node_extra){.time_ns = t, .queue = queue, .actor = a->id};
	*ret_id = id;
	return &g->node[id];
}

static inline void count_totals(struct graph *g, const struct actor *a, uint64_t w)
{
	struct graph_state_totals *tot = &g->slot_totals[a->slot];

	tot->total_ns += w;
	tot->visits++;
	if (a->wait)
		tot->waiting_ns += w;
}

/* dependence length row */
static inline const double *dep_length(const struct graph *g, const struct dep *d)
{
	return d->length ? d->length
			 : g->moment.link_length + (size_t)d->link_row * g->lanes.stride;
}

#endif
