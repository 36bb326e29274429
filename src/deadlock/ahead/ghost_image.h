/* SPDX-License-Identifier: Apache-2.0 */
/* ghost_image.h - the program that a ghost starts as: one page, static, without a C library. */
#ifndef LONGPOLE_DEADLOCK_GHOST_IMAGE_H
#define LONGPOLE_DEADLOCK_GHOST_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* Lowest address that processes may map by default: next to none has anything there. */
#define DEADLOCK_IMAGE_ADDRESS 0x10000u

enum { DEADLOCK_IMAGE_BYTES = 4096 };

struct deadlock_image {
	uint8_t bytes[DEADLOCK_IMAGE_BYTES]; /* an ELF executable */
	uint64_t ready; /* rip at the trap (SIGTRAP) that says that the filter is on, result in rax
			 */
	uint64_t call, called; /* a `syscall` instruction, and rip at the trap behind it */
};

void deadlock_image_make(struct deadlock_image *ret);

#endif
