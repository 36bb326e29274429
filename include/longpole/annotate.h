/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotate.h - tell longpole what your program's state machines are and which queues lie between
 * them. C11 or C++17, gcc or clang; nothing to link.
 *
 *     longpole_begin("encoder", index, 0);             this thread now is encoder number `index`
 *     longpole_wait_empty("frames", pool, 1, 0);       it waits for a frame ...
 *     longpole_dequeue("frames", pool, 1, 0);          ... and has got it
 *     longpole_state("compress", 0);                   what it does next
 *     longpole_enqueue("packets", pool, n, 0);         n packets are there to be dequeued
 *     longpole_end("encoder");
 *
 * A queue is a name and an instance (a pointer or an integer that tells queues of one name apart);
 * so is a state machine. Names are string literals. Units are yours: items, bytes, credits.
 * The verbs are those of A. Saidi, "Full-System Critical-Path Analysis and Performance Prediction"
 * (2009), section 4.5.2.
 *
 * Cost: one load and one test where nobody records; about ten nanoseconds and a time stamp where
 * `longpole record` does. Any thread may call any verb at any time, also in a signal handler.
 * Nothing can fail; what could not be recorded is counted in the trace. Define LONGPOLE_DISABLE
 * before including to compile all of it away.
 *
 * How the recorder finds these calls: each program or library that uses them has one hidden pointer
 * and an ELF note (owner "longpole") that says where it is. The recorder's library, preloaded by
 * `longpole record`, stores the table of its functions there.
 */
#ifndef LONGPOLE_ANNOTATE_H
#define LONGPOLE_ANNOTATE_H

#include <stdint.h>

/* Flags; which verbs take which is said below. The numbers are in traces. */
#define LONGPOLE_LINK    1u  /* begin: entered from the state machine below, returns there at end */
#define LONGPOLE_SUSPECT 2u  /* state: should not be reached, or is not annotated yet */
#define LONGPOLE_END     4u  /* queue verbs, link: ends the current state machine just after */
#define LONGPOLE_RESET   16u /* queue verbs: the queue is emptied just before */

/* What kind of queue it is. The first verb on a queue decides, so say the same in all of them; with
 * none of these the oldest unit is taken first. */
#define LONGPOLE_LIFO 8u /* the newest unit is taken first */
/* Interchangeable tokens: free buffers, slots, credits, locks. A taker that waited for one depends
 * on the giver; one that did not wait depends on nobody. */
#define LONGPOLE_POOL 32u
/* Items have keys (longpole_enqueue_item), and the smallest key is taken first: deadlines, event
 * times, priorities. Of equal keys the oldest is taken. */
#define LONGPOLE_PRIORITY 64u
/* Also with any of the above: units do not carry a connection from one machine to the other, as
 * credits and acknowledgements that serve everybody do not. */
#define LONGPOLE_ANONYMOUS 128u

/* n of dequeue, peek: all units there are. */
#define LONGPOLE_ALL UINT64_MAX

/* ---- between this header and the recorder; not for you --------------------------------------- */

enum longpole_verb { /* queue verbs; the numbers are enum trace_kind's */
	LONGPOLE_VERB_ENQUEUE = 91,
	LONGPOLE_VERB_DEQUEUE = 92,
	LONGPOLE_VERB_PEEK = 93,
	LONGPOLE_VERB_RESERVE = 94,
	LONGPOLE_VERB_RESIZE = 95,
	LONGPOLE_VERB_WAIT_EMPTY = 96,
	LONGPOLE_VERB_WAIT_FULL = 97,
	LONGPOLE_VERB_ASSERT = 98,
	LONGPOLE_VERB_PUT_ITEM = 102,
	LONGPOLE_VERB_TAKE_ITEM = 103
};

/* One place in the code that uses a name. */
struct longpole_place {
	const char *name, *file;
	unsigned line, reserved;
	uint64_t id; /* the recorder's, for this program image */
};
#define LONGPOLE_PLACE_OF(text)                                                                    \
	{                                                                                          \
		"" text, __FILE__, __LINE__, 0, 0                                                  \
	}

