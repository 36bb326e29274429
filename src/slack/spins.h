/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spins.h - which instructions of recorded streams only spin (T. Li 2005, chapter 3), without
 * registers' values.
 *
 * A round is what a thread executes from one taken backward branch to its next time. Its way is
 * known, so it is known from the instructions alone which registers it reads before it writes them:
 * what it has from the round before. A round spins when
 *  - it hands nothing on: of those registers it writes none (a register update buffer that is
 *    always empty, whatever the values: a static one);
 *  - it stores nothing, but for one exchange of a value that is not made of what it read;
 *  - it reads memory, and no instruction in it depends on anything else (time stamps, calls);
 *  - the round before went the same way.
 * So it found the registers as the round before did, and left them as that one did, as far as
 * memory was the same. The first round of each wait counts as work; so do loops that call, and
 * those whose registers come back to what they were by computing (the seed's detector, which sees
 * values, finds these; `longpole spin` has it).
 *
 * A loop that does all of that but steps registers by constants, which it looks at in nothing but
 * comparisons, polls and counts: two-phase waiting (section 3.3), or a delay. That is a sign, no
 * proof, and a class of its own: its instructions are never among those that spin.
 *
 * Nested loops: a table of SPINS_TABLE branches, as the seed's SDT; a store, a call, a range of
 * unseen code clears it.
 */
#ifndef LONGPOLE_SLACK_SPINS_H
#define LONGPOLE_SLACK_SPINS_H

#include "slack/fields.h"

enum { SLACK_SPINS_WORDS = 4, SLACK_SPINS_TABLE = 16, SLACK_SPINS_BLOCKS = 1024 /* of a round */ };

struct slack_spin { /* instructions of one thread, from 0: [first, last) only spin */
	uint64_t first, last;
	uint32_t loop; /* the last of them */
};
struct slack_spin_loop {
	uint64_t branch, begins; /* code */
	uint32_t thread;
	uint64_t rounds, instructions, waits, longest_rounds;
	uint64_t word[SLACK_SPINS_WORDS]; /* addresses, as of the last wait */
	uint32_t nr_words;
	uint64_t site[SLACK_SPINS_WORDS]; /* code of the instructions that read them */
	uint32_t nr_sites;
	bool more_words, exchanges;
	bool counts; /* it polls and counts */
};
struct slack_spin_thread {
	struct slack_spin *spin; /* in order */
	size_t nr, capacity;
	struct slack_spin *count; /* of loops that count; in order */
	size_t nr_counts, counts_capacity;
	uint64_t instructions, spinning, counting;
	size_t at; /* where slack_spins_count() was last */
};
struct slack_spins {
	struct slack_spin_thread *thread;
	uint32_t nr_threads;
	struct slack_spin_loop *loop; /* in the order in which they were found */
	size_t nr_loops, loops_capacity;
	uint64_t instructions, spinning, counting;
	uint64_t unknown; /* rounds that were not told: code that cannot be decoded */
};

/* Reads the source once, and rewinds it. decode: as in struct slack_core. Memory: 24 bytes a wait,
 * and what the static code needs. */
enum base_status slack_spins_find(struct memory_source *source,
	bool (*decode)(void *ctx, uint64_t code, struct slack_registers *ret), void *decode_ctx,
	struct slack_spins **ret, struct base_err *err) BASE_MUST_CHECK;
struct slack_spins *slack_spins_free(struct slack_spins *s);
/* Of instructions [first, first + count) of a thread, those that spin; `ctx`: the spins. For
 * slack_machine_options.spinning. Quick when asked in order. */
uint64_t slack_spins_count(void *ctx, uint32_t thread, uint64_t first, uint64_t count);

#endif
