/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.h - does a live thread spin? It is stopped, stepped through some dozens of
 * instructions under spin/detect.h, and let go. Unprivileged on one's own processes.
 *
 * What a stop can do to a program, and what is done about it:
 * - A thread that sleeps in the kernel is not stopped: some calls end early when that is done to
 * them. If it falls asleep between the look and the stop, calls that would return EINTR are begun
 * again.
 * - A single step is a SIGTRAP. Where the thread blocks that signal it is unblocked for the burst;
 * where the program ignores it, or one is pending, there is no burst (REFUSED): the kernel would
 * reset the handler.
 * - Instructions that show the trap flag or enter the kernel end the burst before they run;
 * sched_yield() alone is stepped over, as spin loops do call it.
 * - Signals that come end the burst and are delivered.
 * - A thread that another process traces is left alone.
 * - If we are killed by SIGKILL within a burst, the thread may be killed by its next trap. All
 * other signals wait until the burst has ended.
 */
#ifndef LONGPOLE_SPIN_BURST_H
#define LONGPOLE_SPIN_BURST_H

#include "base/base.h"
#include "spin/detect.h"
#include "spin/phase.h"

#include <signal.h>
#include <sys/types.h>

enum spin_burst_verdict {
	SPIN_GONE,    /* the thread has ended */
	SPIN_REFUSED, /* see `why` */
	SPIN_KERNEL,  /* it is in the kernel, or went there: not spinning */
	SPIN_WORKS,   /* nothing repeated itself within the burst */
	SPIN_COUNTS,  /* it polls and counts (spin/phase.h) */
	SPIN_SPINS,   /* proved: registers and memory came back, `iterations` times in a row */
	SPIN_CUT,     /* let go before that was known: it had been held for long enough */
	SPIN_VERDICTS
};

enum {
	SPIN_WORDS = 4,
	SPIN_STEPS_DEFAULT = 400,
	SPIN_ITERATIONS_DEFAULT = 2,
	SPIN_STOP_NS_DEFAULT = 50000000,
};

struct spin_word {
	uint64_t address, value;
	uint32_t size_bytes;
	bool own_stack;
};
struct spin_burst {
	enum spin_burst_verdict verdict;
	const char *why;         /* REFUSED, KERNEL: static text */
	uint64_t branch, begins; /* the loop: its backward branch, and where that goes */
	uint64_t pc;             /* where the thread was stopped */
	uint64_t iterations, loop_instructions; /* of one iteration, the last */
	uint64_t steps, stopped_ns;
	bool yields;                       /* sched_yield() in the loop */
	struct spin_word word[SPIN_WORDS]; /* that it polls; own stack's last */
	uint32_t nr_words;
	bool more_words;
	bool ended; /* GONE: it ended as our child, with this wait status */
	int end_status;
};
struct spin_limits {
	uint32_t steps;      /* at most; a step takes some 5 to 20 us */
	uint32_t iterations; /* spinning ones, in a row, that are a proof */
	uint64_t stop_ns; /* no step more once it was stopped for so long; 0: any time. Where others
			     want the processor, a step may take a slice of theirs. */
	uint64_t (*clock_ns)(void *ctx); /* NULL: CLOCK_MONOTONIC; for tests, with its time */
	void *clock_ctx;
};

/* A thread that is stopped by us. */
struct spin_stop {
	pid_t pid, tid;
	int signal; /* that came while it was stopped: delivered when it is let go */
	uint64_t stopped_at_ns;
	bool ended; /* it was killed meanwhile; if it was our child's first thread, so ended our
		       child */
	int end_status;
	bool mask_changed;
	uint64_t mask; /* of signals, as it was */
};

/* The buffers of bursts, for one at a time. NULL: no memory. */
struct spin_stepper *spin_stepper_new(void);
void spin_stepper_free(struct spin_stepper *s); /* NULL-safe */

/* Is the thread ready to run or running ('R')? */
bool spin_is_running(pid_t pid, pid_t tid);
/* Stops a thread. False: `ret` says why, and the thread goes on. Until it is let go our signals are
 * blocked. */
bool spin_stop(pid_t pid, pid_t tid, struct spin_stop *stop, struct spin_burst *ret);
/* The same in two: where many are to be stopped, all are asked first. Each that was asked (true)
 * must be awaited; false from there: it goes on. */
bool spin_ask(pid_t pid, pid_t tid, struct spin_stop *stop, struct spin_burst *ret);
bool spin_await(struct spin_stop *stop, struct spin_burst *ret);
/* Steps the stopped thread. Others may be stopped, too; those that are do not interfere. */
void spin_step(struct spin_stepper *s, struct spin_stop *stop, const struct spin_limits *limits,
	struct spin_burst *ret);
/* A look at the stopped thread without a step: where it is, and a sum of the registers that a loop
 * which waits leaves alone (stack pointer, those that calls preserve). False: it is in the kernel,
 * or gone. */
bool spin_glance(struct spin_stop *stop, uint64_t *ret_pc, uint64_t *ret_sum);
void spin_let_go(struct spin_stop *stop);
/* The three in one. */
void spin_burst(struct spin_stepper *s, pid_t pid, pid_t tid, const struct spin_limits *limits,
	struct spin_burst *ret);

#endif
