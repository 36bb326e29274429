/* SPDX-License-Identifier: Apache-2.0 */
/* affinity.c - which processors a thread may run on: what cpusets and its own mask leave.
 */
#include "record/affinity.h"
#include "os/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

size_t record_affinity_of(uint32_t pid, uint32_t tid, char ret[RING_AFFINITY_MAX])
{
	static const char key[] = "\nCpus_allowed_list:\t";
	char text[8192];
	(void)os_proc_read_task((pid_t)pid, (pid_t)tid, "status", text, sizeof text);
	const char *at = strstr(text, key), *end = at ? strchr(at + 1, '\n') : NULL;
	if (!end)
		return 0;
	at += sizeof key - 1;
	size_t bytes = (size_t)(end - at);
	if (bytes > RING_AFFINITY_MAX)
		return 0;
	memcpy(ret, at, bytes);
	return bytes;
}

size_t record_affinity_bytes(void)
{
	uint64_t mask[RING_AFFINITY_MAX / sizeof(uint64_t)];
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
	return bytes > 0 ? (size_t)bytes : 0;
}
