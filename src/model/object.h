/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - what the model knows of something that is waited on. */
#ifndef LONGPOLE_MODEL_OBJECT_H
#define LONGPOLE_MODEL_OBJECT_H

#include "graph/graph.h"

enum { MODEL_SIGNALS_MAX = 64, MODEL_HOLDS_KEPT = 4 };

struct signals { /* sent, not yet seen to arrive; oldest first */
	struct {
		uint64_t time_ns, n;
		uint32_t slot;
	} sent[MODEL_SIGNALS_MAX];
	uint32_t nr;
	uint32_t queue[MODEL_SIGNALS_MAX]; /* one a signal, so that a waiter can take the one that
					      was meant for it */
	bool used[MODEL_SIGNALS_MAX];
};

/* One of the requests that a disk does at once. */
struct disk_slot {
	uint32_t actor;
	uint64_t key;
	bool busy;
};
struct disk {
	struct disk_slot *slot;
	uint32_t nr_slots;
	size_t slot_capacity;
};

/* A TCP socket's sending half: see rules_kernel_tcp.c. Queues are NONE until first used. */
struct tcp {
	uint32_t sender;                       /* actor */
	uint32_t window, unsent, room;         /* credits, bytes, credits */
	uint32_t below;                        /* credits: bytes that have left the discipline */
	uint64_t sent, acknowledged;           /* sequence numbers: up to there */
	uint64_t peer_bytes, congestion_bytes; /* windows */
	uint64_t room_bytes;                   /* acknowledged, and not given as room yet */
	uint64_t
		sent_early; /* in the program's present call, which says only at its end how much */
	bool known, heard, open;
};

struct packet { /* bytes of a flow, from sequence number to sequence number */
	uint64_t key;
	uint32_t begin, end;
};

enum { PACKETS_FOUND_MAX = 64 };

struct packets { /* under way on a flow */
	struct packet *packet, found[PACKETS_FOUND_MAX];
	size_t nr, capacity;
};

/* What a process's end does something to, found from the process (ends.c). */
enum owned_how {
	OWNED_written, /* pipe: the image that wrote last: its end is the end of file */
	OWNED_closed, /* pipe: the pid key of the eldest process that closed its writing end; nobody
			 yet, or its end has been read */
	OWNED_locked, /* file: the pid key of the process that has locked it */
	OWNED_NR
};
struct owned {
	uint64_t owner; /* 0: nobody recorded */
	uint64_t since_ns;
	uint32_t next, prev; /* of the same owner, the newest first; 0: none */
};
/* Parts of something waited on, by the rules whose they are. */
struct object_lock {     /* rules_lock.c: also condition variables, barriers, semaphores */
	uint32_t pseudo; /* pseudo-actor: collects a barrier's arrivals, an rwlock's readers */
	struct {
		uint32_t site, state;       /* site + 1 */
	} hold[MODEL_HOLDS_KEPT];           /* states of holding it, by site: a cache */
	uint64_t taken_ns, released_ns;     /* mutex: last taken, last given up */
	uint64_t waiters, parties, arrived; /* condition variable; barrier */
	uint64_t doubted; /* semaphore: units of which a wait says that they are taken already */
	uint64_t waited_since_ns;     /* condition variable: by the first of its waiters */
	struct {                      /* semaphore: one unit, which its taker gives back? */
		uint32_t taker;       /* stream + 1; 0: it is there */
		uint32_t nr_returned; /* how often so */
		bool never;           /* it was otherwise once */
	} as_lock;
	struct signals *signals; /* condition variable */
};
struct object_bytes {    /* rules_io.c, rules_message.c; by system calls: rules_kernel_call.c */
	bool tells_room; /* a search for room finds the last reader */
	bool called;     /* listener: a socket that is recorded, too, connects to it */
	bool calls;      /* connecting socket: its unit is in the listener's queue */
	uint64_t ahead_bytes; /* taken before their reader said so, and more than it took */
	uint64_t debt_bytes;  /* read before the (blocked) write that brings them was accounted; of
				 messages: units */
	uint64_t outside;     /* messages: units of those that are sent, but are not in it yet */
};
struct object_sending {                       /* rules_kernel_net.c: a queueing discipline */
	uint32_t sender;                      /* the actor that sends what it holds */
	bool sends;                           /* ... and has something to send */
	struct {                              /* ... and how fast */
		uint64_t came_ns;             /* into an empty one: when; 0: it was not */
		uint64_t left_ns;             /* the last packet; 0: none */
		uint64_t busy_ns, busy_bytes; /* lately, while it always had some */
	} rate;
};

/* Something waited on, by definition id. Queue ids are NONE until first used. */
struct object {
	uint32_t same_as;       /* another definition of it; 0: none */
	uint32_t queue, queue2; /* the token, bytes, ...; arrivals of a barrier, reader releases,
				   end of file; io_uring: submitted */
	uint32_t queue3;        /* what a pseudo-actor passes on; io_uring: handed to its threads */
	uint32_t room;          /* rwlock: a token for each reader that is not in; io_uring: wait
				   for their files */
	uint32_t class_ix;      /* + 1 */
	uint32_t user;          /* processor: the stream that left it last; bytes: that reads */
	uint64_t left_ns;       /* ... and when; bytes: when some were taken last */
	struct object_lock lock;
	struct object_bytes bytes;
	struct object_sending sending;
	struct owned owned[OWNED_NR];
	struct disk *disk;
	struct tcp *tcp;
	struct packets *packets, *held; /* flow: under way; in a discipline */
};

struct connection { /* two directions, by the writer's side */
	struct object side[2];
};

#endif
