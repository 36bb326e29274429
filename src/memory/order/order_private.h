/* SPDX-License-Identifier: Apache-2.0 */
/* order_private.h - lanes (streams), processors and the slice scheduler. Private to the layer. */
#ifndef LONGPOLE_MEMORY_ORDER_PRIVATE_H
#define LONGPOLE_MEMORY_ORDER_PRIVATE_H

#include "base/heap.h"
#include "memory/order/cursor.h"
#include "memory/order/order.h"

enum lane_state {
	LANE_WAITS, /* for a spawn, or for a processor */
	LANE_RUNS,
	LANE_BARRIER,
	LANE_JOINED, /* reached the join of its parallel phase */
	LANE_JOINS,  /* waits for the end of lane `awaits` */
	LANE_HELD,   /* until others are as far as they were (order_holds.c) */
	LANE_IDLE,   /* a live source has nothing for it */
	LANE_ENDED
};

enum memory_hold_kind {
	HOLD_THREADS, /* that all have ended that had when a thread was created, or had its stack */
	HOLD_SIGNAL,  /* that somebody signals the object, or frees the block, in that time */
	HOLD_UNIT     /* that somebody gives a unit of the object back (order_units.c) */
};
struct memory_hold { /* what a lane waits for */
	enum memory_hold_kind kind;
	uint64_t created_ns, begin_ns, stack; /* THREADS */
	uint64_t object, from_ns, to_ns;      /* others; UNIT: its index */
	uint64_t nr;                          /* UNIT: as many, where they are counted */
	bool shares;                          /* UNIT: of a lock, with others */
};

struct memory_least {           /* of recorded times that threads are at; */
	uint64_t ns, others_ns; /* and without the one that is at it */
	uint32_t lane, other;   /* whose they are */
	bool is_known;
};

/* One stream of the source, and where we are in it. */
struct memory_lane {
	struct memory_cursor cursor;
	uint64_t barrier; /* address, while LANE_BARRIER */
	uint64_t barrier_parties;
	uint64_t blocked_until; /* clock: waits for the disk */
	uint64_t sliced;        /* instructions of its slice so far */
	uint32_t awaits;
	uint32_t processor; /* that it runs or ran on */
	bool has_run;
	bool joined;             /* somebody has, or waits for that */
	struct memory_life life; /* zeroes: not known */
	struct memory_hold held; /* while LANE_HELD */
	uint64_t unlocked_ns;    /* when it last gave up a lock */
	enum lane_state state;
	struct memory_batch calls; /* of the call traces; see take_call_times() */
	size_t calls_at;
};

/* What executes: a thread of the program, or one of -i's processors. */
struct memory_cpu {
	uint64_t clock;
	struct memory_lane *lane; /* NULL: idle */
	bool active;              /* as last told by a step */
};

struct memory_scheduler;
struct memory_order {
	struct memory_source *source, *calls;
	struct memory_order_options options;
	struct memory_lane *lane;
	struct memory_cpu *cpu;
	uint32_t nr_lanes, nr_cpus;
	struct base_turns due;    /* of the processors that run: (due << 10) | number */
	struct memory_step *step; /* MEMORY_STEPS_MAX */
	size_t nr_steps;
	struct memory_call *call;
	size_t nr_calls;
	struct memory_scheduler *scheduler; /* SLICES, ROUND_ROBIN */
	enum memory_phase_kind phase;
	bool phase_open, user_open, ended;
	uint64_t region;
	struct memory_lane total_lane; /* TOTAL_ORDER: being handed out */
	uint32_t nr_created;           /* TOTAL_ORDER: threads created and not yet joined */
	uint32_t nr_waits;             /* lanes that are held, but for threads */
	struct memory_least least;     /* as it was when it was looked at */
	struct base_map block_of;      /* heap blocks by address: of which lane, since when */
	struct base_map signal_of;     /* object -> index */
	struct memory_signals *signals;
	size_t nr_signals, signals_capacity;
	struct base_map units_of; /* what is taken and given, by kind and address -> index */
	struct memory_units *units;
	size_t nr_units, units_capacity;
	struct memory_runs *runs; /* NULL: only steps are wanted */
	uint64_t turns;           /* of threads in loops until it is time to ask for pieces again */
};

