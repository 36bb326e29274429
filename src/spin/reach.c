/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c - could another process write the word on which a thread spins? */
#include "spin/reach.h"

#include "os/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4352 };

/* The first region of a thread's process that lies at the address or, with `like`, is of the same
 * file as it. 1: found, 0: none, -1: not to be read. */
static int reach_find(
	pid_t pid, pid_t tid, uint64_t address, const struct os_region *like, struct os_region *ret)
{
	char path[64], line[LINE_BYTES];
	bool is_found = false, is_any = false;
	snprintf(path, sizeof path, "/proc/%d/task/%d/maps", (int)pid, (int)tid);
	FILE *f = fopen(path, "re");
	if (!f)
		return errno == ENOENT || errno == ESRCH ? 0 : -1;
	while (!is_found && fgets(line, sizeof line, f)) {
		static const char nameless[] = "/dev/zero (deleted)\n";
		const char *at = line;
		if (!os_parse_region(&at, ret))
			continue;
		is_any = true;
		is_found = like ? ret->shared && ret->device == like->device &&
					   ret->inode == like->inode
				: address >= ret->start && address < ret->end;
		/* all that is asked of the path; the text is gone when we return */
		ret->path = !strncmp(ret->path, nameless, sizeof nameless - 1) ? "" : "named";
	}
	const bool is_refused = !is_any && ferror(f) && errno != ESRCH;
	fclose(f);
	return is_refused ? -1 : is_found;
}

/* Of a process whose first thread has ended, another thread tells. */
static int reach_has(pid_t pid, const struct os_region *memory)
{
	pid_t tid[8];
	struct os_region unused;
	int result = 0;
	const size_t nr = os_list_tasks(pid, tid, sizeof tid / sizeof *tid);
	for (size_t i = 0; !result && i < nr; i++)
		result = reach_find(pid, tid[i], 0, memory, &unused);
	return result;
}

/* Why another process than `pid` could write it; NULL: none has it. */
static const char *reach_of_others(pid_t pid, const struct os_region *memory)
{
	static const char *const why[] = {
		"a thread spins on shared memory, and not all processes may be looked into", NULL,
		"a thread spins on memory that another process shares, and may write"};
	DIR *dir = opendir("/proc");
	int worst = dir ? 0 : -1;
	for (const struct dirent *e; dir && worst <= 0 && (e = readdir(dir));) {
		char *end;
		const long other = strtol(e->d_name, &end, 10);
		const bool is_process = !*end && other > 0 && other <= INT32_MAX && other != pid;
		const int has = is_process ? reach_has((pid_t)other, memory) : 0;
		worst = has ? has : worst;
	}
	if (dir)
		closedir(dir);
	return why[worst + 1];
}

const char *spin_reach_of_others(pid_t pid, pid_t tid, uint64_t address)
{
	struct os_region at;
	if (reach_find(pid, tid, address, NULL, &at) <= 0)
		return "it is not known in which memory a thread spins";
	if (!at.shared)
		return NULL;
	/* a file, a segment with a number: whoever knows its name may come and write */
	return *at.path ? "a thread spins on memory that another process may open and write"
			: reach_of_others(pid, &at);
}
