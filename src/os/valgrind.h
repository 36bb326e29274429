/* SPDX-License-Identifier: Apache-2.0 */
/* valgrind.h - what running a program under our tool for Valgrind (valgrind/) needs. */
#ifndef LONGPOLE_OS_VALGRIND_H
#define LONGPOLE_OS_VALGRIND_H

#include "base/base.h"
#include "os/links.h"

#include <limits.h>

/* NULL: it can be run; else the reason why not. */
const char *os_valgrind_why_not(void);
/* Makes a directory with the tool and Valgrind's own files, as its launcher wants them in
 * $VALGRIND_LIB. */
enum base_status os_valgrind_directory(struct os_links *dir, struct base_err *err) BASE_MUST_CHECK;
/* What runs `argv` so that it writes its memory streams into a recorder's shared memory
 * (ring/memory_ring.h). */
struct os_valgrind {
	struct os_links dir;
	char program[PATH_MAX], ring_option[PATH_MAX + 16];
	char **argv; /* NULL-terminated; NULL: nothing is ready */
};
enum base_status os_valgrind_ready(struct os_valgrind *v, const char *ring_path, char *const *argv,
	struct base_err *err) BASE_MUST_CHECK;
void os_valgrind_done(struct os_valgrind *v);

#endif
