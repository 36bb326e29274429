/* SPDX-License-Identifier: Apache-2.0 */
/* bus.c - the one signal handler of the recorder. It needs to know nothing: the rest of a mapping
 * whose file has become too short becomes zeros, which is "nothing was written here" to all that is
 * read so (rings, tables, ELF files). */
#include "os/bus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, READ_BYTES = 1024 };

/* Reads "start-end perms ..." lines. */
struct maps {
	int fd;
	char bytes[READ_BYTES];
	ssize_t nr, at;
};

/* -1: no more. */
static int maps_next(struct maps *m)
{
	if (m->at >= m->nr) {
		m->nr = read(m->fd, m->bytes, sizeof m->bytes);
		m->at = 0;
	}
	return m->at < m->nr ? m->bytes[m->at++] : -1;
}

/* A hexadecimal number and what stands behind it. */
static int maps_number(struct maps *m, uintptr_t *ret)
{
	int c;
	*ret = 0;
	while ((c = maps_next(m)) >= 0) {
		if (c >= '0' && c <= '9')
			*ret = *ret << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*ret = *ret << 4 | (uintptr_t)(c - 'a' + 10);
		else
			break;
	}
	return c;
}

/* Where the mapping ends that has this address; 0: not known. */
static uintptr_t bus_mapping_end(uintptr_t address)
{
	struct maps m = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	uintptr_t start, end, found = 0;
	if (m.fd < 0)
		return 0;
	for (int c = 0; c >= 0 && !found;) {
		if (maps_number(&m, &start) == '-' && maps_number(&m, &end) == ' ' &&
			start <= address && address < end)
			found = end;
		while ((c = maps_next(&m)) >= 0 && c != '\n')
			continue;
	}
	close(m.fd);
	return found;
}

static void bus_error(int signal, siginfo_t *info, void *context)
{
	const int saved = errno;
	uintptr_t page = (uintptr_t)info->si_addr / PAGE_BYTES * PAGE_BYTES;
	uintptr_t end = info->si_code == BUS_ADRERR ? bus_mapping_end(page) : 0;
	(void)context;
	if (!end || mmap((void *)page, end - page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
			    0) == MAP_FAILED)
		sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); /* again */
	errno = saved;
}

void os_bus_guard(struct sigaction *ret_before)
{
	struct sigaction guard = {.sa_sigaction = bus_error, .sa_flags = SA_SIGINFO};
	sigaction(SIGBUS, &guard, ret_before);
}
