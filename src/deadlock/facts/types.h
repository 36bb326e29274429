/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.h - what the two halves of this directory have in common: who waits for what (look.c,
 * wait.c, verdict.c: nothing is run), and what a waiting thread would do next (ahead.c: a copy of
 * it is run).
 *
 * Source: Li, "Monitoring Thread Deadlocks" (Pulse), the general resource graph: process nodes,
 * event nodes = (resource, condition), request and producer edges.
 */
#ifndef LONGPOLE_DEADLOCK_TYPES_H
#define LONGPOLE_DEADLOCK_TYPES_H

#include "base/base.h"

#include <sys/types.h>
#include <sys/user.h>

/* ---- events: a resource and a condition ------------------------------------------------------ */

/* Rows in keys.def: KEY(name, text, met_by_name). */
enum deadlock_key_kind {
#define KEY(name, text, met_by_name) DEADLOCK_KEY_##name,
#include "deadlock/facts/keys.def"
	DEADLOCK_KEY_NR
};

/*
 * struct deadlock_key - the identity of what is awaited or produced. What `space`, `id` and `at`
 * are depends on the kind (keys.def). `bytes`: an awaited object that covers several words (a
 * condition variable, a rwlock, a barrier) matches an event at any of them; 0 counts as 1.
 */
struct deadlock_key {
	enum deadlock_key_kind kind;
	uint32_t bytes;
	bool is_named; /* the object has a name, by which others may reach it; no part of identity
			*/
	uint64_t space, id, at;
};

/* Would `produced` end a wait for `awaited`? */
bool deadlock_key_matches(const struct deadlock_key *awaited, const struct deadlock_key *produced);
bool deadlock_key_equal(const struct deadlock_key *a, const struct deadlock_key *b);

/* ---- waits ----------------------------------------------------------------------------------- */

/* Rows in kinds.def: KIND(name, text, noun). */
enum deadlock_kind {
#define KIND(name, text, noun) DEADLOCK_##name,
#include "deadlock/facts/kinds.def"
	DEADLOCK_KIND_NR
};

enum deadlock_registers_source {
	DEADLOCK_REGISTERS_NONE, /* only sp and pc are known */
	DEADLOCK_REGISTERS_BPF,  /* read by a task iterator; the thread was not stopped */
	DEADLOCK_REGISTERS_PTRACE,
	DEADLOCK_REGISTERS_CORE,
};

struct deadlock_thread {
	pid_t pid, tid;
	pid_t parent;         /* of the process, in its first thread, as BPF saw it; else 0 */
	uint64_t start_ticks; /* with tid: one thread for ever */
	uint64_t runs;        /* times it was put on a processor, when it was looked at */
	char state;           /* as in /proc/PID/stat: R S D T t Z X I */
	char name[16];
};

enum { DEADLOCK_KEYS_MAX = 64, DEADLOCK_NAME_MAX = 96, DEADLOCK_FRAMES_MAX = 12 };

/* A frame of a stack: innermost first. Texts are in the look's arena, never NULL. */
struct deadlock_frame {
	uint64_t pc; /* of the call, not behind it, except in the innermost frame */
	const char *function, *module, *file;
	uint64_t offset; /* in the function */
	uint32_t line;   /* 0: unknown */
	bool is_runtime; /* libc, ld.so, libpthread, libstdc++: not the application's own */
};

/* One thread that waits, decoded. */
struct deadlock_wait {
	struct deadlock_thread thread;
	enum deadlock_kind kind;
	int64_t call;    /* system call number; -1: unknown */
	uint64_t arg[6]; /* of the system call */
	uint64_t sp, pc; /* pc: behind the system call instruction */

	uint64_t object; /* the lock's, condition's, ... address in the process; 0: none */
	uint32_t object_bytes;
	uint64_t word;         /* futex: the address that the call waits on */
	uint32_t expected;     /* futex: the value that the call compares with */
	pid_t owner;           /* who holds it, by its own record; 0: unknown or nobody */
	pid_t owner_word;      /* the same as the lock has it: in the process's PID namespace */
	bool owner_is_exact;   /* only `owner` may end this wait (a mutex, not a semaphore) */
	bool owner_is_process; /* `owner` is a pid: any of its threads may (file locks) */

