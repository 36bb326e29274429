/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin_yield.h - spin-then-yield for unmodified programs (Li 2005, section 3.5.2.1), from outside.
 *
 * Where more threads want to run than there are processors, threads that are ready are stopped now
 * and then for a burst of single steps. One that is proved to spin is not let go: it is held until
 * a word that it polls has changed, at most for hold_ns. Its processor is free for whom it waits
 * for. Nothing is put into the program, and a thread that is held is where it was.
 *
 * The text's hardware counts iterations at full speed and stops a thread after N of them. Here N
 * iterations are stepped through, after the thread was met by chance: short waits are never
 * touched.
 */
#ifndef LONGPOLE_RECORD_SPIN_YIELD_H
#define LONGPOLE_RECORD_SPIN_YIELD_H

#include "record/spin.h"

struct record_spin_yield_options {
	char *const *argv;
	uint32_t iterations;  /* N: proved ones, before a thread is held */
	uint64_t interval_ns; /* between two looks, while there is not enough for all */
	uint64_t hold_ns;     /* at most */
	bool always;          /* also when there are processors enough */
};
struct record_spin_yield {
	pid_t pid;
	int exit_code;
	uint64_t elapsed_ns;
	uint64_t nr_looks;   /* at the machine: is it full? */
	uint64_t nr_crowded; /* it was */
	uint64_t nr_glances; /* at a thread */
	uint64_t nr_bursts, nr_spins, nr_steps;
	uint64_t stopped_ns; /* of glances and bursts */
	uint64_t nr_held, held_ns, longest_hold_ns;
	uint64_t nr_changed; /* holds that ended because a word changed; the others were long enough
			      */
	uint64_t nr_short;   /* of these: so soon that the thread is left alone for a while */
	uint64_t nr_refused;
	const char *refused; /* static text, of the last */
};
enum base_status record_spin_yield(const struct record_spin_yield_options *o,
	struct record_spin_yield *ret, struct base_err *err) BASE_MUST_CHECK;

#endif
