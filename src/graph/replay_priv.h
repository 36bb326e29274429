/* SPDX-License-Identifier: Apache-2.0 */
/* replay_priv.h - what the files of replay share: the log, and the state of one simulation. */
#ifndef LONGPOLE_GRAPH_REPLAY_PRIV_H
#define LONGPOLE_GRAPH_REPLAY_PRIV_H

#include "graph/replay.h"

#include <string.h>

#define REPLAY_NONE   UINT32_MAX
#define REPLAY_NOBODY UINT64_MAX /* as a time: of units that were there from the start */

/* ---- the log: steps -------------------------------------------------------------------------- */

/* How long the actor took to the first step of a moment, and why. */
enum replay_class {
	REPLAY_RUN,         /* own = time that it did something */
	REPLAY_EXPLAINED,   /* it waited for what the moment takes; own = latency after that */
	REPLAY_UNEXPLAINED, /* it waited; own = how long */
	REPLAY_LINK,        /* it goes on when the link's source does; own = 0 */
	REPLAY_ABSOLUTE,    /* its first moment, nobody known began it; own = when */
	REPLAY_FOLLOWS,     /* a later step of the same moment (GRAPH_MORE) */
};

enum { REPLAY_LINK_OUT = GRAPH_VERB_NR }; /* a step kind: where some link starts; arg: which */

/* step.bits, from bit 0: kind 4, flags 8 (GRAPH_*), class 3, then: */
enum {
	REPLAY_FLAGS_SHIFT = 4,
	REPLAY_CLASS_SHIFT = 12,
	REPLAY_WIDE = 1 << 15,      /* arg = index of a struct replay_wide */
	REPLAY_ALL_UNITS = 1 << 16, /* the verb's n was GRAPH_ALL */
	REPLAY_FREE = 1 << 17,      /* takes (or fills space) without needing anything */
	REPLAY_SHRINKS = 1 << 18,   /* resize: `need` units less */
	REPLAY_BUSY = 1 << 18,      /* enqueue, dequeue: ours had all processors then */
	REPLAY_COUNTED = 1 << 19,   /* needs the wide ordinal: so many puts (takes, for space) */
	REPLAY_AT_ONCE = 1 << 22,   /* explained, by what came at the time that the wait began */
	REPLAY_POLLS = 1 << 22,     /* unexplained: a time limit ended a wait for a queue */
	/* of a wait, which needs no such flag itself: for a processor, as long as other programs
	 * had them all */
	REPLAY_FOR_PROCESSOR = GRAPH_OPTIONAL << REPLAY_FLAGS_SHIFT,
	/* own needs no processor: it was asleep in it; of an explained wait: somebody woke it */
	REPLAY_SLEPT = 1 << 21,
	REPLAY_ON_PROCESSOR = 1 << 20, /* own is how long after its processor became free */
	REPLAY_WOKE_SHIFT = 23,        /* 2 bits: how many sleepers the step woke, or more */
	REPLAY_WOKE_MAX = 3,
	REPLAY_WAITED_SHIFT = 25, /* 7 bits: replay_length_class() of an explained wait */
	/* ... of an unexplained one: others had the processor of an actor that was in step->state
	 */
	REPLAY_PREEMPTED = 1 << REPLAY_WAITED_SHIFT,
	REPLAY_GIVEN = 2 << REPLAY_WAITED_SHIFT, /* ... graph_replay_mend() made it one */
	/* ... or of something done: a sleep that ended late_ns before what was asked for */
	REPLAY_EARLY = 4 << REPLAY_WAITED_SHIFT,
};

struct replay_step {
	uint32_t own;          /* ns */
	uint32_t recording_ns; /* of own, where the actor did something: gone when nobody records */
	uint32_t late_ns;      /* of own, where the actor slept: no edit of the state scales it;
				* REPLAY_EARLY: beyond own; of an explained wait: of own, how long
				* other programs kept it from a processor */
	uint32_t next;         /* of the same actor; REPLAY_NONE */
	uint32_t state;
	uint32_t queue; /* a link: its source */
	uint32_t arg;   /* units needed; a link: which */
	uint32_t bits;
};