/* The recorder's functions. Only ever grows at its end. */
struct longpole_hooks {
	uint64_t bytes; /* of this structure, as the recorder has it */
	void (*begin)(struct longpole_place *place, uint64_t instance, uint64_t flags);
	void (*end)(struct longpole_place *place);
	void (*state)(struct longpole_place *place, uint64_t flags);
	void (*queue)(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
		uint64_t n, uint64_t flags);
	void (*link)(struct longpole_place *place, uint64_t instance,
		uint64_t flags); /* NULL: deferred */
	void (*identify)(uint64_t connection);
	uint64_t (*get_id)(void);
	/* a recorder may be older than this header: from here on only behind longpole_hooks_reach()
	 */
	void (*item)(enum longpole_verb verb, struct longpole_place *place, uint64_t instance,
		uint64_t key, uint64_t n, uint64_t flags);
	void (*act)(struct longpole_place *place, uint64_t instance);
	/* counter.h; returns the phase before. NULL: phases are not counted */
	struct longpole_place *(*phase)(struct longpole_place *place);
	void (*queue_state)(enum longpole_verb verb, struct longpole_place *place,
		uint64_t instance, uint64_t n, uint64_t flags, struct longpole_place *state);
	void (*capacity)(struct longpole_place *place, uint64_t instance, uint64_t n);
};

/* Does the recorder's table go on after `first_bytes`? */
static inline int longpole_hooks_reach(const struct longpole_hooks *hooks, uint64_t first_bytes)
{
	return hooks->bytes > first_bytes;
}

#define LONGPOLE_NOTE_OWNER   "longpole"
#define LONGPOLE_NOTE_POINTER 1 /* type: a 32-bit distance from itself to the pointer */

#if !defined(LONGPOLE_DISABLE) && defined(__linux__) && defined(__GNUC__) &&                       \
	(defined(__x86_64__) || defined(__aarch64__))
#ifdef __cplusplus
extern "C" {
#endif
/* One in each program or library: of the weak ones the linker keeps one, and hidden it stays. It
 * has a cache line of its own: every verb reads it, and would wait for a writer beside it. */
struct longpole_hooks_line {
	const struct longpole_hooks *now;
	char alone[64 - sizeof(void *)];
} __attribute__((aligned(64)));
extern struct longpole_hooks_line longpole_hooks_pointer;
__attribute__((weak, visibility("hidden"), used)) struct longpole_hooks_line longpole_hooks_pointer;
#ifdef __cplusplus
}
#endif

/* A group of its own, so that one note is kept of those of all object files. Of a group, the linker
 * throws away what nobody refers to (--gc-sections), unless it is told otherwise: "R", which
 * assemblers know that come with compilers that have the attribute. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define LONGPOLE_NOTE_FLAGS "aGR"
#endif
#endif
#ifndef LONGPOLE_NOTE_FLAGS
#define LONGPOLE_NOTE_FLAGS "aG"
#endif
__asm__(".pushsection .note.longpole,\"" LONGPOLE_NOTE_FLAGS
	"\",@note,longpole_annotate_note,comdat\n"
	"	.p2align 2\n"
	"	.long 9\n"
	"	.long 4\n"
	"	.long 1\n"
	"	.asciz \"longpole\"\n"
	"	.p2align 2\n"
	"	.hidden longpole_hooks_pointer\n"
	"	.long longpole_hooks_pointer - .\n"
	"	.popsection\n");

static inline const struct longpole_hooks *longpole_hooks_now(void)
{
	return __atomic_load_n(&longpole_hooks_pointer.now, __ATOMIC_RELAXED);
}

#else
static inline const struct longpole_hooks *longpole_hooks_now(void)
{
	return 0; /* so that the compiler removes all that depends on it */
}
#endif

#define LONGPOLE_CALL(function, ...)                                                               \
	do {                                                                                       \
		const struct longpole_hooks *longpole_hooks_ = longpole_hooks_now();               \
		if (__builtin_expect(longpole_hooks_ != 0, 0))                                     \
			longpole_hooks_->function(__VA_ARGS__);                                    \
	} while (0)
#define LONGPOLE_CALL_AT(name, function, ...)                                                      \
	do {                                                                                       \
		static struct longpole_place longpole_place_ = LONGPOLE_PLACE_OF(name);            \
		LONGPOLE_CALL(function, __VA_ARGS__);                                              \
	} while (0)

/* The same for functions that a recorder may lack; what it has in their place, or nothing. */
#define LONGPOLE_CALL_NEWER(function, arguments, instead)                                          \
	do {                                                                                       \
		const struct longpole_hooks *longpole_hooks_ = longpole_hooks_now();               \
		if (__builtin_expect(longpole_hooks_ != 0, 0)) {                                   \
			if (longpole_hooks_reach(longpole_hooks_,                                  \
				    __builtin_offsetof(struct longpole_hooks, function)))          \
				longpole_hooks_->function arguments;                               \
			else                                                                       \
				instead;                                                           \
		}                                                                                  \
	} while (0)

