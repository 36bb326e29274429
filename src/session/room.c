/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - memory of the machine and limits of control groups. */
#include "session/room.h"

#include "base/base.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number in that file, UINT64_MAX: none ("max"), or no such file. */
static uint64_t limit_in(const char *dir, const char *name)
{
	char path[PATH_MAX], text[32] = "";
	int n = snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;

	if (!f)
		return UINT64_MAX;
	bool number = fgets(text, sizeof text, f) && text[0] >= '0' && text[0] <= '9';

	fclose(f);
	return number ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* The least limit of the group and of those that it is in. */
static uint64_t limit_of_group(const char *mount, const char *group, const char *name)
{
	char dir[PATH_MAX];
	uint64_t least = UINT64_MAX;
	int n = snprintf(dir, sizeof dir, "%s%s", mount, group);

	if (n < 0 || (size_t)n >= sizeof dir)
		return UINT64_MAX;
	for (size_t top = strlen(mount);;) {
		uint64_t bytes = limit_in(dir, name);
		char *slash = strrchr(dir, '/');

		least = bytes < least ? bytes : least;
		if (!slash || (size_t)(slash - dir) < top)
			return least;
		*slash = 0;
	}
}

/* A line of /proc/self/cgroup: "0::/a/b", or "4:memory:/a/b" of version 1 (cgroups(7)). */
static uint64_t limit_of_line(const char *root, char *line)
{
	char mount[PATH_MAX], *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!group)
		return UINT64_MAX;
	*controllers++ = 0;
	*group++ = 0;
	group[strcspn(group, "\n")] = 0;
	bool unified = !*controllers, memory = !strcmp(controllers, "memory");
	int n = snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, unified ? "" : "/memory");

	if ((!unified && !memory) || n < 0 || (size_t)n >= sizeof mount)
		return UINT64_MAX;
	return limit_of_group(mount, group, unified ? "memory.max" : "memory.limit_in_bytes");
}

uint64_t session_room_bytes(const char *root)
{
	char path[PATH_MAX], line[PATH_MAX];
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t room =
		pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
	int n = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;

	while (f && fgets(line, sizeof line, f)) {
		uint64_t bytes = limit_of_line(root, line);

		room = bytes < room ? bytes : room;
	}
	if (f)
		fclose(f);
	return room;
}

uint64_t session_room_buffer_bytes(uint64_t room_bytes)
{
	uint64_t bytes = room_bytes / SESSION_BUFFER_SHARE;

	if (bytes < SESSION_BUFFER_LEAST_BYTES)
		return SESSION_BUFFER_LEAST_BYTES;
	return bytes < SESSION_BUFFER_MOST_BYTES ? bytes : SESSION_BUFFER_MOST_BYTES;
}
