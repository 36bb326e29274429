/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - what components are made of: machines that stop and go on, queues on which they wait,
 * processors. Every operation writes its verb (see README.md). Private to the layer.
 */
#ifndef LONGPOLE_PLATFORM_MACHINE_H
#define LONGPOLE_PLATFORM_MACHINE_H

#include "platform/event.h"
#include "platform/note.h"

enum platform_state {
#define STATE(name, text) PLATFORM_STATE_##name,
#include "platform/states.def"
	PLATFORM_STATE_NR
};

struct platform_packet;
struct platform_queue;

/* ---- the run --------------------------------------------------------------------------------- */

struct platform_sim {
	uint64_t now_ns, nr_events;
	struct platform_events events;
	struct platform_note note;
	uint32_t state_id[PLATFORM_STATE_NR];
	uint64_t random;
	double jitter; /* of software times: +- this share */
	bool ended;    /* the applications have done their work */
	enum base_status status;
	struct base_err *err;
	struct base_arena *arena; /* everything lives as long as the run */
	struct platform_packet *free_packets;
};

/* Keeps the first failure, which ends the run. */
void platform_sim_fail(struct platform_sim *s, enum base_status status);
void *platform_sim_alloc(struct platform_sim *s, size_t size_bytes); /* never NULL: see .c */
/* Runs events until `ended`, or there are none, or end_ns is reached (0: no limit). */
void platform_sim_run(struct platform_sim *s, uint64_t end_ns);

/* ---- packets --------------------------------------------------------------------------------- */

struct platform_end; /* of a connection: net.h */

struct platform_packet {
	struct platform_packet *next; /* in whatever list it is in */
	struct platform_end *to;
	uint32_t ip_bytes;       /* with the IP header */
	uint32_t payload_bytes;  /* of TCP or UDP, fragments: of the datagram's data */
	uint64_t seq, ack, edge; /* TCP: first byte; next expected; right edge of the window */
	bool is_last_fragment, is_probe; /* is_probe: TCP, asks for an acknowledgement */
	uint32_t charged_bytes;          /* UDP: of the sender's buffer, until it is sent */
	struct platform_end *from;
	uint64_t connection;
};
struct platform_packets { /* a list, first in, first out */
	struct platform_packet *first, *last;
};
static inline void platform_packets_add(struct platform_packets *l, struct platform_packet *p)
{
	p->next = NULL;
	if (l->first)
		l->last->next = p;
	else
		l->first = p;
	l->last = p;
}
static inline struct platform_packet *platform_packets_remove(struct platform_packets *l)
{
	struct platform_packet *p = l->first;
	BASE_ASSERT(p);
	l->first = p->next;
	return p;
}
struct platform_packet *platform_packet_new(struct platform_sim *s);
void platform_packet_free(struct platform_sim *s, struct platform_packet *p);
/* On the link's ends and in FIFOs: with the Ethernet header, and the least that Ethernet sends. */
uint32_t platform_packet_frame_bytes(const struct platform_packet *p);

/* ---- machines -------------------------------------------------------------------------------- */

enum { PLATFORM_LEVELS = 6 };

struct platform_processor {
	struct platform_machine *running;
	struct platform_queue *pool; /* NULL: serves interrupts only */
	struct platform_machine *by; /* the interrupt */
	bool interrupted, taken;     /* taken: it was idle, and the interrupt has its token */
};
struct platform_want {                       /* what a stopped machine waits for */
	struct platform_queue *queue, *then; /* then: also a token of that pool */
	struct platform_packet *packet;      /* to put */
	uint64_t need, most;
	bool space, reserve, has_waited;
};
struct platform_machine {
	/* One more stretch; false: it stopped somewhere, true: it is done for ever. */
	bool (*step)(struct platform_sim *s, struct platform_machine *m);
	uint32_t actor;
	uint32_t at[PLATFORM_LEVELS]; /* where it goes on, by call depth */
	uint64_t turn;                /* events of earlier turns are void */
	uint64_t connection;
	struct platform_want want;
	struct platform_machine *next;   /* waiter */
	uint64_t taken;                  /* units of the last TAKE */
	uint64_t count;                  /* what the component keeps over a stop */
	struct platform_packet *packet;  /* item of the last TAKE */
	struct platform_packet *sending; /* by the stack */
	/* software */
	struct platform_processor *processor;
	enum platform_state state;
	bool is_working, is_frozen;
	uint64_t work_end_ns, left_ns, on_processor_since_ns;
};

