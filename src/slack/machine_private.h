/* SPDX-License-Identifier: Apache-2.0 */
/* machine_private.h - lanes, links, last writers, objects of synchronisation. Private to the layer.
 */
#ifndef LONGPOLE_SLACK_MACHINE_PRIVATE_H
#define LONGPOLE_SLACK_MACHINE_PRIVATE_H

#include "memory/order/cursor.h"
#include "slack/machine.h"

enum {
	PLACE_SHIFT = 2, /* a location has 4 bytes, as ciat's */
	PAGE_SHIFT = 12,
	PAGE_PLACES = 1 << (PAGE_SHIFT - PLACE_SHIFT),
	PAGE_MIDDLE_BITS = 17,
	PAGE_TOP_BITS = 47 - PAGE_SHIFT - PAGE_MIDDLE_BITS,
	ORDER_BITS = 53, /* of a writer; its processor is in the others */
	ACCESS_PLACES_MAX = (MEMORY_ACCESS_MAX_BYTES >> PLACE_SHIFT) + 1,
};

struct place {           /* who wrote it last */
	uint64_t writer; /* processor << ORDER_BITS | order; 0: nobody */
	uint64_t complete;
};
struct place_page {
	struct place place[PAGE_PLACES];
	uint64_t line_ready[]; /* when its last owner got it; 4096 / line_bytes */
};
struct places {
	struct place_page ***top;
	struct base_arena *pages, *middles;
	uint64_t last_number; /* of the page that was asked for last */
	struct place_page *last;
	size_t page_bytes;
	uint64_t nr_pages;
};
enum base_status slack_places_init(struct places *p, uint64_t line_bytes, uint64_t limit_bytes);
void slack_places_fini(struct places *p);
/* NULL: no memory. */
struct place_page *slack_places_make(struct places *p, uint64_t number);
static inline struct place_page *slack_places_page(struct places *p, uint64_t address)
{
	uint64_t number = address >> PAGE_SHIFT;
	if (BASE_LIKELY(p->last && p->last_number == number))
		return p->last;
	struct place_page **middle = p->top[number >> PAGE_MIDDLE_BITS];
	struct place_page *page = middle ? middle[number & ((1u << PAGE_MIDDLE_BITS) - 1)] : NULL;
	if (BASE_UNLIKELY(!page))
		page = slack_places_make(p, number);
	p->last = page;
	p->last_number = number;
	return page;
}

/* ---- network: machine_network.c */
struct network {
	uint64_t *out_free, *in_free; /* by node: when its link is free again */
	uint64_t order_free;          /* of the ordered broadcast network */
	uint64_t control_cycles, data_cycles;
	uint64_t messages, broadcasts;
};
enum base_status slack_network_init(struct network *n, const struct slack_machine_config *c);
void slack_network_fini(struct network *n);
/* When what a request at `at` asked for is there; *contention grows by what was waited for links.
 */
uint64_t slack_network_request(struct network *n, const struct slack_machine_config *c,
	uint32_t processor, uint64_t at, const struct memory_cdat_outcome *o, uint64_t *contention);

/* ---- lanes: one thread's stream on its processor */
/* ---- loops that only wait: machine_spin.c; all but _init only when m->spinner */
struct slack_spinner;
struct lane;
struct slack_machine;
enum base_status slack_spin_init(struct slack_machine *m);
/* After a taken branch; at the end of the stream. */
void slack_spin_branched(struct slack_machine *m, const struct lane *l);
void slack_spin_ended(struct slack_machine *m, const struct lane *l);
/* It begins to wait anew on the word at `address`; _ended() when it is through with it. */
void slack_spin_entered(
	struct slack_machine *m, const struct lane *l, uint64_t address, uint64_t round);
void slack_spin_loaded(struct slack_machine *m, const struct lane *l, uint64_t address);
void slack_spin_stored(struct slack_machine *m, uint64_t address, uint64_t bytes,
	const struct slack_producer *writer);

/* ---- waits of such loops, anew: machine_wait.c; all but _init only when m->waiter */
struct slack_waiter;
enum slack_wait_turn { SLACK_WAIT_RUN, SLACK_WAIT_PASS, SLACK_WAIT_AGAIN, SLACK_WAIT_PARKED };
enum base_status slack_wait_init(struct slack_machine *m);
void slack_wait_fini(struct slack_machine *m);
/* Before the item: RUN it, PASS over it, or look AGAIN; PARKED: the lane waits, and is to leave the
 * heap. */
enum base_status slack_wait_before(struct slack_machine *m, struct lane *l,
	const struct memory_item *t, enum slack_wait_turn *ret, struct base_err *err);
