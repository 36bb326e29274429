/* SPDX-License-Identifier: Apache-2.0 */
/* sanitizer.h - was a program built with a compiler's sanitizer? */
#ifndef LONGPOLE_OS_SANITIZER_H
#define LONGPOLE_OS_SANITIZER_H

#include <stdbool.h>

struct os_sanitizer {
	const char *name; /* as users call it */
	bool no_ptrace;   /* it looks for leaks at the end, and gives up under a tracer */
};

/* By the names that the file, or of a script its interpreter, shows the loader. NULL: by none, or
 * it cannot be read. */
const struct os_sanitizer *os_sanitizer_of(const char *path);

#endif
