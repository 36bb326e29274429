/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - the runtime library of programs built by `longpole cc`: inside. What target.c
 * (threads, buffers, chunks), target/signal.c (handlers) and target_call_*.c (calls that are
 * recorded) share.
 *
 * It runs in other people's processes: no heap, no stdio, no lock, errno kept; on trouble words are
 * dropped and counted. Rewritten code stores words at r10 (or a borrowed register) without looking;
 * a guard page behind each buffer faults when it is full, and the fault's handler encodes it.
 */
#ifndef LONGPOLE_TARGET_TARGET_H
#define LONGPOLE_TARGET_TARGET_H

#include "ring/meet.h"
#include "ring/memory_ring.h"
#include "ring/memory_encode.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_EXPORT __attribute__((visibility("default")))
/* A stub: rewritten code calls it for the function whose name follows longpole_at_. All are in one
 * section, by which the preload library knows them (meet.h), and with them what is called for a
 * function of the program's and calls it. */
#define TARGET_BETWEEN __attribute__((noinline, section("longpole_at")))
#define TARGET_STUB    TARGET_EXPORT TARGET_BETWEEN
/* In a stub: where the program calls it; */
#define TARGET_SITE ((uint64_t)(uintptr_t)__builtin_return_address(0))
/* the program's own call, of which that is to be known; */
#define TARGET_CALL(call) (longpole_memory.caller = TARGET_SITE, call)
/* first: when nobody records, the call is all, and its place is the program's. */
#define TARGET_UNLESS_ATTACHED(call)                                                               \
	if (!longpole_target_attached())                                                           \
	return call

/* A stub, weak because the function need not be there: what comes before the call, and after it,
 * when `result` is what it returned. */
#define TARGET_AROUND(name, parameters, arguments, first, then)                                    \
	void name parameters __attribute__((weak));                                                \
	void longpole_at_##name parameters;                                                        \
	TARGET_STUB void longpole_at_##name parameters                                             \
	{                                                                                          \
		first;                                                                             \
		name arguments;                                                                    \
		then;                                                                              \
	}
#define TARGET_AROUND_RESULT(type, name, parameters, arguments, first, then)                       \
	type name parameters __attribute__((weak));                                                \
	type longpole_at_##name parameters;                                                        \
	TARGET_STUB type longpole_at_##name parameters                                             \
	{                                                                                          \
		first;                                                                             \
		type result = name arguments;                                                      \
		then;                                                                              \
		return result;                                                                     \
	}
/* A stub of libc's: what is recorded after the call, of its result and when it began. */
#define TARGET_AFTER(type, name, parameters, arguments, then)                                      \
	type longpole_at_##name parameters;                                                        \
	TARGET_STUB type longpole_at_##name parameters                                             \
	{                                                                                          \
		TARGET_UNLESS_ATTACHED(name arguments);                                            \
		uint64_t before = target_call_ticks();                                             \
		type result = TARGET_CALL(name arguments);                                         \
		then;                                                                              \
		return result;                                                                     \
	}

/* What call records say. */
enum {
#define CALL(name, number, class, line) CALL_##name = (number),
#include "memory/stream/calls.def"
};

enum {
	TARGET_BUFFER_BYTES = MEMORY_PIECE_WORDS * 8,
	TARGET_GUARD_BYTES = 64 * 1024, /* more than a record */
	TARGET_LIVE_PIECES = 64,        /* of a chunk, when somebody reads along */
	TARGET_BUFFERS = 8,             /* one, and one for each handler that interrupts another */
	TARGET_RECORD_WORDS_MAX = 256,
	TARGET_MODULES_MAX = 1024,
	TARGET_PATH_BYTES = 256,
	TARGET_STACK_BYTES = 64 * 1024, /* of the guard's handler */
};

/* Known to rewritten code by offset: see rewrite/emit.c. */
struct target_tls {
	uint64_t *pointer; /* next word; NULL: this thread has no buffer yet */
	uint64_t save[2];  /* borrowed registers */
	struct target_thread *thread;
	struct record_lock_stamps *stamps; /* of the recorder of locks, too; NULL: there is none */
	uint64_t nr_told; /* calls that we are in and that tell of threads themselves */
	uint64_t caller;  /* of the stub that this thread is in: meet.h */
};
extern __thread struct target_tls longpole_memory
	__attribute__((tls_model("initial-exec"), visibility("default")));

struct target_buffer {
	uint64_t *start, *end; /* NULL: not made yet */
	uint64_t *from;        /* first word that is not encoded yet */
	uint64_t *left_at;     /* where a handler has interrupted the writer; NULL: current */
	const void *frame;     /* of the handler that uses it */
	bool in_use;
};

struct target_thread {
	struct target_thread *next; /* all that ever were; never freed, used again */
	int alive;                  /* atomic */
	int flushing;               /* atomic: 1 while someone encodes for it */
	struct target_tls *tls;
	struct target_buffer buffer[TARGET_BUFFERS];
	struct target_encoder encoder;
	uint64_t nr_slot_states;
	uint8_t *chunk; /* in the ring; NULL: none open */
	uint32_t chunk_block, chunk_used, chunk_pieces;
	uint32_t chunk_most; /* bytes that it has if all of it is encoded */
	bool chunk_is_raw, encodes_chunk;
	bool is_costly; /* the last piece that it encoded itself was, for a word */
	uint64_t number, sequence, lost;
	uint32_t tid;
	int stopped;          /* detail is off for this thread */
	uint64_t begin_ticks; /* of the current buffer */
	uint64_t fs_base;
	uint8_t *stack; /* of the guard's handler */
};

