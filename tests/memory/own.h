/* SPDX-License-Identifier: Apache-2.0 */
/* own.h - which instructions of a file that `longpole cc` built are the program's own, not the
 * recording code's: read from the tables in it. */
#ifndef LONGPOLE_TESTS_MEMORY_OWN_H
#define LONGPOLE_TESTS_MEMORY_OWN_H

#include "memory/stream/stream.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

struct own {
	const uint8_t *file;
	const char *name; /* without directories */
	uint8_t *bytes;   /* one for each byte of the lowest .. highest own instruction: 1 where one
			     begins */
	uint64_t low, high;
};
bool own_read(struct own *o, const char *path);
bool own_has(const struct own *o, uint64_t linked);
const Elf64_Shdr *own_section(const struct own *o, const char *name); /* NULL: none */

#endif