#ifdef __cplusplus
template <class T> static inline uint64_t longpole_key(T *pointer)
{
	return reinterpret_cast<uintptr_t>(pointer);
}
template <class T> static inline uint64_t longpole_key(T number)
{
	return static_cast<uint64_t>(number);
}
#define LONGPOLE_KEY(instance) longpole_key(instance)
#else
#define LONGPOLE_KEY(instance) ((uint64_t)(uintptr_t)(instance))
#endif

/* ---- state machines -------------------------------------------------------------------------- */

/* This thread goes on as state machine (name, instance): pushed on the thread's stack of them.
 * Flags: LINK. */
#define longpole_begin(name, instance, flags)                                                      \
	LONGPOLE_CALL_AT(name, begin, &longpole_place_, LONGPOLE_KEY(instance), (flags))
/* ... and as the one below. `name` must be the one on top: the analysis says so if it is not. */
#define longpole_end(name) LONGPOLE_CALL_AT(name, end, &longpole_place_)
/* The current state machine enters a state. Flags: SUSPECT. */
#define longpole_state(name, flags) LONGPOLE_CALL_AT(name, state, &longpole_place_, (flags))
/*
 * From now this thread speaks for state machine (name, instance), and for no other: for fibers,
 * coroutines, event loops that serve many machines, simulators. Say it where the machine is
 * resumed; it goes on in the state, or the wait, that it was in when a thread last spoke for it,
 * perhaps another one. The machine that the thread spoke for before stands where it is and ages
 * there: let it enter a wait before. longpole_end() ends it for good, and the thread is itself
 * again: say so before the thread ends.
 */
#define longpole_act(name, instance)                                                               \
	do {                                                                                       \
		static struct longpole_place longpole_place_ = LONGPOLE_PLACE_OF(name);            \
		LONGPOLE_CALL_NEWER(                                                               \
			act, (&longpole_place_, LONGPOLE_KEY(instance)), (void)longpole_place_);   \
	} while (0)

/* ---- queues; flags of all: END, RESET, LIFO, POOL, PRIORITY, ANONYMOUS ----------------------- */

#define LONGPOLE_QUEUE(verb, name, instance, n, flags)                                             \
	LONGPOLE_CALL_AT(name, queue, LONGPOLE_VERB_##verb, &longpole_place_,                      \
		LONGPOLE_KEY(instance), LONGPOLE_KEY(n), (flags))

/* Adds n units. Call it before others can see them. */
#define longpole_enqueue(name, instance, n, flags) LONGPOLE_QUEUE(ENQUEUE, name, instance, n, flags)
/* Removes n units: what follows depends on whoever added them. Call it after getting them. */
#define longpole_dequeue(name, instance, n, flags) LONGPOLE_QUEUE(DEQUEUE, name, instance, n, flags)
#define longpole_dequeue_all(name, instance, flags)                                                \
	LONGPOLE_QUEUE(DEQUEUE, name, instance, LONGPOLE_ALL, flags)
/* ... and enters a state, with one time stamp for both: for hot loops. Flags: not END. */
#define longpole_dequeue_state(name, instance, n, flags, state_name)                               \
	do {                                                                                       \
		static struct longpole_place longpole_place_ = LONGPOLE_PLACE_OF(name);            \
		static struct longpole_place longpole_state_ = LONGPOLE_PLACE_OF(state_name);      \
		LONGPOLE_CALL_NEWER(queue_state,                                                   \
			(LONGPOLE_VERB_DEQUEUE, &longpole_place_, LONGPOLE_KEY(instance),          \
				LONGPOLE_KEY(n), (flags), &longpole_state_),                       \
			(longpole_hooks_->queue(LONGPOLE_VERB_DEQUEUE, &longpole_place_,           \
				 LONGPOLE_KEY(instance), LONGPOLE_KEY(n), (flags)),                \
				longpole_hooks_->state(&longpole_state_, 0)));                     \
	} while (0)
/* Adds one item of n units that can be asked for by its key (a number or a pointer: a request's id,
 * a deadline), and removes n units of the item with that key, wherever in the queue it is. A
 * recorder that is older than these verbs takes them for enqueue and dequeue. */
#define longpole_enqueue_item(name, instance, key, n, flags)                                       \
	LONGPOLE_ITEM(PUT_ITEM, ENQUEUE, name, instance, key, n, flags)
#define longpole_dequeue_item(name, instance, key, n, flags)                                       \
	LONGPOLE_ITEM(TAKE_ITEM, DEQUEUE, name, instance, key, n, flags)
