/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - calls about the names of files, and directories: they wait for a disk when the
 * kernel does not know the name yet. Most take a microsecond: only those that lasted are recorded.
 */
#include "preload/preload.h"
#include "preload/env.h"
#include "preload/real.h"

#include <sys/stat.h>
#include <unistd.h>

/* PATH: name, op, result type, whether a result is good, parameters, arguments. */
#define PATH(name, op, result_type, is_good, parameters, arguments)                                \
	PRELOAD_EXPORT result_type name parameters                                                 \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		uint64_t begin_tsc = preload_now();                                                \
		result_type result = PRELOAD_REAL(name) arguments;                                 \
		preload_io_lasted(TRACE_IO_##op, PRELOAD_SITE, begin_tsc, (is_good) ? 0 : -1);     \
		return result;                                                                     \
	}

PATH(opendir, open, DIR *, result != NULL, (const char *path), (path))
PATH(readdir, look, struct dirent *, true, (DIR * of), (of))
PRELOAD_ALIAS(readdir64, readdir)
PATH(stat, look, int, result == 0, (const char *path, struct stat *to), (path, to))
PRELOAD_ALIAS(stat64, stat)
PATH(lstat, look, int, result == 0, (const char *path, struct stat *to), (path, to))
PRELOAD_ALIAS(lstat64, lstat)
PATH(fstatat, look, int, result == 0, (int at, const char *path, struct stat *to, int flags),
	(at, path, to, flags))
PRELOAD_ALIAS(fstatat64, fstatat)
PATH(statx, look, int, result == 0,
	(int at, const char *path, int flags, unsigned mask, struct statx *to),
	(at, path, flags, mask, to))
PATH(access, look, int, result == 0, (const char *path, int mode), (path, mode))
PATH(faccessat, look, int, result == 0, (int at, const char *path, int mode, int flags),
	(at, path, mode, flags))
PATH(readlink, look, ssize_t, result >= 0, (const char *path, char *to, size_t n), (path, to, n))
PATH(readlinkat, look, ssize_t, result >= 0, (int at, const char *path, char *to, size_t n),
	(at, path, to, n))
PATH(chdir, look, int, result == 0, (const char *path), (path))