/* After an item that was run. */
void slack_wait_after(struct slack_machine *m, struct lane *l);
/* Nobody runs: lets go who has waited longest. False: nobody waits so. */
bool slack_wait_force(struct slack_machine *m);
/* Are the rounds from here on left out? */
bool slack_wait_skips(const struct slack_machine *m, const struct lane *l);

enum lane_state {
	LANE_UNBORN, /* nobody has created it yet */
	LANE_RUNS,   /* on the heap */
	LANE_WAITS,  /* for `object` */
	LANE_JOINS,  /* the end of lane `awaits` */
	LANE_MEETS,  /* at the end of a region, for all others */
	LANE_SPINS,  /* in a loop, for a store */
	LANE_ENDED
};

struct lane {
	struct memory_cursor cursor;
	uint64_t time;  /* through with all before */
	uint64_t issue; /* of the next instruction: later than `time` when code is fetched */
	uint64_t limit; /* of what it waited for */
	uint64_t tail;  /* plain instructions of the block still to come */
	uint64_t tail_code, call_code; /* call: within the block's last instruction */
	uint64_t line;                 /* of code, fetched last; UINT64_MAX: none */
	uint64_t executed;
	uint64_t ahead; /* recorded instructions that it is through with, less those executed */
	enum lane_state state;
	uint32_t awaits;
	struct object *object;
	struct lane *next; /* the threads that wait behind us */
	uint64_t asked_ns; /* recorded: when it began to wait */
	uint8_t pending;   /* enum slack_kind that it goes on with; 0: none */
	bool started;      /* has had a node or run */
	bool respins;      /* what it executes was not recorded */
	bool last_unlock;  /* the record before was an unlock, at unlock_ns */
	uint64_t unlock_ns;
	struct slack_producer last; /* its end */
	struct slack_producer woken_by;
};

/* What threads synchronise on: lock, barrier, condition, semaphore. */
struct object {
	uint64_t address;
	struct lane *first, *behind; /* the waiters, in the order of coming */
	uint32_t nr_waiting;
	struct lane *holder;
	uint32_t depth;
	uint64_t tokens, signal_ns;
	bool signalled;
	struct slack_producer giver;    /* the last signal or the last one that opened it */
	struct slack_producer *arrived; /* at a barrier */
	uint32_t nr_arrived;
};

struct slack_machine {
	struct slack_machine_config config;
	struct memory_source *source;
	struct slack_machine_options options;
	struct slack_sink sink;
	struct slack_machine_result result;
	struct memory_cdat *cdat;
	struct places places;
	struct network network;
	struct lane *lane;
	uint32_t nr_lanes;
	uint64_t *heap; /* (cycle << 10) | lane */
	uint32_t nr_heap;
	struct base_map objects;
	struct object **object;
	size_t nr_objects, objects_capacity;
	struct slack_producer *producer; /* scratch: nr_lanes + ACCESS_PLACES_MAX */
	uint64_t order;
	struct slack_spinner *spinner; /* by lane; NULL: not asked for */
	struct slack_waiter *waiter;   /* of all lanes; NULL: not asked for */
	uint32_t nr_spinning;          /* lanes that spin */
	unsigned line_shift;
	bool in_region, has_region, stopped;
};

enum { KEY_BITS = 10 };
static inline uint64_t slack_key(uint64_t cycle, uint32_t lane)
{
	return cycle << KEY_BITS | lane;
}
/* A node of a processor that starts at `start`: the access to [address, + bytes), if bytes is not
 * 0. `extra`: producers beside those of memory. *ret: the node as a producer. */
struct slack_access {
	uint64_t address, code;
	uint64_t bytes;
	uint8_t kind, instructions;
	bool loads, stores;
	const struct slack_producer *extra;
	uint32_t nr_extra;
};
enum base_status slack_machine_node(struct slack_machine *m, struct lane *l,
	const struct slack_access *a, struct slack_producer *ret, struct base_err *err);

/* `count` plain instructions. */
enum base_status slack_machine_plain(struct slack_machine *m, struct lane *l, uint64_t count,
	uint64_t code, struct base_err *err);

/* ---- machine_sync.c: call records */
/* The lane is off the heap, its time is `time`; puts back who may run. */
enum base_status slack_sync_call(struct slack_machine *m, struct lane *l,
	const struct memory_call *call, struct base_err *err);
/* A lane goes on after having waited. */
enum base_status slack_sync_resume(struct slack_machine *m, struct lane *l, struct base_err *err);
enum base_status slack_sync_ended(struct slack_machine *m, struct lane *l, struct base_err *err);
/* Nobody runs. *ret_freed: somebody does now. */
enum base_status slack_sync_stuck(struct slack_machine *m, bool *ret_freed, struct base_err *err);
void slack_sync_fini(struct slack_machine *m);
/* Lets a lane run from cycle `at` on. */
void slack_machine_start(struct slack_machine *m, struct lane *l, uint64_t at);

#endif