struct replay_wide { /* what does not fit */
	uint64_t own, need, key, ordinal;
	int64_t n;
	uint64_t slow_ns; /* overtaken: it came at least so long after it was called */
	uint32_t nr_overtaken;
	uint32_t tag;
};

enum { REPLAY_CHUNK_SHIFT = 15, REPLAY_CHUNK = 1 << REPLAY_CHUNK_SHIFT };

/* ---- items with times: the recorded queues, and simulated ones with keys --------------------- */

struct replay_item {
	uint64_t time_ns, nr_units, key;
	uint64_t full_ns; /* of the log, then */
	uint64_t order;   /* steps logged until then */
	uint32_t step;    /* that put it */
	uint32_t by;      /* the actor of the log that did */
	uint64_t tick_ns; /* ... awake since then, when a time limit ended its sleep; else 0 */
};
struct replay_keys;
struct replay_ring {
	struct replay_item *item;
	size_t head, nr, capacity; /* capacity: a power of two, or 0; with an index of any size */
	bool by_key;               /* somebody takes by key, or by priority */
	struct replay_keys
		*keys; /* an index (replay_keys.c), with which items lie anywhere; NULL */
};

/* ---- latencies ------------------------------------------------------------------------------- */

/* Lengths of waits: octaves, and their thirds (replay_length_class()). */
enum { REPLAY_BUCKETS = 40, REPLAY_CLASSES = 3 * REPLAY_BUCKETS + 1, REPLAY_SAMPLES = 31 };

#define REPLAY_RARE 0.01 /* a smaller share of samples than that is no rule */

struct replay_samples {
	uint32_t nr, sample[REPLAY_SAMPLES]; /* a reservoir */
};

/*
 * One actor's latencies in one state: sums for a straight line over the classes of its waits. All
 * of a state together would take differences between actors (one processor is slower to wake than
 * another) for those of the waits that only some of them have.
 */
struct replay_sums {
	double nr, x, y, xx, xy, yy;
};
struct replay_trend {
	struct replay_sums bucket[REPLAY_BUCKETS];
};
enum { REPLAY_TRENDS_MAX = 1 << 14 }; /* more (state, actor) are not followed */

struct replay_latency { /* of one state, by the wait's length before */
	struct replay_samples bucket[REPLAY_BUCKETS];
	uint64_t classes[REPLAY_BUCKETS];  /* sum over all samples */
	uint32_t usual_ns[REPLAY_CLASSES]; /* learned: after waits of that class */
	double slope_ns;                   /* ... a class, of one actor's; 0: may be chance */
	double least_ns;                   /* ... no longer line of that slope goes below it */
	/* Where nothing was learned: the median of the nearest length of wait that was seen. */
	uint32_t nearest_ns[REPLAY_BUCKETS];
	bool has_nearest;
	struct replay_sums all; /* (each actor's around its own mean) */
	bool learned;
	bool not_only_woken; /* some of them had not slept */
};

/* ---- the log: who ---------------------------------------------------------------------------- */

enum { REPLAY_TAKES = 64 }; /* remembered a queue */
enum { REPLAY_ROWS = 4 };   /* kinds of waits with time limits that are followed of an actor */

struct replay_past_take {
	uint64_t time_ns, gap_ns; /* after the unit was put */
	uint64_t put_order;       /* and by which step, with how many steps logged until then */
	uint32_t put_step;
	bool waited;
};

/*
 * Tokens of pools that an actor has: taken and not put back yet. More than these kinds at a time
 * are not followed.
 */
enum { REPLAY_HELD = 4 };
struct replay_held {
	uint32_t queue;
	uint64_t n; /* 0: free row */
};

/* The row of that pool; with `make` a new one when there is room; else NULL. */
static inline struct replay_held *replay_held(struct replay_held *held, uint32_t queue, bool make)
{
	struct replay_held *free_row = NULL;

	for (unsigned i = 0; i < REPLAY_HELD; i++) {
		if (held[i].n && held[i].queue == queue)
			return &held[i];
		if (!held[i].n && !free_row)
			free_row = &held[i];
	}
	if (free_row)
		free_row->queue = queue;
	return make ? free_row : NULL;
}

