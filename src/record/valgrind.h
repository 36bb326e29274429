/* SPDX-License-Identifier: Apache-2.0 */
/* valgrind.h - what running a program under our tool for Valgrind (valgrind/) needs. */
#ifndef LONGPOLE_RECORD_VALGRIND_H
#define LONGPOLE_RECORD_VALGRIND_H

#include "base/base.h"
#include "record/links.h"

#include <limits.h>

/* NULL: it can be run; else the reason why not. */
const char *record_valgrind_why_not(void);
/* Makes a directory with the tool and Valgrind's own files, as its launcher wants them in
 * $VALGRIND_LIB. */
enum base_status record_valgrind_directory(
	struct record_links *dir, struct base_err *err) BASE_MUST_CHECK;
/* What runs `argv` so that it writes its memory streams into a recorder's shared memory
 * (memory_ring.h). */
struct record_valgrind {
	struct record_links dir;
	char program[PATH_MAX], ring_option[PATH_MAX + 16];
	char **argv; /* NULL-terminated; NULL: nothing is ready */
};
enum base_status record_valgrind_ready(struct record_valgrind *v, const char *ring_path,
	char *const *argv, struct base_err *err) BASE_MUST_CHECK;
void record_valgrind_done(struct record_valgrind *v);

#endif
