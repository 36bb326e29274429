/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.h - programs that count their own locking, in memory that all their processes share:
 * LOCK(&m) takes a mutex and counts it. The last thing that such a program prints is its count, by
 * report().
 */
#ifndef LONGPOLE_TESTS_COUNT_H
#define LONGPOLE_TESTS_COUNT_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of this process and all that it starts: a file without a name, handed on by $COUNT_FD. */
static inline uint64_t *count_of_all(void)
{
	static uint64_t *counter;
	if (!counter) {
		const char *known = getenv("COUNT_FD");
		char text[16];
		int fd = known ? atoi(known) : memfd_create("count", 0);
		if (!known && ftruncate(fd, 4096) == 0) {
			snprintf(text, sizeof text, "%d", fd);
			setenv("COUNT_FD", text, 1);
		}
		counter = (uint64_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	return counter;
}

static inline void counted(void)
{
	__atomic_fetch_add(count_of_all(), 1, __ATOMIC_RELAXED);
}

#define LOCK(mutex)   (pthread_mutex_lock(mutex), counted())
#define UNLOCK(mutex) pthread_mutex_unlock(mutex)

/* The library that is loaded late needs the counter, too. */
static inline int report(void)
{
	printf("%llu\n", (unsigned long long)*count_of_all());
	return fflush(stdout);
}

#endif