struct replay_log_queue {
	struct graph_queue_options o;
	bool exclusive;   /* a lock: never more tokens than `initial` */
	bool keyed;       /* some take names a key */
	bool waits_space; /* somebody waited for space of a capacity that nobody told */
	bool used;        /* processor: somebody left it */
	bool left_ready;  /* ... the last one that did, though it had not done */
	uint32_t number;  /* ... from 0 */
	uint64_t kernel_number;
	uint64_t left_ns;
	uint64_t room;      /* units that are there from the start (replay_counts.c) */
	bool ignored;       /* nobody waits for it: another queue says more (replay_counts.c) */
	bool handed_on;     /* a pool whose tokens are put back by others than their takers */
	uint64_t max_units; /* what it held at most */
	uint64_t overfull;  /* units put beyond the capacity: takes make room only after that */
	uint64_t nr_waits, nr_asleep; /* that were explained; in so many it left its processor */

	/* as recorded, up to now */
	struct replay_ring data, space;
	int64_t units;
	uint64_t nr_puts, nr_takes, last_take_ns, last_take_full_ns;
	uint32_t last_take_step;
	struct replay_past_take *take; /* the last REPLAY_TAKES; NULL: fewer than two */
};

/*
 * One life of an actor. What was forgotten has nothing to do with what came before (an interrupt's
 * runs, a kernel thread's jobs): the actor begins anew, in whatever order the simulation comes to
 * it.
 */
enum { REPLAY_LIVES = 64 }; /* of one actor that may have begun and not ended */

/* Sleepers that were woken while others of ours had their processor. */
struct replay_switches {
	uint32_t nr, nr_preempting; /* in so many that one had not done yet */
	uint32_t nr_beside_idle;    /* in so many another processor was none of ours' */
};

struct replay_log_actor {
	uint32_t head, tail; /* its steps */
	uint32_t of;         /* the graph's actor */
	uint32_t nr;         /* of the lives that are nobody's first, from 1; 0: it is one */
	uint32_t lets;       /* the life that may begin when this one has ended; REPLAY_NONE */
	bool waits_for_life; /* ... one that may not begin before */
	uint32_t state;
	uint32_t wait_queue; /* REPLAY_NONE: not known on which */
	uint32_t wait_row;   /* what the wait is for: replay_row() */
	uint32_t cut;        /* the step whose link ends whatever it does; REPLAY_NONE */
	uint32_t gave;       /* the pool that its last verb put tokens into; REPLAY_NONE */
	uint64_t t_last;
	uint64_t order_last; /* steps logged by all, then */
	/* on no processor since; full_ns and none_ns then */
	uint64_t hole_begin_ns, hole_full_ns, hole_none_ns;
	uint64_t hole_ns;      /* since t_last, because ours had them all */
	uint64_t recording_ns; /* since t_last */
	int64_t late_ns;       /* ... of a sleep; below 0: it ended so much early */
	uint64_t takes_then;   /* of wait_queue, when the wait began */
	/* Before the moment being logged it entered a processor that another of ours had left then;
	 * did that one want to go on? */
	uint64_t switch_from_ns;
	bool switched, preempting;
	uint32_t home; /* the processor that it had most often, as it seems; REPLAY_NONE */
	uint32_t at_home;
	struct replay_switches switches;
	uint32_t hole_state; /* what the hole was found to be; REPLAY_NONE: not told */
	bool started, waits, waits_space, in_hole;
	bool slept;  /* left its processor in a state that does not say so (a call) */
	bool asleep; /* ... in the wait that it is in: what ends it must wake it */
	uint64_t slept_ns;
	/* Waits for the same that time limits ended: what it does after each, and in how many it
	 * gave what somebody waited for. */
	uint32_t tick_row, nr_ticks, nr_served;
	uint64_t tick_ns, served_tick_ns; /* the last one began; the last one that did. 0: none */
	struct replay_held held[REPLAY_HELD];
};

