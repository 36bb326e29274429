/* SPDX-License-Identifier: Apache-2.0 */
/* installed.c - where the files lie that come with longpole. */
#include "base/installed.h"

#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From the root of a build tree to the programs in it, at most: tests/unit/test_base. */
enum { BUILD_DEPTH_MAX = 4 };

static bool installed_is_file(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, R_OK);
}

__attribute__((format(printf, 2, 3))) static bool installed_look(
	char ret[PATH_MAX], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(ret, PATH_MAX, format, args);
	va_end(args);
	return length > 0 && length < PATH_MAX && installed_is_file(ret);
}

bool base_installed_file(const char *in_build, const char *installed, char ret[PATH_MAX])
{
	char directory[PATH_MAX], ninja[PATH_MAX];
	const char *slash = strrchr(installed, '/'), *name = slash ? slash + 1 : installed;
	ssize_t n = readlink("/proc/self/exe", directory, sizeof directory - 1);
	directory[n > 0 ? n : 0] = 0;
	char *end = strrchr(directory, '/');
	if (end) {
		*end = 0;
		if (installed_look(ret, "%s/../lib/longpole/%s", directory, installed))
			return true;
	}
	for (int depth = 0; end && depth < BUILD_DEPTH_MAX; depth++) {
		if (installed_look(ninja, "%s/build.ninja", directory) &&
			installed_look(ret, "%s/%s/%s", directory, in_build, name))
			return true;
		end = strrchr(directory, '/');
		if (end)
			*end = 0;
	}
	return installed_look(ret, "%s/%s", LONGPOLE_LIBDIR, installed);
}
