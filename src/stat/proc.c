/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - a thread's accounts, as /proc writes them. */
#include "stat/stat.h"
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 8192 };

/* Numbers separated by blanks; those that are none count as zero ("18446744073709551615" fits). */
static size_t numbers(const char *text, uint64_t *ret, size_t max)
{
	size_t nr = 0;
	while (nr < max) {
		char *end;
		text += strspn(text, " \t");
		if (!*text || *text == '\n')
			break;
		ret[nr++] = strtoull(text, &end, 10);
		text = end + strcspn(end, " \t\n");
	}
	return nr;
}

bool stat_parse_stat(const char *text, struct stat_counts *ret, char *comm)
{
	struct os_task_stat stat;
	if (!os_parse_stat(text, &stat))
		return false;
	memcpy(comm, stat.name, STAT_COMM);
	ret->minor_faults = stat.minor_faults;
	ret->major_faults = stat.major_faults;
	ret->user_ticks = stat.user_ticks;
	ret->kernel_ticks = stat.kernel_ticks;
	return true;
}

bool stat_parse_schedstat(const char *text, struct stat_counts *ret)
{
	uint64_t field[2];
	if (numbers(text, field, 2) != 2)
		return false;
	ret->task_ns = field[0];
	ret->runqueue_ns = field[1];
	return true;
}

static bool proc_after(const char *text, const char *key, char separator, uint64_t *ret)
{
	size_t length = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) != 0)
			continue;
		const char *value = line + length + strspn(line + length, " \t");
		if (*value != separator)
			continue;
		return numbers(value + 1, ret, 1) == 1;
	}
	return false;
}

bool stat_parse_status(const char *text, struct stat_counts *ret)
{
	(void)proc_after(text, "VmHWM", ':', &ret->peak_kb); /* a zombie has none */
	return proc_after(text, "voluntary_ctxt_switches", ':', &ret->voluntary) &&
	       proc_after(text, "nonvoluntary_ctxt_switches", ':', &ret->forced);
}

bool stat_parse_sched(const char *text, uint64_t *ret_migrations)
{
	return proc_after(text, "se.nr_migrations", ':', ret_migrations);
}

static bool stat_text(const struct stat_thread *t, const char *name, char text[TEXT_MAX])
{
	return os_proc_read_task(t->pid, t->tid, name, text, TEXT_MAX) > 0;
}

bool stat_read(struct stat_thread *t, struct stat_counts *ret)
{
	char text[TEXT_MAX];
	if (!stat_text(t, "stat", text) || !stat_parse_stat(text, ret, t->comm))
		return false;
	if (!stat_text(t, "schedstat", text) || !stat_parse_schedstat(text, ret))
		return false;
	if (!stat_text(t, "status", text) || !stat_parse_status(text, ret))
		return false;
	t->has_migrations = stat_text(t, "sched", text) && stat_parse_sched(text, &ret->migrations);
	return true;
}