struct replay_moment {         /* being logged: GRAPH_MORE leaves it open */
	uint32_t actor, first; /* step; REPLAY_NONE: nothing is open */
	uint32_t last;
	uint64_t t;
	uint64_t available_ns; /* the latest of its dependences */
	uint64_t full_ns;      /* of the log, then */
	uint64_t order;        /* ... and then */
	uint64_t came_ns;      /* graph_verb's */
	uint32_t queue, step;  /* of that */
	uint32_t by;           /* ... who put it, and since when that one was awake (replay_item) */
	uint64_t tick_ns;
	uint32_t waker; /* the step that put what was waited for; REPLAY_NONE: not known */
	uint32_t flags;
	bool depends, links;
	bool early; /* the first step says so much of the sleep that ends here */
};

struct replay_lives {
	uint32_t now;  /* index of an actor of the log; REPLAY_NONE: the next verb begins one */
	uint32_t last; /* the last one */
	uint32_t nr;
	uint32_t *recent; /* the last REPLAY_LIVES, by nr; NULL: there was one only */
};
/* Processors that actors may run on, by the kernel's numbers. */
enum { REPLAY_PROCESSORS_MAX = 4096 };
struct replay_set {
	uint64_t *bits;
	size_t nr_words;
	uint32_t nr_actors; /* that it is the last one of */
};

struct replay_quota { /* of its control group; 0: none */
	uint64_t ns, period_ns;
};
struct graph_replay {
	struct graph_sink sink;
	struct replay_step **chunk;
	size_t nr_steps, chunk_capacity, nr_chunks;
	struct replay_wide *wide;
	size_t nr_wide, wide_capacity;
	struct replay_log_actor *actor; /* lives */
	size_t nr_actors, actor_capacity;
	struct replay_lives *lives; /* [the graph's actor] */
	size_t nr_lives, lives_capacity;
	uint32_t nr_later; /* lives that are nobody's first */
	struct replay_log_queue *queue;
	size_t nr_queues, queue_capacity;
	uint32_t nr_numbered; /* of them: processors */
	bool *executes;       /* [state] */
	size_t nr_states, state_capacity;
	uint32_t last_state;             /* the largest that a verb named */
	struct replay_latency **latency; /* [state]; NULL: none seen */
	struct replay_latency woken;     /* of all who slept, whatever for */
	struct replay_samples switched;  /* ... and then waited for a processor: from having it */
	struct replay_switches switches; /* of all actors */
	struct replay_trend *trend;      /* of trends: (state, actor) -> index */
	struct base_map trends;
	size_t nr_trends, trend_capacity;
	size_t latency_capacity;
	struct replay_moment moment;
	uint64_t wake_ns;      /* learned: what waking a sleeper costs the waker */
	uint64_t wake_busy_ns; /* ... when no processor is free for it */
	bool learned;          /* graph_replay_learn() */
	bool counted;          /* graph_replay_learn_counts() */
	uint64_t switch_ns;    /* ... of `switched`, when there were any */
	uint64_t record_ns;    /* measured: part of each latency after sleep */
	double samples_share;  /* measured: of all executing */
	struct replay_quota quota;
	size_t nr_links;
	uint64_t now, start_ns;
	uint64_t nr_unexplained, unexplained_ns;
	uint64_t nr_given, given_ns; /* by graph_replay_mend() */
	uint32_t end_actor;
	enum base_status failed;

	/* how many actors executed at once, for how long */
	uint64_t *busy_ns;
	size_t busy_capacity;
	uint32_t nr_busy;
	uint64_t busy_since;
	uint64_t full_ns;            /* how long all processors were ours */
	uint64_t none_ns;            /* ... none was */
	uint32_t nr_processors;      /* seen so far */
	uint32_t nr_processors_told; /* that there are; 0: nothing was told */

	/* replay_affinity.c */
	struct replay_set *set;
	size_t nr_sets, set_capacity;
	uint32_t *set_of; /* [the graph's actor]; REPLAY_NONE: anywhere */
	size_t nr_set_of, set_of_capacity;
	uint32_t nr_usable; /* in any set that is an actor's; 0: there is none */

