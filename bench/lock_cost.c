/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_cost - ns of an uncontended pthread_mutex_lock/unlock pair, for bench/record to run bare and
 * under recorders.
 * --floor=1 puts two bare rdtsc in the pair: what any recorder of two times must pay. The pairs
 * come in bursts with a pause after each, so that a recorder's reader keeps up and no record is
 * dropped for want of space; only bursts are timed. Prints the median of the bursts' ns a pair, and
 * how many pairs there were.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

enum { BURSTS_MAX = 100000 };

static pthread_mutex_t cost_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t protected_sum;
static double burst_ns[BURSTS_MAX];

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t number(int argc, char **argv, const char *name, uint64_t fallback)
{
	for (int i = 1; i < argc; i++) {
		size_t len = strlen(name);
		if (!strncmp(argv[i], name, len) && argv[i][len] == '=')
			return strtoull(argv[i] + len + 1, NULL, 10);
	}
	return fallback;
}

__attribute__((noinline)) static uint64_t bare(uint64_t pairs)
{
	uint64_t begin = now_ns();
	for (uint64_t i = 0; i < pairs; i++) {
		pthread_mutex_lock(&cost_lock);
		protected_sum += i;
		pthread_mutex_unlock(&cost_lock);
	}
	return now_ns() - begin;
}

__attribute__((noinline)) static uint64_t with_floor(uint64_t pairs, volatile uint64_t *times)
{
	uint64_t begin = now_ns();
	for (uint64_t i = 0; i < pairs; i++) {
		pthread_mutex_lock(&cost_lock);
		times[0] = __rdtsc();
		protected_sum += i;
		times[1] = __rdtsc();
		pthread_mutex_unlock(&cost_lock);
	}
	return now_ns() - begin;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	uint64_t bursts = number(argc, argv, "--bursts", 300),
		 pairs = number(argc, argv, "--pairs", 4000);
	uint64_t floor = number(argc, argv, "--floor", 0),
		 pause_us = number(argc, argv, "--pause-us", 1500);
	if (!bursts || bursts > BURSTS_MAX || !pairs)
		return 2;
	volatile uint64_t times[2] = {0};
	struct timespec pause = {.tv_nsec = (long)pause_us * 1000};
	/* The C library saves the atomic operations until a program has created its first thread.
	 */
	pthread_t thread;
	if (pthread_create(&thread, NULL, nothing, NULL))
		return 3;
	pthread_join(thread, NULL);
	for (uint64_t i = 0; i < bursts; i++) {
		burst_ns[i] =
			(double)(floor ? with_floor(pairs, times) : bare(pairs)) / (double)pairs;
		nanosleep(&pause, NULL);
	}
	qsort(burst_ns, (size_t)bursts, sizeof(burst_ns[0]), compare);
	printf("%.3f %llu\n", burst_ns[bursts / 2], (unsigned long long)(bursts * pairs));
	return 0;
}
