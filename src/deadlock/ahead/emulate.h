/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate.h - a copy of one waiting thread, and what its system calls do instead. Private to the
 * run-ahead engine (ahead.c, emulate*.c, satisfy.c).
 *
 * The copy makes no system call. Each stops it before the kernel has looked at it; a function here
 * computes the result, changes the copy's own memory where the kernel would have, and notes events
 * for others. A call without a row in emulate.def ends the run.
 */
#ifndef LONGPOLE_DEADLOCK_EMULATE_H
#define LONGPOLE_DEADLOCK_EMULATE_H

#include "deadlock/ahead/ghost.h"

enum {
	DEADLOCK_COPY_FILES_MAX = 64,       /* descriptors that the copy opened, closed or read */
	DEADLOCK_COPY_FAKE_FD = 1 << 20,    /* the first that the copy opens */
	DEADLOCK_COPY_FAKE_PID = 1 << 23,   /* the first process that the copy makes: no real one */
	DEADLOCK_COPY_REPEATS_MAX = 40,     /* the same call from the same place, nothing new */
	DEADLOCK_COPY_CALLS_MAX = 400,      /* calls without a new event */
	DEADLOCK_COPY_POLLS_MAX = 4,        /* times that poll and the like find something ready */
	DEADLOCK_COPY_IO_MAX = 1 << 16,     /* bytes of one read that are really provided */
	DEADLOCK_COPY_VECTOR_MAX = 64,      /* pieces of one readv, writev, recvmsg, sendmsg */
	DEADLOCK_COPY_MAPPED_MAX = 1 << 28, /* bytes that the copy may map */
};

/* A descriptor about which the copy and its original differ. */
struct deadlock_copy_file {
	int fd;
	int original; /* the process's descriptor that it stands for; -1: none */
	bool is_closed;
	bool was_fed;              /* read once with made-up data: the next read finds the end */
	struct deadlock_file like; /* what the copy opened or connected by a name; else NONE */
	uint64_t position; /* bytes of it that were read already; a file: where, once known */
	bool has_position;
};

struct deadlock_copy {
	struct deadlock_world *world;
	struct deadlock_process *process;
	const struct deadlock_wait *wait;
	struct deadlock_ghost *ghost;
	struct deadlock_run *run;
	uint32_t events_max;
	bool is_done;
	bool is_exiting; /* all its files are closed */
	bool is_first;   /* the awaited call itself is being satisfied: it does not wait again */
	const char
		*tainted; /* what it did after which a proper end proves nothing; NULL: nothing */

	unsigned hypothesis; /* how the awaited word is faked: the nth way (satisfy.c) */
	bool no_more_hypotheses;
	uint64_t sequence;     /* of an awaited condition variable: each wait for it counts it up */
	unsigned nr_satisfied; /* further waits for parts of the same object */
	uint32_t readers;      /* of the awaited rwlock, before; 0: not of interest */
	unsigned polls, accepts, waits, fakes;
	unsigned repeats, calls_without_news;
	bool gives; /* its last call was an event, though perhaps not a new one */
	struct {
		uint64_t number, pc, argument;
	} last;
	struct deadlock_copy_file file[DEADLOCK_COPY_FILES_MAX];
	size_t nr_files;
	const struct deadlock_key *watched[DEADLOCK_GHOST_WATCHES];
	uint64_t heap_end, mapped_bytes;
	uint64_t signal_mask;
	uint8_t io[DEADLOCK_COPY_IO_MAX];
};

/* At DEADLOCK_STOP_CALL: what the kernel would have done. The result is for rax, unless is_done. */
int64_t deadlock_emulate(struct deadlock_copy *c, uint64_t number, const uint64_t arg[6]);
/* Is there a row for it? (Tests, documentation.) */
bool deadlock_emulate_knows(uint64_t number);
const char *deadlock_emulate_name(uint64_t number); /* "" when there is none */

/* Fakes what ends the wait, in the copy's memory; the awaited call's result. May end the run. */
int64_t deadlock_satisfy(struct deadlock_copy *c);
/* The copy waits for the same object again, at `word`: fakes it in the next way. False: none is
 * left. */
bool deadlock_satisfy_again(struct deadlock_copy *c, uint64_t word, uint32_t expected);
/* At each stop: what the copy gave up without a system call. */
void deadlock_satisfy_look(struct deadlock_copy *c);

/* ---- for the rows ---------------------------------------------------------------------------- */

void deadlock_copy_end(struct deadlock_copy *c, enum deadlock_end end, const char *fmt, ...)
	BASE_PRINTF(3, 4);
/* It would wait (for `key`, NULL: for what has no key): the run ends. */
int64_t deadlock_copy_block(
	struct deadlock_copy *c, const struct deadlock_key *key, const char *what);
void deadlock_copy_event(struct deadlock_copy *c, const struct deadlock_key *key);
/* From here on a proper end proves nothing. */
void deadlock_copy_taint(struct deadlock_copy *c, const char *why);
/* What fd is for the copy; false: not open. */
bool deadlock_copy_file(struct deadlock_copy *c, int fd, struct deadlock_file *ret);
/* From now on fd is like that file; a new one is. */
void deadlock_copy_liken(struct deadlock_copy *c, int fd, const struct deadlock_file *like);
int64_t deadlock_copy_invent(struct deadlock_copy *c, const struct deadlock_file *like);
/* Events of closing `fd` for good (also: of the process's end). */
void deadlock_copy_closing(struct deadlock_copy *c, int fd);
bool deadlock_copy_peek(struct deadlock_copy *c, uint64_t address, void *buf, size_t size);
bool deadlock_copy_poke(struct deadlock_copy *c, uint64_t address, const void *buf, size_t size);
bool deadlock_copy_poke32(struct deadlock_copy *c, uint64_t address, uint32_t value);

/* What to do at a stop of the copy, but for single steps. */
void deadlock_copy_at_stop(struct deadlock_copy *c, enum deadlock_stop stop);
/* Lets the awaited call return, steps to the application's kth conditional jump and takes its other
 * side (force.c). */
void deadlock_copy_force(struct deadlock_copy *c, uint32_t k);

/* One row of emulate.def: emulate_HANDLER in emulate_*.c. */
#define CALL(name, handler)                                                                        \
	int64_t deadlock_emulate_##handler(struct deadlock_copy *, const uint64_t *);
#define RESULT(name, value)
#include "deadlock/ahead/emulate.def"

#endif