#define LONGPOLE_ITEM(verb, plain, name, instance, key, n, flags)                                  \
	do {                                                                                       \
		static struct longpole_place longpole_place_ = LONGPOLE_PLACE_OF(name);            \
		LONGPOLE_CALL_NEWER(item,                                                          \
			(LONGPOLE_VERB_##verb, &longpole_place_, LONGPOLE_KEY(instance),           \
				LONGPOLE_KEY(key), LONGPOLE_KEY(n), (flags)),                      \
			longpole_hooks_->queue(LONGPOLE_VERB_##plain, &longpole_place_,            \
				LONGPOLE_KEY(instance), LONGPOLE_KEY(n), (flags)));                \
	} while (0)
/* Depends on them in the same way, and leaves them in the queue. */
#define longpole_peek(name, instance, n, flags) LONGPOLE_QUEUE(PEEK, name, instance, n, flags)
/* Counts on space for n units before producing them: depends on whoever made the space. */
#define longpole_reserve(name, instance, n, flags) LONGPOLE_QUEUE(RESERVE, name, instance, n, flags)
/* The queue holds exactly n units from now; they are added, or removed from its back. */
#define longpole_resize(name, instance, n, flags) LONGPOLE_QUEUE(RESIZE, name, instance, n, flags)
/* Waits for n units (until the next dequeue), or for space for n (until the next enqueue). */
#define longpole_wait_empty(name, instance, n, flags)                                              \
	LONGPOLE_QUEUE(WAIT_EMPTY, name, instance, n, flags)
#define longpole_wait_full(name, instance, n, flags)                                               \
	LONGPOLE_QUEUE(WAIT_FULL, name, instance, n, flags)
/* The queue holds at most n units. A thread that puts more waits for room; how much more room would
 * help is then answered (whatif resize-queue, loops). It is about the whole run: the last call
 * counts. An older recorder does not hear it. */
#define longpole_capacity(name, instance, n)                                                       \
	do {                                                                                       \
		static struct longpole_place longpole_place_ = LONGPOLE_PLACE_OF(name);            \
		LONGPOLE_CALL_NEWER(capacity,                                                      \
			(&longpole_place_, LONGPOLE_KEY(instance), LONGPOLE_KEY(n)),               \
			(void)longpole_place_);                                                    \
	} while (0)
/* Claims that the queue holds exactly n units: the analysis counts the claims that are wrong. */
#define longpole_assert_size(name, instance, n) LONGPOLE_QUEUE(ASSERT, name, instance, n, 0u)

/* ---- links ----------------------------------------------------------------------------------- */

/* Control passes directly to state machine (name, instance). Flags: END. */
#define longpole_link(name, instance, flags)                                                       \
	LONGPOLE_CALL_AT(name, link, &longpole_place_, LONGPOLE_KEY(instance), (flags))
/* ... to the one that begins next in this thread, whichever it is, and back at its end: just before
 * a call into code that has annotations of its own. */
static inline void longpole_link_call(void)
{
	LONGPOLE_CALL(link, 0, 0, 0);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* From now this state machine serves connection `id` (a request, a flow, ...); 0: none. */
static inline void longpole_identify(uint64_t id)
{
	LONGPOLE_CALL(identify, id);
}

/* A new connection, unique in the recording, that this state machine serves from now. 0: nobody
 * records. */
static inline uint64_t longpole_get_id(void)
{
	const struct longpole_hooks *hooks = longpole_hooks_now();
	if (__builtin_expect(hooks != 0, 0))
		return hooks->get_id();
	return 0;
}

/* ---- C++ ------------------------------------------------------------------------------------- */

#ifdef __cplusplus
/* The place of a name, for longpole::machine. */
#define LONGPOLE_NAME(text)                                                                        \
	([]() -> struct longpole_place & {                                                         \
		static struct longpole_place place = LONGPOLE_PLACE_OF(text);                      \
		return place;                                                                      \
	}())

namespace longpole
{
/* A state machine that lasts as long as a scope: longpole::machine m(LONGPOLE_NAME("parser"),
 * this); */
class machine
{
	struct longpole_place &place;

      public:
	template <class Instance>
	explicit machine(struct longpole_place &named, Instance instance, unsigned flags = 0)
	    : place(named)
	{
		LONGPOLE_CALL(begin, &place, longpole_key(instance), uint64_t{flags});
	}
	~machine()
	{
		LONGPOLE_CALL(end, &place);
	}
	machine(const machine &) = delete;
	machine &operator=(const machine &) = delete;
};
} // namespace longpole
#endif

#endif
