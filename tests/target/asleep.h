/* SPDX-License-Identifier: Apache-2.0 */
/* asleep.h - waits until all threads of this process but the caller sleep: what is looked at then
 * is what it will be. */
#ifndef ASLEEP_H
#define ASLEEP_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline bool is_asleep(const char *tid)
{
	char path[288], text[512];
	snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
	FILE *file = fopen(path, "r");
	const char *behind = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
	if (file)
		fclose(file);
	return !behind || strncmp(behind, ") S", 3) == 0;
}

static inline void until_others_sleep(void)
{
	bool all = false;
	while (!all) {
		DIR *dir = opendir("/proc/self/task");
		all = true;
		usleep(1000);
		for (const struct dirent *e; dir && (e = readdir(dir));)
			all = all &&
			      (e->d_name[0] == '.' || atoi(e->d_name) == (int)syscall(SYS_gettid) ||
				      is_asleep(e->d_name));
		if (dir)
			closedir(dir);
	}
}

#endif
