/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.h - what ends each wait of a program's own loops, so that a machine can wait anew.
 *
 * slack_spins_find() says which loops only wait, and at which instructions they poll. A wait ends
 * with a poll after which the loop is not gone round again. What ended it is told without values:
 *
 * Flags. The last poll read a store that this thread did not know: one after those that it made or
 * read before, after those that its polls in vain must have seen, and not later than the poll
 * itself. If there is just one such store by another thread, that is it. Times say what is before
 * what: a stream has times at indivisible accesses, at calls, where its buffers begin; if threads
 * ran one at a time (MEMORY_SOURCE_SERIAL), they order everything.
 * Locks. Where every thread takes a word by exchanges and then gives it back, it is a lock: the
 * exchange before each giving back got it. Given back it is by a plain store, or by an exchange in
 * another place of the code than those that take it (the first of each thread takes). The machine
 * decides which thread gets it next. Words that the same instructions take are locks, too, if
 * nobody ever waited for them. Barriers. Where a flag ends a wait, and the waiting thread's last
 * indivisible access before was to the same word as the one of the thread that stored the flag, and
 * earlier, the storing thread had to come last: it waits for the other's access before its own.
 *
 * A wait that several stores may have ended (a counter that moved more than once between two
 * looks), or none that is seen (code outside, signals), is not known: it stays as it was recorded.
 *
 * Positions count a thread's recorded instructions, those of an item included (as the machine and
 * the spins count). Reads the source twice more. Memory: 112 bytes an access to a word that is
 * polled, but for polls in vain.
 */
#ifndef LONGPOLE_SLACK_WAITS_H
#define LONGPOLE_SLACK_WAITS_H

#include "slack/spins.h"

enum slack_wait_what {    /* in this order at one item */
	SLACK_WAIT_SKIP,  /* rounds that were recorded: [position, address) */
	SLACK_WAIT_AWAIT, /* not before `object` was posted */
	SLACK_WAIT_TAKE,  /* not before word `object` is free; then it is taken */
	SLACK_WAIT_POST,
	SLACK_WAIT_GIVE,
};
struct slack_wait_event {
	uint64_t position, address; /* of the access */
	uint32_t object, word;      /* word: what is polled meanwhile */
	uint8_t what;               /* enum slack_wait_what */
};
struct slack_wait_word {
	uint64_t address, site;      /* of a poll: its instruction */
	uint32_t round_instructions; /* of the loop that polls */
	uint16_t size_bytes;
	bool exchanges; /* it polls by exchanges */
	bool lock;
};
struct slack_wait_thread {
	struct slack_wait_event *event; /* in order */
	size_t nr, capacity;
};
struct slack_waits {
	struct slack_wait_thread *thread;
	uint32_t nr_threads, nr_posts; /* posts count from 1 */
	struct slack_wait_word *word;
	size_t nr_words, words_capacity;
	uint64_t flags, locks, barriers; /* known: last polls, exchanges that got a lock, accesses
					    that came last */
	uint64_t several, unseen;        /* waits with rounds that are not known, and why */
	uint64_t skipped;                /* recorded instructions that need not be executed */
};

/* decode: as in slack_spins_find(). The source is rewound. */
enum base_status slack_waits_find(struct memory_source *source, const struct slack_spins *spins,
	bool (*decode)(void *ctx, uint64_t code, struct slack_registers *ret), void *decode_ctx,
	struct slack_waits **ret, struct base_err *err) BASE_MUST_CHECK;
struct slack_waits *slack_waits_free(struct slack_waits *w);

#endif
