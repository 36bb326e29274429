/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - cmocka, with what it wants before it; files of a test's own; allocations that fail. */
#ifndef LONGPOLE_TESTS_TEST_H
#define LONGPOLE_TESTS_TEST_H

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- files, which whoever asks for one removes ----------------------------------------------- */

enum { TEMPORARY_PATH = 64 };

static inline void temporary_name(char path[TEMPORARY_PATH])
{
	const char *dir = getenv("TMPDIR");
	int n = snprintf(path, TEMPORARY_PATH, "%s/longpole-test-XXXXXX", dir ? dir : "/tmp");
	if (n >= TEMPORARY_PATH)
		snprintf(path, TEMPORARY_PATH, "/tmp/longpole-test-XXXXXX");
}

static inline void temporary_file(char path[TEMPORARY_PATH], const void *bytes, size_t nr_bytes)
{
	temporary_name(path);
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_true(!nr_bytes || write(fd, bytes, nr_bytes) == (ssize_t)nr_bytes);
	close(fd);
}

static inline void temporary_directory(char path[TEMPORARY_PATH])
{
	temporary_name(path);
	assert_non_null(mkdtemp(path));
}

/* ---- memory that is refused ------------------------------------------------------------------ */

enum { SWEEP_MAX = 20000 };

/* The status that an expression is worth when its n-th allocation fails: there was memory, or it
 * says that there was none. */
#define WITHOUT_NTH(n, ...)                                                                        \
	({                                                                                         \
		base_alloc_fail_nth(n);                                                            \
		enum base_status without_nth = (__VA_ARGS__);                                      \
		base_alloc_fail_nth(0);                                                            \
		assert_true(without_nth == BASE_OK || without_nth == BASE_ERR_NOMEM);              \
		without_nth;                                                                       \
	})

/* Its first allocation fails, then its second, ..., until it succeeds. What a failure leaves is the
 * expression's to free. A sweep that hits nothing proves nothing: so many have to fail. */
#define SWEEP_ALLOCATIONS(nr_failures_min, ...)                                                    \
	do {                                                                                       \
		uint64_t sweep_nth = 1;                                                            \
		while (WITHOUT_NTH(sweep_nth, __VA_ARGS__) != BASE_OK)                             \
			assert_true(++sweep_nth < SWEEP_MAX);                                      \
		assert_true(sweep_nth > (nr_failures_min));                                        \
	} while (0)

/* The same of what may do without some of them: until none fails any more. Whatever it makes is the
 * expression's to free, after a success, too. */
#define SWEEP_ALL_ALLOCATIONS(nr_failures_min, ...)                                                \
	do {                                                                                       \
		uint64_t sweep_nth = 0, sweep_left;                                                \
		do {                                                                               \
			assert_true(++sweep_nth < SWEEP_MAX);                                      \
			(void)base_alloc_fail_nth(sweep_nth);                                      \
			enum base_status sweep_status = (__VA_ARGS__);                             \
			sweep_left = base_alloc_fail_nth(0);                                       \
			assert_true(sweep_status == BASE_OK ||                                     \
				    (!sweep_left && sweep_status == BASE_ERR_NOMEM));              \
		} while (!sweep_left);                                                             \
		assert_true(sweep_nth > (nr_failures_min));                                        \
	} while (0)

#endif