	size_t max_memory_bytes, memory_bytes;
};

/* That the program can use, as far as is known; 0: it is not. */
static inline uint32_t replay_usable(const struct graph_replay *r)
{
	return r->nr_usable ? r->nr_usable : r->nr_processors_told;
}

static inline struct replay_step *replay_step(const struct graph_replay *r, uint32_t i)
{
	return &r->chunk[i >> REPLAY_CHUNK_SHIFT][i & (REPLAY_CHUNK - 1)];
}

/* The actor's next step. A moment that GRAPH_MORE left open at the log's end never happened. */
static inline uint32_t replay_next(const struct graph_replay *r, const struct replay_step *s)
{
	return s->next == r->moment.first ? REPLAY_NONE : s->next;
}

static inline unsigned replay_kind(const struct replay_step *s)
{
	return s->bits & 15;
}

static inline uint32_t replay_flags(const struct replay_step *s)
{
	return s->bits >> REPLAY_FLAGS_SHIFT & 255;
}

static inline enum replay_class replay_class(const struct replay_step *s)
{
	return (enum replay_class)(s->bits >> REPLAY_CLASS_SHIFT & 7);
}

/* The next step of the same moment; REPLAY_NONE: there is none. (Most moments have one step, which
 * says so itself: the next one is far away in memory.) */
static inline uint32_t replay_next_of_moment(
	const struct graph_replay *r, const struct replay_step *s)
{
	uint32_t i;

	if (!(replay_flags(s) & GRAPH_MORE))
		return REPLAY_NONE;
	i = replay_next(r, s);
	return i != REPLAY_NONE && replay_class(replay_step(r, i)) == REPLAY_FOLLOWS ? i
										     : REPLAY_NONE;
}

/* It is looked at soon. */
static inline void replay_fetch(const struct graph_replay *r, uint32_t i)
{
	if (i != REPLAY_NONE)
		__builtin_prefetch(replay_step(r, i));
}

static inline const struct replay_wide *replay_wide(
	const struct graph_replay *r, const struct replay_step *s)
{
	return s->bits & REPLAY_WIDE ? &r->wide[s->arg] : NULL;
}

static inline uint64_t replay_own(const struct graph_replay *r, const struct replay_step *s)
{
	return BASE_UNLIKELY(s->bits & REPLAY_WIDE) ? r->wide[s->arg].own : s->own;
}

static inline uint64_t replay_need(const struct graph_replay *r, const struct replay_step *s)
{
	return BASE_UNLIKELY(s->bits & REPLAY_WIDE) ? r->wide[s->arg].need : s->arg;
}

/* Tokens: whoever comes first takes one, whichever. */
static inline bool replay_is_pool(const struct graph_queue_options *o)
{
	return o->discipline == GRAPH_POOL || (o->initial && o->initial != GRAPH_UNLIMITED);
}

static inline unsigned replay_bucket(uint64_t wait_ns)
{
	unsigned b = wait_ns ? 64u - (unsigned)__builtin_clzll(wait_ns) : 0;

	return b < REPLAY_BUCKETS ? b : REPLAY_BUCKETS - 1;
}

/* Thirds of an octave, from 1; 0: no time at all. */
static inline unsigned replay_length_class(uint64_t wait_ns)
{
	unsigned octave, third;
	uint64_t mantissa;

	if (!wait_ns)
		return 0;
	octave = 63u - (unsigned)__builtin_clzll(wait_ns);
	if (octave >= REPLAY_BUCKETS)
		return REPLAY_CLASSES - 1;
	mantissa = octave > 16 ? wait_ns >> (octave - 16) : wait_ns << (16 - octave);
	third = mantissa >= 104032 ? 2 : mantissa >= 82570; /* 2^(16 + 2/3), 2^(16 + 1/3) */
	return 1 + 3 * octave + third;
}

/* What a wait that begins with this step is for, a queue or a place: waits with time limits that
 * are for the same make a row. REPLAY_NONE: it is no wait, or has to do with no other one. */
