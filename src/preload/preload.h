/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload.h - what the parts of liblongpole-preload.so share. Runs inside other people's processes:
 * no malloc, no stdio, no lock that we also intercept, errno kept, never abort. See README.md.
 */
#ifndef LONGPOLE_PRELOAD_PRELOAD_H
#define LONGPOLE_PRELOAD_PRELOAD_H

#include "ring/meet.h"
#include "ring/processor.h"
#include "ring/ring.h"
#include "trace/enums.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum preload_kind {
#define REC_FROM(id)                  PRELOAD_BEFORE_##id = (id)-1,
#define REC(kind, since, FIELDS, doc) PRELOAD_##kind,
#include "trace/records.def"
};

/* Part of a static program (liblongpole-wrap.a): there is no dynamic linker, and the unwinder,
 * which is the program's too, takes locks that are wrapped. */
#ifdef PRELOAD_STATIC
enum { PRELOAD_IS_STATIC = 1 };
#else
enum { PRELOAD_IS_STATIC = 0 };
#endif

#define PRELOAD_EXPORT __attribute__((visibility("default")))
/* one more name of an exported function, defined in the same file */
#define PRELOAD_ALIAS(name, of)                                                                    \
	__asm__(".globl " #name "\n.set " #name ", " #of "\n.type " #name ", @function\n");
/* The place of a call in the program, when it begins: see preload_site(). */
#define PRELOAD_CALLER    ((uintptr_t)__builtin_return_address(0))
#define PRELOAD_SITE      preload_site(PRELOAD_CALLER)
#define PRELOAD_LIKELY(x) __builtin_expect(!!(x), 1)
#define PRELOAD_RARE(x)   __builtin_expect(!!(x), 0)
#define PRELOAD_INLINE    static inline __attribute__((always_inline))
/* What each start of a program touches, together: a page of .bss for each would be two faults each.
 * (Names in tables are arrays, not pointers, for the same reason: nothing to relocate.) */
#define PRELOAD_EARLY __attribute__((section(".data.early")))
enum { PRELOAD_NAME_BYTES = 40 }; /* of a function that we look for */
#define PRELOAD_COLD     __attribute__((noinline, cold))
#define PRELOAD_COUNT(a) (sizeof(a) / sizeof *(a))
/* for statements between which a signal handler must not see another order */
#define PRELOAD_BARRIER() __asm__ volatile("" ::: "memory")

/* ---- state ----------------------------------------------------------------------------------- */

enum {
	PRELOAD_FDS = 65536,
	PRELOAD_PAGE = 4096,
	PRELOAD_AHEAD_WORDS = 48,
	PRELOAD_KNOWN = 1 << 14,
	PRELOAD_PATHS = 256,
	PRELOAD_PLACES_FIRST = 64,
	PRELOAD_PLACES_GROWN = 12,
	PRELOAD_PLACES = PRELOAD_PLACES_FIRST << PRELOAD_PLACES_GROWN,
	PRELOAD_MORE_WORDS = 368, /* a thread's, for each library; of which the first for OpenMP */
	PRELOAD_TEAM_WORDS = 128,
	PRELOAD_JAVA_WORDS = 64,
	PRELOAD_TIMED_SLOTS = 64
};
/* of an object's word, or its address, in preload_fresh.known; slot ^ 1 is its second one */
#define PRELOAD_KNOWN_SLOT(object) ((uint32_t)((object) >> 2) * 0x9e3779b1u >> (32 - 14))

/*
 * Zero again in a child made by fork, however it was made (MADV_WIPEONFORK): so a child can never
 * write into its parent's block, and everything begins anew with its first record.
 */
struct preload_fresh {
	struct ring_head *head; /* NULL: not attached yet; never NULL after preload_attach() */
	/* The same, while no stub calls us: what looks at this one needs not ask for the site. */
	const struct ring_head *direct;
	uint64_t tsc_origin;
	uint32_t attaching;  /* 1: someone is at it */
	uint32_t introduced; /* 1: RING_image is written */
	uint32_t image;      /* number of this program image */
	uint32_t fd_end;     /* no entry of fd[] from here on was ever set */
	uint64_t next_thread, next_token, next_incarnation, next_name, next_connection;
	uint64_t taken[PRELOAD_PLACES / 64]; /* places of threads: see preload/self.c */
	_Alignas(PRELOAD_PAGE)
		uint64_t fd[PRELOAD_FDS]; /* object word, 0: not known; see preload/fd.c */
	uint64_t known[PRELOAD_KNOWN];    /* object words; see preload/made.c */
	uint64_t path[PRELOAD_PATHS];     /* see preload_path_object() */
};
extern struct preload_fresh preload_fresh;
extern struct record_target_side preload_met; /* all 0: there is none */

/* OpenMP's runtimes that ask for tools (runtime/openmp/omp_tool.c): how they use locks and
 * condition variables themselves is their own matter, what their threads wait for is told in
 * OpenMP's terms.
 */
enum { PRELOAD_RUNTIMES = 4 };
struct preload_runtimes {
	bool any;
	uint32_t nr_claimed;
	struct {
		uintptr_t begin, nr_bytes;
	} at[PRELOAD_RUNTIMES];
};
extern struct preload_runtimes preload_runtimes;

/* A CPython in this process (src/runtime/python): what its own code calls is said of the line of
 * Python that had it done, and its global lock is one lock. */
struct preload_python {
	bool any;
	uintptr_t gil; /* 0: not known yet */
};
extern struct preload_python preload_python;
struct dl_phdr_info;
void preload_python_meets(const struct dl_phdr_info *info); /* of each new module */
bool preload_python_is_own(uintptr_t code); /* of the interpreter, or of what comes with it */
/* A RING_place: of the program's own innermost frame, else of what is known; or the caller. */
uintptr_t preload_python_site(uintptr_t caller);
/* All Python frames of this thread, innermost first; returns how many. */
size_t preload_python_frames(uint64_t *to, size_t max);
/* A lock of Python's is a semaphore, and its memory soon another lock's. Which of them it is, in the
 * bits that an aligned address leaves free, is in the bytes of a sem_t that glibc does not use; 0:
 * it was not made by Python. */
void preload_python_made(volatile void *semaphore, uintptr_t caller);
uint64_t preload_python_life(const volatile void *semaphore);
/* The global lock's: of pthread's functions that are called with its parts. True: that is told, the
 * call is to be made, and nothing more recorded. */
bool preload_gil_is_mutex(const volatile void *mutex);
bool preload_gil_waits(const volatile void *cond, uintptr_t caller);
void preload_gil_waited(const volatile void *cond); /* after a wait that was not told */
bool preload_gil_signals(const volatile void *cond, uintptr_t caller);
void preload_python_polls(void); /* somebody waits for readiness, perhaps an event loop */

/* Event loops (preload/loop.c). This thread runs that one from now on, and has it; the thread waits
 * for readiness, and has waited. */
void preload_loop_begin(const void *address, const char *name);
void preload_loop_idles(uint64_t tsc);
void preload_loop_goes_on(uint64_t tsc);
/* A turn begins or ends, as the record of that kind says: the loop goes from one to another, and
 * all of that is of one moment. The record's last word says that it has the stack, if there is one. */
struct preload_loop_hand {
	uint64_t from, to; /* sites: where it is given up and taken; 0: none */
	const struct preload_stack *stack;
};
void preload_loop_hand(unsigned kind, const uint64_t *words, size_t nr_words,
	const struct preload_loop_hand *hand);

/* A Java VM in this process (src/runtime/java): what Java's threads wait for is told in Java's terms,
 * and what the VM's own mutexes do is its own matter. */
struct preload_java {
	bool any;
};
extern struct preload_java preload_java;
void preload_java_meets(const struct dl_phdr_info *info); /* of each new module */
bool preload_java_is_own(uintptr_t code);                 /* of the VM's library */
/* Of a condition variable's functions, called by `caller`. True: that is told, the call is to be made,
 * and nothing more recorded; after the wait preload_java_waited() with its result. */
bool preload_java_waits(const volatile void *cond, uintptr_t caller);
void preload_java_waited(const volatile void *cond, int result);
bool preload_java_signals(const volatile void *cond, uintptr_t caller);
/* A RING_place that the thread is named by that `caller` starts; 0: none. */
uintptr_t preload_java_start(uintptr_t caller);
/* This thread is called that by the VM, whose own it may be. */
void preload_java_named(const char *name);
/* A futex word of the VM's: the object that it is for Java. */
uint64_t preload_java_futex(uint64_t object);

/* A V8 in this process (src/runtime/node): its code has JavaScript's names, and what it does with
 * its own mutexes is its own matter. */
struct preload_node {
	uintptr_t begin,
		nr_bytes; /* the module that V8 is in: node's own code, too; 0: none was met */
};
extern struct preload_node preload_node;
void preload_node_meets(const struct dl_phdr_info *info); /* of each new module */
/* This thread has called us from there, at a moment when V8 may be asked. */
void preload_node_calls(void);

/* What the ring's head said of its layout when it was mapped, checked against the file's size then:
 * the head itself is shared, and may say anything later. */
struct preload_ring {
	uint32_t nr_blocks, nr_tables, tally_mask;
	uint64_t tables_offset, affinity_bytes;
	uint32_t nr_events, event_modes, events_by_call;
	struct ring_event event[RING_EVENTS];
};
extern struct preload_ring preload_ring;

/* Where the ring lies (preload/window.c), once preload_ring says what it is like. Begin: from `fd`, a
 * file of so many bytes; NULL: there is no room. */
struct ring_head *preload_window_begin(long fd, uint64_t file_bytes);
/* NULL: there is no room for it. */
struct ring_block *preload_window_block(uint32_t block);
/* No system calls after this. */
void preload_window_open_all(void);
/* Zeros at the same addresses: whoever is on his way there finds memory. The next ring is mapped there. */
void preload_window_end(void);

/* One per thread that has a record (preload/self.c); zero at the start. */
struct preload_thread {
	uint64_t *cursor;   /* next free word; moved by compare-and-exchange only */
	uint64_t *end;      /* of the block; NULL: always take the slow path */
	uint64_t *kept_end; /* end, while a vfork's child may be running on this TLS */
	uint64_t vfork_site;
	struct ring_block *block;
	uint64_t number;     /* within the image; 0: has no records in this image yet */
	uint64_t token;      /* of the thread_create or process_fork that made it; 0: not known */
	uint64_t start_site; /* start routine */
	uint64_t region; /* of OpenMP, that begins: object a thread created now waits for; or 0 */
	uint64_t lost;   /* records, since the last one that was kept */
	uint64_t retry_tsc;                        /* no block was free: do not look again before */
	uint32_t image, sequence, pid, tid, place; /* place: number from 1; 0: not one thread's */
	struct ring_ids ids;
	uint32_t nr_stacks;    /* call paths asked for: the first are taken, then one in some */
	uint8_t busy;          /* a slow path is at work: signal handlers must not enter it */
	uint8_t ended;         /* thread_end is written */
	uint8_t in_vfork;      /* vfork was called and we do not know yet that we are the parent */
	uint8_t key_rounds;    /* of pthread_key destructors */
	uint8_t waits_for_gil; /* Python's global lock: its wait has begun */
	uint8_t is_reserved;   /* its thread has not called us yet (preload_self_reserve()) */
	struct { /* a call that it is in since before us: its first record says the end */
		uint8_t is_open, sleeps, op;
		uint64_t object, bytes; /* 0: none */
		uint64_t futex;         /* a wait at this address, perhaps a semaphore's */
	} before;
	struct
	{ /* calls in a row that look whether something is there, and it is not (runtime/mpi/poll.c) */
		const uint64_t *cursor; /* nothing was recorded since then */
		uint64_t first_tsc, last_tsc, site;
		uint64_t steady_tsc; /* since when they follow each other at once */
		uint8_t op, is_open; /* is_open: the first's beginning was told */
	} poll;
	/* Where it counts (tally.h); NULL: not yet, or not any more. */
	struct tally_table *tally;
	struct tally_tag *tally_tag;
	size_t tally_span;       /* from the first tag to the last, in bytes */
	uintptr_t tally_entries; /* what makes an entry's address of 8 times that of its tag */
	uintptr_t tally_events;  /* ... that of its events of 160 times its number; 0: no events */
	uint32_t tally_mask,
		nr_timed; /* nr_timed, timed_in: holds that are being timed (tally/lock.c) */
	uint8_t timed_in[PRELOAD_TIMED_SLOTS];
	struct record_lock_stamps lock;
	uint64_t java[PRELOAD_JAVA_WORDS]; /* of the room of that name */
	uint64_t python_site; /* without the global lock: where, for it runs no Python code; or 0 */
	uint64_t isolate;     /* of V8's, that was met in this thread last; or 0 */
	struct {              /* an event loop (loop.c) */
		uint64_t object; /* that runs in this thread; 0: none */
		uint8_t is_held;
		void *turn; /* of a task, that this thread is in */
	} loop;
	_Alignas(128)
		uint64_t more[PRELOAD_MORE_WORDS]; /* what each library adds; stays in a fork */
};
/* What belongs to threads without a place: before their first record (all zero, never written to),
 * after their end (nothing that is said there is recorded or asked for). */
extern struct preload_thread preload_nobody, preload_ended;
extern __thread struct preload_thread *preload_self; /* never NULL */

void preload_block_finish(struct preload_thread *self); /* gives its block back */
/* While calls find nothing over and over: the next record of any kind takes the slow path, and says
 * first when the last of them was over. preload_poll_close(): it is not said. */
void preload_poll_open(struct preload_thread *self);
void preload_poll_say_end(struct preload_thread *self);
void preload_poll_close(struct preload_thread *self);
struct preload_thread *preload_self_take(void); /* the first time; preload_ended: there is none */
void preload_self_give(void);                   /* this thread has none any more */
void preload_self_renew(void);                  /* in a fork's child, before it records */
/* The call that it was in before us is over: its first record. */
void preload_self_say_end(struct preload_thread *self);
/* Another thread's place, which it finds when it takes one; NULL: there is none. It records nothing
 * before preload_self_begin(), where it goes on as `as` ended. */
struct preload_thread *preload_self_reserve(uint32_t tid);
void preload_self_begin(struct preload_thread *place, const struct preload_thread *as);
void preload_self_leave_all(void); /* nobody records any more */

/* This thread's data, to write to. */
/* NOLINTNEXTLINE(misc-no-recursion): as of preload_on() */
PRELOAD_INLINE struct preload_thread *preload_own(void)
{
	struct preload_thread *self = preload_self;
	return PRELOAD_RARE(self == &preload_nobody) ? preload_self_take() : self;
}

/* ---- recording ------------------------------------------------------------------------------- */

struct ring_head *preload_attach(
	void); /* never NULL; recording is 0 in what it returns if there is no ring */
uint64_t *preload_reserve_slow(size_t nr_words);
bool preload_is_vfork_child(void);
/* In one: it calls exec; exec has failed. Nothing where it is none. */
void preload_vfork_executes(void);
void preload_vfork_goes_on(void);
void preload_stop(void); /* this process records nothing from now on */

/* A process that ran already (preload/late.c), by a thread of ours: maps the ring and begins an
 * image (NULL: it cannot be, or there is one), introduces the threads that live, and lets all
 * record; later leaves everything. What was mapped stays memory. */
struct ring_head *preload_join(const char *ring);
struct preload_before { /* what a thread waits for since before; its end is the thread's own next record */
	bool sleeps;
	int fd; /* -1: no call about a descriptor */
	unsigned op;
	uint64_t nr_bytes, site;
	uint64_t futex; /* address that it waits at; 0: at none */
	bool is_ours;   /* a wrapper of ours has called it: that says its end itself */
};
void preload_introduce(struct ring_head *head, uint32_t tid, const char *name, size_t name_bytes,
	const struct preload_before *before);
void preload_joined(struct ring_head *head);
void preload_leave(void);

/* Is there anyone to record for? Everything that a wrapper adds is behind this. */
/* NOLINTNEXTLINE(misc-no-recursion): preload_attach() sets the head before it asks again */
PRELOAD_INLINE bool preload_on(void)
{
	/* (acquire: what preload_attach() wrote before it set the head is in other words, too) */
	const struct ring_head *head = __atomic_load_n(&preload_fresh.head, __ATOMIC_ACQUIRE);
	if (PRELOAD_RARE(!head))
		head = preload_attach();
	return PRELOAD_LIKELY(__atomic_load_n(&head->recording, __ATOMIC_RELAXED));
}

/* ... without a call: false may also mean that nobody has looked yet, that more than usual is to
 * be recorded, or that the caller may be a stub. */
PRELOAD_INLINE bool preload_surely_on(void)
{
	const struct ring_head *head = __atomic_load_n(&preload_fresh.direct, __ATOMIC_ACQUIRE);
	return PRELOAD_LIKELY(
		head && __atomic_load_n(&head->recording, __ATOMIC_RELAXED) == RING_on);
}

/* Four stamps a lock: only after preload_on(). */
PRELOAD_INLINE bool preload_full(void)
{
	return PRELOAD_RARE(
		__atomic_load_n(&preload_fresh.head->recording, __ATOMIC_RELAXED) == RING_full);
}

/* The same for wrappers that touch more than the ring: nothing of ours is to change in a child that
 * shares our memory. */
PRELOAD_INLINE bool preload_active(void)
{
	if (!preload_on())
		return false;
	return PRELOAD_LIKELY(!preload_self->in_vfork) || !preload_is_vfork_child();
}

PRELOAD_INLINE bool preload_is_stub(uintptr_t code)
{
	return PRELOAD_RARE(preload_met.is_stub != NULL) && preload_met.is_stub(code);
}

PRELOAD_INLINE bool preload_is_runtime(uintptr_t code)
{
	if (PRELOAD_LIKELY(!__atomic_load_n(&preload_runtimes.any, __ATOMIC_ACQUIRE)))
		return false;
	for (unsigned i = 0; i < PRELOAD_RUNTIMES; i++)
		if (code - preload_runtimes.at[i].begin < preload_runtimes.at[i].nr_bytes)
			return true;
	return false;
}

/* Is what `caller` does to be recorded? */
PRELOAD_INLINE bool preload_on_for(uintptr_t caller)
{
	return preload_on() && !preload_is_runtime(caller);
}

/* The runtimes that were met. What is known of one was written before what says so: that is
 * read by acquire, which on x86-64 is a plain load. */
PRELOAD_INLINE bool preload_has_python(void)
{
	return PRELOAD_RARE(__atomic_load_n(&preload_python.any, __ATOMIC_ACQUIRE));
}

PRELOAD_INLINE bool preload_has_java(void)
{
	return PRELOAD_RARE(__atomic_load_n(&preload_java.any, __ATOMIC_ACQUIRE));
}

PRELOAD_INLINE bool preload_has_node(void)
{
	return PRELOAD_RARE(__atomic_load_n(&preload_node.nr_bytes, __ATOMIC_ACQUIRE) != 0);
}

/* Is it of V8, or of what came with it? */
PRELOAD_INLINE bool preload_is_node(uintptr_t code)
{
	return preload_has_node() && code - preload_node.begin < preload_node.nr_bytes;
}

/* From now on nobody records by the shortest way; what they are to see instead was written before. */
PRELOAD_INLINE void preload_be_indirect(void)
{
	__atomic_store_n(&preload_fresh.direct, NULL, __ATOMIC_RELEASE);
}

/* Is it of a Java VM? */
PRELOAD_INLINE bool preload_is_java(uintptr_t code)
{
	return preload_has_java() && preload_java_is_own(code);
}

/* Of a virtual machine that keeps its mutexes to itself? */
PRELOAD_INLINE bool preload_is_machine(uintptr_t code)
{
	return preload_is_node(code) || preload_is_java(code);
}

/* Where a machine calls libc for its program. */
PRELOAD_INLINE void preload_machine_calls(uintptr_t caller)
{
	if (preload_is_node(caller))
		preload_node_calls();
}

/* `caller`, or what called the stub that it is in. Asked for before the real call: a signal's
 * handler in it may go through stubs, too. */
PRELOAD_INLINE uintptr_t preload_site(uintptr_t caller)
{
	if (PRELOAD_RARE(preload_is_stub(caller)))
		return preload_met.caller();
	return preload_has_python() ? preload_python_site(caller) : caller;
}

PRELOAD_INLINE uint64_t preload_now(void)
{
	return processor_ticks();
}

/* Where nothing is recorded the clock is not read: the program may have forbidden that. */
PRELOAD_INLINE uint64_t preload_now_if(bool recorded)
{
	return recorded ? preload_now() : 0;
}

/* The line that the writer will reach a few records later is asked for already: its last owner is
 * the reader on another core, or nobody, and the program's next locked instruction would wait for
 * the store. */
PRELOAD_INLINE void preload_ask_ahead(const uint64_t *record)
{
	processor_ask_to_write(&record[PRELOAD_AHEAD_WORDS]);
}

/*
 * Words in this thread's block, or NULL (the record is counted as lost). One instruction moves the
 * cursor and notices that a signal handler moved it, or changed the block, in between.
 */
/* NOLINTNEXTLINE(misc-no-recursion): the end of what a thread was in before us is said once */
PRELOAD_INLINE uint64_t *preload_reserve(size_t nr_words)
{
	struct preload_thread *self = preload_self;
	uint64_t *from = __atomic_load_n(&self->cursor, __ATOMIC_RELAXED);
	uint64_t *to = from + nr_words;
	if (PRELOAD_RARE((uintptr_t)to > (uintptr_t)__atomic_load_n(&self->end, __ATOMIC_RELAXED)))
		return preload_reserve_slow(nr_words);
	if (PRELOAD_RARE(!PROCESSOR_REPLACE(&self->cursor, &from, to)))
		return preload_reserve_slow(nr_words);
	preload_ask_ahead(from);
	return from;
}

/* The last store of a record: from now on the reader sees it. */
PRELOAD_INLINE void preload_publish(uint64_t *record, unsigned kind, uint64_t tsc)
{
	__atomic_store_n(record, (tsc - preload_fresh.tsc_origin) << 8 | kind, __ATOMIC_RELEASE);
}

/* The shortest way, for mutexes, whose cost counts: two words, and no call of anything. False:
 * nothing was written, let a function that is not inlined do it. */
PRELOAD_INLINE bool preload_try_record(unsigned kind, uint64_t word1, uint64_t word2)
{
	struct preload_thread *self = preload_self;
	uint64_t tsc = preload_now();
	uint64_t *record = __atomic_load_n(&self->cursor, __ATOMIC_RELAXED), *from = record;
	if (PRELOAD_RARE((uintptr_t)(record + 3) >
			 (uintptr_t)__atomic_load_n(&self->end, __ATOMIC_RELAXED)))
		return false;
	if (PRELOAD_RARE(!PROCESSOR_REPLACE(&self->cursor, &from, record + 3)))
		return false;
	preload_ask_ahead(record);
	record[1] = word1;
	record[2] = word2;
	self->lock = (struct record_lock_stamps){tsc, tsc};
	preload_publish(record, kind, tsc);
	return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as of preload_reserve() */
PRELOAD_INLINE void preload_record_at(
	uint64_t tsc, unsigned kind, const uint64_t *words, size_t nr_words)
{
	uint64_t *record = preload_reserve(nr_words + 1);
	if (PRELOAD_RARE(!record))
		return;
	for (size_t i = 0; i < nr_words; i++)
		record[i + 1] = words[i];
	preload_publish(record, kind, tsc);
}
#define PRELOAD_WORDS(...)                                                                         \
	(const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)
#define PRELOAD_RECORD_AT(tsc, kind, ...)                                                          \
	preload_record_at(tsc, PRELOAD_##kind, PRELOAD_WORDS(__VA_ARGS__))
#define PRELOAD_RECORD(kind, ...) PRELOAD_RECORD_AT(preload_now(), kind, __VA_ARGS__)

/* A record that ends in a text: words, then the text padded to 8 bytes. */
void preload_record_text(
	unsigned kind, const uint64_t *words, size_t nr_words, const char *text, size_t text_bytes);

/* Unique in the whole recording: image << 32 | counter. */
uint64_t preload_token(void);
/* The thread's table is complete (tally.c); nothing where nobody counts. */
void preload_tally_end(void);
void preload_thread_watch(const struct preload_thread *self); /* its end is to be noticed */
void preload_thread_begin(void); /* makes sure that this thread has begun in the ring */
void preload_thread_end(void);
void preload_record_exit(int status); /* the process ends with it, as far as is known */
void preload_flush_stdout(void); /* what libc would do a little later, where we cannot see it */

/* What a thread that starts in `routine` with `argument` really runs (preload/cxx.c). */
uintptr_t preload_cxx_routine(uintptr_t routine, const void *argument);

/* ---- call paths ------------------------------------------------------------------------------ */

struct preload_stack {
	uint64_t nr_frames;
	uint64_t frame[RING_STACK_MAX];
};

/* At most depth_max frames from `site`, where the caller's begin; nr_frames is 0 when it is not
 * taken: in a signal handler that interrupted another. */
void preload_stack_walk(struct preload_stack *stack, uint64_t site, uint64_t depth_max);
/* The same, limited in rate, as deep as the session wants it. */
void preload_stack_take(struct preload_stack *stack, uint64_t site);
void preload_stack_warm_up(void);
/* A record with `stack` as its word number `stack_word` (from 1), both in one reservation. */
void preload_record_stack_at(uint64_t tsc, unsigned kind, const uint64_t *words, size_t nr_words,
	size_t stack_word, const struct preload_stack *stack);

/* Begin of a wait: {object, [more,] site, stack}. */
#define PRELOAD_RECORD_WAIT(kind, site, ...)                                                       \
	preload_record_wait(PRELOAD_##kind, site, PRELOAD_WORDS(__VA_ARGS__, site, 0))
void preload_record_wait(unsigned kind, uint64_t site, const uint64_t *words, size_t nr_words);

/* ---- what the program hands over ------------------------------------------------------------- */

/* Worth reading before the real call has looked at it? The kernel says EFAULT for NULL, small
 * numbers and its own addresses; reading them here would end the program. */
PRELOAD_INLINE bool preload_is_address(const volatile void *address)
{
	return (uintptr_t)address >= PRELOAD_PAGE && (uintptr_t)address >> 47 == 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

PRELOAD_INLINE uint64_t preload_object(const volatile void *address, unsigned type, bool shared)
{
	return (uintptr_t)address | (uint64_t)type << RING_OBJECT_TYPE_SHIFT |
	       (shared ? RING_OBJECT_SHARED : 0);
}

/* ---- descriptors (preload/fd.c) -------------------------------------------------------------- */

int preload_fd_info(int fd); /* what the kernel says of it, to be read and closed; < 0: nothing */
uint64_t preload_fd_object(int fd); /* object word of what fd is now; 0: not a descriptor */
/* Object word of the file of that name, as the program says it. */
uint64_t preload_path_object(const char *path);
void preload_fd_forget(int fd);
void preload_fd_opened(int fd);              /* a name was: it is no socket */
void preload_fd_made_like(int fd, int from); /* by dup and its kin; fd may be -1 */
void preload_fd_lock(int fd, bool locked);   /* the file that it is */
/* fd is about to be closed: says so if somebody may wait for that, and forgets it. */
void preload_fd_close(int fd, uint64_t site);
void preload_fd_close_on_exec(uint64_t site); /* the same for all that an exec closes */
/* ... for calls that are known to close it only when it is gone. */
struct preload_close {
	uint64_t object, ends;
};
struct preload_close preload_fd_look_at_end(int fd); /* object 0: nobody waits for its end */
void preload_record_close(const struct preload_close *end, uint64_t tsc, uint64_t site);
PRELOAD_INLINE unsigned preload_object_type(uint64_t object)
{
	return object >> RING_OBJECT_TYPE_SHIFT & 0xff;
}

/* One call of the kernel about a descriptor. */
struct preload_io {
	uint64_t object, begin_tsc, site;
	unsigned op;
	bool open;  /* begun, not ended */
	bool peeks; /* a recv that leaves the data: recorded as a poll */
};
void preload_io_begin(struct preload_io *io, unsigned op, int fd, uint64_t nr_bytes, uint64_t site);
void preload_io_begin_on(/* object 0: of none */
	struct preload_io *io, unsigned op, uint64_t object, uint64_t nr_bytes, uint64_t site);
void preload_io_end(struct preload_io *io, int64_t result); /* result as the call's; reads errno */
/* Both records afterwards, for calls that are known to have reached the kernel only then. */
void preload_io_past(unsigned op, uint64_t object, uint64_t nr_bytes, uint64_t site,
	uint64_t begin_tsc, int64_t result);

/* Both records afterwards, of no object, for calls that are of interest only when they lasted. */
void preload_io_lasted(unsigned op, uint64_t site, uint64_t begin_tsc, int64_t result);

/* ---- modules, annotations -------------------------------------------------------------------- */

void preload_modules_scan(void);   /* records new and gone modules, connects their annotations */
void preload_modules_forget(void); /* all are new again */
void preload_modules_check(void);  /* ... when something was loaded behind our back lately */
void preload_omp_loaded(void);     /* a runtime of LLVM's or Intel's OpenMP was */
/* Of each new module. True: it is an MPI library; then preload_mpi_loaded() is to be called. */
struct dl_phdr_info;
bool preload_mpi_meets(struct dl_phdr_info *info);
void preload_mpi_loaded(void);
struct longpole_hooks;
extern const struct longpole_hooks preload_hooks;

/* ---- what the core itself wraps, for `longpole calls` (tally/calls.c; else nothing) ---------- */

struct preload_counted {
	uint64_t word[20];
};
void preload_count_begin(struct preload_counted *counted, unsigned function, uintptr_t site);
/* error: its number; 0: none; -1: it failed, who knows why. errno stays. */
void preload_count_end(struct preload_counted *counted, int error);

/* ---- environment (preload/env.c) ------------------------------------------------------------- */

bool preload_env_read(
	char **environment); /* remembers our variables; false: there is no LONGPOLE_RING */
const char *preload_env_ring(void);
uint32_t preload_env_parent_image(void);
void preload_env_set_image(uint32_t image); /* children that inherit `environ` get it */

/* ---- system calls that do not touch errno ---------------------------------------------------- */

/* What the process has forbidden itself (preload/sandbox.c). */
struct preload_sandbox {
	bool no_calls; /* a filter of system calls: one that the program does not make may end it */
	bool no_clock; /* reading the time stamp counter ends it */
	uint32_t tid_offset; /* of a thread's id in what pthread_self() points to; 0: not known */
	uint32_t pid;
};
extern struct preload_sandbox preload_sandbox __attribute__((visibility("hidden")));
/* Has this program begun under a filter that the recorder is not under? Then it is asked nothing.
 */
bool preload_sandbox_inherited(const char *ring_path);
/* This thread's numbers in its own pid namespace, without a system call where there must be none.
 */
void preload_sandbox_ids(uint32_t *ret_pid, uint32_t *ret_tid);
/* syscall(SYS_seccomp, ...), syscall(SYS_prctl, ...), as libc's would. */
long preload_limits_itself(long number, long a, long b, long c, long d, long e, long f)
	__attribute__((used, visibility("hidden")));

/* A call that the program makes itself, by way of us. */
PRELOAD_INLINE long preload_syscall_of_program(
	long number, long a, long b, long c, long d, long e, long f)
{
	return processor_syscall(number, a, b, c, d, e, f);
}

/* A call of our own: refused where it might end the program. */
PRELOAD_INLINE long preload_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (PRELOAD_RARE(preload_sandbox.no_calls))
		return -EPERM;
	return preload_syscall_of_program(number, a, b, c, d, e, f);
}

#endif
