/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit.h - names of code that a program made at run time, as it told perf: /tmp/perf-PID.map (lines
 * "START SIZE NAME") and jitdump (jit-PID.dump: loads and moves with their times, and lines).
 *
 * The files come from the program, or from whoever was faster: nothing in them is trusted.
 * Units: addresses as in the process; ns of the file's clock (jitdump: CLOCK_MONOTONIC).
 */
#ifndef LONGPOLE_SYMBOL_JIT_H
#define LONGPOLE_SYMBOL_JIT_H

#include "base/base.h"

#include <sys/types.h>
#include <time.h>

enum {
	SYMBOL_JIT_FILE_BYTES_MAX = 256 << 20,
	SYMBOL_JIT_STEPS_MAX = 1 << 27, /* names given to places, others' after them included */
	SYMBOL_JIT_NAME_BYTES_MAX = 4096,
};

/* One that is asked about. Texts are borrowed from the file's bytes, and not terminated. */
struct symbol_jit_place {
	uint64_t address;
	uint64_t seen_ns;     /* when it ran last; only what was loaded by then counts */
	const char *function; /* NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t function_bytes, file_bytes;
	uint64_t start, line; /* of the function; of the place */
	size_t tag;           /* the caller's */
	uint64_t loaded_ns;   /* 0: the file does not say */
};

struct symbol_jit_file {
	uint8_t *bytes;
	size_t nr_bytes;
};

/* The owner that the file must have. */
struct symbol_jit_writer {
	uid_t owner;
	time_t born_s; /* wall time; a file that was written before is of another process that had
			  the number. 0: not known */
};
/*
 * A descriptor of a regular file of that writer (or root), that is no link, and not too large; else
 * -1, and *ret_why says why (static text), NULL when there is no such file.
 */
int symbol_jit_open(
	int dir_fd, const char *path, const struct symbol_jit_writer *writer, const char **ret_why);
/* All of it, as it is now. False: no memory, or it cannot be read. */
bool symbol_jit_load(struct symbol_jit_file *f, int fd);
void symbol_jit_unload(struct symbol_jit_file *f);

/* Places are sorted by address; what has no function yet gets one, or stays. False: what the file
 * says cannot be made sense of in SYMBOL_JIT_STEPS_MAX steps, and nothing of it counts. */
bool symbol_jit_read_map(
	const struct symbol_jit_file *f, struct symbol_jit_place *place, size_t nr_places);
/* The same; false also: no jitdump of this machine's byte order. */
bool symbol_jit_read_dump(
	const struct symbol_jit_file *f, struct symbol_jit_place *place, size_t nr_places);

#endif