enum { KEY_BITS = 10 };
static inline uint64_t memory_key(uint64_t due, uint32_t cpu)
{
	return due << KEY_BITS | cpu;
}

static inline uint32_t memory_key_cpu(uint64_t key)
{
	return key & ((1u << KEY_BITS) - 1);
}

uint64_t memory_order_lane_key(
	const struct memory_order *o, uint32_t cpu, const struct memory_item *t);
/* The clock value that stands for a length of time. */
uint64_t memory_order_clocks(const struct memory_order *o, double ms);

/* Lets a lane run on a processor from `clock` on; it may turn out to have ended. */
enum base_status memory_order_start(
	struct memory_order *o, uint32_t lane, uint32_t cpu, uint64_t clock, struct base_err *err);

/* All that the end of a processor's lane means to others; twice is as good as once. */
enum base_status memory_order_ended(struct memory_order *o, uint32_t cpu, struct base_err *err);

/* ---- order_holds.c: threads that nobody joined, condition variables, heap blocks */
/* `lane` is about to create `child`, both may go on behind it: must they wait first? Then they are
 * held. */
enum base_status memory_order_hold(struct memory_order *o, uint32_t lane, uint32_t child,
	const struct memory_call *call, bool *ret, struct base_err *err);
/* A lane has ended: those that wait for threads, and no longer need to, go on. */
enum base_status memory_order_let_go(struct memory_order *o, struct base_err *err);
/* Nobody runs, and some are held: by those that wait themselves, or were not recorded whole. */
enum base_status memory_order_unblock(struct memory_order *o, struct base_err *err);
/* What the lane was held for has come, at that clock. */
enum base_status memory_order_let_one_go(
	struct memory_order *o, uint32_t lane, uint64_t clock, struct base_err *err);
/* A lane has made a call, or has ended: those that wait for what can no longer come go on. */
enum base_status memory_order_let_late_go(
	struct memory_order *o, uint32_t lane, bool has_ended, struct base_err *err);
/* A lane has made a call, of any kind. *ret: it was to wait, and goes on by itself. */
enum base_status memory_order_call(struct memory_order *o, uint32_t lane,
	const struct memory_call *call, bool *ret, struct base_err *err);
void memory_order_holds_fini(struct memory_order *o);

/* ---- order_units.c: locks, semaphores, how often conditions were signalled */
/* A lane has made a call, of any kind. *ret: it is to wait; lane->held says for what. */
enum base_status memory_order_units(struct memory_order *o, uint32_t lane,
	const struct memory_call *call, bool *ret, struct base_err *err);
/* All others are at `others_ns` or later: was what the lane waits for given where nobody saw it? */
bool memory_order_unit_is_lost(const struct memory_order *o, uint32_t lane, uint64_t others_ns);
/* The lane has it now, whoever else does. */
void memory_order_unit_take(struct memory_order *o, uint32_t lane);
void memory_order_units_fini(struct memory_order *o);

/* ---- order_runs.c: loops as a whole */
/* Are there pieces now? Then *ret has them. Lanes that run have an item at hand. A question
 * costs as much as some items: only when o->turns are over. */
bool memory_order_offer(struct memory_order *o, struct memory_steps *ret);

/* ---- order_slices.c: which stream runs on which processor */
enum base_status memory_scheduler_new(struct memory_order *o, struct base_err *err);
struct memory_scheduler *memory_scheduler_free(struct memory_scheduler *s);
/* Gives processors that have nothing to run the next stream that may run. */
enum base_status memory_scheduler_fill(struct memory_order *o, struct base_err *err);
/* After each item: is the slice over, its time used up, or must it wait for the disk? True: the
 * stream has left the processor. */
bool memory_scheduler_after(struct memory_order *o, uint32_t cpu, const struct memory_call *call);
void memory_scheduler_ended(struct memory_order *o, uint32_t cpu);
/* All streams wait for the disk: time moves on to the first that need not. False: none waits. */
bool memory_scheduler_skip(struct memory_order *o);

#endif
