/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yield.h - between `longpole run --spin-yield` (spin/yield.c) and liblongpole-yield.so
 * (spin/yield_program.c) in the program: one file in memory that both map.
 *
 * longpole proves loops to be spins and writes them here; it lets the kernel signal each thread
 * after so much processor time of its own, and at each loop (spin/arm.h). The library's handler
 * looks whether the thread is in one of the loops, and then gives its processor away. All counters
 * are the library's, and only they: longpole must not trust them further than to print them.
 */
#ifndef LONGPOLE_RING_YIELD_H
#define LONGPOLE_RING_YIELD_H

#include <signal.h>
#include <stdint.h>

/* "/proc/PID/fd/N" of longpole's */
#define YIELD_ENVIRONMENT "LONGPOLE_YIELD"
#define YIELD_LIBRARY     "liblongpole-yield.so"

enum {
	YIELD_MAGIC = 0x6c706c79,
	YIELD_LOOPS_MAX = 64,
	YIELD_WORDS_MAX = 4,
	YIELD_RECENT = 256, /* a power of 2 */
	YIELD_NO_REGISTER = 0xff,
	/* Ignored where it is not handled, never queued, and programs that do handle it expect it
	 * at any time. */
	YIELD_SIGNAL = SIGURG,
};

/* displacement + base + index * scale, registers by number (rax, rcx, rdx, rbx, rsp, ...) */
struct yield_word {
	uint64_t displacement;
	uint8_t base, index, scale, size_bytes; /* 1 to 8 */
	uint32_t unused;
};
struct yield_loop {
	uint64_t begins, branch; /* code addresses, both in the loop */
	uint64_t nr_words;       /* that it polls; 0: not all are known */
	/* by the library: what threads in it gave away; slept until a word changed, or in vain */
	uint64_t yielded_ns, slept_ns, vain_ns;
	struct yield_word word[YIELD_WORDS_MAX];
};
struct yield_recent {
	uint64_t pc;
	uint64_t tid;
};
struct yield_shared {
	uint32_t magic, size_bytes;
	/* by the library */
	uint32_t pid;                     /* the first process that loaded it; others do nothing */
	uint32_t images;                  /* that this process was: it may exec */
	uint64_t nr_samples, nr_spinning; /* signals; of them, met in a loop */
	uint64_t nr_recent; /* others, written to recent[] one after the other, and round */
	struct yield_recent recent[YIELD_RECENT];
	uint64_t nr_yields, nr_sleeps, nr_changed, slept_ns, yielded_ns;
	/* by longpole */
	uint64_t sleep_ns; /* at most, until a word has changed; 0: yield instead */
	uint32_t nr_loops; /* the last that is written */
	uint32_t unused;
	struct yield_loop loop[YIELD_LOOPS_MAX];
};

#endif
