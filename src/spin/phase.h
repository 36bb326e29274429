/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase.h - loops that wait and count: what the spin conditions miss (Li 2005, section 3.3).
 *
 * In two-phase waiting a thread polls a word so many times, and then sleeps. Its counter is not
 * what it was, so no spin is found. Here such loops are a class of their own: innermost loops whose
 * iterations, three or more in a row,
 *  - load from the same addresses, in the same order, and not only from the thread's own stack,
 *  - change at most SPIN_PHASE_CHANGES general registers, each by the same amount every time,
 *  - change no memory but the thread's own stack.
 * That is a sign and no proof: a loop that adds up a constant word looks the same. Callers keep its
 * instructions apart from those that are known to spin.
 */
#ifndef LONGPOLE_SPIN_PHASE_H
#define LONGPOLE_SPIN_PHASE_H

#include <stdbool.h>
#include <stdint.h>

enum { SPIN_PHASE_CHANGES = 3, SPIN_PHASE_ALIKE = 3 };

struct spin_phase {              /* of one thread; {0} to begin with */
	uint64_t pc;             /* the BCT that the current iteration began with */
	uint64_t polls, changes; /* signatures: of it, so far */
	uint32_t nr_polls, nr_changes;
	bool other;                        /* it did what a wait does not do */
	uint64_t last_polls, last_changes; /* of the one before */
	uint32_t nr_alike;
};

/* The iteration loads from an address that is not on the thread's own stack. */
static inline void spin_phase_load(struct spin_phase *p, uint64_t address)
{
	p->polls = (p->polls ^ address) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	p->nr_polls++;
}
/* General register `reg` was `before` when it began, and is `after` when it ends. Flags are not
 * told: they follow. */
static inline void spin_phase_register(
	struct spin_phase *p, uint32_t reg, uint64_t before, uint64_t after)
{
	if (before == after)
		return;
	p->changes = (p->changes ^ (after - before)) * UINT64_C(0x9e3779b97f4a7c15) + reg + 1;
	p->nr_changes++;
}
/* It changed other memory, or another kind of register, or called the kernel. */
static inline void spin_phase_other(struct spin_phase *p)
{
	p->other = true;
}
/* The backward branch at `pc` ends it and begins the next. True: it was an iteration of such a
 * loop. */
bool spin_phase_branch(struct spin_phase *p, uint64_t pc);

#endif
