/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the queue-annotated dependence graph: streaming critical path and what-if lanes.
 *
 * Saidi 2009 (seed 000) sections 4.2 and 5.1, without ever building the graph: verbs arrive in time
 * order, so one best path per actor suffices. Knows numbers only (actors, states, queues): names
 * belong to the caller (the model). Needs base only. Units: times in ns since the trace's origin;
 * path lengths in ns as double (exact up to 2^53 when unedited).
 *
 * Model in one paragraph. An actor is in one state at a time. Each verb is a node; the time since
 * the actor's last verb is the edge to it, charged to the state that it was in: in full when it
 * ran, zero when it waited and the wait was satisfied by a dependence. A dependence (dequeue, peek,
 * enqueue after wait_full, link) is an edge from the node that made the units (or the space)
 * available. Its weight is the communication latency, t - max(available of all its dependences),
 * when the actor waited for it; zero when it did not wait (then it orders only, which matters when
 * a lane shortens the actor's own way). A dependence that was available before the wait began does
 * not explain it: then the actor's own edge keeps its weight, charged to the wait's state. A wait
 * left without any dependence keeps its weight and is counted as unexplained. Conservation: in lane
 * 0 (no edits) an actor's path is exactly as long as the time since the start.
 *
 * Lanes: every scenario is a lane; all lanes are computed side by side in one pass. Node memory is
 * shared by all lanes: {previous node, dependence, state, weight, latency} plus one bit a lane for
 * which way the longest path came. When the node arena is full, a collector keeps what some live
 * tip (actor or queued unit) can still reach, folding runs into per-state sums, so that memory is
 * bounded by actors and queued units, not by records. With keep_path nothing is folded in lane 0.
 */
#ifndef LONGPOLE_GRAPH_H
#define LONGPOLE_GRAPH_H

#include "base/base.h"

enum { GRAPH_LANES_MAX = 32, GRAPH_ALL = -1 };

/* One edit of a scenario. Weights are only ever multiplied: factor 0 removes, 0.5 halves, 2
 * doubles. */
enum graph_edit_kind {
	GRAPH_EDIT_SCALE_STATE, /* id = state: its edges' weight (execution and unexplained time, or
				   latency for latency states) */
	GRAPH_EDIT_IGNORE_QUEUE,  /* id = queue: its dependences are dropped; its waiters did not
				     wait */
	GRAPH_EDIT_UNBOUND_QUEUE, /* id = queue: only its space dependences are dropped */
	GRAPH_EDIT_RESIZE_QUEUE,  /* id = queue: `units` more of its capacity; more units from the
				     start on in a queue without capacity, and in a GRAPH_POOL */
	/* id = state: takes no time, and nothing waits in it: what ended its waits does
	 * not hold it up, now or when it takes what it had waited for, and it keeps its processor
	 */
	GRAPH_EDIT_ELIDE_STATE,
	GRAPH_EDIT_PROCESSORS, /* replay only: `units` more processors */
};
struct graph_edit {
	enum graph_edit_kind kind;
	uint32_t id;
	double factor;
	uint64_t units;
};
struct graph_scenario {
	const struct graph_edit *edit;
	size_t nr_edits;
};

struct graph_options {
	size_t size;
	/* Lanes 1..nr_scenarios; lane 0 is always the unedited run. At most GRAPH_LANES_MAX - 1 of
	 * them, with the runner-up GRAPH_LANES_MAX - 3; factors from 0 to 1e12. */
	const struct graph_scenario *scenario;
	unsigned nr_scenarios;
	/* Remember lane 0's path edge by edge; memory grows with the path's records. */
	bool keep_path;
	/* Also which dependences the paths cross, and how often (graph_crossings). */
	bool crossings;
	/* Also the second longest path of lane 0 that differs in at least one dependence. */
	bool runner_up;
	size_t max_memory_bytes; /* 0: 2 GiB; beyond it ERR_LIMIT */
	/* graph_restart() will come before graph_finish(): until then keep_path costs nothing. */
	bool restarts;
	/* Items a queue may hold before the oldest are forgotten; 0: 1 << 20. */
	uint32_t max_queued;
	/* Hears every moment as the graph resolved it; may be NULL. Must outlive the graph. */
	const struct graph_listener *listener;
	struct graph_watch *watch; /* histograms (histogram.h); borrowed; NULL: none */
};

struct graph;
enum base_status graph_new(
	const struct graph_options *opts, struct graph **ret, struct base_err *err) BASE_MUST_CHECK;
struct graph *graph_free(struct graph *g);

/* Declarations. Ids are dense from 0, in the order of declaration, chosen by the engine. Scenario
 * edits may name ids that are declared later: they are looked up at use. ret 0 ids are valid. */
enum base_status graph_add_actor(
	struct graph *g, uint32_t *ret_actor, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_add_state(
	struct graph *g, uint32_t *ret_state, struct base_err *err) BASE_MUST_CHECK;
/* Which unit a dequeue gets, unless it names one (GRAPH_KEYED). */
enum graph_discipline {
	GRAPH_FIFO,
	GRAPH_LIFO,
	GRAPH_PRIORITY, /* the smallest key; of equal ones the oldest */
	GRAPH_POOL,     /* interchangeable tokens (locks, processors, buffers): the oldest, and
			   a take that did not wait depends on nobody, since any other order of
			   takers would have done as well */
};
#define GRAPH_UNLIMITED UINT64_MAX
struct graph_queue_options {
	uint64_t capacity; /* units; 0: unknown, no space dependences unless wait_full is seen */
	uint64_t initial;  /* units present at the start, produced by nobody; GRAPH_UNLIMITED: as
			      many as asked */
	uint32_t latency_state; /* what communication latency through it is charged to */
	enum graph_discipline discipline;
	/*
	 * Which unit is whose does not matter (locks, processors, pools): in an edited lane a wait
	 * on it is at most as long as it was in the run. Where the recorded holder would come later
	 * than that, another order of takers would come about; to keep the recorded one would tie
	 * the taker to the holder's whole past.
	 */
	bool exchangeable;
	bool processor; /* its token is a processor: replay schedules threads itself instead */
	/* It only says when its units came; what its takers needed another queue says, which the
	 * same moment takes from. Replay lets takes from it pass: they would tie to the recorded
	 * order what could have come in any. */
	bool informs;
	/* Units; 0: none known. What it can hold, where `capacity` is 0 since the run's waits for
	 * space say more: replay keeps to it where there were none. */
	uint64_t limit;
	/* An actor that puts is taken to sleep soon, so that the one it wakes is to have its
	 * processor, unless there is an idle one (Linux: pipes and sockets, WF_SYNC). Only for
	 * replay. */
	bool hands_over;
	/* Given back, it belongs to the next in turn: actors that come before that one is awake
	 * wait, too (glibc's rwlocks). Only for replay. */
	bool handed;
	/* An actor that finds it empty, or full, gives up the locks that it holds: they are the
	 * queue's own. Only for replay. */
	bool frees_locks;
	/* A condition variable's. Its units are its signals, which only sinks hear of (`counts`).
	 */
	bool counts;
};
enum base_status graph_add_queue(struct graph *g, const struct graph_queue_options *o,
	uint32_t *ret_queue, struct base_err *err) BASE_MUST_CHECK;

/*
 * Verbs. All take the time (not decreasing; a smaller one is raised), the actor, and
 * the state that the actor is in afterwards. n is in the queue's units; GRAPH_ALL (dequeue, peek) =
 * all there are. Errors: only ERR_NOMEM and ERR_LIMIT; misuse of a queue is counted in its
 * statistics, never fatal. The first verb of an actor starts its path: with GRAPH_START the path's
 * length is 0 there (the process that the user started, at the origin of the analysis); otherwise
 * the actor has no path until a dependence or link gives it one, or a later verb has GRAPH_START.
 */
struct graph_verb {
	uint64_t time_ns;
	uint32_t actor;
	uint32_t state; /* from now */
	uint32_t queue; /* where one is needed */
	uint32_t flags; /* GRAPH_* below */
	uint32_t tag;   /* enqueue: what the units carry, told by graph_queue_tag() */
	int64_t n;
	uint64_t key; /* enqueue: the units' key; dequeue, peek with GRAPH_KEYED: which ones */
	/* What ends a wait: since when the actor has had a processor again (0: not known). If it
	 * came GRAPH_CAME_LATE_NS and more after what it waited for, and went on at once, then the
	 * time between them is no communication but came_state (the processors' latency state). */
	uint64_t came_ns;
	uint32_t came_state;
};
enum { GRAPH_CAME_LATE_NS = 300000 };
static inline bool graph_came_late(uint64_t came_ns, uint64_t available_ns, uint64_t now_ns)
{
	return came_ns >= available_ns + GRAPH_CAME_LATE_NS && came_ns <= now_ns &&
	       now_ns - came_ns < came_ns - available_ns;
}
#define GRAPH_VERBS(X)                                                                             \
	X(state)                                                                                   \
	X(enqueue)                                                                                 \
	X(dequeue)                                                                                 \
	X(peek)                                                                                    \
	X(reserve)                                                                                 \
	X(resize)                                                                                  \
	X(wait_empty)                                                                              \
	X(wait_full)                                                                               \
	X(wait)                                                                                    \
	X(link)                                                                                    \
	X(rename)                                                                                  \
	X(forget)
enum graph_verb_kind {
#define X(name) GRAPH_VERB_##name,
	GRAPH_VERBS(X)
#undef X
		GRAPH_VERB_NR
};
enum {
	GRAPH_START = 1,    /* see above */
	GRAPH_MORE = 2,     /* another dependence of the same moment follows (same actor and time):
			       resolve all together at the last */
	GRAPH_OPTIONAL = 4, /* this dependence counts only when it is the last to become available
			       (a processor freed late) */
	GRAPH_LAST = 8,  /* dequeue/peek: of the n units use the newest only, forget the older ones
			    (level-triggered state) */
	GRAPH_BACK = 16, /* dequeue: take from the back, without dependence (a write that moved less
			    than it announced) */
	GRAPH_EXPLAINED = 32, /* the wait that ends here needs no dependence (a timer, the outside
				 world): its weight stays with its state */
	GRAPH_ASIDE = 64, /* enqueue, and dequeue with GRAPH_BACK: the actor's state, wait and clock
			     are left alone (its processor becomes free while it waits); the unit
			     carries the actor's path length as if it had run until now */
	GRAPH_KEYED = 128,     /* dequeue, peek: only units with this verb's key */
	GRAPH_TIMED_OUT = 512, /* with GRAPH_EXPLAINED: a time limit ended the wait. In an edited
				  lane a row of such waits on one queue, or of one place (`wait`),
				  lasts no longer than until that comes which ends it */
	GRAPH_CUTS = 2048,     /* link: `from` ends whatever the actor did, whenever it comes (who
				  is killed does not finish first) */
	/* enqueue: the moment was at time_ns, though later ones were told already: of an actor that
	 * only time moves (a clock, whose ticks are known when somebody has waited for one). Not
	 * before the actor's own last verb, nor before a window's begin or end that was told; and
	 * nobody may have followed the actor's path beyond it (a link from it, GRAPH_ASIDE). Of a
	 * queue without capacity; a moment of its own. */
	GRAPH_DATED = 1024,
	GRAPH_NOBODY = 256, /* enqueue: no path leads through these units, as if nobody had put them
			       (replay knows better) */
};
enum base_status graph_state(struct graph *g, const struct graph_verb *v, struct base_err *err);
enum base_status graph_enqueue(struct graph *g, const struct graph_verb *v, struct base_err *err);
enum base_status graph_dequeue(struct graph *g, const struct graph_verb *v, struct base_err *err);
enum base_status graph_peek(struct graph *g, const struct graph_verb *v, struct base_err *err);
enum base_status graph_reserve(
	struct graph *g, const struct graph_verb *v, struct base_err *err); /* n space units */
enum base_status graph_resize(struct graph *g, const struct graph_verb *v,
	struct base_err *err); /* exactly n units; n 0 clears */
enum base_status graph_wait_empty(
	struct graph *g, const struct graph_verb *v, struct base_err *err); /* state = the wait's */
enum base_status graph_wait_full(struct graph *g, const struct graph_verb *v, struct base_err *err);
enum base_status graph_wait(struct graph *g, const struct graph_verb *v,
	struct base_err *err); /* waits, not known on which queue; v->queue: the number of the
				place (at which the actor waits for the same), below 2^31; 0:
				waits have nothing to do with each other */
/* The verb's actor depends on `from` as it is now (same time, no latency): calls between state
 * machines, fork. The path must follow. */
enum base_status graph_link(
	struct graph *g, const struct graph_verb *v, uint32_t from_actor, struct base_err *err);

/*
 * The actor has been in `state` since its last verb, not in the one that it told then: what a wait
 * was for is at times only known when it ends. No time passes, nothing else changes. (An actor that
 * has done nothing yet begins in it.)
 */
enum base_status graph_rename(struct graph *g, const struct graph_verb *v, struct base_err *err);
/*
 * The actor goes to `state` and has no path any more: what it does next follows from what it takes
 * next, and from nothing that it did before. For an interrupt's handler: one actor, but its runs
 * have nothing to do with each other.
 */
enum base_status graph_forget(struct graph *g, const struct graph_verb *v, struct base_err *err);

/* Any verb by its kind. */
enum base_status graph_apply(struct graph *g, enum graph_verb_kind kind, const struct graph_verb *v,
	uint32_t from_actor, struct base_err *err);

uint64_t graph_queue_units(const struct graph *g, uint32_t queue);         /* in it now */
bool graph_queue_has(const struct graph *g, uint32_t queue, uint64_t key); /* a unit with it */
/* What this dequeue or peek would get first: units of one item, with its key. False: nothing. */
bool graph_queue_next(
	const struct graph *g, const struct graph_verb *v, uint64_t *ret_key, uint64_t *ret_units);
/* The tag of the last of the units that this dequeue or peek would get; 0: there are none. */
uint32_t graph_queue_tag(const struct graph *g, const struct graph_verb *v);

/*
 * Whoever wants to hear what the graph is told: replay, statistics, the compact graph. Queues are
 * declared in the order of their ids, and so are states; actors need no declaration. A status other
 * than BASE_OK ends the run.
 */
struct graph_sink {
	void *ctx;
	/* It hears of every signal of a condition variable, whether somebody waited or not: enqueue
	 * of 1 in the queue that its waits name, GRAPH_ALL of them to all; nothing takes these. */
	bool counts;
	/* executes: while it is in it (and does not wait) an actor occupies a processor. */
	enum base_status (*state)(
		void *ctx, uint32_t state, bool executes, struct base_err *err); /* may be NULL */
	enum base_status (*queue)(void *ctx, uint32_t queue, const struct graph_queue_options *o,
		struct base_err *err);
	enum base_status (*verb)(void *ctx, enum graph_verb_kind kind, const struct graph_verb *v,
		uint32_t from_actor, struct base_err *err);

	/*
	 * Where actors may run; all three may be NULL. Numbers are the kernel's. processor: that of
	 * a queue whose options say `processor`. processor_set: the set's numbers, bit n % 64 of
	 * bits[n / 64]; sets are declared in the order of their ids, from 0. affinity: the actor
	 * may run on these from now; nothing said: anywhere.
	 */
	enum base_status (*processor)(
		void *ctx, uint32_t queue, uint64_t number, struct base_err *err);
	enum base_status (*processor_set)(void *ctx, uint32_t set, const uint64_t *bits,
		size_t nr_words, struct base_err *err);
	enum base_status (*affinity)(void *ctx, uint32_t actor, uint32_t set, struct base_err *err);

	/* May be NULL. So much of the actor's time from its last verb to its next one was recording
	 * itself. Several times: their sum. */
	enum base_status (*recording)(void *ctx, uint32_t actor, uint64_t ns, struct base_err *err);
	/* May be NULL. So much of it the actor slept longer than it had asked for: no edit of the
	 * state changes that, unless it takes away the sleep. Below 0: so much shorter, since
	 * something ended it early, which an edit of the state does not move. */
	enum base_status (*late)(void *ctx, uint32_t actor, int64_t ns, struct base_err *err);
};

/*
 * A moment is what the sink's verbs come to: one edge of one actor that closes, with the
 * dependences that counted. A listener may mark it; the mark stays with what the actor puts from
 * then on, and comes back with the taker's dependences.
 */
struct graph_dependence {
	uint64_t available_ns;
	uint32_t from_actor, mark; /* who made the units available, at which moment */
	uint32_t queue;            /* UINT32_MAX: a link */
	bool space;                /* room in it, not units */
};
struct graph_moment {
	uint64_t begin_ns, end_ns;
	uint32_t actor, state, next_state; /* state UINT32_MAX: the actor's first moment */
	bool waited, waited_for_space;
	uint32_t wait_queue; /* UINT32_MAX: none, or not known */
	bool explained;      /* a dependence ended the wait: nothing was executed */
	uint64_t latency_ns; /* then: from when the last of them was available */
	const struct graph_dependence *dep;
	size_t nr_deps, last; /* last: index of the one that became available last */
};
struct graph_listener {
	void *ctx;
	enum base_status (*moment)(
		void *ctx, const struct graph_moment *m, uint32_t *ret_mark, struct base_err *err);
};

/*
 * A window of the run, [from, to]. graph_restart(), before the first verb at or after from: all
 * that came before keeps its effect on states, waits and queues, but weighs nothing: paths are 0
 * long there, edges count from there, totals and statistics begin anew. graph_cut(), before the
 * first verb after to: totals and statistics end; verbs go on to be told, up to the run's end,
 * because only they say what the end depended on of all that was under way at `to`: the path up to
 * there is what an end after it becomes. So the window's path is the part of the whole run's path
 * that lies in it (with one start); but a hand-off under way at `to` is charged to the giver.
 * The time is not below the last verb's. At most one of each, in this order.
 */
enum base_status graph_restart(
	struct graph *g, uint64_t time_ns, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_cut(struct graph *g, uint64_t time_ns, struct base_err *err) BASE_MUST_CHECK;

/* ---- results --------------------------------------------------------------------------------- */

/*
 * Ends. A path ends where graph_end() says, as the actor's path is at that time; a later call for
 * the same end (numbered from 0 by the caller) replaces it, so that the last one counts.
 * graph_finish() - call once, after the last verb, before the queries below; ends path 0 at
 * `end_actor`'s last verb: GRAPH_ANY_ACTOR: of the actor whose path reaches the latest moment;
 * GRAPH_ENDS: nowhere, graph_end() has said it all.
 */
#define GRAPH_ANY_ACTOR UINT32_MAX
#define GRAPH_ENDS      (UINT32_MAX - 1)
enum base_status graph_end(struct graph *g, uint32_t end, uint32_t actor, uint64_t time_ns,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_finish(
	struct graph *g, uint32_t end_actor, struct base_err *err) BASE_MUST_CHECK;

struct graph_path_state { /* one (actor, state) of a lane's path, summed */
	uint32_t actor, state;
	double path_ns;        /* weight on the path, edited as the lane says */
	double unexplained_ns; /* of it: waits that nothing explains */
	double latency_ns;     /* of it: communication latency */
	uint64_t visits;
	double observed_ns; /* what path_ns was in the run itself: the slope of whatif.h's curve */
};
struct graph_lane_result {
	double length_ns; /* of the longest path from the start to the end */
	uint64_t start_ns,
		end_ns; /* observed; length_ns == end_ns - start_ns in lane 0 (conservation) */
	const struct graph_path_state
		*state; /* descending by path_ns; ties by ids; borrowed until graph_free */
	size_t nr_states;
	bool found; /* false: no path from a start to the end */
};
#define GRAPH_RUNNER_UP UINT32_MAX /* as a lane number: the runner-up of lane 0 */
enum base_status graph_lane_of(struct graph *g, uint32_t end, unsigned lane,
	struct graph_lane_result *ret, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_lane(struct graph *g, unsigned lane, struct graph_lane_result *ret,
	struct base_err *err) BASE_MUST_CHECK; /* of end 0 */

struct graph_path_edge {           /* lane 0's path, in time order (keep_path) */
	uint64_t begin_ns, end_ns; /* observed */
	uint32_t actor, state;
	uint32_t queue;      /* crossed by a dependence edge; UINT32_MAX: within the actor */
	uint32_t from_actor; /* of a dependence edge */
	double weight_ns;
};
/* Borrowed until the next call for another end. */
enum base_status graph_path_of(struct graph *g, uint32_t end, const struct graph_path_edge **ret,
	size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_path(struct graph *g, const struct graph_path_edge **ret, size_t *ret_nr,
	struct base_err *err) BASE_MUST_CHECK; /* of end 0 */

/* A dependence that the path crosses, summed (graph_options.crossings): from the actor that made
 * the units, or the space, to the one that went on with them. */
struct graph_crossing {
	uint32_t from_actor, to_actor;
	uint32_t queue; /* UINT32_MAX: a link */
	bool space;     /* back: room that a take made */
	uint64_t visits;
	double latency_ns; /* on the path */
};
/* Most visits first; borrowed until graph_free. */
enum base_status graph_crossings_of(struct graph *g, uint32_t end, unsigned lane,
	const struct graph_crossing **ret, size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;

/* Everything seen, on the path or not. */
struct graph_state_totals { /* per (actor, state) */
	uint32_t actor, state;
	uint64_t total_ns, waiting_ns, visits;
};
enum base_status graph_totals(struct graph *g, const struct graph_state_totals **ret,
	size_t *ret_nr, struct base_err *err) BASE_MUST_CHECK;

struct graph_queue_stats {
	uint64_t enqueued, dequeued; /* units */
	uint64_t nr_enqueues, nr_dequeues;
	uint64_t residence_ns; /* sum over units' items of (taken - put) */
	uint64_t max_units,
		units_time; /* occupancy: peak, and integral units x ns (mean = / elapsed) */
	uint64_t nr_waits_data, wait_data_ns; /* actors' waits for units */
	uint64_t nr_waits_space, wait_space_ns;
	uint64_t nr_waits_room; /* of those for space: ended by room that came meanwhile */
	uint64_t nr_latencies, latency_ns; /* communication latency of satisfied waits */
	uint64_t underflows, overflows;    /* more taken than was there; forgotten */
};
const struct graph_queue_stats *graph_queue_stats(const struct graph *g, uint32_t queue);
uint32_t graph_nr_actors(const struct graph *g);
uint32_t graph_nr_states(const struct graph *g);
uint32_t graph_nr_queues(const struct graph *g);
size_t graph_memory_bytes(const struct graph *g);

#endif
