/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next.c - loaded before others: what preload_next_function() finds is what dlsym(RTLD_NEXT) finds,
 * for all functions that are wrapped and some that are special. Says where it is not, and how many
 * were compared ($NEXT_SAYS names the file).
 */
#include "preload/next.c" // NOLINT(bugprone-suspicious-include)
#include "preload/real.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {
#define REAL(result, name, parameters) #name,
#include "preload/real.def"
	/* chosen when the program starts, data, of two versions, of another library, of nobody */
	"gettimeofday", "memcpy", "strlen", "environ", "memcpy", "pthread_mutex_lock", "fmemopen",
	"malloc", "free", "_ZdlPv", "sqrt", "deflate", "", "no_such_function_at_all"};

__attribute__((constructor)) static void compare(void)
{
	const char *path = getenv("NEXT_SAYS");
	unsigned nr = 0;
	if (!path)
		return;
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *next = dlsym(RTLD_NEXT, names[i]), *ours = preload_next_function(names[i]);
		bool is_data = strcmp(names[i], "environ") == 0;
		nr += next != NULL;
		if (next != ours && !(is_data && !ours))
			dprintf(fd, "%s: %s is at %p, not %p\n", program_invocation_short_name,
				names[i], next, ours);
	}
	dprintf(fd, "%s: %u\n", program_invocation_short_name, nr);
	close(fd);
}
