/* SPDX-License-Identifier: Apache-2.0 */
/* call_channel.c - pipes, pairs of sockets and eventfds are made. */
#include "target/target.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT TARGET_STUB

/* What is written to the one end is read from the other; of sockets in both directions. */
static int call_channel_made(int result, const int fd[2], bool both)
{
	int saved = errno;
	if (!result && longpole_target_attached()) {
		uint64_t to_first = longpole_target_channel_number(0);
		uint64_t to_second = both ? longpole_target_channel_number(0) : 0;
		longpole_target_channel_made(
			fd[0], &(struct target_channel){.takes = to_first, .gives = to_second});
		longpole_target_channel_made(
			fd[1], &(struct target_channel){.takes = to_second, .gives = to_first});
	}
	errno = saved;
	return result;
}

int longpole_at_pipe(int fd[2]);
AT int longpole_at_pipe(int fd[2])
{
	return call_channel_made(pipe(fd), fd, false);
}

int longpole_at_pipe2(int fd[2], int flags);
AT int longpole_at_pipe2(int fd[2], int flags)
{
	return call_channel_made(pipe2(fd, flags), fd, false);
}

int longpole_at_socketpair(int domain, int type, int protocol, int fd[2]);
AT int longpole_at_socketpair(int domain, int type, int protocol, int fd[2])
{
	return call_channel_made(socketpair(domain, type, protocol, fd), fd, true);
}

int longpole_at_eventfd(unsigned units, int flags);
AT int longpole_at_eventfd(unsigned units, int flags)
{
	int fd = eventfd(units, flags);
	int saved = errno;
	if (fd >= 0 && longpole_target_attached()) {
		uint64_t number = longpole_target_channel_number(units);
		longpole_target_channel_made(fd, &(struct target_channel){number, number, true});
	}
	errno = saved;
	return fd;
}
