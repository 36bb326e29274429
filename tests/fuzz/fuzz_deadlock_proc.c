/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_deadlock_proc.c - the first byte chooses a parser of /proc, of sock_diag, of a core's notes
 * or of Python's lines, the rest is its text. */
#include "deadlock/facts/core.h"
#include "deadlock/facts/peers.h"
#include "deadlock/private.h"
#include "runtime/python/layout.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_text(uint8_t which, const char *text)
{
	struct os_task_stat stat;
	struct deadlock_syscall call;
	struct deadlock_status status;
	struct os_region region;
	struct deadlock_file_lock lock;
	struct deadlock_epoll_item item;
	uint64_t n;
	switch (which % 7) {
	case 0:
		if (os_parse_stat(text, &stat) && strlen(stat.name) >= sizeof stat.name)
			__builtin_trap();
		break;
	case 1:
		(void)deadlock_parse_syscall(text, &call);
		break;
	case 2:
		(void)deadlock_parse_status(text, &status);
		break;
	case 3:
		while (os_parse_region(&text, &region)) {
			if (region.end <= region.start || strlen(region.path) < region.path_length)
				__builtin_trap();
		}
		break;
	case 4:
		while (deadlock_parse_file_lock(&text, &lock))
			;
		break;
	case 5:
		while (deadlock_parse_epoll(&text, &item))
			;
		break;
	default:
		(void)deadlock_parse_schedstat(text, &n);
		(void)os_parse_field(text, "flags", 8, &n);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct deadlock_peers peers = {0};
	struct base_map ends = {0};
	char *text = base_alloc(size + 1);
	if (!size || !text) {
		base_free(text);
		return 0;
	}
	memcpy(text, data + 1, size - 1);
	struct deadlock_wait thread;
	if (*data == 'C')
		(void)deadlock_core_parse_thread(text, size - 1, &thread);
	else if (*data == 'L')
		(void)python_line((const uint8_t *)text, size - 1, 1, 100);
	else if (*data == 'P')
		(void)deadlock_peers_parse(&peers, &ends, text, size - 1);
	else
		parse_text(*data, text);
	deadlock_peers_fini(&peers);
	base_map_fini(&ends);
	base_free(text);
	return 0;
}