/* Defines the actor; it takes its first step at time 0. */
void platform_machine_start(struct platform_sim *s, struct platform_machine *m, const char *system,
	const char *name, uint64_t instance,
	bool (*step)(struct platform_sim *s, struct platform_machine *m));

/* The body of a step function, or of one called from it at the next level. */
#define PLATFORM_BEGIN(m, level)                                                                   \
	enum { LEVEL = (level) };                                                                  \
	switch ((m)->at[LEVEL]) {                                                                  \
	case 0:;
#define PLATFORM_END(m)                                                                            \
	}                                                                                          \
	(m)->at[LEVEL] = 0;                                                                        \
	return true
#define PLATFORM_STOP(m)                                                                           \
	do {                                                                                       \
		(m)->at[LEVEL] = __LINE__;                                                         \
		return false;                                                                      \
	case __LINE__:;                                                                            \
	} while (0)
/* The second one of a macro. */
#define PLATFORM_STOP_2(m)                                                                         \
	do {                                                                                       \
		(m)->at[LEVEL] = __LINE__ + (1u << 30);                                            \
		return false;                                                                      \
	case __LINE__ + (1u << 30):;                                                               \
	} while (0)
/* Calls a function of the next level; stops whenever it does. */
#define CALL(m, call)                                                                              \
	do {                                                                                       \
		(m)->at[LEVEL] = __LINE__;                                                         \
		__attribute__((fallthrough));                                                      \
	case __LINE__:                                                                             \
		if (!(call))                                                                       \
			return false;                                                              \
	} while (0)

/* ---- time ------------------------------------------------------------------------------------ */

/* In a state for a time; a process on an interrupted processor goes on afterwards. True: stop. */
bool platform_work(
	struct platform_sim *s, struct platform_machine *m, enum platform_state state, uint64_t ns);
