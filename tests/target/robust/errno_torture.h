/* SPDX-License-Identifier: Apache-2.0 */
/* What the errno torture programs share: a call is shown with its result and the errno it left. */
#ifndef ERRNO_TORTURE_H
#define ERRNO_TORTURE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

enum { SENTINEL = 4711 };

/* A pointer that is none: the kernel says EFAULT. */
#define BAD ((void *)1)

static inline void show(const char *call, long result, int error)
{
	printf("%s: %ld %d\n", call, result, error);
}

/* For results that are the same in every run. */
#define SHOW(call)                                                                                 \
	do {                                                                                       \
		errno = SENTINEL;                                                                  \
		long result_ = (long)(call);                                                       \
		int error_ = errno;                                                                \
		show(#call, result_, error_);                                                      \
	} while (0)

/* For process ids, pointers: only whether it failed. */
#define SHOW_SIGN(call)                                                                            \
	do {                                                                                       \
		errno = SENTINEL;                                                                  \
		intptr_t result_ = (intptr_t)(call);                                               \
		int error_ = errno;                                                                \
		show(#call, (result_ > 0) - (result_ < 0), error_);                                \
	} while (0)

#endif
