/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect.h - is a thread spinning? From what it commits: register writes, stores, backward
 * branches.
 *
 * T. Li, "Reducing the cost of waiting...", 2005, sections 3.3, 3.4 and 3.5.1: a thread spins
 * between two instances of the same backward control transfer (BCT) if all its registers are the
 * same at both, and no store in between changed memory. A spin detection table (SDT) has the BCTs
 * that may be loops, a register update buffer (RUB) the registers that are not what they were when
 * an entry's iteration began. Both are bounded; too small ones miss spins, and never make one up.
 *
 * What the text leaves open is decided so:
 * - One RUB serves all SDT entries and acts exactly as one RUB an entry would: a register may be in
 * it twice, with the values that it had when different entries' iterations began.
 * - A BCT that is found but did not spin stays where it is in the SDT, with those above it: what an
 * inner loop's counter made different may be as it was when the outer loop's BCT comes (an idle
 * loop that looks at several words). So an entry may be younger than one above it, and what the one
 * above counts as spinning is subtracted from it at most down to 0.
 * - An entry that overflowed the RUB may spin again in its next iteration, which begins with
 * nothing in the RUB.
 *
 * No call leaves these files, of libc neither: they run inside Valgrind's tools, too. One thread of
 * the program needs one detector; it is the thread's state, to be kept when the thread is switched
 * out (section 3.5.3).
 */
#ifndef LONGPOLE_SPIN_DETECT_H
#define LONGPOLE_SPIN_DETECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SPIN_SDT_DEFAULT = 16, /* entries: section 3.4.4's, where no workload needed more */
	SPIN_RUB_DEFAULT = 64,
	SPIN_SDT_MAX = 1024, /* as good as unbounded */
	SPIN_RUB_MAX = 16384,
	SPIN_VALUE_WORDS = 8, /* the widest register: 512 bits */
};

struct spin_sdt { /* a BCT, perhaps of a loop */
	uint64_t pc;
	uint64_t began_instructions; /* the thread's count less its own counter (3.5.1) */
	uint64_t iterations;         /* that spun, one after the other, up to now */
	uint64_t since;              /* logical time when the first of them began */
	bool overflow;               /* a changed register found no place in the RUB */
};

struct spin_rub { /* a register that is not what it was; its first mask word is 0: a free entry */
	uint32_t reg, words;
	uint64_t value[SPIN_VALUE_WORDS]; /* as it was */
};

struct spin_counts {
	uint64_t instructions;        /* all */
	uint64_t spinning;            /* of them: PerfCtr-SpinInstrs */
	uint64_t bcts, cycles, spins; /* BCTs; those found in the SDT; those that spun */
	uint64_t changing_stores; /* clears of the SDT, not stores, where stores come in groups */
	/* What was lost. Both 0: an unbounded detector would have said the same. */
	uint64_t evictions, overflows;
};

struct spin_detector {
	uint32_t nr_sdt, nr_rub, mask_words;
	uint32_t top,
		used;     /* the SDT is circular: entry i from the top is sdt[(top + i) % nr_sdt] */
	uint32_t rub_end; /* all entries from here on are free */
	struct spin_sdt *sdt;
	struct spin_rub *rub;
	uint64_t *mask; /* nr_rub x mask_words: which SDT entries an entry belongs to */
	struct spin_counts counts;
};

/* Memory for the tables of a detector; 0: a size is 0 or over its maximum. 8-aligned, zeroed. */
size_t spin_detector_size_bytes(uint32_t nr_sdt, uint32_t nr_rub);
/* `memory` stays the caller's, and must outlive the detector. False: a size is out of bounds. */
bool spin_detector_init(struct spin_detector *d, void *memory, uint32_t nr_sdt, uint32_t nr_rub);

/* The thread has committed n instructions more. Their other events may come before or after, but
 * the count up to a BCT, itself included, comes before its spin_branch(). */
static inline void spin_commit(struct spin_detector *d, uint64_t nr)
{
	d->counts.instructions += nr;
}

/* Register `reg` (any number: the caller's) of 1 to SPIN_VALUE_WORDS words goes from `before` to
 * `after`. Several writes may be told as one, from the first's `before` to the last's `after`, if
 * no BCT is between them; equal values do nothing. */
void spin_register(struct spin_detector *d, uint32_t reg, uint32_t words, const uint64_t *before,
	const uint64_t *after);

/* A store changed memory; or something happened that must count so: a store to a device, a system
 * call with effects, a signal handler. Silent stores are not told. */
void spin_changed(struct spin_detector *d);

struct spin_verdict {
	bool cycle;            /* the BCT was in the SDT: an iteration has ended */
	bool spinning;         /* and it was spun through */
	uint64_t instructions; /* of this iteration, those of inner spins aside */
	uint64_t iterations;   /* spun through so far, this one included; 0: not spinning */
	uint64_t since;        /* spinning: logical time when the first of them began */
};

/* The thread takes the backward branch or jump at `pc`. Calls and returns are none. `now`: logical
 * time of the caller, which does not go back; 0 if there is none. */
struct spin_verdict spin_branch(struct spin_detector *d, uint64_t pc, uint64_t now);

/* Short cuts for a caller that sees without the RUB that an iteration did not spin, and tells its
 * registers' changes later, several iterations' as one. The BCT at `pc` is taken again: as
 * spin_branch() of an iteration that changed a register. False: it is not in the SDT, and nothing
 * was done. */
bool spin_branch_changed(struct spin_detector *d, uint64_t pc, uint64_t now);
/* What was told does not reach back to where the current iteration of `pc` began: it is not
 * spinning. */
void spin_distrust(struct spin_detector *d, uint64_t pc);

#endif
