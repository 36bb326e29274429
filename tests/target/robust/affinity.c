/* SPDX-License-Identifier: Apache-2.0 */
/* affinity.c - masks of processors: at the end of a page and said to be longer than they are, none
 * at all, of nobody; errno stays. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *nothing(void *unused)
{
	return unused;
}

static void show(const char *what, long result)
{
	printf("%s: %ld, errno %d\n", what, result, errno);
	errno = 77;
}

int main(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *two =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cpu_set_t all, none;
	pthread_attr_t attr;
	pthread_t thread;
	if (two == MAP_FAILED || mprotect(two + page, page, PROT_NONE))
		return 1;
	sched_getaffinity(0, sizeof all, &all);
	CPU_ZERO(&none);
	cpu_set_t *short_mask = (cpu_set_t *)(void *)(two + page - 8);
	memcpy(short_mask, &all, 8);
	errno = 77;
	show("long", sched_setaffinity(0, sizeof all, short_mask));
	show("longer", syscall(SYS_sched_setaffinity, 0, page, short_mask));
	show("no mask", sched_setaffinity(0, sizeof all, (cpu_set_t *)(void *)(two + page)));
	show("no processor", sched_setaffinity(0, sizeof none, &none));
	show("nobody", sched_setaffinity(0x3ffffff0, sizeof all, &all));
	show("no bytes", sched_setaffinity(0, 0, &all));
	show("all", sched_setaffinity(0, sizeof all, &all));
	show("self", pthread_setaffinity_np(pthread_self(), sizeof all, &all));
	show("call", syscall(SYS_sched_setaffinity, 0, 8L, &all));
	pthread_attr_init(&attr);
	show("attr", pthread_attr_setaffinity_np(&attr, sizeof all, &all));
	show("create", pthread_create(&thread, &attr, nothing, NULL));
	show("join", pthread_join(thread, NULL));
	show("attr of none", pthread_attr_setaffinity_np(&attr, 0, NULL));
	show("create", pthread_create(&thread, &attr, nothing, NULL));
	show("join", pthread_join(thread, NULL));
	pthread_attr_destroy(&attr);
	return 0;
}