#define WORK(s, m, state_, ns)                                                                     \
	do {                                                                                       \
		if (platform_work((s), (m), PLATFORM_STATE_##state_, (ns)))                        \
			PLATFORM_STOP(m);                                                          \
	} while (0)
/* Software's time, with jitter. */
uint64_t platform_cost(struct platform_sim *s, double ns);
/* Does it happen this time? Draws nothing at 0. */
bool platform_chance(struct platform_sim *s, double percent);
/* bytes at gbps (1e9 bits a second), rounded up. */
uint64_t platform_bytes_ns(uint64_t bytes, double gbps);

/* ---- queues ---------------------------------------------------------------------------------- */

#define PLATFORM_ITEM UINT64_MAX /* as `most`: the whole first item, whatever its units */

struct platform_item {
	struct platform_packet *packet;
	uint64_t units;
};
struct platform_queue {
	uint32_t object;
	uint64_t flags;    /* LONGPOLE_* */
	bool is_silent;    /* its verbs are not written: a matter of the simulator's alone */
	uint64_t units;    /* free to take */
	uint64_t held;     /* with those taken but not yet written down, and reserved space */
	uint64_t capacity; /* 0: not bounded */
	struct platform_item *item;
	size_t first, nr_items, item_capacity;
	bool has_items;
	struct platform_machine *waiting, *waiting_last; /* for units */
	struct platform_machine *wants_space, *wants_space_last;
	uint64_t max_units, nr_dropped;
	/* of a pool of processors */
	struct platform_processor *processor;
	unsigned nr_processors;
};

void platform_queue_init(struct platform_sim *s, struct platform_queue *q, const char *system,
	const char *name, uint64_t instance, uint64_t capacity, uint64_t flags);
void platform_queue_fini(struct platform_queue *q);
/* Items that are written down only: q holds nothing, whoever takes one knows that it is there. */
void platform_wait_for_item(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q);
void platform_put_item(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t key);
void platform_take_item(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t key);
/* m puts that many there, of nobody's making. */
void platform_queue_fill(
	struct platform_sim *s, struct platform_queue *q, struct platform_machine *m, uint64_t n);

/* n of its free units are taken away, by nobody who needs them. */
void platform_queue_shrink(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n);

/* At least need, at most `most` units; also a token of `then` (NULL: none). False: stop, then
 * platform_taken(). m->taken and m->packet say what it got. */
bool platform_take(struct platform_sim *s, struct platform_machine *m, struct platform_queue *q,
	uint64_t need, uint64_t most, struct platform_queue *then);
void platform_taken(struct platform_sim *s, struct platform_machine *m);
#define TAKE_SOME(s, m, q, need, most, then)                                                       \
	do {                                                                                       \
		if (!platform_take((s), (m), (q), (need), (most), (then))) {                       \
			PLATFORM_STOP(m);                                                          \
			platform_taken((s), (m));                                                  \
		}                                                                                  \
	} while (0)
#define TAKE(s, m, q, n)   TAKE_SOME(s, m, q, n, n, NULL)
#define TAKE_ITEM(s, m, q) TAKE_SOME(s, m, q, 1, PLATFORM_ITEM, NULL)
/*
 * A delay that is nobody's work (the cable's, a timer's): taken at until_ns (an expression that may
 * use what was granted), and the time since the units came is the queue's latency. So delays of
 * successive units do not add up, as they would if the machine worked.
 */
void platform_wait(struct platform_sim *s, struct platform_machine *m, struct platform_queue *q,
	uint64_t most);
void platform_sleep(struct platform_sim *s, struct platform_machine *m, uint64_t until_ns);
#define TAKE_LATE(s, m, q, most, until_ns)                                                         \
	do {                                                                                       \
		platform_wait((s), (m), (q), (most));                                              \
		PLATFORM_STOP(m);                                                                  \
		platform_sleep((s), (m), (until_ns));                                              \
		PLATFORM_STOP_2(m);                                                                \
		platform_taken((s), (m));                                                          \
	} while (0)
/* Others wait for the processor, and m has had it for slice_ns. */
bool platform_slice_is_over(const struct platform_sim *s, const struct platform_machine *m,
	const struct platform_queue *processors, uint64_t slice_ns);
/* Without waiting: what is there, up to n. */
uint64_t platform_try_take(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n);
bool platform_try_take_item(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q);

/* `then`: when there is no space, that token is given away meanwhile. */
bool platform_put(struct platform_sim *s, struct platform_machine *m, struct platform_queue *q,
	uint64_t n, struct platform_packet *p, struct platform_queue *then);
void platform_was_put(struct platform_sim *s, struct platform_machine *m);
#define PUT_THEN(s, m, q, n, p, then)                                                              \
	do {                                                                                       \
		if (!platform_put((s), (m), (q), (n), (p), (then))) {                              \
			PLATFORM_STOP(m);                                                          \
			platform_was_put((s), (m));                                                \
		}                                                                                  \
	} while (0)
#define PUT(s, m, q, n, p) PUT_THEN(s, m, q, n, p, NULL)
/* Space for a later platform_put_reserved(). */
bool platform_reserve(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n);
#define RESERVE(s, m, q, n)                                                                        \
	do {                                                                                       \
		if (!platform_reserve((s), (m), (q), (n))) {                                       \
			PLATFORM_STOP(m);                                                          \
			platform_was_put((s), (m));                                                \
		}                                                                                  \
	} while (0)
void platform_put_reserved(struct platform_sim *s, struct platform_machine *m,
	struct platform_queue *q, uint64_t n, struct platform_packet *p);
bool platform_has_space(const struct platform_queue *q, uint64_t n);
/* Never waits: the caller has looked. */
void platform_give(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n);

void platform_give_item(struct platform_sim *s, struct platform_machine *m,
	struct platform_queue *q, uint64_t n, struct platform_packet *p);

/* ---- interrupts ------------------------------------------------------------------------------ */

void platform_interrupt(
	struct platform_sim *s, struct platform_processor *p, struct platform_machine *by);
void platform_interrupt_end(struct platform_sim *s, struct platform_processor *p);
/* From now m serves this connection. */
static inline void platform_serve(
	struct platform_sim *s, struct platform_machine *m, uint64_t connection)
{
	if (m->connection == connection)
		return;
	m->connection = connection;
	platform_note_identify(&s->note, s->now_ns, m->actor, connection);
}

#endif
