/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - does a loop only wait? Told from its instructions alone.
 *
 * A round of a loop whose registers are all written before they are read in it, or not written at
 * all, depends on memory and on nothing that the round before did. If it stores nothing but by
 * exchange of such a value with a word, a round that found memory as the round before did leaves
 * everything as it was: it spins (T. Li 2005, section 3.3), and only a change of memory by somebody
 * else ends it. That is a proof without a single step. Loops that it does not take in (calls, more
 * than one path through it, instructions beside the usual ones) are UNKNOWN, and may well spin.
 */
#ifndef LONGPOLE_SPIN_LOOP_H
#define LONGPOLE_SPIN_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SPIN_LOOP_BYTES = 128, /* at most, of a loop */
	SPIN_LOOP_WORDS = 4,
	SPIN_LOOP_NONE = 0xff
};

enum spin_loop_kind {
	SPIN_LOOP_UNKNOWN,
	SPIN_LOOP_WORKS, /* a round differs from the one before, or stores, or reads nothing
			  */
	SPIN_LOOP_WAITS
};
/* Where a word is: displacement + base + index * scale, of registers (numbered rax, rcx, rdx, rbx,
 * rsp, ...) that the loop leaves as they are. */
struct spin_loop_word {
	uint64_t displacement; /* of a word that is addressed by rip: the address */
	uint8_t base, index;   /* or SPIN_LOOP_NONE */
	uint8_t scale, size_bytes;
};
struct spin_loop_code {
	enum spin_loop_kind kind;
	uint64_t begins, branch; /* addresses of its first and its last instruction */
	uint64_t again; /* one that each further round runs, but not a thread that leaves at once,
			   if there is such a one */
	struct spin_loop_word word[SPIN_LOOP_WORDS];
	uint32_t nr_words; /* 0: not all of them are at such a place */
};
/* The innermost loop around the instruction at `pc`. `code`: size_bytes of code from `from` on,
 * which should reach SPIN_LOOP_BYTES to both sides. */
struct spin_loop_code spin_loop_around(
	const uint8_t *code, size_t size_bytes, uint64_t from, uint64_t pc);

/*
 * The same, as a sign and no proof, for code that cannot be watched any more: what is told WAITS
 * may wait. It takes in, too:
 * - calls of functions that only give the processor away (`yields` says whether an address is one);
 * - more than one path through a round, if none leads back;
 * - variables in the stack frame, as debug builds have them (nobody else changes these meanwhile);
 * - a count of the rounds that is nothing else (waits that give up in the end);
 * - whatever has a `pause` and stores nothing.
 */
struct spin_loop_calls {
	bool (*yields)(void *ctx, uint64_t target);
	void *ctx;
};
struct spin_loop_code spin_loop_guess(const uint8_t *code, size_t size_bytes, uint64_t from,
	uint64_t pc, const struct spin_loop_calls *calls);

#endif