	struct deadlock_key key[DEADLOCK_KEYS_MAX]; /* any one of them ends the wait */
	size_t nr_keys;
	bool keys_cut;      /* there were more than DEADLOCK_KEYS_MAX */
	bool is_timed;      /* ends by itself */
	uint64_t limit_ns;  /* its time limit, from the beginning of the call; 0: not known */
	bool limit_is_left; /* of an absolute limit it is what is left, as of when it was read */
	bool is_by_name;    /* also by processes that were not seen, by the name of a socket */
	bool is_external;   /* also by what no thread here does: a network peer, a tty, a signal */

	uint64_t blocked_since_ns; /* CLOCK_MONOTONIC, as far as we know; never too early */
	enum deadlock_registers_source registers_source;
	struct user_regs_struct registers; /* fs_base included; rax is -ENOSYS from BPF */

	struct deadlock_frame frame[DEADLOCK_FRAMES_MAX];
	size_t nr_frames;
	const struct deadlock_frame *python; /* of members of findings; innermost first */
	size_t nr_python;
	const char *without_python; /* why they are not known; NULL: they are, or it is no Python */
};

/* ---- running ahead --------------------------------------------------------------------------- */

enum deadlock_snapshot {
	DEADLOCK_SNAPSHOT_AUTO,   /* the first of the following that this machine allows */
	DEADLOCK_SNAPSHOT_BPF,    /* a ghost, registers from BPF: the thread is never stopped */
	DEADLOCK_SNAPSHOT_PTRACE, /* a ghost, registers by ptrace: stopped for microseconds */
};

struct deadlock_ahead_options {
	enum deadlock_snapshot snapshot;
	uint32_t events_max;   /* 0: 10, the source's; at most DEADLOCK_EVENTS_MAX */
	uint64_t time_ns;      /* 0: 1 s, the source's */
	uint64_t quiet_ns;     /* processor time without a system call; 0: 60 ms */
	uint32_t force_branch; /* 0: none; k: take the other side of the k-th conditional jump of
				  the application after the wait (predicates of conditions) */
};

/* Rows in ends.def: END(name, proper, text): proper: what it did not produce, it would not. */
enum deadlock_end {
#define END(name, proper, text) DEADLOCK_END_##name,
#include "deadlock/facts/ends.def"
	DEADLOCK_END_NR
};

enum { DEADLOCK_EVENTS_MAX = 32, DEADLOCK_WOULD_MAX = 160 };

struct deadlock_event {
	pid_t tid; /* who would produce it */
	struct deadlock_key key;
	uint32_t count;
	bool is_share; /* of a lock that others may have, too */
	uint64_t pc;   /* of the system call that would */
};

struct deadlock_run {
	enum deadlock_end end;
	enum deadlock_snapshot snapshot; /* what was used */
	char why[96];                    /* details of the end; may be "" */
	struct deadlock_event event[DEADLOCK_EVENTS_MAX];
	size_t nr_events;
	bool is_forced;            /* a branch was */
	struct deadlock_key again; /* what it would wait for next; kind NONE: nothing */
	bool again_is_same;        /* it went back to the same wait: nothing was learnt */
	uint32_t nr_calls;
	uint64_t runs; /* of the thread, after we had stopped it, which counts as runs; 0: not */
	uint64_t elapsed_ns, stopped_ns;      /* stopped: the victim, 0 with BPF */
	char would_write[DEADLOCK_WOULD_MAX]; /* the beginning of its first output, "" if none */
	int would_write_fd;
};

const char *deadlock_key_kind_text(enum deadlock_key_kind kind);
/* By what a process that was not seen may reach it: "the name of the FIFO". NULL: by nothing. */
const char *deadlock_key_met_by_name(const struct deadlock_key *key);
const char *deadlock_kind_text(enum deadlock_kind kind);
const char *deadlock_kind_noun(enum deadlock_kind kind); /* "mutex" */
const char *deadlock_end_text(enum deadlock_end end);
bool deadlock_end_is_proper(enum deadlock_end end);

#endif
