/* SPDX-License-Identifier: Apache-2.0 */
/* closed_private.h - what closed.c (events, messages) and closed_thread.c (programs) share. */
#ifndef LONGPOLE_NOC_CLOSED_PRIVATE_H
#define LONGPOLE_NOC_CLOSED_PRIVATE_H

#include "noc/closed.h"

/* Receptions that something waits for; which are beyond the limit is not known. */
enum { CLOSED_CAUSES_MAX = 40 };
struct closed_causes {
	uint32_t packet[CLOSED_CAUSES_MAX], nr;
};

enum noc_closed_state {
	CLOSED_RUNS,
	CLOSED_WATCHES, /* spins on a copy of a line until that is taken away */
	CLOSED_ENDED,
};

/* What a thread does once its access is done. */
enum noc_closed_then {
	CLOSED_GO_ON,
	CLOSED_ARRIVE,   /* at the barrier */
	CLOSED_ACQUIRE,  /* the lock */
	CLOSED_TAKE,     /* the lock that it was given */
	CLOSED_LOOK,     /* has what it watches for happened? */
	CLOSED_RELEASED, /* threads that watch what was just stored have seen it by now */
	CLOSED_END,
};

struct noc_closed_thread {
	enum noc_closed_state state;
	enum noc_closed_then then;
	uint64_t cycle; /* it has come so far */
	struct memory_batch batch;
	size_t at;
	uint64_t nr_body, body_at, iteration; /* of a REPEAT; 0: none */
	/* an access that is not yet made; a range is made line by line */
	bool has_access;
	enum memory_item_kind kind;
	uint64_t address, left_bytes;
	/* synchronisation */
	uint64_t object, parties;    /* of the call that it obeys */
	uint64_t watched;            /* address; 0: nothing */
	bool released;               /* what it watches for has happened */
	bool at_barrier, at_lock;    /* of `object` */
	enum noc_closed_then after;  /* then it has seen that */
	struct closed_causes causes; /* of what it does next: the data that it waited for */
	bool started, is_over;       /* is_over: its last store is under way */
	uint32_t children, joining;  /* left to start, next to join, of spawn and join */
};

enum noc_closed_step { CLOSED_ACCESS, CLOSED_BLOCKED };

struct noc_closed;
/* Goes on to the thread's next access (*ret CLOSED_ACCESS: thread->kind, address, at thread->cycle)
 * or until it is blocked or ended. */
enum base_status noc_closed_advance(struct noc_closed *c, uint32_t thread,
	enum noc_closed_step *ret, struct base_err *err) BASE_MUST_CHECK;
/* The thread's access is done at `cycle`: what follows for it and for others. */
enum base_status noc_closed_done(struct noc_closed *c, uint32_t thread, uint64_t cycle,
	struct base_err *err) BASE_MUST_CHECK;
/* A line was asked back from the thread's cache: if that is what it watches, it looks again. */
enum base_status noc_closed_recalled(struct noc_closed *c, uint32_t thread, uint64_t line,
	uint32_t packet, uint64_t cycle, struct base_err *err) BASE_MUST_CHECK;
/* Makes the thread wait for its creation. */
void noc_closed_await_start(struct noc_closed *c, uint32_t thread);
/* A thread has something to do at `cycle`. */
enum base_status noc_closed_wake(struct noc_closed *c, uint32_t thread, uint64_t cycle,
	struct base_err *err) BASE_MUST_CHECK;

struct closed_event {
	uint64_t cycle, sequence;
	uint32_t thread;  /* or UINT32_MAX: a message */
	uint32_t message; /* access * CLOSED_MESSAGES_MAX + place */
};

enum { CLOSED_MESSAGES_MAX = 96 };

void noc_closed_add_cause(struct closed_causes *to, uint32_t packet);

struct closed_message {
	uint32_t source, destination, flits, packet; /* packet: in the trace */
	uint64_t line, latest_cycle;
	uint32_t delay_cycles;
	uint8_t code, waits; /* for so many others of the access, and one for its start */
	bool resumes;        /* the processor goes on when it has come */
	struct closed_causes causes;
};

struct closed_access {
	struct closed_message message[CLOSED_MESSAGES_MAX];
	uint32_t nr, nr_left, nr_resuming, thread;
	struct closed_causes resumed; /* by these */
	uint64_t line;                /* of the request */
	uint32_t home_left;           /* messages about it that the home has still to get */
	uint32_t home_last;  /* the one that it got last; NOC_PDG_NONE: none from outside */
	uint32_t follower;   /* access to the same line that was issued next; UINT32_MAX: none */
	uint32_t generation; /* an access is used again */
	uint64_t resume_cycle;
	uint32_t next_free;
};

struct noc_closed {
	struct memory_source *program;
	const struct noc_closed_options *options;
	struct memory_cdat *machine;
	struct noc_network *network;
	struct noc_closed_thread *thread;
	uint32_t nr_threads, nr_ended, nr_created, nr_joined;
	struct base_map locks; /* (0, address) -> holder */
	struct base_map lines; /* (0, line) -> generation << 32 | access that was issued last */
	struct closed_event *heap;
	size_t nr_events, events_capacity;
	uint64_t sequence;
	struct closed_access **access;
	size_t nr_accesses, accesses_capacity;
	uint32_t free_access;       /* UINT32_MAX: none */
	struct closed_access *open; /* whose transactions are being told */
	bool too_many;              /* transactions of one access */
	struct noc_closed_result *result;
};

#endif