#define REPLAY_ROW_OF_PLACE (UINT32_C(1) << 31)
static inline uint32_t replay_row(const struct replay_step *s)
{
	if (replay_kind(s) == GRAPH_VERB_wait_empty || replay_kind(s) == GRAPH_VERB_wait_full)
		return s->queue;
	return replay_kind(s) == GRAPH_VERB_wait && s->queue ? s->queue | REPLAY_ROW_OF_PLACE
							     : REPLAY_NONE;
}

static inline bool replay_is_preempted(const struct replay_step *s)
{
	return replay_class(s) == REPLAY_UNEXPLAINED && s->bits & REPLAY_PREEMPTED;
}

/* Of an enqueue or a dequeue. */
static inline bool replay_was_busy(const struct replay_step *s)
{
	return replay_kind(s) != GRAPH_VERB_resize && s->bits & REPLAY_BUSY;
}

static inline unsigned replay_woke(const struct replay_step *s)
{
	return s->bits >> REPLAY_WOKE_SHIFT & REPLAY_WOKE_MAX;
}

/* Since the actor's last moment; as much as a step says. */
static inline uint32_t replay_recording(const struct replay_log_actor *a)
{
	return a->recording_ns < UINT32_MAX ? (uint32_t)a->recording_ns : UINT32_MAX;
}

static inline uint32_t replay_take_recording(struct replay_log_actor *a)
{
	uint32_t ns = replay_recording(a);

	a->recording_ns = 0;
	return ns;
}