/* A mark's words into the thread's stream. `ticks`-class slots last. */
TARGET_EXPORT void longpole_target_mark(enum memory_mark mark, const uint64_t *slot);
static inline uint64_t target_ticks(void)
{
	return __builtin_ia32_rdtsc();
}
/* Somebody records, if not everything at the moment. */
TARGET_EXPORT bool longpole_target_attached(void);
/* For a call record; programs that nobody records need not read the clock. */
static inline uint64_t target_call_ticks(void)
{
	return longpole_target_attached() ? target_ticks() : 0;
}
/* A call record: kind is enum memory_call_kind. */
TARGET_EXPORT void longpole_target_call(unsigned kind, uint64_t before, uint64_t after, uint64_t a0,
	uint64_t a1, uint64_t a2, uint64_t a3);
/* target/awaited.c: of any condition, before it is told; before the thread waits; and when it has
 * taken a mutex, before that is recorded. */
TARGET_EXPORT void longpole_target_signals(const void *condition);
TARGET_EXPORT void longpole_target_awaits(const void *condition, const void *mutex);
TARGET_EXPORT void longpole_target_took(const void *mutex, uint64_t ticks);
/* The same of what has no mutex: something is made known by the object, for the time that is
 * returned (0: nobody will know); somebody goes on because it was, or was so often. */
TARGET_EXPORT uint64_t longpole_target_tells(const volatile void *object);
TARGET_EXPORT void longpole_target_told(const volatile void *object);
TARGET_EXPORT void longpole_target_told_times(const volatile void *object, uint64_t nr);
/* target/channel.c: what reading from a descriptor takes from, and writing to it gives to; 0:
 * nothing. */
struct target_channel {
	uint64_t takes, gives;
	bool counts; /* the units are the value that is read, not bytes */
};
/* A new direction, with that many units. */
TARGET_EXPORT uint64_t longpole_target_channel_number(uint64_t units);
TARGET_EXPORT void longpole_target_channel_made(int fd, const struct target_channel *c);
/* It may have been opened before; else it has so many units. */
TARGET_EXPORT void longpole_target_channel_opened(int fd, uint64_t units);
TARGET_EXPORT bool longpole_target_channel(int fd, struct target_channel *ret); /* is it one? */
/* How many of OpenMP's ordered sections have ended, with this one that does? */
TARGET_EXPORT uint64_t longpole_target_ordered(bool ends);
/* target/call_gomp.c: a thread of a region begins one of OpenMP's tasks. */
TARGET_EXPORT void longpole_target_task_begins(void);
TARGET_EXPORT void longpole_target_range(bool store, const void *address, size_t bytes);
bool longpole_target_on(void);
/* All threads', and their chunks to the reader: the process ends. */
TARGET_EXPORT void longpole_target_flush_all(void);
void longpole_target_thread_end(void);
/* When somebody reads along: what this thread has done so far, before it makes another one or
 * (waits) waits for one. */
TARGET_EXPORT void longpole_target_let_see(bool waits);
const struct record_preload_side *longpole_target_meet(void); /* target/meet.c; NULL: nobody */
/* Of each module: target/module.c. */
TARGET_EXPORT void longpole_target_stubs(const char *from, const char *to);
/* The preload library's heap may want to know: a block was asked for at `site`. */
TARGET_EXPORT void longpole_target_tell_allocated(const void *p, uint64_t site);
/* Before what may wait: when many threads have a block open, this one's goes to the reader. */
TARGET_EXPORT void longpole_target_let_go(void);

/* ---- tables: target.c, target/site.c --------------------------------------------------------- */
/* A table as the trace gets it. `head`: module, load_bias, first_index, flags. */
struct target_table {
	struct memory_table_head head;
	const char *path;
	const struct memory_block_head *heads;
	const uint8_t *info;
	size_t nr_heads, info_bytes;
	uint64_t heads_at, info_at; /* where they are, or seem to be */
};
void longpole_target_send_table(const struct target_table *t);
/* The file that is mapped there. */
struct target_place {
	uintptr_t address;
	uintptr_t low, high; /* of what is mapped there; both 0: of no file */
	uint64_t load_bias;
	char path[TARGET_PATH_BYTES];
};
void longpole_target_find_place(uintptr_t address, struct target_place *ret);
/* Gives the block the next index. false: there is none, or no memory. */
bool longpole_target_number(struct memory_block_head *head);
uint32_t longpole_target_nr_blocks(void); /* highest index + 1 */

/* Places in the program that say what they access (target/site.h). Before the first one: */
bool longpole_target_make_sites(void);
bool longpole_target_has_sites(void);
/* A call of a record returns to `code`: what sites there are do not say that. */
TARGET_EXPORT void longpole_target_called(uintptr_t code);
/* New ones to the trace. */
void longpole_target_send_sites(void);
/* Where all are: there may be other things between them. */
const struct memory_block_head *longpole_target_sites(uintptr_t *ret_nr);
void longpole_target_sites_forked(void);               /* all are to be sent again */
void longpole_target_block_signals(uint64_t *ret_old); /* but SIGSEGV */
void longpole_target_restore_signals(const uint64_t *old);

/* ---- between target.c and target/signal.c ---------------------------------------------------- */
struct target_thread *longpole_target_attach_thread(void);
/* Encodes [buffer->from, to), which becomes the rest's beginning. */
void longpole_target_emit(
	struct target_thread *t, struct target_buffer *b, uint64_t *to, unsigned flags);
bool longpole_target_make_buffer(struct target_buffer *b);
struct target_buffer *longpole_target_buffer_of(struct target_thread *t, const uint64_t *p);
void longpole_target_install_guard(void);
TARGET_EXPORT long longpole_target_syscall(
	long number, long a, long b, long c, long d, long e, long f);

#endif
