/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and the places where a recorder keeps what it knows of them: more at a time than it
 * expects, threads that leave by the kernel's own call, a thread of a fork's child, one that shares
 * memory and no more (CLONE_VM).
 * expect: thread_begin 4303 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_A_TIME = 300, ONE_BY_ONE = 4000, GROWTH_MAX_KB = 8192 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;
static int count;

static void add(void)
{
	pthread_mutex_lock(&lock);
	count++;
	pthread_mutex_unlock(&lock);
}

static void *meets(void *unused)
{
	add();
	pthread_barrier_wait(&all);
	return unused;
}

static void *leaves(void *unused)
{
	add();
	syscall(SYS_exit, 0);
	return unused;
}

static int on_memory(void *unused)
{
	(void)unused;
	add();
	return 0;
}

static long resident_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static int in_child(void *(*routine)(void *))
{
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		pthread_t thread;
		add();
		pthread_create(&thread, NULL, routine, NULL);
		pthread_join(thread, NULL);
		_exit(count == 2 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return status;
}

int main(void)
{
	static pthread_t thread[AT_A_TIME];
	static char stack[65536];
	int status = -1;
	pthread_barrier_init(&all, NULL, AT_A_TIME + 1);
	for (int i = 0; i < AT_A_TIME; i++)
		pthread_create(&thread[i], NULL, meets, NULL);
	pthread_barrier_wait(&all);
	for (int i = 0; i < AT_A_TIME; i++)
		pthread_join(thread[i], NULL);
	printf("%d\n", count);
	long before_kb = resident_kb();
	for (int i = 0; i < ONE_BY_ONE; i++) {
		pthread_create(&thread[0], NULL, leaves, NULL);
		pthread_join(thread[0], NULL);
	}
	printf("%d, %s\n", count, resident_kb() - before_kb < GROWTH_MAX_KB ? "small" : "large");
	count = 0;
	printf("%x\n", (unsigned)in_child(leaves));
	pid_t other = clone(on_memory, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
	waitpid(other, &status, 0);
	printf("%d %x\n", count, (unsigned)status);
	return 0;
}
