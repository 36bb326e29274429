/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of descriptors that were never used: those of pipes and sockets are told, whoever made
 * them, others are not.
 * expect: io_close 17
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static char fifo[] = "/tmp/longpole-fd-ends-XXXXXX";

static void names(void) /* 4: a name may be a FIFO's */
{
	FILE *f;
	close(open(fifo, O_RDWR | O_CLOEXEC));
	fclose(fopen(fifo, "r+e"));
	f = fopen("/dev/null", "re");
	f = freopen(fifo, "r+e", f);
	fclose(f);
	int fd = open(fifo, O_RDWR | O_CLOEXEC);
	close_range((unsigned)fd, (unsigned)fd, 0);
	close(open("/dev/null", O_RDONLY | O_CLOEXEC));
	close(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	fclose(fopen("/dev/null", "re"));
	close(1000);
}

static void copies(void) /* 9: as what they are of */
{
	int end[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC), to;
	if (pipe(end))
		return;
	close(dup(end[0]));
	close(fcntl(end[1], F_DUPFD, 0));
	to = dup(file);
	dup2(end[1], to);
	close(to);
	to = open(fifo, O_RDWR | O_CLOEXEC); /* not looked at yet, */
	close(dup(to));
	if (write(to, "", 1) == 1) /* and now it is */
		close(dup(to));
	close(to);
	dup3(file, end[0], O_CLOEXEC); /* ends a pipe's */
	close(end[0]);
	close(end[1]);
	to = dup(file);
	dup2(to, 100);
	close(100);
	close(fcntl(to, F_DUPFD_CLOEXEC, 0));
	close(to);
	to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	close(to);
	close(file);
}

static void others(void) /* none */
{
	sigset_t none;
	sigemptyset(&none);
	close(eventfd(0, EFD_CLOEXEC));
	close(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	close(epoll_create1(EPOLL_CLOEXEC));
	close(memfd_create("none", MFD_CLOEXEC));
	close(signalfd(-1, &none, SFD_CLOEXEC));
}

static void behind_our_back(void) /* 4: a number that was something else */
{
	int end[2], timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	close_range((unsigned)timer, (unsigned)timer, 0);
	if (syscall(SYS_pipe2, end, O_CLOEXEC))
		return;
	close(end[0]);
	close(end[1]);
	close(open("/dev/null", O_RDONLY | O_CLOEXEC));
	if (syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, end))
		return;
	close(end[0]);
	close(end[1]);
}

int main(void)
{
	int fd = mkstemp(fifo);
	close(fd);
	unlink(fifo);
	if (mkfifo(fifo, 0600))
		return 1;
	names();
	copies();
	others();
	behind_our_back();
	unlink(fifo);
	return 0;
}
