/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - calls of the kernel about names of files: they wait for disks as others do. */
#include "preload/preload.h"
#include "preload/real.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Recorded when the call has succeeded: then the kernel has read the name, so that we may. (Some
 * errors come before that, and a caller that provokes one may pass anything.) */
static void record_named(
	unsigned op, const char *path, uint64_t site, uint64_t begin_tsc, int result)
{
	if (result == 0)
		preload_io_past(op, preload_path_object(path), 0, site, begin_tsc, result);
}

/* NAMED: name, op, parameters (`path` among them), arguments. */
#define NAMED(name, op, parameters, arguments)                                                     \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		uint64_t begin_tsc = preload_now();                                                \
		int result = PRELOAD_REAL(name) arguments;                                         \
		record_named(TRACE_IO_##op, path, PRELOAD_SITE, begin_tsc, result);                \
		return result;                                                                     \
	}

NAMED(unlink, unlink, (const char *path), (path))
NAMED(unlinkat, unlink, (int at, const char *path, int flags), (at, path, flags))
NAMED(remove, unlink, (const char *path), (path))
NAMED(rmdir, unlink, (const char *path), (path))
NAMED(rename, rename, (const char *path, const char *to), (path, to))
NAMED(renameat, rename, (int at, const char *path, int to_at, const char *to),
	(at, path, to_at, to))
NAMED(renameat2, rename, (int at, const char *path, int to_at, const char *to, unsigned flags),
	(at, path, to_at, to, flags))
NAMED(mkdir, mkdir, (const char *path, mode_t mode), (path, mode))
NAMED(mkdirat, mkdir, (int at, const char *path, mode_t mode), (at, path, mode))
NAMED(truncate, truncate, (const char *path, off_t n), (path, n))

PRELOAD_ALIAS(truncate64, truncate)
