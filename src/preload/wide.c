/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.c - calls that may wait for long and are about no descriptor: writing back what lies
 * in memory, and names of hosts, of which a server far away may be asked.
 */
#include "preload/preload.h"
#include "preload/real.h"

#include <sys/mman.h>
#include <unistd.h>

/* WIDE: name, op, result type, whether a result is good, parameters, arguments. */
#define WIDE(name, op, result_type, is_good, parameters, arguments)                                \
	PRELOAD_EXPORT result_type name parameters                                                 \
	{                                                                                          \
		if (!preload_active())                                                             \
			return PRELOAD_REAL(name) arguments;                                       \
		struct preload_io io;                                                              \
		preload_io_begin_on(&io, TRACE_IO_##op, 0, 0, PRELOAD_SITE);                       \
		result_type result = PRELOAD_REAL(name) arguments;                                 \
		preload_io_end(&io, (is_good) ? 0 : -1);                                           \
		return result;                                                                     \
	}

WIDE(msync, msync, int, result == 0, (void *at, size_t n, int flags), (at, n, flags))

PRELOAD_EXPORT void sync(void)
{
	if (!preload_active()) {
		PRELOAD_REAL(sync)();
		return;
	}
	struct preload_io io;
	preload_io_begin_on(&io, TRACE_IO_sync_all, 0, 0, PRELOAD_SITE);
	PRELOAD_REAL(sync)();
	preload_io_end(&io, 0);
}

WIDE(getaddrinfo, resolve, int, result == 0,
	(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **to),
	(host, service, hints, to))
WIDE(getnameinfo, resolve, int, result == 0,
	(const struct sockaddr *address, socklen_t length, char *host, socklen_t nr_host,
		char *service, socklen_t nr_service, int flags),
	(address, length, host, nr_host, service, nr_service, flags))
WIDE(gethostbyname, resolve, struct hostent *, result != NULL, (const char *name), (name))
WIDE(gethostbyname2, resolve, struct hostent *, result != NULL, (const char *name, int family),
	(name, family))
WIDE(gethostbyaddr, resolve, struct hostent *, result != NULL,
	(const void *address, socklen_t length, int family), (address, length, family))
WIDE(gethostbyname_r, resolve, int, result == 0,
	(const char *name, struct hostent *to, char *buffer, size_t n, struct hostent **found,
		int *error),
	(name, to, buffer, n, found, error))
WIDE(gethostbyname2_r, resolve, int, result == 0,
	(const char *name, int family, struct hostent *to, char *buffer, size_t n,
		struct hostent **found, int *error),
	(name, family, to, buffer, n, found, error))
WIDE(gethostbyaddr_r, resolve, int, result == 0,
	(const void *address, socklen_t length, int family, struct hostent *to, char *buffer,
		size_t n, struct hostent **found, int *error),
	(address, length, family, to, buffer, n, found, error))
