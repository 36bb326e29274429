/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halves MODE [MS] - two threads that compute for MS each (40) and are joined. On one processor
 * that takes twice as long. How they are limited to one (the first that this program may use):
 *
 *	any      not at all: the starter has done it
 *	self     the main thread limits itself before it makes them
 *	call     ... by syscall(), as libnuma does
 *	attr     their attributes do
 *	handle   it limits them when they are there, by pthread_t
 *	tid      ... by tid, from another thread
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static cpu_set_t one;
static long work_ns = 40000000;
static pid_t tid[2];
static pthread_barrier_t ready;
static volatile unsigned long sink;

static long cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *work(void *argument)
{
	tid[(long)argument] = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	unsigned long x = 1;
	for (long end = cpu_ns() + work_ns; cpu_ns() < end;)
		for (int i = 0; i < 100000; i++)
			x = x * 6364136223846793005UL + 1;
	sink = x;
	return NULL;
}

static void find_one(void)
{
	cpu_set_t all;
	size_t first = 0;
	sched_getaffinity(0, sizeof all, &all);
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "any";
	pthread_attr_t attr;
	pthread_t thread[2];
	if (argc > 2)
		work_ns = atol(argv[2]) * 1000000;
	find_one();
	pthread_barrier_init(&ready, NULL, 3);
	pthread_attr_init(&attr);
	if (!strcmp(mode, "self"))
		sched_setaffinity(0, sizeof one, &one);
	else if (!strcmp(mode, "call"))
		syscall(SYS_sched_setaffinity, 0, sizeof one, &one);
	else if (!strcmp(mode, "attr"))
		pthread_attr_setaffinity_np(&attr, sizeof one, &one);
	for (long i = 0; i < 2; i++)
		pthread_create(&thread[i], &attr, work, (void *)i);
	pthread_barrier_wait(&ready);
	for (int i = 0; i < 2; i++) {
		if (!strcmp(mode, "handle"))
			pthread_setaffinity_np(thread[i], sizeof one, &one);
		else if (!strcmp(mode, "tid"))
			sched_setaffinity(tid[i], sizeof one, &one);
	}
	pthread_barrier_wait(&ready);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	puts("ok");
	return 0;
}