/* replay.c: memory of the log. `want` elements; a failure leaves the array as it was. */
enum base_status graph_replay_mem_resize(struct graph_replay *r, void *data /* T ** */,
	size_t *capacity, size_t want, size_t elem_size_bytes,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_replay_mem_need(struct graph_replay *r, void *data /* T ** */,
	size_t *capacity, size_t need, size_t elem_size_bytes,
	struct base_err *err) BASE_MUST_CHECK;

/* replay_ticks.c: a time limit ended the actor's wait; what it waited for came; the moment ends the
 * actor's wait for what it met in another's tick: then that one's put is nothing, and the wait
 * keeps its length. */
void graph_replay_begin_tick(struct replay_log_actor *a, uint64_t t);
void graph_replay_end_ticks(struct replay_log_actor *a);
bool graph_replay_met_tick(
	struct graph_replay *r, const struct replay_log_actor *a, const struct replay_moment *m);

/* What the sink is told: the graph's own number for first lives, then the others. */
static inline uint32_t replay_told_as(const struct graph_replay *r, uint32_t actor)
{
	const struct replay_log_actor *a = &r->actor[actor];

	return a->nr ? (uint32_t)r->nr_lives + a->nr - 1 : a->of;
}

/* replay_mend.c, replay_run.c: the unedited run, and which steps were given what they lacked. */
struct replay_given_step {
	uint32_t step;
	bool first; /* of a moment that was given something; else it is one that lacked it */
};
struct replay_given {
	struct replay_given_step *step;
	size_t nr, capacity;
};
enum base_status graph_replay_run_giving(const struct graph_replay *r, struct replay_given *given,
	struct graph_replay_result *ret, struct base_err *err) BASE_MUST_CHECK;

enum base_status graph_replay_new_step(struct graph_replay *r, const struct replay_step *step,
	uint32_t *ret, struct base_err *err) BASE_MUST_CHECK;

/* replay_log.c: what the sink does with a verb. */
enum base_status graph_replay_log_verb(struct graph_replay *r, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err) BASE_MUST_CHECK;

/* replay_moment.c: does the actor execute; do ours have all processors; so it was up to t; an actor
 * did so before and does after t, or not; the moment that is open is whole. */
bool graph_replay_is_busy(const struct graph_replay *r, const struct replay_log_actor *a);
bool graph_replay_are_all_busy(const struct graph_replay *r);
void graph_replay_pass_time(struct graph_replay *r, uint64_t t);
enum base_status graph_replay_count_busy(struct graph_replay *r, bool before, bool after,
	uint64_t t, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_replay_close_moment(
	struct graph_replay *r, struct base_err *err) BASE_MUST_CHECK;

enum base_status graph_replay_set_own(
	struct graph_replay *r, uint32_t i, uint64_t own, struct base_err *err) BASE_MUST_CHECK;

/* replay_counts.c: what condition variables count; once, when the log is whole. */
enum base_status graph_replay_learn_counts(
	struct graph_replay *r, struct base_err *err) BASE_MUST_CHECK;

/* replay_items.c */
struct replay_memory { /* the graph that the bytes count for */
	size_t *used_bytes, max_bytes;
};
enum base_status graph_replay_ring_push(struct replay_memory m, struct replay_ring *ring,
	struct replay_item item, struct base_err *err) BASE_MUST_CHECK;
struct replay_take {
	enum graph_discipline discipline;
	bool keyed, keep;
	uint64_t key, n;
};
/* Takes up to n units; returns how many. *latest: the one put last; time REPLAY_NOBODY: none was
 * put by anybody. */
uint64_t graph_replay_ring_take(
	struct replay_ring *ring, const struct replay_take *take, struct replay_item *latest);
void graph_replay_ring_take_back(struct replay_ring *ring, uint64_t n);
uint64_t graph_replay_ring_units(const struct replay_ring *ring, uint64_t key); /* with that key */
void graph_replay_ring_fini(struct replay_ring *ring);
/* The latest of those that somebody put: the later item of two of one time. */
void graph_replay_item_counts(struct replay_item *latest, const struct replay_item *it);
enum base_status graph_replay_items_limit(struct replay_memory m, struct base_err *err);

/* replay_keys.c: the same for a ring with an index, which the first push makes that is `wanted`. */
bool graph_replay_keys_wanted(const struct replay_ring *ring);
enum base_status graph_replay_keys_push(struct replay_memory m, struct replay_ring *ring,
	const struct replay_item *item, struct base_err *err);
uint64_t graph_replay_keys_take(
	struct replay_ring *ring, const struct replay_take *take, struct replay_item *latest);
void graph_replay_keys_take_back(struct replay_ring *ring, uint64_t n);
uint64_t graph_replay_keys_units(const struct replay_ring *ring, uint64_t key);
void graph_replay_keys_fini(struct replay_ring *ring);

/* replay_latency.c */
void graph_replay_sample(struct replay_samples *s, uint64_t value);
double graph_replay_median(const struct replay_samples *s, double *ret_error);
struct replay_handover {
	uint32_t state, actor;
	uint64_t wait_ns, latency_ns;
	bool asleep;
};
enum base_status graph_replay_latency_add(struct graph_replay *r, const struct replay_handover *h,
	struct base_err *err) BASE_MUST_CHECK;
void graph_replay_latency_learn(struct graph_replay *r); /* from all that were added */
uint64_t graph_replay_latency_usual(const struct graph_replay *r, uint32_t state, uint64_t wait_ns);
/* Of a wait whose latency was recorded, when it is not as long as it was. */
uint64_t graph_replay_latency_moved(const struct graph_replay *r, uint32_t state,
	uint64_t latency_ns, unsigned recorded_class, uint64_t wait_ns);

/* replay_affinity.c: the sink's functions, and what they say. */
enum base_status graph_replay_processor(
	void *ctx, uint32_t queue, uint64_t number, struct base_err *err);
enum base_status graph_replay_processor_set(
	void *ctx, uint32_t set, const uint64_t *bits, size_t nr_words, struct base_err *err);
enum base_status graph_replay_affinity(
	void *ctx, uint32_t actor, uint32_t set, struct base_err *err);
bool graph_replay_is_usable(const struct graph_replay *r, uint64_t number); /* by any actor */
/* REPLAY_NONE as a set: anywhere. */
uint32_t graph_replay_set_of(const struct graph_replay *r, uint32_t actor);
bool graph_replay_may_use(const struct graph_replay *r, uint32_t set, uint64_t number);
void graph_replay_affinity_fini(struct graph_replay *r);

#endif
