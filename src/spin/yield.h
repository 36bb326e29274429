/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yield.h - spin-then-yield for unmodified programs (Li 2005, section 3.5.2.1).
 *
 * Where more threads want to run than there are processors, threads get signals now and then
 * (spin/arm.h), and the loops that they are met in are looked at (spin/loop.h); where code says too
 * little, threads that are ready are stopped for a burst of single steps (spin/burst.h). A loop
 * that is so proved to spin is told to a small library in the program (yield.h), and gets a
 * breakpoint: a thread that was there so often gets a signal, and gives its processor away: to the
 * thread that it waits for, or to any other. Threads that work get no signals for that.
 *
 * The text's hardware counts N iterations, and then interrupts: so does the breakpoint. (The N of
 * the options is that of the proof by steps.) Breakpoints that cost more than is given away are
 * given up, and the clock takes their place. No code or memory of the program is changed.
 */
#ifndef LONGPOLE_SPIN_YIELD_H
#define LONGPOLE_SPIN_YIELD_H

#include "spin/native.h"

struct spin_yield_options {
	char *const *argv;
	uint32_t iterations;  /* N: that are a proof */
	uint64_t interval_ns; /* of a thread's processor time, between two signals by the clock */
	uint64_t sleep_ns;    /* after a yield it sleeps until a polled word has changed, at most so
			      long; 0: it yields again */
	bool always;          /* also when there are processors enough */
};
struct spin_yield {
	pid_t pid;
	int exit_code;
	uint64_t elapsed_ns;
	uint64_t nr_looks;   /* at the machine: is it full? */
	uint64_t nr_crowded; /* it was */
	/* proofs */
	uint64_t nr_glances; /* at a thread */
	uint64_t nr_bursts, nr_spins, nr_steps;
	uint64_t stopped_ns; /* of glances and bursts */
	uint64_t nr_places;  /* in code, whose loops were looked at */
	uint64_t nr_loops;   /* that were proved to spin; */
	uint64_t nr_by_code; /* of them, by their code alone (spin/loop.h) */
	uint64_t nr_placed;  /* of them, with a breakpoint, which interrupts who waits there */
	uint64_t nr_dropped; /* breakpoints given up: they cost more than they brought */
	uint64_t first_ns;   /* since the start, when the first was; 0: none */
	uint64_t nr_refused;
	const char *refused; /* static text, of the last */
	/* what came of it */
	uint64_t nr_armed; /* threads that got signals, at most at one time */
	uint64_t nr_samples, nr_spinning, nr_yields, nr_sleeps, nr_changed, slept_ns, yielded_ns;
	const char *unable;  /* static text: why no thread can give way; NULL: they can */
	uint64_t nr_blocked; /* threads that block the signal, when last looked */
};
enum base_status spin_yield(const struct spin_yield_options *o, struct spin_yield *ret,
	struct base_err *err) BASE_MUST_CHECK;

#endif
