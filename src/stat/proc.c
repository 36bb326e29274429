/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - a thread's accounts, as /proc writes them. */
#include "stat/stat.h"

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

/* "4711 (a (strange) name) S 1 ...": the name ends at the last parenthesis. */
bool stat_parse_stat(const char *text, struct stat_counts *ret, char *comm)
{
	enum { MINOR = 6, MAJOR = 8, USER = 10, KERNEL = 11, FIELDS = 12 }; /* after the state */
	uint64_t field[FIELDS];
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return false;
	size_t length = (size_t)(close - open - 1);
	length = length < STAT_COMM - 1 ? length : STAT_COMM - 1;
	memcpy(comm, open + 1, length);
	comm[length] = 0;
	if (numbers(close + 3, field, FIELDS) != FIELDS)
		return false;
	ret->minor_faults = field[MINOR];
	ret->major_faults = field[MAJOR];
	ret->user_ticks = field[USER];
	ret->kernel_ticks = field[KERNEL];
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

static bool after(const char *text, const char *key, char separator, uint64_t *ret)
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
	(void)after(text, "VmHWM", ':', &ret->peak_kb); /* a zombie has none */
	return after(text, "voluntary_ctxt_switches", ':', &ret->voluntary) &&
	       after(text, "nonvoluntary_ctxt_switches", ':', &ret->forced);
}

bool stat_parse_sched(const char *text, uint64_t *ret_migrations)
{
	return after(text, "se.nr_migrations", ':', ret_migrations);
}

/* The whole file, ended by zero; false: it is gone, or not readable. */
static bool read_text(const struct stat_thread *t, const char *name, char text[TEXT_MAX])
{
	char path[64];
	size_t length = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)t->pid, (int)t->tid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (length < TEXT_MAX - 1) {
		ssize_t n = read(fd, text + length, TEXT_MAX - 1 - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	close(fd);
	text[length] = 0;
	return length > 0;
}

bool stat_read(struct stat_thread *t, struct stat_counts *ret)
{
	char text[TEXT_MAX];
	if (!read_text(t, "stat", text) || !stat_parse_stat(text, ret, t->comm))
		return false;
	if (!read_text(t, "schedstat", text) || !stat_parse_schedstat(text, ret))
		return false;
	if (!read_text(t, "status", text) || !stat_parse_status(text, ret))
		return false;
	t->has_migrations = read_text(t, "sched", text) && stat_parse_sched(text, &ret->migrations);
	return true;
}
