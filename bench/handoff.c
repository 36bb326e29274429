/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handoff.c - switches of processors at a chosen rate: on each processor two threads hand a token
 * to and fro through a futex, and work in between. `handoff SECONDS ITERATIONS` prints handoffs
 * (each is a switch) a second, of all processors. The processors are never idle, so whatever else
 * runs makes the number smaller.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CPUS_MAX = 256 };

struct pair {
	_Alignas(64) uint32_t turn; /* counts handoffs; its lowest bit says whose turn it is */
	int cpu;
	unsigned long iterations;
	const volatile int *stop;
};

struct half {
	struct pair *pair;
	uint32_t me;
};

static void work(unsigned long iterations)
{
	uint64_t x = iterations;
	for (unsigned long i = 0; i < iterations; i++)
		__asm__ volatile("imul %0, %0" : "+r"(x));
}

static void *run(void *ctx)
{
	struct half *h = ctx;
	struct pair *p = h->pair;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((size_t)p->cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	while (!*p->stop) {
		uint32_t turn = __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE);
		if ((turn & 1) != h->me) {
			syscall(SYS_futex, &p->turn, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0);
			continue;
		}
		work(p->iterations);
		__atomic_store_n(&p->turn, turn + 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &p->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	__atomic_add_fetch(
		&p->turn, 2, __ATOMIC_RELEASE); /* the other one may wait for its turn for ever */
	syscall(SYS_futex, &p->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return NULL;
}

static double now_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	static struct pair pair[CPUS_MAX];
	static struct half half[CPUS_MAX][2];
	static pthread_t thread[CPUS_MAX][2];
	static volatile int stop;
	cpu_set_t set;
	int nr = 0;
	if (argc != 3 || sched_getaffinity(0, sizeof set, &set))
		return 2;
	double seconds = atof(argv[1]), begin = now_s();
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!CPU_ISSET((size_t)cpu, &set))
			continue;
		pair[nr] = (struct pair){
			.cpu = cpu, .iterations = strtoul(argv[2], NULL, 10), .stop = &stop};
		for (uint32_t me = 0; me < 2; me++) {
			half[nr][me] = (struct half){.pair = &pair[nr], .me = me};
			if (pthread_create(&thread[nr][me], NULL, run, &half[nr][me]))
				return 1;
		}
		nr++;
	}
	struct timespec ts = {.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	nanosleep(&ts, NULL);
	uint64_t handoffs = 0;
	for (int i = 0; i < nr; i++)
		handoffs += __atomic_load_n(&pair[i].turn, __ATOMIC_RELAXED);
	double elapsed = now_s() - begin;
	stop = 1;
	for (int i = 0; i < nr; i++)
		for (int me = 0; me < 2; me++)
			pthread_join(thread[i][me], NULL);
	printf("%.0f\n", (double)handoffs / elapsed);
	return 0;
}
