/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.h - which threads of a program spin, where and on what: for `longpole spin`.
 *
 * Two ways. Valgrind's tool (valgrind/) sees every instruction of a program that it runs, and
 * counts. Bursts of single steps (spin/burst.h) look at a live program again and again, and give
 * shares of samples.
 */
#ifndef LONGPOLE_SPIN_NATIVE_H
#define LONGPOLE_SPIN_NATIVE_H

#include "base/base.h"
#include "spin/burst.h"

#include <sys/types.h>

enum {
	SPIN_WRITERS = 4,
	SPIN_THREADS_MAX = 65536,
	SPIN_LOOPS_MAX = 65536,
	SPIN_NAME = 16,
	/* as env(1) says that a program could not be run */
	SPIN_EXIT_OURS = 125,
	SPIN_EXIT_NOT_EXECUTABLE = 126,
	SPIN_EXIT_NOT_FOUND = 127,
};

/* All texts of an answer are in its arena. */
struct spin_place {
	uint64_t address;
	const char *function, *file, *object; /* NULL: unknown */
	uint64_t line;
};
struct spin_polled {
	uint64_t address, value; /* value: when last looked at; samples only */
	const char *name;        /* "turn", "lock+0x40"; NULL: no variable covers it */
	bool own_stack, shared;  /* shared with other processes */
	/* The thread that changed it since it was first spun on; Valgrind only. */
	uint64_t changes;
	uint64_t writer[SPIN_WRITERS], last_writer; /* threads' ids */
	size_t nr_writers;
	struct spin_place last_writer_at;
};
struct spin_loop {
	uint64_t thread; /* id */
	struct spin_place branch, begins;
	/* Valgrind: exact counts */
	uint64_t spin_iterations, spin_instructions, waits, longest_iterations;
	uint64_t counting_iterations, counting_instructions;
	/* samples */
	uint64_t samples_spin, samples_count, loop_instructions;
	bool yields;
	struct spin_polled polled[SPIN_WORDS];
	size_t nr_polled;
	bool more_polled;
};
struct spin_thread {
	uint64_t id; /* Valgrind: in order of birth, from 1; samples: the kernel's */
	char name[SPIN_NAME];
	uint64_t parent; /* Valgrind: its creator; 0: nobody */
	uint64_t instructions, spin_instructions, counting_instructions, marked_instructions;
	uint64_t evictions, overflows; /* of the detector's tables */
	uint64_t samples[SPIN_VERDICTS];
};

/* All threads of a process that could run were stopped, and all spun. */
enum spin_native_livelock {
	SPIN_LIVELOCK_NONE,
	/* all running threads spin, but something named in `open` could end it */
	SPIN_LIVELOCK_OPEN,
	SPIN_LIVELOCK_FOUND
};
struct spin_standstill {
	enum spin_native_livelock verdict;
	uint64_t nr_spinning, nr_asleep, nr_other;
	const char *open;    /* static text */
	bool has_handlers;   /* a signal handler could still end it */
	uint64_t found_ns;   /* since the first sample */
	uint64_t stopped_ns; /* the longest that all were stopped for */
	bool ended; /* the process's first thread was killed meanwhile, with this wait status */
	int end_status;
};

struct spin_answer {
	struct base_arena *arena;
	bool sampled; /* else by Valgrind */
	pid_t pid;
	int exit_code; /* of a program that was run */
	bool running;  /* it has not ended */
	struct spin_thread *thread;
	size_t nr_threads, threads_capacity;
	struct spin_loop *loop; /* most waiting first */
	size_t nr_loops, loops_capacity;
	uint64_t lost_loops, lost_words, nr_processes;
	/* Valgrind */
	uint64_t nr_sdt, nr_rub, yield_after;
	/* samples */
	uint64_t nr_samples, nr_idle_looks, elapsed_ns, stopped_ns, longest_stop_ns, nr_steps;
	const char *refused; /* why, of the last that was; static text */
	bool has_cycles;     /* of all threads, in user space: */
	uint64_t cycles, instructions;
	struct spin_standstill standstill;
};
void spin_answer_fini(struct spin_answer *a);
/* The thread of an id; NULL: none. */
struct spin_thread *spin_thread_of(const struct spin_answer *a, uint64_t id);
/* Loops: those that wait most first. Same answer, same order. */
void spin_sort(struct spin_answer *a);

/* ---- samples --------------------------------------------------------------------------------- */

struct spin_sample_options {
	pid_t pid; /* to look at; 0: run argv */
	char *const *argv;
	uint64_t interval_ns; /* between two samples */
	uint64_t duration_ns; /* 0: until it ends, or SIGINT or SIGTERM comes */
	double stopped_share; /* of the time that a thread may be stopped, at most: samples get
				 rarer */
	struct spin_limits limits;
	bool watch_livelock;
	bool until_livelock; /* end when one was found */
};
/* Call _answer_fini() also after a failure. */
enum base_status spin_sample(const struct spin_sample_options *o, struct spin_answer *ret,
	struct base_err *err) BASE_MUST_CHECK;

/* ---- Valgrind -------------------------------------------------------------------------------- */

/* Is the tool built, and Valgrind there? *ret_why: static text, why not. */
bool spin_has_tool(const char **ret_why);
struct spin_tool_options {
	char *const *argv;
	uint64_t nr_sdt, nr_rub,
		yield_after; /* 0: the tool's defaults; yield_after UINT64_MAX: never */
	const char *marked;  /* "LO-HI"; NULL: none */
};
enum base_status spin_run_tool(const struct spin_tool_options *o, struct spin_answer *ret,
	struct base_err *err) BASE_MUST_CHECK;
/* What the tool wrote for one process, added to the answer. ERR_CORRUPT: it is not that. */
enum base_status spin_read_tool(const char *text, size_t size_bytes, struct spin_answer *ret,
	struct base_err *err) BASE_MUST_CHECK;

/* ---- programs -------------------------------------------------------------------------------- */

/* Starts argv with our standard files; its signals are as ours were before `before`. 126, 127, 125
 * in *ret_exit_code when not. environment: name, value, name, ..., NULL; or NULL. */
enum base_status spin_start(char *const *argv, const char *const *environment,
	const sigset_t *before, pid_t *ret_pid, int *ret_exit_code,
	struct base_err *err) BASE_MUST_CHECK;

#endif
