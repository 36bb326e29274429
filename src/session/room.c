/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - memory of the machine and limits of control groups. */
#include "session/room.h"

#include "base/base.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first line of a file of the group; false: it has none. */
static bool line_in(const char *dir, const char *name, char text[64])
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;

	if (!f)
		return false;
	bool is_there = fgets(text, 64, f);

	fclose(f);
	return is_there;
}

/* The number in that file, UINT64_MAX: none ("max", "-1"), or no such file. */
static uint64_t limit_in(const char *dir, const char *name)
{
	char text[64];
	bool number = line_in(dir, name, text) && text[0] >= '0' && text[0] <= '9';

	return number ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* ---- control groups: a limit of one, and the least of those that it is in -------------------- */

struct limits {
	const char *root;
	uint64_t bytes; /* UINT64_MAX: none */
	struct session_quota quota;
};

static void limit_bytes(struct limits *l, const char *dir, bool unified)
{
	uint64_t bytes = limit_in(dir, unified ? "memory.max" : "memory.limit_in_bytes");

	l->bytes = bytes < l->bytes ? bytes : l->bytes;
}

static void limit_quota(struct limits *l, const char *dir, bool unified)
{
	enum { NS_PER_US = 1000 };
	const uint64_t most_us = UINT64_MAX / NS_PER_US / 4;
	unsigned long long quota_us = UINT64_MAX, period_us = 0;
	char text[64];

	if (!unified) {
		quota_us = limit_in(dir, "cpu.cfs_quota_us");
		period_us = limit_in(dir, "cpu.cfs_period_us");
	} else if (!line_in(dir, "cpu.max", text) ||
		   sscanf(text, "%llu %llu", &quota_us, &period_us) != 2) {
		return; /* (or "max 100000") */
	}
	if (!quota_us || !period_us || quota_us > most_us || period_us > most_us)
		return;
	if (l->quota.period_ns && (double)quota_us / (double)period_us >=
					  (double)l->quota.quota_ns / (double)l->quota.period_ns)
		return;
	l->quota = (struct session_quota){quota_us * NS_PER_US, period_us * NS_PER_US};
}

static const struct controller {
	const char *name, *dir; /* version 1's */
	void (*limit)(struct limits *l, const char *dir, bool unified);
} controllers[] = {{"memory", "/memory", limit_bytes}, {"cpu", "/cpu", limit_quota},
	{"cpu", "/cpu,cpuacct", limit_quota}};

static void limit_by_group(
	struct limits *l, const struct controller *c, bool unified, const char *group)
{
	char dir[PATH_MAX];
	int top = snprintf(dir, sizeof dir, "%s/sys/fs/cgroup%s", l->root, unified ? "" : c->dir);
	int n = snprintf(
		dir, sizeof dir, "%s/sys/fs/cgroup%s%s", l->root, unified ? "" : c->dir, group);

	if (n < 0 || (size_t)n >= sizeof dir)
		return;
	for (char *slash;; *slash = 0) {
		c->limit(l, dir, unified);
		slash = strrchr(dir, '/');
		if (!slash || slash - dir < top)
			return;
	}
}

static bool is_among(const char *name, const char *list)
{
	size_t length = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, name, length) && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* A line of /proc/self/cgroup: "0::/a/b", or "4:memory:/a/b" of version 1 (cgroups(7)). */
static void limit_by_line(struct limits *l, char *line)
{
	char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;

	if (!group)
		return;
	*names++ = 0;
	*group++ = 0;
	group[strcspn(group, "\n")] = 0;
	for (size_t i = 0; i < BASE_COUNT(controllers); i++)
		if (!*names || is_among(controllers[i].name, names))
			limit_by_group(l, &controllers[i], !*names, group);
}

static struct limits find_limits(const char *root)
{
	struct limits l = {.root = root, .bytes = UINT64_MAX};
	char path[PATH_MAX], line[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;

	while (f && fgets(line, sizeof line, f))
		limit_by_line(&l, line);
	if (f)
		fclose(f);
	return l;
}

uint64_t session_room_bytes(const char *root)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t machine =
		pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
	uint64_t limit = find_limits(root).bytes;

	return limit < machine ? limit : machine;
}

struct session_quota session_room_quota(const char *root)
{
	return find_limits(root).quota;
}

uint64_t session_room_buffer_bytes(uint64_t room_bytes)
{
	uint64_t bytes = room_bytes / SESSION_BUFFER_SHARE;

	if (bytes < SESSION_BUFFER_LEAST_BYTES)
		return SESSION_BUFFER_LEAST_BYTES;
	return bytes < SESSION_BUFFER_MOST_BYTES ? bytes : SESSION_BUFFER_MOST_BYTES;
}
