/* SPDX-License-Identifier: Apache-2.0 */
/* System calls by number: results, errno, six arguments, a fork; and futexes of the program's own:
 * one woken, one whose word has changed, one that runs out of time. expect: cond_wait 3; expect:
 * cond_wake 3; expect: cond_broadcast 1 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint32_t word;

static void say(const char *what, long result)
{
	printf("%s: %ld, errno %d\n", what, result, errno);
	errno = 0;
}

/* Until it sleeps nobody is woken, and the kernel says so. */
static void *waker(void *unused)
{
	while (syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1) == 0)
		usleep(1000);
	return unused;
}

int main(void)
{
	errno = 0;
	say("own", syscall(SYS_getpid) == getpid());
	say("close", syscall(SYS_close, -1));
	say("no such call", syscall(100000));
	char *page = (char *)syscall(
		SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	strcpy(page, "six arguments");
	printf("%s\n", page);
	fflush(stdout);
	long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!child)
		_exit(7);
	int status = 0;
	waitpid((pid_t)child, &status, 0);
	say("child", WEXITSTATUS(status));

	pthread_t thread;
	pthread_create(&thread, NULL, waker, NULL);
	say("woken", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL));
	pthread_join(thread, NULL);
	word = 1;
	say("changed", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL));
	struct timespec soon = {.tv_nsec = 1000000};
	say("time limit", syscall(SYS_futex, &word, FUTEX_WAIT, 1, &soon));
	say("wake all", syscall(SYS_futex, &word, FUTEX_WAKE, 1000));
	say("no address", syscall(SYS_futex, 4, FUTEX_WAKE_PRIVATE | FUTEX_CLOCK_REALTIME, 1));
	say("no operation", syscall(SYS_futex, &word, 99, 1));
	return 0;
}
